"""ARCHIVED_RETENTION_MONTHS: who is archived for longer is announced to the owner by mail, and erased 30 days later."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.message import Message
from io import BytesIO
from zipfile import ZipFile

import pytest
import time_machine
from aiohttp.test_utils import TestServer
from aiosmtpd.smtp import SMTP

from coaching_service import features
from coaching_service.app import create_app
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.dates import add_months
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import worker
from coaching_service.core.jobs.queue import Job
from coaching_service.core.metrics import Metrics
from coaching_service.lifecycle.administration import Operator
from coaching_service.people import account
from coaching_service.people.customers import batch, bulk, retention
from coaching_service.people.customers import service as customers
from coaching_service.settings import Settings
from coaching_service.web.views.history import describe_operation
from tests.conftest import PASSWORD
from tests.support.client import CoachClient
from tests.support.companies import create_company
from tests.support.databases import new_database, remove_documents
from tests.support.mail_servers import Mailbox, RejectsRecipient, listening, sending_to
from tests.support.mails import read_mail
from tests.support.visitor import Visitor

JOB = Job(ObjectId(), {}, 1)
STEPS = {retention.ERASE: features.STEPS[retention.ERASE]}
DUE = {"$set": {"runAfter": datetime(2020, 1, 1)}}  # noqa: DTZ001 - stored times are UTC without a time zone


@pytest.fixture(scope="module")
async def database(settings: Settings) -> AsyncIterator[Services]:
    own = settings.model_copy(update={"smtp_host": "127.0.0.1", "smtp_encryption": "none"})
    async with new_database(own, "retention") as (_, services):
        yield services


@pytest.fixture
async def mailbox() -> AsyncIterator[tuple[Mailbox, int]]:
    received = Mailbox()
    async with listening(lambda: SMTP(received)) as port:
        yield received, port


@pytest.fixture
async def retaining(database: Services, mailbox: tuple[Mailbox, int]) -> Services:
    """Services that erase who is archived for longer than two months, on an empty database."""
    await remove_documents(database.db, but_of=["indexState"])
    return replace(sending_to(database, port=mailbox[1]), archived_retention_months=2)


async def company(services: Services, password_hash: str, timezone: str = "Europe/Madrid") -> Context:
    made = await create_company(services, password_hash, timezone=timezone)
    return Context(services).acting_as(replace(made.owner, via="session"))


async def archived(ctx: Context, *names: str) -> list[ObjectId]:
    ids = [(await batch.create_customer(ctx, {"name": name}))["_id"] for name in names]
    await bulk.set_archived(ctx, ids, archived=True)
    return ids


async def work(services: Services, at: str | datetime) -> None:
    """Do what the service does every hour."""
    with time_machine.travel(at, tick=True):
        await work_now(services)


async def work_now(services: Services) -> None:
    await services.db["jobs"].update_many({"kind": retention.ERASE}, DUE)
    await retention.queue_due(services, JOB)
    await worker.run_due(services, STEPS)


async def left(services: Services, ids: list[ObjectId]) -> list[ObjectId]:
    return [each["_id"] async for each in services.db["customers"].find({"_id": {"$in": ids}}, sort=[("_id", 1)])]


def announced(mail: Message, services: Services) -> tuple[str, list[str]]:
    """The subject of a mail and the identifiers of the clients whom it links to."""
    links = read_mail(mail, services.base_url).links
    return mail["Subject"], [link.split("/")[-2] for link in links if link.endswith("/details")]


def test_months_end_on_the_last_day_of_a_short_one() -> None:
    days = {
        (datetime(2031, 1, 31, tzinfo=UTC), 1): "2031-02-28",
        (datetime(2032, 1, 31, tzinfo=UTC), 1): "2032-02-29",
        (datetime(2031, 12, 31, tzinfo=UTC), 2): "2032-02-29",
        (datetime(2031, 3, 31, tzinfo=UTC), -1): "2031-02-28",
        (datetime(2032, 2, 29, tzinfo=UTC), 12): "2033-02-28",
        (datetime(2031, 11, 30, tzinfo=UTC), 1): "2031-12-30",
    }
    assert {key: str(add_months(key[0].date(), key[1])) for key in days} == days


async def test_erasure_is_announced_30_days_before(
    retaining: Services, password_hash: str, mailbox: tuple[Mailbox, int]
) -> None:
    """Archived on 31 January in Madrid, where it is already 1 February in Tokyo; the clocks change in between."""
    with time_machine.travel("2031-01-31T22:30:00+00:00", tick=True):
        madrid = await company(retaining, password_hash)
        tokyo = await company(retaining, password_hash, "Asia/Tokyo")
        ana, bo, cy, dan = await archived(madrid, "Ana Example", "Bo", "Cy", "Dan")
        [eva] = await archived(tokyo, "Eva")
    with time_machine.travel("2031-02-20T12:00:00+00:00", tick=True):
        await customers.set_archived(madrid, cy, archived=False)
        await customers.set_archived(madrid, dan, archived=False)
        await customers.set_archived(madrid, dan, archived=True)
    received, everyone = mailbox[0], [ana, bo, cy, dan, eva]

    await work(retaining, "2031-03-01T22:55:00+00:00")
    assert received.mails == []
    for at in ("2031-03-01T23:05:00+00:00", "2031-03-02T00:05:00+00:00", "2031-03-02T14:55:00+00:00"):
        await work(retaining, at)
        [mail] = received.mails
    assert announced(mail, retaining) == ("2 archived clients will be erased on 1 April 2031", [str(ana), str(bo)])
    assert mail["To"] == madrid.caller.email
    assert "kept for 2 months after they were archived" in read_mail(mail, retaining.base_url).text
    assert "Ana Example: http://coaching.test/app/customers/" in read_mail(mail, retaining.base_url).text
    await work(retaining, "2031-03-02T15:05:00+00:00")
    assert announced(received.mails[1], retaining) == ("1 archived client will be erased on 2 April 2031", [str(eva)])

    for at in ("2031-03-12T10:00:00+00:00", "2031-03-30T23:05:00+00:00", "2031-03-31T23:04:00+00:00"):
        await work(retaining, at)
        assert await left(retaining, everyone) == everyone
    await work(retaining, "2031-03-31T23:06:00+00:00")
    assert await left(retaining, everyone) == [cy, dan, eva]
    await work(retaining, "2031-04-01T15:06:00+00:00")
    assert await left(retaining, everyone) == [cy, dan]
    assert len(received.mails) == 3, "Dan was archived again on 20 February"
    assert announced(received.mails[2], retaining)[1] == [str(dan)]

    erased = retaining.db["audit"].find({"action": "client.erased", "companyId": madrid.company_id})
    entries = await erased.to_list(None)
    assert {each["target"]["_id"] for each in entries} == {ana, bo}
    assert {(each["actor"]["type"], each["via"]) for each in entries} == {("system", "system")}
    changes = await retaining.db["changes"].distinct(
        "operation", {"actor.type": "system", "companyId": madrid.company_id}
    )
    assert [describe_operation(each) for each in changes] == ["Archived clients deleted"], "as the history says"
    listed = await retaining.db["erasures"].find({"erasedCompanyId": madrid.company_id}).to_list(None)
    assert [{*each["erasedCustomerIds"]} for each in listed] == [{ana, bo}]
    rest = {"kind": "erase_customer", "arguments.customerId": {"$in": everyone}}
    assert await retaining.db["jobs"].count_documents(rest) == 3, "the ordinary erasure"
    counts = await retaining.db["customerTotals"].find({"companyId": madrid.company_id}).to_list(None)
    assert sum(each.get("archived", 0) for each in counts) == 1


async def test_no_one_is_erased_who_was_not_announced_30_days_before(
    retaining: Services, password_hash: str, mailbox: tuple[Mailbox, int]
) -> None:
    """A refused mail, a shorter time, a service that was down, and clients who were archived before all this."""
    received = mailbox[0]
    with time_machine.travel("2031-01-10T12:00:00+00:00", tick=True):
        ctx = await company(retaining, password_hash)
        ids = await archived(ctx, "Ana", "Bo")
    await retaining.db["customers"].update_one({"_id": ids[1]}, {"$unset": {"archivedAt": ""}})
    never = replace(retaining, archived_retention_months=0)
    await work(never, "2031-01-12T12:00:00+00:00")
    await work(never, "2040-01-12T12:00:00+00:00")
    await work(replace(retaining, archived_retention_months=24), "2031-03-12T12:00:00+00:00")
    assert (received.tries, await left(retaining, ids)) == (0, ids)

    # A shorter time, after which both have been archived for long.
    received.responses = ["451 later"]
    await work(retaining, "2032-05-01T12:00:00+00:00")
    assert (received.tries, received.mails) == (1, [])
    await work(retaining, "2032-06-02T12:00:00+00:00")
    assert len(received.mails) == 1
    await work(retaining, "2032-07-01T11:59:00+00:00")
    assert await left(retaining, ids) == ids, "29 days after the mail that was accepted"
    # The service is down until eight days after the time that was named: the owner may have forgotten it.
    await work(retaining, "2032-07-10T13:00:00+00:00")
    assert (len(received.mails), await left(retaining, ids)) == (2, ids)
    # A longer time, which Ana's archiving does not reach yet: she is announced again when it does.
    await work(replace(retaining, archived_retention_months=24), "2032-08-11T12:00:00+00:00")
    assert (len(received.mails), await left(retaining, ids)) == (2, ids)
    await work(replace(retaining, archived_retention_months=24), "2032-12-12T12:00:00+00:00")
    assert [announced(each, retaining)[1] for each in received.mails[2:]] == [[str(ids[0])]]
    await work(replace(retaining, archived_retention_months=24), "2033-01-11T12:01:00+00:00")
    assert await left(retaining, ids) == ids[1:]


async def test_company_that_is_suspended_and_owner_without_mail(
    retaining: Services, password_hash: str, mailbox: tuple[Mailbox, int]
) -> None:
    """The owner always has 30 days in which a client can be restored."""
    received, operator = mailbox[0], Operator(retaining, "root")
    with time_machine.travel("2031-01-10T12:00:00+00:00", tick=True):
        ctx = await company(retaining, password_hash)
        ids = await archived(ctx, "Ana")
    companies = retaining.db["companies"]
    await companies.update_one({"_id": ctx.company_id}, {"$set": {"holdsMail": True}})
    await work(retaining, "2031-03-10T12:00:00+00:00")
    assert (received.tries, await left(retaining, ids)) == (0, ids)
    await companies.update_one({"_id": ctx.company_id}, {"$unset": {"holdsMail": ""}})
    await work(retaining, "2031-03-11T12:00:00+00:00")
    assert received.tries == 1
    await account.suspend(await operator.acting_in(ctx.company_id), "unpaid")
    await work(retaining, "2031-04-12T12:00:00+00:00")
    assert (received.tries, await left(retaining, ids)) == (1, ids)
    with time_machine.travel("2031-04-12T12:30:00+00:00", tick=True):
        await account.resume(await operator.acting_in(ctx.company_id))
    await work(retaining, "2031-04-12T13:00:00+00:00")
    assert (received.tries, await left(retaining, ids)) == (2, ids)

    async with listening(lambda: SMTP(RejectsRecipient())) as port:
        await retention.withdraw_all_announcements(retaining)  # as the restoration of a backup does
        await work(sending_to(retaining, port=port), "2031-04-13T12:00:00+00:00")
    [job] = await retaining.db["jobs"].find({"kind": retention.ERASE}).to_list(None)
    assert job["runAfter"] > now() + timedelta(hours=23), "an address that is refused is tried once a day"
    await work(retaining, "2031-05-12T14:00:00+00:00")
    assert (received.tries, await left(retaining, ids)) == (3, ids)


async def test_two_processes_at_the_same_moment(
    retaining: Services, password_hash: str, mailbox: tuple[Mailbox, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each in one mail; and a client who is restored at the moment of the erasure is there with all data, or gone."""
    monkeypatch.setattr(retention, "_ANNOUNCED_TOGETHER", 5)
    monkeypatch.setattr(retention, "_ERASED_TOGETHER", 3)
    with time_machine.travel("2031-01-10T12:00:00+00:00", tick=True):
        ctx = await company(retaining, password_hash)
        ids = await archived(ctx, *"ABCDEFGH")
    other = replace(retaining, metrics=Metrics())
    with time_machine.travel("2031-03-12T12:00:00+00:00", tick=True):
        await asyncio.gather(*map(work_now, (retaining, other)))
    first, second = (announced(mail, retaining)[1] for mail in mailbox[0].mails)
    assert [*first, *second] == [str(each) for each in ids]

    async def restore(customer_id: ObjectId) -> ObjectId | None:
        try:
            return (await customers.set_archived(ctx, customer_id, archived=False))["_id"]
        except NotFound:
            return None

    with time_machine.travel("2031-04-11T12:01:00+00:00", tick=True):
        restoring = asyncio.gather(*map(restore, ids[:4]))
        await asyncio.gather(*map(work_now, (retaining, other)))
        restored = [each for each in await restoring if each is not None]
    assert await left(retaining, ids) == sorted(restored)
    listed = await retaining.db["erasures"].find({"erasedCompanyId": ctx.company_id}).to_list(None)
    erased = [each for tombstone in listed for each in tombstone["erasedCustomerIds"]]
    assert sorted(erased) == sorted({*ids} - {*restored}), "each once"


