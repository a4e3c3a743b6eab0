"""Which versions of MongoDB are tested and supported: one table, its remarks, and the documentation of it."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from coaching_service.installation.server_versions import RECOMMENDED, SERIES, remark_on

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("version", "day", "problem"),
    [
        ("6.0.5", date(2025, 7, 31), None),
        ("6.0.5", date(2025, 8, 1), "MongoDB 6.0 has no corrections since 2025-07-31"),
        ("7.0.28", date(2026, 11, 25), None),
        ("7.0.28", date(2027, 9, 1), "MongoDB 7.0 has no corrections since 2027-08-31"),
        ("8.0.17", date(2026, 11, 25), None),
        ("8.2.1", date(2026, 1, 1), "The service is not tested with MongoDB 8.2"),
        ("8.2.1", date(2026, 8, 1), "MongoDB 8.2 has no corrections since 2026-07-31"),
        ("8.3.8", date(2026, 11, 25), "The service is not tested with MongoDB 8.3"),
        ("9.0.0-rc1", date(2026, 11, 25), "The service is not tested with MongoDB 9.0"),
    ],
)
def test_remark_on_a_version(version: str, day: date, problem: str | None) -> None:
    remark = remark_on(version, day)
    assert (remark and remark.problem) == problem


def test_recommended_version_is_that_of_compose_and_tested() -> None:
    assert SERIES[RECOMMENDED].tested
    (used,) = re.findall(r"image: mongo:(\S+?)(?:@\S+)?$", (ROOT / "docker-compose.yml").read_text(), re.MULTILINE)
    assert used == RECOMMENDED


def test_documentation_has_the_table() -> None:
    ways = {"tests": "each run of `scripts/test`", "workflow": "the workflow, with Docker", None: "not tested"}
    rows = [f"| {name} | {each.supported_until} | {ways[each.tested]} |" for name, each in SERIES.items()]
    text = (ROOT / "docs" / "deployment.md").read_text("utf-8")
    assert [row for row in rows if row not in text] == []
