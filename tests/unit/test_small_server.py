"""deploy/vps: the compose file, the file of variables and the nightly backup, without a container engine."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from coaching_service.command_line.options import ENVIRONMENT_FILE, SERVICE_FOLDER, read_variables
from coaching_service.core.auth import parse_master_key
from coaching_service.settings import Settings

ROOT = Path(__file__).parents[2]
VPS = ROOT / "deploy" / "vps"


@pytest.fixture
def services() -> dict[str, Any]:
    """The containers of the compose file."""
    loaded: dict[str, Any] = yaml.safe_load((VPS / "compose.yaml").read_text())["services"]
    return loaded


def read_env(folder: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in (folder / ".env").read_text().splitlines())


def create_env(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([VPS / "create-env", *arguments], cwd=folder, capture_output=True, text=True, check=False)


def test_every_container_has_limits_and_a_health_check(services: dict[str, Any]) -> None:
    assert set(services) == {"caddy", "backup"}
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["read_only"] is True, name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["healthcheck"]["test"] and service["mem_limit"] and service["logging"]["options"], name
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert not source.startswith("./") or (ROOT / source).is_file(), volume
    assert services["caddy"]["cap_add"] == ["NET_BIND_SERVICE"]


def test_database_of_the_backup_is_that_of_the_service(services: dict[str, Any]) -> None:
    service = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["service"]
    first, second = (
        re.sub(r":\?[^}]*}", "}", each["environment"]["MONGODB_URI"]) for each in (service, services["backup"])
    )
    assert first == second
    assert services["backup"]["build"]["dockerfile"] == service["build"]["dockerfile"]


def test_every_variable_of_the_compose_files_is_in_the_file_or_has_a_default(tmp_path: Path) -> None:
    assert create_env(tmp_path, "coaching.example.com").returncode == 0
    written = read_env(tmp_path)
    files = written["COMPOSE_FILE"].split(":")
    assert files == ["docker-compose.yml", "deploy/vps/compose.yaml"]
    for file in files:
        used = re.findall(r"(?<!\$)\$\{(\w+)(:-)?", (ROOT / file).read_text())
        assert [name for name, default in used if not default and name not in written] == [], file
    own = {"COMPOSE_FILE", "DOMAIN", "MONGODB_PASSWORD", "MONGODB_KEY", "BACKUP_AT"}
    assert set(written) - own <= Settings.variables()


def test_file_of_variables_has_secrets_of_its_own_and_keeps_what_it_has(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("BACKUP_AT=04:00\n")
    assert create_env(tmp_path, "coaching.example.com").returncode == 0
    first = read_env(tmp_path)
    assert create_env(tmp_path, "other.example.com").returncode == 0
    assert read_env(tmp_path) == first
    assert (first["BASE_URL"], first["BACKUP_AT"]) == ("https://coaching.example.com", "04:00")
    assert len(parse_master_key(first["SECRET_KEYS"])) == 32
    assert re.fullmatch("[0-9a-f]{48}", first["MONGODB_PASSWORD"])
    (tmp_path / "second").mkdir()
    assert create_env(tmp_path / "second", "localhost").returncode == 0
    second = read_env(tmp_path / "second")
    assert all(first[name] != second[name] for name in ("SECRET_KEYS", "MONGODB_PASSWORD", "MONGODB_KEY"))
    assert (tmp_path / "second" / ".env").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("domain", [[], ["https://coaching.example.com"], ["a b"], ["a\nb"]])
def test_domain_is_validated(domain: list[str], tmp_path: Path) -> None:
    result = create_env(tmp_path, *domain)
    assert (result.returncode, (tmp_path / ".env").exists()) == (1, False)
    assert "Usage: deploy/vps/create-env DOMAIN" in result.stderr


@pytest.mark.parametrize("fails", [False, True])
def test_nightly_backup_uses_the_store_and_says_when_it_succeeded(fails: bool, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "coaching-service"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "%s %s" "$BACKUP_STORE" "$*" >called\n' + ("exit 1\n" if fails else ""))
    program.chmod(0o700)
    variables = {"PATH": f"{program.parent}:/usr/bin:/bin", "DATA_DIR": str(tmp_path), "BACKUP_STORE": "s3://bucket/a"}
    command = ["sh", str(VPS / "nightly-backup"), "--now"]
    result = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, check=False)
    assert result.returncode == (1 if fails else 0), result.stderr
    assert (tmp_path / "called").read_text() == "s3://bucket/a backup"
    assert (tmp_path / "last-backup").exists() is not fails


def test_containers_back_up_to_the_store_of_the_file_of_variables() -> None:
    backup = yaml.safe_load((VPS / "compose.yaml").read_text())["services"]["backup"]
    assert backup["env_file"] == ".env", "with BACKUP_RECIPIENTS and AWS_..."
    assert backup["environment"]["BACKUP_STORE"] == "${BACKUP_STORE:-/data/backup-store}"
    assert "outside" in backup["networks"], "a bucket is outside"


def test_installation_without_docker_uses_files_and_settings_that_exist() -> None:
    text = (VPS / "install").read_text()
    written = read_variables(
        text.split("<<END\n")[1].split("\nEND\n")[0].replace("#SMTP", "SMTP").replace("#MAIL", "MAIL")
    )
    assert set(written) <= Settings.variables()
    assert "home=/opt/coaching-service data=/var/lib/coaching-service variables=/etc/coaching-service.env\n" in text
    assert (str(SERVICE_FOLDER), str(ENVIRONMENT_FILE)) == ("/var/lib/coaching-service", "/etc/coaching-service.env")
    assert (ROOT / "deploy" / "systemd" / "coaching-service@.service").is_file()
    assert subprocess.run(["bash", "-n", VPS / "install"], check=False).returncode == 0


def test_installation_writes_a_caddyfile_without_variables() -> None:
    command = re.search(r"^sed .*deploy/caddy/Caddyfile", (VPS / "install").read_text(), re.MULTILINE)
    assert command is not None
    script = f"domain=gym.example.org; {command[0]}"
    result = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "\ngym.example.org {\n" in result
    assert "\treverse_proxy 127.0.0.1:8081 {\n" in result
    assert "{$" not in result


def test_a_wheel_is_installed_with_the_locked_versions() -> None:
    """`scripts/lock` writes both; the guides name the file, and a release has it next to the wheel."""
    locked = (ROOT / "scripts" / "requirements.lock").read_text().splitlines()
    versions = [line.removesuffix(" \\") for line in locked if "==" in line]
    assert (ROOT / "scripts" / "constraints.txt").read_text().splitlines() == versions
    for page in ("README.md", "docs/deployment.md", "docs/small-server.md"):
        text = (ROOT / page).read_text()
        commands = [line for line in text.replace("`", "\n").splitlines() if "install" in line and ".whl" in line]
        assert commands and all("constraints.txt" in each for each in commands), page


def test_installation_uses_the_python_of_the_system() -> None:
    text = (VPS / "install").read_text()
    assert "python=/usr/bin/python3\n" in text
    assert re.findall(r"(?<![\w/$-])python3 ", text) == [], "another may come first on PATH"
