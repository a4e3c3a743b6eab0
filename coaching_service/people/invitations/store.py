"""Recipients of invitations in the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import NotExported
from coaching_service.people.invitations.models import Recipient

recipients = Documents[Recipient](
    "invitationRecipients",
    (Index(("addressHash",), unique=True),),
    secret=True,
    expire=("expiresAt", 0),
    transfer=NotExported("hashes of addresses under the keys of the service"),
    incidental=True,
)


async def find_many(ctx: Context, hashes: Sequence[str]) -> list[Recipient]:
    """Return the recipients with these hashes."""
    return await recipients.find(ctx, {"addressHash": {"$in": list(hashes)}})


async def set_sent(ctx: Context, sent: Mapping[str, tuple[list[datetime], datetime]]) -> None:
    """Store by hash when invitations are sent, and when the document can be deleted."""
    await recipients.upsert_many(
        ctx,
        ("addressHash",),
        [{"addressHash": each, "sentAt": at, "expiresAt": end} for each, (at, end) in sent.items()],
    )


async def set_declined(ctx: Context, address_hash: str, at: datetime) -> None:
    """Store that a recipient wants no more invitations of the company."""
    await recipients.upsert(ctx, {"addressHash": address_hash}, {"declinedAt": at, "sentAt": [], "expiresAt": None})
