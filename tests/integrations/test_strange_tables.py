"""Tables in strange encodings, workbooks, also damaged ones, and files that only look like tables."""

from __future__ import annotations

import io
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any

import pytest

from coaching_service.integrations.history_files import tables
from coaching_service.integrations.history_files.rosters import read_roster
from coaching_service.integrations.history_files.set_rows import Answers
from coaching_service.integrations.history_files.tables import UnreadableTable
from tests.integrations.test_program_sheets import send as send_program
from tests.support.client import CoachClient
from tests.support.imported_history import workouts
from tests.support.surveys import survey
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


# --- workbooks with damaged parts: one clear problem of the file, wherever it is read --------------------------------

SHEET, STYLES = "xl/worksheets/sheet1.xml", "xl/styles.xml"
CELLS: list[list[str | int]] = [
    ["Week", "Day", "Date", "Exercise", "Sets", "Reps", "Load (kg)", "Name"],
    [1, 1, "2025-01-06", "Squat", 3, 5, 100, "Ana"],
    [1, 2, "2025-01-07", "Squat", 3, 5, 105, "Eva"],
]
DAMAGE: Mapping[str, tuple[str, bytes, bytes]] = {
    "sheet cut short": (SHEET, b"</sheetData>", b"<row"),
    "empty fill": (STYLES, b"<fill><patternFill/></fill>", b"<fill/>"),
    "text in a number": (SHEET, b"<v>105</v>", b"<v>abc</v>"),
    "column that no sheet has": (SHEET, b'r="G3"', b'r="ZZZZZZ99999999"'),
    "row that no sheet has": (SHEET, b'<row r="3"', b'<row r="5000"'),
    "no styles": (STYLES, b"</styleSheet>", b""),
    "unknown text": (SHEET, b'r="G3" t="n"', b'r="G3" t="s"'),
}


@pytest.fixture
def short_sheets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sheet has at most a thousand rows: all that Excel allows take seconds to read."""
    monkeypatch.setattr(tables, "_MAX_SHEET_ROWS", 1_000)


@cache
def damaged(kind: str) -> bytes:
    """A workbook with a damaged part."""
    return changed_workbook(*DAMAGE[kind])


def changed_workbook(part: str, before: bytes, after: bytes) -> bytes:
    """A workbook with another text in one of its parts."""

    def change(name: str, content: bytes) -> bytes:
        assert name != part or before in content
        return content.replace(before, after, 1) if name == part else content

    return with_parts(workbook(*CELLS), change)


@pytest.mark.usefixtures("short_sheets")
@pytest.mark.parametrize("kind", DAMAGE)
async def test_a_program_of_a_damaged_workbook_is_refused(coach: CoachClient, kind: str) -> None:
    for fields in ({}, {"dryRun": "true"}):
        reply = await send_program(coach, damaged(kind), "plan.xlsx", **fields)
        [error] = reply.refused(400, "damaged workbook")["errors"]
        assert (error["field"], error["code"]) == ("file", "INVALID_FILE")


@pytest.mark.usefixtures("short_sheets")
@pytest.mark.parametrize("kind", DAMAGE)
def test_sets_and_clients_of_a_damaged_workbook_are_unreadable(kind: str) -> None:
    with pytest.raises(UnreadableTable, match="damaged workbook: save it again"):
        survey(io.BytesIO(damaged(kind)), Answers())
    with pytest.raises(UnreadableTable, match="damaged workbook: save it again"):
        read_roster(io.BytesIO(damaged(kind)), None, None)


def test_a_workbook_that_states_a_smaller_size_is_read_as_a_whole() -> None:
    content = changed_workbook(SHEET, b'<dimension ref="A1:H3"/>', b'<dimension ref="A1:A2"/>')
    found = survey(io.BytesIO(content), Answers(columns={"Day": ""}))
    assert (found.rows, found.reported) == (2, 0)


async def test_an_import_of_a_damaged_workbook_fails_at_once(coach: CoachClient) -> None:
    customer = await coach.create_customer("Ana")
    for kind in ("empty fill", "text in a number"):
        job = await import_file(coach, damaged(kind), name="sets.xlsx", customerId=customer["_id"])
        [error] = job["errors"]
        assert (job["status"], error["code"]) == ("failed", "INVALID_FILE")
        assert "damaged workbook" in error["message"]
