"""The data of each type of entry of the activity feed: what services record, and what interfaces return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired, TypedDict, get_args

from marshmallow import Schema, fields

from coaching_service.core.field_schemas import output_of
from coaching_service.core.fields import Description, Optional
from coaching_service.core.ids import ObjectId
from coaching_service.core.pagination import CursorPosition, PagePosition, part_schema
from coaching_service.core.schemas_by_type import Variant
from coaching_service.core.validation import Choice, Date
from coaching_service.people.activity.models import ActivityEvent, ActivityType, CompanyEvent
from coaching_service.people.activity.record_types import RecordType
from coaching_service.people.changes.event_data import (
    LoggedItem,
    NoteNotificationData,
    PhotoSide,
    PlanNotificationData,
    ProgramNotificationData,
)


class WorkoutEventData(TypedDict):
    """The workout block that was completed or added."""

    wblockId: ObjectId
    blockName: Annotated[str, Description("The name of the block.")]
    day: Annotated[str, Date(), Description("The date of the session.")]


class MovedWorkoutEventData(WorkoutEventData):
    """The workout block that the client moved to another day."""

    plannedDate: Annotated[str, Date(), Description("The date for which the coach had planned it.")]


class ItemEventData(WorkoutEventData, LoggedItem):
    """The workout item that was logged."""

    itemName: NotRequired[
        Annotated[str, Description("The name of the item, such as the name of its exercise."), Optional]
    ]


class FormEventData(ItemEventData):
    """The workout item whose form was answered."""

    responseId: NotRequired[Annotated[ObjectId | None, Description("The response; null without an answer."), Optional]]


class MeasuredValue(TypedDict):
    """A value that was recorded for a metric."""

    metricName: Annotated[str, Description("The name of the metric.")]
    unit: Annotated[str, Description("The symbol of the unit.")]
    value: float


class MetricEventData(TypedDict):
    """The value or values that were recorded: one for a metric, or those in the log of a workout item."""

    day: Annotated[str, Date(), Description("The date of the values.")]
    metricId: NotRequired[Annotated[ObjectId, Optional]]
    metricName: NotRequired[Annotated[str, Description("The name of the metric."), Optional]]
    unit: NotRequired[Annotated[str, Description("The symbol of the unit."), Optional]]
    value: NotRequired[Annotated[float, Optional]]
    wblockId: NotRequired[Annotated[ObjectId, Optional]]
    blockName: NotRequired[Annotated[str, Description("The name of the block."), Optional]]
    witemId: NotRequired[Annotated[ObjectId, Optional]]
    itemType: NotRequired[Annotated[str, Description("`METRICS`."), Optional]]
    itemName: NotRequired[Annotated[str, Description("The name of the metric set."), Optional]]
    measured: NotRequired[Annotated[list[MeasuredValue], Description("The values in the log of an item."), Optional]]


class PhotoEventData(PhotoSide):
    """The progress photo that was added."""

    day: Annotated[str, Date(), Description("The date of the photos.")]


class PlanEventData(PlanNotificationData):
    """The nutrition plan that was uploaded."""

    fileName: str


class RecordEventData(TypedDict):
    """The personal record."""

    exerciseId: ObjectId
    exerciseName: str
    recordType: Annotated[RecordType, Description("The type of record.")]
    value: Annotated[float, Description("The value, in `unit`.")]
    unit: str
    reps: int | None
    meters: NotRequired[Annotated[float, Description("The distance, only of `fastest`."), Optional]]
    day: Annotated[str, Date(), Description("The date of the record.")]
    isFirst: NotRequired[
        Annotated[
            bool,
            Description(
                "Whether the exercise was done for the first time, so that nothing was improved; missing in older "
                "entries."
            ),
            Optional,
        ]
    ]


class NoteEventData(NoteNotificationData):
    """The note that was added."""

    text: Annotated[str, Description("The beginning of the note, as plain text.")]


class ProgramEventData(ProgramNotificationData):
    """The program that was assigned."""

    programName: Annotated[str, Description("The name of the program.")]
    startDate: Annotated[str, Date(), Description("The date of its first day.")]
    blocks: int


_DATA: Mapping[ActivityType, type] = {
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
_EVENT = output_of(ActivityEvent)
_COMPANY_EVENT = output_of(CompanyEvent, first=("customer", "actor"))


def _event(event_type: ActivityType, base: type[Schema], name: str) -> type[Schema]:
    """Return the schema of an event of one type, such as `WorkoutCompletedEvent`."""
    attributes = {
        "__doc__": f"An event of the type `{event_type}`.",
        "type": Choice(event_type),
        "data": fields.Nested(output_of(_DATA[event_type])),
    }
    return type("".join(word.capitalize() for word in event_type.split("_")) + name, (base,), attributes)


def _events(base: type[Schema], name: str) -> fields.Field[list[Any]]:
    return fields.List(Variant({each: _event(each, base, name) for each in get_args(ActivityType)}))


ActivityEventPage = part_schema(
    "ActivityEventPage", PagePosition, _events(_EVENT, "Event"), "A page of the activity feed."
)
CompanyEventList = part_schema(
    "CompanyEventList",
    CursorPosition,
    _events(_COMPANY_EVENT, "CompanyEvent"),
    "A part of the activity feed of all clients.",
)
