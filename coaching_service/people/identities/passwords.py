"""Passwords: argon2id, computed one at a time on a separate thread so that the event loop is not blocked."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from unicodedata import normalize

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

MIN_LENGTH, MAX_LENGTH = 12, 200

# The first of OWASP's recommended parameter sets (19 MiB, 2 iterations, 1 lane): it limits how long and how many cores
# a sign-in takes.
_hasher = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="argon2")
# The hash of a random text, with these parameters: verified against for unknown users, so that they take the same time
# as a wrong password. Written out, because computing it would delay each start.
_UNKNOWN_USER = "$argon2id$v=19$m=19456,t=2,p=1$4oXMfutGUWVhdHlHSj1TIg$VJ4Rv/NiGHJ8vKCwh0n38310j08MM8ayDftlYY230hU"


async def hash_password(password: str) -> str:
    """Return the argon2id hash of a password, normalised (NFKC) so that every keyboard's spelling of it matches."""
    return await asyncio.get_running_loop().run_in_executor(_thread, _hasher.hash, normalize("NFKC", password))


async def verify_password(password: str, password_hash: str | None) -> bool:
    """Return whether the hash is of `password`; without a hash, False after the same time."""
    matches = await asyncio.get_running_loop().run_in_executor(
        _thread, _matches, password_hash or _UNKNOWN_USER, password
    )
    return matches and password_hash is not None


def _matches(password_hash: str, password: str) -> bool:
    normalized = normalize("NFKC", password)
    # Hashes stored before passwords were normalised are of the text as typed.
    return any(_verify(password_hash, text) for text in dict.fromkeys((normalized, password)))


def _verify(password_hash: str, password: str) -> bool:
    try:
        return _hasher.verify(password_hash, password)
    except (VerificationError, InvalidHashError):
        return False
