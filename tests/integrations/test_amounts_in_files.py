"""Amounts and dates as people and services write them: read as what they are, or reported."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime, time, timedelta

import pytest

from coaching_service.core.dates import local_date
from coaching_service.core.validation import TEXT_LENGTH
from coaching_service.integrations.history_files.rosters import read_roster
from coaching_service.integrations.history_files.set_rows import Answers, SetRow
from coaching_service.integrations.history_files.values import DateAndTime, InvalidValue, read_date_and_time
from tests.integrations.test_history_files import HEVY, TRAINHEROIC, read
from tests.support.client import CoachClient
from tests.support.imported_history import workouts
from tests.support.surveys import survey
from tests.support.transfer import import_file, pick
from tests.support.workbooks import workbook

SETS = "Date,Exercise,Reps,Seconds,Weight (kg)\n"


def sets(content: str | bytes) -> list[SetRow]:
    return [each for row in read(content) for each in row.sets]


def problems(content: str | bytes) -> list[tuple[str | None, str]]:
    return [(each["field"], each["code"]) for row in read(content) for each in row.problems]


@pytest.mark.parametrize(
    ("reps", "expected"),
    [
        ("30s", (None, 30, None)),
        ("45 sec", (None, 45, None)),
        ("40 segundos", (None, 40, None)),
        ("1:30", (None, 90, None)),
        ("2 min", (None, 120, None)),
        ("400 m", (None, None, 400)),
        ("12 reps", (12, None, None)),
        ("10 each side", (10, None, None)),
    ],
)
def test_a_time_or_a_distance_in_place_of_repetitions(
    reps: str, expected: tuple[int | None, float | None, float | None]
) -> None:
    content = f"{SETS}2025-01-06,Plank,{reps},,\n"
    [done] = sets(content)
    assert (done.reps, done.seconds, done.meters) == expected
    assert problems(content) == []


def test_a_time_of_a_spreadsheet_and_of_another_format() -> None:
    [done] = sets(workbook(("Date", "Exercise", "Reps"), ("2025-01-06", "Plank", time(1, 30))))
    assert (done.reps, done.seconds) == (None, 90)
    [done] = sets(HEVY + '"Core","6 Jan 2025, 18:00","6 Jan 2025, 19:00","","Plank",,"",0,"normal",,"30s",,,\n')
    assert (done.reps, done.seconds) == (None, 30)


@pytest.mark.parametrize("reps", ["60 kg", "80%", "30s"])
def test_repetitions_that_are_something_else_are_reported(reps: str) -> None:
    content = f"{SETS}2025-01-06,Plank,{reps},20,\n"
    [done] = sets(content)
    assert (done.reps, done.seconds) == (None, 20)
    assert problems(content) == [("reps", "VALUE_LEFT_OUT")]


def test_a_percentage_is_no_load() -> None:
    content = f"{SETS}2025-01-06,Squat,5,,60%\n"
    assert [(each.reps, each.load) for each in sets(content)] == [(5, None)]
    assert problems(content) == [("load", "VALUE_LEFT_OUT")]


@pytest.mark.parametrize("load", ["60 min", "5 km"])
def test_a_load_in_a_unit_of_something_else(load: str) -> None:
    content = f"{SETS}2025-01-06,Squat,5,,{load}\n"
    assert [(each.reps, each.load) for each in sets(content)] == [(5, None)]
    assert problems(content) == [("load", "VALUE_LEFT_OUT")]


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        ("50 lbs each", (50, "lb")),
        ("20kg/hand", (20, "kg")),
        ("100 libras", (100, "lb")),
        ("100 kilos", (100, "kg")),
        ("10 each", (10, "kg")),
        ("2 plates", None),
        ("10 stone", None),
    ],
)
def test_words_behind_a_load_are_its_unit_or_reported(load: str, expected: tuple[float, str] | None) -> None:
    content = f"Date,Exercise,Reps,Weight\n2025-01-06,Curl,5,{load}\n"
    [row] = read(content, Answers(load_unit="kg"))
    assert [(each.load, each.load_unit) for each in row.sets] == [expected or (None, None)]
    assert [each["field"] for each in row.problems] == ([] if expected else ["load"])


@pytest.mark.parametrize("distance", ["100 ft", "10 laps"])
def test_a_distance_in_an_unknown_unit_is_reported(distance: str) -> None:
    content = f"Date,Exercise,Reps,Distance (km)\n2025-01-06,Run,5,{distance}\n"
    assert [each.meters for each in sets(content)] == [None]
    assert problems(content) == [("distance", "VALUE_LEFT_OUT")]


def test_units_in_a_column_of_their_own() -> None:
    content = "Date,Exercise,Reps,Weight,Weight Unit\n2025-01-06,Curl,5,45#,lbs\n2025-01-06,Curl,5,4,stone\n"
    assert [(each.load, each.load_unit) for each in sets(content)] == [(45, "lb"), (None, None)]
    assert problems(content) == [("load", "VALUE_LEFT_OUT")]


def test_a_comma_is_a_decimal_one_where_semicolons_are_between_cells() -> None:
    rows = "Datum;Übung;Wiederholungen;Gewicht (kg)\n06.01.2025;Curl;5;2,268\n06.01.2025;Squat;5;1.250,5\n"
    assert [each.load for each in sets(rows)] == [2.268, 1250.5]
    assert [each.load for each in sets('Date,Exercise,Reps,Weight (lb)\n2025-01-06,Sled,5,"2,268"\n')] == [2268]


@pytest.mark.parametrize(
    "day", ["Mon 6 Jan 2025", "Mon, Jan 6 2025", "Monday January 6, 2025", "lunes 6 de enero de 2025"]
)
def test_a_weekday_before_a_date(day: str) -> None:
    assert [str(each.day) for each in sets(f'Date,Exercise,Reps\n"{day}",Squat,5\n')] == ["2025-01-06"]


@pytest.mark.parametrize("end", ["06 Jan 2025, 17:00", "08 Jan 2025, 19:00", "later"])
def test_an_end_that_is_none_is_reported(end: str) -> None:
    content = HEVY + f'"Core","6 Jan 2025, 18:00","{end}","","Plank",,"",0,"normal",,5,,,\n'
    assert [(each.reps, each.minutes) for each in sets(content)] == [(5, None)]
    assert problems(content) == [("end", "VALUE_LEFT_OUT")]


@pytest.mark.parametrize(
    ("data", "expected", "reported"),
    [
        ("AMRAP", [], [("reps", "VALUE_LEFT_OUT"), (None, "NOT_A_SET")]),
        ("AMRAP rep x 40 pound", [(None, 40)], [("reps", "VALUE_LEFT_OUT")]),
        ('"10, AMRAP rep x 40 pound"', [(10, 40), (None, 40)], [("reps", "VALUE_LEFT_OUT")]),
        ("3 rep x 60%", [(3, None)], [("exerciseData", "VALUE_LEFT_OUT")]),
        ("3 rep x 60 % x 100 kilogram", [(3, 100)], [("exerciseData", "VALUE_LEFT_OUT")]),
        ("3 rep x 20 watt", [(3, None)], [("exerciseData", "VALUE_LEFT_OUT")]),
        ("3 rep x Bodyweight", [(3, None)], []),
        ("1.2.3 minute x 5 rep", [(5, None)], [("seconds", "VALUE_LEFT_OUT")]),
    ],
)
def test_what_trainheroic_writes_that_is_no_amount_is_reported(
    data: str, expected: list[tuple[int | None, float | None]], reported: list[tuple[str | None, str]]
) -> None:
    content = f"{TRAINHEROIC}Legs,2025-01-06,,,,,,,Squat,{data},\n"
    assert [(each.reps, each.load) for each in sets(content)] == expected
    assert problems(content) == reported


def test_repetitions_of_several_sets_in_a_cell() -> None:
    content = (
        "Date,Workout,Exercise,Weight (LB),Reps\n2025-01-06,A,Squat,225,5/5/4\n2025-01-06,A,Bench Press,135,5/5/5\n"
    )
    [first, *_] = read(content)
    assert [(each.workout, each.reps, each.load, each.load_unit) for each in first.sets] == [
        ("A", 5, 225, "lb"),
        ("A", 5, 225, "lb"),
        ("A", 4, 225, "lb"),
    ]
    assert survey(io.BytesIO(content.encode()), Answers()).format == "stronglifts"
    own = "Client,Date,Exercise,Sets,Reps,RPE\nAna,2025-01-06,Squat,3,5/5/4,8\n"
    assert [(each.reps, each.rpe) for each in sets(own)] == [(5, 8), (5, 8), (4, 8)]
    assert survey(io.BytesIO(own.encode()), Answers()).format == "sets"


def test_dates_that_a_spreadsheet_wrote_as_numbers() -> None:
    [first, second] = sets("Date,Exercise,Reps\n45678,Squat,5\n45678.75,Squat,5\n")
    assert (str(first.day), first.clock) == ("2025-01-21", None)
    assert (str(second.day), second.clock) == ("2025-01-21", "18:00")
    roster = read_roster(io.BytesIO(b"Name,Birthday\nAna,33000\nEva,12000\n"), None, None)
    assert [row.details.get("birthday") for row in roster.rows] == ["1990-05-07", "1932-11-07"]


@pytest.mark.parametrize("day", ["1850-03-04", "1949-12-31", "18000", "2199-03-04"])
def test_a_day_before_1950_or_too_far_ahead_is_reported(day: str) -> None:
    content = f"{SETS}{day},Squat,5,,\n"
    assert (sets(content), problems(content)) == ([], [("date", "INVALID_DATE")])


def test_a_number_without_end_is_reported() -> None:
    content = f"Date,Exercise,Sets,Reps\n2025-01-06,Squat,{'9' * 400},5\n"
    assert len(sets(content)) == 1
    assert problems(content) == [("sets", "VALUE_LEFT_OUT")]


def test_an_effort_below_one_is_reported_and_0_is_none() -> None:
    content = "Date,Exercise,Reps,RPE\n2025-01-06,Squat,5,0.5\n2025-01-06,Squat,5,0\n2025-01-06,Squat,5,1\n"
    assert [each.rpe for each in sets(content)] == [None, None, 1]
    assert problems(content) == [("rpe", "VALUE_LEFT_OUT")]


@pytest.mark.parametrize(("duration", "minutes"), [("24h", 1_440), ("75h 3m", None), ("-5", None)])
def test_a_duration_of_more_than_a_day_is_reported(duration: str, minutes: float | None) -> None:
    content = f"Date,Exercise,Reps,Duration\n2025-01-06,Squat,5,{duration}\n"
    assert [each.minutes for each in sets(content)] == [minutes]
    assert problems(content) == ([] if minutes else [("duration", "VALUE_LEFT_OUT")])


async def test_days_that_are_still_to_come_are_reported(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", timezone="Pacific/Kiritimati")
    today = local_date(datetime.now(UTC), "Pacific/Kiritimati")
    days = [str(today), str(today + timedelta(days=1)), "2099-03-04"]
    content = (SETS + "".join(f"{day},Squat,5,,100\n" for day in days)).encode()
    job = await import_file(coach, content, name="sets.csv", customerId=ana["_id"])
    assert pick(job["errors"], "line", "field", "code") == [(4, "date", "INVALID_DATE"), (3, "date", "IN_THE_FUTURE")]
    result = job["result"]
    assert (result["rows"], result["imported"], result["reported"]) == (3, 1, 2)
    assert (result["created"]["sessions"], result["to"]) == (1, str(today))
    assert [block["date"] for block in await workouts(coach, ana)] == [str(today)]


@pytest.mark.parametrize("reps", ["10/12/2026", "12-Oct", "Oct-12", "2026-12-10"])
def test_repetitions_that_a_spreadsheet_has_made_a_date_are_reported(reps: str) -> None:
    content = f"{SETS}2025-01-06,Squat,{reps},,60\n"
    assert [(each.reps, each.load) for each in sets(content)] == [(None, 60)]
    assert problems(content) == [("reps", "VALUE_LEFT_OUT")]


async def test_texts_that_are_cut_are_reported(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    note, more = "n" * (TEXT_LENGTH + 1), "m" * (TEXT_LENGTH // 2 + 1)
    content = (
        "Date,Workout,Exercise,Reps,Notes,Workout notes\n"
        f"2025-01-06,A,Squat,5,{note},\n2025-01-06,A,{'Sled ' * 600},5,{more},\n"
        f"2025-01-07,{'B' * 300},Squat,5,{more},{more}\n2025-01-07,{'B' * 300},Squat,4,{more[:-1]}o,{more[:-1]}o\n"
    )
    job = await import_file(coach, content.encode(), name="sets.csv", customerId=ana["_id"])
    found = sorted((each["line"], each["field"]) for each in job["errors"])
    assert found == [(2, "notes"), (3, "exercise"), (4, "notes"), (4, "workout"), (4, "workoutNotes"), (5, "workout")]
    assert {each["code"] for each in job["errors"]} == {"VALUE_LEFT_OUT"}
    assert job["result"]["imported"] == 4


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
    assert read_date_and_time(cell, None) == DateAndTime(date(2026, 3, 5), clock)


@pytest.mark.parametrize("cell", ["20261305", "05032026", "5-Mar", "Mar-26", "5-Foo-26", "5 Mar 17:30", 20261305])
def test_what_is_no_date(cell: str | int) -> None:
    with pytest.raises(InvalidValue):
        read_date_and_time(cell, None)


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
