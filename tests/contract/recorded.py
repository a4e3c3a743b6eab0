"""Real responses made into examples: what differs between two runs is replaced by values that stay the same."""

from __future__ import annotations

import re
from typing import Any

_IDENTIFIER = re.compile(r"(?<![0-9a-f])[0-9a-f]{24}(?![0-9a-f])")
_SIGNED = re.compile(r"\?expires=\d+(&reader=[^&]*)?&signature=.*")
_CALENDAR = re.compile(r"(/calendar/[0-9a-f]{24})\..*")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_FILE = re.compile(r"[0-9a-f]{24}\.[0-9a-z]+")
_LONGEST_LIST = 2
_FIXED = {
    "accessToken": "b3BhcXVlLWFjY2Vzcy10b2tlbg",
    "refreshToken": "b3BhcXVlLXJlZnJlc2gtdG9rZW4",
    "firstAccessToken": "1f0c0ffe-0000-4000-8000-00000000abcd",
    "key": "cs_ak_EXAMPLE",
    "lastFour": "MPLE",
    "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "complianceDate": "2026-03-02",
    "companyName": "Riverside Strength",
}


class Example:
    """The example of one operation: its identifiers are numbered from 1, so that it depends on no other operation."""

    def __init__(self) -> None:
        self._identifiers: dict[str, str] = {}

    def of(self, value: Any, name: str = "") -> Any:
        """The example for a response, or for the field `name` of one."""
        if isinstance(value, dict):
            return {field: self.of(entry, field) for field, entry in value.items()}
        if isinstance(value, list):
            return [self.of(entry, name) for entry in value[:_LONGEST_LIST]]
        if name in _FIXED and isinstance(value, str) and not _is_symbol(value):
            return _FIXED[name]
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        if "@" in text:
            return f"{re.split(r'[0-9@]', text)[0]}@example.com"
        text = _SIGNED.sub("?expires=1772445600&signature=c2lnbmF0dXJl", _TIME.sub("2026-03-02T08:30:00.000Z", text))
        text = _CALENDAR.sub(r"\1.YSBzaWduYXR1cmUgb2YgdGhlIGNhbGVuZGFyIGxpbms", text)
        return _IDENTIFIER.sub(lambda match: self._identifier(match[0]), text)

    def _identifier(self, identifier: str) -> str:
        number = len(self._identifiers) + 1
        return self._identifiers.setdefault(identifier, f"66f0c0ffee{number:014x}")


def _is_symbol(text: str) -> bool:
    """Whether a `key` is the name of a planned quantity or of a file, not a secret."""
    return text in {"reps", "load", "time", "distance", "rest", "rir", "rpe"} or bool(_FILE.fullmatch(text))
