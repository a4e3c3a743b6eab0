"""Programs in sheets: weeks and days, what coaches write for sets, merged cells, and sheets that are weeks."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from datetime import date, datetime, time
from typing import Any

import aiohttp
import pytest

from coaching_service.integrations.history_files.programs import ProgramSheet, read_program, write_table
from coaching_service.integrations.history_files.tables import UnreadableTable
from coaching_service.training.set_text import write_planned
from tests.support.client import UNKNOWN, CoachClient, Reply
from tests.support.training import Json, employee_key
from tests.support.transfer import pick
from tests.support.workbooks import Row, workbook

PLAN = """Strength block
Week,Day,Exercise,Sets,Reps,Load,%,RPE,RIR,Rest,Tempo,Superset,Notes
1,Day 1,Back squat,3,8-10,60,,8,,90,3010,,Stay tall
,,Leg curl,2,12,30 kg,,,2,1 min,,A1,
,,Calf raise,2,15/side,,,,,,,A2,
,Day 3,Deadlift,1,5,,80%,,,2:30,,,
,,,1,3,,85%,,,,,,heavy
,Day 4,REST,,,,,,,,,,
2,Day 1,Back squat,4 sets,AMRAP,135 lbs,,,,,,,
"""
SQUATS: list[Row] = [("Exercise", "Reps"), ("Squat", 5)]


def read(text: str, unit: str = "kg") -> ProgramSheet:
    return read_program(io.BytesIO(text.encode()), unit)


def read_workbook(**sheets: Sequence[Row]) -> ProgramSheet:
    return read_program(io.BytesIO(workbook(**sheets)), "kg")


def texts(sheet: ProgramSheet, unit: str = "kg") -> list[tuple[int, str, list[str]]]:
    """Each day with its name, and its exercises as text."""
    return [
        (day.day, day.name, [f"{each.name}: {write_planned(each.sets, unit)}" for each in day.exercises])
        for day in sheet.days
    ]


def test_a_sheet_with_weeks_days_and_merged_cells() -> None:
    sheet = read(PLAN)
    assert texts(sheet) == [
        (
            1,
            "Day 1",
            [
                "Back squat: 3x8-10 @60kg rest 90s RPE8 tempo 3010",
                "Leg curl: 2x12 @30kg rest 60s RIR2",
                "Calf raise: 2x15/side",
            ],
        ),
        (3, "Day 3", ["Deadlift: 1x5 @80% rest 150s, 1x3 @85%"]),
        (4, "Day 4", []),
        (8, "Day 1", ["Back squat: 4xAMRAP @61.23kg"]),
    ]
    squat, curl, calf = sheet.days[0].exercises
    assert [sheet.days[0].superset_of(each) for each in (squat, curl, calf)] == [None, "A", "A"]
    assert (squat.notes, sheet.days[1].exercises[0].notes) == (["Stay tall"], ["heavy"])
    assert [day.is_rest for day in sheet.days] == [False, False, True, False]
    assert sheet.problems == []


def test_headings_weekdays_and_rest_in_spanish() -> None:
    sheet = read(
        "Semana;Día;Ejercicio;Series;Repeticiones;Carga;Descanso;Notas\n1;Lunes;Sentadilla;3;5;62,5;2 min;\n;Miércoles;Descanso;;;;;\n;Viernes: Torso;Press banca;3;8 a 10;40;;\n"
    )
    assert texts(sheet) == [
        (1, "Lunes", ["Sentadilla: 3x5 @62.5kg rest 120s"]),
        (3, "Miércoles", []),
        (5, "Torso", ["Press banca: 3x8-10 @40kg"]),
    ]
    assert sheet.days[1].is_rest


def test_named_days_are_days_in_their_order() -> None:
    sheet = read(
        "Week,Workout,Exercise,Sets,Reps\n1,Upper A,Row,3,8\n1,Lower A,Squat,3,8\n1,Upper A,Curl,2,10\n1,Rest,,,\n"
        "1,Upper B,Press,3,8\n2,Upper A,Row,3,9\n"
    )
    assert texts(sheet) == [
        (1, "Upper A", ["Row: 3x8", "Curl: 2x10"]),
        (2, "Lower A", ["Squat: 3x8"]),
        (3, "Rest day", []),
        (4, "Upper B", ["Press: 3x8"]),
        (8, "Upper A", ["Row: 3x9"]),
    ]


def test_each_sheet_of_a_workbook_is_a_week() -> None:
    rows: list[list[Any]] = [
        ["Day", "Exercise", "Sets", "Reps", "Load (lbs)"],
        ["Day 1 - Push", "Bench press", 3, 8.0, 100],
    ]
    sheet = read_workbook(**{"Week 1": rows, "Read me": [["Hello"]], "Week 3": rows})
    assert texts(sheet) == [
        (1, "Push", ["Bench press: 3x8 @45.36kg"]),
        (15, "Push", ["Bench press: 3x8 @45.36kg"]),
    ]


def test_sheets_without_days_are_days() -> None:
    rows: list[list[Any]] = [["Exercise", "Sets", "Reps"], ["Squat", 3, 5]]
    assert texts(read_workbook(Push=rows, Pull=rows)) == [
        (1, "Push", ["Squat: 3x5"]),
        (2, "Pull", ["Squat: 3x5"]),
    ]


def test_what_spreadsheets_make_of_repetitions_percentages_and_times() -> None:
    """Excel stores 8-10 as a date, 70% as 0.7 and 1:30 as a time of day."""
    rows: list[list[Any]] = [
        ["Exercise", "Sets", "Reps", "% 1RM", "Rest", "Tempo"],
        ["Squat", 3, date(2026, 8, 10), 0.7, time(1, 30), 3110],
        ["Squat", 3, date(2026, 10, 8), 72.5, 2, "3-1-1-0"],
    ]
    assert texts(read_workbook(Plan=rows))[0][2] == [
        "Squat: 3x8-10 @70% rest 90s tempo 3110",
        "Squat: 3x8-10 @72.5% rest 120s tempo 3-1-1-0",
    ]


def test_a_tempo_that_a_spreadsheet_has_made_a_date_is_reported() -> None:
    headings = ["Exercise", "Sets", "Reps", "Tempo"]
    cell = read_workbook(Plan=[headings, ["Squat", 3, 5, datetime(2001, 3, 1)]])  # noqa: DTZ001 - as in a cell
    for sheet in (cell, read("Exercise,Sets,Reps,Tempo\nSquat,3,5,01/03/2001\n")):
        assert texts(sheet)[0][2] == ["Squat: 3x5"]
        assert pick(sheet.problems, "field", "code") == [("tempo", "VALUE_LEFT_OUT")]


def test_dates_of_days_are_names_and_dates_of_weeks_are_reported() -> None:
    text = "Day,Exercise,Reps\n2026-01-05,Squat,5\n12-01-2026,Row,5\n5.2.2026,Dip,5\n"
    names = [(1, "2026-01-05"), (2, "12-01-2026"), (3, "5.2.2026")]
    assert [(day.day, day.name) for day in read(text).days] == names
    rows: list[list[Any]] = [
        ["Day", "Exercise", "Reps"],
        [datetime(2026, 1, 5), "Squat", 5],  # noqa: DTZ001 - as in a cell
        [date(2026, 1, 7), "Row", 5],
    ]
    assert [(day.day, day.name) for day in read_workbook(Plan=rows).days] == [(1, "2026-01-05"), (2, "2026-01-07")]
    assert [day.day for day in read_workbook(**{"2026-01-05": SQUATS}).days] == [1]
    sheet = read("Week,Day,Exercise,Reps\n05/01/2026,1,Squat,5\n12/01/2026,2,Row,5\n")
    assert [day.day for day in sheet.days] == [1, 2]
    assert pick(sheet.problems, "field", "code") == [("week", "VALUE_LEFT_OUT")] * 2


@pytest.mark.parametrize("weeks", ["1-4", "Week 1 to 4", "Semanas 1 a 4", "1, 2"])
def test_a_row_for_several_weeks_is_reported(weeks: str) -> None:
    sheet = read(f'Week,Day,Exercise,Reps\n"{weeks}",1,Squat,5\n5,1,Squat,4\n')
    assert [day.day for day in sheet.days] == [1, 29]
    assert pick(sheet.problems, "line", "field", "code") == [(2, "week", "VALUE_LEFT_OUT")]


@pytest.mark.parametrize(
    ("cells", "sets"),
    [
        ("3,8-10,", "3x8-10"),
        ("3,8–10 reps,", "3x8-10"),
        ("3,8 to 10,", "3x8-10"),
        ("3,30s,", "3x30s"),
        ("3,45 sec,", "3x45s"),
        ("2,400m,", "2x400m"),
        ("3,max,bw", "3xAMRAP"),
        ("3,10 each side,", "3x10/side"),
        (',"10, 8, 6",60', "1x10 @60kg, 1x8 @60kg, 1x6 @60kg"),
        ("3,10/8/6,", "1x10, 1x8, 1x6"),
        ("4x8-10 @60kg rest 90s RPE8,,", "4x8-10 @60kg rest 90s RPE8"),
        ("3x10,,62.5", "3x10 @62.5kg"),
        ("3,5,135 lbs", "3x5 @61.23kg"),
        ("3,5,70%", "3x5 @70%"),
        ("3,5,RPE 8", "3x5 RPE8"),
        ("3,5,@8", "3x5 RPE8"),
        ("3,,60kg", "3x? @60kg"),
    ],
)
def test_what_coaches_write_for_sets(cells: str, sets: str) -> None:
    sheet = read(f"Exercise,Sets,Reps,Load\nSquat,{cells}\n")
    assert (texts(sheet)[0][2], sheet.problems) == ([f"Squat: {sets}"], [])


def test_cells_that_cannot_be_read_become_instructions() -> None:
    sheet = read("Exercise,Sets,Reps,Load,RPE,Week\nSquat,3,8,moderate,hard,one\nRow,many,many,60,,\n")
    squat, row = sheet.days[0].exercises
    assert (write_planned(squat.sets, "kg"), squat.notes) == ("3x8", ["Load: moderate", "Rpe: hard"])
    assert (write_planned(row.sets, "kg"), row.notes) == ("1x? @60kg", ["Sets: many", "Reps: many"])
    assert pick(sheet.problems, "line", "field", "code") == [
        (2, "week", "VALUE_LEFT_OUT"),
        (2, "load", "VALUE_LEFT_OUT"),
        (2, "rpe", "VALUE_LEFT_OUT"),
        (3, "sets", "VALUE_LEFT_OUT"),
        (3, "reps", "VALUE_LEFT_OUT"),
    ]


@pytest.mark.parametrize(
    "text", [PLAN, "Exercise,Sets,Reps\nA1) Row,3,8\nA2) Press,3,10/side\n", "Day,Exercise,Reps\n5x5 A,Row,5\nRest,,\n"]
)
def test_a_table_that_is_written_is_read_as_the_same_days(text: str) -> None:
    sheet = read(text)
    again = read(write_table(sheet, "kg"))
    assert again.problems == []
    for day, copy in zip(sheet.days, again.days, strict=True):
        assert (copy.day, copy.name, copy.is_rest) == (day.day, day.name, day.is_rest or not day.exercises)
        for each, same in zip(day.exercises, copy.exercises, strict=True):
            assert (same.name, same.sets, copy.superset_of(same)) == (each.name, each.sets, day.superset_of(each))
            assert "\n".join(same.notes) == "\n".join(each.notes)


def test_letters_before_names_are_supersets() -> None:
    day = read("Exercise,Sets,Reps\nA1) Row,3,8\nA2. Press,3,8\nB1: Squat,3,5\n").days[0]
    assert [(each.name, day.superset_of(each)) for each in day.exercises] == [
        ("Row", "A"),
        ("Press", "A"),
        ("Squat", None),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Movement name,Sets\nSquat,3\n", "no column with exercises; it has: Movement name, Sets"),
        ("Exercise,Sets\n,\n", "no rows"),
        ("", "no column with exercises; it has: nothing"),
    ],
)
def test_a_file_that_is_no_program(text: str, message: str) -> None:
    with pytest.raises(UnreadableTable) as raised:
        read(text)
    assert message in raised.value.message


async def send(coach: CoachClient, content: str | bytes, file: str = "Winter block.csv", **fields: str) -> Reply:
    form = aiohttp.FormData(fields, default_to_multipart=True)
    form.add_field("file", content.encode() if isinstance(content, str) else content, filename=file)
    return await coach.send("POST", "/coach/programs/import", data=form, dry="dryRun" in fields)


async def blocks_of(coach: CoachClient, program: Json) -> list[Json]:
    path = f"/coach/programs/{program['_id']}/wblock"
    blocks: list[Json] = (await coach.get(path, startDay=1, endDay=100)).ok()
    return blocks


async def own_exercises(coach: CoachClient) -> int:
    total: int = (await coach.get("/exercises", pageSize=1, pageNum=1)).ok()["totalDocs"]
    return total


async def test_a_sheet_becomes_a_program_in_one_change(coach: CoachClient) -> None:
    content = PLAN.replace("Leg curl", "Leo's ham curl XL")
    preview = (await send(coach, content, dryRun="true")).ok(200)
    assert (preview["_id"], preview["name"], preview["numberOfDaysWithWorkouts"]) == (None, "Winter block", 3)
    assert pick(preview["names"], "name", "sets", "answer") == [
        ("Back squat", 2, None),
        ("Calf raise", 1, None),
        ("Deadlift", 1, None),
        ("Leo's ham curl XL", 1, "create"),
    ]
    assert (preview["questions"], preview["errors"]) == ([], [])
    assert (await coach.get("/coach/programs", archived=False, pageSize=5, pageNum=1)).ok()["totalDocs"] == 0
    assert await own_exercises(coach) == 0

    reply = await send(coach, content, file="x.csv", name="Base")
    program = reply.ok(201)
    assert program["names"] == preview["names"]
    assert (program["name"], program["numberOfDaysWithWorkouts"]) == ("Base", 3)
    blocks = await blocks_of(coach, program)
    assert [(each["day"], each["name"], each["isRest"], len(each["items"])) for each in blocks] == [
        (1, "Day 1", False, 3),
        (3, "Day 3", False, 1),
        (4, "Day 4", True, 0),
        (8, "Day 1", False, 1),
    ]
    squat, curl, calf = blocks[0]["items"]
    assert (squat["exercise"]["name"], squat["exerciseInstructions"]) == ("Barbell Back Squat", "Stay tall")
    assert squat["exerciseSets"][2]["load"] == 60
    assert (curl["exercise"]["name"], curl["supersetId"], calf["supersetId"]) == ("Leo's ham curl XL", "A", "A")
    change = (await coach.get(f"/coach/changes/{reply.headers['X-Change-Id']}")).ok()
    assert (change["operation"], change["undoableUntil"] is not None) == ("importProgram", True)
    (await coach.post(f"/coach/changes/{change['_id']}/undo")).ok()
    (await coach.get(f"/coach/programs/{program['_id']}")).refused(404)
    assert await own_exercises(coach) == 0


async def test_answers_and_units_of_a_program(coach: CoachClient) -> None:
    own = await coach.create_exercise("House Row")
    content = "Exercise,Sets,Reps,Load\nRow,3,8,100\nStroll,1,1,\n"
    names = json.dumps({"row": own["_id"], "Stroll": "skip"})
    program = (await send(coach, content, names=names, loadUnit="lb")).ok(201)
    ((item,),) = [block["items"] for block in await blocks_of(coach, program)]
    assert (item["exerciseId"], item["exerciseSets"][0]["load"]) == (own["_id"], 45.36)
    again = (await send(coach, content, dryRun="true")).ok(200)
    assert [(each["name"], each["match"] and each["match"]["name"], each["answer"]) for each in again["names"]] == [
        ("Row", "House Row", None),
        ("Stroll", None, "skip"),
    ]


async def test_a_program_that_cannot_be_imported(coach: CoachClient) -> None:
    plan = "Exercise,Sets,Reps\nRow,3,8\n"
    refused = (await send(coach, "Name\nRow\n")).refused(400, "no column with exercises; it has: Name")
    assert pick(refused["errors"], "field", "code") == [("file", "INVALID_FILE")]
    (await send(coach, "Exercise,Sets,Mood\nRow,3,9\n")).refused(400, "has no number of repetitions")
    preview = (await send(coach, "Exercise,Sets,Reps,Mood\nRow,3,8,9\n", dryRun="true")).ok(200)
    assert pick(preview["errors"], "line", "field", "code") == [(1, "Mood", "UNKNOWN_COLUMN")]
    (await send(coach, plan, names="[1]")).refused(400, "names must be a JSON object of strings")
    (await send(coach, plan, names='{"Row": "perhaps"}')).refused(400, "names Row: must be the identifier")
    (await send(coach, plan, names=f'{{"Row": "{UNKNOWN}"}}')).refused(404)
    form = aiohttp.FormData({"name": "x"}, default_to_multipart=True)
    (await coach.send("POST", "/coach/programs/import", data=form)).refused(400, "file is required")
    viewer = coach.with_key(await employee_key(coach, "programs.view"))
    (await send(viewer, plan)).refused(403)


async def test_new_exercises_need_their_permission(coach: CoachClient) -> None:
    writer = coach.with_key(await employee_key(coach, "programs.view", "programs.create"))
    refused = (await send(writer, b"Exercise,Sets,Reps\nBack squat,3,8\nSled of Doom,3,8\n")).refused(403)
    assert refused["permission"] == "exercises.create"
    assert "Sled of Doom" in refused["message"]
    assert await coach.ctx.db["programs"].count_documents({"companyId": coach.ctx.company_id}) == 0
    (await send(writer, b"Exercise,Sets,Reps\nBack squat,3,8\n")).ok(201)


def test_days_that_no_program_has_are_problems() -> None:
    """With their rows, also where the cell of the day is empty; the day after them is read."""
    sheet = read("Day,Exercise,Sets,Reps\n99999,Squat,3,5\n,Row,3,5\nDay 3661,Dip,3,5\n3660,Press,3,5\n")
    assert [(day.day, [each.name for each in day.exercises]) for day in sheet.days] == [(3660, ["Press"])]
    assert pick(sheet.problems, "line", "field", "code") == [(2, "day", "OUT_OF_RANGE"), (4, "day", "OUT_OF_RANGE")]
    assert [day.day for day in read_workbook(**{"99999": SQUATS}).days] == [1]


@pytest.mark.parametrize(
    ("cells", "sets", "problems"),
    [
        ({"Load": "60", "%": "70"}, "Squat: 3x5 @60kg", ["percent"]),
        ({"Load": "RPE 8", "RPE": "9"}, "Squat: 3x5 RPE8", ["rpe"]),
        ({"Load": "70%", "%": "70"}, "Squat: 3x5 @70%", []),
        ({"%": "0.7"}, "Squat: 3x5 @70%", []),
        ({"%": "0,725"}, "Squat: 3x5 @72.5%", []),
        ({"%": "1.2.3"}, "Squat: 3x5", ["percent"]),
        ({"Sets": "3x5 @60kg", "Load": "65", "Reps": "5"}, "Squat: 3x5 @60kg", ["load"]),
        ({"Sets": "3x5 @60kg", "Load": "60 kg", "Reps": ""}, "Squat: 3x5 @60kg", []),
        ({"Sets": "3x5", "%": "70", "Reps": "8"}, "Squat: 3x5 @70%", ["reps"]),
        ({"Reps": "10/12/2026"}, "Squat: 3x?", ["reps"]),
        ({"Reps": "2026-12-10"}, "Squat: 3x?", ["reps"]),
        ({"Reps": "12-Oct"}, "Squat: 3x?", ["reps"]),
        ({"Reps": "12/10/8"}, "Squat: 1x12, 1x10, 1x8", []),
    ],
)
def test_what_two_cells_of_a_row_say_differently_and_made_dates_are_reported(
    cells: dict[str, str], sets: str, problems: list[str]
) -> None:
    row = {"Sets": "3", "Reps": "5", "Load": "", "%": "", "RPE": ""} | cells
    sheet = read(f"Exercise;{';'.join(row)}\nSquat;{';'.join(row.values())}\nRow;3;5\n")
    assert texts(sheet)[0][2] == [sets, "Row: 3x5"]
    assert pick(sheet.problems, "field", "code") == [(name, "VALUE_LEFT_OUT") for name in problems]
    assert len(sheet.days[0].exercises[0].notes) == len(problems)


def test_texts_of_a_program_that_are_cut_are_reported() -> None:
    rows = f"1,{'S' * 300},3,5,{'n' * 3_000}\n,,1,5,{'m' * 3_000}\n{'D' * 300},Row,3,5,{'n' * 6_000}\n"
    sheet = read(f"Day,Exercise,Sets,Reps,Notes\n{rows}")
    found = sorted((each["line"], each["field"] or "", each["code"]) for each in sheet.problems)
    code = "VALUE_LEFT_OUT"
    assert found == [(2, "exercise", code), (2, "notes", code), (4, "day", code), (4, "notes", code)]


def test_a_column_that_numbers_the_sets() -> None:
    """`Set` numbers them, also where the name is in the first row only or exercises alternate; a first 3 counts them."""
    expected = ["Squat: 1x5 @100kg, 1x5 @105kg, 1x5 @110kg"]
    for names in (("Squat", "Squat", "Squat"), ("Squat", "", "")):
        a, b, c = names
        sheet = read(f"Week,Day,Exercise,Set,Reps,Weight (kg)\n1,1,{a},1,5,100\n1,1,{b},2,5,105\n1,1,{c},3,5,110\n")
        assert (texts(sheet)[0][2], sheet.problems) == (expected, [])
    pair = read(
        "Exercise,Set,Sets,Reps\nA1) Row,1,2,8\nA2) Press,1,2,10\nA1) Row,2,2,7\nA2) Press,2,2,9\nA1) Row,1,2,6\n"
    )
    assert texts(pair)[0][2] == ["Row: 1x8, 1x7", "Press: 1x10, 1x9", "Row: 1x6"]
    assert [each.superset for each in pair.days[0].exercises] == ["A", "A", "A"]
    counted = read("Ejercicio,Serie,Reps\nSentadilla,3,5\nRemo,4,8\nPrensa,Serie 1,8\nPrensa,Serie 2,6\n")
    assert texts(counted)[0][2] == ["Sentadilla: 3x5", "Remo: 4x8", "Prensa: 1x8, 1x6"]


def test_days_with_an_index_and_a_name() -> None:
    """An index counts from 0 if it begins so; a name alone is a day, and a number keeps its name."""
    zero = read(
        "Day Index,Day Name,Exercise,Sets,Reps\n0,Day 1 - Push,Press,4,5-8\n1,Day 2 - Pull,Row,4,6\n1,,Curl,3,8\n"
    )
    assert texts(zero) == [(1, "Push", ["Press: 4x5-8"]), (2, "Pull", ["Row: 4x6", "Curl: 3x8"])]
    numbered = read("Week,Day Number,Day Name,Exercise,Reps\n1,1,Upper,Press,5\n1,3,Lower,Squat,5\n2,1,Upper,Press,4\n")
    assert [(day.day, day.name) for day in numbered.days] == [(1, "Upper"), (3, "Lower"), (8, "Upper")]
    names = read("Day Name,Exercise,Reps\nPush,Press,5\nPull,Row,5\n")
    assert [(day.day, day.name) for day in names.days] == [(1, "Push"), (2, "Pull")]
    both = read("Day,Day Name,Exercise,Reps\n2,5x5 A,Press,5\nFriday,,Row,5\n")
    assert [(day.day, day.name) for day in both.days] == [(2, "5x5 A"), (5, "Friday")]


def test_every_column_that_is_not_read_is_reported() -> None:
    """Also those without a heading and those that repeat another one, and sheets without exercises."""
    text = "Exercise,Sets,Reps,Video,Coach's mood,Repetitions,\nSquat,3,5,x,y,8,seen\nRow,3,,,,9,\n"
    sheet = read(text)
    assert texts(sheet)[0][2] == ["Squat: 3x5", "Row: 3x9"]
    assert pick(sheet.problems, "line", "field", "code") == [
        (1, "Video", "UNKNOWN_COLUMN"),
        (1, "Coach's mood", "UNKNOWN_COLUMN"),
        (1, "Repetitions", "REPEATED_COLUMN"),
        (1, "column 7", "UNKNOWN_COLUMN"),
    ]
    notes: list[Row] = [["Hello"]]
    library: list[Row] = [("Exercise", "Video"), ("Squat", "https://x")]
    book = read_workbook(**{"Day A": SQUATS, "Read me": notes, "Library": library})
    assert texts(book) == [(1, "Day A", ["Squat: 1x5"])]
    assert pick(book.problems, "field", "code") == [("Read me", "UNKNOWN_SHEET"), ("Library", "UNKNOWN_SHEET")]


@pytest.mark.parametrize(
    "text", ["Exercise\nSquat\n", "Exercise,Sets,Notes\nSquat,3,deep\n", "Exercise,A,B\nSquat,3x8,3x9\n"]
)
def test_a_sheet_without_a_number_in_any_set_is_refused(text: str) -> None:
    with pytest.raises(UnreadableTable, match="has no number of repetitions"):
        read(text)


def test_blocks_with_headings_of_their_own() -> None:
    """Titles above them name their week and day; a column without a heading may have the days."""
    text = (
        "Week 1,,,,\nDay 1 - Upper,,,,\nExercise,Sets,Reps,Load,RPE\nBench Press,3,8,60kg,8\nRow,3,10,50kg,8\n,,,,\n"
        "Day 2 - Lower,,,,\nExercise,Sets,Load,Reps,Mood\nSquat,5,100kg,5,9\n\n"
        "Week 2 - Day 1: Upper\nExercise,Sets,Reps,Load,RPE\nBench Press,3,8,62.5kg,\nDay 2\nSquat,5,5,105kg,\n"
    )
    sheet = read(text)
    assert texts(sheet) == [
        (1, "Upper", ["Bench Press: 3x8 @60kg RPE8", "Row: 3x10 @50kg RPE8"]),
        (2, "Lower", ["Squat: 5x5 @100kg"]),
        (8, "Upper", ["Bench Press: 3x8 @62.5kg"]),
        (9, "Day 2", ["Squat: 5x5 @105kg"]),
    ]
    assert pick(sheet.problems, "line", "field", "code") == [(8, "Mood", "UNKNOWN_COLUMN")]
    named = read("My plan\nUpper A\nExercise,Sets,Reps\nPress,3,8\nLower A\nExercise,Sets,Reps\nSquat,3,5\n")
    assert texts(named) == [(1, "Upper A", ["Press: 3x8"]), (2, "Lower A", ["Squat: 3x5"])]
    column = read(",Exercise,Sets,Reps\nMonday,Press,3,8\n,Row,3,8\nFriday,Squat,3,5\n")
    assert texts(column) == [(1, "Monday", ["Press: 3x8", "Row: 3x8"]), (5, "Friday", ["Squat: 3x5"])]
    assert column.problems == []


def test_weeks_side_by_side() -> None:
    """As columns of sets, of loads, of one field each, and below a row with the weeks."""
    text = "Day,Exercise,Week 1,Week 2\nDay 1,Squat,3x8 @60kg,3x8 @62.5kg\nPull,Deadlift,2x5 @100kg,-\n"
    assert texts(read(text)) == [
        (1, "Day 1", ["Squat: 3x8 @60kg"]),
        (2, "Pull", ["Deadlift: 2x5 @100kg"]),
        (8, "Day 1", ["Squat: 3x8 @62.5kg"]),
    ]
    loads = read("Exercise,Sets,Reps,Week 1 (lbs),W2\nSquat,3,5,100,105 kg\nRow,3,8,,\n")
    assert texts(loads) == [(1, "Day 1", ["Squat: 3x5 @45.36kg"]), (8, "Day 1", ["Squat: 3x5 @105kg"])]
    assert pick(loads.problems, "line", "field", "code") == [(3, "exercise", "VALUE_LEFT_OUT")]
    fields = "Exercise,W1 Sets,W1 Reps,Sets W2,Reps (Week 2),Rest\nSquat,3,8,4,6,90\n"
    rows = ",Week 1,,Week 2,,\nExercise,Sets,Reps,Sets,Reps,Rest\nSquat,3,8,4,6,90\n"
    for each in (fields, rows):
        sheet = read(each)
        assert (texts(sheet), sheet.problems) == (
            [(1, "Day 1", ["Squat: 3x8 rest 90s"]), (8, "Day 1", ["Squat: 4x6 rest 90s"])],
            [],
        )


def test_labels_without_a_sign_before_names() -> None:
    """A letter and a number are one if the letter has begun on the day: `C2 Rower` is a name."""
    day = read(
        "Exercise,Sets,Reps\nA1 Row,3,8\nA2 Press,3,8\nB1 - Squat,3,5\nC2 Rower,1,500m\nB2- Curl,2,8\n3D Lunge,2,8\n"
    ).days[0]
    assert [(each.name, day.superset_of(each)) for each in day.exercises] == [
        ("Row", "A"),
        ("Press", "A"),
        ("Squat", "B"),
        ("C2 Rower", None),
        ("Curl", "B"),
        ("3D Lunge", None),
    ]


# --- Kinds of sheets that coaches share ------------------------------------------------------------------------------


def test_a_531_sheet_with_percentages() -> None:
    """Weeks in rows, a row for each set, percentages, a last set of as many as possible, and assistance."""
    sheet = read(
        "5/3/1 for beginners\nWeek,Day,Lift,Set,Reps,% 1RM,Notes\n"
        "1,Monday,Squat,1,5,65%,\n,,,2,5,75%,\n,,,3,AMRAP,85%,leave one\n,,Dips,1,10,,\n,,,2,10,,\n"
        "1,Wednesday,Bench Press,1,5,0.65,\n,,,2,5,0.75,\n"
        "2,Monday,Squat,1,3,70%,\n,,,2,3,80%,\n,,,3,AMRAP,90%,\n"
    )
    assert texts(sheet) == [
        (1, "Monday", ["Squat: 1x5 @65%, 1x5 @75%, 1xAMRAP @85%", "Dips: 2x10"]),
        (3, "Wednesday", ["Bench Press: 1x5 @65%, 1x5 @75%"]),
        (8, "Monday", ["Squat: 1x3 @70%, 1x3 @80%, 1xAMRAP @90%"]),
    ]
    assert (sheet.days[0].exercises[0].notes, sheet.problems) == (["leave one"], [])


def test_a_sheet_in_the_style_of_starting_strength() -> None:
    """Two workouts as blocks below each other, with titles, and weight before repetitions."""
    sheet = read(
        "Novice program,,,,\nWorkout A,,,,\nExercise,Weight (lbs),Sets x Reps,,\nSquat,135,3x5,,\nPress,65,3x5,,\n"
        "Deadlift,185,1x5,,\n,,,,\nWorkout B,,,,\nExercise,Weight (lbs),Sets x Reps,,\nSquat,140,3x5,,\n"
        "Bench press,95,3x5,,\nPower clean,95,5x3,,\n"
    )
    assert texts(sheet) == [
        (1, "Workout A", ["Squat: 3x5 @61.23kg", "Press: 3x5 @29.48kg", "Deadlift: 1x5 @83.91kg"]),
        (2, "Workout B", ["Squat: 3x5 @63.5kg", "Bench press: 3x5 @43.09kg", "Power clean: 5x3 @43.09kg"]),
    ]
    assert sheet.problems == []


def test_a_hypertrophy_block_with_weeks_in_columns() -> None:
    """Supersets before the names, the weeks above sets, repetitions and effort, and a deload of fewer exercises."""
    sheet = read(
        "Hypertrophy block,,,,,,,,\n,,Week 1,,,Week 2,,,\nDay,Exercise,Sets,Reps,RIR,Sets,Reps,RIR,Rest\n"
        "Push,A1 Bench press,3,8-12,3,4,8-12,2,90\n,A2 Fly,3,12-15,2,,,,60\nPull,B1. Row,3,10,3,4,10,1,2 min\n"
    )
    assert texts(sheet) == [
        (1, "Push", ["Bench press: 3x8-12 rest 90s RIR3", "Fly: 3x12-15 rest 60s RIR2"]),
        (2, "Pull", ["Row: 3x10 rest 120s RIR3"]),
        (8, "Push", ["Bench press: 4x8-12 rest 90s RIR2"]),
        (9, "Pull", ["Row: 4x10 rest 120s RIR1"]),
    ]
    assert [sheet.days[0].superset_of(each) for each in sheet.days[0].exercises] == ["A", "A"]
    assert sheet.problems == []


def test_a_workbook_of_two_tabs() -> None:
    """One tab has the training, the other one what it is made of; the second is reported, and no day."""
    training: list[Row] = [
        ("Client: Mara",),
        ("Week", "Day", "Exercise", "Sets", "Reps", "Load", "Coach"),
        (1, "Mon", "Back squat", 3, "5", "80%", "x"),
        (None, None, "Split squat", 2, "8/side", 20, None),
        (None, "Thu", "Bench press", 5, "5", 60, None),
    ]
    maxes: list[Row] = [("Exercise", "1RM"), ("Back squat", 140), ("Bench press", 90)]
    sheet = read_workbook(Training=training, Maxes=maxes)
    assert texts(sheet) == [
        (1, "Mon", ["Back squat: 3x5 @80%", "Split squat: 2x8/side @20kg"]),
        (4, "Thu", ["Bench press: 5x5 @60kg"]),
    ]
    assert pick(sheet.problems, "field", "code") == [("Coach", "UNKNOWN_COLUMN"), ("Maxes", "UNKNOWN_SHEET")]


# --- Sheets of coaches who move in ------------------------------------------------------------------------------------


def test_the_decimal_sign_of_loads_is_decided_for_the_whole_sheet() -> None:
    rows = "1;Squat;5;102,5\n1;Leg press;10;1.050\n1;Row;8;{}\n"
    sheet = read(f"Day;Exercise;Reps;Load (kg)\n{rows.format('60')}")
    assert texts(sheet)[0][2] == ["Squat: 1x5 @102.5kg", "Leg press: 1x10 @1050kg", "Row: 1x8 @60kg"]
    assert sheet.problems == []
    sheet = read(f"Day;Exercise;Reps;Load (kg)\n{rows.format('70.5').replace('102,5', '100.5')}")
    assert texts(sheet)[0][2] == ["Squat: 1x5 @100.5kg", "Leg press: 1x10 @1.05kg", "Row: 1x8 @70.5kg"]


@pytest.mark.parametrize("load", ["1.050", "1,050", "2.000 kg"])
def test_a_load_that_may_have_thousands_or_decimals_is_left_out_and_reported(load: str) -> None:
    sheet = read(f"Day;Exercise;Reps;Load (kg)\n1;Squat;5;100\n1;Leg press;10;{load}\n")
    assert texts(sheet)[0][2] == ["Squat: 1x5 @100kg", "Leg press: 1x10"]
    assert [(each["line"], each["field"]) for each in sheet.problems] == [(3, "load")]
    assert sheet.days[0].exercises[1].notes == [f"Load: {load if 'kg' in load else load + ' kg'}"]
    corrected = read_program(io.BytesIO(write_table(sheet, "kg").encode()), "kg", {3: {"load": "1050"}})
    assert texts(corrected)[0][2] == ["Squat: 1x5 @100kg", "Leg press: 1x10 @1050kg"]


@pytest.mark.parametrize("is_short", [False, True])
def test_weeks_in_merged_cells_above_the_headings(is_short: bool) -> None:
    first: list[Row] = [
        ("Day", "Exercise", "Week 1", None, None, "Week 2"),
        (None, None, *("Sets", "Reps", "Load") * 2),
    ]
    rows: list[Row] = [("A", "Squat", 3, 5, 100, 3, 5, 105), ("B", "Row", 3, 10, 50, 4, 10, 52.5)]
    if is_short:
        first = [("Day", "Exercise", "Week 1", None, "Week 2"), (None, None, *("Sets", "Reps") * 2)]
        rows = [(*row[:4], *row[5:7]) for row in rows]
    sheet = read_workbook(Block=[*first, *rows])
    of = ("", "", "", "") if is_short else (" @100kg", " @50kg", " @105kg", " @52.5kg")
    assert texts(sheet) == [
        (1, "A", [f"Squat: 3x5{of[0]}"]),
        (2, "B", [f"Row: 3x10{of[1]}"]),
        (8, "A", [f"Squat: 3x5{of[2]}"]),
        (9, "B", [f"Row: 4x10{of[3]}"]),
    ]
    assert sheet.problems == []


def test_a_row_of_totals_is_no_exercise_and_is_reported() -> None:
    sheet = read("Day,Exercise,Sets,Reps,Load\n1,Squat,3,5,100 kg\n1,Total,3,15,1500 kg\n2,Row,3,8,60 kg\n,TOTAL:,,,\n")
    assert texts(sheet) == [(1, "Day 1", ["Squat: 3x5 @100kg"]), (2, "Day 2", ["Row: 3x8 @60kg"])]
    assert [(each["line"], each["field"]) for each in sheet.problems] == [(3, "exercise"), (5, "exercise")]


def test_weeks_and_days_in_german_and_french() -> None:
    rows = "1;Tag 1;Kniebeuge;3;5;100;90\n1;Ruhetag;;;;;\n2;Tag 1;Kniebeuge;4;5;102,5;90\n"
    sheet = read(f"Woche;Tag;Übung;Sätze;Wdh;Gewicht;Pause\n{rows}")
    assert texts(sheet) == [
        (1, "Tag 1", ["Kniebeuge: 3x5 @100kg rest 90s"]),
        (2, "Rest day", []),
        (8, "Tag 1", ["Kniebeuge: 4x5 @102.5kg rest 90s"]),
    ]
    sheet = read("Semaine;Jour;Exercice;Séries;Répétitions\nSemaine 2;Jour 2;Squat;3;5\n")
    assert texts(sheet) == [(9, "Jour 2", ["Squat: 3x5"])]


def test_days_side_by_side() -> None:
    sheet = read(
        "Week 1,,,,,,\nMonday,,,,Wednesday,,\nOrder,Exercise,Sets,Reps,Exercise,Sets,Reps\nA1,Squat,3,5,Deadlift,1,5\n"
        "A2,Leg curl,3,8,,,\n,,,,,,\nWeek 2,,,,,,\nMonday,,,,Wednesday: Pull,,\nOrder,Exercise,Sets,Reps,Exercise,Sets,Reps\n"
        ",Squat,4,5,Row,4,\n"
    )
    assert texts(sheet) == [
        (1, "Monday", ["Squat: 3x5", "Leg curl: 3x8"]),
        (3, "Wednesday", ["Deadlift: 1x5"]),
        (8, "Monday", ["Squat: 4x5"]),
        (10, "Pull", ["Row: 4x?"]),
    ]
    assert sheet.problems == []
    assert [sheet.days[0].superset_of(each) for each in sheet.days[0].exercises] == ["A", "A"]
    assert texts(read(write_table(sheet, "kg"))) == texts(sheet)


def test_exercises_side_by_side_without_a_day_above_are_reported() -> None:
    sheet = read("Main,,Other,\nExercise,Reps,Exercise,Reps\nSquat,5,Row,8\n")
    assert texts(sheet) == [(1, "Day 1", ["Squat: 1x5"])]
    assert [each["code"] for each in sheet.problems] == ["REPEATED_COLUMN"] * 2


def test_a_formula_in_days_side_by_side_is_of_its_own_day() -> None:
    rows: list[Row] = [("Day 1", None, "Day 2"), ("Exercise", "Reps", "Exercise", "Reps"), ("Squat", 5, "Row", "=2*4")]
    sheet = read_workbook(Block=rows)
    assert texts(sheet) == [(1, "Day 1", ["Squat: 1x5"]), (2, "Day 2", ["Row: 1x?"])]
    assert [(each["line"], each["field"]) for each in sheet.problems] == [(3, "reps")]
