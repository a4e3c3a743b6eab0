"""Requests and responses of events."""

from __future__ import annotations

from functools import cache
from typing import Any

from marshmallow import fields

from coaching_service.core.events import EVENT_TYPES
from coaching_service.core.query import QueryInteger
from coaching_service.core.schemas_by_type import Variant
from coaching_service.core.validation import Choice, Date, DateTime, Identifier, Input, Output
from coaching_service.people.activity.record_types import RECORD_TYPES
from coaching_service.people.changes.schemas import ACTORS
from coaching_service.people.customers.models import REASON_TYPES

DEFAULT_EVENTS = 100
_OPTIONAL = {"optional": True}


class EventQuery(Input):
    """Filters of the events, and where to continue."""

    limit = QueryInteger(
        minimum=1,
        maximum=500,
        load_default=DEFAULT_EVENTS,
        metadata={"description": f"The most events to return; default {DEFAULT_EVENTS}."},
    )
    after = fields.String(
        load_default=None,
        metadata={
            "description": "The `nextCursor` of the previous response; absent for the events of the last 30 days."
        },
    )
    types = fields.List(
        Choice(*EVENT_TYPES), load_default=[], metadata={"description": "Repeatable; only events of these types."}
    )
    customerId = Identifier(load_default=None, metadata={"description": "Only events about this client."})
    wait = QueryInteger(
        minimum=0,
        maximum=25,
        load_default=0,
        metadata={
            "description": "Seconds to wait for the next event if there is none; default 0. At most 20 requests of a "
            "key, and 50 of a company, wait at once; more are 429."
        },
    )


class EventActor(Output):
    """The author of an event, and what was used."""

    type = Choice(*ACTORS, metadata={"description": "In which role: `system` for background work."})
    _id = Identifier(allow_none=True, metadata={"description": "The coach or client; null for `system`."})
    keyId = Identifier(allow_none=True, metadata={"description": "The API key that was used, if any."})
    applicationId = Identifier(
        allow_none=True, metadata={"description": "The connected assistant or application that was used, if any."}
    )


class CustomerNotificationData(Output):
    """The client."""

    customerId = Identifier()


class WorkoutNotificationData(Output):
    """The workout."""

    wblockId = Identifier()
    date = Date(allow_none=True, metadata={"description": "The date of the workout."})


class ItemLoggedNotificationData(WorkoutNotificationData):
    """The logged item of a workout."""

    witemId = Identifier()
    itemType = fields.String(metadata={"description": "The type of the item, such as `EXERCISE`."})


class FormSubmittedNotificationData(ItemLoggedNotificationData):
    """The item that holds the form, and the response."""

    responseId = Identifier(
        allow_none=True, metadata={"description": "The response to the form; null without an answer.", **_OPTIONAL}
    )


class FormReviewedNotificationData(Output):
    """The reviewed response."""

    responseId = Identifier(metadata={"description": "The response to the form."})


class MetricRecordedNotificationData(Output):
    """The recorded value, or the item whose log recorded values."""

    metricId = Identifier(metadata=_OPTIONAL)
    value = fields.Float(metadata={"description": "In `unit`.", **_OPTIONAL})
    unit = fields.String(metadata={"description": "The symbol of the metric's unit, such as `kg`.", **_OPTIONAL})
    date = Date(metadata={"description": "The date of the value."})
    wblockId = Identifier(metadata=_OPTIONAL)
    witemId = Identifier(metadata=_OPTIONAL)
    itemType = fields.String(metadata={"description": "`METRICS`.", **_OPTIONAL})


class PhotoNotificationData(Output):
    """The photo."""

    photoId = Identifier()
    side = Choice("front", "back", "side", metadata={"description": "The side it shows."})
    date = Date(metadata={"description": "The date of the photo."})


class PhotoDeletedNotificationData(Output):
    """The photos of a date, of all sides."""

    photoId = Identifier()
    date = Date(metadata={"description": "The date of the photos."})


class PlanNotificationData(Output):
    """The nutrition plan."""

    planId = Identifier()
    number = fields.Integer(metadata={"description": "The number of the version."})


class RecordNotificationData(Output):
    """The personal record."""

    recordId = Identifier(metadata={"description": "The personal record.", **_OPTIONAL})
    exerciseId = Identifier()
    recordType = Choice(*RECORD_TYPES, metadata={"description": "The type of record."})
    value = fields.Float(metadata={"description": "In `unit`."})
    unit = fields.String(metadata={"description": "`kg`, `lb`, `count`, `s` or `m`."})
    reps = fields.Integer(allow_none=True)
    meters = fields.Float(metadata={"description": "The distance, only of `fastest`.", "optional": True})
    date = Date(metadata={"description": "The date of the record."})
    isFirst = fields.Boolean(
        metadata={
            "description": "Whether the exercise was done for the first time, so that nothing was improved; missing in "
            "older events.",
            "optional": True,
        }
    )


class NoteNotificationData(Output):
    """The note."""

    noteId = Identifier()


class MessageNotificationData(Output):
    """The message."""

    messageId = Identifier(metadata={"description": "The message."})


class ProgramNotificationData(Output):
    """The program."""

    programId = Identifier()


class ProgramAssignedNotificationData(ProgramNotificationData):
    """The assigned program."""

    assignmentId = Identifier(metadata={"description": "The program of the client.", **_OPTIONAL})
    startDate = Date(metadata={"description": "The date of its first day."})
    blocks = fields.Integer(
        metadata={
            "description": "The number of workouts that were added; 0 if an undo took back the end of the program."
        }
    )


