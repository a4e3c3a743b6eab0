"""Notes as they are stored and returned."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.ids import ObjectId


class NoteAuthor(TypedDict):
    """Who wrote a note."""

    _id: ObjectId
    name: str


class NewNote(TypedDict):
    """A note to add."""

    content: str
    isPinned: NotRequired[bool]
    isHealth: NotRequired[bool]


class Note(Stored):
    """A note on a client; `content` is sanitised HTML.

    `author` is null for notes that were stored before authors were. `isHealth`: it is about the client's health.
    """

    customerId: ObjectId
    author: NoteAuthor | None
    content: str
    isPinned: bool
    isHealth: bool


class NoteChange(TypedDict):
    """The fields of a note to change; `version` is the one the change is based on."""

    content: NotRequired[str]
    isPinned: NotRequired[bool]
    isHealth: NotRequired[bool]
    version: NotRequired[int]
