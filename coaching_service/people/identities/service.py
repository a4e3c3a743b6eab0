"""Who can sign in: addresses, and passwords hashed with argon2id."""

from __future__ import annotations

import asyncio

from argon2 import PasswordHasher

from coaching_service.kernel.storage.context import Context
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.people.identities import store

# argon2-cffi's default profile is RFC 9106's low-memory one: 64 MiB, 3 passes, 4 lanes.
_hasher = PasswordHasher()


async def hash_password(password: str) -> str:
    """The argon2id hash of a password, computed off the event loop."""
    return await asyncio.to_thread(_hasher.hash, password)


async def add(ctx: Context, subject_id: ObjectId, address: str, password_hash: str | None) -> None:
    """Let the principal's colleague or client `subject_id` sign in by `address`.

    Raises Conflict when the address is already used for sign-in, in any company.
    """
    await store.add(ctx, subject_id, address, password_hash)


async def subject_of(ctx: Context, address: str) -> ObjectId | None:
    """Whom `address` signs in, or None."""
    return await store.subject_of(ctx, address)
