"""What goes out to coaches (mail and devices) tells none of them what is of an area that they may not see."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, get_args

import pytest
from aiohttp.test_utils import TestServer

from coaching_service import features
from coaching_service.core.auth import ALL_PERMISSIONS, AREAS, CUSTOMERS, FORMS, Area
from coaching_service.core.ids import ObjectId
from coaching_service.people import team
from coaching_service.people.notification_settings import Kind
from coaching_service.people.notifications import Message
from tests.support.attention import FORM, days_ago, renew
from tests.support.client import CoachClient
from tests.support.mcp_client import McpHttpClient, propose_invitation
from tests.support.training import block_with, client_path, task

# By hand: the kinds that coaches receive; the others go to the client whose data they are about.
OF_COACHES: tuple[Kind, ...] = ("messages", "digest", "proposals")
OF_CLIENTS: tuple[Kind, ...] = ("reminders", "workouts", "checkIns")
# What a text of the area would say: names of the client, and of the check-in that is overdue.
WORDS: dict[Area, tuple[str, ...]] = {CUSTOMERS: ("Zoe", "Zuckerman", "health note", "1 client"), FORMS: ("check-in",)}


@pytest.fixture
async def mcp(public_server: TestServer, coach: CoachClient) -> AsyncIterator[McpHttpClient]:
    """POSTs to /mcp with the coach's key."""
    async with McpHttpClient(public_server, {"X-API-Key": coach.key or ""}) as client:
        yield client


def test_each_kind_is_of_coaches_or_of_clients() -> None:
    """A new kind, or another source of texts, has to be added here."""
    assert sorted((*OF_COACHES, *OF_CLIENTS)) == sorted(get_args(Kind)) == sorted(features.NOTIFICATIONS)


async def test_texts_to_a_colleague_without_an_area_tell_nothing_of_it(coach: CoachClient, mcp: McpHttpClient) -> None:
    """One colleague without each area; the owner reads all of it, so that the words are the right ones."""
    zoe = await coach.create_customer("Zoe", surname="Zuckerman")
    (await coach.post(client_path(zoe, "notes"), {"content": "Knee", "isHealth": True})).ok(201)
    await block_with(coach, zoe, task(), date=days_ago(coach, 0))
    await block_with(coach, zoe, FORM, date=days_ago(coach, 2))
    (await (await coach.as_client(zoe)).post("/customer/messages", {"text": "Secret words"})).ok(201)
    await propose_invitation(mcp, coach, "Bo")
    await renew(coach)
    readers: dict[Area | None, ObjectId] = {None: coach.ctx.caller.id}
    for area in AREAS:
        granted = [each for each in ALL_PERMISSIONS if not each.startswith(f"{area.name}.")]
        email = f"without-{area.name}-{ObjectId()}@example.com"
        readers[area] = (await team.create(coach.ctx, "Eli", email, granted, "all", "no hash"))["_id"]
    stored: list[Any] = await coach.ctx.db["notifications"].find({"companyId": coach.ctx.company_id}).to_list(None)
    due = {each["kind"]: each for each in stored if each["recipient"]["_id"] == coach.ctx.caller.id}
    assert set(due) == set(OF_COACHES)

    said: dict[Area | None, str] = {}
    for without, reader in readers.items():
        trainer = {"$set": {"customerRoleData.assignedTo": reader}}
        await coach.ctx.db["customers"].update_one({"_id": ObjectId(zoe["_id"])}, trainer)
        texts = []
        for kind in OF_COACHES:
            notification = {**due[kind], "recipient": {"type": "coach", "_id": reader}, "channels": ["push"]}
            message = await features.NOTIFICATIONS[kind](coach.ctx, notification)  # type: ignore[arg-type]  # a copy
            texts.append(str(message) if isinstance(message, Message) else "")
        said[without] = " ".join(texts)
    for area, words in WORDS.items():
        assert [word for word in words if word not in said[None]] == [], "the owner reads it"
        assert [word for word in words if word in said[area]] == [], area
    for without, text in said.items():
        assert "Secret" not in text, without
        assert without in (CUSTOMERS, None) or "Zuckerman" in text, "the other areas do not hide the client"
