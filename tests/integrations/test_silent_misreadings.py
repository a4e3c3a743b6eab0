"""Numbers and rows of files that people have: each is what the file says, or it is reported, or asked about."""

from __future__ import annotations

import io

import openpyxl
import pytest

from coaching_service.integrations.history_files.rosters import read_roster
from coaching_service.integrations.history_files.set_files import SetFile, Survey
from coaching_service.integrations.history_files.set_rows import Answers, SetRow
from tests.support.client import CoachClient
from tests.support.imported_history import workouts
from tests.support.surveys import survey
from tests.support.transfer import import_file, pick

STRONG = (
    '"Workout #";"Date";"Workout Name";"Duration (sec)";"Exercise Name";"Set Order";"Weight (kg)";"Reps";"RPE";'
    '"Distance (meters)";"Seconds";"Notes";"Workout Notes"\n'
)
FITBOD = "Date,Exercise,Reps,Weight(kg),Duration(s),Distance(m),Incline,Resistance,isWarmup,Note,multiplier\n"
GRAVL = (
    "Date,Start Date,Workout,Source,Workout Duration (min),Energy,Exercise,Superset,Set,Set Type,Reps,Weight (kg),"
    "Distance (km),Set Duration (sec),Incline,Steps,Effort,Workout Notes\n"
)
LIFTOSAUR = (
    "Workout DateTime,Program,Day Name,Exercise,Is Warmup Set?,Required Reps,Completed Reps,Is AMRAP?,Required RPE,"
    "Completed RPE,Log RPE?,Required Weight Value,Required Weight Unit,Completed Weight Value,Completed Weight Unit,"
    "Ask Weight?,Completed Reps Time,Target Muscles,Synergist Muscles,Notes\n"
)
JEFIT = (
    '### SETTING ####################\n\nrow_id,USERID,mass,length\n1,7," {unit}"," in"\n\n#######################\n\n'
    "### EXERCISE LOGS ##############\n\nUSERID,TIMESTAMP,belongSys,logs,_id,record,mydate,eid,ename,day_item_id,"
    'belongsession,logTime,interval_logs,auto_generated\n7,"2026-02-03 00:00:00",1,"{logs}",1,80,{day},21,'
    '"Squat",1,1000,1,,\n\n#######################\n\n### NOTES ####################\n\nrow_id,text\n1,hello\n'
)
STRONGLIFTS_2015 = (
    "Date,Note,Workout,Body Weight,Exercise 1,Weight (KG),Weight (LB),Set 1,Set 2,Set 3,Set 4,Set 5,"
    "Exercise 2,Weight (KG),Weight (LB),Set 1,Set 2,Set 3,Set 4,Set 5\n"
)


def found_in(text: str | bytes, answers: Answers | None = None) -> tuple[Survey, list[SetRow]]:
    """What a file has, and its sets, read with what the file decides."""
    content = text.encode() if isinstance(text, str) else text
    found = survey(io.BytesIO(content), answers or Answers())
    return found, [each for row in SetFile(io.BytesIO(content), found.answers).rows() for each in row.sets]


def codes(found: Survey) -> list[str]:
    """What is asked for."""
    return [each["code"] for each in found.questions]


# --- the decimal sign ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loads", "sign", "expected"),
    [
        (("1.500", "102,5"), ",", [1500, 102.5]),
        (("1,500", "102.5"), ".", [1500, 102.5]),
        (("1.234,5", "60"), None, [1234.5, 60]),
        (("1,234.5", "2,000"), ".", [1234.5, 2000]),
        (("0,500", "1.000"), ",", [0.5, 1000]),
        (("62.5", "62,5"), ".", [62.5, None]),  # the other one is no number of this file
        (("1.234.567", "8"), None, [None, 8]),  # too large
        (("62,5", "70"), None, [62.5, 70]),
    ],
)
def test_the_decimal_sign_is_decided_for_the_whole_file(
    loads: tuple[str, str], sign: str | None, expected: list[float | None]
) -> None:
    rows = "".join(f"2025-05-0{day};Squat;5;{load}\n" for day, load in enumerate(loads, start=1))
    found, sets = found_in(f"Date;Exercise;Reps;Weight (kg)\n{rows}")
    assert codes(found) == []
    assert found.answers.decimal_sign == sign
    assert [each.load for each in sets] == expected
    left_out = sum(each is None for each in expected)
    assert [each["code"] for each in found.problems] == ["VALUE_LEFT_OUT"] * left_out


