"""Responses with entries of the activity feed, each with the data of its type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from marshmallow import Schema, fields

from coaching_service.core.field_schemas import output_of
from coaching_service.core.pagination import CursorPosition, PagePosition, part_schema
from coaching_service.core.schemas_by_type import Variant
from coaching_service.core.validation import Choice
from coaching_service.people.activity import feed_data
from coaching_service.people.activity.models import ActivityEvent, ActivityType, CompanyEvent

_DATA: Mapping[ActivityType, type] = {
    "workout_completed": feed_data.WorkoutEventData,
    "item_logged": feed_data.ItemEventData,
    "form_submitted": feed_data.FormEventData,
    "metric_recorded": feed_data.MetricEventData,
    "photo_added": feed_data.PhotoEventData,
    "plan_uploaded": feed_data.PlanEventData,
    "personal_record": feed_data.RecordEventData,
    "note_added": feed_data.NoteEventData,
    "program_assigned": feed_data.ProgramEventData,
    "workout_moved": feed_data.MovedWorkoutEventData,
    "workout_added": feed_data.WorkoutEventData,
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
