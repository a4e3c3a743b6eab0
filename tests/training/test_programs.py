"""Programs: workout blocks by day."""

from __future__ import annotations

from typing import Any

from tests.support.client import UNKNOWN, CoachClient

PAGE = {"archived": "false", "pageSize": 50, "pageNum": 1}
TASK = {"type": "TASK", "taskFields": {"title": "Walk"}}


async def create(coach: CoachClient, name: str = "Base", **fields: Any) -> dict[str, Any]:
    created: dict[str, Any] = (await coach.post("/coach/programs", {"name": name, **fields})).ok(201)
    return created


async def plan(
    coach: CoachClient, program: dict[str, Any], day: int, name: str = "Day", **fields: Any
) -> dict[str, Any]:
    path = f"/coach/programs/{program['_id']}/wblocks"
    created: dict[str, Any] = (await coach.post(path, {"name": name, "day": day, **fields})).ok(201)
    return created


async def names(coach: CoachClient, **query: Any) -> list[str]:
    return [p["name"] for p in (await coach.get("/coach/programs", **(PAGE | query))).ok()["docs"]]


async def test_programs_are_sorted_by_name_and_searched_by_keywords(coach: CoachClient) -> None:
    """Contract 1: `archived`, `pageSize`, `pageNum` required, `keywords` optional; paginated response."""
    await create(coach, "zeta", description="Strength for runners")
    await create(coach, "Álpha", tags=["beginner"])

    assert await names(coach) == ["Álpha", "zeta"]
    assert await names(coach, keywords="RUNN zeta") == ["zeta"]
    assert await names(coach, keywords="alpha begin") == ["Álpha"]
    assert await names(coach, keywords="beginners") == []

    assert (await coach.get("/coach/programs", **(PAGE | {"pageSize": 1, "pageNum": 2}))).ok()["totalDocs"] == 2
    for missing in PAGE:
        (await coach.get("/coach/programs", **{k: v for k, v in PAGE.items() if k != missing})).refused(400)


async def test_keywords_find_all_kinds_of_apostrophes(coach: CoachClient) -> None:
    for name in ("Coach's choice", "Coach’s favourites", "Coaches"):
        (await coach.post("/coach/programs", {"name": name})).ok(201)
    for keywords in ("coach's", "coach’s", "coach`s"):
        assert await names(coach, keywords=keywords) == ["Coach's choice", "Coach’s favourites"]
    assert await names(coach, keywords="coach’s choice") == ["Coach's choice"]


async def test_program_is_changed_archived_and_deleted(coach: CoachClient) -> None:
    program = await create(coach, "Base", description="d", tags=["a"])
    path = f"/coach/programs/{program['_id']}"

    changed = (await coach.patch(path, {"description": None, "version": 0})).ok()
    assert (changed["description"], changed["tags"], changed["version"]) == (None, ["a"], 1)
    (await coach.patch(path, {"name": "x", "version": 0})).refused(409)

    archived = (await coach.put(f"{path}/archive")).ok()
    assert archived["isArchived"] is True
    assert (await coach.put(f"{path}/archive")).ok() == archived, "repeating is harmless"
    assert (await names(coach), await names(coach, archived="true")) == ([], ["Base"])
    (await coach.put(f"{path}/unarchive", {"version": 1})).refused(409)
    assert (await coach.put(f"{path}/unarchive", {"version": 2})).ok()["isArchived"] is False
    (await coach.put(f"{path}/archive", {"version": 2})).refused(409)

    block = await plan(coach, program, 1)
    (await coach.delete(path)).ok(204)
    for gone in (path, f"{path}/wblocks/{block['_id']}"):
        (await coach.get(gone)).refused(404)
    assert await coach.ctx.db["workoutBlocks"].count_documents({"companyId": coach.ctx.company_id}) == 0


async def test_program_has_the_number_of_days_with_workouts(coach: CoachClient) -> None:
    program = await create(coach)
    assert program["numberOfDaysWithWorkouts"] == 0
    first, again, rest, _empty, far = [await plan(coach, program, day, isRest=day == 2) for day in (1, 1, 2, 3, 40)]
    for block in (first, again, rest, far):
        path = f"/coach/programs/{program['_id']}/wblocks/{block['_id']}/witems"
        (await coach.post(path, TASK)).ok(201)

    assert (await coach.get(f"/coach/programs/{program['_id']}")).ok()["numberOfDaysWithWorkouts"] == 2


async def test_program_blocks_are_scheduled_by_day(coach: CoachClient) -> None:
    program, squat = await create(coach), await coach.create_exercise()
    base = f"/coach/programs/{program['_id']}"
    second, first = await plan(coach, program, 8, "B"), await plan(coach, program, 1, "A")
    item = {"type": "EXERCISE", "exerciseId": squat["_id"], "exerciseSets": [{"type": "reps"}]}
    added = (await coach.post(f"{base}/wblocks/{first['_id']}/witems", item)).ok(201)

    blocks = (await coach.get(f"{base}/wblock", startDay=0, endDay=7)).ok()
    assert [(b["name"], b["day"], b["date"], b["customerId"]) for b in blocks] == [("A", 1, None, None)]
    assert blocks[0]["items"] == [added]
    assert blocks[0]["programId"] == program["_id"]
    moved = (await coach.patch(f"{base}/wblocks/{second['_id']}", {"day": 1})).ok()
    assert (moved["day"], moved["order"]) == (1, 1)
    (await coach.patch(f"{base}/wblocks/{first['_id']}/witems/{added['_id']}", {"supersetId": "A"})).ok()
    (await coach.delete(f"{base}/wblocks/{first['_id']}/witems/{added['_id']}")).ok(204)
    (await coach.delete(f"{base}/wblocks/{first['_id']}")).ok(204)
    assert [b["_id"] for b in (await coach.get(f"{base}/wblock", startDay=1, endDay=1)).ok()] == [second["_id"]]


async def test_days_are_integers_from_one(coach: CoachClient) -> None:
    program = await create(coach)
    base = f"/coach/programs/{program['_id']}"
    for day in (0, -1, 1.5, "1", None, True):
        (await coach.post(f"{base}/wblocks", {"name": "A", "day": day})).refused(400, "day")
    (await coach.get(f"{base}/wblock", startDay=2, endDay=1)).refused(400, "endDay")
    (await coach.get(f"{base}/wblock", startDay=1)).refused(400, "numeric string")
    (await coach.get(f"{base}/wblock", startDay="1e0", endDay="7")).ok()
    (await coach.get(f"/coach/programs/{UNKNOWN}/wblock", startDay=1, endDay=1)).refused(404, "Program")


async def test_program_blocks_are_not_found_under_a_client(coach: CoachClient) -> None:
    program, ana = await create(coach), await coach.create_customer()
    block, scheduled = await plan(coach, program, 1), await coach.schedule(ana)
    (await coach.get(f"/coach/customers/{ana['_id']}/wblocks/{block['_id']}")).refused(404)
    (await coach.get(f"/coach/programs/{program['_id']}/wblocks/{scheduled['_id']}")).refused(404)
