"""Changes and events as interfaces return them, and the queries of their lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, TypedDict, cast

from marshmallow import fields

from coaching_service.core import auth
from coaching_service.core.changes.models import StoredChange, StoredEvent
from coaching_service.core.database import recording
from coaching_service.core.database.context import Context
from coaching_service.core.database.declared import Action, DocumentFields
from coaching_service.core.events import EVENT_TYPES, OWNER_EVENTS, EventType, EventValue
from coaching_service.core.fields import Default, Description, output_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import PartQuery
from coaching_service.core.query import QueryInteger
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import AREA_OF_REASON, ReasonType

DEFAULT_EVENTS = 100
PLACES: Mapping[recording.DecidedIn, str] = {
    "page": "on a page",
    "api": "over the API",
    "view": "in the view of the assistant",
    "chat": "in the chat",
}


# --- Changes ---------------------------------------------------------------------------------------------------------


class HistoryQuery(PartQuery):
    """Filters of the history; they combine with AND."""

    customerId: Annotated[ObjectId | None, Description("Changes about this client.")]
    via: Annotated[recording.Interface | None, Description("Changes through this interface.")]
    actorId: Annotated[ObjectId | None, Description("Changes by this coach or client.")]
    since: Annotated[datetime | None, Description("Changes made at this time or later.")]
    mine: Annotated[
        bool,
        Default(False),
        Description("true: only what was done with the key, grant or session of this request."),
    ]


class DocumentReference(TypedDict):
    """A document that a change created, changed or deleted."""

    kind: Annotated[str, Description("The kind of document, such as `workout`.")]
    _id: ObjectId
    action: Annotated[Action, Description("What happened to it.")]


class DocumentValues(DocumentReference):
    """A document of a change with the touched fields before and after."""

    before: Annotated[
        DocumentFields | None,
        fields.Dict(),
        Description("The touched fields before; null if it was created, or the values are not stored."),
    ]
    after: Annotated[
        DocumentFields | None,
        fields.Dict(),
        Description("The touched fields after; null if it was deleted, or the values are not stored."),
    ]


_REFERENCE = output_of(DocumentReference, first=("kind",))


class ChangeSummary(TypedDict):
    """One operation that changed coaching data."""

    _id: ObjectId
    at: Annotated[datetime, Description("When it was made.")]
    actor: Annotated[
        recording.Actor | None,
        fields.Nested(output_of(recording.Actor, first=("type",))),
        Description("Who made it; null if that was not recorded at the time."),
    ]
    via: Annotated[recording.Interface, Description("The interface.")]
    approvedBy: Annotated[
        recording.Approver | None,
        Description("The coach who approved what an assistant proposed; null for other changes."),
    ]
    decidedBy: Annotated[recording.Approver | None, Description("The same as `approvedBy`.")]
    decidedIn: Annotated[
        recording.DecidedIn | None,
        Description(
            "Where it was approved: on a `page`, over the `api`, in the `view` of an application, or in the `chat` "
            "with the assistant; null for other changes, and where it was not recorded."
        ),
    ]
    operation: Annotated[str, Description("The operationId, the name of the assistant's tool or of the form.")]
    summary: Annotated[str, Description("What was changed, such as `3 workouts created`.")]
    customerId: Annotated[ObjectId | None, Description("The client it is about, if any.")]
    batchId: Annotated[ObjectId | None, Description("Shared by the changes of one bulk operation.")]
    documents: Annotated[
        list[DocumentReference],
        fields.List(fields.Nested(_REFERENCE)),
        Description("The documents it created, changed or deleted."),
    ]
    undoableUntil: Annotated[datetime | None, Description("Until when it can be undone; null if it cannot.")]
    undoneBy: Annotated[ObjectId | None, Description("The change that undid it.")]


class ChangeDetails(ChangeSummary):
    """A change with the values before and after."""

    documents: Annotated[  # type: ignore[misc]  # a DocumentValues has all fields of a DocumentReference
        list[DocumentValues],
        fields.List(fields.Nested(output_of(DocumentValues, _REFERENCE))),
        Description("The documents with their values before and after."),
    ]


class ChangeList(TypedDict):
    """Changes, newest first."""

    docs: Annotated[list[ChangeSummary], fields.List(fields.Nested(output_of(ChangeSummary, name="Change")))]
    nextCursor: Annotated[str | None, Description("Where to continue; null at the end.")]
    hasMore: Annotated[bool, Description("Whether there are older changes.")]


class UndoFailure(TypedDict):
    """A document that could not be restored."""

    documentId: Annotated[ObjectId, Description("The document.")]
    code: Annotated[str, Description("`VERSION_CONFLICT`: it has been changed since.")]
    message: str


class UndoResult(TypedDict):
    """What an undo has restored."""

    changeId: Annotated[ObjectId | None, Description("The change, or batch, that restored documents.")]
    ok: Annotated[int, Description("How many documents were restored.")]
    failed: list[UndoFailure]


# --- Events ----------------------------------------------------------------------------------------------------------


class EventQuery(TypedDict):
    """Filters of the events, and where to continue."""

    limit: Annotated[
        int,
        QueryInteger(minimum=1, maximum=500),
        Default(DEFAULT_EVENTS),
        Description(f"The most events to return; default {DEFAULT_EVENTS}."),
    ]
    after: Annotated[
        str | None,
        Description("The `nextCursor` of the previous response; absent for the events of the last 30 days."),
    ]
    types: Annotated[list[EventType], Default([]), Description("Repeatable; only events of these types.")]
    customerId: Annotated[ObjectId | None, Description("Only events about this client.")]
    wait: Annotated[
        int,
        QueryInteger(minimum=0, maximum=25),
        Default(0),
        Description(
            "Seconds to wait for the next event if there is none; default 0. At most 20 requests of a key, and 50 of a "
            "company, wait at once; more are 429."
        ),
    ]


class SampleQuery(TypedDict):
    """Which samples of events to return."""

    types: Annotated[list[EventType], Default([]), Description("Repeatable; only samples of these types.")]


class EventActor(recording.Author):
    """The author of an event, and what was used."""

    keyId: Annotated[ObjectId | None, Description("The API key that was used, if any.")]
    applicationId: Annotated[
        ObjectId | None, Description("The connected assistant or application that was used, if any.")
    ]


class Event(TypedDict):
    """A typed event, with the `data` of its type."""

    id: Annotated[str, Description("Identifies the event.")]
    seq: Annotated[int, Description("Its number within the company: later events have greater ones.")]
    changeId: Annotated[ObjectId, Description("The change it is part of: GET /coach/changes/{changeId}.")]
    type: EventType
    createdAt: Annotated[datetime, Description("When it was recorded.")]
    companyId: Annotated[ObjectId, Description("The company it happened in.")]
    customerId: Annotated[ObjectId | None, Description("The client it is about, if any.")]
    actor: Annotated[EventActor, fields.Nested(output_of(EventActor, first=("type",)))]
    data: Annotated[dict[str, EventValue], fields.Dict()]


class EventPage(TypedDict):
    """Events, oldest first."""

    docs: list[Event]
    nextCursor: Annotated[str, Description("What to send as `after` next time, also at the end.")]
    hasMore: Annotated[bool, Description("Whether there are more events already.")]


# --- Which changes and events the caller may see: of clients in scope, and of areas with the permission to view -------


# The area of documents and events, by their kind, or the first word of their type. Those that are missing lie under
# the client, or belong to no area.
AREAS = {
    "program": auth.PROGRAMS,
    "workout": auth.PROGRAMS,
    "group_program": auth.CUSTOMERS,
    "template": auth.PROGRAMS,
    "message_template": auth.CUSTOMERS,
    "exercise": auth.EXERCISES,
    "exercise_override": auth.EXERCISES,
    "form": auth.FORMS,
    "form_response": auth.FORMS,
    "metric": auth.METRICS,
    "metric_value": auth.METRICS,
    "metrics_assignment": auth.METRICS,
    "metrics_set": auth.METRICS,
    "plan": auth.NUTRITION,
    "nutrition_plan": auth.NUTRITION,
}
_ANY_CLIENT = ObjectId("0" * 24)  # only areas are asked
# The areas that have permissions of their own for what belongs to a client.
_AREAS_OF_CLIENTS = (auth.FORMS, auth.METRICS, auth.NUTRITION)
# The recorded fields of the items of workouts that belong to an area.
RECORDED_FIELDS = {"answers": auth.FORMS, "values": auth.METRICS}


async def load_visibility(ctx: Context) -> auth.Visibility:
    """Return what the caller, a coach, may see now."""
    in_scope = await customers.list_ids_in_scope(ctx)
    customer_ids = None if in_scope is None else frozenset(in_scope)
    return auth.Visibility(ctx.caller.permissions, customer_ids, is_owner=ctx.caller.is_unrestricted_owner)


def area_of(kind: str, customer_id: ObjectId | None) -> auth.Area | None:
    """Return the area of a kind of document or event, of a client or of the company; None: it has none."""
    area = AREAS.get(kind)
    return area if customer_id is None or area in _AREAS_OF_CLIENTS else None


def areas_of_type(event_type: EventType) -> Sequence[auth.Area]:
    """Return the areas that may have to be seen for the events of a type, of any client and of the company."""
    kind = event_type.partition(".")[0]
    if kind == "attention":
        return [*set(AREA_OF_REASON.values())]
    is_of_clients = kind == "workout" or event_type in ("program.assigned", "program.ended")
    area = area_of(kind, _ANY_CLIENT if is_of_clients else None)
    return [] if area is None else [area]


def allows_event(visibility: auth.Visibility, event: StoredEvent) -> bool:
    """Return whether the caller may see an event."""
    if event["type"] in OWNER_EVENTS:
        return visibility.is_owner
    customer_id, kind = event["customerId"], event["type"].partition(".")[0]
    area = area_of(kind, customer_id)
    if kind == "attention":
        area = AREA_OF_REASON.get(cast("ReasonType", event["data"]["reason"]))
    return visibility.allows(customer_id=customer_id, area=area)


def list_hidden_types(ctx: Context) -> list[EventType]:
    """Return the types of the events about clients that belong to areas which the caller may not see."""
    visibility, client = auth.areas_of(ctx.caller), ctx.company_id  # any identifier: only areas are asked
    return [each for each in EVENT_TYPES if not visibility.allows(area=area_of(each.partition(".")[0], client))]


def limit_change(visibility: auth.Visibility, change: StoredChange) -> StoredChange | None:
    """Return a change with the documents and events that the caller may see; None if there are none.

    One that concerns no client is seen as a whole or not at all.
    """
    client = change["customerId"]
    clients = {client, *(event["customerId"] for event in change["events"])}
    if any(not visibility.allows(customer_id=each) for each in clients):
        return None
    documents = [each for each in change["documents"] if visibility.allows(area=area_of(each["kind"], client))]
    events = [event for event in change["events"] if allows_event(visibility, event)]
    if client is None:
        if change["events"] and not events and not documents:
            return None
        return change if len(documents) == len(change["documents"]) else None
    if not documents and not events and (change["documents"] or change["events"]):
        return None
    return cast("StoredChange", {**change, "documents": documents, "events": events})


def limit_values(visibility: auth.Visibility, kind: str, values: DocumentFields | None) -> DocumentFields | None:
    """Return fields of a document without what belongs to areas that the caller may not see: null in its place."""
    hidden = {name for name, area in RECORDED_FIELDS.items() if not visibility.allows(area=area)}
    if values is None or kind != "workout" or not hidden:
        return values
    return cast("DocumentFields", _without(values, hidden))


def _without(value: Any, hidden: set[str]) -> Any:
    if isinstance(value, Mapping):
        return {name: None if name in hidden else _without(each, hidden) for name, each in value.items()}
    return [_without(each, hidden) for each in value] if isinstance(value, list) else value
