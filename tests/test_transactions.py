"""Changes that collide: tried again, and not for ever."""

from __future__ import annotations

import asyncio

import pytest

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import Unavailable
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service as customers
from tests.client import CoachClient


async def test_a_change_waits_for_the_one_it_collides_with_and_gives_up_in_time(coach: CoachClient) -> None:
    ana = ObjectId((await coach.create_customer("Ana"))["_id"])
    holding, let_go = asyncio.Event(), asyncio.Event()

    async def hold(tx: Context) -> None:
        await customers.one_at_a_time(tx, ana)
        holding.set()
        await let_go.wait()

    async def collide(tx: Context) -> None:
        await customers.one_at_a_time(tx, ana)

    held = asyncio.create_task(in_transaction(coach.ctx, hold))
    await holding.wait()
    with pytest.raises(Unavailable):
        await in_transaction(coach.ctx, collide, patience=0.2)
    patient = asyncio.create_task(in_transaction(coach.ctx, collide))
    let_go.set()
    await held
    await patient
