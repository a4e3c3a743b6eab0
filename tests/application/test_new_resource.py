"""`scripts/new-resource` where it writes nothing: `tests/reliability/proofs/test_new_resource.py` has what it writes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COPIED = ("coaching_service", "docs", "scripts", "tests", "pyproject.toml", "CHANGELOG.md")


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Path]:
    """A copy of the repository with the files that the script reads and writes."""
    # With what is compiled already: to compile all modules takes seconds.
    ignored = shutil.ignore_patterns("node_modules", "vendor", "clients", "released", "releases")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    vendor = Path("coaching_service/web/static/vendor")
    (tmp_path / vendor).symlink_to(ROOT / vendor)
    yield tmp_path


def test_resource_that_exists_is_not_overwritten(copy: Path) -> None:
    command = [sys.executable, "scripts/new_resource.py", "notes"]
    result = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "coaching_service/progress/notes.py exists" in result.stderr


def test_environment_is_renewed_for_packages_but_not_for_settings_of_tools(copy: Path) -> None:
    script = (ROOT / "scripts" / "environment").read_text("utf-8")
    [function] = re.findall(r"^hash_of\(\) .*$", script, re.MULTILINE)
    project = copy / "pyproject.toml"
    text = project.read_text("utf-8")

    def hash_with(changed: str) -> str:
        project.write_text(changed, "utf-8")
        command = ["bash", "-c", f"{function}\nhash_of scripts/requirements.lock"]
        return subprocess.run(command, cwd=copy, capture_output=True, text=True, check=True).stdout

    known = hash_with(text)
    assert hash_with(text.replace("form_responses : notes", "form_responses : notes : goals")) == known
    assert hash_with(text.replace('"tzdata",', '"tzdata>=2026",')) != known
