"""The nightly backup as systemd and cron start it: in a minimal environment, without the programs of ours on PATH."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from configparser import RawConfigParser
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[3] / "deploy"
PROGRAM = str(Path(sys.executable).with_name("coaching-service"))
OWNER = ("--name", "Olga", "--email", "olga@example.com", "--password", "correct horse battery")


def moved(text: str, root: Path) -> str:
    """A text with the program, the folders and the file of variables where this test has them."""
    text = text.replace("/opt/coaching-service/bin/coaching-service", PROGRAM)
    return text.replace("/var/lib/", f"{root}/").replace("/etc/coaching-service.env", str(root / "variables.env"))


def run_unit(name: str, root: Path) -> subprocess.CompletedProcess[str]:
    """Run a unit with the variables that systemd sets, and with its own."""
    unit = RawConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string(moved((DEPLOY / "systemd" / name).read_text(), root))
    service = unit["Service"]
    variables = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "LANG": "C.UTF-8"}
    lines = [*service["Environment"].split(), *Path(service["EnvironmentFile"]).read_text().splitlines()]
    variables |= dict(line.split("=", 1) for line in lines)
    return run(shlex.split(service["ExecStart"].replace("%i", "coaching-service-backup.service")), variables)


def run(command: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program with these variables and no others, in the root folder, with no terminal."""
    return subprocess.run(
        command,
        env=variables,
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folders of a machine, with an empty file of variables."""
    (tmp_path / "variables.env").write_text("")
    return tmp_path


def test_scheduled_backup_is_made_by_systemd_and_by_cron(root: Path) -> None:
    data = root / "coaching-service"
    created = run([PROGRAM, "create-company", "Gym", *OWNER], {"DATA_DIR": str(data)})
    assert created.returncode == 0, created.stderr

    result = run_unit("coaching-service-backup.service", root)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(f"{root}/coaching-service-backups: backup 20")

    result = run_unit("coaching-service-verify.service", root)
    assert (result.returncode, result.stderr) == (0, "")
    assert "1 backups, " in result.stdout

    lines = [each for each in (DEPLOY / "cron/coaching-service-backup").read_text().splitlines() if each[0].isdigit()]
    assert [line.rsplit(maxsplit=2)[1] for line in lines] == ["backup", "verify-backup"]
    for line in lines:
        *_, user, command = moved(line, root).split(maxsplit=6)
        assert user == "root"
        assert "%" not in command, "cron would end the line there"
        # Who is not root may not change the user, and this machine has no user of the service.
        changes_user = "/usr/sbin/runuser -u coaching -- "
        assert f"exec {changes_user}/" in command
        assert Path(changes_user.split(maxsplit=1)[0]).exists()
        as_root = os.geteuid() == 0
        command = command.replace(changes_user, changes_user.replace("coaching", "root") if as_root else "")
        result = run(["/usr/bin/env", "-i", "PATH=/usr/bin:/bin", "/bin/sh", "-c", command], {})
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    recorded = run([PROGRAM, "admin", "actions", "--json"], {"DATA_DIR": str(data)})
    actions = [json.loads(each)["action"] for each in recorded.stdout.splitlines()]
    assert sorted(actions) == ["backup.created"] * 2 + ["backup.verified"] * 2
    listed = run([PROGRAM, "backups", f"{root}/coaching-service-backups"], {})
    assert len(listed.stdout.splitlines()) == 1, listed  # of the same day


def test_scheduled_backup_without_a_database_fails_and_is_reported(root: Path) -> None:
    result = run_unit("coaching-service-backup.service", root)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: There is no database in {root}/coaching-service: ")
    assert [each.name for each in root.iterdir()] == ["variables.env"]

    (root / "variables.env").write_text("OPERATOR_EMAIL=operator@example.com\n")
    result = run_unit("coaching-service-failure@.service", root)
    assert result.returncode == 0, result.stderr
    assert result.stderr.startswith("<2>coaching-service-backup.service has failed on ")
    [mail] = (root / "coaching-service" / "mail").iterdir()
    assert "To: operator@example.com" in mail.read_text()
