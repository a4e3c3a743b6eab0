"""The compose files and the workflows follow the schemas of their programs."""

from __future__ import annotations

from pathlib import Path

import check_jsonschema  # type: ignore[import-untyped]  # the package is published without types
import pytest
from click.testing import CliRunner

ROOT = Path(__file__).parents[2]
AUTOMATION = ROOT / ".github"
FILES = {
    "compose-spec": [ROOT / "docker-compose.yml", ROOT / "deploy" / "vps" / "compose.yaml"],
    "github-workflows": sorted((AUTOMATION / "workflows").glob("*.yml")),
    "dependabot": [AUTOMATION / "dependabot.yml"],
}


def check(schema: str, *files: Path) -> tuple[int, str]:
    """Return the exit code and the output of check-jsonschema."""
    result = CliRunner().invoke(check_jsonschema.main, ["--builtin-schema", f"vendor.{schema}", *map(str, files)])
    return result.exit_code, result.output


@pytest.mark.parametrize("schema", FILES)
def test_files_follow_their_schema(schema: str) -> None:
    exit_code, output = check(schema, *FILES[schema])
    assert exit_code == 0, output


def test_file_of_another_form_does_not_follow_the_schema(tmp_path: Path) -> None:
    file = tmp_path / "compose.yaml"
    file.write_text("services: {service: {imag: a}}\n")
    exit_code, output = check("compose-spec", file)
    assert exit_code == 1
    assert "'imag' was unexpected" in output
