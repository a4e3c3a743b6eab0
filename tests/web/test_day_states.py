"""The state of a day of a client: the same in the calendar, the last seven days, the chart and compliance."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import date, timedelta

import pytest

from tests.support.client import CoachClient
from tests.support.figures import renew_figures
from tests.support.results import completed_sets
from tests.support.training import Json, block_with, client_path, exercise_of, form_of, log, task
from tests.support.visitor import Visitor


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
