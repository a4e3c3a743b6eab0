"""What the answers of tools say about sets: what is stored, and not what was typed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from coaching_service.training.set_text import read_done_sets
from tests.support import fixed_clock
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient, approve, changed_or_approved, tool_change, tool_proposal

pytestmark = pytest.mark.usefixtures("wednesday")
TODAY = str(fixed_clock.TODAY)
LINES = 25
_SET_FIELDS = ("index", "reps", "load", "seconds", "meters", "rpe", "rir", "isCompleted")


def random_number(randomizer: random.Random, largest: int) -> str:
    """A number with a decimal comma, a decimal point, or without decimals."""
    decimals = randomizer.choice(["", ",5", ".5", ",25", ",75"])
    return f"{randomizer.randint(1, largest)}{decimals}"


def random_sets(randomizer: random.Random) -> str:
    """Done sets as people write them."""
    quantities: dict[str, Callable[[], str]] = {
        "reps": lambda: str(randomizer.randint(0, 30)),
        "time": lambda: random_number(randomizer, 60) + randomizer.choice(["s", "min", " sec"]),
        "distance": lambda: random_number(randomizer, 9) + randomizer.choice(["m", "km"]),
        "none": lambda: "-",
    }
    entries = []
    for _ in range(randomizer.randint(1, 5)):
        entry = randomizer.choice(["", "", "2x", "3 x "]) + quantities[randomizer.choice([*quantities])]()
        if randomizer.random() < 0.6:
            entry += f" @{random_number(randomizer, 200)}{randomizer.choice(['', 'kg', ' lb'])}"
        if randomizer.random() < 0.4:
            entry += f" RPE{random_number(randomizer, 9)}"
        if randomizer.random() < 0.2:
            entry += f" rir {random_number(randomizer, 5)}"
        if randomizer.random() < 0.1:
            entry += " skipped"
        entries.append(entry)
    return ", ".join(entries)


async def test_answer_to_a_log_says_what_is_stored(mcp: McpHttpClient, coach: CoachClient) -> None:
    await coach.create_exercise("Squat")
    client = await coach.create_customer()
    known = {"customerId": client["_id"]}
    plan = "\n".join(["Squat: 1x5 @20,5kg warmup, 3x8 @62,5"] * LINES)
    days = [{"date": TODAY, "name": "Legs", "text": plan}]
    known["workoutId"] = tool_change(await mcp.call("create_workout", **known, days=days))["workoutId"]
    (block,) = await coach.calendar(client, TODAY, TODAY)
    randomizer = random.Random(35)  # a test, not a secret
    typed = [random_sets(randomizer) for _ in range(LINES)]
    text = "\n".join(f"#{item['_id']}: {sets}" for item, sets in zip(block["items"], typed, strict=True))

    logged = await changed_or_approved(coach, await mcp.call("log_workout", **known, text=text))
    summary = logged["summary"]

    (block,) = await coach.calendar(client, TODAY, TODAY)
    answers = re.findall(r"«Squat» (.*?)(?: \(\d of \d planned sets\))?(?=; «Squat»|\.$)", summary)
    assert len(answers) == LINES
    for item, sets, answer in zip(block["items"], typed, answers, strict=True):
        said = read_done_sets(answer, "kg", item["exerciseSets"])
        assert _without_ids(said) == _without_ids(item["customerSets"]), (sets, answer)
    workouts = await mcp.call("get_workouts", customerId=client["_id"], startDate=TODAY, endDate=TODAY)
    done = re.findall(r"^  done: (.*)$", workouts["structuredContent"]["docs"][0]["lines"], re.MULTILINE)
    assert done == answers


def _without_ids(sets: Any) -> list[list[Any]]:
    return [[each[name] for name in _SET_FIELDS] for each in sets]


async def test_decimal_comma_is_read_in_what_tools_take(mcp: McpHttpClient, coach: CoachClient) -> None:
    for name in ("Back squat", "Run"):
        await coach.create_exercise(name)
    client = await coach.create_customer()
    known = {"customerId": client["_id"]}
    days = [{"date": TODAY, "name": "Legs", "text": "Back squat: 3x8 @60kg\nRun: 1x5,2km"}]
    known["workoutId"] = tool_change(await mcp.call("create_workout", **known, days=days))["workoutId"]
    text = "Back squat: 8, 8, 7 @62,5\nRun: 5,2km 24,5min RPE8,5"
    summary = tool_change(await mcp.call("log_workout", **known, text=text))["summary"]
    assert summary.endswith("«Back squat» 8, 8, 7 @62.5kg; «Run» 1470s 5200m RPE8.5.")

    (block,) = await coach.calendar(client, TODAY, TODAY)
    squat, run = block["items"]
    assert [[each["reps"], each["load"]] for each in squat["customerSets"]] == [[8, 62.5], [8, 62.5], [7, 62.5]]
    assert [run["exerciseSets"][0]["plannedMeters"], run["customerSets"][0]["meters"]] == [5200, 5200]
    assert [run["customerSets"][0]["seconds"], run["customerSets"][0]["rpe"]] == [1470, 8.5]

    change = [{"action": "add", "text": "Back squat: 2x5 @102,5"}]
    changed = tool_change(await mcp.call("update_workout_items", **known, changes=change))
    assert "added «Back squat» 2x5 @102.5kg" in changed["summary"]


async def test_carries_are_planned_and_logged_as_text_and_as_arrays(mcp: McpHttpClient, coach: CoachClient) -> None:
    carry = await coach.create_exercise("Farmer carry")
    client = await coach.create_customer()
    known = {"customerId": client["_id"]}
    array = {"exerciseId": carry["_id"], "sets": [{"meters": 20, "load": 30}]}
    tool_change(await mcp.call("create_workout", **known, date=TODAY, name="Arms", exercises=[array]))
    days = [{"date": TODAY, "name": "Legs", "text": "Farmer carry: 3x40m @24,5kg rest 60s"}]
    known["workoutId"] = tool_change(await mcp.call("create_workout", **known, days=days))["workoutId"]
    arms, block = await coach.calendar(client, TODAY, TODAY)
    first, second = block["items"][0]["exerciseSets"][0], arms["items"][0]["exerciseSets"][0]
    assert [first[name] for name in ("type", "plannedMeters", "load", "rest")] == ["distance_load", 40, 24.5, 60]
    assert [second[name] for name in ("type", "plannedMeters", "load")] == ["distance_load", 20, 30]
    text = f"#{block['items'][0]['_id']}: 40m, 40m, 35m @24,5"
    assert "40m, 40m, 35m @24.5kg" in tool_change(await mcp.call("log_workout", **known, text=text))["summary"]
    arguments = {"customerId": client["_id"], "exercise": "Farmer carry"}
    history = await mcp.call("get_exercise_history", **arguments)
    text = history["content"][0]["text"]
    assert "best 40m @24.5kg" in text
    assert "farthest distance 40m, volume 0, 3 sets" in text


async def test_what_stays_of_a_log_is_on_both_sides(mcp: McpHttpClient, coach: CoachClient) -> None:
    await coach.create_exercise("Squat")
    known = {"customerId": (await coach.create_customer())["_id"]}
    days = [{"date": TODAY, "name": "Legs", "text": "Squat: 3x8\ntask: Walk"}]
    known["workoutId"] = tool_change(await mcp.call("create_workout", **known, days=days))["workoutId"]
    first = "Squat: 8, 8, 8 @60kg | hard | pain shoulder\nWalk: skipped | rain | pain knee"
    tool_change(await mcp.call("log_workout", **known, text=first))
    for text, line in (
        (
            "Squat: 9, 9, 9 @60kg",
            "8, 8, 8 @60kg | «hard» | pain «shoulder» → 9, 9, 9 @60kg | comment «hard» | pain «shoulder»",
        ),
        ("Squat: 9 @60kg | easy", "→ 9 @60kg (1 of 3 planned sets) | comment «easy» | pain «shoulder»"),
        ("Walk: done", "skipped | «rain» | pain «knee» → done | pain «knee»"),
    ):
        proposal = tool_proposal(await mcp.call("log_workout", **known, text=text), "DONE_WORK")
        assert proposal["summary"].endswith(f"{line}.")
        await approve(coach, proposal)
