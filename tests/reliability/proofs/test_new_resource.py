"""`scripts/new-resource` interrupted and run again, and what docs/adding-a-resource.md says to run then."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.application.test_new_resource import copy  # noqa: F401 - a fixture

# What the guide says to run, but for mypy and the tests of all other operations, which take minutes.
TESTS = (
    "tests/progress/test_training_diaries.py",
    "tests/contract/test_policy.py",
    "tests/contract/test_every_operation.py::test_every_collection_has_the_placement_of_the_policy",
)
REGISTERED = ("coaching_service/features.py", "pyproject.toml")


def run(folder: Path, *command: str) -> str:
    """Run a program of the environment in the copy. Return its output."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}  # with what it compiles for the next program
    result = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout[-3_000:] + result.stderr[-3_000:]
    return result.stdout


def test_resource_of_the_script_passes_what_the_guide_says(
    copy: Path,  # noqa: F811 - the fixture that is imported above
) -> None:
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
