"""The mail of sandboxes: stored for the developers who test with them, never sent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.models import Stored
from coaching_service.core.database.portable import NotExported
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId

RETENTION = timedelta(days=30)


class SandboxMail(Stored):
    """A mail that would have been sent; `about` is the client it concerns, if any."""

    to: str
    subject: str
    text: str
    about: ObjectId | None


mails = Documents[SandboxMail](
    "sandboxMails",
    (Index(("-createdAt", "-_id")), Index(("about",))),
    private=("companyId", "about"),
    client_field="about",
    secret=True,
    expire=("createdAt", int(RETENTION.total_seconds())),
    transfer=NotExported("mail of a sandbox"),
)


async def store(ctx: Context, to: str, subject: str, text: str, about: ObjectId | None) -> None:
    """Store a mail, in the caller's transaction."""
    await mails.insert(ctx, {"to": to, "subject": subject, "text": text, "about": about})


async def find_page(ctx: Context, *, skip: int, limit: int) -> tuple[list[SandboxMail], int]:
    """Return one page of the mails of the company, newest first, and how many there are."""
    documents, total = await gather_reads(
        ctx, mails.find(ctx, {}, sort=("-createdAt", "-_id"), skip=skip, limit=limit), mails.count(ctx, {})
    )
    result: tuple[list[Any], int] = (documents, total)
    return result
