"""Columns of tables that coaches made: clients, starts of sessions, durations, and what is not read."""

from __future__ import annotations

import io
import json

import pytest

from coaching_service.integrations.history_files.set_files import SetFile, Survey
from coaching_service.integrations.history_files.set_rows import Answers, SetRow
from tests.support.client import CoachClient
from tests.support.imported_history import workouts
from tests.support.surveys import survey
from tests.support.transfer import import_file, pick, send


def sets(text: str) -> list[SetRow]:
    """The sets of a table."""
    return [each for row in SetFile(io.BytesIO(text.encode()), Answers()).rows() for each in row.sets]


def surveyed(text: str, answers: Answers | None = None) -> Survey:
    """What a table has."""
    return survey(io.BytesIO(text.encode()), answers or Answers())


@pytest.mark.parametrize(
    ("headings", "cells", "name", "identifier"),
    [
        ("Full Name", "Ana Ruiz", "Ana Ruiz", ""),
        ("Name", "Ana Ruiz", "Ana Ruiz", ""),
        ("Nombre", "Ana Ruiz", "Ana Ruiz", ""),
        ("User", "ana", "ana", ""),
        ("Member", "Ana Ruiz", "Ana Ruiz", ""),
        ("Email", "ana@example.com", "ana@example.com", "ana@example.com"),
        ("Client Email", "ana@example.com", "ana@example.com", "ana@example.com"),
        ("client_id", "17", "17", "17"),
        ("First name,Last name", "Ana,Ruiz", "Ana Ruiz", ""),
        ("Name,Surname", "Ana,Ruiz", "Ana Ruiz", ""),
        ("Client,Last name", "Ana,Ruiz", "Ana Ruiz", ""),
        ("Client,Last name", "Ana Ruiz,Ruiz", "Ana Ruiz", ""),
        ("Name,Email", "Ana,ana@example.com", "Ana", "ana@example.com"),
        ("Client,Name", "Ana,Leg day", "Ana", ""),
    ],
)
@pytest.mark.parametrize(
    ("more", "values"),
    [
        ("Date,Exercise,Reps", "2026-06-01,Squat,5"),
        ("Date,Exercise,Category,Weight (kg),Reps", "2026-06-01,Squat,Legs,60,5"),
        ("Date,Exercise,Set 1 (Reps),Set 1 (kg)", "2026-06-01,Squat,5,60"),
    ],
    ids=["sets", "fitnotes", "stronglifts"],
)
def test_whose_set_it_is(headings: str, cells: str, name: str, identifier: str, more: str, values: str) -> None:
    [read] = sets(f"{headings},{more}\n{cells},{values}\n")
    assert (read.customer, read.customer_id, read.exercise) == (name, identifier, "Squat")


def test_a_name_without_another_exercise_may_be_the_exercise() -> None:
    found = surveyed("Date,Name,Reps\n2026-06-01,Squat,5\n")
    assert [(each["code"], each["name"], each["options"]) for each in found.questions] == [
        ("COLUMN", "exercise", ["Name"])
    ]
    found = surveyed("Date,Name,Reps\n2026-06-01,Squat,5\n", Answers(columns={"Name": "exercise"}))
    assert ([*found.exercises], [*found.customers]) == (["Squat"], [""])
    answered = surveyed("Date,Name,Exercise,Reps\n2026-06-01,Leg day,Squat,5\n", Answers(columns={"Name": "workout"}))
    assert [*answered.customers] == [""]


@pytest.mark.parametrize("heading", ["Name", "Email", "external_id"])
async def test_the_sets_of_two_clients_are_not_stored_under_the_first(coach: CoachClient, heading: str) -> None:
    ana = await coach.create_customer("Ana", surname="Ruiz", email="ana@example.com", externalId="a-1")
    await coach.create_customer("Bo", surname="Li", email="bo@example.com", externalId="b-1")
    column = {"Email": ("Ana@example.com", "bo@example.com"), "external_id": ("a-1", "b-1")}
    first, second = column.get(heading, ("Ana Ruiz", "Bo Li"))
    sheet = f"{heading},Date,Exercise,Reps\n{first},2025-01-06,Push-Up,10\n{second},2025-01-06,Push-Up,11\n".encode()

    job = await import_file(coach, sheet, name="sets.csv", customerId=ana["_id"])
    assert pick(job["errors"], "line", "code") == [(3, "OTHER_CLIENT")]
    [block] = await workouts(coach, ana)
    assert [each["reps"] for each in block["items"][0]["customerSets"]] == [10]

    every = await import_file(coach, sheet, name="sets.csv", dry_run=True)
    assert (every["result"]["imported"], every["result"]["questions"]) == (1, [])


