// Copies the icons next to the compiled nodes.
import { cp } from "node:fs/promises";

await cp("nodes", "dist/nodes", { recursive: true, filter: (path) => !path.endsWith(".ts") });
