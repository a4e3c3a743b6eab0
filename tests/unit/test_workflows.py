"""The workflows of the automation, as far as they can be validated without running them; test_schemas.py has their form."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from coaching_service.installation.server_versions import SERIES

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def load(name: str) -> dict[str, Any]:
    workflow: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text())
    return workflow


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_actions_are_pinned_by_digest_with_their_version(file: Path) -> None:
    used = re.findall(r"uses: (\S+)(.*)", file.read_text())
    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action


def test_one_action_has_one_digest() -> None:
    used = {each for file in WORKFLOWS for each in re.findall(r"uses: ([\w/-]+)@(\w+)", file.read_text())}
    assert len(used) == len({action for action, _ in used})


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_scripts_of_the_workflows_exist_and_text_of_others_is_not_run(file: Path) -> None:
    for job in load(file.name)["jobs"].values():
        for step in job["steps"]:
            command = step.get("run", "")
            assert "${{" not in command, "values of events are passed in variables"
            for script in re.findall(r"(?<![\w/$])(?:scripts|\.ci)/[\w-]+", command):
                assert (ROOT / script).is_file(), script
            if "actions/checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False


def test_matrix_has_the_versions_of_mongodb_that_the_table_says() -> None:
    job = load("ci.yml")["jobs"]["mongodb"]
    by_workflow = [name for name, each in SERIES.items() if each.tested == "workflow"]
    assert job["strategy"]["matrix"]["mongodb"] == by_workflow == ["7.0", "8.0"]
    commands = [step.get("run", "") for step in job["steps"]]
    assert "scripts/test" in commands
    assert "scripts/torture --minutes 5" in commands


def test_compose_files_are_started_by_the_workflow() -> None:
    commands = [step.get("run") for step in load("ci.yml")["jobs"]["compose"]["steps"]]
    assert commands[1:] == ["scripts/try-compose", "scripts/try-compose deploy/vps"]


def test_only_the_job_that_publishes_may_write_and_it_runs_no_code_of_the_repository() -> None:
    assert load("ci.yml")["permissions"] == {"contents": "read"}
    release = load("release.yml")
    assert release["permissions"] == {}
    build, publish = release["jobs"]["build"], release["jobs"]["publish"]
    assert build["permissions"] == {"contents": "read"}
    assert publish["permissions"] == dict.fromkeys(("contents", "packages", "id-token", "attestations"), "write")
    assert (publish["needs"], publish["environment"]) == ("build", "release")
    assert publish["if"] == "github.ref_type == 'tag'"
    assert not any("actions/checkout" in step.get("uses", "") for step in publish["steps"])
    commands = "".join(step.get("run", "") for step in publish["steps"])
    for word in ("sha256sum --check --strict", "cosign sign --yes", "cosign sign-blob --yes", "gh release create"):
        assert word in commands
    attested = [step["with"] for step in publish["steps"] if "actions/attest" in step.get("uses", "")]
    assert ["sbom-path" in each for each in attested] == [False, True, False]
