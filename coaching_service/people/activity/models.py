"""Entries of the activity feed as they are stored and returned."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any, Literal, NotRequired, TypedDict, get_args

from marshmallow import fields

from coaching_service.core.changes.models import FeedData
from coaching_service.core.database.recording import Actor, ActorType
from coaching_service.core.events import EventType
from coaching_service.core.fields import Default, Description, output_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import PartQuery
from coaching_service.core.query import QueryInteger, QueryTime
from coaching_service.core.validation import Choice, Output
from coaching_service.people.customers.models import NamedCustomer

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


class FeedQuery(TypedDict):
    """Which page of a client's feed, or which entries of it."""

    page: Annotated[int, QueryInteger(minimum=1)]
    limit: Annotated[int, QueryInteger(minimum=1, maximum=100)]
    ids: NotRequired[list[ObjectId]]
    after: str | None


class CompanyFeedQuery(PartQuery):
    """Filters of the feed of all clients; they combine with AND."""

    since: Annotated[datetime | None, Description("Only what was recorded at this time or later.")]
    types: Annotated[list[ActivityType], Default([]), Description("Repeatable; only entries of these types.")]
    customerId: Annotated[ObjectId | None, Description("Only entries about this client.")]
    mine: Annotated[
        bool,
        Default(False),
        Description("true: only what was done with the key, grant or session of this request."),
    ]


class _AuthorType(Output):
    type = Choice(*get_args(ActorType), metadata={"description": "How they acted; `system` for background work."})


_AUTHOR = output_of(
    Actor, _AuthorType, name="ActivityAuthor", description="The author of an entry of the activity feed."
)


class ActivityEvent(TypedDict):
    """An entry as interfaces return one, with the `data` of its type."""

    _id: ObjectId
    type: ActivityType
    date: Annotated[datetime, Description("When it happened.")]
    data: Annotated[FeedData, fields.Dict()]


class AttributedEvent(ActivityEvent):
    """An entry with its author; None if it was recorded before authors were stored."""

    actor: Annotated[Actor | None, fields.Nested(_AUTHOR), Description("Who did it; null if it was not recorded.")]


class CompanyEvent(AttributedEvent):
    """An entry of the feed of all clients, with its client."""

    customer: Annotated[NamedCustomer, Description("The client.")]


class ChangedEvent(CompanyEvent):
    """An entry of the feed of all clients, with the change that it is from, and the batch of that, if any."""

    changeId: ObjectId
    batchId: ObjectId | None


class ImportedEvent(TypedDict):
    """An entry to import, with its own date; `sourceId` is the document that it reports on."""

    customerId: ObjectId
    sourceId: ObjectId
    type: ActivityType
    date: datetime
    data: FeedData
    actor: Actor


# --- Record types -----------------------------------------------------------------------------------------------------
# The types of personal records, declared once for the activity feed, the events and what derives records from logs.


RecordType = Literal[
    "heaviest_load",
    "most_reps",
    "estimated_1rm",
    "longest_time",
    "farthest_distance",
    "fastest",
    "least_assistance",
]

HEAVIEST_LOAD: RecordType = "heaviest_load"
MOST_REPS: RecordType = "most_reps"
ESTIMATED_ONE_REP_MAX: RecordType = "estimated_1rm"
LONGEST_TIME: RecordType = "longest_time"
FARTHEST_DISTANCE: RecordType = "farthest_distance"
FASTEST: RecordType = "fastest"
LEAST_ASSISTANCE: RecordType = "least_assistance"
RECORD_TYPES: tuple[RecordType, ...] = get_args(RecordType)
LOWER_IS_BETTER: frozenset[RecordType] = frozenset((FASTEST, LEAST_ASSISTANCE))

# As coaches and clients read them.
RECORD_NAMES: dict[str, str] = {
    HEAVIEST_LOAD: "Heaviest load",
    MOST_REPS: "Most reps",
    ESTIMATED_ONE_REP_MAX: "Estimated 1RM",
    LONGEST_TIME: "Longest time",
    FARTHEST_DISTANCE: "Farthest distance",
    FASTEST: "Fastest",
    LEAST_ASSISTANCE: "Least assistance",
}


# --- Arguments of tools -----------------------------------------------------------------------------------------------


class Since(QueryTime):
    """A time, or a date, which is loaded as a date: its first moment depends on the company's time zone."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.metadata = {name: value for name, value in self.metadata.items() if name != "format"}  # a date has another

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> Any:
        if isinstance(value, str) and len(value) == len("2026-03-02"):
            try:
                return date.fromisoformat(value)
            except ValueError:
                raise self.make_error("invalid") from None
        return super()._deserialize(value, attr, data, **options)
