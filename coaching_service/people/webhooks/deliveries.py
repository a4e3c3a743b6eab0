"""The deliveries of a webhook: their list, and requested repetitions."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter, now
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import Conflict, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import ListPart
from coaching_service.core.pagination import CursorPage
from coaching_service.people.webhooks import service, store
from coaching_service.people.webhooks.models import TEST_EVENT, Delivery, DeliveryStatus


async def list_deliveries(
    ctx: Context, webhook_id: ObjectId, *, limit: int, after: str | None = None, status: DeliveryStatus | None = None
) -> CursorPage[Delivery]:
    """Return at most `limit` deliveries of a webhook, newest first, after a cursor; with `status`, only those.

    Raises NotFound, InvalidFields for a cursor of another list.
    """
    await service.get(ctx, webhook_id)
    filters = {"webhookId": webhook_id, "status": status}
    list_part = ListPart(ctx, "webhookDeliveries", filters, store.LIST_ORDER, size=limit, after=after)
    where: Filter = {"webhookId": webhook_id} | ({} if status is None else {"status": status})
    page = await store.deliveries.find(ctx, where | list_part.condition(), sort=store.LIST_ORDER, limit=limit + 1)
    return list_part.by_cursor(page, lambda entry: entry)


@transactional
async def send_test(ctx: Context, webhook_id: ObjectId) -> Delivery:
    """Queue a test event for a webhook, and return its delivery. Raises NotFound, Conflict if it is not active."""
    await _require_active(ctx, webhook_id)
    delivery_id = ObjectId()
    delivery = new_delivery(webhook_id, f"{delivery_id}.0", 0, TEST_EVENT, None)
    stored = await store.deliveries.insert(ctx, {**delivery, "_id": delivery_id, "nextAttemptAt": now()})
    await store.count_request(ctx, webhook_id)
    return stored


@transactional
async def redeliver(ctx: Context, webhook_id: ObjectId, delivery_id: ObjectId) -> Delivery:
    """Queue another attempt of a delivery, with the same `webhook-id`, and return it.

    Raises NotFound, Conflict if the webhook is not active.
    """
    await _require_active(ctx, webhook_id)
    where = {"_id": delivery_id, "webhookId": webhook_id}
    due = {"status": "pending", "nextAttemptAt": now(), "retries": 0}
    await store.deliveries.set_derived(ctx, where, {"$set": due, "$unset": {"isQueued": ""}})
    if (delivery := await store.deliveries.find_one(ctx, where)) is None:
        raise NotFound("delivery")
    await store.count_request(ctx, webhook_id)
    return delivery


def new_delivery(
    webhook_id: ObjectId, event_id: str, number: int, event_type: str, customer_id: ObjectId | None
) -> dict[str, object]:
    """Return the fields of a delivery that has not been attempted."""
    return {
        "webhookId": webhook_id,
        "eventId": event_id,
        "seq": number,
        "type": event_type,
        "customerId": customer_id,
        "status": "pending",
        "attempts": 0,
        "responseStatus": None,
        "error": None,
        "durationMs": None,
        "lastAttemptAt": None,
        "nextAttemptAt": None,
        "retries": 0,
    }


async def _require_active(ctx: Context, webhook_id: ObjectId) -> None:
    webhook = await service.get(ctx, webhook_id)
    if not webhook["isActive"]:
        raise Conflict("The webhook is not active; activate it first", code="WEBHOOK_INACTIVE")
