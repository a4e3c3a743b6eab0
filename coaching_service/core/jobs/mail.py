"""Mail: queued in the transaction that causes it, sent by workers of its own, retried when rejected, never sent twice.

Queued mail is encrypted: it holds addresses and tokens. A mail is plain text and, rendered from the same body when it
is sent, HTML.
"""

from __future__ import annotations

import asyncio
import os
import re
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import Policy
from email.utils import formatdate, parseaddr
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, NotRequired, Self, TypedDict
from urllib.parse import urlsplit

import aiosmtplib
import jinja2
import orjson
import structlog

from coaching_service.core.auth import SecretUnreadable, Vault
from coaching_service.core.database.context import Context, Services, transactional
from coaching_service.core.database.declared import Index, NotExported, Stored, Unsharded
from coaching_service.core.database.documents import Documents, now
from coaching_service.core.fields import Description, Private, private_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.core.metrics import MailOutcome
from coaching_service.core.text import DIRECTION_CONTROLS

# --- The body of a mail: the same content as plain text, and as HTML from one template --------------------------------
# Names of companies, coaches and clients are untrusted: HTML is escaped, and no text can add a line to a mail.


_BREAKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_ADDRESS = re.compile(r"\w\.\w{2}|@|://|\bwww\b", re.IGNORECASE)


class MailLink(TypedDict):
    """One of several addresses in a mail, with what it is."""

    label: str
    address: str


class MailBody(TypedDict):
    """What a mail consists of, without any markup; each text is one line.

    `company` is the header, `name` the recipient, `button` the label of the `link`; `links` precede it, `notes`
    follow it. `reason`
    is a sentence that states why the person receives the mail. `settings` is the address of the page where the
    recipient can turn such mails off, None if they cannot be turned off there. `decline` is the address of the page
    where a stranger declines further mails, `unsubscribe` of the one where the recipient turns such mails off without
    signing in; both stop them by a POST too.
    """

    company: str
    name: str
    paragraphs: list[str]
    links: NotRequired[list[MailLink]]
    button: str
    link: str
    notes: list[str]
    reason: str
    settings: str | None
    decline: NotRequired[str]
    unsubscribe: NotRequired[str]


def has_address(text: str) -> bool:
    """Return whether a text has a word that a mail program could show as a link: a domain, URL or e-mail address."""
    return _ADDRESS.search(unicodedata.normalize("NFKC", to_line(text)).replace("\u3002", ".")) is not None


def subject_with(name: str, subject: str, fixed: str) -> str:
    """Return `subject` with a name in place of `{}`, or the `fixed` one if the name has an address in it."""
    return fixed if has_address(name) else subject.format(name)


def to_line(text: str) -> str:
    """Return a text as one line that is read in its own direction.

    Line breaks and control characters become a space; characters that reverse what follows them are removed.
    """
    return DIRECTION_CONTROLS.sub("", _BREAKS.sub(" ", text)).strip()


def render_text(body: MailBody, addition: str | None = None) -> str:
    """Return a body as plain text; `addition` is a paragraph that only the plain text has, after the notes."""
    blocks = [
        f"Hello {to_line(body['name'])},",
        *(to_line(paragraph) for paragraph in body["paragraphs"]),
        *filter(None, ["\n".join(f"{to_line(each['label'])}: {each['address']}" for each in body.get("links", ()))]),
        f"{to_line(body['button'])}:",
        body["link"],
        *(to_line(note) for note in body["notes"]),
        *([] if addition is None else [to_line(addition)]),
        f"{to_line(body['company'])}\n{to_line(body['reason'])}",
    ]
    if body["settings"] is not None:
        blocks[-1] += f"\nTurn these mails off in your settings: {body['settings']}"
    if "decline" in body:
        blocks[-1] += f"\nThis was not meant for you, or you want no more of these invitations: {body['decline']}"
    return "\n\n".join(blocks) + "\n"


