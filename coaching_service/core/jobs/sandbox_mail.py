"""The mail of sandboxes: stored for the developers who test with them, never sent."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TypedDict

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.models import Stored
from coaching_service.core.database.portable import NotExported
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import ListSelection
from coaching_service.core.walking import Walk

RETENTION = timedelta(days=30)
ORDER = ("-createdAt", "-_id")


class NewSandboxMail(TypedDict):
    """A mail to store; `about` is the client it concerns, if any."""

    to: str
    subject: str
    text: str
    about: ObjectId | None


class SandboxMail(NewSandboxMail, Stored):
    """A mail that would have been sent."""


mails = Documents[SandboxMail](
    "sandboxMails",
    (Index(ORDER), Index(("about",))),
    private=("companyId", "about"),
    client_field="about",
    secret=True,
    expire=("createdAt", int(RETENTION.total_seconds())),
    transfer=NotExported("mail of a sandbox"),
)


async def store_many(ctx: Context, new_mails: Sequence[NewSandboxMail]) -> None:
    """Store mails, in the caller's transaction."""
    await mails.insert_many(ctx, new_mails)


async def find_page(ctx: Context, walk: Walk, selection: ListSelection) -> tuple[list[SandboxMail], int]:
    """Return the mails of a selection for one part of the list, newest first, and how many there are."""
    return await walk.read(ctx, mails, selection.filter())
