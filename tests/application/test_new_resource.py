"""`scripts/new-resource` and docs/adding-a-resource.md, applied to a copy of the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COPIED = ("coaching_service", "docs", "scripts", "tests", "pyproject.toml", "CHANGELOG.md")
# What the guide says to run, but for mypy and the tests of all other operations, which take minutes.
TESTS = (
    "tests/progress/test_training_diaries.py",
    "tests/contract/test_policy.py",
    "tests/contract/test_sharding.py::test_every_collection_has_the_placement_of_the_policy",
)


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[Path]:
    """A copy of the repository with the files that the script reads and writes."""
    ignored = shutil.ignore_patterns("__pycache__", "node_modules", "vendor", "clients", "released", "releases")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    vendor = Path("coaching_service/web/static/vendor")
    (tmp_path / vendor).symlink_to(ROOT / vendor)
    yield tmp_path


def run(folder: Path, *command: str) -> str:
    """Run a program of the environment in the copy. Return its output."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-3_000:] + result.stderr[-3_000:]
    return result.stdout


def test_resource_of_the_script_passes_what_the_guide_says(copy: Path) -> None:
    assert "Wrote coaching_service/progress/training_diaries" in run(
        copy, "scripts/new_resource.py", "training_diaries"
    )
    package = (
        "coaching_service/progress/training_diaries",
        "tests/progress/test_training_diaries.py",
        "coaching_service/features.py",
    )
    for command in (["format"], ["check", "--fix"], ["format"]):
        run(copy, "-m", "ruff", *command, *package)
    run(
        copy,
        "scripts/check_vocabulary.py",
        "coaching_service/progress/training_diaries",
        "tests/progress/test_training_diaries.py",
    )
    (copy / "docs" / "errors.md").write_text(run(copy, "-m", "coaching_service.error_reference"))
    assert "`TRAINING_DIARY_NOT_FOUND`" in (copy / "docs" / "errors.md").read_text("utf-8")

    run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS)


def test_resource_that_exists_is_not_overwritten(copy: Path) -> None:
    command = [sys.executable, "scripts/new_resource.py", "notes"]
    result = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "coaching_service/progress/notes exists" in result.stderr
