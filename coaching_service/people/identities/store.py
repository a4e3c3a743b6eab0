"""Sign-in addresses: unique across all companies, so they are found by address and not by company."""

from __future__ import annotations

from pymongo.errors import DuplicateKeyError

from coaching_service.kernel.errors import Conflict
from coaching_service.kernel.storage.context import Context
from coaching_service.kernel.storage.documents import Documents
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.kernel.storage.mongo import Index

identities = Documents(
    "identities",
    (Index(("subjectId",)),),
    client_field="subjectId",
    global_indexes=(Index(("address",), unique=True),),
    why_global="who signs in is found by address before the company is known",
)


def normal(address: str) -> str:
    """The form in which two spellings of one address are the same."""
    return address.strip().casefold()


async def add(ctx: Context, subject_id: ObjectId, address: str, password_hash: str | None) -> None:
    """Store a new identity. Raises Conflict when the address signs somebody in already."""
    identity = {"address": normal(address), "subjectId": subject_id, "passwordHash": password_hash}
    try:
        await identities.insert(ctx, identity)
    except DuplicateKeyError:
        raise Conflict("This e-mail address is already used to sign in") from None


async def subject_of(ctx: Context, address: str) -> ObjectId | None:
    """Whom an address signs in, or None."""
    found = await identities.globally(ctx.services).find_one({"address": normal(address)}, {"subjectId": 1})
    return found["subjectId"] if found else None
