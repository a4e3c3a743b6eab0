"""How many invitations a company sends, to whom, and who declines them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pymongo.errors import OperationFailure

from coaching_service.core.auth import Vault, new_master_key, parse_master_key
from coaching_service.core.database.context import Context, in_transaction
from coaching_service.core.errors import TooManyRequests
from coaching_service.core.ids import ObjectId
from coaching_service.people import customer_access, team
from coaching_service.settings import Settings
from tests.support.client import CoachClient


@pytest.fixture(autouse=True)
async def no_invitations(coach: CoachClient, no_failed_sign_ins: None) -> AsyncIterator[None]:
    """Remove hundreds of mails, for which those of later tests would wait; no invitation is counted yet."""
    yield
    await coach.ctx.db["jobs"].delete_many({"companyId": coach.ctx.company_id, "kind": "send_mail"})


def unique(coach: CoachClient) -> str:
    return f"ana.{ObjectId()}@{coach.ctx.company_id}.test"


async def due_times(coach: CoachClient) -> list[int]:
    """After how many minutes each queued mail of the company is due; those that are being sent are not counted."""
    jobs = coach.ctx.db["jobs"].find({"kind": "send_mail", "companyId": coach.ctx.company_id, "lease": None})
    now = datetime.now(UTC).replace(tzinfo=None)
    return sorted([round((job["runAfter"] - now).total_seconds() / 60) async for job in jobs if job["runAfter"] > now])


async def test_a_person_is_invited_at_most_once_in_ten_minutes_and_five_times_a_week(coach: CoachClient) -> None:
    """Several clients may share an address: their invitations follow one another, and the sixth is not sent."""
    email = unique(coach)
    clients = [await coach.create_customer(f"Client {n}", email=email) for n in range(7)]
    assert await due_times(coach) == [10, 20, 30, 40]

    reply = await coach.post(f"/coach/customers/{clients[0]['_id']}/invitation")
    reply.refused(429)
    assert int(reply.headers["Retry-After"]) > timedelta(days=6).total_seconds()


async def test_an_invitation_can_be_repeated_after_ten_minutes(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", email=unique(coach))
    path = f"/coach/customers/{ana['_id']}/invitation"
    reply = await coach.post(path)
    reply.refused(429)
    assert 0 < int(reply.headers["Retry-After"]) <= 600

    earlier = {"$set": {"sentAt": [datetime.now(UTC) - timedelta(minutes=11)]}}
    where = {"companyId": coach.ctx.company_id}
    await coach.ctx.db["invitationRecipients"].update_one(where, earlier)
    (await coach.post(path)).ok()
    (await coach.post(path)).refused(429)


async def test_a_new_company_sends_200_invitations_a_day(coach: CoachClient) -> None:
    await team.reserve_invitations(coach.ctx, [f"{number}.{unique(coach)}" for number in range(195)])
    people = [{"name": f"Client {n}", "email": f"{n}.{unique(coach)}", "sendInvitation": True} for n in range(5)]
    assert (await coach.post("/coach/customers/batch", {"customers": people})).ok()["created"] == 5
    one_more = {"name": "Ana", "email": unique(coach)}
    reply = await coach.post("/coach/customers", one_more)
    assert "200 invitations a day" in reply.refused(429)["message"]
    assert 0 < int(reply.headers["Retry-After"]) <= 86_400
    assert (await coach.customers(email=one_more["email"]))["totalDocs"] == 0, "nothing is created"
    (await coach.post("/coach/customers", one_more | {"sendInvitation": False})).ok(201)


async def test_an_older_company_has_the_limit_of_the_operator(coach: CoachClient) -> None:
    services = replace(coach.ctx.services, invitations_per_day=3)
    week_ago = ObjectId.from_datetime(datetime.now(UTC) - timedelta(days=8))
    company = replace(coach.ctx.caller.company, id=week_ago)
    ctx = replace(coach.ctx, services=services, principal=replace(coach.ctx.caller, company=company))
    await team.reserve_invitations(ctx, [unique(coach) for _ in range(3)])
    with pytest.raises(Exception, match="3 invitations a day"):
        await team.reserve_invitations(ctx, [unique(coach)])


async def test_invitations_that_are_refused_do_not_count(coach: CoachClient) -> None:
    ctx = replace(coach.ctx, services=replace(coach.ctx.services, invitations_per_day=3))
    await team.reserve_invitations(ctx, [unique(coach), unique(coach)])
    for _ in range(2):
        with pytest.raises(TooManyRequests):
            await team.reserve_invitations(ctx, [unique(coach), unique(coach)])
    assert await team.reserve_invitations(ctx, [unique(coach)]) == [timedelta(0)]


async def test_dry_runs_and_repeated_transactions_do_not_count(
    coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the invitations that are sent do."""
    monkeypatch.setattr(team, "FIRST_WEEK_PER_DAY", 3)
    person = {"name": "Ana", "email": unique(coach), "sendInvitation": True}
    batch = {"customers": [person, {**person, "name": "Bo", "email": unique(coach)}]}
    for dry_run in (True, True, False):
        (await coach.post("/coach/customers/batch", batch | {"dryRun": dry_run})).ok()
    path, new = "/coach/customers/by-external-id/crm:1", {**person, "name": "Cy", "email": unique(coach)}
    (await coach.put(path, new | {"dryRun": True})).ok()
    calls = 0

    async def collide_once(tx: Context) -> None:
        nonlocal calls
        calls += 1
        await team.reserve_invitations(tx, [unique(coach)])
        if calls == 1:
            raise OperationFailure("collided", details={"errorLabels": ["TransientTransactionError"]})

    await in_transaction(coach.ctx, collide_once)
    (await coach.put(path, new)).refused(429)
    assert calls == 2


