"""What a session consists of: the fields of a block that its client or a coach reports, declared once."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from coaching_service.core.fields import Description, Label, names_of
from coaching_service.core.validation import TEXT_LENGTH, Integer, Number, Text


class SessionFields(TypedDict):
    """What is reported about a session; `feeling` is missing in blocks that are older than it is."""

    durationMinutes: Annotated[
        float | None, Number(minimum=0, maximum=1_440), Description(argument="Of the session."), Label("Duration")
    ]
    sessionRpe: Annotated[
        float | None,
        Number(minimum=0, maximum=10),
        Description(argument="Of the session, 0 to 10."),
        Label("Session RPE"),
    ]
    feeling: NotRequired[
        Annotated[
            int | None,
            Integer(minimum=1, maximum=5),
            Description(
                "How the client felt in the session, 1 (bad) to 5 (good).",
                request="How the client felt, 1 (bad) to 5 (good). Default: null in a client's log, the stored value "
                "in a coach's.",
                argument="How the client felt, 1 (bad) to 5 (good).",
            ),
        ]
    ]
    comment: Annotated[
        str | None, Text(max_length=TEXT_LENGTH, allow_blank=True), Description(argument="About the session.")
    ]


SESSION_FIELDS = names_of(SessionFields)


def no_session() -> SessionFields:
    """Return the fields of a session without a report."""
    return {"durationMinutes": None, "sessionRpe": None, "feeling": None, "comment": None}
