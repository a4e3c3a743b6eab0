"""The selection of scripts/test --fast: test files that are named for what changed, or import it."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "changed_tests.py"
TESTS = [
    "tests/progress/test_notes.py",
    "tests/progress/test_metrics.py",
    "tests/core/test_transactions.py",
    "tests/unit/test_charts.py",
    "tests/web/test_programs.py",
]
Select = Callable[..., set[str]]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    """What the script defines."""
    return runpy.run_path(str(SCRIPT))


@pytest.fixture(scope="module")
def select_tests(script: dict[str, Any]) -> Select:
    """The selecting function of the script."""
    function: Select = script["select_tests"]
    return function


@pytest.mark.parametrize(
    ("changed", "selected"),
    [
        ("coaching_service/progress/notes.py", {"tests/progress/test_notes.py"}),
        ("coaching_service/progress/metrics/routes.py", {"tests/progress/test_metrics.py"}),
        ("coaching_service/training/programs/__init__.py", {"tests/web/test_programs.py"}),
        ("coaching_service/core/database/transactions.py", {"tests/core/test_transactions.py"}),
        ("coaching_service/web/charts.py", {"tests/unit/test_charts.py"}),
        ("coaching_service/web/templates/library/programs.html", {"tests/web/test_programs.py"}),
        ("tests/progress/test_notes.py", {"tests/progress/test_notes.py"}),
        ("tests/test_deleted.py", set()),
        ("README.md", set()),
    ],
)
def test_tests_are_selected_by_name(select_tests: Select, changed: str, selected: set[str]) -> None:
    assert select_tests([changed], TESTS) == selected


def test_tests_of_what_imports_a_change_are_selected(select_tests: Select) -> None:
    notes, metrics = "coaching_service/progress/notes.py", "coaching_service/progress/metrics/service.py"
    imports: dict[str, set[str]] = {"tests/core/test_transactions.py": {notes}, metrics: {notes}}
    of_notes = {"tests/progress/test_notes.py", "tests/progress/test_metrics.py", "tests/core/test_transactions.py"}
    assert select_tests([notes], TESTS, imports) == of_notes
    many = {f"coaching_service/web/views/page_{number}.py": {notes} for number in range(9)}
    assert "tests/progress/test_metrics.py" not in select_tests([notes], TESTS, {**imports, **many})
    helper = {"tests/web/test_programs.py": {"tests/support/training.py"}}
    assert select_tests(["tests/support/training.py"], TESTS, helper) == {"tests/web/test_programs.py"}


def test_imports_are_read_of_the_service_and_its_tests(
    script: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of names and of modules from a package; other packages, and what belongs to generated clients, are left out."""
    files = {
        "coaching_service/training/__init__.py": "from coaching_service.training.sets import LIMIT\n",
        "coaching_service/training/sets.py": "import re\nfrom typing import Any\n",
        "tests/training/test_sets.py": "def test() -> None:\n    from coaching_service.training import sets\n",
        "tests/clients/.venv/client.py": "from coaching_service.training import sets\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    read_imports = script["read_imports"]
    monkeypatch.setitem(read_imports.__globals__, "ROOT", tmp_path)
    package, module, test, _ = files
    assert read_imports() == {package: {module}, module: set(), test: {package, module}}


def test_planned_fields_are_tested_after_each_change_of_training(select_tests: Select) -> None:
    planned = "tests/mcp/test_planned_fields.py"
    assert select_tests(["coaching_service/training/workouts/sets.py"], [*TESTS, planned]) == {planned}
    assert select_tests(["coaching_service/progress/goals/store.py"], [*TESTS, planned]) == set()
