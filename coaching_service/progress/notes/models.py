"""Notes as they are sent, stored and returned."""

from __future__ import annotations

from typing import Annotated, TypeAlias, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.fields import Change, Default, Description, Label
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Text

CONTENT_LENGTH = 50_000


class NoteAuthor(TypedDict):
    """Who wrote a note."""

    _id: ObjectId
    name: str


class NewNote(TypedDict):
    """A note to add."""

    content: Annotated[
        str,
        Text(max_length=CONTENT_LENGTH),
        Description(
            request="HTML; sanitised before it is stored.",
            response="HTML without scripts, styles, pictures or forms.",
        ),
        Label("Text"),
    ]
    isPinned: Annotated[
        bool,
        Default(False),
        Description("Whether the note is shown first.", argument="Show it first."),
        Label("Shown first"),
    ]
    isHealth: Annotated[
        bool,
        Default(False),
        Description(
            "Whether the note is about the client's health.",
            argument="It is about health, such as pain or an injury: needs attention.",
        ),
        Label("About health"),
    ]


class NoteSubject(TypedDict):
    """Whom a note is about, and who wrote it."""

    customerId: ObjectId
    author: Annotated[NoteAuthor | None, Description("Who wrote it; null for notes older than this field.")]


class Note(NoteSubject, NewNote, Stored):
    """A coach's note on a client."""


NoteChange: TypeAlias = Change[NewNote]
