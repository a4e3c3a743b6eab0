"""The data of each type of event: what a change records, and what interfaces and webhooks return."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal, NotRequired, TypedDict

from marshmallow import Schema, fields

from coaching_service.core.events import EVENT_TYPES, EventType
from coaching_service.core.field_schemas import output_of
from coaching_service.core.fields import Description, Optional
from coaching_service.core.ids import ObjectId
from coaching_service.core.schemas_by_type import Variant
from coaching_service.core.validation import Choice, Date, Output
from coaching_service.people.activity.record_types import RecordType
from coaching_service.people.availability.models import AvailabilityDates, AvailabilityKind
from coaching_service.people.changes.models import Event, EventPage
from coaching_service.people.customers.models import ReasonType

# --- training --------------------------------------------------------------------------------------------------------


class WorkoutNotificationData(TypedDict):
    """The workout."""

    wblockId: ObjectId
    date: Annotated[str | None, Date(), Description("The date of the workout.")]


class LoggedItem(TypedDict):
    """An item of a workout."""

    witemId: ObjectId
    itemType: Annotated[str, Description("The type of the item, such as `EXERCISE`.")]


class ItemLoggedNotificationData(WorkoutNotificationData, LoggedItem):
    """The logged item of a workout."""


class FormSubmittedNotificationData(ItemLoggedNotificationData):
    """The item that holds the form, and the response."""

    responseId: NotRequired[
        Annotated[ObjectId | None, Description("The response to the form; null without an answer."), Optional]
    ]


class ProgramNotificationData(TypedDict):
    """The program."""

    programId: ObjectId


class ProgramAssignedNotificationData(ProgramNotificationData):
    """The assigned program."""

    assignmentId: NotRequired[Annotated[ObjectId, Description("The program of the client."), Optional]]
    startDate: Annotated[str, Date(), Description("The date of its first day.")]
    blocks: Annotated[
        int,
        Description("The number of workouts that were added; 0 if an undo took back the end of the program."),
    ]


class ProgramEndedNotificationData(ProgramNotificationData):
    """The program that a coach ended, or whose assignment was undone."""

    assignmentId: Annotated[ObjectId, Description("The program of the client.")]


class TemplateNotificationData(TypedDict):
    """The workout template."""

    templateId: Annotated[ObjectId, Description("The workout template.")]


class _HistoryImport(TypedDict):
    importId: Annotated[ObjectId, Description("The job of the import.")]
    sessions: Annotated[int, Description("Number of sessions.")]
    sets: Annotated[int, Description("Number of sets.")]


# `from` is a keyword of Python, so this type has the functional form.
_HistoryDates = TypedDict(
    "_HistoryDates",
    {
        "from": Annotated[str, Date(), Description("The date of the first session.")],
        "to": Annotated[str, Date(), Description("The date of the last session.")],
    },
)


class HistoryNotificationData(_HistoryImport, _HistoryDates):
    """An import of training history, and how much of it is of the client."""


# --- records of clients ----------------------------------------------------------------------------------------------


class FormReviewedNotificationData(TypedDict):
    """The reviewed response."""

    responseId: Annotated[ObjectId, Description("The response to the form.")]


class MetricRecordedNotificationData(TypedDict):
    """The recorded value, or the item whose log recorded values."""

    metricId: NotRequired[Annotated[ObjectId, Optional]]
    value: NotRequired[Annotated[float, Description("In `unit`."), Optional]]
    unit: NotRequired[Annotated[str, Description("The symbol of the metric's unit, such as `kg`."), Optional]]
    date: Annotated[str, Date(), Description("The date of the value.")]
    wblockId: NotRequired[Annotated[ObjectId, Optional]]
    witemId: NotRequired[Annotated[ObjectId, Optional]]
    itemType: NotRequired[Annotated[str, Description("`METRICS`."), Optional]]


class PhotoSide(TypedDict):
    """A progress photo."""

    photoId: ObjectId
    side: Annotated[Literal["front", "back", "side"], Description("The side it shows.")]


class PhotoNotificationData(PhotoSide):
    """The photo."""

    date: Annotated[str, Date(), Description("The date of the photo.")]


class PhotoDeletedNotificationData(TypedDict):
    """The photos of a date, of all sides."""

    photoId: ObjectId
    date: Annotated[str, Date(), Description("The date of the photos.")]


class PlanNotificationData(TypedDict):
    """The nutrition plan."""

    planId: ObjectId
    number: Annotated[int, Description("The number of the version.")]


class RecordNotificationData(TypedDict):
    """The personal record."""

    recordId: NotRequired[Annotated[ObjectId, Description("The personal record."), Optional]]
    exerciseId: ObjectId
    recordType: Annotated[RecordType, Description("The type of record.")]
    value: Annotated[float, Description("In `unit`.")]
    unit: Annotated[str, Description("`kg`, `lb`, `count`, `s` or `m`.")]
    reps: int | None
    meters: NotRequired[Annotated[float, Description("The distance, only of `fastest`."), Optional]]
    date: Annotated[str, Date(), Description("The date of the record.")]
    isFirst: NotRequired[
        Annotated[
            bool,
            Description(
                "Whether the exercise was done for the first time, so that nothing was improved; missing in older "
                "events."
            ),
            Optional,
        ]
    ]


class CheckInNotificationData(TypedDict):
    """The recurring check-in."""

    checkInId: Annotated[ObjectId, Description("The recurring check-in.")]


# --- clients ---------------------------------------------------------------------------------------------------------


class CustomerNotificationData(TypedDict):
    """The client."""

    customerId: ObjectId


class NoteNotificationData(TypedDict):
    """The note."""

    noteId: ObjectId


class MessageNotificationData(TypedDict):
    """The message."""

    messageId: Annotated[ObjectId, Description("The message.")]


class _Absence(TypedDict):
    availabilityId: Annotated[ObjectId, Description("The period.")]
    kind: Annotated[AvailabilityKind, Description("Why.")]


class AvailabilityNotificationData(_Absence, AvailabilityDates):
    """The period in which the client cannot train as planned."""


class ReminderSentNotificationData(TypedDict):
    """A reminder that was sent to a client."""

    kind: Annotated[Literal["reminders", "workouts", "checkIns"], Description("Of what.")]
    date: Annotated[str, Date(), Description("The local date it is about.")]
    wblockId: Annotated[ObjectId, Description("The workout block.")]
    witemId: NotRequired[Annotated[ObjectId, Description("The item, of a reminder in a workout."), Optional]]


class AttentionNotificationData(TypedDict):
    """A reason why the client needs attention."""

    customerId: ObjectId
    reason: Annotated[ReasonType, Description("The reason, as in the attention list.")]
    since: Annotated[datetime, Description("Its `since` in the attention list; of a cleared reason, the last one.")]
    count: Annotated[int, Description("The number of occurrences; of a cleared reason, how many there were last.")]


# --- libraries and proposals -----------------------------------------------------------------------------------------


class ExerciseNotificationData(TypedDict):
    """The exercise."""

    exerciseId: ObjectId


class FormNotificationData(TypedDict):
    """The form."""

    formId: ObjectId


class MetricSetNotificationData(TypedDict):
    """The metric set."""

    metricsSetId: ObjectId


class _Proposal(TypedDict):
    proposalId: Annotated[ObjectId, Description("The proposal of an assistant.")]
    tool: Annotated[str, Description("The name of the tool.")]
    assistantId: Annotated[ObjectId, Description("The connected assistant, or the API key, that proposes it.")]


class ProposalCreatedNotificationData(_Proposal):
    """What an assistant proposes."""

    expiresAt: Annotated[datetime, Description("Until when it can be approved.")]


class ProposalDecidedNotificationData(_Proposal):
    """The decision on a proposal."""

    status: Annotated[Literal["executed", "rejected", "expired", "failed", "stale"], Description("What became of it.")]
    decidedBy: NotRequired[Annotated[ObjectId, Description("The coach who decided; missing if nobody did."), Optional]]
    decidedIn: NotRequired[
        Annotated[
            Literal["page", "api", "view", "chat"],
            Description("Where the coach decided; missing if nobody did."),
            Optional,
        ]
    ]


_DATA: Mapping[EventType, type] = {
    "workout.completed": WorkoutNotificationData,
    "item.logged": ItemLoggedNotificationData,
    "form.submitted": FormSubmittedNotificationData,
    "form.reviewed": FormReviewedNotificationData,
    "metric.recorded": MetricRecordedNotificationData,
    "photo.added": PhotoNotificationData,
    "photo.deleted": PhotoDeletedNotificationData,
    "record.achieved": RecordNotificationData,
    "program.assigned": ProgramAssignedNotificationData,
    "program.ended": ProgramEndedNotificationData,
    "proposal.created": ProposalCreatedNotificationData,
    "proposal.decided": ProposalDecidedNotificationData,
    "reminder.sent": ReminderSentNotificationData,
}
_DATA_OF_KIND: Mapping[str, type] = {
    "customer": CustomerNotificationData,
    "workout": WorkoutNotificationData,
    "program": ProgramNotificationData,
    "exercise": ExerciseNotificationData,
    "plan": PlanNotificationData,
    "note": NoteNotificationData,
    "message": MessageNotificationData,
    "check_in": CheckInNotificationData,
    "availability": AvailabilityNotificationData,
    "form": FormNotificationData,
    "metrics_set": MetricSetNotificationData,
    "template": TemplateNotificationData,
    "history": HistoryNotificationData,
    "attention": AttentionNotificationData,
}


def data_of(event_type: EventType) -> type:
    """Return the TypedDict of the data of a type of event; an `.updated` event also has `fields`."""
    return _DATA.get(event_type) or _DATA_OF_KIND[event_type.partition(".")[0]]


# --- responses -------------------------------------------------------------------------------------------------------


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
