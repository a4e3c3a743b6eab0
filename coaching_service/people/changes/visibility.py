"""Which changes and events the caller may see: of clients in scope, and of areas with the permission to view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from coaching_service.core.auth.permissions import CUSTOMERS, EXERCISES, FORMS, METRICS, NUTRITION, PROGRAMS, Area
from coaching_service.core.auth.visibility import Visibility, areas_of
from coaching_service.core.changes.models import StoredChange, StoredEvent
from coaching_service.core.database.context import Context
from coaching_service.core.database.models import DocumentFields
from coaching_service.core.events import EVENT_TYPES, EventType
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.attention_events import AREA_OF_REASON
from coaching_service.people.customers.models import ReasonType

# The area of documents and events, by their kind, or the first word of their type. Those that are missing lie under
# the client, or belong to no area.
AREAS = {
    "program": PROGRAMS,
    "workout": PROGRAMS,
    "group_program": CUSTOMERS,
    "template": PROGRAMS,
    "exercise": EXERCISES,
    "exercise_override": EXERCISES,
    "form": FORMS,
    "form_response": FORMS,
    "metric": METRICS,
    "metric_value": METRICS,
    "metrics_assignment": METRICS,
    "metrics_set": METRICS,
    "plan": NUTRITION,
    "nutrition_plan": NUTRITION,
}
# The areas that have permissions of their own for what belongs to a client.
_AREAS_OF_CLIENTS = (FORMS, METRICS, NUTRITION)
# The recorded fields of the items of workouts that belong to an area.
RECORDED_FIELDS = {"answers": FORMS, "values": METRICS}


async def load_visibility(ctx: Context) -> Visibility:
    """Return what the caller, a coach, may see now."""
    in_scope = await customers.list_ids_in_scope(ctx)
    return Visibility(ctx.caller.permissions, None if in_scope is None else frozenset(in_scope))


def area_of(kind: str, customer_id: ObjectId | None) -> Area | None:
    """Return the area of a kind of document or event, of a client or of the company; None: it has none."""
    area = AREAS.get(kind)
    return area if customer_id is None or area in _AREAS_OF_CLIENTS else None


def allows_event(visibility: Visibility, event: StoredEvent) -> bool:
    """Return whether the caller may see an event."""
    customer_id, kind = event["customerId"], event["type"].partition(".")[0]
    area = area_of(kind, customer_id)
    if kind == "attention":
        area = AREA_OF_REASON.get(cast("ReasonType", event["data"]["reason"]))
    return visibility.allows(customer_id=customer_id, area=area)


def list_hidden_types(ctx: Context) -> list[EventType]:
    """Return the types of the events about clients that belong to areas which the caller may not see."""
    visibility, client = areas_of(ctx.caller), ctx.company_id  # any identifier: only areas are asked
    return [each for each in EVENT_TYPES if not visibility.allows(area=area_of(each.partition(".")[0], client))]


def limit_change(visibility: Visibility, change: StoredChange) -> StoredChange | None:
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
        return change if len(documents) == len(change["documents"]) else None
    if not documents and not events and (change["documents"] or change["events"]):
        return None
    return cast("StoredChange", {**change, "documents": documents, "events": events})


def limit_values(visibility: Visibility, kind: str, values: DocumentFields | None) -> DocumentFields | None:
    """Return fields of a document without what belongs to areas that the caller may not see: null in its place."""
    hidden = {name for name, area in RECORDED_FIELDS.items() if not visibility.allows(area=area)}
    if values is None or kind != "workout" or not hidden:
        return values
    return cast("DocumentFields", _without(values, hidden))


def _without(value: Any, hidden: set[str]) -> Any:
    if isinstance(value, Mapping):
        return {name: None if name in hidden else _without(each, hidden) for name, each in value.items()}
    return [_without(each, hidden) for each in value] if isinstance(value, list) else value
