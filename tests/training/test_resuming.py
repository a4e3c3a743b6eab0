"""Returns from absences (contract 20): the end of the absence, and what was planned moved or removed, in one change."""

from __future__ import annotations

from typing import Any

import pytest

from coaching_service.core.errors import InvalidFields
from coaching_service.core.ids import ObjectId
from coaching_service.training import resuming
from coaching_service.training.resuming import ResumeMode
from coaching_service.training.schedule import service as schedule
from tests.support.check_ins import check_in, day
from tests.support.client import CoachClient
from tests.support.schedules import EVER, LAST_DAY, batch, without_identity
from tests.support.training import Json, block_with, client_path, log, task


async def absent(coach: CoachClient, customer: Json, first: str, until: str | None) -> Json:
    body = {"kind": "ill", "from": first, "until": until}
    period: Json = (await coach.post(client_path(customer, "availability"), body)).ok(201)
    return period


async def resume(coach: CoachClient, customer: Json, back: str, mode: str, **options: Any) -> Json:
    body = {"from": back, "mode": mode, **options}
    result: Json = (await coach.post(client_path(customer, "schedule/resume"), body)).ok()
    return result


async def calendar(coach: CoachClient, customer: Json) -> list[tuple[str, str]]:
    return [(block["date"], block["name"]) for block in await coach.calendar(customer, *EVER)]


async def plan(coach: CoachClient, customer: Json) -> Json:
    """A workout before, two in and one after the days 2 to 4; the second of the absence is done."""
    days = ((1, "A"), (2, "B"), (3, "C"), (6, "D"), (6, "E"))
    blocks = [{"name": name, "date": day(coach, number), "items": [task()]} for number, name in days]
    done = (await batch(coach, customer, *blocks))["created"][2]
    (await log(coach, done, done["items"][0])).ok()
    return await absent(coach, customer, day(coach, 2), None)


@pytest.mark.parametrize(("length", "moved_by"), [(1, 7), (7, 7), (8, 14)])
async def test_what_was_planned_moves_by_whole_weeks(coach: CoachClient, length: int, moved_by: int) -> None:
    ana = await coach.create_customer()
    await plan(coach, ana)
    back = day(coach, 2 + length)
    dry = await resume(coach, ana, back, "weeks", dryRun=True)
    result = await resume(coach, ana, back, "weeks")
    assert without_identity(result) == without_identity(dry)
    assert await calendar(coach, ana) == [
        (day(coach, 1), "A"),
        (day(coach, 3), "C"),
        *((day(coach, number + moved_by), name) for number, name in ((2, "B"), (6, "D"), (6, "E"))),
    ]
    assert result["availability"]["until"] == day(coach, 1 + length)