async def test_every_way_into_and_out_of_the_archive_is_noticed(coach: CoachClient) -> None:
    """Single, changed, in bulk, created, and undone; neither shown by REST, nor in an export."""
    created = [await coach.create_customer(name) for name in ("Ana", "Bo", "Cy")]
    ids = [each["_id"] for each in created]

    async def since() -> list[bool]:
        found = coach.ctx.db["customers"].find({"_id": {"$in": [*map(ObjectId, ids)]}}, sort=[("_id", 1)])
        return ["archivedAt" in each for each in await found.to_list(None)]

    (await coach.put("/coach/customers/archive", {"id": ids[0]})).ok()
    for path in ("/coach/export", f"/coach/customers/{ids[0]}/export"):
        with ZipFile(BytesIO((await coach.get(path)).raw)) as archive:
            assert not any(b"archivedAt" in archive.read(name) for name in archive.namelist()), "an import counts again"
    shown = (await coach.patch(f"/coach/customers/{ids[1]}", {"isArchived": True})).ok()
    assert "archivedAt" not in str(shown)
    archiving = await coach.post("/coach/customers/bulk/archive", {"ids": ids[2:]})
    assert await since() == [True, True, True]
    due = {"$set": {"erasureDueAt": now()}}
    await coach.ctx.db["customers"].update_many({"companyId": coach.ctx.company_id}, due)
    (await coach.post(f"/coach/changes/{archiving.headers['X-Change-Id']}/undo")).ok()
    (await coach.put("/coach/customers/unarchive", {"id": ids[0]})).ok()
    assert await since() == [False, True, False]
    kept = coach.ctx.db["customers"].find({"companyId": coach.ctx.company_id, "erasureDueAt": {"$exists": True}})
    assert [str(each["_id"]) for each in await kept.to_list(None)] == [ids[1]]
    (await coach.patch(f"/coach/customers/{ids[1]}", {"isArchived": False})).ok()
    assert await since() == [False, False, False]
    new = {"customers": [{"name": "Dan", "archived": True}]}
    ids = [(await coach.post("/coach/customers/batch", new)).ok()["results"][0]["_id"]]
    await retention.queue_due(coach.ctx.services, JOB)
    assert await since() == [True], "within an hour"


