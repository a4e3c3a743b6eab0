"""Workbooks with damaged parts: one clear problem of the file, wherever it is read."""

from __future__ import annotations

import io
from collections.abc import Mapping

import pytest

from coaching_service.integrations.history_files.rosters import read_roster
from coaching_service.integrations.history_files.set_rows import Answers
from coaching_service.integrations.history_files.survey import survey
from coaching_service.integrations.history_files.tables import UnreadableTable
from tests.integrations.test_program_sheets import send
from tests.support.client import CoachClient
from tests.support.transfer import import_file
from tests.support.workbooks import with_parts, workbook

SHEET, STYLES = "xl/worksheets/sheet1.xml", "xl/styles.xml"
ROWS: list[list[str | int]] = [
    ["Week", "Day", "Date", "Exercise", "Sets", "Reps", "Load (kg)", "Name"],
    [1, 1, "2025-01-06", "Squat", 3, 5, 100, "Ana"],
    [1, 2, "2025-01-07", "Squat", 3, 5, 105, "Eva"],
]
DAMAGE: Mapping[str, tuple[str, bytes, bytes]] = {
    "sheet cut short": (SHEET, b"</sheetData>", b"<row"),
    "empty fill": (STYLES, b"<fill><patternFill/></fill>", b"<fill/>"),
    "text in a number": (SHEET, b"<v>105</v>", b"<v>abc</v>"),
    "column that no sheet has": (SHEET, b'r="G3"', b'r="ZZZZZZ99999999"'),
    "row that no sheet has": (SHEET, b'<row r="3"', b'<row r="99999999"'),
    "no styles": (STYLES, b"</styleSheet>", b""),
    "unknown text": (SHEET, b'r="G3" t="n"', b'r="G3" t="s"'),
}


def damaged(kind: str) -> bytes:
    """A workbook with a damaged part."""
    return changed_workbook(*DAMAGE[kind])


def changed_workbook(part: str, before: bytes, after: bytes) -> bytes:
    """A workbook with another text in one of its parts."""

    def change(name: str, content: bytes) -> bytes:
        assert name != part or before in content
        return content.replace(before, after, 1) if name == part else content

    return with_parts(workbook(*ROWS), change)


@pytest.mark.parametrize("kind", DAMAGE)
async def test_a_program_of_a_damaged_workbook_is_refused(coach: CoachClient, kind: str) -> None:
    for fields in ({}, {"dryRun": "true"}):
        reply = await send(coach, damaged(kind), "plan.xlsx", **fields)
        [error] = reply.refused(400, "damaged workbook")["errors"]
        assert (error["field"], error["code"]) == ("file", "INVALID_FILE")


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