@cache
def _template() -> jinja2.Template:
    """Return the template of an HTML document in English with inline styles, which refers to no other file."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, "mail_templates"),
        autoescape=True,
        finalize=lambda value: to_line(value) if isinstance(value, str) else value,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("mail.html")


# --- Mail that is not sent: of sandboxes, for the developers who test with them, and what was given up ----------------
# The operator can send mail that was given up again, for 30 days: until then it is stored, still encrypted.


RETENTION = timedelta(days=30)
SANDBOX_ORDER = ("-createdAt", "-_id")


class SandboxMail(Stored):
    """A mail that would have been sent."""

    to: Annotated[str, Description("The address of the recipient.")]
    subject: Annotated[str, Description("The subject.")]
    text: Annotated[str, Description("The text, with the links and tokens that it contains.")]
    about: Annotated[ObjectId | None, Private]  # the client that it concerns, if any


sandbox_mails = Documents[SandboxMail](
    "sandboxMails",
    (Index(SANDBOX_ORDER), Index(("about",))),
    private=private_of(SandboxMail),
    client_field="about",
    secret=True,
    expire=("createdAt", int(RETENTION.total_seconds())),
    transfer=NotExported("mail of a sandbox"),
)


class FailedMail(Stored):
    """A mail under the identifier of the job that was to send it; `about` is the client it concerns, if any."""

    about: ObjectId | None
    sealed: bytes
    reason: str
    tries: int


failed_mails = Documents[FailedMail](
    "failedMails",
    (Index(("about",)),),
    client_field="about",
    secret=True,
    expire=("createdAt", int(RETENTION.total_seconds())),
    cross_company_reason="the operator lists the mail of all companies that was not sent",
    placement=Unsharded("few documents, which the operator lists for all companies"),
    transfer=NotExported("mail that was not sent"),
)


SEND = "send_mail"
CONNECTIONS = 4  # mails that one process sends at the same time
_RETRY_DELAYS = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 180, 360, 720, 1440))

# The package `email` loses the quotes of a name with these characters where it breaks a long line.
_SPECIAL = re.compile(r'[()<>\[\]:;@\\,"]')
_SENDER_NAME_LENGTH = 60

log = structlog.get_logger("coaching_service.mail")


class MailContent(TypedDict):
    """What is encrypted of a queued mail; mail that an earlier version has queued has no `body`, and gets no HTML."""

    to: str
    subject: str
    text: str
    body: NotRequired[MailBody]


@dataclass(frozen=True)
class NewMail:
    """A mail to queue; `about` is the client it concerns, if any.

    `text_addition` is a paragraph that only the plain text has, for those who read it with a program. `is_urgent`: it
    is sent although mail of the company is held. `after`: it is sent so much later.
    """

    to: str
    subject: str
    body: MailBody
    about: ObjectId | None = None
    text_addition: str | None = None
    is_urgent: bool = False
    after: timedelta = timedelta(0)

    @property
    def text(self) -> str:
        """The plain text."""
        return render_text(self.body, self.text_addition)

    @property
    def content(self) -> MailContent:
        """What is encrypted of it."""
        return {"to": self.to, "subject": self.subject, "text": self.text, "body": self.body}


class _PlainHeader(str):
    """A header that stays one text: the package `email` makes encoded words of long ones, which no program reads."""

    def __new__(cls, name: str, value: str) -> Self:
        header = super().__new__(cls, value)
        header.name = name
        return header

    name: str

    def fold(self, *, policy: Policy) -> str:
        """Return the header as it is sent: one line, which has no space where it could be broken."""
        return f"{self.name}: {self}{policy.linesep}"


class MailRejected(Exception):
    """The mail was certainly not accepted; `permanent` when another attempt would be pointless."""

    def __init__(self, reason: str, *, permanent: bool = False) -> None:
        super().__init__(reason)
        self.permanent = permanent


# Called before the one command after which only the server knows whether a mail is accepted.
BeforeData = Callable[[], Awaitable[None]]


class _Client(aiosmtplib.SMTP):
    """An SMTP client that tracks whether its mail was accepted: None when only the server knows."""

    accepted: bool | None = False
    before_data: BeforeData | None = None

    async def data(self, message: str | bytes, /, **options: Any) -> aiosmtplib.SMTPResponse:
        """Send the message itself, the last command that matters for a mail."""
        if self.before_data is not None:
            await self.before_data()
        self.accepted = None
        try:
            response = await super().data(message, **options)
        except aiosmtplib.SMTPDataError as error:
            self.accepted = False if error.code >= 400 else None
            raise
        self.accepted = True
        return response


@dataclass(frozen=True)
class SmtpMailSender:
    """Sends mail by SMTP. `encryption` is `starttls`, `tls` or `none`.

    Each command gets `command_seconds`, and the delivery `total_seconds` in all: less than the lease of a job, so that
    no other worker claims a mail that is being sent.
    """

    repeatable: ClassVar[bool] = False
    host: str
    port: int
    sender: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    encryption: str = "starttls"
    command_seconds: float = 10.0
    total_seconds: float = 30.0

    async def send(self, mail: EmailMessage, before_data: BeforeData | None = None) -> None:
        """Send `mail`. Raises MailRejected if it was certainly not accepted, and any other error if that is unknown."""
        client = _Client(
            hostname=self.host,
            port=self.port,
            username=self.username,
            password=self.password,
            use_tls=self.encryption == "tls",
            start_tls=self.encryption == "starttls",
            timeout=self.command_seconds,
        )
        client.before_data = before_data
        try:
            async with asyncio.timeout(self.total_seconds):
                await client.connect()
                await client.send_message(mail)
                await client.quit()
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            if client.accepted is None:
                raise
            if not client.accepted:
                raise _rejection(error) from None
        finally:
            client.close()


def _rejection(error: Exception) -> MailRejected:
    """Return why a mail was not accepted.

    Only a rejected recipient or message is permanent: all other reasons concern the connection between the service and
    the mail server, which its operator can repair.
    """
    if isinstance(error, aiosmtplib.SMTPRecipientsRefused):
        permanent = all(recipient.code >= 500 for recipient in error.recipients)
        return MailRejected("the recipient was rejected", permanent=permanent)
    if isinstance(error, aiosmtplib.SMTPResponseException):
        permanent = isinstance(error, aiosmtplib.SMTPDataError) and error.code >= 500
        return MailRejected(f"the server responded {error.code}", permanent=permanent)
    # The text of other errors may contain the address.
    reason = str(error) if isinstance(error, aiosmtplib.SMTPException | OSError) else ""
    return MailRejected(reason or type(error).__name__)


@dataclass(frozen=True)
class FolderMailSender:
    """Writes each mail to a file in a folder, for services without a mail server."""

    repeatable: ClassVar[bool] = True
    folder: Path
    sender: str

    async def send(self, mail: EmailMessage, before_data: BeforeData | None = None) -> None:
        """Write `mail` to a file named after its identifier, so that writing it again changes nothing.

        Raises MailRejected if the file cannot be written.
        """
        file = self.folder / f"{mail['Message-ID'].partition('@')[0].lstrip('<')}.eml"
        draft = file.with_suffix(".tmp")
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as handle:
                handle.write(mail.as_bytes())
            draft.replace(file)
        except OSError as error:
            raise MailRejected(str(error)) from None


async def enqueue_mail(ctx: Context, mail: NewMail) -> None:
    """Queue a mail in the caller's transaction. It is not sent if the client it is `about` is erased before.

    Mail of a sandbox is stored, and never sent.
    """
    await enqueue_mails(ctx, [mail])


async def enqueue_mails(ctx: Context, mails: Sequence[NewMail]) -> None:
    """Queue mails in the caller's transaction, as `enqueue_mail` does each of them."""
    if ctx.recorder is not None and mails:
        ctx.recorder.sends = True
    if ctx.principal is not None and ctx.principal.company.is_sandbox:
        new = [
            {"to": each.to, "subject": to_line(each.subject), "text": each.text, "about": each.about} for each in mails
        ]
        await sandbox_mails.insert_many(ctx, new)
        return
    jobs: dict[timedelta, dict[ObjectId, tuple[dict[str, Any], ObjectId | None]]] = {}
    for each in mails:
        identifier = ObjectId()
        sealed = seal_content(ctx.services.vault, identifier, each.content)
        arguments = {"sealed": sealed, "tries": 0} | ({"isUrgent": True} if each.is_urgent else {})
        jobs.setdefault(each.after, {})[identifier] = (arguments, each.about)
    for after, due_together in jobs.items():
        await queue.enqueue_each(ctx, SEND, due_together, after=after)


