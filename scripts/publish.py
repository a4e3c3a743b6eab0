"""Publish what a release has built, one target at a time: see scripts/publish."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from scripts.release import DIST, ROOT, CannotDo, Failed, read_versions, run

NPM = {"typescript-library": ROOT / "clients" / "typescript", "n8n": ROOT / "clients" / "n8n"}


@dataclass(frozen=True)
class Target:
    """Something to publish: what it needs of the owner, its check, and the command that publishes it.

    `check` returns what it has checked. Raises Failed, CannotDo.
    """

    name: str
    title: str
    needs: tuple[str, ...]
    check: Callable[[], str]
    command: Callable[[], list[str]]


def files_of(folder: Path, *patterns: str) -> list[str]:
    """Return the files that match the patterns. Raises Failed if one matches none, or several."""
    found = [sorted(folder.glob(pattern)) for pattern in patterns]
    for pattern, files in zip(patterns, found, strict=True):
        if len(files) != 1:
            raise Failed(f"{len(files)} files {pattern} in {folder.name}: run scripts/release --dry-run")
    return [str(file) for files in found for file in files]


def package_files() -> list[str]:
    """Return the wheel and source archive of the service."""
    return files_of(DIST, "coaching_service-*.whl", "coaching_service-*.tar.gz")


def library_files() -> list[str]:
    """Return the wheel and source archive of the Python library."""
    return files_of(DIST / "clients", "coaching_service_client-*.whl", "coaching_service_client-*.tar.gz")


def check_archives(files: list[str]) -> str:
    """Check the descriptions in archives for the Python index."""
    run("twine", "check", "--strict", *files)
    return ", ".join(Path(file).name for file in files)


def npm_files(name: str) -> list[str]:
    """Return the packed files of an npm package."""
    described = json.loads((NPM[name] / "package.json").read_text("utf-8"))
    return files_of(DIST / "clients", f"{described['name']}-{described['version']}.tgz")


def check_npm(name: str) -> str:
    """Pack an npm package without writing it, and compare it with the one that was built."""
    if shutil.which("npm") is None:
        raise CannotDo("Node 20 or newer is not installed: scripts/test --clients installs it into .venv")
    files = npm_files(name)
    described = json.loads(run("npm", "pack", "--dry-run", "--json", "--silent", str(NPM[name])))
    (packed,) = described.values() if isinstance(described, dict) else described
    return f"{Path(files[0]).name} of {len(packed['files'])} files, {packed['unpackedSize']} bytes"


def check_description() -> str:
    """Validate server.json against the registry's schema, which it names."""
    named = json.loads((ROOT / "server.json").read_text("utf-8"))["$schema"]
    schema = os.environ.get("SERVER_SCHEMA", named)
    command = [sys.executable, "-m", "check_jsonschema", "--schemafile", schema, "server.json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - our own program
    if "FailedDownloadError" in done.stderr:
        raise CannotDo(f"{schema} cannot be read from here; SERVER_SCHEMA may name a copy")
    if done.returncode:
        raise Failed(" | ".join(done.stdout.strip().splitlines()[-5:]))
    return f"server.json is valid for {schema}"


def check_build_file() -> str:
    """Check the build file of the image."""
    run("hadolint", "deploy/Containerfile")
    return "deploy/Containerfile"


def image_command() -> list[str]:
    """Return the command that copies the built image to the registry."""
    (version,) = read_versions()["pyproject.toml"]
    (archive,) = files_of(DIST, "coaching-service-*.oci.tar")
    target = f"docker://{os.environ['IMAGE']}:{version}"
    return ["skopeo", "copy", "--all", "--preserve-digests", f"oci-archive:{archive}", target]


TOKEN = "TWINE_PASSWORD"  # noqa: S105 - the name of a variable
TARGETS = (
    Target(
        "package",
        "The service, on the Python index",
        (TOKEN,),
        lambda: check_archives(package_files()),
        lambda: ["twine", "upload", "--non-interactive", *package_files()],
    ),
    Target(
        "python-library",
        "The client library, on the Python index",
        (TOKEN,),
        lambda: check_archives(library_files()),
        lambda: ["twine", "upload", "--non-interactive", *library_files()],
    ),
    *(
        Target(
            name,
            title,
            ("NODE_AUTH_TOKEN",),
            lambda name=name: check_npm(name),
            lambda name=name: ["npm", "publish", "--access", "public", *npm_files(name)],
        )
        for name, title in (
            ("typescript-library", "The client library, on npm"),
            ("n8n", "The nodes for n8n, on npm"),
        )
    ),
    Target(
        "mcp-registry",
        "server.json, in the registry of MCP servers",
        (),
        check_description,
        lambda: ["mcp-publisher", "publish"],
    ),
    Target("image", "The image, in a registry", ("IMAGE",), check_build_file, image_command),
)


def publish(target: Target) -> None:
    """Publish a target. Raises Failed."""
    if missing := [name for name in target.needs if not os.environ.get(name)]:
        raise Failed(f"{', '.join(missing)} is not set: docs/releasing.md")
    run(*target.command())


def main() -> int:
    """Check the targets that are named, and publish them unless it is a dry run."""
    lines = [f"  {each.name:20}{each.title}; needs {', '.join(each.needs) or 'a login'}" for each in TARGETS]
    parser = argparse.ArgumentParser(
        prog="scripts/publish",
        description="Publishes what scripts/release has built.",
        epilog="Targets, and what each needs of the owner in the environment:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--dry-run", action="store_true", help="everything but the publication")
    parser.add_argument("targets", nargs="+", choices=[each.name for each in TARGETS], metavar="TARGET")
    options = parser.parse_args()
    failed = False
    for target in TARGETS:
        if target.name not in options.targets:
            continue
        try:
            checked = target.check()
            if not options.dry_run:
                publish(target)
            print(f"{'checked' if options.dry_run else 'published':10} {target.name:20}{checked}", flush=True)
        except (CannotDo, Failed) as error:
            word = "NOT DONE" if isinstance(error, CannotDo) else "FAILED"
            print(f"{word:10} {target.name:20}{error}", flush=True)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
