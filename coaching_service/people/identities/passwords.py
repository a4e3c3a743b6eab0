"""Passwords: argon2id, computed one at a time on a separate thread so that the event loop is not blocked."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from unicodedata import normalize

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from marshmallow import ValidationError

from coaching_service.core.validation import Message, Text

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

    def matches() -> bool:
        # Hashes stored before passwords were normalised are of the text as typed.
        for text in dict.fromkeys((normalize("NFKC", password), password)):
            with suppress(VerificationError, InvalidHashError):
                return _hasher.verify(password_hash or _UNKNOWN_USER, text)
        return False

    return await asyncio.get_running_loop().run_in_executor(_thread, matches) and password_hash is not None


# --- Passwords of 12 and more characters that many people choose, and that are therefore tried first ------------------
# They consist only of repetitions, of neighbouring keys, letters and digits, and of a few common words. So a rule finds
# them: a list of passwords would need a line for each year and each final digit.


_LONGEST_REPEATED, _SHORTEST_RUN, _MAX_WORDS = 8, 3, 2
_KEYBOARDS = (
    "qwertyuiopasdfghjklzxcvbnm",
    "qwertzuiopasdfghjklyxcvbnm",
    "azertyuiopqsdfghjklmwxcvbn",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p",
    "1q2w3e4r5t6y7u8i9o0p",
    "qazwsxedcrfvtgbyhnujmikolp",
    "q1w2e3r4t5y6u7i8o9p0",
)
_ORDERED = ("!@#$%^&*()_+", "01234567890123456789", "1234567890" * 2, "abcdefghijklmnopqrstuvwxyz", *_KEYBOARDS)
_RUNS = tuple(text for ordered in _ORDERED for text in (ordered, ordered[::-1]))
_WORDS = (
    *("password", "passwort", "motdepasse", "contrasena", "parola", "senha", "haslo", "heslo", "wachtwoord"),
    *("welcome", "willkommen", "bienvenue", "letmein", "login", "admin", "administrator", "root", "user"),
    *("guest", "test", "changeme", "default", "secret", "geheim", "master", "access", "computer", "internet"),
    *("google", "facebook", "iloveyou", "ichliebedich", "jetaime", "teamo", "sunshine", "princess", "flower"),
    *("butterfly", "chocolate", "hello", "monkey", "dragon", "tiger", "shadow", "killer", "superman", "batman"),
    *("spiderman", "starwars", "pokemon", "naruto", "football", "fussball", "baseball", "basketball", "soccer"),
    *("hockey", "liverpool", "arsenal", "chelsea", "barcelona", "michael", "jennifer", "jessica", "ashley"),
    *("daniel", "charlie", "thomas", "jordan", "andrew", "alexander", "whatever", "trustno", "freedom"),
    *("mustang", "ferrari", "mercedes", "samsung", "jesus", "christ", "summer", "winter", "spring", "autumn"),
    *("sommer", "january", "february", "march", "april", "june", "july", "august", "september", "october"),
    *("november", "december", "love", "qwerty", "qwertz", "azerty", "asdf", "abc", "coach", "coaching"),
    *("trainer", "training", "fitness", "workout", "gym", "crossfit", "strength", "yoga"),
)
_SIGNS_OF = {"a": "a@4", "e": "e3", "i": "i1!", "l": "l1", "o": "o0", "s": "s$5", "t": "t7"}


_PATTERNS = str.maketrans({letter: f"[{re.escape(signs)}]" for letter, signs in _SIGNS_OF.items()})
_WORD = re.compile("|".join(sorted(_WORDS, key=len, reverse=True)).translate(_PATTERNS))
_FILLING = re.compile(r"[\W\d_]+")


def is_common(password: str) -> bool:
    """Return whether a password is among the most common ones of its length."""
    text = normalize("NFKC", password).casefold()
    letters = re.sub(r"[\W_]+", "", text)
    for each in (text, letters):
        period = (each + each).find(each, 1)
        if 0 < period <= min(_LONGEST_REPEATED, len(each) // 2) or _consists_of_runs(each):
            return True
    # At most two common words, and digits, signs and runs around them.
    rest, words = _WORD.subn("", text)
    remaining = _FILLING.sub("", rest)
    return 0 < words <= _MAX_WORDS and (not remaining or _consists_of_runs(remaining))


def _consists_of_runs(text: str) -> bool:
    """Return whether a text consists of parts such as `qwerty`, `4321` and `aaa`."""
    position = 0
    while position < len(text):
        rest = text[position:]
        same = len(rest) - len(rest.lstrip(rest[0]))
        # How many characters of the rest follow one another in a run.
        starts = (next((end for end in range(len(rest), 0, -1) if rest[:end] in run), 0) for run in _RUNS)
        length = max(same, *starts)
        if length < _SHORTEST_RUN:
            return False
        position += length
    return bool(text)


class NewPassword(Text):
    """A password to set: 12 to 200 characters, not trimmed; the most common ones are refused."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_LENGTH, trim=False, metadata={"minLength": MIN_LENGTH}, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        text = super()._deserialize(value, attr, data)
        if not text.strip():
            raise ValidationError("should not be empty")
        if len(text) < MIN_LENGTH:
            raise self.make_error("short")
        if is_common(text):
            raise self.make_error("common")
        return text

    default_error_messages = {
        "short": f"must be at least {MIN_LENGTH} characters long",
        "common": Message("is a password that many people use; use several unrelated words", "COMMON_PASSWORD"),
    }