async def test_pages_say_when_a_client_will_be_erased(coach: CoachClient, settings: Settings) -> None:
    ana, bo = [await coach.create_customer(name) for name in ("Ana", "Bo")]
    path = f"/app/customers/{ana['_id']}/details"
    services = replace(coach.ctx.services, archived_retention_months=2, metrics=Metrics())
    server = TestServer(create_app(settings, services))
    await server.start_server()
    browser = Visitor(server)
    try:
        with time_machine.travel("2031-01-31T12:00:00+00:00", tick=True):
            await browser.sign_in(str(coach.ctx.caller.email), PASSWORD)
            assert "Their data is erased after 2 months." in (await browser.get(path)).html
            (await coach.put("/coach/customers/archive", {"id": ana["_id"]})).ok()
            assert "Erased on Tue 1 Apr 2031" in (await browser.get(path)).html
            listed = (await browser.get("/app/customers?archived=true")).html
            assert listed.count("Erased on Tue 1 Apr 2031") == 1
            assert "Erased on" not in (await browser.get("/app/customers")).html
        with time_machine.travel("2031-03-31T12:00:00+00:00", tick=True):
            await browser.sign_in(str(coach.ctx.caller.email), PASSWORD)
            assert "Erased on Wed 30 Apr 2031" in (await browser.get(path)).html, "it is not announced yet"
            due = {"$set": {"erasureDueAt": datetime(2031, 4, 5, 12)}}  # noqa: DTZ001 - as it is stored
            await coach.ctx.db["customers"].update_one({"_id": ObjectId(ana["_id"])}, due)
            assert "Erased on Sat 5 Apr 2031" in (await browser.get(path)).html
        assert "Erased on" not in (await browser.get(f"/app/customers/{bo['_id']}/details")).html
    finally:
        await browser.close()
        await server.close()
