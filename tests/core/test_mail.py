"""Mail: queued with its cause, encrypted, sent once by a real SMTP server, and retried when rejected."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from aiosmtpd.smtp import SMTP
from pymongo import MongoClient

from coaching_service import features
from coaching_service.core.auth import Vault, parse_master_key
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.jobs import mail, queue, worker
from coaching_service.core.jobs.mail import FolderMailSender, SmtpMailSender
from coaching_service.core.jobs.queue import RunAgain, enqueue
from coaching_service.core.metrics import MailOutcome
from coaching_service.people import customer_access
from coaching_service.people.customers import batch
from coaching_service.people.customers import service as customers
from coaching_service.people.sessions import credentials
from coaching_service.people.sessions import service as sessions
from coaching_service.settings import Settings
from tests.people.test_sessions import mailed_token
from tests.support.client import CoachClient
from tests.support.mail_servers import (
    REJECTING_SERVERS,
    ClaimedMeanwhile,
    DisconnectsAfterMail,
    HangsAfterMail,
    Mailbox,
    RejectsRecipient,
    Slow,
    listening,
    sending_to,
    silent_server,
)
from tests.support.mails import part_of
from tests.support.service_process import until

MAIL = {mail.SEND: features.STEPS[mail.SEND]}
LATER = timedelta(days=3)


async def create(mailing: Services, coach: CoachClient, email: str = "ana@example.com", **options: Any) -> Any:
    ctx = Context(mailing, coach.ctx.principal)
    return await batch.create_customer(ctx, {"name": "Ana", "email": email}, **options)


async def queued(mailing: Services) -> list[Any]:
    return await mailing.db["jobs"].find({"kind": mail.SEND}).to_list(None)


# --- invitations ---------------------------------------------------------------------------------------------------


async def test_invitation_is_sent_once_by_concurrent_workers(
    coach: CoachClient, mailing: Services, mailbox: tuple[Mailbox, int]
) -> None:
    for number in range(6):
        await create(mailing, coach, f"ana{number}@example.com", send_invitation=True)

    await asyncio.gather(*(worker.run_due(mailing, MAIL) for _ in range(4)))

    received, _ = mailbox
    assert len(received.mails) == received.tries == 6
    assert len({message["Message-ID"] for message in received.mails}) == 6
    assert await queued(mailing) == []


async def test_invitation_names_the_company_and_contains_the_token(
    coach: CoachClient, mailing: Services, mailbox: tuple[Mailbox, int]
) -> None:
    created = await create(mailing, coach, send_invitation=True)
    await worker.run_due(mailing, MAIL)

    [message] = mailbox[0].mails
    text = part_of(message, "plain")
    assert message["To"] == "ana@example.com"
    assert coach.ctx.caller.company.name in message["Subject"]
    assert created["firstAccessToken"] in text
    assert f"{mailing.base_url}/train/first-access?token=" in text


async def test_no_invitation_without_request_or_address(
    coach: CoachClient, mailing: Services, mailbox: tuple[Mailbox, int]
) -> None:
    """Contract 4: when `sendInvitation` is false, no invitation e-mail is sent."""
    await create(mailing, coach, send_invitation=False)
    await batch.create_customer(Context(mailing, coach.ctx.principal), {"name": "No address"}, send_invitation=True)
    await worker.run_due(mailing, MAIL)
    assert mailbox[0].tries == 0


async def test_clients_are_invited_by_default(coach: CoachClient, settings: Settings) -> None:
    """Without an SMTP server mail is written to files in the data folder."""
    await coach.create_customer("Ana", email=f"ana@{coach.ctx.company_id}.test")
    await coach.create_customer("Bo", email=f"bo@{coach.ctx.company_id}.test", sendInvitation=False)
    assert await mailed_token(settings, f"ana@{coach.ctx.company_id}.test")
    written = [file.read_text() for file in (settings.data_dir / "mail").glob("*.eml")]
    assert not [text for text in written if f"bo@{coach.ctx.company_id}.test" in text]


async def test_second_invitation_invalidates_the_first_token(
    coach: CoachClient, mailing: Services, mailbox: tuple[Mailbox, int]
) -> None:
    created = await create(mailing, coach, send_invitation=False)
    await customer_access.invite(Context(mailing, coach.ctx.principal), created["_id"])
    await worker.run_due(mailing, MAIL)

    [message] = mailbox[0].mails
    text = part_of(message, "plain")
    assert created["firstAccessToken"] not in text
    assert await customers.find_by_first_access_token(mailing, created["firstAccessToken"]) is None


async def test_invitation_requires_an_address(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    (await coach.post(f"/coach/customers/{ana['_id']}/invitation")).refused(400, "email")


async def test_mail_of_an_erased_client_is_not_sent(
    coach: CoachClient, mailing: Services, mailbox: tuple[Mailbox, int]
) -> None:
    created = await create(mailing, coach, send_invitation=True)
    await customers.erase(Context(mailing, coach.ctx.principal), created["_id"])
    erase = {name: step for name, step in features.STEPS.items() if name == "erase_customer"}
    await worker.run_due(mailing, erase)
    await worker.run_due(mailing, MAIL, at=now() + LATER)
    assert mailbox[0].tries == 0


# --- secrets -------------------------------------------------------------------------------------------------------


async def test_tokens_are_never_stored_in_clear(
    coach: CoachClient, mailing: Services, mailbox: tuple[Mailbox, int], settings: Settings
) -> None:
    """Neither queued mail nor the oplog contains a token of first access, confirmation or password reset."""
    created = await create(mailing, coach, send_invitation=True)
    await sessions.sign_up(Context(mailing), "Company", "Olga", "olga@tokens.test", "correct horse battery")
    await credentials.request_password_reset(Context(mailing), "olga@tokens.test")
    await worker.run_due(mailing, {credentials.RESET_REQUESTED: features.STEPS[credentials.RESET_REQUESTED]})
    stored = repr(await queued(mailing))
    with MongoClient[Any](str(settings.mongodb_uri)) as client:
        stored += repr(
            list(client["local"]["oplog.rs"].find({"ns": {"$in": [f"{mailing.db.name}.jobs", "admin.$cmd"]}}))
        )

    await worker.run_due(mailing, MAIL)
    texts = [part_of(message, "plain") for message in mailbox[0].mails]
    tokens = {text.partition("token=")[2].split()[0] for text in texts}
    assert len(tokens) == 3
    assert [token for token in tokens if token.startswith(created["firstAccessToken"])]
    assert "send_mail" in stored
    assert not [token for token in tokens if token in stored]


async def test_mail_with_a_missing_key_is_sent_once_the_key_is_back(
    coach: CoachClient, mailing: Services, mailbox: tuple[Mailbox, int]
) -> None:
    await create(mailing, coach, send_invitation=True)
    await worker.run_due(replace(mailing, vault=Vault([parse_master_key("A" * 43 + "=")])), MAIL)
    assert mailbox[0].tries == 0
    await worker.run_due(mailing, MAIL, at=now() + LATER)
    assert len(mailbox[0].mails) == 1


# --- failures of the mail server -----------------------------------------------------------------------------------


async def test_hanging_mail_server_does_not_delay_other_jobs(coach: CoachClient, mailing: Services) -> None:
    """Mail has workers of its own: other jobs run while every connection to the mail server hangs."""
    finished = asyncio.Event()

    async def finish(_: Services, __: queue.Job) -> RunAgain | None:
        finished.set()
        return None

    for number in range(mail.CONNECTIONS + 1):
        await create(mailing, coach, f"ana{number}@example.com", send_invitation=True)
    async with silent_server() as server:
        services = sending_to(mailing, port=server.port)
        async with worker.working(services, {**MAIL, "finish": finish}, places={mail.SEND: mail.CONNECTIONS}):
            await until(lambda: server.connections == mail.CONNECTIONS, "every connection hangs")
            await enqueue(Context(services), "finish", {})
            await asyncio.wait_for(finished.wait(), 60)


async def test_rejected_mail_is_retried_later_and_sent_once(
    coach: CoachClient, mailing: Services, mailbox: tuple[Mailbox, int]
) -> None:
    received, _ = mailbox
    received.responses = ["451 later", "452 later still"]
    await create(mailing, coach, send_invitation=True)

    await worker.run_due(mailing, MAIL)
    assert received.tries == 1
    await worker.run_due(mailing, MAIL)
    assert received.tries == 1, "not before its time"
    await worker.run_due(mailing, MAIL, at=now() + LATER)

    assert (received.tries, len(received.mails)) == (3, 1)
    assert await queued(mailing) == []


async def test_permanently_rejected_mail_is_dropped(
    coach: CoachClient, mailing: Services, mailbox: tuple[Mailbox, int]
) -> None:
    received, _ = mailbox
    received.responses = ["550 no such user"]
    await create(mailing, coach, send_invitation=True)
    await worker.run_due(mailing, MAIL, at=now() + LATER)
    assert (received.tries, received.mails, await queued(mailing)) == (1, [], [])


async def test_mail_is_sent_once_the_server_is_back(
    coach: CoachClient, mailing: Services, mailbox: tuple[Mailbox, int]
) -> None:
    await create(mailing, coach, send_invitation=True)
    await worker.run_due(sending_to(mailing, port=9), MAIL)
    [job] = await queued(mailing)
    assert job["arguments"]["tries"] == 1

    await worker.run_due(mailing, MAIL, at=now() + LATER)
    assert len(mailbox[0].mails) == 1


@pytest.mark.parametrize("reason", REJECTING_SERVERS)
async def test_mail_that_was_certainly_not_accepted_is_sent_later(
    coach: CoachClient, mailing: Services, mailbox: tuple[Mailbox, int], tmp_path: Path, reason: str
) -> None:
    server, options = REJECTING_SERVERS[reason]
    await create(mailing, coach, send_invitation=True)
    async with listening(lambda: server(tmp_path)) as port:
        await worker.run_due(sending_to(mailing, port=port, **options), MAIL)
    [job] = await queued(mailing)
    assert job["arguments"]["tries"] == 1

    await worker.run_due(mailing, MAIL, at=now() + LATER)
    assert len(mailbox[0].mails) == 1
    assert await queued(mailing) == []


async def test_mail_to_a_rejected_recipient_is_dropped(coach: CoachClient, mailing: Services) -> None:
    await create(mailing, coach, send_invitation=True)
    async with listening(lambda: SMTP(RejectsRecipient())) as port:
        await worker.run_due(sending_to(mailing, port=port), MAIL)
    assert await queued(mailing) == []


async def test_slow_server_is_abandoned_within_the_lease(coach: CoachClient, mailing: Services) -> None:
    """Several responses, each in time, may take too long together: another worker would claim the mail."""
    received = Mailbox()
    await create(mailing, coach, send_invitation=True)
    async with listening(lambda: Slow(received)) as port:
        await worker.run_due(sending_to(mailing, port=port, total_seconds=1.0), MAIL)
    [job] = await queued(mailing)
    assert (job["arguments"]["tries"], received.tries) == (1, 0)
    assert SmtpMailSender("host", 25, "sender").total_seconds < worker.LEASE.total_seconds()


async def test_mail_is_not_repeated_after_a_disconnect_without_response(coach: CoachClient, mailing: Services) -> None:
    received = DisconnectsAfterMail()
    await create(mailing, coach, send_invitation=True)
    async with listening(lambda: SMTP(received)) as port:
        for _ in range(2):
            await worker.run_due(sending_to(mailing, port=port), MAIL, at=now() + LATER)
    assert (received.tries, await queued(mailing)) == (1, [])


async def test_mail_of_an_interrupted_attempt_is_not_repeated(
    coach: CoachClient, mailing: Services, mailbox: tuple[Mailbox, int]
) -> None:
    """A process that dies while the server confirms, before the job is removed, leaves a claimed job."""
    await create(mailing, coach, send_invitation=True)
    received = HangsAfterMail()
    async with listening(lambda: SMTP(received)) as port:
        work = asyncio.create_task(worker.run_due(sending_to(mailing, port=port), MAIL))
        await until(lambda: received.mails, "the mail arrives")
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
    await worker.run_due(mailing, MAIL, at=now() + LATER)
    assert (mailbox[0].tries, await queued(mailing)) == (0, [])
    [failed] = await mailing.db["failedMails"].find({"companyId": coach.ctx.company_id}).to_list(None)
    assert failed["reason"] == "an attempt was interrupted: it may have been sent"


async def test_mail_of_an_attempt_that_ended_before_the_message_is_sent(
    coach: CoachClient, mailing: Services, mailbox: tuple[Mailbox, int]
) -> None:
    """A process that dies while it connects has sent nothing: the mail is not lost."""
    await create(mailing, coach, send_invitation=True)
    async with silent_server() as server:
        work = asyncio.create_task(worker.run_due(sending_to(mailing, port=server.port), MAIL))
        await until(lambda: server.connections == 1, "the mail server is asked")
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
    [job] = await queued(mailing)
    assert "isHandedOver" not in job["arguments"]

    for _ in range(2):
        await worker.run_due(mailing, MAIL, at=now() + LATER)
    assert (mailbox[0].tries, len(mailbox[0].mails), await queued(mailing)) == (1, 1, [])


async def test_frozen_worker_does_not_send_what_another_has_claimed(
    coach: CoachClient, mailing: Services, mailbox: tuple[Mailbox, int]
) -> None:
    """Its lease has ended while it waited for the mail server."""
    await create(mailing, coach, send_invitation=True)
    received = ClaimedMeanwhile(mailing)
    async with listening(lambda: SMTP(received)) as port:
        await worker.run_due(sending_to(mailing, port=port), MAIL, limit=1)
    assert (received.tries, len(await queued(mailing))) == (0, 1)
    await worker.run_due(mailing, MAIL, at=now() + LATER)
    assert len(mailbox[0].mails) == 1


async def test_what_becomes_of_mails_is_counted(
    coach: CoachClient, mailing: Services, mailbox: tuple[Mailbox, int]
) -> None:
    """`mail_oldest_seconds` is of what was tried in vain, or is due; not of what waits for its time."""
    counter = mailing.metrics.mails

    def counted() -> dict[str, float]:
        return {outcome: counter.labels(outcome)._value.get() for outcome in get_args(MailOutcome)}

    before = counted()
    await create(mailing, coach, "one@example.com", send_invitation=True)
    await create(mailing, coach, "two@example.com", send_invitation=True)
    hour = timedelta(hours=1)
    await mailing.db["jobs"].update_many(
        {"kind": mail.SEND}, [{"$set": {"createdAt": {"$subtract": ["$createdAt", 3_600_000]}}}]
    )
    await mailing.db["jobs"].update_one({"kind": mail.SEND}, {"$set": {"runAfter": now() + hour}})
    mailbox[0].responses = ["451 later", "550 no"]
    assert await worker.find_mail_age(mailing) == pytest.approx(3600, abs=60), "due"
    await worker.run_due(mailing, MAIL)
    assert await worker.find_mail_age(mailing) == pytest.approx(3600, abs=60), "tried"
    await mailing.db["jobs"].update_many({"kind": mail.SEND}, {"$set": {"arguments.tries": 0}})
    assert await worker.find_mail_age(mailing) == 0, "waits for its time"
    await worker.run_due(mailing, MAIL, at=now() + LATER)
    assert {name: value - before[name] for name, value in counted().items()} == {
        "sent": 1,
        "delayed": 1,
        "failed": 1,
        "unknown": 0,
    }


async def test_mail_file_is_written_once_the_folder_is_usable(
    coach: CoachClient, mailing: Services, tmp_path: Path
) -> None:
    """A file is named after its mail, so an interrupted attempt can be repeated."""
    folder = tmp_path / "mail"
    folder.write_text("not a folder")
    writing = replace(mailing, mail_sender=FolderMailSender(folder, "us@example.com"))
    await create(mailing, coach, send_invitation=True)
    await worker.run_due(writing, MAIL)
    [job] = await queued(mailing)
    assert job["arguments"]["tries"] == 1

    folder.unlink()
    await mailing.db["jobs"].update_many({}, {"$set": {"attempts": 1, "lease": "a dead process"}})
    await worker.run_due(writing, MAIL, at=now() + LATER)
    [written] = folder.iterdir()
    assert "To: ana@example.com" in written.read_text()
    assert await queued(mailing) == []