class ProgramEndedNotificationData(ProgramNotificationData):
    """The program that a coach ended, or whose assignment was undone."""

    assignmentId = Identifier(metadata={"description": "The program of the client."})


class ExerciseNotificationData(Output):
    """The exercise."""

    exerciseId = Identifier()


class FormNotificationData(Output):
    """The form."""

    formId = Identifier()


class MetricSetNotificationData(Output):
    """The metric set."""

    metricsSetId = Identifier()


class CheckInNotificationData(Output):
    """The recurring check-in."""

    checkInId = Identifier(metadata={"description": "The recurring check-in."})


class AvailabilityNotificationData(Output):
    """The period in which the client cannot train as planned."""

    class Meta(Output.Meta):
        include = {
            "from": Date(metadata={"description": "The first day."}),
            "until": Date(allow_none=True, metadata={"description": "The last day; null: no end yet."}),
        }

    availabilityId = Identifier(metadata={"description": "The period."})
    kind = Choice("away", "injured", "ill", "limited", metadata={"description": "Why."})


class TemplateNotificationData(Output):
    """The workout template."""

    templateId = Identifier(metadata={"description": "The workout template."})


class _ProposalData(Output):
    proposalId = Identifier(metadata={"description": "The proposal of an assistant."})
    tool = fields.String(metadata={"description": "The name of the tool."})
    assistantId = Identifier(metadata={"description": "The connected assistant, or the API key, that proposes it."})


class ProposalCreatedNotificationData(_ProposalData):
    """What an assistant proposes."""

    expiresAt = DateTime(metadata={"description": "Until when it can be approved."})


class ProposalDecidedNotificationData(_ProposalData):
    """The decision on a proposal."""

    status = Choice("executed", "rejected", "expired", "failed", metadata={"description": "What became of it."})
    decidedBy = Identifier(metadata={"description": "The coach who decided; missing if it expired.", **_OPTIONAL})


class ReminderSentNotificationData(Output):
    """A reminder that was sent to a client."""

    kind = Choice("reminders", "workouts", "checkIns", metadata={"description": "Of what."})
    date = Date(metadata={"description": "The local date it is about."})
    wblockId = Identifier(metadata={"description": "The workout block."})
    witemId = Identifier(metadata={"description": "The item, of a reminder in a workout.", **_OPTIONAL})


class HistoryNotificationData(Output):
    """An import of training history, and how much of it is of the client."""

    class Meta(Output.Meta):
        include = {
            "from": Date(metadata={"description": "The date of the first session."}),
            "to": Date(metadata={"description": "The date of the last session."}),
        }

    importId = Identifier(metadata={"description": "The job of the import."})
    sessions = fields.Integer(metadata={"description": "Number of sessions."})
    sets = fields.Integer(metadata={"description": "Number of sets."})


class AttentionNotificationData(Output):
    """A reason why the client needs attention."""

    customerId = Identifier()
    reason = Choice(*REASON_TYPES, metadata={"description": "The reason, as in the attention list."})
    since = DateTime(metadata={"description": "Its `since` in the attention list; of a cleared reason, the last one."})
    count = fields.Integer(
        metadata={"description": "The number of occurrences; of a cleared reason, how many there were last."}
    )


_DATA: dict[str, type[Output]] = {
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
_DATA_OF_KIND: dict[str, type[Output]] = {
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
_CHANGED_FIELDS = fields.List(
    fields.String(),
    metadata={
        "description": "The names of the fields that changed, dotted inside nested objects; `wblocks` for the workouts "
        "of a program. Empty if no field that coaches can read changed.",
        **_OPTIONAL,
    },
)


@cache
def _with_changed_fields(data: type[Output]) -> type[Output]:
    """Return the data of an `.updated` event."""
    name = data.__name__.replace("Notification", "UpdatedNotification")
    return type(name, (data,), {"__doc__": f"{data.__doc__} And what changed of it.", "fields": _CHANGED_FIELDS})


def _event(event_type: str) -> type[Output]:
    """Return the schema of an event of one type, such as `WorkoutCompletedNotification`."""
    kind, _, action = event_type.partition(".")
    data = _DATA.get(event_type) or _DATA_OF_KIND[kind]
    if action == "updated":
        data = _with_changed_fields(data)
    attributes: dict[str, Any] = {
        "__doc__": f"An event of the type `{event_type}`.",
        "id": fields.String(metadata={"description": "Identifies the event."}),
        "seq": fields.Integer(
            metadata={"description": "Its number within the company: later events have greater ones."}
        ),
        "changeId": Identifier(metadata={"description": "The change it is part of: GET /coach/changes/{changeId}."}),
        "type": Choice(event_type),
        "createdAt": DateTime(metadata={"description": "When it was recorded."}),
        "customerId": Identifier(allow_none=True, metadata={"description": "The client it is about, if any."}),
        "actor": fields.Nested(EventActor),
        "data": fields.Nested(data),
    }
    words = event_type.replace(".", "_").split("_")
    return type("".join(word.capitalize() for word in words) + "Notification", (Output,), attributes)


class EventList(Output):
    """Events, oldest first."""

    docs = fields.List(Variant({event_type: _event(event_type) for event_type in EVENT_TYPES}))
    nextCursor = fields.String(metadata={"description": "What to send as `after` next time, also at the end."})
    hasMore = fields.Boolean(metadata={"description": "Whether there are more events already."})
