"""A process that is killed within a change leaves all of it or nothing: also what follows from it in other features."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from coaching_service.core.ids import ObjectId
from tests.support.client import MONDAY, CoachClient
from tests.support.database_proxy import Moment
from tests.support.other_process import running
from tests.support.own_application import OwnApplication
from tests.support.training import path_of, task

FUTURE = datetime(2100, 1, 1)  # noqa: DTZ001 - stored times are UTC without a time zone


@pytest.mark.parametrize(
    ("moment", "is_stored"),
    [
        (Moment("findAndModify", "customers", done=True), False),
        (Moment("findAndModify", "workoutBlocks", done=True), False),
        (Moment("commitTransaction", of="workoutBlocks"), False),
        (Moment("commitTransaction", done=True, of="workoutBlocks"), True),
    ],
    ids=["between figures and item", "after the item", "before the commit", "after the commit"],
)
async def test_item_is_stored_together_with_the_mark_that_renews_the_figures(
    application: OwnApplication, coach: CoachClient, tmp_path: Path, moment: Moment, *, is_stored: bool
) -> None:
    ana = await coach.create_customer()
    block = await coach.schedule(ana, MONDAY)
    customers, where = coach.ctx.db["customers"], {"_id": ObjectId(ana["_id"])}
    async with running(application.settings, coach.key, tmp_path) as other:
        await customers.update_one(where, {"$set": {"figuresChangedAt": FUTURE}})
        other.proxy.wait_for(moment, other.kill)
        assert await other.send("POST", f"{path_of(block)}/witems", json=task()) is None
        assert other.proxy.reached.is_set()
    stored = await customers.find_one(where)
    [after] = await coach.calendar(ana, MONDAY, MONDAY)
    assert stored is not None
    assert len(after["items"]) == is_stored
    assert (stored.get("figuresChangedAt") != FUTURE) is is_stored
