export default {
  input: process.env.API_DOCUMENT,
  output: { path: "src/generated", module: { extension: ".js" } },
  plugins: ["@hey-api/client-fetch", "@hey-api/typescript", "@hey-api/sdk"],
};
