"""Invitations: queued with the client, sent once by a real SMTP server, tried again when refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP

from coaching_service import features, runtime
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.mail import FolderMailSender, SmtpMailSender
from coaching_service.people.customer_access import service as customer_access
from coaching_service.people.customers import first_access
from coaching_service.people.customers import service as customers
from coaching_service.settings import Settings
from tests.client import CoachClient
from tests.mail_servers import TAKING_NOTHING, Forgetful, Knowing, PostOffice, Slow, listening
from tests.test_sessions import mailed_token

MAIL = {"send_mail": features.STEPS["send_mail"]}
LATER = timedelta(days=3)


@pytest.fixture
async def post_office() -> AsyncIterator[tuple[PostOffice, int]]:
    office = PostOffice()
    async with listening(lambda: SMTP(office)) as port:
        yield office, port


@pytest.fixture
async def sending(settings: Settings, post_office: tuple[PostOffice, int]) -> AsyncIterator[Services]:
    """A service on a database of its own that sends by that server; nobody works on its queue but the test."""
    name = f"{settings.mongodb_database}_mail"
    mailing = settings.model_copy(
        update={
            "mongodb_database": name,
            "smtp_host": "127.0.0.1",
            "smtp_port": post_office[1],
            "smtp_encryption": "none",
        }
    )
    async with runtime.open_services(mailing) as services:
        await runtime.make_indexes(services)
        yield services
        await services.db.client.drop_database(name)


async def create(sending: Services, coach: CoachClient, **options: Any) -> Any:
    ctx = Context(sending, coach.ctx.principal)
    return await customers.create(ctx, {"name": "Ana", "email": "ana@example.com"}, **options)


def handing_to(sending: Services, **options: Any) -> Services:
    """The same service with another server, or another way to speak to it."""
    assert isinstance(sending.mail_sender, SmtpMailSender)
    return replace(sending, mail_sender=replace(sending.mail_sender, **options))


async def waiting(sending: Services) -> list[Any]:
    return await sending.db["jobs"].find({"kind": "send_mail"}).to_list(None)


async def test_an_invitation_is_sent_once_however_many_processes_work(
    coach: CoachClient, sending: Services, post_office: tuple[PostOffice, int]
) -> None:
    for _ in range(6):
        await create(sending, coach, send_invitation=True)

    await asyncio.gather(*(queue.run_due(sending, MAIL) for _ in range(4)))

    office, _ = post_office
    assert len(office.mails) == office.tries == 6
    assert len({mail["Message-ID"] for mail in office.mails}) == 6
    assert await waiting(sending) == []


async def test_the_invitation_says_who_invites_and_holds_the_token(
    coach: CoachClient, sending: Services, post_office: tuple[PostOffice, int]
) -> None:
    created = await create(sending, coach, send_invitation=True)
    await queue.run_due(sending, MAIL)

    [mail] = post_office[0].mails
    text = mail.get_content()  # type: ignore[attr-defined]
    assert mail["To"] == "ana@example.com"
    assert coach.ctx.caller.company.name in mail["Subject"]
    assert created["firstAccessToken"] in text
    assert f"{sending.base_url}/app/first-access?token=" in text


async def test_no_invitation_where_none_is_wanted_or_possible(
    coach: CoachClient, sending: Services, post_office: tuple[PostOffice, int]
) -> None:
    """Specification 2: when `sendInvitation` is false, no invitation e-mail is sent."""
    await create(sending, coach, send_invitation=False)
    await customers.create(Context(sending, coach.ctx.principal), {"name": "No address"}, send_invitation=True)
    await queue.run_due(sending, MAIL)
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

    await queue.run_due(sending, MAIL)
    assert office.tries == 1
    await queue.run_due(sending, MAIL)
    assert office.tries == 1, "not before its time"
    await queue.run_due(sending, MAIL, at=now() + LATER)

    assert (office.tries, len(office.mails)) == (3, 1)
    assert await waiting(sending) == []


async def test_a_mail_refused_for_good_is_given_up(
    coach: CoachClient, sending: Services, post_office: tuple[PostOffice, int]
) -> None:
    office, _ = post_office
    office.answers = ["550 no such user"]
    await create(sending, coach, send_invitation=True)
    await queue.run_due(sending, MAIL, at=now() + LATER)
    assert (office.tries, office.mails, await waiting(sending)) == (1, [], [])


async def test_a_server_that_is_away_gets_it_when_it_is_back(
    coach: CoachClient, sending: Services, post_office: tuple[PostOffice, int]
) -> None:
    await create(sending, coach, send_invitation=True)
    await queue.run_due(handing_to(sending, port=9), MAIL)
    [left] = await waiting(sending)
    assert left["arguments"]["tries"] == 1

    await queue.run_due(sending, MAIL, at=now() + LATER)
    assert len(post_office[0].mails) == 1


@pytest.mark.parametrize("why", TAKING_NOTHING)
async def test_what_was_certainly_not_taken_is_sent_once_that_is_mended(
    coach: CoachClient, sending: Services, post_office: tuple[PostOffice, int], tmp_path: Path, why: str
) -> None:
    server, spoken_to = TAKING_NOTHING[why]
    await create(sending, coach, send_invitation=True)
    async with listening(lambda: server(tmp_path)) as port:
        await queue.run_due(handing_to(sending, port=port, **spoken_to), MAIL)
    [left] = await waiting(sending)
    assert left["arguments"]["tries"] == 1

    await queue.run_due(sending, MAIL, at=now() + LATER)
    assert len(post_office[0].mails) == 1
    assert await waiting(sending) == []


async def test_a_recipient_refused_for_good_is_given_up(coach: CoachClient, sending: Services) -> None:
    await create(sending, coach, send_invitation=True)
    async with listening(lambda: SMTP(Knowing())) as port:
        await queue.run_due(handing_to(sending, port=port), MAIL)
    assert await waiting(sending) == []


async def test_a_slow_server_does_not_outlast_the_lease(
    coach: CoachClient, sending: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five answers within their time are together too long: another worker would take the mail over."""
    monkeypatch.setattr("coaching_service.core.jobs.mail._SMTP_SECONDS", 1.0)
    office = PostOffice()
    await create(sending, coach, send_invitation=True)
    async with listening(lambda: Slow(office)) as port:
        await queue.run_due(handing_to(sending, port=port), MAIL)
    [left] = await waiting(sending)
    assert (left["arguments"]["tries"], office.tries) == (1, 0)


