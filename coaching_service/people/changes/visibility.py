"""Which changes and events the caller may see: those of clients in scope, and of areas with the permission to view."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core.auth.permissions import EXERCISES, FORMS, METRICS, PROGRAMS
from coaching_service.core.changes.models import StoredChange
from coaching_service.core.database.context import Context
from coaching_service.core.events import EventType
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service as customers

# The area of documents and events that belong to no client, by the first word of their kind or type.
AREAS = {
    "program": PROGRAMS,
    "workout": PROGRAMS,
    "template": PROGRAMS,
    "exercise": EXERCISES,
    "exercise_override": EXERCISES,
    "form": FORMS,
    "metrics_set": METRICS,
}


@dataclass(frozen=True)
class Visibility:
    """The clients in the caller's scope (None: all of the company), and the caller's permissions."""

    customer_ids: frozenset[ObjectId] | None
    permissions: frozenset[str]

    def allows_client(self, customer_id: ObjectId) -> bool:
        """Whether the caller may see what concerns a client."""
        return self.customer_ids is None or customer_id in self.customer_ids

    def allows_event(self, event_type: EventType, customer_id: ObjectId | None) -> bool:
        """Whether the caller may see an event."""
        if customer_id is not None:
            return self.allows_client(customer_id)
        return self._allows(None, event_type.partition(".")[0])

    def allows_change(self, change: StoredChange) -> bool:
        """Whether the caller may see a change: all of it."""
        clients = {change["customerId"], *(event["customerId"] for event in change["events"])} - {None}
        if any(not self.allows_client(client) for client in clients if client is not None):
            return False
        if change["customerId"] is not None:
            return True
        return all(self._allows(None, document["kind"]) for document in change["documents"])

    def _allows(self, customer_id: ObjectId | None, kind: str) -> bool:
        if customer_id is not None:
            return self.allows_client(customer_id)
        area = AREAS.get(kind)
        return area is None or area.VIEW in self.permissions


async def load_visibility(ctx: Context) -> Visibility:
    """Return what the caller may see now."""
    scoped = ctx.caller.customers_scope == "assigned"
    customer_ids = frozenset(await customers.list_assigned_ids(ctx)) if scoped else None
    return Visibility(customer_ids, ctx.caller.permissions)
