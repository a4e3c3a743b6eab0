"""scripts/environment after an installation that was interrupted.

A stub stands in for python3, which would download packages: it writes files as `venv` and `pip` do, and can be configured to
stop at a step as a kill would.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "environment"
STUB = """#!/usr/bin/env bash
# The steps are: venv, packages, project. At $KILL_AT the script that called this stub is killed, half-way.
step() { [ "${KILL_AT:-}" = "$1" ] && kill -KILL $PPID; true; }
case "$*" in
  *version_info*) exit 0 ;;
  "-m venv .venv") mkdir -p .venv/bin; cp "$0" .venv/bin/python.part; step venv; mv .venv/bin/python.part .venv/bin/python ;;
  *--version) exit 0 ;;
  *"install"*"-r "*) [ -e .venv/mongod ] || { printf half >.venv/mongod; step packages; printf whole >.venv/mongod; } ;;
  *"install"*"--editable"*) step project; touch .venv/project ;;
  *) exit 2 ;;
esac
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with the script and the stub."""
    folder = tmp_path / "repository"
    (folder / "scripts").mkdir(parents=True)
    shutil.copy(SCRIPT, folder / "scripts" / "environment")
    for name in ("scripts/requirements.lock", "scripts/requirements-test.lock", "pyproject.toml"):
        (folder / name).write_text(f"# {name}\n")
    stub = tmp_path / "bin" / "python3"
    stub.parent.mkdir()
    stub.write_text(STUB)
    stub.chmod(0o755)
    return folder


def install(repository: Path, kill_at: str = "") -> subprocess.CompletedProcess[str]:
    """Source the script, and print the interpreter it leaves."""
    environment = os.environ | {"PATH": f"{repository.parent / 'bin'}:{os.environ['PATH']}", "KILL_AT": kill_at}
    command = ["bash", "-c", '. scripts/environment && echo "$PYTHON"']
    return subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("step", ["venv", "packages", "project"])
def test_interrupted_installation_is_started_again(repository: Path, step: str) -> None:
    assert install(repository, kill_at=step).returncode == -signal.SIGKILL
    completed = install(repository)
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.strip() == str(repository / ".venv" / "bin" / "python")
    assert (repository / ".venv" / "mongod").read_text() == "whole"
    assert sorted(file.name for file in repository.iterdir() if file.name.startswith(".venv")) == [
        ".venv",
        ".venv.lock",
    ]


def test_complete_installation_is_used_again(repository: Path) -> None:
    assert install(repository).returncode == 0
    (repository / ".venv" / "mark").touch()
    again = install(repository)
    assert (again.returncode, again.stderr) == (0, "")
    assert (repository / ".venv" / "mark").exists()


def test_changed_lock_is_installed_into_the_same_environment(repository: Path) -> None:
    assert install(repository).returncode == 0
    (repository / ".venv" / "mark").touch()
    (repository / "scripts" / "requirements.lock").write_text("# another version\n")
    again = install(repository)
    assert "Installing the locked packages" in again.stderr
    assert (repository / ".venv" / "mark").exists()


def test_environment_that_cannot_be_written_is_reported(repository: Path) -> None:
    (repository / ".venv").write_text("not a folder")
    (repository / "scripts" / "environment").write_text(SCRIPT.read_text().replace('mv .venv "', 'false "'))
    refused = install(repository)
    assert refused.returncode == 1
    assert refused.stderr.strip().endswith(".venv cannot be replaced: change its permissions, or remove it.")