def seal_content(vault: Vault, identifier: ObjectId, content: MailContent) -> bytes:
    """Return the encrypted content of the mail that is queued as the job `identifier`."""
    return vault.seal(orjson.dumps(content), f"mail:{identifier}")


def open_content(vault: Vault, identifier: ObjectId, sealed: bytes) -> MailContent:
    """Return the content of a queued mail. Raises SecretUnreadable if its master key is missing."""
    content: MailContent = orjson.loads(vault.open(sealed, f"mail:{identifier}"))
    return content


def _log_fields(job: Job) -> dict[str, str | None]:
    """Return what an operator needs to have a mail sent again: its company and the client it is about."""
    return {
        "job": str(job.id),
        "company": str(job.company_id) if job.company_id else None,
        "client": str(job.about) if job.about else None,
    }


async def send(services: Services, job: Job) -> RunAgain | None:
    """Try once to send a queued mail."""
    if job.arguments.get("isHandedOver"):
        # That attempt was interrupted: the server may have accepted the mail, and sending it twice is worse.
        log.error("mail possibly not sent", **_log_fields(job))
        await _give_up(services, job, "unknown", "an attempt was interrupted: it may have been sent")
        return None
    if job.attempts > len(_RETRY_DELAYS):
        await _give_up(services, job, "failed", "it cannot be written")
        return None

    try:
        await _hand_over(services, job, job.id, open_content(services.vault, job.id, job.arguments["sealed"]))
    except SecretUnreadable as error:
        return await _retry(services, job, str(error), permanent=False)
    except MailRejected as rejection:
        return await _retry(services, job, str(rejection), permanent=rejection.permanent)
    return None


