"""From the change log to deliveries: one for each event of a type that a webhook wants, in the order of the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import CursorExpired
from coaching_service.core.ids import ObjectId
from coaching_service.people.changes import events
from coaching_service.people.changes.models import Event
from coaching_service.people.webhooks import store
from coaching_service.people.webhooks.deliveries import new_delivery

BATCH = 100


async def plan_deliveries(ctx: Context, webhook_id: ObjectId) -> bool:
    """Store the deliveries of the next events of an active webhook; returns whether there may be more events.

    Events that are older than 30 days are left out. A position ahead of the log becomes its end.
    """
    webhook = await store.find_subscription(ctx, webhook_id)
    if webhook is None or not webhook["isActive"]:
        return False
    position = webhook["position"]
    try:
        page, new_position = await events.read_events(ctx, position, BATCH, webhook["types"])
    except CursorExpired:
        await store.move_position(ctx, webhook_id, position, await events.find_available(ctx, position))
        return True
    if new_position > position:
        await _store(ctx, webhook_id, position, new_position, page["docs"])
    return page["hasMore"] or bool(page["docs"])


@transactional
async def _store(ctx: Context, webhook_id: ObjectId, position: int, new_position: int, new: Sequence[Event]) -> None:
    """Store deliveries and the position after them, unless another process has done so."""
    if await store.move_position(ctx, webhook_id, position, new_position):
        await store.create_deliveries(ctx, [_delivery(webhook_id, event) for event in new])


def _delivery(webhook_id: ObjectId, event: Event) -> dict[str, object]:
    # What belongs to a client is erased with the client; that a client was deleted is still reported.
    client_id = None if event["type"] == "customer.deleted" else event["customerId"]
    return {**new_delivery(webhook_id, event["id"], event["seq"], event["type"], client_id), "isQueued": True}
