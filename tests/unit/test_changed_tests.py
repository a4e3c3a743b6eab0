"""The selection of scripts/test --fast: test files that are named for what changed."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "changed_tests.py"
TESTS = [
    "tests/progress/test_notes.py",
    "tests/progress/test_metrics.py",
    "tests/core/test_transactions.py",
    "tests/unit/test_charts.py",
    "tests/web/test_programs.py",
]
Select = Callable[[Iterable[str], Iterable[str]], set[str]]


@pytest.fixture(scope="module")
def select_tests() -> Select:
    """The selecting function of the script."""
    function: Select = runpy.run_path(str(SCRIPT))["select_tests"]
    return function


@pytest.mark.parametrize(
    ("changed", "selected"),
    [
        ("coaching_service/progress/notes/store.py", {"tests/progress/test_notes.py"}),
        ("coaching_service/progress/metrics/tools.py", {"tests/progress/test_metrics.py"}),
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
