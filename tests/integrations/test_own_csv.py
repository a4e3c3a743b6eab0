"""The service's own CSV files: what an export writes, an import reads as the same (contract 17)."""

from __future__ import annotations

import csv
import io
import json
import random
from typing import Any

import pytest

from coaching_service.core.text import write_rows
from coaching_service.people import team
from tests.conftest import NewCompany
from tests.support.client import CoachClient
from tests.support.sampled import some
from tests.support.training import Json
from tests.support.transfer import exported_rows, import_file, undo

Rows = list[dict[str, str]]
WORDS = ("Ana", "José", "O'Brien", '"Rex"', "=Bo", "van der Berg", "李", "Mara, jr.", "A;B", "x|y", "💪")
EXERCISES = ("Barbell Back Squat", "Pull-Up", "Leo's plank", "=Zottelkraxl", "Treadmill Run")
COLUMNS = (
    *("client_name", "title", "start_time", "description", "exercise_title", "superset_id", "exercise_notes"),
    *("set_index", "set_type", "weight_kg", "reps", "distance_km", "duration_seconds", "rpe", "rir", "is_completed"),
    "duration_minutes",
)


def to_csv(rows: Rows) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def some_clients(chance: random.Random, coaches: list[str]) -> list[Json]:
    clients = []
    for number in range(20):
        client: Json = {
            "name": f"{chance.choice(WORDS)} {number}",
            "surname": chance.choice([None, *WORDS]),
            "email": chance.choice([None, f"Client{number}@example.com"]),
            "phone": chance.choice([None, "+34 600 000 000", "0049-1"]),
            "birthday": chance.choice([None, "1990-04-03", "2001-12-31"]),
            "timezone": chance.choice([None, "Europe/Madrid"]),
            "groups": chance.sample(WORDS, chance.randrange(4)),
            "assignedTo": chance.choice([None, *coaches]),
        }
        if chance.random() < 0.5:
            client["externalId"] = f"=crm;{number}"
        clients.append(client)
    return clients


@pytest.mark.parametrize("seed", some([1, 2], 1))
async def test_clients_out_and_in_again_are_the_same(coach: CoachClient, seed: int) -> None:
    chance = random.Random(seed)
    hired = await team.create(coach.ctx, "Eli", f"eli-{coach.ctx.company_id}@example.com", [], "all", "no hash")
    batch = {"customers": some_clients(chance, [str(hired["_id"]), str(coach.ctx.caller.id)])}
    created = (await coach.post("/coach/customers/batch", batch)).ok()
    ids = [each["_id"] for each in created["results"]]
    (await coach.post("/coach/customers/bulk/archive", {"ids": chance.sample(ids, 5)})).ok()
    first = await exported_rows(coach, "customers")
    assert len(first) == 20
    assert {row["status"] for row in first} == {"active", "archived"}
    (await coach.post("/coach/customers/bulk/delete", {"ids": ids})).ok()

    job = await import_file(coach, to_csv(first), name="clients.csv")

    assert (job["errors"], job["result"]["imported"]) == ([], 20)
    assert await exported_rows(coach, "customers") == first


def some_set(chance: random.Random) -> list[Any]:
    return [
        chance.choice(["normal", "normal", "warmup", "dropset", "failure"]),
        chance.choice([None, 60, 62.5, 100.25]),
        chance.randrange(1, 15),
        chance.choice([None, None, 0.4, 1.609]),
        chance.choice([None, None, 45, 90.5]),
        chance.choice([None, 8, 8.5]),
        chance.choice([None, 0, 2]),
        chance.choice(["true", "true", "false"]),
    ]


def some_sets(chance: random.Random) -> Rows:
    rows: list[list[Any]] = []
    for day in range(1, 5):
        for session in range(chance.choice([1, 1, 2])):
            start = f"2025-03-0{day}" + chance.choice(["", f" 0{7 + session}:05"])
            title = f"{chance.choice(WORDS)} {session}"
            about = chance.choice(["", "slept badly\n=1+1"])
            minutes = chance.choice([None, 48, 62.5])
            for exercise in chance.sample(EXERCISES, 3):
                superset, note = chance.choice(["", "", "A"]), chance.choice(["", "-easy", "slow, then fast"])
                about_set = ("Ana Ruiz", title, start, about, exercise, superset, note)
                rows += [[*about_set, index, *some_set(chance), minutes] for index in range(chance.randrange(1, 4))]
    return list(csv.DictReader(io.StringIO(write_rows([COLUMNS, *rows]).decode())))


def amounts_of(row: dict[str, str]) -> list[str]:
    names = ("start_time", "title", "exercise_title", "set_type", "weight_kg", "reps", "distance_km", "rpe", "rir")
    return [row[name] for name in (*names, "duration_seconds", "is_completed", "duration_minutes", "description")]


def without_ids(rows: Rows) -> Rows:
    return [{name: value for name, value in row.items() if name not in ("client_id", "superset_id")} for row in rows]


async def test_loads_that_are_help_stay_help(coach: CoachClient, new_company: NewCompany) -> None:
    """Sets with help of a shared exercise, and of one that the import created."""
    names = ("client_id", "client_name", "title", "start_time", "exercise_title", "set_index", "weight_kg", "reps")
    pull = (1, "Ana Ruiz", "Pull", "2025-03-01")
    sent = write_rows([names, (*pull, "Assisted Pull-Up Machine", 0, -20, 8), (*pull, "Leo's climb", 0, -15, 6)])
    answers = '{"Ana Ruiz": "create"}'
    job = await import_file(coach, sent, name="workouts.csv", customers=answers)
    assert (job["result"]["imported"], job["errors"]) == (2, [])
    first = await exported_rows(coach, "workouts")
    assert [row["weight_kg"] for row in first] == ["-20", "-15"]
    assert first[0]["exercise_title"] == "Assisted Pull-Up Machine"
    target = await new_company()
    await import_file(target, to_csv(first), name="workouts.csv", customers=answers)
    assert without_ids(await exported_rows(target, "workouts")) == without_ids(first)


