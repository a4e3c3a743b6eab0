"""The scopes of OAuth: `mcp` is whatever the coach allows; the others are its parts."""

from __future__ import annotations

from collections.abc import Collection

from coaching_service.people.assistants.models import SCOPES, Scope

SCOPE = "mcp"
_PARTS: dict[str, Scope] = {f"{SCOPE}:{scope}": scope for scope in SCOPES}
SUPPORTED = [SCOPE, *_PARTS]


def requested_scopes(text: str) -> str:
    """Return which of the requested scopes exist; `mcp` if there are none, as unknown ones are ignored."""
    known = [word for word in dict.fromkeys(text.split()) if word in SUPPORTED]
    return " ".join(known) or SCOPE


def offered_scopes(text: str) -> tuple[Scope, ...]:
    """Return what a coach can allow an application that requests these scopes."""
    requested = requested_scopes(text).split()
    return SCOPES if SCOPE in requested else tuple(scope for name, scope in _PARTS.items() if name in requested)


def granted_scopes(requested: str, allowed: Collection[Scope]) -> str:
    """Return the scope of a token: those requested that were allowed.

    `mcp` remains when it was requested: applications reject a token with a scope that they have not requested.
    """
    return " ".join(word for word in requested.split() if word == SCOPE or _PARTS[word] in allowed) or SCOPE
