"""Messages in the database, and a document for each conversation that is updated in the same transactions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from coaching_service.core.changes.log import UNDO_PERIOD
from coaching_service.core.database import declared
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, Documents, Filter, PipelineStage
from coaching_service.core.errors import require_found
from coaching_service.core.events import EventType
from coaching_service.core.fields import private_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import IMAGE_TYPES, PDF, VIDEO_TYPES
from coaching_service.core.validation import Text
from coaching_service.people.customers.models import ClientText, DatedCount
from coaching_service.progress.conversation import models as conversation_models

MESSAGE_ORDER = ("-createdAt", "-_id")
CONVERSATION_ORDER = ("-lastMessageAt", "-_id")
_SIDES: tuple[conversation_models.Side, conversation_models.Side] = ("client", "company")
_NO_MAIL: conversation_models.MailState = {"jobId": None, "sentAt": None}


def _event(action: declared.Action, known: Mapping[str, Any], _: Collection[str]) -> declared.EventData:
    event_type: EventType = "message.updated"
    if action == "created":
        event_type = "message.created"
    elif action == "deleted" or known["text"] is None:
        event_type = "message.deleted"
    return {"type": event_type, "data": {"messageId": known["_id"]}}


def _contact(message: Mapping[str, Any]) -> list[str]:
    return [] if message["text"] is None else [message["text"]]


def _texts(message: Mapping[str, Any]) -> Iterator[declared.SearchedText]:
    author = message.get("author", {}).get("name", "")
    title = f"Message from {author}"
    yield declared.SearchedText("messages", title, message.get("text") or "", message.get("createdAt"), is_named=False)


messages = Documents[conversation_models.StoredMessage](
    "messages",
    (
        declared.Index(("customerId", *MESSAGE_ORDER)),
        declared.Index(("customerId", "about.wblockId", *MESSAGE_ORDER)),
        declared.Index(("customerId", "unreadBy", "createdAt"), partial_filter=(("unreadBy", {"$exists": True}),)),
    ),
    private=private_of(conversation_models.StoredMessage),
    client_field="customerId",
    history=declared.History("message", _event, ("text",), undo="never", contact=_contact),
    transfer=declared.Portable(
        conversation_models.StoredMessage,
        declared.RECORDS,
        checks={"text": Text(max_length=5_000)},
        references={"customerId": "customers"},
        files=declared.FileRule((*IMAGE_TYPES, *VIDEO_TYPES, PDF), "attachment"),
    ),
    searched=declared.Searched(("messages",), ("author", "text", "createdAt"), _texts),
)
conversations = Documents[conversation_models.StoredConversation](
    "conversations",
    (declared.Index(("customerId",), unique=True), declared.Index(("isUnread", *CONVERSATION_ORDER))),
    client_field="customerId",
    transfer=declared.Portable(
        conversation_models.StoredConversation,
        declared.CONVERSATIONS,
        computed=("mail",),
        references={"customerId": "customers", "lastMessageId": "messages"},
        complete=lambda conversation: {**conversation, "mail": {side: dict(_NO_MAIL) for side in _SIDES}},
    ),
    no_history_reason="read marks and figures that follow from messages",
    cross_company_reason="the numbers of all companies are checked",
)
pending_attachments = Documents[conversation_models.PendingAttachment](
    "pendingAttachments",
    (declared.Index(("customerId", "uploadedBy", "_id")),),
    client_field="customerId",
    transfer=declared.NotExported("attachments that no message has"),
    has_files=True,
)
_BY_UNREAD = messages.index_name("customerId", "unreadBy", "createdAt")
_BY_TIME = messages.index_name("customerId", *MESSAGE_ORDER)


# Messages until they are delivered, and afterwards without their text.
waiting_messages = Documents[conversation_models.WaitingMessage](
    "waitingMessages",
    (declared.Index(("customerId", "isWaiting", *MESSAGE_ORDER)), declared.Index(("changeId",))),
    private=private_of(conversation_models.WaitingMessage),
    client_field="customerId",
    history=declared.History("message", undo="creation", contact=_contact),
    expire=("deliverAt", round((UNDO_PERIOD + timedelta(days=1)).total_seconds())),
    transfer=declared.NotExported("messages that are not sent yet: two companies would send them"),
    has_files=True,
)


# --- Messages --------------------------------------------------------------------------------------------------------


def about_block(block_id: ObjectId | None) -> Filter:
    """Return the filter of the messages about a workout block, or of all."""
    return {} if block_id is None else {"about.wblockId": block_id}


async def find_commented(ctx: Context, customer_id: ObjectId, block_ids: Sequence[ObjectId]) -> set[ObjectId]:
    """Return which of some workouts of a client there are messages about."""
    where: Filter = {"customerId": customer_id, "about.wblockId": {"$in": list(block_ids)}}
    return {
        each["about"]["wblockId"]
        for each in await messages.find(ctx, where, fields=("about.wblockId",))
        if each["about"]
    }


async def find_by_ids(ctx: Context, ids: Sequence[ObjectId]) -> dict[ObjectId, conversation_models.StoredMessage]:
    """Return the existing messages of the company with these identifiers."""
    return {message["_id"]: message for message in await messages.find(ctx, {"_id": {"$in": list(ids)}})}


async def find_message(
    ctx: Context, customer_id: ObjectId, message_id: ObjectId
) -> conversation_models.MessageContent | None:
    """Return a message with its private field `unreadBy`, or None."""
    return await messages.find_one(
        ctx, {"customerId": customer_id, "_id": message_id}, ("author", "text", "attachments", "unreadBy", "version")
    )


async def find_files(
    ctx: Context, customer_id: ObjectId, message_id: ObjectId
) -> list[conversation_models.AttachedFile]:
    """Return the files of a message, for a coach also of one that waits. Raises NotFound without such a message."""
    where: Filter = {"customerId": customer_id, "_id": message_id}
    message = await messages.find_one(ctx, where, ("attachments",))
    if message is None and ctx.caller.is_coach:
        waiting = await waiting_messages.find_one(ctx, {**where, "isWaiting": True}, ("attachments",))
        return require_found(waiting, "message").get("attachments", [])
    return require_found(message, "message")["attachments"]


async def count_unread(ctx: Context, customer_ids: Sequence[ObjectId]) -> list[DatedCount]:
    """Return how many messages the company has not read, of clients with any. Access is not checked."""
    where: Filter = {"customerId": {"$in": list(customer_ids)}, "unreadBy": "company"}
    group = {"_id": "$customerId", "count": {"$sum": 1}, "newest": {"$max": "$createdAt"}}
    return await messages.aggregate(ctx, where, {"$group": group}, hint=_BY_UNREAD)


async def find_newest_unread(ctx: Context, customer_ids: Sequence[ObjectId]) -> list[ClientText]:
    """Return the newest message that the company has not read, of clients with any. Access is not checked."""
    where: Filter = {"customerId": {"$in": list(customer_ids)}, "unreadBy": "company"}
    order: PipelineStage = {"$sort": {"customerId": 1, "unreadBy": 1, "createdAt": 1}}
    group = {"_id": "$customerId", "text": {"$last": {"$ifNull": ["$text", ""]}}}
    return await messages.aggregate(ctx, where, order, {"$group": group}, hint=_BY_UNREAD)


async def find_oldest_unread_time(
    ctx: Context, customer_id: ObjectId, side: conversation_models.Side
) -> datetime | None:
    """Return when the oldest message that a side has not read was sent, or None."""
    where = {"customerId": customer_id, "unreadBy": side}
    oldest = await messages.find(ctx, where, sort=("createdAt",), limit=1, fields=("createdAt",), hint=_BY_UNREAD)
    return oldest[0]["createdAt"] if oldest else None


async def find_turns(
    ctx: Context, customer_ids: Sequence[ObjectId], since: datetime, until: datetime
) -> list[conversation_models.Turn]:
    """Return the first message of each turn of clients and coaches, by client, from one time up to another."""
    where: Filter = {
        "customerId": {"$in": list(customer_ids)},
        "createdAt": {"$gte": since, "$lt": until},
        "text": {"$ne": None},
    }
    is_of_client = {"$eq": ["$author.type", "client"]}
    previous = {"$shift": {"output": "$isOfClient", "by": -1}}
    stages: list[PipelineStage] = [
        {"$project": {"customerId": 1, "createdAt": 1, "isOfClient": is_of_client, "authorId": "$author._id"}},
        {
            "$setWindowFields": {
                "partitionBy": "$customerId",
                "sortBy": {"createdAt": 1, "_id": 1},
                "output": {"previous": previous},
            }
        },
        {"$match": {"$expr": {"$ne": ["$isOfClient", "$previous"]}}},
        {"$sort": {"customerId": 1, "createdAt": 1, "_id": 1}},
        {"$project": {"previous": 0}},
    ]
    return await messages.aggregate(ctx, where, *stages, hint=_BY_TIME)


# --- Conversations ---------------------------------------------------------------------------------------------------


async def add_to_conversation(
    ctx: Context, message: conversation_models.StoredMessage, unread_by: conversation_models.Side
) -> None:
    """Make a message the last one of its conversation, unread by one side; the first one creates the conversation."""
    customer_id = message["customerId"]
    last = {"lastMessageId": message["_id"], "lastMessageAt": message["createdAt"]}
    is_unread = {"isUnread": True} if unread_by == "company" else {}
    change = {"$set": last | is_unread, "$inc": {f"unread.{unread_by}": 1}}
    if await conversations.set_derived(ctx, {"customerId": customer_id}, change):
        return
    await conversations.insert(
        ctx,
        {
            "customerId": customer_id,
            **last,
            "unread": {side: int(side == unread_by) for side in _SIDES},
            "isUnread": unread_by == "company",
            "mail": dict.fromkeys(_SIDES, _NO_MAIL),
        },
    )


async def set_unread(ctx: Context, customer_id: ObjectId, side: conversation_models.Side, count: int) -> None:
    """Set how many messages a side has not read."""
    is_unread = {"isUnread": count > 0} if side == "company" else {}
    change = {"$set": {f"unread.{side}": count, **is_unread}}
    await conversations.set_derived(ctx, {"customerId": customer_id}, change)


# --- Checks ----------------------------------------------------------------------------------------------------------


async def find_wrong_counts(
    services: Services, ids: Sequence[ObjectId] | None = None, session: Any = None
) -> list[conversation_models.UnreadCount]:
    """Return the conversations (of `ids`, or all) that store other numbers of unread messages than there are."""
    unread: list[Document] = [
        {
            "$match": {
                "$expr": {
                    "$and": [
                        {"$eq": ["$companyId", "$$companyId"]},
                        {"$eq": ["$customerId", "$$customerId"]},
                        {"$in": ["$unreadBy", list(_SIDES)]},
                    ]
                },
                "unreadBy": {"$exists": True},
            }
        },
        {"$group": {"_id": "$unreadBy", "count": {"$sum": 1}}},
    ]
    variables = {"companyId": "$companyId", "customerId": "$customerId"}

    def count_of(side: conversation_models.Side) -> Document:
        of_side = {"$filter": {"input": "$counts", "cond": {"$eq": ["$$this._id", side]}}}
        return {"$ifNull": [{"$first": {"$map": {"input": of_side, "in": "$$this.count"}}}, 0]}

    counts = {side: count_of(side) for side in _SIDES}
    stages: list[Document] = [
        {"$match": {} if ids is None else {"_id": {"$in": list(ids)}}},
        {"$project": {"companyId": 1, "customerId": 1, "unread": 1, "isUnread": 1}},
        {"$lookup": {"from": messages.name, "let": variables, "pipeline": unread, "as": "counts"}},
        {"$set": {"actual": counts}},
        {
            "$match": {
                "$expr": {
                    "$or": [
                        *({"$ne": [f"$unread.{side}", f"$actual.{side}"]} for side in _SIDES),
                        {"$ne": ["$isUnread", {"$gt": ["$actual.company", 0]}]},
                    ]
                }
            }
        },
        {"$project": {"actual": 1}},
    ]
    cursor = conversations.across_companies(services).aggregate(stages, session=session)
    wrong: list[Any] = await cursor.to_list(None)
    return wrong
