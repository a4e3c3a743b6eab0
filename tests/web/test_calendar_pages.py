"""The calendar of a client as the coach sees it: what became of each day, by week and by month."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import date, timedelta

import pytest

from tests.support import training
from tests.support.client import MONDAY, TUESDAY, CoachClient
from tests.support.figures import renew_figures
from tests.support.results import completed_sets
from tests.support.training import Json, block_with, client_path, exercise_of, form_of, log, task
from tests.support.visitor import Visitor


async def test_days_tell_planned_done_partly_done_and_missed_apart(coach: CoachClient, owner_page: Visitor) -> None:
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise("Squat")
    today = coach.ctx.caller.today()
    dates = {name: str(today + timedelta(days=days)) for name, days in (("missed", -1), ("planned", 8))}
    for day in dates.values():
        block = await coach.schedule(ana, date=day)
        path = f"/coach/customers/{ana['_id']}/wblocks/{block['_id']}/witems"
        (await coach.post(path, training.exercise_of(squat))).ok(201)
    week = f"/app/customers/{ana['_id']}?week="
    assert 'class="block missed"' in (await owner_page.get(week + dates["missed"])).html
    assert 'class="block planned"' in (await owner_page.get(week + dates["planned"])).html

    done = await training.block_with(coach, ana, training.exercise_of(squat), training.task())
    (await training.log(coach, done, done["items"][1])).ok()
    page = await owner_page.get(week + MONDAY)
    assert 'class="block part"' in page.html
    page.says("Partly done", "Mon 2 Mar 2026: Partly done", "Tue 3 Mar 2026: nothing planned")
    (await training.log(coach, done, done["items"][0])).ok()
    assert 'class="block done"' in (await owner_page.get(week + MONDAY)).html


async def test_month_has_every_workout_and_links_to_its_week(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    block = await coach.schedule(ana)
    base = f"/app/customers/{ana['_id']}"
    page = await owner_page.get(f"{base}/month?month=2026-03")
    page.ok().says("March 2026", str(block["name"]))
    assert {f"{base}/blocks/{block['_id']}", f"{base}?week=2026-03-02#day-2026-03-02"} <= set(page.links)
    assert {f"{base}/month?month=2026-02", f"{base}/month?month=2026-04"} <= set(page.links)
    for wrong in ("2026-13", "x", "0001-01"):
        (await owner_page.get(f"{base}/month?month={wrong}")).ok()


async def test_workout_is_moved_to_a_position_of_another_day(coach: CoachClient, owner_page: Visitor) -> None:
    ana = await coach.create_customer("Ana")
    legs = await coach.schedule(ana, name="Legs")
    for name in ("Arms", "Core"):
        await coach.schedule(ana, name=name, date=TUESDAY)
    base = f"/app/customers/{ana['_id']}"
    page = await owner_page.get(f"{base}?week={MONDAY}")

    wrong = await owner_page.submit(page, f"{base}/blocks/{legs['_id']}/move", date="", place="x")
    wrong.ok(400).says("Position: This must be a whole number.")
    moved = await owner_page.submit(page, f"{base}/blocks/{legs['_id']}/move", date=TUESDAY, place="2")

    moved.ok().says("Legs moved to Tue 3 Mar 2026.", "Undo")
    listed = (await coach.get(f"/coach/customers/{ana['_id']}/wblock", startDate=MONDAY, endDate=TUESDAY)).ok()
    assert [block["name"] for block in listed] == ["Arms", "Legs", "Core"]


async def _half_done(coach: CoachClient, ana: Json, at: str) -> None:
    """One set of two is done, so that no item is complete."""
    block = await block_with(coach, ana, exercise_of(await coach.create_exercise()), date=at)
    (await log(coach, block, block["items"][0], isCompleted=False, customerSets=completed_sets((8, 60)))).ok()


async def _done_with_open_form(coach: CoachClient, ana: Json, at: str) -> None:
    block = await block_with(coach, ana, task(), date=at)
    (await log(coach, block, block["items"][0])).ok()
    await block_with(coach, ana, form_of(), date=at)


async def _one_of_two(coach: CoachClient, ana: Json, at: str) -> None:
    block = await block_with(coach, ana, task(), date=at)
    (await log(coach, block, block["items"][0])).ok()
    await block_with(coach, ana, task(), date=at)


async def _only_form(coach: CoachClient, ana: Json, at: str) -> None:
    await block_with(coach, ana, form_of(), date=at)


@pytest.mark.parametrize(
    ("create", "words", "rate"),
    [
        (_half_done, "partly done", 0),
        (_done_with_open_form, "done", 100),
        (_one_of_two, "partly done", 0),
        (_only_form, "nothing", None),
    ],
)
async def test_a_day_has_one_state_everywhere(
    coach: CoachClient,
    owner_page: Visitor,
    create: Callable[[CoachClient, Json, str], Awaitable[None]],
    words: str,
    rate: float | None,
) -> None:
    ana = await coach.create_customer()
    at: date = coach.ctx.caller.today() - timedelta(days=1)
    await create(coach, ana, str(at))

    await renew_figures(coach.ctx)
    assert (await coach.get(client_path(ana))).ok()["customerRoleData"]["complianceRate7d"] == rate
    said = f"{at:%a} {at.day} {at:%b}"
    (await owner_page.get("/app/customers")).ok().says(f"{said}: {words}")
    in_calendar = {"partly done": "Partly done", "done": "Done", "nothing": "nothing planned"}[words]
    week = await owner_page.get(f"/app/customers/{ana['_id']}?week={at}")
    week.ok().says(f"{said} {at.year}: {in_calendar}")
    in_chart = {"partly done": "partly completed", "done": "completed", "nothing": "nothing scheduled"}[words]
    assert f": {in_chart}</title>" in (await owner_page.get(f"/app/customers/{ana['_id']}/progress")).ok().html
