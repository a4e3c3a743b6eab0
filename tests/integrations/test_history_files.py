"""Files of other services are recognised by their headings, and each row is read or reported."""

from __future__ import annotations

import io
from datetime import date, datetime

import pytest

from coaching_service.integrations.history_files import set_files, tables, values
from coaching_service.integrations.history_files._dialects import count_headings, recognise
from coaching_service.integrations.history_files.set_files import SetFile, UnknownFormat
from coaching_service.integrations.history_files.set_rows import Answers, FileRow, Session, split_sessions
from coaching_service.integrations.history_files.tables import UnreadableTable, read_tables
from coaching_service.integrations.history_files.values import DateAndTime, InvalidValue, UnknownOrder
from tests.support.surveys import survey
from tests.support.workbooks import workbook

HEVY = (
    '"title","start_time","end_time","description","exercise_title","superset_id","exercise_notes","set_index",'
    '"set_type","weight_lbs","reps","distance_miles","duration_seconds","rpe"\n'
)
STRONG = "Date,Workout Name,Duration,Exercise Name,Set Order,Weight,Reps,Distance,Seconds,Notes,Workout Notes,RPE\n"
STRONG_IN_GERMAN = "Datum;Workout-Name;Name der Übung;Satz-Reihenfolge;Gewicht;Wiederholungen;RPE\n"
FITNOTES = "Date,Exercise,Category,Weight,Weight Unit,Reps,Distance,Distance Unit,Time,Comment\n"
FITNOTES_ON_IOS = "Date,Exercise,Category,Weight (kg),Weight (lbs),Reps,Distance,Distance Unit,Time,Notes,Kind\n"
STRONGLIFTS = (
    "Date,Workout #,Workout Name,Exercise,Sets×Reps,Start Time (h:mm),Set 1 (Reps),Set 1 (KG),Set 2 (Reps),Set 2 (KG)\n"
)
GRAVL = (
    "Date,Start Date,Workout,Source,Workout Duration (min),Energy,Exercise,Superset,Set,Set Type,Reps,Weight (kg),"
    "Distance (km),Set Duration (sec),Incline,Steps,Effort,Workout Notes\n"
)
TRAINHEROIC = (
    "WorkoutTitle,ScheduledDate,RescheduledDate,WorkoutNotes,BlockValue,BlockUnits,BlockInstructions,BlockNotes,"
    "ExerciseTitle,ExerciseData,ExerciseNotes\n"
)


def read(text: str | bytes, answers: Answers | None = None) -> list[FileRow]:
    content = text.encode() if isinstance(text, str) else text
    return list(SetFile(io.BytesIO(content), answers or Answers()).rows())


def sessions(text: str | bytes) -> list[Session]:
    return split_sessions(each for row in read(text) for each in row.sets)[0]


def problems(text: str | bytes) -> list[tuple[int, str | None, str]]:
    return [(each["line"], each["field"], each["code"]) for row in read(text) for each in row.problems]


@pytest.mark.parametrize(
    ("headings", "expected"),
    [
        (HEVY.replace('"', ""), "hevy"),
        (STRONG, "strong"),
        (STRONG_IN_GERMAN.replace(";", ","), "strong"),
        (FITNOTES, "fitnotes"),
        (FITNOTES_ON_IOS, "fitnotes"),
        (STRONGLIFTS, "stronglifts"),
        (GRAVL, "gravl"),
        (TRAINHEROIC, "trainheroic"),
        ("client_id,client_name,title,start_time,exercise_title,set_index,weight_kg,reps", "workouts"),
        ("REPS,Weight,exercise,DATE", "sets"),
        ("Fecha,Ejercicio,Repeticiones,Peso (kg)", "sets"),
    ],
)
def test_headings_of_each_service_are_recognised_in_any_order(headings: str, expected: str) -> None:
    names = headings.strip().split(",")
    for each in (names, names[::-1], [name.upper() for name in names]):
        dialect = recognise(each)
        assert dialect is not None
        assert dialect.format == expected


