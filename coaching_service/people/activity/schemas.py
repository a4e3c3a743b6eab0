"""Requests and responses of the activity feed."""

from __future__ import annotations

from typing import Any

from marshmallow import fields

from coaching_service.core.pagination import AfterCursor, CursorMetadata, CursorQuery, PageMetadata
from coaching_service.core.query import QueryBoolean, QueryInteger, QueryTime
from coaching_service.core.schemas_by_type import Variant
from coaching_service.core.validation import Choice, Date, DateTime, Identifier, Output
from coaching_service.people.activity.record_types import RECORD_TYPES
from coaching_service.people.customers.schemas import NamedCustomer


class FeedQuery(AfterCursor):
    """`page` from 1 and `limit` from 1 to 100, both required."""

    page_field = "page"

    page = QueryInteger(minimum=1, required=True)
    limit = QueryInteger(minimum=1, maximum=100, required=True)


_OPTIONAL = {"optional": True}
ACTOR_TYPES = ("coach", "client", "assistant", "key", "system")


class WorkoutEventData(Output):
    """The workout block that was completed or added."""

    wblockId = Identifier()
    blockName = fields.String(metadata={"description": "The name of the block."})
    day = Date(metadata={"description": "The date of the session."})


class MovedWorkoutEventData(WorkoutEventData):
    """The workout block that the client moved to another day."""

    plannedDate = Date(metadata={"description": "The date for which the coach had planned it."})


class ItemEventData(WorkoutEventData):
    """The workout item that was logged."""

    witemId = Identifier()
    itemType = fields.String(metadata={"description": "The type of the item, such as `EXERCISE`."})
    itemName = fields.String(
        metadata={"description": "The name of the item, such as the name of its exercise.", **_OPTIONAL}
    )


class FormEventData(ItemEventData):
    """The workout item whose form was answered."""

    responseId = Identifier(
        allow_none=True, metadata={"description": "The response; null without an answer.", **_OPTIONAL}
    )


class MeasuredValue(Output):
    """A value that was recorded for a metric."""

    metricName = fields.String(metadata={"description": "The name of the metric."})
    unit = fields.String(metadata={"description": "The symbol of the unit."})
    value = fields.Float()


class MetricEventData(Output):
    """The value or values that were recorded: one for a metric, or those in the log of a workout item."""

    day = Date(metadata={"description": "The date of the values."})
    metricId = Identifier(metadata=_OPTIONAL)
    metricName = fields.String(metadata={"description": "The name of the metric.", **_OPTIONAL})
    unit = fields.String(metadata={"description": "The symbol of the unit.", **_OPTIONAL})
    value = fields.Float(metadata=_OPTIONAL)
    wblockId = Identifier(metadata=_OPTIONAL)
    blockName = fields.String(metadata={"description": "The name of the block.", **_OPTIONAL})
    witemId = Identifier(metadata=_OPTIONAL)
    itemType = fields.String(metadata={"description": "`METRICS`.", **_OPTIONAL})
    itemName = fields.String(metadata={"description": "The name of the metric set.", **_OPTIONAL})
    measured = fields.List(
        fields.Nested(MeasuredValue), metadata={"description": "The values in the log of an item.", **_OPTIONAL}
    )


class PhotoEventData(Output):
    """The progress photo that was added."""

    photoId = Identifier()
    side = Choice("front", "back", "side", metadata={"description": "The side it shows."})
    day = Date(metadata={"description": "The date of the photos."})


class PlanEventData(Output):
    """The nutrition plan that was uploaded."""

    planId = Identifier()
    number = fields.Integer(metadata={"description": "The number of the version."})
    fileName = fields.String()


class RecordEventData(Output):
    """The personal record."""

    exerciseId = Identifier()
    exerciseName = fields.String()
    recordType = Choice(*RECORD_TYPES, metadata={"description": "The type of record."})
    value = fields.Float(metadata={"description": "The value, in `unit`."})
    unit = fields.String()
    reps = fields.Integer(allow_none=True)
    meters = fields.Float(metadata={"description": "The distance, only of `fastest`.", "optional": True})
    day = Date(metadata={"description": "The date of the record."})
    isFirst = fields.Boolean(
        metadata={
            "description": "Whether the exercise was done for the first time, so that nothing was improved; missing in "
            "older entries.",
            **_OPTIONAL,
        }
    )


class NoteEventData(Output):
    """The note that was added."""

    noteId = Identifier()
    text = fields.String(metadata={"description": "The beginning of the note, as plain text."})


class ProgramEventData(Output):
    """The program that was assigned."""

    programId = Identifier()
    programName = fields.String(metadata={"description": "The name of the program."})
    startDate = Date(metadata={"description": "The date of its first day."})
    blocks = fields.Integer()


_DATA: dict[str, type[Output]] = {
    "workout_completed": WorkoutEventData,
    "item_logged": ItemEventData,
    "form_submitted": FormEventData,
    "metric_recorded": MetricEventData,
    "photo_added": PhotoEventData,
    "plan_uploaded": PlanEventData,
    "personal_record": RecordEventData,
    "note_added": NoteEventData,
    "program_assigned": ProgramEventData,
    "workout_moved": MovedWorkoutEventData,
    "workout_added": WorkoutEventData,
}
TYPES = tuple(_DATA)


class CompanyFeedQuery(CursorQuery):
    """Filters of the feed of all clients; they combine with AND."""

    since = QueryTime(load_default=None, metadata={"description": "Only what was recorded at this time or later."})
    types = fields.List(
        Choice(*TYPES), load_default=[], metadata={"description": "Repeatable; only entries of these types."}
    )
    customerId = Identifier(load_default=None, metadata={"description": "Only entries about this client."})
    mine = QueryBoolean(
        load_default=False,
        metadata={"description": "true: only what was done with the key, grant or session of this request."},
    )


class ActivityAuthor(Output):
    """The author of an entry of the activity feed."""

    type = Choice(*ACTOR_TYPES, metadata={"description": "How they acted; `system` for background work."})
    _id = Identifier(allow_none=True, metadata={"description": "The coach or client; null for `system`."})
    name = fields.String(metadata={"description": "Their name."})


def _event(event_type: str, data: type[Output], name: str = "Event", **more: Any) -> type[Output]:
    """Return the schema of an event of one type, such as `WorkoutCompletedEvent`."""
    attributes: dict[str, Any] = {
        **more,
        "__doc__": f"An event of the type `{event_type}`.",
        "_id": Identifier(),
        "type": Choice(event_type),
        "date": DateTime(metadata={"description": "When it happened."}),
        "data": fields.Nested(data),
    }
    return type("".join(word.capitalize() for word in event_type.split("_")) + name, (Output,), attributes)


EVENTS = {event_type: _event(event_type, data) for event_type, data in _DATA.items()}
_COMPANY_EVENTS = {
    event_type: _event(
        event_type,
        data,
        "CompanyEvent",
        customer=fields.Nested(NamedCustomer, metadata={"description": "The client."}),
        actor=fields.Nested(
            ActivityAuthor, allow_none=True, metadata={"description": "Who did it; null if it was not recorded."}
        ),
    )
    for event_type, data in _DATA.items()
}


class ActivityEventPage(PageMetadata):
    """A page of the activity feed."""

    docs = fields.List(Variant(EVENTS))


class CompanyEventList(CursorMetadata):
    """A part of the activity feed of all clients."""

    docs = fields.List(Variant(_COMPANY_EVENTS))
