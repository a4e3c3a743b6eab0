"""scripts/environment after an installation that was interrupted.

A stub stands in for python3, which would download packages: it writes files as `venv` and `pip` do, and can be configured to
stop at a step as a kill would. proofs/test_interrupted_installation.py uses the real pip with a local wheel;
interrupt_installation.py does the same with all packages.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "environment"
STUB = """#!/usr/bin/env bash
# The steps are: venv, packages, project. At $KILL_AT the script that called this stub is killed, half-way.
step() { [ "${KILL_AT:-}" = "$1" ] && kill -KILL $PPID; true; }
case "$*" in
  *version_info*) exit 0 ;;
  "-I -c import coaching_service") exit 0 ;;
  "-m venv .venv") mkdir -p .venv/bin; cp "$0" .venv/bin/python.part; step venv; mv .venv/bin/python.part .venv/bin/python ;;
  *--version) exit 0 ;;
  *"install"*"-r "*) printf 'Collecting %s==1 (from a lock)\n' aiohttp motor; [ -e .venv/mongod ] || { printf half >.venv/mongod; step packages; printf whole >.venv/mongod; } ;;
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
        (folder / name).write_text(f"# {name}\naiohttp==1\nmotor==1\n")
    stub = tmp_path / "bin" / "python3"
    stub.parent.mkdir()
    stub.write_text(STUB)
    stub.chmod(0o755)
    return folder


def install(repository: Path, kill_at: str = "", prefix: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Source the script, and print the interpreter it leaves."""
    environment = os.environ | {"PATH": f"{repository.parent / 'bin'}:{os.environ['PATH']}", "KILL_AT": kill_at}
    command = [*prefix, "bash", "-c", '. scripts/environment && echo "$PYTHON"']
    return subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)


def test_installation_shows_each_package(repository: Path) -> None:
    """It takes a minute or more, and must not look as if nothing happens."""
    shown = install(repository).stderr.splitlines()
    assert shown[-3:] == ["  1 of 2: aiohttp==1", "  2 of 2: motor==1", "  Installing the service ..."]
    assert install(repository).stderr == ""


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


def test_complete_installation_needs_no_write_access(repository: Path) -> None:
    """As of another user: the lock is not taken."""
    assert install(repository).returncode == 0
    (repository / ".venv.lock").unlink()
    assert install(repository).returncode == 0
    assert not (repository / ".venv.lock").exists()


# --- environments that cannot be used --------------------------------------------------------------------------------


def test_environment_that_cannot_be_replaced_is_reported(repository: Path) -> None:
    (repository / ".venv").write_text("not a folder")
    (repository / "scripts" / "environment").write_text(SCRIPT.read_text().replace('mv .venv "', 'false "'))
    refused = install(repository)
    assert refused.returncode == 1
    assert refused.stderr == f"The folder {repository}/.venv cannot be replaced: {ADVICE}\n"


def test_unreadable_environment_is_replaced(repository: Path) -> None:
    assert install(repository).returncode == 0
    (repository / ".venv").chmod(0)
    completed = install_unprivileged(repository)
    assert (completed.returncode, completed.stdout) == (0, f"{repository}/.venv/bin/python\n"), completed.stderr


def test_unreadable_environment_in_a_folder_of_another_user_is_reported(repository: Path) -> None:
    assert install(repository).returncode == 0
    (repository / ".venv").chmod(0)
    repository.chmod(0o555)
    refused = install_unprivileged(repository)
    repository.chmod(0o755)
    (repository / ".venv").chmod(0o755)
    assert refused.returncode == 1
    assert refused.stderr == f"The folder {repository}/.venv cannot be replaced: {ADVICE}\n"


def test_environment_whose_packages_cannot_be_read_is_reported(repository: Path) -> None:
    assert install(repository).returncode == 0
    interpreter = repository / ".venv" / "bin" / "python"
    for breaking in ("exit 1", "import failed"):
        interpreter.write_text(f"#!/bin/sh\n{breaking}\n")
        refused = install(repository)
        assert refused.returncode == 1
        assert refused.stderr == f"The environment in {repository}/.venv cannot be used: {ADVICE}\n"
    interpreter.unlink()
    assert "cannot be used" in install(repository).stderr


ADVICE = "change its permissions, or remove it."


def install_unprivileged(repository: Path) -> subprocess.CompletedProcess[str]:
    """Do the same without the rights of root."""
    drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    return install(repository, prefix=drop)