def test_a_file_that_fits_no_format_says_what_it_has_and_what_is_missing() -> None:
    with pytest.raises(UnknownFormat) as raised:
        read("Date,Weather,Mood\n2026-01-01,rain,good\n")
    assert raised.value.message == (
        "has headings that fit no format: Date, Weather, Mood. The nearest is sets, which needs: exercise, reps"
    )


def test_hevy_has_units_in_headings_and_kinds_of_sets() -> None:
    [session] = sessions(
        HEVY
        + '"Push 💪","17 Nov 2025, 18:05","17 Nov 2025, 19:10","","Bench",0,"","0","warmup",45,10,,,\n'
        + '"Push 💪","17 Nov 2025, 18:05","17 Nov 2025, 19:10","","Row",0,"","0","dropset",,,1.5,,\n'
        + '"Push 💪","17 Nov 2025, 18:05","17 Nov 2025, 19:10","","Bench",0,"","1","failure",-20,8,,,8.5\n'
    )
    assert (session.day, session.clock, session.title, session.minutes) == (date(2025, 11, 17), "18:05", "Push 💪", 65)
    bench, row = session.exercises
    assert [(each.kind, each.reps, each.load, each.load_unit, each.is_assistance, each.rpe) for each in bench.sets] == [
        ("warmup", 10, 45, "lb", False, None),
        ("failure", 8, 20, "lb", True, 8.5),
    ]
    assert [(each.kind, each.meters) for each in row.sets] == [("drop", 2414.02)]


def test_strong_has_rests_between_sets_zeros_that_mean_none_and_no_units() -> None:
    text = (
        STRONG
        + '2026-02-11 07:05:00,"Lower A",48m,"Leg Press",W,50.0,12.0,0,0.0,"","",\n'
        + '2026-02-11 07:05:00,"Lower A",48m,"Leg Press",Rest Timer,0,0,0,120.0,"","",\n'
        + '2026-02-11 07:05:00,"Lower A",48m,"Plank",1,0,0,0,45.0,"","slept badly",\n'
    )
    [session] = sessions(text)
    assert problems(text) == [(3, None, "NOT_A_SET")]
    assert [(each.kind, each.reps, each.load, each.load_unit, each.seconds) for each in session.sets] == [
        ("warmup", 12, 50, None, None),
        ("normal", None, None, None, 45),
    ]
    assert (session.minutes, session.notes) == (48, "slept badly")


def test_a_translated_export_with_semicolons_and_decimal_commas() -> None:
    [session] = sessions("\ufeff" + STRONG_IN_GERMAN + "2026-02-11 07:05:00;Beine;Kniebeuge;D;62,5;10;8,5\n")
    [each] = session.sets
    assert (each.exercise, each.kind, each.load, each.reps, each.rpe) == ("Kniebeuge", "drop", 62.5, 10, 8.5)


def test_fitnotes_has_times_of_day_for_durations_and_one_session_a_day() -> None:
    rows = read(FITNOTES + "2024-05-24,Run,Cardio,,,,5,km,0:25:30,\n2024-05-24,Bench,Chest,60.0,kgs,8,,,,ok\n")
    run, bench = (each for row in rows for each in row.sets)
    assert (run.meters, run.seconds) == (5000, 1530)
    assert (bench.load, bench.load_unit, bench.notes) == (60, "kg", "ok")
    assert len(split_sessions([run, bench], by_day=True)[0]) == 1


def test_stronglifts_has_sets_in_columns_or_as_text() -> None:
    [session] = sessions(
        STRONGLIFTS + "2024-05-01,12,Workout A,Squat,5×5,18:05,5,60,4,62.5\n2024-05-01,12,,Row,,,,,,\n"
    )
    assert [(each.reps, each.load, each.load_unit) for each in session.sets] == [(5, 60, "kg"), (4, 62.5, "kg")]
    [session] = sessions("Date,Workout,Exercise,Sets x Reps,Weight (lb)\n05/20/2024,A,Squat,5/5/4,135\n")
    assert [(each.reps, each.load, each.load_unit) for each in session.sets] == [(n, 135, "lb") for n in (5, 5, 4)]


