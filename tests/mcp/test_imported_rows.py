"""Rows of training history that an assistant has read from a picture, and imported workouts as it reads them."""

from __future__ import annotations

from typing import Any

from aiohttp.test_utils import TestServer

from coaching_service.people import api_keys
from tests.support.client import CoachClient
from tests.support.doctor import is_numbered
from tests.support.imported_history import HEVY
from tests.support.jobs import ended_job
from tests.support.mcp_client import McpHttpClient, approve, tool_change, tool_error, tool_proposal, tool_result
from tests.support.service_process import until
from tests.support.transfer import import_file, undo

TOOL = "import_rows"
ROWS: list[dict[str, Any]] = [
    {"date": "2025-03-03", "workout": "Push", "exercise": "Bench Press (Barbell)", "sets": 2, "reps": 8, "load": 60},
    {"date": "2025-03-03", "workout": "Push", "exercise": "Sled of Doom", "reps": 5, "load": 100.5, "rpe": 9},
    {"date": "2025-03-05", "exercise": "Plank", "seconds": 45, "notes": "hard"},
    {"date": "2025-03-05", "exercise": "Plank"},
]


async def sets(coach: CoachClient, client: dict[str, Any]) -> list[tuple[Any, ...]]:
    """What the client did in March 2025: date, title, exercise, repetitions, load and seconds."""
    return [
        (block["date"], block["name"], item["exercise"]["name"], each["reps"], each["load"], each["seconds"])
        for block in await coach.calendar(client, "2025-03-01", "2025-03-31")
        for item in block["items"]
        for each in item["customerSets"]
    ]


async def test_rows_are_imported_after_one_proposal(mcp: McpHttpClient, coach: CoachClient) -> None:
    mara = await coach.create_customer("Mara")
    about = {"customerId": mara["_id"], "rows": ROWS, "loadUnit": "kg"}

    shown = tool_change(await mcp.call(TOOL, **about, dryRun=True))
    assert shown["summary"].startswith("Would import 4 sets in 2 sessions from 2025-03-03 to 2025-03-05 for «Mara».")
    assert "«Bench Press (Barbell)» is «Barbell Bench Press»" in shown["summary"]
    assert "New exercises: «Sled of Doom»." in shown["summary"]
    assert "row 4: has no repetitions, load, time or distance" in shown["summary"]
    assert (shown["rows"], shown["imported"], shown["reported"], shown["sets"]) == (4, 3, 1, 4)
    assert await sets(coach, mara) == []

    proposed = await mcp.call(TOOL, **about)
    summary = tool_proposal(proposed, "HISTORY")["summary"]
    assert summary.startswith("Import 4 sets in 2 sessions from 2025-03-03 to 2025-03-05 for «Mara». «Bench Press")
    assert await sets(coach, mara) == []
    session = await coach.interactive()
    changes = (await session.get(f"/coach/proposals/{proposed['structuredContent']['proposalId']}")).ok()["changes"]
    person = {"_id": mara["_id"], "name": "Mara"}
    shown_days = [(each["kind"], each["customer"], each["date"], each["before"]) for each in changes]
    assert shown_days == [
        ("workout", person, "2025-03-03", None),
        ("workout", person, "2025-03-05", None),
        ("exercise", None, None, None),
    ]
    assert changes[0]["after"].startswith("Push")
    assert "Barbell Bench Press:\n  done: 8, 8 @60kg" in changes[0]["after"]
    assert "Sled of Doom:\n  done: 5 @100.5kg RPE9" in changes[0]["after"]
    assert "Plank:\n  done: 45s" in changes[1]["after"]
    done = await approve(coach, proposed["structuredContent"])
    assert done["summary"].startswith("Imported 4 sets in 2 sessions")
    assert await sets(coach, mara) == [
        ("2025-03-03", "Push", "Barbell Bench Press", 8, 60, None),
        ("2025-03-03", "Push", "Barbell Bench Press", 8, 60, None),
        ("2025-03-03", "Push", "Sled of Doom", 5, 100.5, None),
        ("2025-03-05", "Workout", "Plank", None, None, 45),
    ]

    again = tool_change(await mcp.call(TOOL, **about))
    assert again["summary"].startswith("Imported 0 sets in 0 sessions for «Mara».")
    job = (await coach.get(f"/coach/jobs/{done['jobId']}")).ok()
    assert (job["status"], job["result"]["created"]["sets"]) == ("done", 4)


