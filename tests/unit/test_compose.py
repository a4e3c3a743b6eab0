"""docker-compose.yml, as far as it can be validated without a container engine; test_schemas.py has its form."""

from __future__ import annotations

from pathlib import Path

import yaml

from coaching_service.settings import Settings

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"


def test_every_container_is_unprivileged_and_has_a_health_check() -> None:
    for name, service in yaml.safe_load(FILE.read_text())["services"].items():
        assert service["healthcheck"]["test"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["volumes"], name
        assert "user" in service or "\nUSER " in (ROOT / service["build"]["dockerfile"]).read_text(), name
        assert service["mem_limit"], name
        assert service["logging"]["options"] == {"max-size": "20m", "max-file": "5"}, name
        assert service["stop_grace_period"] in ("30s", "60s"), name
        for variable, value in service["environment"].items():
            if any(word in variable for word in ("PASSWORD", "KEY")):
                assert value.startswith("${") or value == "", variable


def test_compose_sets_only_existing_settings() -> None:
    known = {name.upper() for name in Settings.model_fields}
    variables = set(yaml.safe_load(FILE.read_text())["services"]["service"]["environment"])
    assert variables - known == {"MONGODB_KEY", "MONGODB_PASSWORD"}


def test_compose_passes_every_setting_of_the_file() -> None:
    """What compose sets itself cannot be set there: the few that follow from the containers."""
    service = yaml.safe_load(FILE.read_text())["services"]["service"]
    assert service["env_file"] == ".env"
    fixed = {name for name, value in service["environment"].items() if "${" not in value}
    assert fixed == {"HOST", "PORT", "DATA_DIR", "MONGODB_KEY", "MONGODB_PASSWORD"}
    assert (service["environment"]["MONGODB_KEY"], service["environment"]["MONGODB_PASSWORD"]) == ("", "")


def test_several_processes_have_ports_and_sign_up_is_off() -> None:
    service = yaml.safe_load(FILE.read_text())["services"]["service"]
    assert service["ports"] == ["127.0.0.1:8080-8089:8080"]
    assert "REGISTRATION" not in service["environment"]
    assert not Settings(mongodb_uri="mongodb://mongodb:27017").accepts_registration()