def test_gravl_has_the_time_in_a_column_of_its_own_and_minutes() -> None:
    [session] = sessions(GRAVL + "2025-05-01,07:15,Push,app,55,300,Bench,,1,normal,8,60,,,,,8,good\n")
    assert (session.clock, session.minutes, session.notes) == ("07:15", 55, "good")
    assert [each.rpe for each in session.sets] == [8]


def test_trainheroic_has_sets_as_text_and_counts_the_rescheduled_date() -> None:
    text = (
        TRAINHEROIC
        + 'Day 1,2025-01-06,2025-01-07,,,,,,Squat,"6, 6, 5 rep x 40, 40, 50 pound",deep\n'
        + "Day 1,2025-01-06,,,,,,,Push Up,5 rep x Bodyweight,\n"
        + "Day 1,2025-01-06,,,,,,,Bench,3 rep x 60%,\nDay 1,2025-01-06,,,,,,,Dip,AMRAP,\n"
    )
    moved, planned = sessions(text)
    assert (moved.day, planned.day) == (date(2025, 1, 7), date(2025, 1, 6))
    assert [(each.reps, each.load, each.load_unit) for each in moved.sets] == [
        (6, 40, "lb"),
        (6, 40, "lb"),
        (5, 50, "lb"),
    ]
    assert [(each.exercise, each.reps, each.load) for each in planned.sets] == [
        ("Push Up", 5, None),
        ("Bench", 3, None),
    ]
    assert problems(text) == [
        (4, "exerciseData", "VALUE_LEFT_OUT"),
        (5, "reps", "VALUE_LEFT_OUT"),
        (5, None, "NOT_A_SET"),
    ]


def test_titles_separator_lines_and_utf_16() -> None:
    text = "sep=;\nMy log\n\nDate;Exercise;Sets;Reps;Weight\n05.06.2026;Row;3;10;135 lbs\n"
    for content in (text.encode("utf-16"), text.encode("utf-8-sig"), text.replace("\n", "\r").encode()):
        [session] = sessions(content)
        assert [(each.line, each.reps, each.load, each.load_unit) for each in session.sets] == [(5, 10, 135, "lb")] * 3


def test_a_workbook_has_dates_as_dates_or_numbers() -> None:
    at = datetime.fromisoformat("2026-03-04 18:05")
    [first, second] = sessions(
        workbook(
            ("Date", "Exercise", "Reps", "Weight (kg)"),
            (at, "Squat", 5, 100.5),
            (),
            (46085, "Squat", 5, 100),
        )
    )
    assert (first.day, first.clock) == (date(2026, 3, 4), "18:05")
    assert (second.day, second.clock) == (date(2026, 3, 4), None)


def test_two_sessions_on_a_day_differ_by_their_start() -> None:
    row = '"Push","17 Nov 2025, {}","","","Bench",,"","0","normal",45,10,,,\n'
    assert len(sessions(HEVY + row.format("08:00") + row.format("18:00"))) == 2
    assert len(sessions(HEVY + row.format("08:00") * 2)) == 1


