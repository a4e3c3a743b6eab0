"""Passwords: argon2id, one at a time on a thread of its own, so that requests go on being answered."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

MIN_LENGTH, MAX_LENGTH = 12, 200

# The first of OWASP's recommended options (19 MiB, 2 passes, one lane): a sign-in must not take a core for long, nor
# every core.
_hasher = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="argon2")
# Verified against when there is nobody: an unknown address takes the time a wrong password takes.
_NOBODY = _hasher.hash("nobody's password")


async def hash_password(password: str) -> str:
    """The argon2id hash of a password, computed off the event loop."""
    return await asyncio.get_running_loop().run_in_executor(_thread, _hasher.hash, password)


async def verify_password(password: str, password_hash: str | None) -> bool:
    """Whether `password` is the one behind the hash. Without a hash the answer is no, after the same time."""
    right = await asyncio.get_running_loop().run_in_executor(_thread, _matches, password_hash or _NOBODY, password)
    return right and password_hash is not None


def _matches(password_hash: str, password: str) -> bool:
    try:
        return _hasher.verify(password_hash, password)
    except (VerificationError, InvalidHashError):
        return False