async def test_names_of_workouts_are_not_those_of_clients(coach: CoachClient) -> None:
    """With the client of the import given: names that are of no client may be of workouts."""
    ana = await coach.create_customer("Ana")
    sheet = b"Date,Name,Exercise,Reps\n2025-01-06,Push,Push-Up,10\n2025-01-07,Pull,Pull Up,11\n"
    asked = await import_file(coach, sheet, name="sets.csv", customerId=ana["_id"])
    assert asked["errors"][-1]["code"] == "QUESTIONS_OPEN"
    [question] = asked["result"]["questions"]
    assert (question["code"], question["name"], question["options"]) == ("COLUMN", "Name", ["customer", "workout"])
    request = {"name": "sets.csv", "customerId": ana["_id"]}
    as_clients = await import_file(coach, sheet, **request, columns='{"Name": "customer"}')
    assert [each["code"] for each in as_clients["errors"]] == ["OTHER_CLIENT", "OTHER_CLIENT"]
    as_workouts = await import_file(coach, sheet, **request, columns='{"Name": "workout"}')
    assert (as_workouts["errors"], [each["name"] for each in await workouts(coach, ana)]) == ([], ["Push", "Pull"])


async def test_clients_of_the_same_name_differ_by_their_addresses(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", email="ana@example.com")
    rows = ("Ana,ana@example.com,2025-01-06,Push-Up,10", "Ana,other@example.com,2025-01-06,Push-Up,11")
    sheet = "\n".join(["Name,Email,Date,Exercise,Reps", *rows]).encode()
    asked = await import_file(coach, sheet, name="sets.csv", dry_run=True)
    assert [each["name"] for each in asked["result"]["questions"]] == ["Ana (other@example.com)"]
    customers = json.dumps({"Ana (other@example.com)": "create"})
    job = await import_file(coach, sheet, name="sets.csv", customers=customers)
    assert (job["result"]["created"]["customers"], job["errors"]) == (1, [])
    assert len(await workouts(coach, ana)) == 1
    listed = (await coach.customers())["docs"]
    assert sorted(each["email"] for each in listed) == ["ana@example.com", "other@example.com"]


@pytest.mark.parametrize(
    ("text", "clock", "seconds"),
    [
        ("Date,Time,Exercise,Reps,Weight (kg)\n2026-06-01,18:30,Squat,5,60\n", "18:30", None),
        ("Date,Time,Exercise,Set number,Reps\n2026-06-01,18:30:00,Squat,1,5\n", "18:30", None),
        ("Date,Exercise,Time,Reps\n2026-06-01,Squat,6:30 PM,5\n", "18:30", None),
        ("Datum;Zeit;Übung;Wiederholungen\n01.06.2026;18:30;Kniebeuge;5\n", "18:30", None),
        ("Date,Exercise,Reps,Time\n2026-06-01,Squat,5,18:30\n", "18:30", None),
        ("Date,Time,Seconds,Exercise\n2026-06-01,18:30,45,Plank\n", "18:30", 45),
        ("Date,Time,Exercise\n2026-06-01,0:45,Plank\n", None, 45),
        ("Date,Time,Exercise\n2026-06-01,90,Plank\n", None, 90),
        ("Date,Time,Exercise\n2026-06-01,1:30,Plank\n", None, 90),
        ("Date,Time (min),Exercise,Reps\n2026-06-01,18:30,Row,1\n", None, 1110),
        ("Date,Start,Time,Exercise\n2026-06-01,07:00,18:30,Run\n", "07:00", 1110),
        ("Date,Time,Exercise\n2026-06-01 07:00,18:30,Run\n", "07:00", 1110),
    ],
)
def test_a_time_is_of_the_day_or_a_duration(text: str, clock: str | None, seconds: float | None) -> None:
    [read] = sets(text)
    assert (read.clock, read.seconds) == (clock, seconds)
    assert surveyed(text).questions == []


def test_all_values_of_a_column_decide() -> None:
    runs = "Date,Exercise,Distance (km),Time\n2026-06-01,Run,5,22:30\n2026-06-02,Run,5,{}\n"
    assert [each.seconds for each in sets(runs.format("24:10"))] == [1350, 1450]
    logged = "Date,Time,Exercise,Reps\n2026-06-01,{},Squat,5\n2026-06-01,18:30,Plank,\n"
    found = surveyed(logged.format("7:30 AM"))
    assert (found.rows, found.reported, [each["code"] for each in found.problems]) == (2, 1, ["NOT_A_SET"])


@pytest.mark.parametrize(
    "text",
    [
        "Date,Exercise,Distance (km),Time\n2026-06-01,Run,5,22:30\n2026-06-02,Run,5,21:55\n",
        "Date,Time,Exercise,Reps\n2026-06-01,18:30,Squat,5\n2026-06-01,0:45,Plank,\n",
    ],
)
def test_a_time_that_may_be_both_is_a_question(text: str) -> None:
    [question] = surveyed(text).questions
    assert (question["code"], question["name"], question["options"]) == ("COLUMN", "Time", ["time", "seconds"])
    as_seconds = surveyed(text, Answers(columns={"Time": "seconds"}))
    as_clock = [
        each
        for row in SetFile(io.BytesIO(text.encode()), Answers(columns={"Time": "time"})).rows()
        for each in row.sets
    ]
    assert as_seconds.questions == []
    assert all(each.clock and each.seconds is None for each in as_clock)


@pytest.mark.parametrize("tempo", ["3010", "31X1", "3-1-1-0", "2/0/2"])
def test_the_tempo_of_repetitions_is_no_time(tempo: str) -> None:
    text = f"Date,Exercise,Reps,Tempo\n2026-06-01,Squat,5,{tempo}\n"
    assert [each.seconds for each in sets(text)] == [None]
    assert [(each["column"], each["code"]) for each in surveyed(text).kinds] == [("Tempo", "UNKNOWN_COLUMN")]


@pytest.mark.parametrize(
    "heading",
    ["Start Time", "start_time", "Startzeit", "Hora de inicio", "Start", "Time of day", "Session start", "Uhrzeit"],
)
def test_two_sessions_of_a_day_differ_by_their_starts(heading: str) -> None:
    text = f"Date,{heading},Workout,Exercise,Reps\n2026-06-01,07:30,Full,Squat,5\n2026-06-01,2026-06-01 18:30,Full,Squat,5\n"
    assert [each.clock for each in sets(text)] == ["07:30", "18:30"]
    assert surveyed(text).problems == []


def test_a_start_and_an_end_are_the_duration_of_a_session() -> None:
    [read] = sets("Date,Start Time,End Time,Exercise,Reps\n2026-06-01,07:30,08:15,Squat,5\n")
    assert (read.clock, read.minutes) == ("07:30", 45)
    [read] = sets("Start Time,Exercise,Reps\n2026-06-01 07:30,Squat,5\n")
    assert (str(read.day), read.clock) == ("2026-06-01", "07:30")


def test_columns_that_are_not_read_are_reported_once() -> None:
    text = "Date,Exercise,Reps,Mood,Equipment,Kettlebell color\n2026-06-01,Squat,5,good,,red\n2026-06-02,Squat,5,,,\n"
    found = surveyed(text)
    assert found.kinds == [
        {"code": "UNKNOWN_COLUMN", "column": "Mood", "count": 1, "lines": [2]},
        {"code": "UNKNOWN_COLUMN", "column": "Kettlebell color", "count": 1, "lines": [2]},
    ]
    assert found.problems == []
    answered = surveyed(text, Answers(columns={"Mood": "", "Equipment": "", "Kettlebell color": "notes"}))
    assert answered.kinds == []


async def test_two_columns_of_a_field_are_reported(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    sheet = b"Date,Exercise,Reps,Weight (kg),Weight (kg),Reps\n2025-01-06,Squat,5,100,90,\n2025-01-06,Squat,,100,,6\n"
    job = await import_file(coach, sheet, name="sets.csv", customerId=ana["_id"])
    assert job["result"]["imported"] == 2
    assert job["errors"] == []
    assert pick(job["result"]["problems"], "lines", "column", "code") == [
        ([2], "Weight (kg)", "REPEATED_COLUMN"),
        ([3], "Reps", "REPEATED_COLUMN"),
    ]
    same = await send(coach, sheet, name="sets.csv", columns='{"Date": "reps", "Exercise": "reps"}')
    assert same.refused(400)["errors"][0]["field"] == "columns"


@pytest.mark.parametrize(
    ("text", "seconds", "minutes"),
    [
        ("Date,Exercise,Duration (s)\n2026-06-01,Plank,60\n", 60, None),
        ("Date,Exercise,Duration (min),Distance (km)\n2026-06-01,Run,30,5\n", 1800, None),
        ("Date,Exercise,Duration,Distance (km)\n2026-06-01,Run,25:30,5\n", 1530, None),
        ("Date,Exercise,Duration,Reps\n2026-06-01,Squat,45m,5\n", None, 45),
    ],
)
def test_a_duration_is_of_a_set_if_there_are_no_repetitions_and_loads(
    text: str, seconds: float | None, minutes: float | None
) -> None:
    [row] = [each for row in SetFile(io.BytesIO(text.encode()), Answers()).rows() for each in row.sets]
    assert (row.seconds, row.minutes) == (seconds, minutes)
    assert surveyed(text).questions == []
