"""Workbooks of other tools: formulas without results, and sheets without a table."""

from __future__ import annotations

import io
import re
from datetime import date

import openpyxl
import pytest

from coaching_service.integrations.history_files.programs import read_program
from coaching_service.integrations.history_files.rosters import read_roster
from coaching_service.integrations.history_files.set_files import Survey, UnknownFormat
from coaching_service.integrations.history_files.set_rows import Answers
from coaching_service.integrations.history_files.tables import Format
from coaching_service.training.set_text import write_planned
from tests.support.client import CoachClient
from tests.support.imported_history import workouts
from tests.support.surveys import survey
from tests.support.transfer import import_file, pick
from tests.support.workbooks import with_parts, workbook

SETS = ("Date", "Client", "Exercise", "Reps", "Weight (kg)")
DAY = date(2026, 6, 1)


def with_results(content: bytes, stored: bytes) -> bytes:
    """A workbook in which the cells of formulas have another content than an empty result."""

    def change(name: str, part: bytes) -> bytes:
        if not name.startswith("xl/worksheets/"):
            return part
        part, count = re.subn(rb"<c (r=\"\w+\")><f>([^<]*)</f><v ?/?>(</v>)?</c>", stored, part)
        assert count
        return part

    return with_parts(content, change)


def read(content: bytes, answers: Answers | None = None) -> Survey:
    """What a workbook has."""
    return survey(io.BytesIO(content), answers or Answers())


def problems(found: Survey) -> list[tuple[int, str | None, str]]:
    """Where the problems of a file are."""
    return pick(found.problems, "line", "field", "code")


def test_formulas_without_results_are_reported() -> None:
    rows: list[tuple[object, ...]] = [
        SETS,
        (DAY, "Ana", "Squat", 5, "=50+50"),
        (DAY, "Ana", "Squat", "=2+3", 100),
        (DAY, "Ana", '="Sq"&"uat"', 5, 100),
        (DAY, '="A"&"na"', "Squat", 5, 100),
        ("=TODAY()", "Ana", "Squat", 5, 100),
        (DAY, "Ana", "Squat", "=2+3", None),
        ("=A2", "=B2", "=C2", "=D2", "=E2"),
    ]
    found = read(workbook(Log=rows))
    assert (found.rows, found.reported) == (7, 5)
    assert problems(found) == [
        (2, "load", "VALUE_LEFT_OUT"),
        (3, "reps", "VALUE_LEFT_OUT"),
        (4, "exercise", "REQUIRED"),
        (5, "customer", "REQUIRED"),
        (6, "date", "REQUIRED"),
        (7, "reps", "VALUE_LEFT_OUT"),
        (7, None, "NOT_A_SET"),
        (8, "date", "REQUIRED"),
        (8, "customer", "REQUIRED"),
        (8, "exercise", "REQUIRED"),
        (8, "reps", "VALUE_LEFT_OUT"),
        (8, "load", "VALUE_LEFT_OUT"),
    ]
    assert "formula" in found.problems[0]["message"]


@pytest.mark.parametrize(
    "stored",
    [rb"<c \1><f>\2</f><v>5</v></c>", rb'<c \1 t="str"><f>\2</f><v></v></c>', rb'<c \1 t="str"><f>\2</f><v/></c>'],
    ids=["number", "empty text", "empty element"],
)
def test_formulas_with_results_are_not(stored: bytes) -> None:
    content = with_results(workbook(Log=[SETS, (DAY, "Ana", "Squat", 5, "=2+3")]), stored)
    found = read(content)
    assert (found.rows, found.reported, found.problems) == (1, 0, [])


def test_formulas_without_results_in_other_files() -> None:
    without = with_results(workbook(Log=[SETS, (DAY, "Ana", "Squat", 5, "=2+3")]), rb"<c \1><f>\2</f></c>")
    assert problems(read(without)) == [(2, "load", "VALUE_LEFT_OUT")]
    roster = read_roster(io.BytesIO(workbook(Clients=[("Name", "Email"), ("Ana", '="a"&"@b.c"')])))
    assert [each["field"] for each in roster.rows[0].left_out] == ["email"]


def test_formulas_without_results_in_a_program() -> None:
    rows: list[tuple[object, ...]] = [
        ("Week", "Day", "Exercise", "Sets", "Reps"),
        (1, 1, "Squat", 3, "=2+3"),
        (None, None, "=C2", 3, 5),
        (None, None, None, 1, 8),
        (None, None, "Bench", 3, 5),
        (None, "=B2+1", "Row", 3, 5),
        (None, None, "Curl", 3, 5),
        (None, 3, "Dip", 3, 5),
        ("=A2+1", 1, "Press", 3, 5),
        (None, 2, "Lunge", 3, 5),
    ]
    sheet = read_program(io.BytesIO(workbook(Plan=rows)), "kg")
    assert [(day.day, [each.name for each in day.exercises]) for day in sheet.days] == [
        (1, ["Squat", "Bench"]),
        (3, ["Dip"]),
    ]
    assert [len(each.sets) for each in sheet.days[0].exercises] == [3, 3]
    assert pick(sheet.problems, "line", "field", "code") == [
        (2, "reps", "VALUE_LEFT_OUT"),
        (3, "exercise", "REQUIRED"),
        (4, "exercise", "REQUIRED"),
        (6, "day", "REQUIRED"),
        (7, "day", "REQUIRED"),
        (9, "week", "REQUIRED"),
        (10, "week", "REQUIRED"),
    ]


