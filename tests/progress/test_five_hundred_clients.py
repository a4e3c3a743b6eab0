"""The questions of a coach with 500 clients are one request for every 100 entries of the answer."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any

import pytest

from coaching_service.core.database.context import in_transaction
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import batch
from coaching_service.people.customers.models import NewCustomerDocument
from tests.conftest import NewCompany
from tests.support.client import CoachClient
from tests.support.figures import renew_figures
from tests.support.sampled import proof
from tests.support.service_process import until
from tests.support.training import Json, block_with, log, task

CLIENTS = 500
FORM: Json = {"type": "FORM", "form": {"name": "Check-in", "questions": [{"label": "Sleep?", "type": "number"}]}}


@pytest.fixture
async def coach(new_company: NewCompany) -> CoachClient:
    """A company with 500 clients, each with workouts of the last days, and with renewed figures.

    Every fifth has not trained for 12 days. Every tenth, from the second on, did one of three workouts. Every fourth has
    a check-in that is pending.
    """
    coach = await new_company()
    (await coach.patch("/coach/account", {"attention": {"inactiveDays": 10}})).ok()
    example = await coach.create_customer("Example")
    blocks = [await block_with(coach, example, item) for item in (task(), task(), FORM)]
    (await log(coach, blocks[0], blocks[0]["items"][0])).ok()
    collection = coach.ctx.db["workoutBlocks"]
    done, missed, pending = [await collection.find_one({"_id": ObjectId(block["_id"])}) for block in blocks]
    assert done is not None
    assert missed is not None
    assert pending is not None
    (await coach.delete(f"/coach/customers/{example['_id']}")).ok(204)

    documents = [_document(number) for number in range(CLIENTS)]
    await in_transaction(coach.ctx, lambda tx: batch.add_many(tx, documents))
    new: list[Json] = []
    for number, document in enumerate(documents):
        scheduled: list[tuple[Json, int]] = [(done, 12 if number % 5 == 0 else 1)]
        scheduled += [(missed, 2), (missed, 3)] if number % 10 == 1 else []
        scheduled += [(pending, 4)] if number % 4 == 0 else []
        new += [_copy(block, document, str(coach.ctx.caller.today() - timedelta(days=ago))) for block, ago in scheduled]
    await collection.insert_many(new)
    await coach.ctx.db["customers"].update_many(
        {"companyId": coach.ctx.company_id},
        {"$set": {"figuresUntil": datetime(2000, 1, 1)}},  # noqa: DTZ001 - stored times are UTC without a time zone
    )
    await renew_figures(coach.ctx)
    return coach


def _document(number: int) -> NewCustomerDocument:
    document = batch.build_document({"name": f"Client {number:03}"}, f"token {ObjectId()}", sample=True)
    document["_id"] = ObjectId()
    return document


def _copy(block: Json, customer: NewCustomerDocument, date: str) -> Json:
    """A workout block like another one, of another client and date."""
    items = [{**item, "_id": ObjectId()} for item in block["items"]]
    return {**block, "_id": ObjectId(), "customerId": customer["_id"], "date": date, "items": items}


async def ask(coach: CoachClient, path: str, **query: Any) -> list[Json]:
    """Every entry of an answer; there is one request for every 100 of them."""
    entries: list[Json] = []
    requests, cursor = 0, None
    while cursor is not None or not requests:
        following: dict[str, str] = {"after": cursor} if cursor else {}
        part = (await coach.get(path, limit=100, **query, **following)).ok()
        entries += part["docs"]
        requests, cursor = requests + 1, part["nextCursor"]
    assert requests == max(1, math.ceil(len(entries) / 100))
    return entries


def names(numbers: range) -> list[str]:
    return [f"Client {number:03}" for number in numbers]


@proof
async def test_questions_about_500_clients(coach: CoachClient) -> None:
    yesterday = (now() - timedelta(days=1)).isoformat() + "Z"

    not_training = await ask(coach, "/coach/attention", reason="inactive")
    assert sorted(each["customer"]["name"] for each in not_training) == names(range(0, CLIENTS, 5))

    below = await ask(coach, "/coach/compliance", period=30, below=60, sort="name")
    expected = names(range(1, CLIENTS, 10))
    assert [each["name"] for each in below] == expected, "an unanswered form is no workout"

    pending = await ask(coach, "/coach/form-requests")
    assert sorted(each["customer"]["name"] for each in pending) == names(range(0, CLIENTS, 4))

    selection = {"filter": {"archived": False}, "groups": ["Winter"]}
    assert (await coach.post("/coach/customers/bulk/groups-add", selection)).ok()["ok"] == CLIENTS

    async def changes_of_groups() -> bool:
        """Whether every change of groups is numbered: only then it is listed."""
        changes = await ask(coach, "/coach/changes", since=yesterday)
        return len([each for each in changes if each["operation"] == "bulkAddGroups"]) == CLIENTS

    await until(changes_of_groups, "the changes of all clients are listed")
    feed = await ask(coach, "/coach/activity-feed", since=yesterday)
    assert feed == [], "changes of groups are not activity"
    listed = await ask(coach, "/coach/attention")
    assert len(listed) == CLIENTS
    assert [each["score"] for each in listed] == sorted((each["score"] for each in listed), reverse=True)
