"""scripts/serve: the libraries of the embedded database, checked before the service starts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "serve"
ENVIRONMENT = 'set -euo pipefail; fail() { echo "$*" >&2; exit 1; }; PYTHON=echo; cd "$(dirname "$0")/.."\n'
LINKED = """\
\tlinux-vdso.so.1 (0x00007ffd)
\tlibcurl.so.4 => not found
\tlibssl.so.3 => /lib/libssl.so.3 (0x00007f00)
\tliblzma.so.5 => not found
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with the script, an environment whose interpreter is `echo`, and a bundled mongod."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts" / "serve")
    (tmp_path / "scripts" / "environment").write_text(ENVIRONMENT)
    mongod = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages" / "fiftyone" / "db" / "bin" / "mongod"
    mongod.parent.mkdir(parents=True)
    mongod.touch()
    return tmp_path


def serve(repository: Path, ldd: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run the script with a stub of ldd in a PATH without a mongod."""
    programs = repository / "bin"
    programs.mkdir(exist_ok=True)
    for name in ("bash", "dirname", "sed", "sort", "tr", "cat", "echo"):
        (programs / name).unlink(missing_ok=True)
        (programs / name).symlink_to(str(shutil.which(name)))
    (programs / "ldd").write_text(f"#!/bin/sh\n{ldd}\n")
    (programs / "ldd").chmod(0o755)
    command = [str(repository / "scripts" / "serve"), "--port", "0"]
    environment = {"PATH": str(programs), **settings}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


STARTED = "-m coaching_service serve --demo --port 0\n"


def test_missing_libraries_are_named_with_their_packages(repository: Path) -> None:
    (repository / "linked").write_text(LINKED)
    refused = serve(repository, f"cat {repository}/linked")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        "The embedded database needs missing libraries: libcurl.so.4 liblzma.so.5 (Debian 12, Ubuntu 22.04: "
        "apt-get install libcurl4 libssl3 liblzma5), or set MONGODB_URI.\n"
    )


def test_libraries_are_not_needed_with_another_database(repository: Path) -> None:
    (repository / "linked").write_text(LINKED)
    started = serve(repository, f"cat {repository}/linked", MONGODB_URI="mongodb://host")
    assert (started.returncode, started.stdout) == (0, STARTED)
    mongod = repository / "bin" / "mongod"
    mongod.touch()
    mongod.chmod(0o755)
    assert serve(repository, f"cat {repository}/linked").stdout == STARTED


def test_unknown_libraries_are_left_to_the_service(repository: Path) -> None:
    """ldd fails for a mongod of another architecture, and where the platform's wheel has none."""
    started = serve(repository, "echo 'not a dynamic executable' >&2; exit 1")
    assert (started.returncode, started.stdout, started.stderr) == (0, STARTED, "")


def test_documentation_names_the_packages_of_the_message() -> None:
    repository = SCRIPT.parents[1]
    for file in ("scripts/serve", "README.md", "docs/deployment.md"):
        assert "apt-get install libcurl4 libssl3 liblzma5" in " ".join((repository / file).read_text().split()), file
