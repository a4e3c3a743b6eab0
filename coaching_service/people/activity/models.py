"""Entries of the activity feed as they are stored and returned."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, NotRequired, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.ids import ObjectId

ActivityType = Literal[
    "workout_completed",
    "item_logged",
    "form_submitted",
    "metric_recorded",
    "photo_added",
    "plan_uploaded",
    "personal_record",
    "note_added",
    "program_assigned",
]


class Actor(TypedDict):
    """The author of a change: a coach, also when acting through an API key or an assistant, or the client."""

    type: Literal["coach", "client", "key", "assistant"]
    _id: ObjectId
    name: str


class ActivityEvent(TypedDict):
    """An entry as interfaces return one; `data` holds identifiers, names and figures that depend on `type`."""

    _id: ObjectId
    type: ActivityType
    date: datetime
    data: dict[str, Any]


class AttributedEvent(ActivityEvent):
    """An entry with its author; None if it was recorded before authors were stored."""

    actor: Actor | None


class StoredActivityEvent(Stored):
    """A stored entry; `sourceId` is the document that it reports on."""

    customerId: ObjectId
    sourceId: ObjectId
    type: ActivityType
    date: datetime
    data: dict[str, Any]
    actor: NotRequired[Actor]


class NewActivityEvent(TypedDict):
    """An entry to store; `sourceId` is the document that it reports on."""

    customerId: ObjectId
    sourceId: ObjectId
    type: ActivityType
    date: datetime
    data: dict[str, Any]
    actor: Actor
