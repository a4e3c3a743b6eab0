"""Sign-in addresses: unique across all companies, so they are found by address and not by company."""

from __future__ import annotations

from datetime import timedelta

from pymongo.errors import DuplicateKeyError

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, Documents, now
from coaching_service.core.errors import Conflict
from coaching_service.core.ids import ObjectId

RESET_LIVES = timedelta(hours=1)

identities = Documents[Document](
    "identities",
    (Index(("subjectId",), unique=True),),
    client_field="subjectId",
    secret=True,
    global_indexes=(Index(("address",), unique=True),),
    cross_company_reason="who signs in is found by address before the company is known",
)
resets = Documents[Document](
    "passwordResets",
    (Index(("subjectId",)),),
    client_field="subjectId",
    secret=True,
    expire=("createdAt", int(RESET_LIVES.total_seconds())),
    global_indexes=(Index(("tokenHash",), unique=True),),
    cross_company_reason="a reset is found by the hash of its token before the company is known",
)


def normal(address: str) -> str:
    """The form in which two spellings of one address are the same: in small letters.

    Look-alikes stay apart: full case folding makes `ß` into `ss`, and the Kelvin sign becomes a plain `k` even by
    `lower`, so a letter is only made small when its small form leads back to it.
    """
    return "".join(small if (small := letter.lower()).upper() == letter else letter for letter in address.strip())


async def add(ctx: Context, subject_id: ObjectId, kind: str, address: str, password_hash: str | None) -> None:
    """Store a new identity. Raises Conflict when the address signs somebody in already."""
    identity = {"address": normal(address), "kind": kind, "subjectId": subject_id, "passwordHash": password_hash}
    try:
        await identities.insert(ctx, identity)
    except DuplicateKeyError:
        raise Conflict("This e-mail address is already used to sign in") from None


async def by_address(services: Services, address: str) -> Document | None:
    """The identity of an address in any company, or None."""
    return await identities.across_companies(services).find_one({"address": normal(address)})


async def by_subject(ctx: Context, subject_id: ObjectId) -> Document | None:
    """How a coach or client of the company signs in, or None."""
    return await identities.find_one(ctx, {"subjectId": subject_id}, ("address", "passwordHash", "kind"))


async def set_password(ctx: Context, subject_id: ObjectId, password_hash: str) -> bool:
    """Give a coach or client of the company a password; whether they have an identity."""
    change = {"$set": {"passwordHash": password_hash}}
    return await identities.update(ctx, {"subjectId": subject_id}, change) is not None


async def set_address(ctx: Context, subject_id: ObjectId, address: str) -> None:
    """Move a coach's identity to another address. Raises Conflict when it signs somebody in already."""
    try:
        await identities.update(ctx, {"subjectId": subject_id}, {"$set": {"address": normal(address)}})
    except DuplicateKeyError:
        raise Conflict("This e-mail address is already used to sign in") from None


async def remove(ctx: Context, subject_id: ObjectId) -> None:
    """Take a coach's or client's sign-in away, resets included."""
    await identities.delete_many(ctx, {"subjectId": subject_id})
    await remove_resets(ctx, subject_id)


async def remove_resets(ctx: Context, subject_id: ObjectId) -> None:
    """Take every right to set a coach's or client's password away."""
    await resets.delete_many(ctx, {"subjectId": subject_id})


async def add_reset(ctx: Context, subject_id: ObjectId, kind: str, token_hash: str) -> None:
    """Store a single-use right to set a password."""
    await resets.insert(ctx, {"subjectId": subject_id, "kind": kind, "tokenHash": token_hash})


async def find_reset(services: Services, token_hash: str) -> Document | None:
    """The right to set a password that this token gives, if it has not ended."""
    alive = {"tokenHash": token_hash, "createdAt": {"$gt": now() - RESET_LIVES}}
    return await resets.across_companies(services).find_one(alive)


async def use_resets(ctx: Context, subject_id: ObjectId, token_hash: str) -> bool:
    """Use up a reset, and with it every other one of the same person; whether it was still there."""
    used = await resets.delete(ctx, {"subjectId": subject_id, "tokenHash": token_hash})
    await remove_resets(ctx, subject_id)
    return used is not None
