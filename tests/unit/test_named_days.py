"""Days in the sentences of tools, in words."""

from __future__ import annotations

import pytest

from coaching_service.core.dates import name_days, name_period

TODAY = "2026-11-29"


@pytest.mark.parametrize(
    ("days", "words"),
    [
        ([], ""),
        (["2026-12-02"], "2 Dec"),
        (["2026-12-09", "2026-12-02", "2026-12-09"], "2 and 9 Dec"),
        (["2026-11-30", "2026-12-02"], "30 Nov and 2 Dec"),
        (["2026-12-02", "2026-12-04", "2026-12-09"], "2, 4 and 9 Dec"),
        (["2026-11-28", "2026-11-30", "2026-12-02", "2027-01-04"], "28, 30 Nov, 2 Dec and 4 Jan 2027"),
        (["2025-12-02", "2026-12-02"], "2 Dec 2025 and 2 Dec"),
        ([f"2026-12-0{day}" for day in range(1, 7)], "1, 2, 3, 4, 5 and 6 Dec"),
        ([f"2026-12-0{day}" for day in range(1, 8)], "1 to 7 Dec (7 days)"),
        ([*(f"2026-12-0{day}" for day in range(2, 8)), "2027-01-20"], "2 Dec to 20 Jan 2027 (7 days)"),
    ],
)
def test_days_are_named(days: list[str], words: str) -> None:
    assert name_days(days, TODAY) == words


def test_periods_are_named() -> None:
    assert name_period("2026-12-02", "2026-12-02", TODAY) == "2 Dec"
    assert name_period("2026-12-02", "2026-12-08", TODAY) == "2 to 8 Dec"
    assert name_period("2026-12-30", "2027-01-05", TODAY) == "30 Dec to 5 Jan 2027"