async def test_a_person_who_declined_receives_no_invitation_of_that_company(
    coach: CoachClient, interactive: CoachClient, other_company: CoachClient, anonymous: CoachClient
) -> None:
    email = unique(coach)
    ana = await coach.create_customer("Ana", email=email)
    token = team.decline_link(coach.ctx, email).partition("token=")[2]
    await customer_access.decline(anonymous_context(coach), token)

    refused = (await coach.post(f"/coach/customers/{ana['_id']}/invitation")).refused(409)
    assert refused["code"] == "INVITATION_DECLINED"
    await coach.ctx.db["jobs"].delete_many({"companyId": coach.ctx.company_id})
    await coach.create_customer("Ana again", email=email.upper())
    (await interactive.post("/coach/employees", {"name": "Ana", "email": email})).refused(409)
    jobs = await coach.ctx.db["jobs"].count_documents({"companyId": coach.ctx.company_id, "kind": "send_mail"})
    assert jobs == 0
    bo = await other_company.create_customer("Bo", email=email, sendInvitation=False)
    (await other_company.post(f"/coach/customers/{bo['_id']}/invitation")).ok()


def anonymous_context(coach: CoachClient) -> Context:
    return Context(coach.ctx.services)


async def test_a_declined_address_is_known_after_a_rotation_of_keys(coach: CoachClient, settings: Settings) -> None:
    email = unique(coach)
    await customer_access.decline(anonymous_context(coach), team.decline_link(coach.ctx, email).partition("token=")[2])
    assert await team.reserve_invitations(with_new_key(coach, settings), [email]) == [None]


async def test_invitations_before_a_rotation_of_keys_count_after_it(coach: CoachClient, settings: Settings) -> None:
    emails = [unique(coach) for _ in range(8)]
    await team.reserve_invitations(coach.ctx, emails)
    rotated = with_new_key(coach, settings)
    for minutes in (10, 20, 30):
        delays = await team.reserve_invitations(rotated, emails)
        assert [each and round(each / timedelta(minutes=1)) for each in delays] == [minutes] * len(emails)


async def test_invitations_that_are_not_sent_do_not_count(coach: CoachClient) -> None:
    ctx = replace(coach.ctx, services=replace(coach.ctx.services, invitations_per_day=2))
    declined = unique(coach)
    await customer_access.decline(anonymous_context(coach), team.decline_link(ctx, declined).partition("token=")[2])
    assert await team.reserve_invitations(ctx, [declined] * 3) == [None] * 3
    assert await team.reserve_invitations(ctx, [declined, unique(coach), unique(coach)]) == [
        None,
        timedelta(0),
        timedelta(0),
    ]


def with_new_key(coach: CoachClient, settings: Settings) -> Context:
    """The context of the owner after the service has got another master key."""
    keys = [parse_master_key(text) for text in (new_master_key(), *settings.secret_keys)]
    return replace(coach.ctx, services=replace(coach.ctx.services, vault=Vault(keys)))
