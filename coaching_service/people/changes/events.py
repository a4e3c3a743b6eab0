"""The events of a company in the order of their numbers, waiting for the next ones, and what each type has."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict, cast

import orjson
from marshmallow import Schema, fields

from coaching_service.core.auth import Visibility
from coaching_service.core.changes import history, numbering
from coaching_service.core.changes.history import NumberedPage
from coaching_service.core.changes.models import NumberedChange
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.database.worker_thread import on_worker_thread
from coaching_service.core.errors import InvalidFields
from coaching_service.core.events import EVENT_TYPES, OWNER_EVENTS, EventType, EventValue, Listener
from coaching_service.core.fields import Description, Optional, Variant, output_of
from coaching_service.core.http.responses import to_json
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, Date, Identifier, Output
from coaching_service.people import account
from coaching_service.people.activity.models import RecordType
from coaching_service.people.availability import AvailabilityDates, AvailabilityKind
from coaching_service.people.changes import models as change_models
from coaching_service.people.changes.models import Event
from coaching_service.people.customers.models import ReasonType

RETENTION = timedelta(days=30)
_CHANGES_A_READ = 500
_MAX_READS = 4
_CHECK_SECONDS = 0.5  # between two checks whether the caller is still connected

# Returns at most so many changes after a number.
_Read = Callable[[int, int], Awaitable[NumberedPage]]


async def list_events(
    ctx: Context,
    *,
    limit: int,
    after: str | None = None,
    types: Collection[EventType] = (),
    customer_id: ObjectId | None = None,
    wait: int = 0,
) -> change_models.EventPage:
    """Return at most `limit` events after a cursor, oldest first; without a cursor, the events of the last 30 days.

    Only `types` (empty: all) and events of a client, if given. If there are none, waits up to `wait` seconds for the
    next ones, as long as the caller is connected and the service does not stop; requests that wait for the same
    changes share what is read. The database is used in `ctx.turn`. Raises InvalidFields for a text that is not a
    cursor, CursorExpired for one older than 30 days or ahead of the log, TooManyWaiting, CompanySuspended; after
    waiting, Unauthorized and Forbidden if the caller's access has ended.
    """
    if not wait:
        async with ctx.turn():
            page, _ = await read_events(ctx, await _position_of(ctx, after), limit, types, customer_id)
            return page
    deadline = asyncio.get_running_loop().time() + wait
    async with ctx.services.number_signals.hold(ctx.company_id, ctx.caller.credential_id) as listener:

        async def read(position: int, size: int) -> NumberedPage:
            # What others that wait for the same changes have read is not read again.
            key = (customer_id, position, size)
            return await listener.share(key, partial(_list_numbered, ctx, customer_id, position, size))

        listener.event.clear()
        async with ctx.turn():
            page, position = await _read_events(ctx, await _position_of(ctx, after), limit, types, read)
        while not (page["docs"] or page["hasMore"]):
            has_changes = await wait_for_changes(ctx, listener, deadline)
            ctx = await ctx.with_current_caller()
            if not has_changes:
                break
            listener.event.clear()
            async with ctx.turn():
                page, position = await _read_events(ctx, position, limit, types, read)
                # Meanwhile the company may have been suspended
                await listener.share("active", partial(account.require_active, ctx.services, ctx.company_id))
        return page


async def find_event(ctx: Context, event_id: str) -> change_models.Event | None:
    """Return the event with this `id`; None if it is gone, or the caller may not see it."""
    change_id, _, number = event_id.partition(".")
    change = await history.find_one(ctx, ObjectId(change_id))
    if change is None or "seq" not in change:
        return None
    position = change["seq"] + int(number) - 1
    numbered = cast("NumberedChange", change)
    events = _events_of(ctx, numbered, position, await change_models.load_visibility(ctx), ())
    return next((event for event in events if event["id"] == event_id), None)


async def find_available(ctx: Context, position: int) -> int:
    """Return the number to continue from: that before the first event that is available, or the last of the log."""
    first = await numbering.find_position_at(ctx, now() - RETENTION)
    return first if position < first else await numbering.find_last_number(ctx)


async def wait_for_changes(
    ctx: Context, listener: Listener, deadline: float, check_seconds: float = _CHECK_SECONDS
) -> bool:
    """Wait for new changes; returns False when the time is up, the caller has disconnected, or the service stops.

    It looks every `check_seconds` whether the caller has disconnected.
    """
    while not (ctx.is_disconnected() or listener.is_ended):
        remaining = deadline - asyncio.get_running_loop().time()
        if remaining <= 0:
            return False
        if await listener.wait(min(remaining, check_seconds)):
            return True
    return False


@on_worker_thread
async def read_events(
    ctx: Context, position: int, limit: int, types: Collection[EventType] = (), customer_id: ObjectId | None = None
) -> tuple[change_models.EventPage, int]:
    """Return at most `limit` events after a number, and the number to continue from.

    It reads a bounded number of changes: a rare type may take several calls. Raises CursorExpired if the next
    number is older than 30 days, or `position` is ahead of the log.
    """
    return await _read_events(ctx, position, limit, types, partial(_list_numbered, ctx, customer_id))


async def _list_numbered(ctx: Context, customer_id: ObjectId | None, position: int, size: int) -> NumberedPage:
    return await history.list_numbered(ctx, position, size, since=now() - RETENTION, customer_id=customer_id)


async def _read_events(
    ctx: Context, position: int, limit: int, types: Collection[EventType], read_changes: _Read
) -> tuple[change_models.EventPage, int]:
    visibility = await change_models.load_visibility(ctx)
    events: list[change_models.Event] = []
    has_more = True
    size = _CHANGES_A_READ if types else min(limit + 1, _CHANGES_A_READ)  # most changes have one event
    for _ in range(_MAX_READS):
        read = await read_changes(position, size)
        for change in read.changes:
            for event in _events_of(ctx, change, position, visibility, types):
                events.append(event)
                position = event["seq"]
                if len(events) == limit:
                    return _page(events, position, has_more=True), position
        position, has_more = read.until, read.has_more
        if not has_more:
            break
        size = _CHANGES_A_READ
    return _page(events, position, has_more=has_more), position


def _events_of(
    ctx: Context, change: NumberedChange, position: int, visibility: Visibility, types: Collection[EventType]
) -> list[change_models.Event]:
    if (author := change["actor"]) is None:
        return []
    first, change_id, credential_id = change["seq"], change["_id"], change["credentialId"]
    has_key = change["via"] == "apiKey" or change.get("hasKey", False)
    actor: change_models.EventActor = {
        "type": author["type"],
        "_id": author["_id"],
        "keyId": credential_id if has_key else None,
        "applicationId": credential_id if change["via"] in ("assistant", "application") and not has_key else None,
    }
    return [
        {
            "id": f"{change_id}.{number}",
            "seq": first + number,
            "changeId": change_id,
            "type": event["type"],
            "createdAt": change["createdAt"],
            "companyId": ctx.company_id,
            "customerId": event["customerId"],
            "actor": actor,
            "data": event["data"],
        }
        for number, event in enumerate(change["events"])
        if first + number > position
        and (not types or event["type"] in types)
        and change_models.allows_event(visibility, event)
    ]


def _page(events: list[change_models.Event], position: int, *, has_more: bool) -> change_models.EventPage:
    return {"docs": events, "nextCursor": str(position), "hasMore": has_more}


async def _position_of(ctx: Context, cursor: str | None) -> int:
    if cursor is None:
        return await numbering.find_position_at(ctx, now() - RETENTION)
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 15):
        message = "must be a nextCursor of this list"
        raise InvalidFields([{"field": "after", "code": "INVALID_CURSOR", "message": message}])
    return int(cursor)


# --- Training --------------------------------------------------------------------------------------------------------


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


# --- Records of clients ----------------------------------------------------------------------------------------------


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


# --- Clients ---------------------------------------------------------------------------------------------------------


class NoteNotificationData(TypedDict):
    """The note."""

    noteId: ObjectId


class MediaNotificationData(TypedDict):
    """The video or picture, and the item it is of."""

    mediaId: Annotated[ObjectId, Description("The video or picture.")]
    wblockId: Annotated[ObjectId, Description("The workout block.")]
    witemId: Annotated[ObjectId, Description("The item.")]


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


# --- Libraries and proposals -----------------------------------------------------------------------------------------


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


# --- the team --------------------------------------------------------------------------------------------------------


def _data_of(name: str, about: str, field: str, description: str = "") -> type:
    """Return the TypedDict of the data of events that have one identifier."""
    identifier = Annotated[ObjectId, Description(description)] if description else ObjectId
    data = TypedDict(f"{name}NotificationData", {field: identifier})  # type: ignore[misc]  # the name is no literal
    data.__doc__ = about
    return data


_DATA: Mapping[EventType, type] = {
    "workout.completed": WorkoutNotificationData,
    "item.logged": ItemLoggedNotificationData,
    "form.submitted": FormSubmittedNotificationData,
    "form.reviewed": _data_of("FormReviewed", "The reviewed response.", "responseId", "The response to the form."),
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
    "customer": _data_of("Customer", "The client.", "customerId"),
    "workout": WorkoutNotificationData,
    "program": ProgramNotificationData,
    "exercise": _data_of("Exercise", "The exercise.", "exerciseId"),
    "plan": PlanNotificationData,
    "note": NoteNotificationData,
    "message": _data_of("Message", "The message.", "messageId", "The message."),
    "media": MediaNotificationData,
    "check_in": _data_of("CheckIn", "The recurring check-in.", "checkInId", "The recurring check-in."),
    "availability": AvailabilityNotificationData,
    "form": _data_of("Form", "The form.", "formId"),
    "metrics_set": _data_of("MetricSet", "The metric set.", "metricsSetId"),
    "template": _data_of("Template", "The workout template.", "templateId", "The workout template."),
    "history": HistoryNotificationData,
    "attention": AttentionNotificationData,
    "employee": _data_of("Employee", "The employee.", "employeeId", "The employee."),
    "key": _data_of("Key", "The API key.", "keyId", "The API key."),
}


def data_of(event_type: EventType) -> type:
    """Return the TypedDict of the data of a type of event; an `.updated` event also has `fields`."""
    return _DATA.get(event_type) or _DATA_OF_KIND[event_type.partition(".")[0]]


# --- Responses -------------------------------------------------------------------------------------------------------


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


_EVENT = output_of(change_models.Event, first=("id", "seq", "changeId", "type", "createdAt", "companyId"))


def data_schema(event_type: EventType) -> type[Schema]:
    """Return the schema of the data of a type of event."""
    data = data_of(event_type)
    if not event_type.endswith(".updated"):
        return output_of(data)
    name = data.__name__.replace("Notification", "UpdatedNotification")
    return output_of(_ChangedFields, output_of(data), name=name, description=f"{data.__doc__} And what changed of it.")


def event_schema(event_type: EventType) -> type[Schema]:
    """Return the schema of an event of one type, such as `WorkoutCompletedNotification`."""
    words = event_type.replace(".", "_").split("_")
    attributes = {
        "__doc__": f"An event of the type `{event_type}`.",
        "type": Choice(event_type),
        "data": fields.Nested(data_schema(event_type)),
    }
    return type("".join(word.capitalize() for word in words) + "Notification", (_EVENT,), attributes)


EVENT = Variant({event_type: event_schema(event_type) for event_type in EVENT_TYPES})


class _Events(Output):
    docs = fields.List(EVENT)


EventList = output_of(change_models.EventPage, _Events, name="EventList")


# --- Samples of events, with invented identifiers, for those who build something that receives them -------------------


_AT = datetime(2026, 3, 2, 8, 30)  # noqa: DTZ001 - stored times are UTC without a time zone
_TEXTS = {"itemType": "EXERCISE", "unit": "kg", "tool": "create_workout", "until": "2026-03-08", "to": "2026-03-08"}
_NUMBERS = {"value": 72.5, "reps": 5, "sets": 18, "sessions": 6}
# Events that belong to the company, not to a client.
_OF_COMPANY = ("exercise", "template", "proposal", "employee", "key")
_OF_LIBRARY = ("program.created", "program.updated", "program.deleted", "form.deleted", "metrics_set.deleted")


def sample_of(event_type: EventType) -> Event:
    """Return a sample of a type of event: all fields that its data can have, with values that are always the same."""
    change_id = _identifier("changeId")
    is_of_company = event_type.partition(".")[0] in _OF_COMPANY or event_type in _OF_LIBRARY
    schema = data_schema(event_type)
    return {
        "id": f"{change_id}.0",
        "seq": 1,
        "changeId": change_id,
        "type": event_type,
        "createdAt": _AT,
        "companyId": _identifier("companyId"),
        "customerId": None if is_of_company else _identifier("customerId"),
        "actor": {"type": "coach", "_id": _identifier("coachId"), "keyId": None, "applicationId": None},
        "data": {name: _value(name, field) for name, field in schema._declared_fields.items()},
    }


def _value(name: str, field: fields.Field[Any]) -> EventValue:
    if isinstance(field, Identifier):
        return _identifier(name)
    if isinstance(field, Choice):
        return field.choices[0]
    if isinstance(field, fields.List):
        return ["name"]
    if isinstance(field, fields.Boolean):
        return False
    if isinstance(field, fields.Number):
        return _NUMBERS.get(name, 1)
    if name in _TEXTS:
        return _TEXTS[name]
    return "2026-03-02" if isinstance(field, Date) else _AT


def _identifier(name: str) -> ObjectId:
    """Return the identifier that samples have in a field: the same in each, and no record's."""
    return ObjectId(f"00000000{hashlib.sha256(name.encode()).hexdigest()[:16]}")


class SentEvent(NamedTuple):
    """What is sent to a webhook for a type of event: the name of its schema, in words, and an example."""

    schema: str
    description: str
    example: Mapping[str, object]


def describe_webhooks() -> dict[str, SentEvent]:
    """Return what is sent to webhooks, by type of event."""
    return {
        each: SentEvent(
            event_schema(each).__name__,
            f"{data_of(each).__doc__}{' Only the owner sees it.' if each in OWNER_EVENTS else ''}",
            orjson.loads(to_json(sample_of(each))),
        )
        for each in EVENT_TYPES
    }