def test_a_bad_value_is_left_out_and_the_row_stays() -> None:
    text = "Date,Exercise,Reps,Weight,RPE\n2026-01-01,Squat,8,heavy,11\n2026-01-01,Squat,2.5,60,\n"
    assert [len(row.sets) for row in read(text)] == [1, 1]
    assert problems(text) == [
        (2, "load", "VALUE_LEFT_OUT"),
        (2, "rpe", "VALUE_LEFT_OUT"),
        (3, "reps", "VALUE_LEFT_OUT"),
    ]
    for row, missing in ((",Squat,8", "date"), ("2026-01-01,,8", "exercise")):
        assert problems(f"Date,Exercise,Reps\n{row}\n") == [(2, missing, "REQUIRED")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-02-11 07:05:00", DateAndTime(date(2026, 2, 11), "07:05")),
        ("2026-02-11T07:05:00Z", DateAndTime(date(2026, 2, 11), "07:05")),
        ("28 Mar 2025, 17:29", DateAndTime(date(2025, 3, 28), "17:29")),
        ("Jan 1, 2024, 10:00 PM", DateAndTime(date(2024, 1, 1), "22:00")),
        ("Jan 1, 2024, 12:05 a. m.", DateAndTime(date(2024, 1, 1), "00:05")),
        ("05.06.2026, 07:30", DateAndTime(date(2026, 6, 5), "07:30")),
        ("5 févr. 2025, 17:29", DateAndTime(date(2025, 2, 5), "17:29")),
        ("11 de marzo de 2025", DateAndTime(date(2025, 3, 11), None)),
        ("3. Dezember 2025", DateAndTime(date(2025, 12, 3), None)),
        ("9 giu 2025, 06:00", DateAndTime(date(2025, 6, 9), "06:00")),
        ("7 de out. de 2025, 06:00", DateAndTime(date(2025, 10, 7), "06:00")),
        ("13/01/2025", DateAndTime(date(2025, 1, 13), None)),
        ("01/13/2025", DateAndTime(date(2025, 1, 13), None)),
        ("03/03/2025", DateAndTime(date(2025, 3, 3), None)),
        (None, None),
    ],
)
def test_dates_as_services_write_them(text: str | None, expected: DateAndTime | None) -> None:
    assert values.read_date_and_time(text, None) == expected


def test_a_date_that_may_be_two_days_needs_an_order() -> None:
    with pytest.raises(UnknownOrder):
        values.read_date_and_time("03/04/2026", None)
    assert values.read_date_and_time("03/04/2026", "dmy") == DateAndTime(date(2026, 4, 3), None)
    assert values.read_date_and_time("03/04/26", "mdy") == DateAndTime(date(2026, 3, 4), None)
    assert values.possible_orders("03/14/2026") == {"mdy"}
    assert not values.depends_on_order("03.04.2026", None)
    for text in ("2026-13-01", "31.04.2026", "soon", "14 Floreal 2026"):
        with pytest.raises(InvalidValue):
            values.read_date_and_time(text, None)


@pytest.mark.parametrize(
    ("text", "amount", "unit"),
    [
        ("62,5", 62.5, ""),
        ("62.5", 62.5, ""),
        ("1,250", 1250, ""),
        ("1.250,5", 1250.5, ""),
        ("1,250.5 lbs", 1250.5, "lbs"),
        ("-20kg", -20, "kg"),
        ("0,125", 0.125, ""),
        (60, 60, ""),
    ],
)
def test_numbers_with_points_commas_and_units(text: str | int, amount: float, unit: str) -> None:
    assert values.read_quantity(text) == values.Quantity(amount, unit)


def test_durations_as_clocks_and_words() -> None:
    texts = ("0:01:30", "1:30", "1h 5m", "48m", "45 s", "90", "2 min 5 sec")
    assert [values.read_seconds(text) for text in texts] == [90, 90, 3900, 2880, 45, 90, 125]
    for text in ("soon", "10 kg"):
        with pytest.raises(InvalidValue):
            values.read_seconds(text)


SETS = "Date,Exercise,Reps,Weight,Distance\n"


def test_a_survey_counts_rows_sets_and_names() -> None:
    text = STRONG + (
        '2026-02-11 07:05:00,"A",48m,"Squat",1,50,12,0,0,"","",\n'
        '2026-02-11 07:05:00,"A",48m,"Squat",Rest Timer,0,0,0,120,"","",\n'
        '2026-02-13 07:05:00,"B",48m,"Squat",1,50,12,0,0,"","",\n'
        '2026-02-13 07:05:00,"B",48m,"Plank",1,0,0,0,45,"","",\n'
    )
    found = survey(io.BytesIO(text.encode()), Answers())
    assert (found.format, found.rows, found.reported) == ("strong", 4, 1)
    assert found.exercises == {"Squat": 2, "Plank": 1}
    assert [each["code"] for each in found.questions] == ["LOAD_UNIT"]
    assert survey(io.BytesIO(text.encode()), Answers(load_unit="kg")).questions == []