async def test_a_formula_without_a_result_is_a_problem_of_the_import(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    content = workbook(Log=[SETS, (DAY, None, "Squat", 5, "=2+3"), (DAY, '="B"&"o"', "Squat", 5, 100)])
    job = await import_file(coach, content, name="log.xlsx", customerId=ana["_id"])
    assert (job["result"]["rows"], job["result"]["imported"], job["result"]["reported"]) == (2, 1, 1)
    assert pick(job["errors"], "line", "field", "code") == [(2, "load", "VALUE_LEFT_OUT"), (3, "customer", "REQUIRED")]
    assert len(await workouts(coach, ana)) == 1


COVERS: list[list[tuple[object, ...]]] = [
    [("My log",)],
    [("My log",), ("Made by", "Ana"), ("Since", 2024)],
    [("Date", "2026-06-01"), ("Pages", 2)],
]


@pytest.mark.parametrize("cover", COVERS)
@pytest.mark.parametrize("form", [None, "sets"])
def test_sheets_without_a_table_of_sets_are_left_out(cover: list[tuple[object, ...]], form: Format | None) -> None:
    log = [SETS, (DAY, "Ana", "Squat", 5, 100)]
    for content in (workbook(Cover=cover, Log=log), workbook(Log=log, Cover=cover)):
        found = read(content, Answers(format=form))
        assert (found.format, found.rows, found.reported, found.questions) == ("sets", 1, 0, [])
        assert pick(found.problems, "entry", "code") == [("Cover", "UNKNOWN_SHEET")]


def test_a_workbook_without_any_table_of_sets_is_refused() -> None:
    with pytest.raises(UnknownFormat) as raised:
        read(workbook(Cover=[("My log",)], More=[("Weather", "Mood"), ("rain", "good")]))
    assert "My log" in raised.value.message


def test_sheets_without_a_table_of_a_program_or_of_clients() -> None:
    plan = [("Day", "Exercise", "Sets", "Reps"), (1, "Squat", 3, 5)]
    sheet = read_program(io.BytesIO(workbook(Cover=[("My plan",)], Plan=plan)), "kg")
    assert [day.day for day in sheet.days] == [1]
    roster = read_roster(io.BytesIO(workbook(Cover=[("My clients",)], List=[("Name", "Email"), ("Ana", "a@b.c")])))
    assert [row.details["name"] for row in roster.rows] == ["Ana"]


def test_all_sheets_of_clients_with_the_same_columns_are_read() -> None:
    headings = ("ID", "Name", "Birthday")
    content = workbook(
        Cover=[("My clients",)],
        Active=[("Studio",), headings, (1, "Ana", "03/04/1990")],
        Gone=[("Name", "ID", "Birthday"), ("Bo", 2, "11/30/1985")],
        Prices=[("Name", "Price"), ("Gold", 50)],
    )
    roster = read_roster(io.BytesIO(content))
    assert [(each.row.place, each.details["name"], each.details["birthday"]) for each in roster.rows] == [
        ("Active, line 3", "Ana", "1990-03-04"),
        ("Gone, line 2", "Bo", "1985-11-30"),
    ]
    assert pick(roster.problems, "entry", "code") == [("Cover", "UNKNOWN_SHEET"), ("Prices", "UNKNOWN_SHEET")]


@pytest.mark.parametrize(("number", "form"), [(0.7, "0%"), (0.7, "0.00%"), (70, '0"%"')])
def test_percentages_of_a_spreadsheet_are_no_loads(number: float, form: str) -> None:
    book, out = openpyxl.Workbook(), io.BytesIO()
    assert book.active is not None
    book.active.append(("Date", "Day", "Exercise", "Sets", "Reps", "Load"))
    book.active.append((DAY, 1, "Squat", 3, 5, number))
    book.active["F2"].number_format = form
    book.save(out)
    [day] = read_program(out, "kg").days
    assert write_planned(day.exercises[0].sets, "kg") == "3x5 @70%"
    assert problems(read(out.getvalue())) == [(2, "load", "VALUE_LEFT_OUT")]


async def test_problems_name_the_sheet_if_there_are_several(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    months = {
        name: [SETS, (DAY, "Ana", "Squat", 5, 100), (DAY, "Ana", "Squat", None, None)] for name in ("May", "June")
    }
    job = await import_file(coach, workbook(**months), name="log.xlsx", customerId=ana["_id"])
    assert pick(job["errors"], "entry", "code") == [("May, line 3", "NOT_A_SET"), ("June, line 3", "NOT_A_SET")]
    again = await import_file(coach, workbook(**months), name="log.xlsx", customerId=ana["_id"])
    assert {each["entry"] for each in again["errors"] if each["code"] == "ALREADY_THERE"} == {
        "May, line 2",
        "June, line 2",
    }
    clients = workbook(Active=[("Name", "ID"), ("Bo", 1)], Gone=[("Name", "ID"), ("Cy", 1)])
    job = await import_file(coach, clients, name="clients.xlsx")
    assert pick(job["errors"], "entry", "code", "message") == [
        ("Gone, line 2", "DUPLICATE", "is the same as in Active, line 2")
    ]
    assert await coach.names() == ["Ana", "Bo"]


async def test_a_workbook_with_a_cover_is_imported(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    content = workbook(Cover=[("My log",)], Log=[SETS, (DAY, "Ana", "Squat", 5, 100)])
    job = await import_file(coach, content, name="log.xlsx")
    assert (job["status"], job["result"]["imported"]) == ("done", 1)
    assert pick(job["errors"], "entry", "code") == [("Cover", "UNKNOWN_SHEET")]
    assert len(await workouts(coach, ana)) == 1
    clients = workbook(Cover=[("My clients",)], List=[("Name", "Email"), ("Bo", "bo@example.com")])
    job = await import_file(coach, clients, name="clients.xlsx")
    assert (job["result"]["format"], job["result"]["imported"]) == ("customers", 1)
