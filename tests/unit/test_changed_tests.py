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


def test_tests_of_what_imports_a_change_are_selected(select_tests: Select, script: dict[str, Any]) -> None:
    notes, metrics = "coaching_service/progress/notes.py", "coaching_service/progress/metrics/service.py"
    imports: dict[str, set[str]] = {"tests/core/test_transactions.py": {notes}, metrics: {notes}}
    of_notes = {"tests/progress/test_notes.py", "tests/progress/test_metrics.py", "tests/core/test_transactions.py"}
    assert select_tests([notes], TESTS, imports) == of_notes
    many = {f"coaching_service/web/views/page_{number}.py": {notes} for number in range(9)}
    assert "tests/progress/test_metrics.py" not in select_tests([notes], TESTS, {**imports, **many})
    helper = {"tests/web/test_programs.py": {"tests/support/training.py"}}
    assert select_tests(["tests/support/training.py"], TESTS, helper) == {"tests/web/test_programs.py"}
    found = script["read_imports"]()
    service = "coaching_service/training/templates.py"
    assert {service, "tests/support/training.py"} <= found["tests/mcp/test_planned_fields.py"]


def test_planned_fields_are_tested_after_each_change_of_training(select_tests: Select) -> None:
    planned = "tests/mcp/test_planned_fields.py"
    assert select_tests(["coaching_service/training/workouts/sets.py"], [*TESTS, planned]) == {planned}
    assert select_tests(["coaching_service/progress/goals/store.py"], [*TESTS, planned]) == set()
