"""Entries of the activity feed as they are stored and returned."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypedDict

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


class ActivityEvent(TypedDict):
    """An entry as interfaces return one; `data` holds identifiers, names and figures that depend on `type`."""

    _id: ObjectId
    type: ActivityType
    date: datetime
    data: dict[str, Any]


class StoredActivityEvent(Stored):
    """A stored entry; `sourceId` is the document that it reports on."""

    customerId: ObjectId
    sourceId: ObjectId
    type: ActivityType
    date: datetime
    data: dict[str, Any]
