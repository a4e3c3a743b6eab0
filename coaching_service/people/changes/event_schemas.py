"""The response with events, each with the data of its type."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from marshmallow import Schema, fields

from coaching_service.core.events import EVENT_TYPES, EventType
from coaching_service.core.field_schemas import output_of
from coaching_service.core.fields import Description, Optional
from coaching_service.core.schemas_by_type import Variant
from coaching_service.core.validation import Choice, Output
from coaching_service.people.changes.event_data import data_of
from coaching_service.people.changes.models import Event, EventPage


class _ChangedFields(TypedDict):
    fields: NotRequired[
        Annotated[
            list[str],
            Description(
                "The names of the fields that changed, dotted inside nested objects; `wblocks` for the workouts of a "
                "program. Empty if no field that coaches can read changed."
            ),
            Optional,
        ]
    ]


_EVENT = output_of(Event, first=("id", "seq", "changeId", "type", "createdAt"))


def _data_schema(event_type: EventType) -> type[Schema]:
    data = data_of(event_type)
    if not event_type.endswith(".updated"):
        return output_of(data)
    name = data.__name__.replace("Notification", "UpdatedNotification")
    return output_of(_ChangedFields, output_of(data), name=name, description=f"{data.__doc__} And what changed of it.")


def _event(event_type: EventType) -> type[Schema]:
    """Return the schema of an event of one type, such as `WorkoutCompletedNotification`."""
    words = event_type.replace(".", "_").split("_")
    attributes = {
        "__doc__": f"An event of the type `{event_type}`.",
        "type": Choice(event_type),
        "data": fields.Nested(_data_schema(event_type)),
    }
    return type("".join(word.capitalize() for word in words) + "Notification", (_EVENT,), attributes)


class _Events(Output):
    docs = fields.List(Variant({event_type: _event(event_type) for event_type in EVENT_TYPES}))


EventList = output_of(EventPage, _Events, name="EventList")