def test_a_file_in_which_all_numbers_with_a_sign_may_be_two_is_asked_about() -> None:
    text = "Date,Exercise,Reps,Distance (m)\n2025-05-01,Run,,1.500\n2025-05-02,Run,,2.000\n"
    assert codes(found_in(text)[0]) == ["DECIMAL_SIGN"]
    for sign, meters in ((",", [1500, 2000]), (".", [1.5, 2])):
        found, sets = found_in(text, Answers(decimal_sign="," if sign == "," else "."))
        assert (codes(found), [each.meters for each in sets]) == ([], meters)
    both = "Date;Exercise;Reps;Weight (kg)\n2025-05-01;Run;5;60,5\n2025-05-02;Run;5;61,5\n2025-05-03;Run;5;62.5\n"
    assert codes(found_in(both)[0]) == ["DECIMAL_SIGN"]


@pytest.mark.parametrize(
    ("count", "load", "expected", "reported"),
    [
        ("2", "100,95", [100, 95], False),
        ("3", "100/95/90 kg", [100, 95, 90], False),
        ("2", "100; 95", [100, 95], False),
        ("3", "100,95", [None] * 3, True),
        ("2", "100,950", [None] * 2, True),  # thousands, and more than anybody lifts
    ],
)
def test_two_numbers_in_a_cell_are_not_one(count: str, load: str, expected: list[float | None], reported: bool) -> None:
    text = f'Date,Exercise,Sets,Reps,Weight (kg)\n2025-05-01,Squat,{count},5,"{load}"\n2025-05-01,Dip,1,10,12.5\n'
    found, sets = found_in(text)
    assert [each.load for each in sets] == [*expected, 12.5]
    assert ([each["code"] for each in found.problems], codes(found)) == (["VALUE_LEFT_OUT"] * reported, [])


def test_a_list_does_not_decide_the_decimal_sign() -> None:
    found, _ = found_in('Date,Exercise,Sets,Reps,Weight (kg)\n2025-05-01,Squat,2,5,"100,95"\n')
    assert codes(found) == ["DECIMAL_SIGN"]


# --- durations, offsets, flags ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cell", "unit", "minutes"), [("75", "min", 75), ("4500", "s", 75), ("1:15", "h", 75)])
def test_a_duration_without_a_unit_is_asked_for(cell: str, unit: str, minutes: float) -> None:
    text = f"Date,Exercise,Sets,Reps,Weight (kg),Duration\n2025-05-01,Squat,3,8,60,{cell}\n"
    found, sets = found_in(text)
    assert (codes(found), {each.minutes for each in sets}) == (["DURATION_UNIT"], {None})
    found, sets = found_in(text, Answers(duration_unit="min" if unit == "min" else "s" if unit == "s" else "h"))
    assert (codes(found), {each.minutes for each in sets}) == ([], {minutes})
    of_sets = f"Date,Exercise,Duration\n2025-05-01,Plank,{cell.replace(':', '')}\n"
    assert codes(found_in(of_sets)[0]) == ["DURATION_UNIT"]


def test_fitbod() -> None:
    found, sets = found_in(
        FITBOD
        + "2021-12-27 10:02:51 +0000,Press,12,20.0,0,0,0,0,true,,1.0\n"
        + "2021-12-27 10:02:51 +0000,Press,10,40.0,0,0,0,0,false,,1.0\n"
        + "2021-12-27 10:02:51 +0000,Plank,0,0.0,45,0,0,0,false,,1.0\n"
        + "2021-12-27 10:02:51 +0000,Treadmill,0,0,600,1500,2.0,0,false,easy,0\n"
    )
    assert [(each.kind, each.reps, each.load, each.seconds, each.meters, each.minutes) for each in sets] == [
        ("warmup", 12, 20, None, None, None),
        ("normal", 10, 40, None, None, None),
        ("normal", None, None, 45, None, None),
        ("normal", None, None, 600, 1500, None),
    ]
    assert (found.format, [each["column"] for each in found.kinds]) == (
        "fitbod",
        ["Incline", "Resistance", "multiplier"],
    )


