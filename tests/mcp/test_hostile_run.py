"""A model that has everything the server sends to a model does nothing that a coach has to decide on."""

from __future__ import annotations

import os
import random

import pytest

from tests.mcp.hostile_run import SEED, TRIES, HostileModel, describe
from tests.mcp.hostile_world import create_world
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient
from tests.support.sampled import MORE

pytestmark = pytest.mark.usefixtures("wednesday")


async def test_a_hostile_model_stays_within_its_budget(mcp: McpHttpClient, coach: CoachClient) -> None:
    world = await create_world(coach)
    model = HostileModel(mcp, world, random.Random(int(os.environ.get(SEED, "7"))))
    await model.run(int(os.environ.get(TRIES, 34 * MORE)))
    measured = await world.measure()
    print(f"\n{describe(model, measured)}")

    assert {name: done for name, (done, allowed) in measured.items() if done > allowed} == {}
    assert measured["planned workouts removed or emptied"][0] > 0, "it does what it may, so that limits are reached"
    proposed = {reason for proposal in await world.find("proposals") for reason in proposal["reasons"]}
    assert proposed >= {
        *("CONTACT", "MANY_CLIENTS", "DONE_WORK", "PROGRAM_DAYS", "OTHERS_VALUE", "LOAD_RAISED", "MANY_REMOVED"),
        "UNUSUAL_AMOUNT",
    }
