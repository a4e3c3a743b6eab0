"""What an owner does with the company."""

from __future__ import annotations

from coaching_service.kernel.auth.principal import Company
from coaching_service.kernel.storage.context import Context
from coaching_service.kernel.storage.documents import Document
from coaching_service.people.account import store


async def found(ctx: Context) -> None:
    """Store the company of the principal, who is its first owner."""
    await store.add(ctx, ctx.who.company)


def as_company(document: Document) -> Company:
    """A stored company as principals carry it."""
    return Company(document["_id"], document["companyName"], document["timezone"], document["loadUnit"])