def test_liftosaur_has_the_unit_of_each_row() -> None:
    found, sets = found_in(
        LIFTOSAUR
        + '2026-03-01T10:00:00.000Z,P,Day 1,"Bench Press, Barbell",1,5,5,0,,,0,95,lb,95,lb,0,,,,\n'
        + '2026-03-01T10:00:00.000Z,P,Day 1,"Bench Press, Barbell",0,5,5,0,8,8.5,1,225,lb,220,lb,0,,,,\n'
        + "2026-03-01T10:00:00.000Z,P,Day 1,Squat,0,5,7,1,,,0,100,kg,102.5,kg,0,,,,good\n"
    )
    assert [(each.kind, each.reps, each.load, each.load_unit, each.rpe) for each in sets] == [
        ("warmup", 5, 95, "lb", None),
        ("normal", 5, 220, "lb", 8.5),
        ("normal", 7, 102.5, "kg", None),
    ]
    assert (found.format, codes(found), found.problems) == ("liftosaur", [], [])


@pytest.mark.parametrize("day", ["2026-02-03", "1770120000"])
def test_jefit_has_sections_and_sets_in_a_cell(day: str) -> None:
    found, sets = found_in(JEFIT.format(unit="lbs", logs="135x10,185x5,185x0x3", day=day))
    assert [(str(each.day), each.reps, each.load, each.load_unit) for each in sets] == [
        ("2026-02-03", 10, 135, "lb"),
        ("2026-02-03", 5, 185, "lb"),
    ]
    assert (found.format, codes(found)) == ("jefit", [])
    assert [each["code"] for each in found.problems] == ["VALUE_LEFT_OUT", "UNKNOWN_SHEET"]


def test_stronglifts_of_before_2020_has_a_row_for_each_workout() -> None:
    row = '18/03/2015,"tired",B,84KG,Squat,62.5,140,5,5,5,5,5,Overhead press,30,65,5,5,5,5,-\n'
    found, sets = found_in(STRONGLIFTS_2015 + row)
    assert [(each.exercise, each.reps, each.load, each.is_completed) for each in sets] == [
        *[("Squat", 5, 62.5, True)] * 5,
        *[("Overhead press", 5, 30, True)] * 4,
        ("Overhead press", 0, 30, False),
    ]
    assert {(each.workout, each.workout_notes) for each in sets} == {("B", "tired")}
    assert (found.format, found.problems) == ("stronglifts", [])


def test_a_failed_attempt_is_not_a_completed_set() -> None:
    _, sets = found_in("Date,Exercise,Reps,Weight (kg)\n2025-05-01,Squat,5/5/-,90\n2025-05-01,Bench,0,80\n")
    assert [(each.reps, each.is_completed) for each in sets] == [(5, True), (5, True), (0, False), (0, False)]


@pytest.mark.parametrize(
    ("cell", "superset", "reported"), [("No", "", 0), ("-", "", 0), ("0", "", 0), ("A", "A", 0), ("Yes", "", 1)]
)
def test_no_is_no_superset(cell: str, superset: str, reported: int) -> None:
    found, [done] = found_in(f"{GRAVL}2026/01/01,1:11 PM,Push,,41,210,Chin Up,{cell},1,Normal,11,11,0,,,,8,\n")
    assert (done.superset, len(found.problems)) == (superset, reported)


def test_the_kind_of_an_exercise_is_not_the_one_of_a_set() -> None:
    found, [done] = found_in(
        "Date,Exercise,Category,Weight (kg),Weight (lbs),Reps,Distance,Distance Unit,Time,Notes,Kind\n"
        "2026-09-17,Plank,Core,,,,,,00:01:05,Hold,t\n"
    )
    assert (done.seconds, done.kind, found.kinds) == (65, "normal", [])


