"""Notes as they are stored and returned."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.ids import ObjectId


class Note(Stored):
    """A coach's note on a client; `content` is sanitised HTML."""

    customerId: ObjectId
    content: str


class NoteChange(TypedDict):
    """The fields of a note to change; `version` is the one the change is based on."""

    content: NotRequired[str]
    version: NotRequired[int]
