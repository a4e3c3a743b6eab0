"""One of everything a path can name, in one company."""

from __future__ import annotations

from tests.client import CoachClient

World = dict[str, str]


async def make_world(coach: CoachClient) -> World:
    """Create one of each resource; gives their identifiers by path parameter."""
    customer = await coach.create_customer()
    exercise = await coach.create_exercise()
    block = await coach.schedule(customer)
    path = f"/coach/customers/{customer['_id']}/wblocks/{block['_id']}/witems"
    item = (await coach.post(path, {"type": "TASK", "taskFields": {"title": "Walk"}})).ok(201)
    return {
        "customerId": customer["_id"],
        "exerciseId": exercise["_id"],
        "wblockId": block["_id"],
        "witemId": item["_id"],
    }
