"""Webhooks and deliveries in the database."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, Final

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Documents, now
from coaching_service.core.database.portable import NotExported
from coaching_service.core.fields import private_of, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.metrics import Backlog
from coaching_service.people.webhooks.models import (
    ActiveWebhook,
    AttemptResponse,
    AttemptResult,
    Delivery,
    DueDelivery,
    Webhook,
    WebhookSecrets,
)

RETENTION_SECONDS = 30 * 24 * 3600
_REASON = "one process sends the deliveries of all companies"
_TO_ATTEMPT: Final = ("webhookId", "eventId", "seq", "type", "customerId", "createdAt", "nextAttemptAt", "retries")
_WITH_SECRETS: Final = ("url", "isActive", "secrets", "failingSince")

_COUNTED_AT_ONCE = 1_000

_PENDING = Index(("createdAt", "webhookId"), partial_filter=(("status", "pending"),))

webhooks = Documents[Webhook](
    "webhooks",
    (Index(("createdAt", "_id")), Index(("slot",), unique=True)),
    private=private_of(Webhook),
    global_indexes=(Index(("isActive",)),),
    cross_company_reason=_REASON,
    transfer=NotExported("secrets, and addresses that expect the events of this company"),
)
deliveries = Documents[Delivery](
    "webhookDeliveries",
    (
        Index(("webhookId", "-createdAt", "-_id")),
        Index(("webhookId", "status", "-createdAt", "-_id")),
        Index(("webhookId", "seq"), partial_filter=(("isQueued", {"$exists": True}),)),
        Index(("webhookId", "nextAttemptAt")),
        Index(("customerId",)),
    ),
    private=private_of(Delivery),
    global_indexes=(_PENDING,),
    client_field="customerId",
    secret=True,
    expire=("createdAt", RETENTION_SECONDS),
    cross_company_reason=_REASON,
    transfer=NotExported("deliveries of webhooks"),
)
LIST_ORDER = ("-createdAt", "-_id")


# --- webhooks --------------------------------------------------------------------------------------------------------


async def find_with_secrets(ctx: Context, webhook_id: ObjectId) -> WebhookSecrets | None:
    """Return what an attempt needs of a webhook, or None."""
    return await webhooks.find_one(ctx, {"_id": webhook_id}, _WITH_SECRETS)


async def move_position(ctx: Context, webhook_id: ObjectId, position: int | None, new_position: int) -> bool:
    """Move the position of an active webhook; returns False if it is not at `position` (None: none) any more."""
    where = {"_id": webhook_id, "position": position, "isActive": True}
    return await webhooks.set_derived(ctx, where, {"$set": {"position": new_position}}) == 1


async def count_request(ctx: Context, webhook_id: ObjectId) -> None:
    """Count a delivery that a user has requested: the process that delivers looks for it."""
    await webhooks.set_derived(ctx, {"_id": webhook_id}, {"$inc": {"requested": 1}})


async def disable(ctx: Context, webhook_id: ObjectId, failing_since: datetime) -> Webhook | None:
    """Disable an active webhook that has been failing since that time or longer; None if it has not."""
    where = {"_id": webhook_id, "isActive": True, "failingSince": {"$lte": failing_since}}
    return await webhooks.update(ctx, where, {"$set": {"isActive": False, "disabledAt": now()}})


async def list_active(services: Services) -> list[ActiveWebhook]:
    """Return the active webhooks of all companies."""
    fields = {"companyId": 1, "requested": 1}
    cursor: Any = webhooks.across_companies(services).find({"isActive": True}, fields, hint="isActive")
    active: list[ActiveWebhook] = await cursor.to_list(None)
    return active


async def find_pending(services: Services, limit: int) -> Backlog:
    """Count the pending deliveries of the active webhooks of all companies, at most `limit`, and find the oldest.

    Only webhooks that have pending deliveries are read, and pending deliveries of others until `limit` is reached.
    """
    fields, is_active = {"webhookId": 1, "createdAt": 1}, dict[ObjectId, bool]()
    cursor: Any = deliveries.across_companies(services).find({"status": "pending"}, fields, hint=_PENDING.name)
    cursor = cursor.sort("createdAt", 1).batch_size(_COUNTED_AT_ONCE)
    count, oldest = 0, None
    while count < limit and (batch := await cursor.to_list(_COUNTED_AT_ONCE)):
        if unknown := {each["webhookId"] for each in batch} - is_active.keys():
            known: Any = webhooks.across_companies(services).find({"_id": {"$in": list(unknown)}}, {"isActive": 1})
            is_active |= dict.fromkeys(unknown, False) | {each["_id"]: each["isActive"] async for each in known}
        found = [each["createdAt"] for each in batch if is_active[each["webhookId"]]]
        count, oldest = count + len(found), oldest or next(iter(found), None)
    await cursor.close()
    seconds = 0.0 if oldest is None else max(0.0, (now() - oldest).total_seconds())
    return {"count": min(count, limit), "oldestSeconds": seconds}


# --- deliveries ------------------------------------------------------------------------------------------------------


async def list_queued(ctx: Context, webhook_id: ObjectId, after: int, limit: int) -> list[DueDelivery]:
    """Return what an attempt needs of deliveries that wait for their first one, in the order of the events.

    Only deliveries of events with a number greater than `after`.
    """
    where = {"webhookId": webhook_id, "isQueued": True, "seq": {"$gt": after}}
    return await deliveries.find(ctx, where, sort=("seq",), limit=limit, fields=_TO_ATTEMPT)


async def list_due(
    ctx: Context, webhook_id: ObjectId, at: datetime, limit: int, *, without: Collection[ObjectId]
) -> list[DueDelivery]:
    """Return what an attempt needs of due deliveries, except `without`, the longest due first."""
    where = {"webhookId": webhook_id, "nextAttemptAt": {"$lte": at}, "_id": {"$nin": list(without)}}
    return await deliveries.find(ctx, where, sort=("nextAttemptAt",), limit=limit, fields=_TO_ATTEMPT)


async def find_next_due(ctx: Context, webhook_id: ObjectId, at: datetime) -> datetime | None:
    """Return when the first attempt after `at` is due; None if there is none."""
    where = {"webhookId": webhook_id, "nextAttemptAt": {"$gt": at}}
    following = await deliveries.find(ctx, where, sort=("nextAttemptAt",), limit=1, fields=("nextAttemptAt",))
    return following[0]["nextAttemptAt"] if following else None


async def record_attempt(ctx: Context, delivery: DueDelivery, result: AttemptResult) -> bool:
    """Record an attempt; returns False if another one has been requested since it began, which is due then."""
    change = {"$set": dict(result), "$inc": {"attempts": 1}, "$unset": {"isQueued": ""}}
    where = {"_id": delivery["_id"], "nextAttemptAt": delivery["nextAttemptAt"]}
    if await deliveries.set_derived(ctx, where, change):
        return True
    change["$set"] = take(AttemptResponse, result)
    await deliveries.set_derived(ctx, {"_id": delivery["_id"]}, change)
    return False


# --- rotation of master keys -----------------------------------------------------------------------------------------


async def list_sealed(services: Services) -> list[Webhook]:
    """Return the encrypted secrets of all webhooks."""
    cursor: Any = webhooks.across_companies(services).find({}, {"secrets": 1})
    sealed: list[Webhook] = await cursor.to_list(None)
    return sealed
