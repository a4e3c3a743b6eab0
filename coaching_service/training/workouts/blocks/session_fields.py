"""What a session consists of: the fields of a block that its client or a coach reports, declared once."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class SessionFields(TypedDict):
    """What is reported about a session; `feeling` is from 1 to 5, and missing in blocks that are older than it is."""

    durationMinutes: float | None
    sessionRpe: float | None
    feeling: NotRequired[int | None]
    comment: str | None


SESSION_FIELDS = tuple(SessionFields.__annotations__)


def no_session() -> SessionFields:
    """Return the fields of a session of which nothing is reported."""
    return {"durationMinutes": None, "sessionRpe": None, "feeling": None, "comment": None}