async def test_a_server_that_hangs_up_on_the_mail_is_not_handed_it_again(coach: CoachClient, sending: Services) -> None:
    office = Forgetful()
    await create(sending, coach, send_invitation=True)
    async with listening(lambda: SMTP(office)) as port:
        for _ in range(2):
            await queue.run_due(handing_to(sending, port=port), MAIL, at=now() + LATER)
    assert (office.tries, await waiting(sending)) == (1, [])


async def test_what_cannot_be_written_is_written_later(coach: CoachClient, sending: Services, tmp_path: Path) -> None:
    """A file is known by its mail, so that writing it twice, after whatever happened to the first, does no harm."""
    folder = tmp_path / "mail"
    folder.write_text("in the way")
    writing = replace(sending, mail_sender=FolderMailSender(folder, "us@example.com"))
    await create(sending, coach, send_invitation=True)
    await queue.run_due(writing, MAIL)
    [left] = await waiting(sending)
    assert left["arguments"]["tries"] == 1

    folder.unlink()
    await sending.db["jobs"].update_many({}, {"$set": {"attempts": 1, "lease": "a dead process"}})
    await queue.run_due(writing, MAIL, at=now() + LATER)
    [written] = folder.iterdir()
    assert "To: ana@example.com" in written.read_text()
    assert await waiting(sending) == []


async def test_a_mail_in_doubt_is_never_sent_twice(
    coach: CoachClient, sending: Services, post_office: tuple[PostOffice, int]
) -> None:
    """A process that dies between the server's yes and its own note leaves a claimed job behind."""
    await create(sending, coach, send_invitation=True)
    await sending.db["jobs"].update_many({}, {"$set": {"attempts": 1, "lease": "a dead process"}})
    await queue.run_due(sending, MAIL, at=now() + LATER)
    assert (post_office[0].tries, await waiting(sending)) == (0, [])


async def test_inviting_again_ends_the_token_before(
    coach: CoachClient, sending: Services, post_office: tuple[PostOffice, int]
) -> None:
    created = await create(sending, coach, send_invitation=False)
    await customer_access.invite(Context(sending, coach.ctx.principal), created["_id"])
    await queue.run_due(sending, MAIL)

    [mail] = post_office[0].mails
    text = mail.get_content()  # type: ignore[attr-defined]
    assert created["firstAccessToken"] not in text
    assert await first_access.find_by_first_access_token(sending, created["firstAccessToken"]) is None


async def test_inviting_again_needs_an_address(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    (await coach.post(f"/coach/customers/{ana['_id']}/invitation")).refused(400, "email")


async def test_the_mail_of_an_erased_client_is_not_sent(
    coach: CoachClient, sending: Services, post_office: tuple[PostOffice, int]
) -> None:
    created = await create(sending, coach, send_invitation=True)
    await customers.erase(Context(sending, coach.ctx.principal), created["_id"])
    erase = {name: step for name, step in features.STEPS.items() if name == "erase_customer"}
    await queue.run_due(sending, erase)
    await queue.run_due(sending, MAIL, at=now() + LATER)
    assert post_office[0].tries == 0
