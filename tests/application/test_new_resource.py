"""`scripts/new-resource` and docs/adding-a-resource.md, applied to a copy of the repository."""

from __future__ import annotations

import os
import re
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
    "tests/contract/test_every_operation.py::test_every_collection_has_the_placement_of_the_policy",
)
REGISTERED = ("coaching_service/features.py", "pyproject.toml")


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


def run(folder: Path, *command: str) -> str:
    """Run a program of the environment in the copy. Return its output."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}  # with what it compiles for the next program
    result = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-3_000:] + result.stderr[-3_000:]
    return result.stdout


def test_resource_of_the_script_passes_what_the_guide_says(copy: Path) -> None:
    other = copy / "coaching_service" / "progress" / "other.py"
    other.write_text("import  os\n")
    for number in range(2):  # interrupted or not, it can be run again
        printed = run(copy, "scripts/new_resource.py", "training_diaries")
        assert "Wrote coaching_service/progress/training_diaries" in printed
        registered = [(copy / name).read_text("utf-8").count("training_diaries") for name in REGISTERED]
        assert registered == [3, 1], "a line is there twice, or missing"
        service = copy / "coaching_service" / "progress" / "training_diaries" / "service.py"
        assert service.read_text("utf-8").count("# mine") == number
        service.write_text(f"{service.read_text('utf-8')}\n# mine\n")
    assert other.read_text() == "import  os\n", "the script changes only its own files"
    other.unlink()
    policy = (copy / "tests" / "contract" / "policy.txt").read_text("utf-8")
    assert policy.count("/training-diaries") == 4
    assert "`TRAINING_DIARY_NOT_FOUND`" in (copy / "docs" / "errors.md").read_text("utf-8")
    package = ("coaching_service/progress/training_diaries", "tests/progress/test_training_diaries.py")
    run(copy, "-m", "ruff", "check", *package, "coaching_service/features.py")
    run(copy, "scripts/check_vocabulary.py", *package)

    run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS)


def test_resource_that_exists_is_not_overwritten(copy: Path) -> None:
    command = [sys.executable, "scripts/new_resource.py", "notes"]
    result = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "coaching_service/progress/notes exists" in result.stderr


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