def test_an_empty_date_or_exercise_is_the_one_above() -> None:
    book, out = openpyxl.Workbook(), io.BytesIO()
    assert book.active is not None
    for row in (
        ("Date", "Workout", "Exercise", "Reps", "Weight (kg)"),
        ("2025-05-01", "Push", "Bench Press", 8, 60),
        (None, None, None, 8, 62.5),
        (None, None, "Squat", 5, 100),
        ("2025-05-03", None, "Deadlift", 5, 140),
    ):
        book.active.append(row)
    book.save(out)
    found, sets = found_in(out.getvalue())
    assert [(str(each.day), each.workout, each.exercise, each.load) for each in sets] == [
        ("2025-05-01", "Push", "Bench Press", 60),
        ("2025-05-01", "Push", "Bench Press", 62.5),
        ("2025-05-01", "Push", "Squat", 100),
        ("2025-05-03", "", "Deadlift", 140),
    ]
    assert found.problems == []


# --- clients and files that fit nothing ------------------------------------------------------------------------------


def test_rosters_with_a_name_beside_its_parts_and_an_impossible_date() -> None:
    roster = read_roster(
        io.BytesIO(
            b"Name,First Name,Last Name,Athlete Email,Date of Birth\n"
            b"Mara Quill,Mara,Quill,mara@example.com,04/12/1990\nIvo Brandt,Ivo,Brandt,,11/30/1985\nNils Ohm,,,,99/99/1985\n"
        )
    )
    assert [each.full_name for each in roster.rows] == ["Mara Quill", "Ivo Brandt", "Nils Ohm"]
    assert (roster.rows[0].details["email"], roster.rows[0].details["birthday"]) == ("mara@example.com", "1990-04-12")
    assert (roster.is_order_open, [each["field"] for each in roster.rows[2].left_out]) == (False, ["birthday"])