@pytest.mark.parametrize(
    ("dates", "order", "questions"),
    [
        (("03/04/2026", "13/04/2026"), "dmy", []),
        (("03/04/2026", "04/13/2026"), "mdy", []),
        (("03/04/2026", "04/05/2026"), None, ["DATE_ORDER"]),
        (("03/04/2026", "2026-04-13"), None, ["DATE_ORDER"]),
        (("03/03/2026", "04/04/2026"), None, []),
        (("03.04.2026", "2026-04-13"), None, []),
    ],
)
def test_one_date_decides_the_order_of_all(dates: tuple[str, ...], order: str | None, questions: list[str]) -> None:
    text = "Date,Exercise,Reps\n" + "".join(f"{each},Squat,8\n" for each in dates)
    found = survey(io.BytesIO(text.encode()), Answers())
    assert found.answers.date_order == order
    assert [each["code"] for each in found.questions] == questions
    assert found.exercises.total() == len(dates)


def test_a_distance_without_unit_is_a_question() -> None:
    text = (SETS + "2026-01-01,Run,,,5\n2026-01-01,Run,,,3 mi\n").encode()
    assert [each["code"] for each in survey(io.BytesIO(text), Answers()).questions] == ["DISTANCE_UNIT"]
    found = [each.meters for row in SetFile(io.BytesIO(text), Answers(distance_unit="km")).rows() for each in row.sets]
    assert found == [5000, 4828.03]


def test_the_caller_may_say_what_columns_mean() -> None:
    text = b"When,What,How often\n2026-01-01,Squat,8\n"
    answers = Answers(columns={"When": "date", "What": "exercise", "How often": "reps"})
    [row] = SetFile(io.BytesIO(text), answers).rows()
    assert [(each.exercise, each.reps) for each in row.sets] == [("Squat", 8)]


def test_too_many_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tables.MAX_ROWS == 200_000
    monkeypatch.setattr(tables, "MAX_ROWS", 2_000)
    lines = (SETS + "2026-01-01,Squat,8,,\n" * 2_001).encode()
    with pytest.raises(UnreadableTable, match="more than 2,000 rows"):
        for table in read_tables(io.BytesIO(lines), count_headings):
            assert sum(1 for _ in table.rows) == 0  # not reached


def test_rows_of_all_sheets_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_ROWS", 3)
    rows = (("Date", "Exercise", "Reps"), ("2026-01-01", "Squat", 8), ("2026-01-01", "Squat", 7))
    content = workbook(First=rows, Second=rows)
    with pytest.raises(UnreadableTable, match="more than 3 rows"):
        read(content)
    monkeypatch.setattr(tables, "MAX_ROWS", 4)
    assert [row.sets[0].reps for row in read(content)] == [8, 7, 8, 7]


@pytest.mark.parametrize(
    "text",
    [
        "Date,Exercise,Sets,Reps\n2026-01-01,Squat,40,8\n2026-01-02,Squat,40,8\n",
        TRAINHEROIC + ('A,2026-01-01,,,,,,,Squat,"' + ", ".join(["8"] * 40) + ' rep",\n') * 2,
    ],
)
def test_too_many_sets_are_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(set_files, "MAX_SETS", 79)
    with pytest.raises(UnreadableTable, match="more than 79 sets"):
        read(text)
    monkeypatch.setattr(set_files, "MAX_SETS", 80)
    assert sum(len(row.sets) for row in read(text)) == 80


@pytest.mark.parametrize("content", [b"PK\x03\x04broken", b"\x00\x01\x02\x03", b""])
def test_a_file_that_is_no_table_is_refused(content: bytes) -> None:
    with pytest.raises(UnreadableTable):
        survey(io.BytesIO(content), Answers())