async def send_now(services: Services, job: Job, new: NewMail) -> None:
    """Send a mail in the step of a job that has to know whether it was sent. Raises MailRejected.

    The job may send it twice, if it is interrupted before it has stored that.
    """
    try:
        await _hand_over(services, job, ObjectId(), new.content)
    except MailRejected as rejection:
        log.warning("mail rejected", **_log_fields(job), reason=str(rejection))
        services.metrics.mails.labels("delayed").inc()
        raise


async def _hand_over(services: Services, job: Job, identifier: ObjectId, content: MailContent) -> None:
    """Send a mail with an identifier, unless another worker has claimed the job. Raises MailRejected."""

    async def mark() -> None:
        if not await queue.mark(services, job, "isHandedOver"):
            raise MailRejected("another worker sends it")

    await services.mail_sender.send(_message(services, identifier, content), mark)
    services.metrics.mails.labels("sent").inc()


async def _give_up(services: Services, job: Job, outcome: MailOutcome, reason: str) -> None:
    """Store the mail of a job as one that was given up; repeating it changes nothing."""
    services.metrics.mails.labels(outcome).inc()
    at = now()
    new = {
        "companyId": job.company_id,
        "about": job.about,
        "sealed": job.arguments["sealed"],
        "reason": reason,
        "tries": job.arguments["tries"] + 1,
        "createdAt": at,
        "updatedAt": at,
        "version": 0,
    }
    await failed_mails.across_companies(services).update_one({"_id": job.id}, {"$setOnInsert": new}, upsert=True)


async def _retry(services: Services, job: Job, reason: str, *, permanent: bool) -> RunAgain | None:
    tries = job.arguments["tries"]
    log.warning("mail rejected", **_log_fields(job), tries=tries + 1, reason=reason)
    if permanent or tries >= len(_RETRY_DELAYS):
        await _give_up(services, job, "failed", reason)
        return None
    services.metrics.mails.labels("delayed").inc()
    return RunAgain(_RETRY_DELAYS[tries], {"tries": tries + 1, "reason": reason})


@transactional
async def send_again(ctx: Context, mail: FailedMail) -> bool:
    """Queue a mail of the company again that was given up; returns False if that has been done."""
    if await failed_mails.delete(ctx, {"_id": mail["_id"]}) is None:
        return False
    arguments = {"sealed": mail["sealed"], "tries": 0}
    await queue.enqueue_each(ctx, SEND, {mail["_id"]: (arguments, mail["about"])})
    return True


def _message(services: Services, identifier: ObjectId, content: MailContent) -> EmailMessage:
    mail, subject, body = EmailMessage(), to_line(content["subject"]), content.get("body")
    sender = services.mail_sender.sender
    name, address = parseaddr(sender)
    if name or body is None or has_address(body["company"]):  # which could pass for another sender
        mail["From"] = sender
    else:
        company = " ".join(_SPECIAL.sub(" ", to_line(body["company"])).split())
        mail["From"] = Address(company[:_SENDER_NAME_LENGTH].strip(), addr_spec=address)
    mail["To"], mail["Subject"] = content["to"], subject
    mail["Date"] = formatdate(usegmt=True)
    mail["Message-ID"] = f"<{identifier}@{urlsplit(services.base_url).hostname}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(content["text"])
    if body is not None:
        if (unsubscribe := body.get("decline") or body.get("unsubscribe")) is not None:
            mail["List-Unsubscribe"] = _PlainHeader("List-Unsubscribe", f"<{unsubscribe}>")
            mail["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        mail.add_alternative(_template().render(body=body, subject=subject), subtype="html")
    return mail
