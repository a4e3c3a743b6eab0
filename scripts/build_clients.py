"""Generate the client libraries from the API document.

    scripts/build_clients [--dist] [--document FILE] [--python INTERPRETER]

The generated files are ignored by Git. `--dist` also builds the packages to publish, into dist/clients. `--document` is
an API document other than that of this source. `--python` is an interpreter with the packages of
clients/python/requirements.txt; by default an environment in clients/python/.venv, which is created.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PYTHON, TYPESCRIPT = ROOT / "clients" / "python", ROOT / "clients" / "typescript"
PACKAGE = PYTHON / "coaching_service_client"
# What openapi-python-client generates, next to the modules that are written by hand.
GENERATED = ("api", "models", "client.py", "errors.py", "types.py")
WARNINGS = ("warning", "unsupported", "skipping")


def main() -> None:
    """Generate and check both libraries; build the packages if asked to."""
    options = read_options()
    document = json.loads(options.document.read_text("utf-8")) if options.document else document_of_this_source()
    document.pop("servers", None)  # the address is given when the library is used
    interpreter = options.python or python_environment()
    with tempfile.TemporaryDirectory(prefix="coaching-clients-") as name:
        source = Path(name) / "openapi.json"
        source.write_text(json.dumps(with_short_titles(document)), "utf-8")
        generate_python(source, document, interpreter)
        source.write_text(json.dumps(document), "utf-8")
        generate_typescript(source, document)
    if options.dist:
        build_packages(interpreter)


def read_options() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description="Generate the client libraries.")
    parser.add_argument("--dist", action="store_true", help="also build the packages to publish")
    parser.add_argument("--document", type=Path, help="an API document other than that of this source")
    parser.add_argument("--python", help="an interpreter with the packages of clients/python/requirements.txt")
    return parser.parse_args()


def document_of_this_source() -> dict[str, Any]:
    """The API document that the service of this source publishes."""
    document: dict[str, Any] = json.loads(run(sys.executable, "-m", "coaching_service", "openapi"))
    return document


def with_short_titles(document: dict[str, Any]) -> dict[str, Any]:
    """The document for openapi-python-client, which puts the name of the schema or operation before a title."""

    def shorten(node: Any, name: str) -> Any:
        if isinstance(node, list):
            return [shorten(each, name) for each in node]
        if not isinstance(node, dict):
            return node
        parts = {key: shorten(each, name) for key, each in node.items()}
        return parts | {"title": node["title"].removeprefix(name)} if isinstance(node.get("title"), str) else parts

    schemas = {name: shorten(schema, name) for name, schema in document["components"]["schemas"].items()}
    paths = {
        path: {
            method: shorten(each, each["operationId"][:1].upper() + each["operationId"][1:])
            for method, each in of.items()
        }
        for path, of in document["paths"].items()
    }
    return document | {"paths": paths, "components": document["components"] | {"schemas": schemas}}


def python_environment() -> str:
    """The interpreter of an environment with the generator, which is created if it is missing."""
    folder = PYTHON / ".venv"
    interpreter = folder / "bin" / "python"
    if not interpreter.exists():
        run(sys.executable, "-m", "venv", str(folder))
        run(str(interpreter), "-m", "pip", "install", "-q", "-r", "requirements.txt", cwd=PYTHON)
    return str(interpreter)


def generate_python(source: Path, document: dict[str, Any], interpreter: str) -> None:
    """Generate the operations and models of the Python library, and check the types."""
    output = source.parent / "coaching_service_client"
    command = [interpreter, "-m", "openapi_python_client", "generate", "--meta", "none", "--fail-on-warning"]
    command += ["--path", str(source), "--output-path", str(output), "--config", str(PYTHON / "generator.yaml")]
    fail_on_warnings(run(*command))
    for name in GENERATED:
        replace(output / name, PACKAGE / name)
    lines = ['"""The retry policy of each operation, by method and number of segments of its path. Generated."""', ""]
    lines += ["POLICIES: dict[tuple[str, int], tuple[tuple[tuple[str, ...], str], ...]] = {"]
    for (method, number), entries in policies(document).items():
        lines += [f"    ({method!r}, {number}): (", *(f"        {entry!r}," for entry in entries), "    ),"]
    (PACKAGE / "operations.py").write_text("\n".join([*lines, "}", ""]), "utf-8")
    run(interpreter, "-m", "mypy", cwd=PYTHON)


def generate_typescript(source: Path, document: dict[str, Any]) -> None:
    """Generate the operations and types of the TypeScript library, and compile it, which checks the types."""
    if not (TYPESCRIPT / "node_modules").exists():
        run("npm", "ci", "--no-audit", "--no-fund", cwd=TYPESCRIPT)
    generated = TYPESCRIPT / "src" / "generated"
    shutil.rmtree(generated, ignore_errors=True)
    fail_on_warnings(run("npm", "run", "--silent", "generate", cwd=TYPESCRIPT, API_DOCUMENT=str(source)))
    rows = [
        [method, "/" + "/".join(path), policy]
        for (method, _), rows in policies(document).items()
        for path, policy in rows
    ]
    table = "\n".join(f"  {json.dumps(row)}," for row in rows)
    text = "// The retry policy of each operation. Generated.\n\n"
    text += f"export const policies: readonly (readonly [string, string, string])[] = [\n{table}\n];\n"
    (generated / "operations.ts").write_text(text, "utf-8")
    shutil.rmtree(TYPESCRIPT / "dist", ignore_errors=True)
    run("npm", "run", "--silent", "build", cwd=TYPESCRIPT)


def policies(document: dict[str, Any]) -> dict[tuple[str, int], list[tuple[tuple[str, ...], str]]]:
    """The segments of the path and the retry policy of each operation, by method and number of segments."""
    table: dict[tuple[str, int], list[tuple[tuple[str, ...], str]]] = {}
    for path, operations in sorted(document["paths"].items()):
        segments = tuple(path.strip("/").split("/"))
        for method, operation in operations.items():
            table.setdefault((method.upper(), len(segments)), []).append((segments, operation["x-retry-policy"]))
    return table


def build_packages(interpreter: str) -> None:
    """Build the source distribution and wheel of the Python library and the npm package, into dist/clients."""
    output = ROOT / "dist" / "clients"
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    for kind in ("sdist", "wheel"):
        code = f"import sys; from flit_core import buildapi; print(buildapi.build_{kind}(sys.argv[1]))"
        run(interpreter, "-c", code, str(output), cwd=PYTHON)
    run("npm", "pack", "--silent", "--pack-destination", str(output), cwd=TYPESCRIPT)


def replace(source: Path, target: Path) -> None:
    """Move a generated file or folder to its place."""
    if target.is_dir():
        shutil.rmtree(target)
    target.unlink(missing_ok=True)
    shutil.move(source, target)


def run(*command: str, cwd: Path = ROOT, **environment: str) -> str:
    """Run a program and return what it printed. Prints that and exits if it failed."""
    done = subprocess.run(  # noqa: S603
        command,
        cwd=cwd,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}")
    return done.stdout


def fail_on_warnings(printed: str) -> None:
    """Exit if a generator warned that it left something out."""
    if any(word in printed.lower() for word in WARNINGS):
        sys.exit(printed)


if __name__ == "__main__":
    main()
