"""Hints in brackets of headings: units, patterns of dates and times; they never hide what a column has."""

from __future__ import annotations

import io
from datetime import date
from typing import Any, cast

import pytest

from coaching_service.integrations.history_files.rosters import read_roster
from coaching_service.integrations.history_files.set_rows import Answers, split_sessions
from coaching_service.integrations.history_files.values import DateOrder, Field
from tests.integrations.test_history_files import read
from tests.support.client import CoachClient
from tests.support.imported_history import workouts
from tests.support.surveys import survey
from tests.support.transfer import import_file

STRONGLIFTS = (
    "Date (yyyy/mm/dd),Workout,Workout Name,Program Name,Body Weight (KG),Exercise,Sets×Reps,Sets×Time,"
    "Top Set (Reps×KG),Volume (KG),Duration (hours),Start Time (h:mm),End Time (h:mm),Notes,"
    "Set 1 (Reps),Set 1 (KG),Set 2 (Reps),Set 2 (KG)\n"
    "2026/03/02,12,Workout A,StrongLifts 5×5,80,Squat,2×5,,5×102.5,1000,0.75,18:05,18:50,,5,100,5,102.5\n"
    "2026/03/02,12,Workout A,StrongLifts 5×5,80,Bench Press,2×5,,5×60,600,0.75,18:05,18:50,,5,60,4,60\n"
    "2026/03/04,13,Workout B,StrongLifts 5×5,80,Deadlift,1×5,,5×140,700,,23:40,0:10,,5,140,,\n"
)
SETS = "Exercise,Reps\n"


async def test_the_export_of_stronglifts_has_hints_in_its_headings(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    job = await import_file(coach, STRONGLIFTS.encode(), name="stronglifts.csv", customerId=ana["_id"])
    assert (job["status"], job["errors"], job["result"]["format"]) == ("done", [], "stronglifts")
    stored = [
        (block["date"], block["name"], block["startTime"], block["durationMinutes"], len(block["items"]))
        for block in await workouts(coach, ana)
    ]
    assert stored == [("2026-03-02", "Workout A", "18:05", 45, 2), ("2026-03-04", "Workout B", "23:40", 30, 1)]


@pytest.mark.parametrize(
    ("heading", "text", "expected"),
    [
        ("Date (dd/mm/yyyy)", "03/04/2026", date(2026, 4, 3)),
        ("Date (MM/DD/YYYY)", "03/04/2026", date(2026, 3, 4)),
        ("Date [m/d/yy]", "3/4/26", date(2026, 3, 4)),
        ("Date (yy/mm/dd)", "26/03/04", date(2026, 3, 4)),
        ("Date (yyyy-mm-dd hh:mm)", "2026-03-04 18:05", date(2026, 3, 4)),
        ("Datum (TT.MM.JJJJ)", "03.04.2026", date(2026, 4, 3)),
        ("Date (jj/mm/aaaa)", "03/04/2026", date(2026, 4, 3)),
        ("Data (gg/mm/aaaa)", "03/04/2026", date(2026, 4, 3)),
        ("Fecha (día/mes/año)", "03/04/2026", date(2026, 4, 3)),
    ],
)
def test_a_pattern_in_a_heading_decides_the_order_of_dates(heading: str, text: str, expected: date) -> None:
    content = f"{heading},Exercise,Reps\n{text},Squat,5\n"
    assert [each.day for row in read(content) for each in row.sets] == [expected]
    assert survey(io.BytesIO(content.encode()), Answers()).questions == []
    columns: dict[str, Any] = {heading: "date"}
    assert [each.day for row in read(content, Answers(columns=columns)) for each in row.sets] == [expected]


def test_an_answer_of_the_caller_counts_more_than_a_pattern() -> None:
    content = "Date (dd/mm/yyyy),Exercise,Reps\n03/04/2026,Squat,5\n"
    assert [each.day for row in read(content, Answers(date_order="mdy")) for each in row.sets] == [date(2026, 3, 4)]


@pytest.mark.parametrize("answer", [None, "ymd"])
def test_a_pattern_that_no_date_has_decides_nothing(answer: DateOrder | None) -> None:
    """A spreadsheet has written the dates of the file in its own way."""
    content = "Date (yyyy/mm/dd),Exercise,Reps\n03/04/2026,Squat,5\n"
    found = survey(io.BytesIO(content.encode()), Answers(date_order=answer))
    assert [each["code"] for each in found.questions] == ["DATE_ORDER"]
    decided = f"{content}13/04/2026,Squat,5\n".encode()
    assert survey(io.BytesIO(decided), Answers()).answers.date_order == "dmy"


@pytest.mark.parametrize(
    ("headings", "row", "field", "expected"),
    [
        ("Weight [lbs]", "100", "load_unit", "lb"),
        ("Duration (hours)", "1.5", "minutes", 90),
        ("Dauer (Std)", "0,75", "minutes", 45),
        ("Duration (h:mm)", "1:05:00", "minutes", 65),
        ("Duration (min)", "45", "minutes", 45),
        ("Duration (min)", "1h 5m", "minutes", 65),
        ("Duration (m)", "45", "minutes", 45),
        ("Seconds (mm:ss)", "1:30", "seconds", 90),
        ("Distance (km)", "5", "meters", 5000),
    ],
)
def test_a_unit_in_a_heading(headings: str, row: str, field: Field, expected: object) -> None:
    [[done]] = [each.sets for each in read(f'Date;Exercise;Reps;{headings}\n2026-03-04;Squat;5;"{row}"\n')]
    assert getattr(done, field) == expected


@pytest.mark.parametrize(
    ("headings", "row", "expected"),
    [
        ("Date (dd/mm/yyyy),Workout Name,Duration,Exercise Name,Set Order,Weight (kg),Reps", "A,45m,Squat,1,100,5", "strong"),
        ("Date (dd/mm/yyyy),Exercise,Category,Weight (kg),Weight (lbs),Reps", "Squat,Legs,100,,5", "fitnotes"),
        ("Date (dd/mm/yyyy),Start Date (h:mm),Workout,Exercise,Set,Set Duration (sec),Reps,Weight (kg),Effort",
         "18:05,A,Squat,1,30,5,100,8", "gravl"),
        ("ScheduledDate (dd/mm/yyyy),WorkoutTitle,ExerciseTitle,ExerciseData", "A,Squat,5 rep x 100 kilogram", "trainheroic"),
    ],
)  # fmt: skip
def test_each_format_is_recognised_with_a_pattern(headings: str, row: str, expected: str) -> None:
    content = f"{headings}\n03/04/2026,{row}\n"
    found = survey(io.BytesIO(content.encode()), Answers())
    assert (found.format, found.questions) == (expected, [])
    [[session], _] = split_sessions(each for each_row in read(content) for each in each_row.sets)
    assert (session.day, [each.load for each in session.sets]) == (date(2026, 4, 3), [100])


@pytest.mark.parametrize(
    ("pattern", "expected"), [("mm/dd/yyyy", "1990-03-04"), ("dd/mm/yyyy", "1990-04-03"), ("D/M/Y", "1990-04-03")]
)
def test_a_pattern_in_a_roster(pattern: str, expected: str) -> None:
    roster = read_roster(io.BytesIO(f"Name,Date of Birth ({pattern})\nAna,03/04/1990\n".encode()))
    assert [cast("Any", row.details).get("birthday") for row in roster.rows] == [expected]
    assert not roster.is_order_open
