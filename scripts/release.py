"""Build and check everything of a release but its publication: see scripts/release."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from flit_core import buildapi

from scripts import pin_images

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
PLATFORMS = "linux/amd64,linux/arm64"
# Where the version is: the first three also have the development version after a release.
VERSIONS = {
    "coaching_service/__init__.py": r'^__version__ = "([^"]+)"',
    "pyproject.toml": r'^version = "([^"]+)"',
    "server.json": r'^  "version": "([^"]+)"',
    "SECURITY.md": r"Latest minor release \(([\d.]+)\.x\)",
    "clients/python/pyproject.toml": r'^version = "([^"]+)"',
    "clients/typescript/package.json": r'^  "version": "([^"]+)"',
    "clients/typescript/package-lock.json": r'^  "version": "([^"]+)"',
    "clients/n8n/package.json": r'^  "version": "([^"]+)"',
    "clients/n8n/package-lock.json": r'^  "version": "([^"]+)"',
    "deploy/kubernetes/kustomization.yaml": r'^    newTag: "([^"]+)"',
}
DEVELOPED = tuple(VERSIONS)[:3]


class Failed(Exception):
    """A step has found a problem; the message is one sentence."""


class CannotDo(Exception):
    """This machine cannot do a step; the message is one sentence that says why."""


@dataclass(frozen=True)
class Release:
    """The version to release, and the tag of it; a dry run may have none."""

    version: str
    tag: str | None


@dataclass(frozen=True)
class Step:
    """A step by its name. `run` returns a sentence about what it has done. Raises Failed, CannotDo."""

    name: str
    title: str
    run: Callable[[Release], str]


def read_versions(root: Path = ROOT) -> dict[str, set[str]]:
    """Return the versions that each file states."""
    return {
        name: set(re.findall(pattern, (root / name).read_text("utf-8"), re.MULTILINE))
        for name, pattern in VERSIONS.items()
    }


def find_other_versions(versions: Mapping[str, set[str]], version: str) -> list[str]:
    """Return the files whose version is another one. In a development version only some files have it."""
    minor = ".".join(version.split(".")[:2])
    checked = DEVELOPED if ".dev" in version else tuple(versions)
    return [name for name in checked if versions[name] != {minor if name == "SECURITY.md" else version}]


def read_section(changelog: str, heading: str) -> str | None:
    """Return the text below the heading of a version, which may be followed by a date; None without one."""
    pattern = rf"^## {re.escape(heading)}( - \d{{4}}-\d\d-\d\d)?\n(.*?)(?=^## |\Z)"
    section = re.search(pattern, changelog, re.MULTILINE | re.DOTALL)
    return section[2].strip() if section else None


def check_versions(release: Release) -> str:
    """Compare the versions in all files, and the tag."""
    if other := find_other_versions(read_versions(), release.version):
        raise Failed(f"{', '.join(other)}: not version {release.version}")
    if release.tag is not None and release.tag != f"v{release.version}":
        raise Failed(f"The tag is {release.tag}, and the version {release.version}")
    return f"all files have {release.version}"


def write_notes(release: Release) -> str:
    """Write the section of the change log to dist/notes.md; with a tag, nothing may be unreleased."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    unreleased, section = read_section(text, "[Unreleased]"), read_section(text, release.version)
    if release.tag is not None and (unreleased or not section):
        raise Failed(f'CHANGELOG.md: move the entries of "Unreleased" to a section {release.version} with its date')
    if not (notes := unreleased or section):
        raise Failed("CHANGELOG.md: nothing is described")
    (DIST / "notes.md").write_text(notes + "\n", "utf-8")
    return "dist/notes.md" + (': the section "Unreleased"' if unreleased else "")


def check_bases(_: Release) -> str:
    """Check that the base images are pinned by digest."""
    texts = {name: (ROOT / name).read_text("utf-8") for name in pin_images.FILES}
    if unpinned := pin_images.find_unpinned(texts):
        raise CannotDo(f"{', '.join(unpinned)}: run scripts/pin-images with access to the registry, and commit")
    return "all base images have a digest"


