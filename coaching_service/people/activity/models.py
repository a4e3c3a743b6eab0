"""Entries of the activity feed as they are stored and returned."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypedDict

from coaching_service.core.database.recording import Actor
from coaching_service.core.events import EventType
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers.models import CustomerReference

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
    "workout_moved",
    "workout_added",
]


EVENT_TYPE_OF: dict[ActivityType, EventType] = {
    "workout_completed": "workout.completed",
    "item_logged": "item.logged",
    "form_submitted": "form.submitted",
    "metric_recorded": "metric.recorded",
    "photo_added": "photo.added",
    "plan_uploaded": "plan.uploaded",
    "personal_record": "record.achieved",
    "note_added": "note.created",
    "program_assigned": "program.assigned",
    "workout_moved": "workout.updated",
    "workout_added": "workout.created",
}
ACTIVITY_TYPE_OF = {event_type: activity_type for activity_type, event_type in EVENT_TYPE_OF.items()}


class ActivityEvent(TypedDict):
    """An entry as interfaces return one; `data` holds identifiers, names and figures that depend on `type`."""

    _id: ObjectId
    type: ActivityType
    date: datetime
    data: dict[str, Any]


class AttributedEvent(ActivityEvent):
    """An entry with its author; None if it was recorded before authors were stored."""

    actor: Actor | None


class CompanyEvent(AttributedEvent):
    """An entry of the feed of all clients, with its client."""

    customer: CustomerReference


class ChangedEvent(CompanyEvent):
    """An entry of the feed of all clients, with the change that it is from."""

    changeId: ObjectId


class ImportedEvent(TypedDict):
    """An entry to import, with its own date; `sourceId` is the document that it reports on."""

    customerId: ObjectId
    sourceId: ObjectId
    type: ActivityType
    date: datetime
    data: dict[str, Any]
    actor: Actor
