"""Due notifications in the database."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from coaching_service.core.database.across_companies import count_backlog
from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, Documents, now
from coaching_service.core.database.portable import NotExported
from coaching_service.core.ids import ObjectId
from coaching_service.core.metrics import Backlog
from coaching_service.people.notifications.models import DueNotification, Notification

_CANDIDATES = 50
_random = random.SystemRandom()
_STORED_SECONDS = 14 * 86_400  # after it was due: a key must not be due again

notifications = Documents[Notification](
    "notifications",
    (Index(("key",), unique=True), Index(("customerId",))),
    client_field="customerId",
    secret=True,
    expire=("dueAt", _STORED_SECONDS),
    global_indexes=(Index(("sendAt",)),),
    cross_company_reason="processes claim the notifications of all companies that are due",
    transfer=NotExported("follows from the calendar, messages and proposals"),
)
DUE_INDEX = "sendAt"


async def add(ctx: Context, due: Sequence[DueNotification], *, creates: bool) -> None:
    """Store notifications that are due, in one round trip. What is pending under the same key is due at the new time.

    What has been sent or dropped stays, unless it has an interval. With `creates` false only what is pending changes.
    """
    await notifications.set_derived_each(ctx, [({"key": each.key}, _upsert(each)) for each in due], upsert=creates)


def _upsert(due: DueNotification) -> list[Document]:
    """Return the stages that store a new notification, or make a stored one due at another time."""
    fields = {
        "kind": due.kind,
        "channels": list(due.channels),
        "recipient": due.recipient,
        "customerId": due.customer_id,
        "subject": due.subject,
        "validUntil": due.valid_until,
        "outcome": None,
    }
    values: Document = {name: {"$literal": value} for name, value in fields.items()}
    is_pending = {"$ne": [{"$ifNull": ["$sendAt", None]}, None]}
    changes: Document
    due_at: object
    if due.interval is None:
        changes, due_at = {"$and": [is_pending, {"$ne": ["$dueAt", due.due_at]}]}, due.due_at
    else:
        earliest = {"$add": ["$sentAt", round(due.interval.total_seconds() * 1000)]}
        changes, due_at = {"$not": [is_pending]}, {"$max": [due.due_at, earliest]}
    created: Document = {"_id": ObjectId(), "dueAt": due.due_at, "sendAt": due.due_at, "sentAt": None, "requests": 0}
    created["createdAt"] = now()
    branches: list[Document] = [
        {
            "case": {"$eq": [{"$type": "$dueAt"}, "missing"]},
            "then": {"$mergeObjects": ["$$ROOT", values, created]},
        },
        {"case": changes, "then": {"$mergeObjects": ["$$ROOT", values, {"dueAt": due_at, "sendAt": due_at}]}},
    ]
    if due.interval is not None:
        # A write, so that this transaction and one that is sending the notification do not pass each other by.
        requests = {"requests": {"$add": [{"$ifNull": ["$requests", 0]}, 1]}}
        branches.append({"case": True, "then": {"$mergeObjects": ["$$ROOT", requests]}})
    return [{"$replaceWith": {"$switch": {"branches": branches, "default": "$$ROOT"}}}]


async def claim(services: Services, at: datetime, lease: timedelta) -> Notification | None:
    """Claim one of the notifications of any company that have been due longest at `at`, for the time of the lease."""
    collection = notifications.across_companies(services)
    due = (
        await collection.find({"sendAt": {"$lte": at}}, limit=_CANDIDATES, hint=DUE_INDEX)
        .sort("sendAt", 1)
        .to_list(None)
    )
    _random.shuffle(due)  # so that processes do not all try to claim the same one
    for candidate in due:
        unclaimed = {name: candidate[name] for name in ("companyId", "_id", "sendAt")}
        claimed: Any = await collection.find_one_and_update(
            unclaimed, {"$set": {"sendAt": at + lease}}, return_document=True
        )
        if claimed is not None:
            notification: Notification = claimed
            return notification
    return None


async def postpone(ctx: Context, claimed: Notification, until: datetime, *, due_at: datetime | None = None) -> None:
    """Send a notification no earlier than `until`; `due_at`: it is due at another time."""
    change = {"sendAt": until} | ({} if due_at is None else {"dueAt": due_at})
    await notifications.set_derived(ctx, {"_id": claimed["_id"]}, {"$set": change})


async def wait(services: Services, claimed: Notification, until: datetime) -> None:
    """Send a notification that this process has claimed no earlier than `until`."""
    own = {name: claimed[name] for name in ("companyId", "_id", "sendAt")}
    await notifications.across_companies(services).update_one(own, {"$set": {"sendAt": until}})


async def count_due(services: Services, limit: int) -> Backlog:
    """Count the notifications of all companies that are due, at most `limit`, and since when they are."""
    collection = notifications.across_companies(services)
    return await count_backlog(collection, {"sendAt": {"$lte": now()}}, "sendAt", limit, hint=DUE_INDEX)