def build_packages(release: Release) -> str:
    """Build the source archive, and the wheel from it without this repository."""
    os.environ["SOURCE_DATE_EPOCH"] = run("git", "log", "-1", "--format=%ct").strip()
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        archive = DIST / buildapi.build_sdist(str(DIST))
    finally:
        os.chdir(before)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        (source,) = Path(folder).iterdir()
        build = ("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(DIST))
        run(sys.executable, *build, str(source))
    shutil.copy(ROOT / "scripts" / "constraints.txt", DIST)
    if not wheel_of(release).is_file():
        raise Failed(f"{wheel_of(release).name} was not built")
    return f"dist/{archive.name}, dist/{wheel_of(release).name}"


def wheel_of(release: Release) -> Path:
    """The wheel of a release."""
    return DIST / f"coaching_service-{release.version}-py3-none-any.whl"


def try_package(release: Release) -> str:
    """Install the wheel with the locked packages in an empty environment, start it, and run the quickstart on it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = folder / "venv" / "bin" / "python"
        run(sys.executable, "-m", "venv", str(folder / "venv"))
        install = (str(python), "-m", "pip", "install", "--quiet", "--no-deps")
        run(*install, "--require-hashes", "--requirement", str(ROOT / "scripts" / "requirements.lock"))
        run(*install, str(wheel_of(release)))
        run(str(python), "-m", "pip", "check")
        command = [
            str(python.with_name("coaching-service")),
            "serve",
            "--demo",
            "--port",
            "0",
            "--data",
            name + "/data",
        ]
        clean = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": name}
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, env=clean, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True)  # noqa: S603 - our own program
            assert process.stdout is not None  # noqa: S101 - of a pipe
            address = next((line.split()[1] for line in process.stdout if line.startswith("Address")), None)
            started = any(line.startswith("Stop") for line in process.stdout)
            try:
                if address is None or not started:
                    raise Failed(f"The installed service ended at its start: {(folder / 'log').read_text()[-500:]}")
                facts = read_demo(folder / "data" / "demo.json")
                run("bash", "-euo", "pipefail", "-c", read_quickstart(), BASE=address, KEY=facts["apiKey"])
            finally:
                process.send_signal(signal.SIGTERM)
                code = process.wait(60)
        if code != 0:
            raise Failed(f"The installed service ended with {code}")
    return "installed in an empty environment, started, and the quickstart run"


def read_demo(file: Path) -> dict[str, str]:
    """Read the facts about the demo company, which the service writes after its last line. Raises Failed."""
    deadline = time.monotonic() + 60
    while not file.exists():
        if time.monotonic() > deadline:
            raise Failed(f"The installed service did not write {file.name}")
        time.sleep(0.1)  # before the next look at the file
    facts: dict[str, str] = json.loads(file.read_text("utf-8"))
    return facts


def read_quickstart() -> str:
    """The commands of the README's quickstart."""
    section = (ROOT / "README.md").read_text("utf-8").split("\n## Quickstart\n")[1]
    return section.split("```sh\n")[1].split("```")[0]


def audit(release: Release) -> str:
    """Write the bill of materials, and check licenses and vulnerabilities."""
    command = [sys.executable, "-m", "scripts.audit", *(["--required"] if release.tag else [])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - our own program
    lines = done.stdout.strip().splitlines() or done.stderr.strip().splitlines()
    if done.returncode == 2:
        raise CannotDo(f"bill of materials and licenses are done; {lines[-1]}")
    if done.returncode:
        raise Failed("; ".join(lines))
    return lines[-1]


def build_clients(_: Release) -> str:
    """Build the client libraries, and the nodes for n8n."""
    if shutil.which("npm") is None:
        raise CannotDo("Node 20 or newer is not installed: scripts/test --clients installs it into .venv")
    run(str(ROOT / "scripts" / "build_clients"), "--dist")
    run("npm", "--prefix", "clients/n8n", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
    run("npm", "--prefix", "clients/n8n", "run", "--silent", "build")
    run("npm", "pack", "--silent", "--pack-destination", str(DIST / "clients"), "./clients/n8n")
    for file in (files := sorted((DIST / "clients").iterdir())):
        shutil.copy(file, DIST)
    return ", ".join(f"dist/{file.name}" for file in files)


def build_image(release: Release) -> str:
    """Build the image for all platforms, with its provenance and bill of materials, into an archive."""
    if shutil.which("docker") is None:
        raise CannotDo("Docker is not installed")
    for command, sentence in ((("buildx", "version"), "has no buildx plugin"), (("info",), "has no daemon")):
        if subprocess.run(["docker", *command], capture_output=True, check=False).returncode:  # noqa: S603, S607 - fixed
            raise CannotDo(f"Docker {sentence} here")
    target = DIST / f"coaching-service-{release.version}.oci.tar"
    output = ("--output", f"type=oci,dest={target}", "--provenance=mode=max", "--sbom=true")
    run("docker", "buildx", "build", "--platform", PLATFORMS, "--file", "deploy/Containerfile", *output, ".")
    return f"dist/{target.name} for {PLATFORMS}"


def write_checksums(_: Release) -> str:
    """Write the SHA-256 of all files."""
    files = sorted(file for file in DIST.iterdir() if file.is_file() and file.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (DIST / "SHA256SUMS").write_text("".join(lines), "utf-8")
    return f"dist/SHA256SUMS of {len(files)} files"


def check_committed(_: Release) -> str:
    """Check that what is built is what is committed."""
    if changed := run("git", "status", "--porcelain").splitlines():
        raise CannotDo(f"{len(changed)} files differ from the commit, such as {changed[0][3:]}")
    return f"commit {run('git', 'rev-parse', '--short', 'HEAD').strip()}"


def sign(release: Release) -> str:
    """Signatures and provenance need the identity of the workflow, and are published in a public log."""
    if release.tag is None:
        raise CannotDo("only .github/workflows/release.yml signs, with its identity, after the other steps")
    return "left to the job that publishes"


STEPS = (
    Step("commit", "The tree is the commit", check_committed),
    Step("versions", "One version in all files", check_versions),
    Step("notes", "Release notes from the change log", write_notes),
    Step("bases", "Base images pinned by digest", check_bases),
    Step("packages", "Source archive and wheel", build_packages),
    Step("install", "The wheel in an empty environment", try_package),
    Step("audit", "Bill of materials, licenses, vulnerabilities", audit),
    Step("clients", "Client libraries, nodes for n8n", build_clients),
    Step("image", "Image for all platforms", build_image),
    Step("checksums", "Checksums", write_checksums),
    Step("signatures", "Signatures and provenance", sign),
)


def run(*command: str, **variables: str) -> str:
    """Run a program in the repository and return its output. Raises Failed with its last lines."""
    done = subprocess.run(  # noqa: S603 - fixed programs
        command,
        cwd=ROOT,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Failed(
            f"{Path(command[0]).name} ended with {done.returncode}: {' | '.join(done.stdout.splitlines()[-5:])}"
        )
    return done.stdout


def perform(release: Release, steps: tuple[Step, ...]) -> bool:
    """Do the steps, print a line for each, and return whether the release may go on.

    A dry run may leave out what this machine cannot do; a release may not.
    """
    left_out, failed = list[str](), list[str]()
    for step in steps:
        try:
            result, word = step.run(release), "done"
        except CannotDo as error:
            result, word = str(error), "NOT DONE"
            left_out.append(step.name)
        except Failed as error:
            result, word = str(error), "FAILED"
            failed.append(step.name)
        print(f"{word:8}  {step.name:10}  {step.title}: {result}", flush=True)
    print(f"{len(steps)} steps, not done here: {', '.join(left_out) or 'none'}; failed: {', '.join(failed) or 'none'}")
    return not failed and not (left_out and release.tag)


def remove_earlier_results() -> None:
    """Empty dist/, except for the answers of earlier audits."""
    for path in DIST.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != "audit.json":
            path.unlink()


def main() -> int:
    """Do all steps, or those that are named, and report."""
    lines = [f"  {step.name:10}  {step.title}" for step in STEPS]
    parser = argparse.ArgumentParser(
        prog="scripts/release",
        description="Builds and checks everything of a release but its publication, into dist/.",
        epilog="Steps:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--dry-run", action="store_true", help="name what this machine cannot do, and go on")
    choice.add_argument("--tag", help="release this tag: every step is required")
    parser.add_argument("--only", action="append", choices=[step.name for step in STEPS], help="only this step")
    options = parser.parse_args()
    (version,) = read_versions()["pyproject.toml"]
    selected = tuple(step for step in STEPS if not options.only or step.name in options.only)
    DIST.mkdir(exist_ok=True)
    if options.only is None:
        remove_earlier_results()
    return 0 if perform(Release(version, options.tag), selected) else 1


if __name__ == "__main__":
    sys.exit(main())
