"""Mail: queued in the transaction that causes it, sent by a worker, tried again when refused, never sent twice."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from datetime import timedelta
from email.message import EmailMessage
from email.utils import formatdate
from pathlib import Path
from typing import Any, ClassVar

import aiosmtplib
import structlog

from coaching_service.core.database.context import Context, Services
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job, RunAgain

SEND = "send_mail"
_BACK_OFF = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 180, 360, 720, 1440))
# For all of a sending: less than a job's lease, so that no other worker takes over a mail that is being sent.
_SMTP_SECONDS = 0.75 * queue.LEASE.total_seconds()

log = structlog.get_logger("coaching_service.mail")


class MailRejected(Exception):
    """The mail was certainly not taken; `for_good` when trying again is of no use."""

    def __init__(self, reason: str, *, for_good: bool = False) -> None:
        super().__init__(reason)
        self.for_good = for_good


class _Client(aiosmtplib.SMTP):
    """An SMTP client that knows whether its mail was taken: None when only the server can tell."""

    taken: bool | None = False

    async def data(self, message: str | bytes, /, **options: Any) -> aiosmtplib.SMTPResponse:
        """Send the message itself, the last that a server needs of a mail."""
        self.taken = None
        try:
            response = await super().data(message, **options)
        except aiosmtplib.SMTPDataError as error:
            self.taken = False if error.code >= 400 else None
            raise
        self.taken = True
        return response


@dataclass(frozen=True)
class SmtpMailSender:
    """Sends by SMTP. `encryption` is `starttls`, `tls` or `none`."""

    repeatable: ClassVar[bool] = False
    host: str
    port: int
    sender: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    encryption: str = "starttls"

    async def send(self, mail: EmailMessage) -> None:
        """Hand `mail` to the server. Raises MailRefused when it was certainly not taken, any other error when the
        server alone knows."""
        mail["From"] = self.sender
        client = _Client(
            hostname=self.host,
            port=self.port,
            username=self.username,
            password=self.password,
            use_tls=self.encryption == "tls",
            start_tls=self.encryption == "starttls",
            timeout=_SMTP_SECONDS,
        )
        try:
            async with asyncio.timeout(_SMTP_SECONDS):
                await client.connect()
                await client.send_message(mail)
                await client.quit()
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            if client.taken is None:
                raise
            if not client.taken:
                raise _refusal(error) from None
        finally:
            client.close()


def _refusal(error: Exception) -> MailRejected:
    """What kept a mail from being taken. Trying again is of no use where the recipient or the mail itself is refused;
    everything else is between us and the server, and can be mended."""
    if isinstance(error, aiosmtplib.SMTPRecipientsRefused):
        permanent = all(refused.code >= 500 for refused in error.recipients)
        return MailRejected("the recipient was refused", for_good=permanent)
    if isinstance(error, aiosmtplib.SMTPResponseException):
        permanent = isinstance(error, aiosmtplib.SMTPDataError) and error.code >= 500
        return MailRejected(f"the server answered {error.code}", for_good=permanent)
    # Of what cannot be sent, the text would name the address.
    told = str(error) if isinstance(error, aiosmtplib.SMTPException | OSError) else ""
    return MailRejected(told or type(error).__name__)


@dataclass(frozen=True)
class FolderMailSender:
    """Writes mail into a folder, one file each, where no SMTP server is set."""

    repeatable: ClassVar[bool] = True
    folder: Path
    sender: str

    async def send(self, mail: EmailMessage) -> None:
        """Write `mail` to the folder under its identifier: writing it again changes nothing.

        Raises MailRefused when it cannot be written.
        """
        mail["From"] = self.sender
        try:
            self._write(mail)
        except OSError as error:
            raise MailRejected(str(error)) from None

    def _write(self, mail: EmailMessage) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = self.folder / f"{mail['Message-ID'].partition('@')[0].lstrip('<')}.eml"
        draft = file.with_suffix(".tmp")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as handle:
            handle.write(mail.as_bytes())
        draft.replace(file)


async def enqueue_mail(ctx: Context, to: str, subject: str, text: str, *, about: ObjectId | None = None) -> None:
    """Queue a mail in the caller's transaction. It goes unsent when the client it is `about` is erased before."""
    await queue.enqueue(ctx, SEND, {"to": to, "subject": subject, "text": text, "tries": 0}, about=about)


def _whose(job: Job) -> dict[str, str | None]:
    """What an operator needs to have it sent again: whose company, and which client it is about."""
    return {
        "job": str(job.id),
        "company": str(job.company_id) if job.company_id else None,
        "client": str(job.about) if job.about else None,
    }


async def send(services: Services, job: Job) -> RunAgain | None:
    """One try at sending a queued mail."""
    if job.attempts > 1 and not services.mail_sender.repeatable:
        # An earlier try ended without a word: the server may have taken the mail, and twice would be worse.
        log.error("mail in doubt", **_whose(job))
        return None
    tries = job.arguments["tries"]
    try:
        await services.mail_sender.send(_message(services, job))
    except MailRejected as refusal:
        log.warning("mail refused", **_whose(job), tries=tries + 1, reason=str(refusal))
        if refusal.for_good or tries >= len(_BACK_OFF):
            return None
        return RunAgain(_BACK_OFF[tries], {"tries": tries + 1})
    return None


def _message(services: Services, job: Job) -> EmailMessage:
    mail = EmailMessage()
    mail["To"] = job.arguments["to"]
    mail["Subject"] = job.arguments["subject"]
    mail["Date"] = formatdate(usegmt=True)
    mail["Message-ID"] = f"<{job.id}@{services.base_url.partition('://')[2].partition(':')[0]}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(job.arguments["text"])
    return mail