async def test_what_was_planned_moves_by_the_length_of_the_absence(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    period = await plan(coach, ana)
    before = await calendar(coach, ana)
    dry = await resume(coach, ana, day(coach, 5), "shift", dryRun=True)
    assert (await calendar(coach, ana), dry["changeId"], dry["dryRun"]) == (before, None, True)
    assert (await coach.get(client_path(ana, "availability"))).ok() == [period]

    result = await resume(coach, ana, day(coach, 5), "shift")
    assert without_identity(result) == without_identity(dry)
    moved = [
        (day(coach, 1), "A"),
        (day(coach, 3), "C"),
        (day(coach, 5), "B"),
        (day(coach, 9), "D"),
        (day(coach, 9), "E"),
    ]
    assert await calendar(coach, ana) == moved
    assert [(block["date"], block["name"], block["order"]) for block in result["changed"]] == [
        (day(coach, 5), "B", 0),
        (day(coach, 9), "D", 0),
        (day(coach, 9), "E", 1),
    ]
    assert result["changed"] == [each for each in await coach.calendar(ana, *EVER) if each["name"] in "BDE"]
    assert (result["created"], result["removed"], result["kept"]) == ([], [], 1)
    assert (result["availability"]["until"], result["availability"]["version"]) == (day(coach, 4), 1)

    (await coach.post(f"/coach/changes/{result['changeId']}/undo")).ok()
    assert await calendar(coach, ana) == before
    assert [each["until"] for each in (await coach.get(client_path(ana, "availability"))).ok()] == [None]


async def test_what_was_planned_is_removed(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    await plan(coach, ana)
    before = await calendar(coach, ana)
    dry = await resume(coach, ana, day(coach, 5), "drop", dryRun=True)
    result = await resume(coach, ana, day(coach, 5), "drop")
    assert without_identity(result) == without_identity(dry)
    assert (len(result["removed"]), result["kept"], result["changed"]) == (1, 1, [])
    assert await calendar(coach, ana) == [each for each in before if each[1] != "B"]
    (await coach.post(f"/coach/changes/{result['changeId']}/undo")).ok()
    assert await calendar(coach, ana) == before


@pytest.mark.parametrize(("until", "ends"), [(9, 4), (4, 4), (3, 3)])
async def test_an_absence_ends_before_the_first_day_of_training(coach: CoachClient, until: int, ends: int) -> None:
    """One that would last longer ends earlier, one that has ended stays; the length reaches to the first day."""
    ana = await coach.create_customer()
    await block_with(coach, ana, task(), date=day(coach, 2))
    await absent(coach, ana, day(coach, 2), day(coach, until))
    result = await resume(coach, ana, day(coach, 5), "shift")
    assert (result["availability"]["until"], result["changed"][0]["date"]) == (day(coach, ends), day(coach, 5))


async def test_check_ins_neither_move_nor_stay_away(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    await check_in(coach, ana, until=day(coach, 6))
    await absent(coach, ana, day(coach, 1), None)
    assert [each for each, _ in await calendar(coach, ana)] == [day(coach, 0)]
    await resume(coach, ana, day(coach, 5), "shift")
    assert [each for each, _ in await calendar(coach, ana)] == [day(coach, number) for number in (0, 5, 6)]


async def test_without_an_absence_there_is_nothing_to_resume(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    body = {"from": day(coach, 5), "mode": "drop"}
    path = client_path(ana, "schedule/resume")
    assert (await coach.post(path, body)).refused(409)["code"] == "NO_ABSENCE"
    await absent(coach, ana, day(coach, 5), None)
    assert (await coach.post(path, body)).refused(409)["code"] == "NO_ABSENCE"
    limited = {"kind": "limited", "from": day(coach, 1), "until": day(coach, 2)}
    (await coach.post(client_path(ana, "availability"), limited)).ok(201)
    assert (await coach.post(path, body)).refused(409)["code"] == "NO_ABSENCE"
    errors = (await coach.post(path, {"mode": "wait"})).refused(400)["errors"]
    assert {each["field"] for each in errors} == {"from", "mode"}


@pytest.mark.parametrize(("until", "mode"), [(None, "shift"), (4, "drop")])
async def test_a_client_returns_from_an_absence_once(coach: CoachClient, until: int | None, mode: str) -> None:
    """Until its dates change: what has been moved then is not moved again by a repeated request."""
    ana = await coach.create_customer()
    await block_with(coach, ana, task(), date=day(coach, 2), name="A")
    await block_with(coach, ana, task(), date=day(coach, 6), name="B")
    period = await absent(coach, ana, day(coach, 2), None if until is None else day(coach, until))
    before = await calendar(coach, ana)
    result = await resume(coach, ana, day(coach, 5), mode)
    after = await calendar(coach, ana)
    path, body = client_path(ana, "schedule/resume"), {"from": day(coach, 5), "mode": mode}
    for repeated in (body, {**body, "dryRun": True}, {**body, "from": day(coach, 7)}):
        assert (await coach.post(path, repeated)).refused(409)["code"] == "NO_ABSENCE"
    assert await calendar(coach, ana) == after

    (await coach.post(f"/coach/changes/{result['changeId']}/undo")).ok()
    assert await calendar(coach, ana) == before
    await resume(coach, ana, day(coach, 5), mode)
    assert await calendar(coach, ana) == after
    (await coach.patch(client_path(ana, "availability", period["_id"]), {"note": "Flu."})).ok()
    (await coach.post(path, body)).refused(409)
    (await coach.patch(client_path(ana, "availability", period["_id"]), {"until": day(coach, 5)})).ok()
    await resume(coach, ana, day(coach, 6), mode, dryRun=True)


async def test_return_without_a_mode_leaves_one_with_a_mode_possible(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    await block_with(coach, ana, task(), date=day(coach, 2))
    await absent(coach, ana, day(coach, 2), None)
    left = await resuming.resume(coach.ctx, ObjectId(ana["_id"]), day(coach, 5), None)
    assert (left["availability"]["until"], left["changed"]) == (day(coach, 4), [])
    assert (await resume(coach, ana, day(coach, 5), "shift", dryRun=True))["changed"]
    assert len((await resume(coach, ana, day(coach, 5), "drop"))["removed"]) == 1


async def test_only_what_was_planned_in_the_absence_is_removed(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    for number in (2, 3, 4):
        await block_with(coach, ana, task(), date=day(coach, number), name=str(number))
    await absent(coach, ana, day(coach, 2), day(coach, 3))
    await resume(coach, ana, day(coach, 6), "drop")
    assert [name for _, name in await calendar(coach, ana)] == ["4"]


@pytest.mark.parametrize(("back", "status"), [(17, 200), (18, 409)])
async def test_a_client_returned_long_ago_from_an_absence_that_ended_then(
    coach: CoachClient, back: int, status: int
) -> None:
    ana = await coach.create_customer()
    await absent(coach, ana, day(coach, 2), day(coach, 3))
    answer = await coach.post(client_path(ana, "schedule/resume"), {"from": day(coach, back), "mode": "drop"})
    assert answer.status == status


async def test_errors_name_the_field_of_the_request(coach: CoachClient, monkeypatch: pytest.MonkeyPatch) -> None:
    ana = await coach.create_customer()
    await absent(coach, ana, day(coach, 2), None)
    for date in (day(coach, 3), LAST_DAY):
        await block_with(coach, ana, task(), date=date)
    cases: tuple[tuple[ResumeMode, int], ...] = (("shift", 500), ("shift", 0), ("drop", 0))
    for mode, most in cases:
        monkeypatch.setattr(schedule, "MAX_BLOCKS", most)
        body = {"from": day(coach, 5), "mode": mode}
        errors = (await coach.post(client_path(ana, "schedule/resume"), body)).refused(400)["errors"]
        assert [each["field"] for each in errors] == ["from"]
        with pytest.raises(InvalidFields, match=r"^startDate "):
            await resuming.resume(coach.ctx, ObjectId(ana["_id"]), day(coach, 5), mode, field="startDate")
