"""Invitations: queued with the client, sent once by a real SMTP server, tried again when refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from email import message_from_bytes
from email.message import Message
from email.policy import default
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, Envelope, Session

from coaching_service import features, runtime
from coaching_service.kernel.background import jobs
from coaching_service.kernel.storage.context import Context, Services
from coaching_service.kernel.storage.documents import now
from coaching_service.people.customer_access import service as customer_access
from coaching_service.people.customers import entry
from coaching_service.people.customers import service as customers
from coaching_service.settings import Settings
from tests.client import CoachClient
from tests.test_sessions import mailed_token

MAIL = {"send_mail": features.STEPS["send_mail"]}
LATER = timedelta(days=3)


class PostOffice:
    """What an SMTP server was handed, and what it answers."""

    def __init__(self) -> None:
        self.mails: list[Message] = []
        self.answers: list[str] = []
        self.tries = 0

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        self.tries += 1
        if self.answers:
            return self.answers.pop(0)
        assert isinstance(envelope.content, bytes)
        self.mails.append(message_from_bytes(envelope.content, policy=default))
        return "250 taken"


@pytest.fixture
async def post_office() -> AsyncIterator[tuple[PostOffice, int]]:
    office = PostOffice()
    server = await asyncio.get_running_loop().create_server(lambda: SMTP(office), "127.0.0.1", 0)
    async with server:
        yield office, server.sockets[0].getsockname()[1]


@pytest.fixture
async def sending(settings: Settings, post_office: tuple[PostOffice, int]) -> AsyncIterator[Services]:
    """A service on a database of its own that sends by that server; nobody works on its queue but the test."""
    name = f"{settings.mongodb_database}_mail"
    mailing = replace(
        settings, mongodb_database=name, smtp_host="127.0.0.1", smtp_port=post_office[1], smtp_encryption="none"
    )
    async with runtime.open_services(mailing) as services:
        await runtime.make_indexes(services)
        yield services
        await services.db.client.drop_database(name)


async def create(sending: Services, coach: CoachClient, **options: Any) -> Any:
    ctx = Context(sending, coach.ctx.principal)
    return await customers.create(ctx, {"name": "Ana", "email": "ana@example.com"}, **options)


async def waiting(sending: Services) -> list[Any]:
    return await sending.db["jobs"].find({"kind": "send_mail"}).to_list(None)


async def test_an_invitation_is_sent_once_however_many_processes_work(
    coach: CoachClient, sending: Services, post_office: tuple[PostOffice, int]
) -> None:
    for _ in range(6):
        await create(sending, coach, send_invitation=True)

    await asyncio.gather(*(jobs.run_due(sending, MAIL) for _ in range(4)))

    office, _ = post_office
    assert len(office.mails) == office.tries == 6
    assert len({mail["Message-ID"] for mail in office.mails}) == 6
    assert await waiting(sending) == []


async def test_the_invitation_says_who_invites_and_holds_the_token(
    coach: CoachClient, sending: Services, post_office: tuple[PostOffice, int]
) -> None:
    created = await create(sending, coach, send_invitation=True)
    await jobs.run_due(sending, MAIL)

    [mail] = post_office[0].mails
    text = mail.get_content()  # type: ignore[attr-defined]
    assert mail["To"] == "ana@example.com"
    assert coach.ctx.who.company.name in mail["Subject"]
    assert created["firstAccessToken"] in text
    assert f"{sending.base_url}/app/first-access?token=" in text


async def test_no_invitation_where_none_is_wanted_or_possible(
    coach: CoachClient, sending: Services, post_office: tuple[PostOffice, int]
) -> None:
    """Specification 2: when `sendInvitation` is false, no invitation e-mail is sent."""
    await create(sending, coach, send_invitation=False)
    await customers.create(Context(sending, coach.ctx.principal), {"name": "No address"}, send_invitation=True)
    await jobs.run_due(sending, MAIL)
    assert post_office[0].tries == 0


async def test_the_default_is_to_invite(coach: CoachClient, settings: Settings) -> None:
    """Without an SMTP server the mail goes to files in the data folder."""
    await coach.create_customer("Ana", email=f"ana@{coach.ctx.company_id}.test")
    await coach.create_customer("Bo", email=f"bo@{coach.ctx.company_id}.test", sendInvitation=False)
    assert await mailed_token(settings, f"ana@{coach.ctx.company_id}.test")
    written = [mail.read_text() for mail in (settings.data_dir / "mail").glob("*.eml")]
    assert not [text for text in written if f"bo@{coach.ctx.company_id}.test" in text]


async def test_a_refused_mail_is_tried_again_later_and_sent_once(
    coach: CoachClient, sending: Services, post_office: tuple[PostOffice, int]
) -> None:
    office, _ = post_office
    office.answers = ["451 later", "452 later still"]
    await create(sending, coach, send_invitation=True)

    await jobs.run_due(sending, MAIL)
    assert office.tries == 1
    await jobs.run_due(sending, MAIL)
    assert office.tries == 1, "not before its time"
    await jobs.run_due(sending, MAIL, at=now() + LATER)

    assert (office.tries, len(office.mails)) == (3, 1)
    assert await waiting(sending) == []


async def test_a_mail_refused_for_good_is_given_up(
    coach: CoachClient, sending: Services, post_office: tuple[PostOffice, int]
) -> None:
    office, _ = post_office
    office.answers = ["550 no such user"]
    await create(sending, coach, send_invitation=True)
    await jobs.run_due(sending, MAIL, at=now() + LATER)
    assert (office.tries, office.mails, await waiting(sending)) == (1, [], [])


async def test_a_server_that_is_away_gets_it_when_it_is_back(
    coach: CoachClient, sending: Services, post_office: tuple[PostOffice, int]
) -> None:
    away = replace(sending, post=replace(sending.post, port=9))  # type: ignore[type-var]
    await create(sending, coach, send_invitation=True)
    await jobs.run_due(away, MAIL)
    [left] = await waiting(sending)
    assert left["arguments"]["tries"] == 1

    await jobs.run_due(sending, MAIL, at=now() + LATER)
    assert len(post_office[0].mails) == 1


async def test_a_mail_in_doubt_is_never_sent_twice(
    coach: CoachClient, sending: Services, post_office: tuple[PostOffice, int]
) -> None:
    """A process that dies between the server's yes and its own note leaves a claimed job behind."""
    await create(sending, coach, send_invitation=True)
    await sending.db["jobs"].update_many({}, {"$set": {"attempts": 1, "lease": "a dead process"}})
    await jobs.run_due(sending, MAIL, at=now() + LATER)
    assert (post_office[0].tries, await waiting(sending)) == (0, [])


async def test_inviting_again_ends_the_token_before(
    coach: CoachClient, sending: Services, post_office: tuple[PostOffice, int]
) -> None:
    created = await create(sending, coach, send_invitation=False)
    await customer_access.invite(Context(sending, coach.ctx.principal), created["_id"])
    await jobs.run_due(sending, MAIL)

    [mail] = post_office[0].mails
    text = mail.get_content()  # type: ignore[attr-defined]
    assert created["firstAccessToken"] not in text
    assert await entry.whose_first_access(sending, created["firstAccessToken"]) is None


async def test_inviting_again_needs_an_address(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    (await coach.post(f"/coach/customers/{ana['_id']}/invitation")).refused(400, "email")


async def test_the_mail_of_an_erased_client_is_not_sent(
    coach: CoachClient, sending: Services, post_office: tuple[PostOffice, int]
) -> None:
    created = await create(sending, coach, send_invitation=True)
    await customers.erase(Context(sending, coach.ctx.principal), created["_id"])
    erase = {name: step for name, step in features.STEPS.items() if name == "erase_customer"}
    await jobs.run_due(sending, erase)
    await jobs.run_due(sending, MAIL, at=now() + LATER)
    assert post_office[0].tries == 0