@pytest.mark.parametrize("seed", some([1, 2, 3], 1))
async def test_workouts_out_and_in_again_are_the_same(coach: CoachClient, new_company: NewCompany, seed: int) -> None:
    sets = some_sets(random.Random(seed))
    answers = '{"Ana Ruiz": "create"}'
    job = await import_file(coach, to_csv(sets), name="workouts.csv", customers=answers, format="workouts")
    assert (job["status"], job["result"]["imported"]) == ("done", len(sets)), job["errors"][:3]
    first = await exported_rows(coach, "workouts")
    assert sorted(map(amounts_of, first)) == sorted(map(amounts_of, sets))
    target = await new_company()

    again = await import_file(target, to_csv(first), name="workouts.csv", customers=answers)

    assert (again["result"]["format"], again["result"]["imported"]) == ("workouts", len(sets)), again["errors"][:3]
    assert without_ids(await exported_rows(target, "workouts")) == without_ids(first)
    same = await import_file(coach, to_csv(first), name="workouts.csv")
    assert (same["result"]["imported"], {each["code"] for each in same["errors"]}) == (0, {"ALREADY_THERE"})


async def test_sessions_of_all_kinds_of_items_are_known_again(sampled_company: CoachClient) -> None:
    """Also circuits, and two sessions of a day with the same title that follow each other in the file."""
    company = sampled_company
    twice = (
        "Date,Client,Time of day,Workout,Exercise,Reps,Weight (kg)\n"
        "2020-01-07,Ana Flores,07:05,Twice,Barbell Back Squat,5,50\n"
        "2020-01-07,Ana Flores,,Twice,Barbell Back Squat,5,60\n"
    )
    before = await import_file(company, twice.encode(), name="twice.csv")
    assert before["result"]["imported"] == 2
    first = await exported_rows(company, "workouts")
    assert len({row["superset_id"] for row in first}) > 1

    same = await import_file(company, to_csv(first), name="workouts.csv")

    left_out = [each for each in same["errors"] if each["code"] not in ("ALREADY_THERE", "NOT_A_SET", "MORE_PROBLEMS")]
    assert (same["status"], left_out) == ("done", [])
    assert (same["result"]["imported"], same["result"]["created"]["sessions"]) == (0, 0)
    assert await exported_rows(company, "workouts") == first
    await undo(company, before)


async def sets_by_client(coach: CoachClient) -> list[tuple[str, str]]:
    """The client's name and the repetitions of each set, of all clients."""
    return sorted((row["client_name"], row["reps"]) for row in await exported_rows(coach, "workouts"))


async def test_clients_of_one_name_stay_apart(coach: CoachClient, new_company: NewCompany) -> None:
    """Also sessions that are the same, and a name in another case; a client who has been renamed is the same one."""
    chance = random.Random(5)
    names = ["Ana", "Ana", "ana", "Bo"]
    clients = [await coach.create_customer(name) for name in names]
    for client, name in zip(clients, names, strict=True):
        sheet = "Client,Date,Workout,Exercise,Reps\n" + "".join(
            f"{name},2025-03-0{chance.randrange(1, 3)},Legs,Barbell Back Squat,{chance.randrange(1, 3)}\n"
            for _ in range(6)
        )
        answers = json.dumps({name: client["_id"]})
        assert (await import_file(coach, sheet.encode(), name="sets.csv", customers=answers))["errors"] == []
    first = await exported_rows(coach, "workouts")
    sets = await sets_by_client(coach)
    (await coach.patch(f"/coach/customers/{clients[3]['_id']}", {"name": "Bob"})).ok()

    same = await import_file(coach, to_csv(first), name="workouts.csv")

    assert (same["status"], same["result"]["created"]["sessions"]) == ("done", 0)
    assert {each["code"] for each in same["errors"]} == {"ALREADY_THERE"}
    of_one = await import_file(coach, to_csv(first), name="workouts.csv", customerId=clients[1]["_id"])
    own = {line for line, row in enumerate(first, start=2) if row["client_id"] == clients[1]["_id"]}
    assert {each["line"] for each in of_one["errors"] if each["code"] == "ALREADY_THERE"} == own
    assert {each["code"] for each in of_one["errors"] if each["line"] not in own} == {"OTHER_CLIENT"}
    target = await new_company()
    ana = await target.create_customer("Ana")
    dry = await import_file(target, to_csv(first), name="workouts.csv", dry_run=True)
    labels = [f"{client['name']} ({client['_id']})" for client in clients[:3]]
    asked = {each["name"]: each["options"] for each in dry["result"]["questions"]}
    assert asked == {**{label: [ana["_id"], "create", "skip"] for label in labels}, "Bo": ["create", "skip"]}
    answers = json.dumps(dict.fromkeys(asked, "create") | {labels[0]: ana["_id"]})
    job = await import_file(target, to_csv(first), name="workouts.csv", customers=answers)
    assert (job["errors"], job["result"]["created"]["customers"]) == ([], 3)
    assert await sets_by_client(target) == sets
    assert sorted(await target.names()) == sorted(names)