async def test_an_import_is_undone_by_its_assistant(mcp: McpHttpClient, coach: CoachClient) -> None:
    mara = await coach.create_customer("Mara")
    proposed = await mcp.call(TOOL, customerId=mara["_id"], rows=ROWS, loadUnit="kg")
    done = await approve(coach, proposed["structuredContent"])
    undone = tool_change(await mcp.call("undo", changeId=done["changeId"]))
    assert undone["summary"].startswith("Began to remove what this import has created of «Mara»")

    job = await ended_job(coach, undone["jobId"])
    assert job["status"] == "done"
    assert job["result"] == {
        "ok": 3,
        "removed": {"customers": 0, "sessions": 2, "exercises": 1},
        "failed": [],
    }
    assert await sets(coach, mara) == []
    await until(lambda: is_numbered(coach.ctx.services), "numbers of changes")
    listed = (await coach.get("/coach/changes", limit=100)).ok()["docs"]
    removed = {(each["via"], each["actor"]["type"]) for each in listed if each["operation"] == "undoImport"}
    assert removed == {("assistant", "assistant")}


async def test_only_the_own_import_is_undone(mcp: McpHttpClient, public_server: TestServer, coach: CoachClient) -> None:
    mara = await coach.create_customer("Mara")
    proposed = await mcp.call(TOOL, customerId=mara["_id"], rows=ROWS[:1], loadUnit="kg")
    done = await approve(coach, proposed["structuredContent"])
    session = await coach.interactive()
    key = (await session.post("/coach/api-keys", {"name": "Other"})).ok(201)["key"]
    async with McpHttpClient(public_server, {"X-API-Key": key}) as other:
        tool_error(await other.call("undo", changeId=done["changeId"]), "only what it has changed itself")
    undone = tool_change(await mcp.call("undo", changeId=done["changeId"]))
    assert undone["jobId"]


async def test_loads_need_a_unit_and_all_errors_come_at_once(mcp: McpHttpClient, coach: CoachClient) -> None:
    mara = await coach.create_customer("Mara")
    shown = tool_change(await mcp.call(TOOL, customerId=mara["_id"], rows=ROWS, dryRun=True))
    assert "Open: In which unit are the loads" in shown["summary"]
    tool_error(await mcp.call(TOOL, customerId=mara["_id"], rows=ROWS), "LOAD_UNIT")
    wrong: list[dict[str, Any]] = [{"date": "3 March", "exercise": "Squat"}, {"date": "2025-03-03", "mood": "good"}]
    tool_error(
        await mcp.call(TOOL, customerId=mara["_id"], rows=wrong),
        "rows.0.date must be",
        "rows.1.exercise",
        "unknown field",
    )
    tool_error(await mcp.call(TOOL, customerId=mara["_id"], rows=ROWS[:1] * 201), "rows must")
    assert await sets(coach, mara) == []


async def test_new_exercises_need_their_permission(public_server: TestServer, coach: CoachClient) -> None:
    mara = await coach.create_customer("Mara")
    about = {"customerId": mara["_id"], "rows": ROWS[:2], "loadUnit": "kg"}
    narrow = (await api_keys.create(coach.ctx, "Narrow", {"permissions": ["customers.view", "customers.edit"]}))["key"]
    async with McpHttpClient(public_server, {"X-API-Key": narrow}) as mcp:
        shown = tool_change(await mcp.call(TOOL, **about, dryRun=True))
        assert "New exercises" not in shown["summary"]
        assert "row 2: exercise is not in the library: creating it needs exercises.create" in shown["summary"]
        assert (shown["imported"], shown["reported"], shown["exercises"]) == (1, 1, 0)
        tool_error(await mcp.call(TOOL, **about), "Sled of Doom", "exercises.create")
    assert await sets(coach, mara) == []


async def test_the_change_of_an_import_says_what_was_imported(coach: CoachClient, mcp: McpHttpClient) -> None:
    ana = await coach.create_customer("Ana")
    rows = b"Date,Exercise,Reps,Weight (kg)\n2025-01-06,Squat,5,100\n2025-01-08,Squat,5,105\n"
    job = await import_file(coach, rows, name="sets.csv", customerId=ana["_id"])
    said = "2 sessions imported (sets, 2025-01-06 to 2025-01-08)"

    async def summaries() -> list[str]:
        await until(lambda: is_numbered(coach.ctx.services), "numbers of changes")
        listed = (await coach.get("/coach/changes", customerId=ana["_id"])).ok()["docs"]
        return [each["summary"] for each in listed]

    [imported] = [each for each in await summaries() if "imported" in each]
    assert imported.startswith(f"{said}, ")
    assert "personal record" in imported
    assert said in str(tool_result(await mcp.call("get_activity", customerId=ana["_id"])))
    assert (await undo(coach, job))["status"] == "done"
    assert any("2 sessions of an import removed (2025-01-06 to 2025-01-08)" in each for each in await summaries())


async def test_an_imported_workout_says_what_was_done(coach: CoachClient, mcp: McpHttpClient) -> None:
    ana = await coach.create_customer("Ana")
    await import_file(coach, HEVY.encode(), name="workouts.csv", customerId=ana["_id"])
    read = await mcp.call("get_workouts", customerId=ana["_id"], startDate="2025-11-17", endDate="2025-11-17")
    text = read["content"][0]["text"]
    assert "Barbell Bench Press" in text
    assert "10 @20.41kg warmup, 8 @61.23kg RPE8.5" in text
    tool_result(read)
