"""Dates with names of months, and without signs, as spreadsheets and other services write them."""

from __future__ import annotations

import io
from datetime import date

import pytest

from coaching_service.integrations.history_files.rosters import read_roster
from coaching_service.integrations.history_files.values import InvalidValue, Moment, read_moment


@pytest.mark.parametrize(
    ("cell", "clock"),
    [
        ("5-Mar-26", None),
        ("05-Mar-26", None),
        ("5 Mar 26", None),
        ("5-Mar-2026", None),
        ("5/Mar/26", None),
        ("5. März 26", None),
        ("05-mar.-26", None),
        ("5-mars-26", None),
        ("5 marzo 26", None),
        ("5 de março de 26", None),
        ("Mar-05-26", None),
        ("Mar 5, 26", None),
        ("2026-Mar-05", None),
        ("5-Mar-26 18:05", "18:05"),
        ("5 Mar 26, 6:05 PM", "18:05"),
        ("20260305", None),
        (20260305, None),
        ("20260305T18:05:00Z", "18:05"),
    ],
)
def test_a_date_with_the_name_of_its_month_or_without_signs(cell: str | int, clock: str | None) -> None:
    assert read_moment(cell, None) == Moment(date(2026, 3, 5), clock)


@pytest.mark.parametrize("cell", ["20261305", "05032026", "5-Mar", "Mar-26", "5-Foo-26", "5 Mar 17:30", 20261305])
def test_what_is_no_date(cell: str | int) -> None:
    with pytest.raises(InvalidValue):
        read_moment(cell, None)


def test_a_birthday_with_the_name_of_its_month() -> None:
    roster = read_roster(
        io.BytesIO(b"Name,Birthday\nAna,5-Mar-1990\nEva,19900305\nBo,5-Mar-90\nCy,3/14/88\nDi,3/14/05\n")
    )
    assert [row.details.get("birthday") for row in roster.rows] == [
        "1990-03-05",
        "1990-03-05",
        "1990-03-05",
        "1988-03-14",
        "2005-03-14",
    ]