async def test_results_are_never_clients_and_refusals_name_the_nearest_format(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    results = b"Name,Date,Component,Sets,Reps,Weight\nSam,03/14/2024,Back Squat,3,5,100\nSam,03/16/2024,Bench,1,3,85\n"
    for fields in ({"customerId": ana["_id"]}, {}):
        job = await import_file(coach, results, name="results.csv", dry_run=True, **fields)
        assert job["result"]["format"] == "sets"
        assert "COLUMN" in [each["code"] for each in job["result"]["questions"]]
    lifts = b"Date,Lift Type,Reps,Weight,Notes\n2026-03-04,Back Squat,5,100kg,\n"
    job = await import_file(coach, lifts, name="lifts.csv", dry_run=True, customerId=ana["_id"])
    assert [(each["code"], each["options"]) for each in job["result"]["questions"]] == [("COLUMN", ["Lift Type"])]
    names = await import_file(
        coach, b"Full Name,Email\nMara Quill,mara@example.com\n", name="a.csv", customerId=ana["_id"]
    )
    assert (names["status"], names["result"]["created"]["customers"]) == ("failed", 0)
    assert "The nearest is" in names["errors"][0]["message"]


# --- what is stored --------------------------------------------------------------------------------------------------


async def test_a_comment_row_and_the_problems_by_kind(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", timezone="America/New_York")
    row = '"{n}";"{day} 10:00:00";"Legs";"600";"{exercise}";"{order}";"{load}";"{reps}";"";"";"";"{note}";"{whole}"\n'
    rests = "".join(
        row.format(n=1, day="2022-01-02", exercise="Squat", order="Rest Timer", load="", reps="", note="", whole="")
        for _ in range(1_100)
    )
    lines = [
        {"order": "Note", "load": "", "reps": "", "note": "one leg first", "exercise": "Leg Curl"},
        {"order": "1", "load": "32.5", "reps": "12", "note": "", "exercise": "Leg Curl"},
        {"order": "Note", "load": "", "reps": "", "note": "alone", "exercise": "Plank"},
        {"order": "1", "load": "6O", "reps": "5", "note": "", "exercise": "Squat"},
    ]
    text = STRONG + rests + "".join(row.format(n=1, day="2022-01-02", whole="", **each) for each in lines)
    text += row.format(n=2, day="2022-99-02", exercise="Squat", order="1", load="60", reps="5", note="", whole="")
    job = await import_file(coach, text.encode(), name="strong.csv", customerId=ana["_id"])
    result = job["result"]
    assert (result["rows"], result["imported"], result["reported"]) == (1_105, 3, 1_102)
    assert sorted(pick(job["errors"], "line", "code")) == [
        (1104, "NOT_A_SET"),
        (1105, "VALUE_LEFT_OUT"),
        (1106, "INVALID_DATE"),
    ]
    assert [(each["code"], each["count"]) for each in result["problems"]] == [
        ("VALUE_LEFT_OUT", 1),
        ("INVALID_DATE", 1),
        ("NOT_A_SET", 1_101),
    ]
    assert result["problems"][-1]["lines"] == list(range(2, 22))
    [block] = await workouts(coach, ana)
    assert (block["name"], [each["comment"] for each in block["items"]]) == ("Legs", [None, "one leg first"][::-1])


async def test_times_with_an_offset_are_the_clients_day_and_a_note_of_all_rows_the_sessions(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", timezone="America/New_York")
    rows = "".join(
        f"2026-03-01T02:30:00.000Z,P,Day 1,{name},0,5,5,0,,,0,100,kg,100,kg,0,,,,{note}\n"
        for name, note in (("Squat", "good"), ("Deadlift", "good"))
    )
    await import_file(coach, (LIFTOSAUR + rows).encode(), name="liftosaur.csv", customerId=ana["_id"])
    [block] = await workouts(coach, ana)
    assert (block["date"], block["startTime"], block["comment"]) == ("2026-02-28", "21:30", "good")
    assert [each["comment"] for each in block["items"]] == [None, None]


# --- found by random histories ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("load", "loads"),
    [("1,250.5", [1250.5, 1250.5]), ("1,250", [1250, 1250]), ("100,95", [100, 95]), ("100.5/95", [100.5, 95])],
)
def test_a_load_with_thousands_is_not_two_loads_of_two_sets(load: str, loads: list[float]) -> None:
    _, sets = found_in(
        f'Date,Exercise,Sets,Reps,Weight (kg)\n2026-02-02,Squat,1,5,102.5\n2026-02-03,Squat,2,5,"{load}"\n'
    )
    assert [each.load for each in sets[1:]] == loads


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        (
            "Date,Workout #,Exercise,Sets×Reps,Set 1 (Reps),Set 1 (KG),Mood\n2026-02-02,1,Squat,1×5,5,60,good\n",
            ["Mood"],
        ),
        (
            "Date,Workout,Body Weight,Exercise 1,Weight (KG),Set 1,Set 2\n2026-02-02,A,80,Squat,60,5,5\n",
            ["Body Weight"],
        ),
        (
            "WorkoutTitle,ScheduledDate,BlockValue,ExerciseTitle,ExerciseData\nA,2026-02-02,7,Squat,5 rep x 60 kilogram\n",
            ["BlockValue"],
        ),
    ],
)
def test_columns_that_are_not_read_are_reported_of_rows_with_several_sets(text: str, unread: list[str]) -> None:
    found, _ = found_in(text)
    assert [each["column"] for each in found.kinds if each["code"] == "UNKNOWN_COLUMN"] == unread


@pytest.mark.parametrize(
    ("exercise", "cells", "loads", "problem"),
    [
        ("Mood", "good", [60, 60], ("exerciseData", "has what is no amount: Weight (KG) 100, Set 1 3, Set 2 3")),
        ("Exercise 2", "", [60, 60], ("exercise", "is empty")),
    ],
)
def test_sets_of_an_exercise_without_its_name_are_reported(
    exercise: str, cells: str, loads: list[float], problem: tuple[str, str]
) -> None:
    found, sets = found_in(
        f"Date,Workout,Exercise 1,Weight (KG),Set 1,Set 2,{exercise},Weight (KG),Set 1,Set 2\n"
        f"2026-02-02,A,Squat,60,5,5,{cells},100,3,3\n"
    )
    assert [each.load for each in sets] == loads
    assert problem in pick(found.problems, "field", "message")
