"""Tables in strange encodings, workbooks, and files that only look like tables."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tests.support.client import CoachClient
from tests.support.imported_history import workouts
from tests.support.transfer import import_file, send
from tests.support.workbooks import with_parts, workbook

ROWS = "Date;Workout;Exercise;Reps;Weight (kg)\n06.01.2025;Día de piernas 🦵;Squat;5;102,5\n"


@pytest.mark.parametrize(
    "content",
    [
        ROWS.encode("utf-16"),
        b"\xff\xfe" + ROWS.encode("utf-16-le"),
        ("sep=;\n" + ROWS).encode("utf-8-sig"),
        ("My training\n\n" + ROWS).encode(),
        ROWS.replace("🦵", "").encode("cp1252"),
        ROWS.replace("\n", "\r").encode(),
    ],
    ids=["utf-16", "utf-16-le", "sep", "title", "windows-1252", "cr"],
)
async def test_a_table_in_another_encoding(coach: CoachClient, content: bytes) -> None:
    ana = await coach.create_customer("Ana")
    job = await import_file(coach, content, name="sets.csv", customerId=ana["_id"])
    assert (job["status"], job["errors"]) == ("done", [])
    [block] = await workouts(coach, ana)
    assert block["name"].startswith("Día de piernas")
    assert (block["date"], block["items"][0]["customerSets"][0]["load"]) == ("2025-01-06", 102.5)


async def test_a_workbook_with_dates_as_numbers_and_formulas(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    content = workbook(
        ("Training of Ana",),
        ("Date", "Exercise", "Reps", "Weight (kg)"),
        (datetime.fromisoformat("2025-01-06 18:30"), "Squat", 5, 100),
        (45664, "Squat", 5, 105),
        (datetime.fromisoformat("2025-01-10"), "Squat", "=2+3", 110),
    )
    job = await import_file(coach, content, name="sets.xlsx", customerId=ana["_id"])
    stored = [(block["date"], block["startTime"]) for block in await workouts(coach, ana)]
    assert stored == [("2025-01-06", "18:30"), ("2025-01-07", None), ("2025-01-10", None)]
    assert (job["result"]["rows"], job["result"]["imported"]) == (3, 3)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"xl/worksheets/sheet9.xml": b"<a>" + b" " * 40_000_000}, "too many bytes"),
        (
            {"xl/sharedStrings.xml": b'<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;">]><sst>&c;</sst>'},
            "document type",
        ),
        ({"xl/sharedStrings.xml": '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "b">]>'.encode("utf-16")}, "document"),
        ({f"xl/media/{number}.xml": b"" for number in range(2_100)}, "parts"),
    ],
    ids=["bomb", "entities", "utf-16 entities", "parts"],
)
async def test_a_workbook_beyond_the_limits_is_refused(
    coach: CoachClient, entries: dict[str, bytes], message: str
) -> None:
    ana = await coach.create_customer("Ana")
    job = await import_file(
        coach, with_parts(workbook(), lambda _, part: part, **entries), name="sets.xlsx", customerId=ana["_id"]
    )
    assert job["status"] == "failed"
    assert message in job["errors"][-1]["message"]


async def test_a_file_that_fits_no_format_fails_with_its_headings(coach: CoachClient) -> None:
    job = await import_file(coach, b"Datum,Puls\n2025-01-06,60\n", name="puls.csv")
    assert job["status"] == "failed"
    assert "Datum, Puls" in job["errors"][0]["message"]
    assert "nearest" in job["errors"][0]["message"]


async def test_answers_that_are_none_are_refused(coach: CoachClient) -> None:
    for field, value in (("names", "[]"), ("names", '{"Squat": "x"}'), ("columns", '{"A": "x"}'), ("loadUnit", "st")):
        answer: dict[str, Any] = {field: value}
        (await send(coach, ROWS.encode(), name="sets.csv", **answer)).refused(400, field)
