"""Messages of assistants in the database until they are delivered, and afterwards without their text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from coaching_service.core.changes.log import UNDO_PERIOD
from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, Filter
from coaching_service.core.database.portable import NotExported
from coaching_service.core.database.recording import History
from coaching_service.core.fields import names_of, private_of
from coaching_service.core.ids import ObjectId
from coaching_service.progress.conversation.models import WaitingMessage
from coaching_service.progress.conversation.store import MESSAGE_ORDER

waiting_messages = Documents[WaitingMessage](
    "waitingMessages",
    (Index(("customerId", "isWaiting", *MESSAGE_ORDER)), Index(("changeId",))),
    private=private_of(WaitingMessage),
    client_field="customerId",
    history=History("message", undo="creation"),
    expire=("createdAt", round((UNDO_PERIOD + timedelta(days=1)).total_seconds())),
    transfer=NotExported("messages that are delivered within a minute"),
)


async def create(ctx: Context, message: Mapping[str, object]) -> WaitingMessage:
    """Store a message to deliver."""
    return await waiting_messages.insert(ctx, message)


async def find(
    ctx: Context, customer_id: ObjectId, after: Filter, *, block_id: ObjectId | None, limit: int
) -> list[WaitingMessage]:
    """Return at most `limit` messages to a client that wait, newest first; with `block_id` only those about it."""
    where: Filter = {"customerId": customer_id, "isWaiting": True, **after}
    if block_id is not None:
        where["about.wblockId"] = block_id
    return await waiting_messages.find(ctx, where, sort=MESSAGE_ORDER, limit=limit)


async def find_one(ctx: Context, customer_id: ObjectId, message_id: ObjectId) -> WaitingMessage | None:
    """Return a message to a client that waits, with its private fields, or None."""
    where = {"customerId": customer_id, "isWaiting": True, "_id": message_id}
    return await waiting_messages.find_one(ctx, where, names_of(WaitingMessage))


async def count_of_change(ctx: Context, change_id: ObjectId) -> int:
    """Return how many messages that were sent with a change, or a batch, have not been recalled."""
    return await waiting_messages.count(ctx, {"changeId": change_id})


async def end(ctx: Context, customer_id: ObjectId, message_id: ObjectId) -> bool:
    """Mark a message as delivered and remove its text; returns whether it was waiting. Its version stays."""
    where = {"customerId": customer_id, "isWaiting": True, "_id": message_id}
    change = {"$unset": {"isWaiting": ""}, "$set": {"text": ""}}
    return bool(await waiting_messages.set_derived(ctx, where, change))


async def delete(ctx: Context, customer_id: ObjectId, message_id: ObjectId) -> None:
    """Delete a message that waits."""
    await waiting_messages.delete(ctx, {"customerId": customer_id, "isWaiting": True, "_id": message_id})
