"""Messages, conversations and attachments: as they are asked for, sent, stored and returned, and in the database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict, get_args

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core import validation
from coaching_service.core.auth import Via
from coaching_service.core.changes.log import UNDO_PERIOD
from coaching_service.core.database import declared, files
from coaching_service.core.database.checks import Check, CountRead, Finding, Occurrences
from coaching_service.core.database.context import (
    Context,
    Services,
    gather_reads,
    in_transaction,
    reading_snapshot,
    transactional,
)
from coaching_service.core.database.documents import Document, Documents, Filter, PipelineStage, now
from coaching_service.core.database.files import StoredFile
from coaching_service.core.database.recording import Actor, ActorType
from coaching_service.core.errors import Forbidden, NotFound, invalid_field, require_by_id, require_found
from coaching_service.core.events import DomainEvent, EventType
from coaching_service.core.fields import Change, Description, Part, Private, output_of, private_of, take
from coaching_service.core.http.responses import Download
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job
from coaching_service.core.list_selection import PartQuery
from coaching_service.core.media import IMAGE_TYPES, PDF, VIDEO_TYPES
from coaching_service.core.query import QueryTime
from coaching_service.core.text import without_invisible_controls
from coaching_service.core.validation import Text
from coaching_service.library import message_templates
from coaching_service.people import files as stored_files
from coaching_service.people import team
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import ClientText, DatedCount, NamedCustomer
from coaching_service.people.file_links import file_url

# The two sides of a conversation: the client, and the coaches of the company.
Side = Literal["client", "company"]
AttachmentKind = Literal["picture", "video", "document"]
# Why a message could not be delivered: the client is archived, or its author may not write to the client any more.
Obstacle = Literal["CLIENT_ARCHIVED", "AUTHOR_NOT_ALLOWED"]

MAX_TEXT_LENGTH = message_templates.MAX_TEXT_LENGTH
MAX_ATTACHMENTS = 3
FURTHEST_DELIVERY = timedelta(days=30)


class MessageQuery(PartQuery):
    """Part of a conversation; with `wblockId` only the comments on that workout block."""

    wblockId: NotRequired[Annotated[ObjectId, Description("Only messages about this workout block or an item of it.")]]


class ConversationQuery(PartQuery):
    """Part of the list of conversations."""

    unread: NotRequired[
        Annotated[bool, Description("`true`: only with messages the company has not read; `false`: only the others.")]
    ]


class MessageSubject(TypedDict):
    """The workout block, and the item of it if any, that a message comments on."""

    wblockId: ObjectId
    witemId: ObjectId | None


class _File(TypedDict):
    _id: ObjectId
    kind: Annotated[AttachmentKind, Description("What kind of file it is.")]
    contentType: str
    size: Annotated[int, Description("Its size in bytes.")]


class AttachedFile(_File):
    """A stored attachment."""

    fileId: ObjectId
    thumbnailId: ObjectId | None


class Content(TypedDict):
    """What a message says, whether it waits or not."""

    author: Actor
    text: str
    about: MessageSubject | None
    attachments: list[AttachedFile]


class PendingAttachment(declared.Stored):
    """An attachment that is uploaded and in no message yet."""

    customerId: ObjectId
    uploadedBy: ObjectId
    file: AttachedFile


class StoredMessage(declared.Stored):
    """A stored message; `text` is null once it is deleted.

    `unreadBy` is the side that has not read it; absent once it is read or deleted.
    """

    customerId: ObjectId
    author: Actor
    text: str | None
    about: MessageSubject | None
    attachments: list[AttachedFile]
    editedAt: datetime | None
    readAt: datetime | None
    unreadBy: NotRequired[Annotated[Side, Private]]


class WaitingMessage(declared.Stored):
    """A message that waits: it is delivered under its identifier at `deliverAt`, unless it is recalled before.

    `isWaiting` until then; afterwards the text is empty, and the document is kept so that the change that
    created it can be undone. `changeId` is that change, or its batch; `via` and `credentialId` say how its author
    acted. One that could not be delivered at its time has `notDelivered`, and stays until it is deleted.
    """

    customerId: ObjectId
    author: Actor
    text: str
    about: MessageSubject | None
    attachments: NotRequired[list[AttachedFile]]
    deliverAt: datetime
    notDelivered: NotRequired[Obstacle]
    isWaiting: NotRequired[Annotated[bool, Private]]
    changeId: Annotated[ObjectId, Private]
    via: Annotated[Via, Private]
    credentialId: Annotated[ObjectId, Private]


class ShownMessage(StoredMessage):
    """A message as a coach sees it: `deliverAt` only while it waits to be delivered, or could not be."""

    deliverAt: NotRequired[datetime]
    notDelivered: NotRequired[Obstacle]


class MailState(TypedDict):
    """What version 0.2 reads: the job of the mail to one side, and when the last mail was sent."""

    jobId: ObjectId | None
    sentAt: datetime | None


class StoredConversation(declared.Stored):
    """The state of a client's conversation, updated with each message.

    `unread` counts the messages that each side has not read; `isUnread`: the company has any.
    """

    customerId: ObjectId
    lastMessageId: ObjectId
    lastMessageAt: datetime
    unread: dict[Side, int]
    isUnread: bool
    mail: dict[Side, MailState]


class Turn(TypedDict):
    """The first of the messages that a side of a conversation has written one after another."""

    _id: ObjectId
    customerId: ObjectId
    createdAt: datetime
    isOfClient: bool
    authorId: ObjectId | None


class MessageAttachment(_File):
    """A file of a message."""

    url: Annotated[str, fields.Url(), Description("A signed link to the file, valid for two hours.")]


class MessageAuthor(validation.Output):
    """Who wrote a message."""

    type = validation.Choice(*get_args(ActorType), metadata={"description": "How the author acted when writing it."})
    _id = validation.Identifier(metadata={"description": "The identifier of the coach or client."})
    name = fields.String()
    applicationId = validation.Identifier(
        metadata={"description": "The application's access, if it wrote.", "optional": True}
    )


class Message(declared.Returned):
    """A message."""

    customerId: ObjectId
    author: Annotated[Actor, fields.Nested(MessageAuthor)]
    text: Annotated[str | None, Description("Plain text; null once the message is deleted.")]
    about: Annotated[MessageSubject | None, Description("What the message comments on; null for nothing.")]
    attachments: Annotated[list[MessageAttachment], Description("Its files, at most three.")]
    editedAt: Annotated[datetime | None, Description("When the text was last changed; null for never.")]
    readAt: Annotated[
        datetime | None,
        Description("When the other side read it: the client, or any coach; null until then."),
    ]
    deliverAt: Annotated[
        datetime | None,
        Description(
            "When the message will be delivered; until then only coaches see it, and deleting it recalls it. Null for "
            "one that has been delivered."
        ),
    ]
    notDelivered: Annotated[
        Obstacle | None,
        Description(
            "Why it was not delivered at `deliverAt`: the client was archived, or its author could not write to the "
            "client any more. It is not sent later. Null for all other messages."
        ),
    ]


_FIRST = ("_id", "customerId", "author", "text", "about", "attachments", "createdAt", "updatedAt")
MESSAGE = output_of(Message, first=_FIRST)


class Conversation(TypedDict):
    """A client's conversation."""

    customer: NamedCustomer
    lastMessage: Annotated[Message | None, fields.Nested(MESSAGE), Description("The newest message; null for none.")]
    unread: Annotated[int, Description("The number of messages that the caller's side has not read.")]


class MessageSubjectInput(TypedDict):
    """The workout block, and optionally the item, that the message comments on."""

    wblockId: ObjectId
    witemId: NotRequired[ObjectId | None]


class MessageField(validation.Text):
    """The text of a message, without characters that a reader does not see and that change what is read."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_TEXT_LENGTH, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        readable = without_invisible_controls(value) if isinstance(value, str) else value
        return super()._deserialize(readable, attr, data)


class MessageText(TypedDict):
    """The text of a message."""

    text: Annotated[str, MessageField(), Description("Plain text.", argument="Plain text, in the coach's words.")]


class _Enclosed(TypedDict):
    about: NotRequired[
        Annotated[MessageSubjectInput | None, Description("What the message comments on; null for nothing.")]
    ]
    attachments: NotRequired[
        Annotated[
            list[ObjectId],
            validation.ListOf(validation.Identifier(), maximum=MAX_ATTACHMENTS),
            Description("Identifiers of files that were uploaded for this conversation by the author."),
        ]
    ]


class NewMessage(_Enclosed, MessageText):
    """A message to send."""


class DeliveryTime(QueryTime):
    """When a message is to be delivered: not in the past, and at most 30 days ahead."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> datetime:  # type: ignore[override]  # as of QueryTime
        at = super()._deserialize(value, attr, data, **options)
        if (wrong := find_wrong_time(at)) is not None:
            raise ValidationError(wrong)
        return at


def find_wrong_time(at: datetime) -> validation.Message | None:
    """Return why no message can be delivered at a time (UTC), or None."""
    moment = now()
    if at < moment:
        return validation.Message("must not be in the past", "IN_THE_PAST")
    if at > moment + FURTHEST_DELIVERY:
        return validation.Message(f"must not be more than {FURTHEST_DELIVERY.days} days ahead", "TOO_FAR_AHEAD")
    return None


class CoachText(TypedDict):
    """What a coach sends: `text`, or `templateId` in place of it; at once, or at `deliverAt`."""

    text: NotRequired[Annotated[str, MessageField(), Description("Plain text.")]]
    templateId: NotRequired[
        Annotated[
            ObjectId | None,
            Description("In place of `text`: a message template, in which the client's first name is filled in."),
        ]
    ]
    deliverAt: NotRequired[
        Annotated[
            datetime | None,
            DeliveryTime(),
            Description("When to deliver it, at most 30 days ahead; until then DELETE recalls it. Default: at once."),
        ]
    ]


class NewCoachMessage(_Enclosed, CoachText):
    """A message to send to a client."""


class OneText(validation.Input):
    """The check that a message has a text or a template."""

    @validates_schema
    def validate_text(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError for both and for none."""
        if data.get("templateId") is None:
            if "text" not in data:
                raise validation.invalid("is required, or templateId", "REQUIRED", "text")
        elif "text" in data:
            raise validation.invalid("must not be combined with text", "NOT_ALLOWED", "templateId")


class SampleMessage(TypedDict):
    """A message of sample data, sent at a time (UTC), and whether the other side has read it."""

    author: Actor
    text: str
    at: datetime
    isRead: bool


MessageChange: TypeAlias = Change[MessageText]

# What a message says, and who has not read it.
MessageContent: TypeAlias = Part[StoredMessage, Literal["_id", "author", "text", "attachments", "unreadBy", "version"]]


# --- Domain events about messages -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MessageCreated(DomainEvent):
    """A message was sent; the side `unread_by` has not read it."""

    customer_id: ObjectId
    message_id: ObjectId
    unread_by: Side


@dataclass(frozen=True)
class MessagesRecalled(DomainEvent):
    """All messages that an assistant has sent with a change, or a batch of changes, were recalled or deleted unread."""

    change_id: ObjectId


@dataclass(frozen=True)
class MessagesRead(DomainEvent):
    """One side has read all messages of a conversation, or the last one that it had not read was deleted."""

    customer_id: ObjectId
    read_by: Side


# --- Messages in the database, and a document for each conversation that is updated in the same transactions ----------


MESSAGE_ORDER = ("-createdAt", "-_id")
CONVERSATION_ORDER = ("-lastMessageAt", "-_id")
_SIDES: tuple[Side, Side] = ("client", "company")
_BATCH = 100  # conversations of a check at once
_NO_MAIL: MailState = {"jobId": None, "sentAt": None}


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


delivered = Documents[StoredMessage](
    "messages",
    (
        declared.Index(("customerId", *MESSAGE_ORDER)),
        declared.Index(("customerId", "about.wblockId", *MESSAGE_ORDER)),
        declared.Index(("customerId", "unreadBy", "createdAt"), partial_filter=(("unreadBy", {"$exists": True}),)),
    ),
    private=private_of(StoredMessage),
    client_field="customerId",
    history=declared.History("message", _event, ("text",), undo="never", contact=_contact),
    transfer=declared.Portable(
        StoredMessage,
        declared.RECORDS,
        checks={"text": Text(max_length=5_000)},
        references={"customerId": "customers"},
        files=declared.FileRule((*IMAGE_TYPES, *VIDEO_TYPES, PDF), "attachment"),
    ),
    searched=declared.Searched(("messages",), ("author", "text", "createdAt"), _texts),
)
conversations = Documents[StoredConversation](
    "conversations",
    (declared.Index(("customerId",), unique=True), declared.Index(("isUnread", *CONVERSATION_ORDER))),
    client_field="customerId",
    transfer=declared.Portable(
        StoredConversation,
        declared.CONVERSATIONS,
        computed=("mail",),
        references={"customerId": "customers", "lastMessageId": "messages"},
        complete=lambda conversation: {**conversation, "mail": {side: dict(_NO_MAIL) for side in _SIDES}},
    ),
    no_history_reason="read marks and figures that follow from messages",
    cross_company_reason="the numbers of all companies are checked",
)
pending_attachments = Documents[PendingAttachment](
    "pendingAttachments",
    (declared.Index(("customerId", "uploadedBy", "_id")),),
    client_field="customerId",
    transfer=declared.NotExported("attachments that no message has"),
    has_files=True,
)
_BY_UNREAD = delivered.index_name("customerId", "unreadBy", "createdAt")
_BY_TIME = delivered.index_name("customerId", *MESSAGE_ORDER)


# Messages until they are delivered, and afterwards without their text.
waiting_messages = Documents[WaitingMessage](
    "waitingMessages",
    (declared.Index(("customerId", "isWaiting", *MESSAGE_ORDER)), declared.Index(("changeId",))),
    private=private_of(WaitingMessage),
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
        for each in await delivered.find(ctx, where, fields=("about.wblockId",))
        if each["about"]
    }


async def find_message(ctx: Context, customer_id: ObjectId, message_id: ObjectId) -> MessageContent | None:
    """Return a message with its private field `unreadBy`, or None."""
    return await delivered.find_one(
        ctx, {"customerId": customer_id, "_id": message_id}, ("author", "text", "attachments", "unreadBy", "version")
    )


async def count_unread(ctx: Context, customer_ids: Sequence[ObjectId]) -> list[DatedCount]:
    """Return how many messages the company has not read, of clients with any. Access is not checked."""
    where: Filter = {"customerId": {"$in": list(customer_ids)}, "unreadBy": "company"}
    group = {"_id": "$customerId", "count": {"$sum": 1}, "newest": {"$max": "$createdAt"}}
    return await delivered.aggregate(ctx, where, {"$group": group}, hint=_BY_UNREAD)


async def find_newest_unread_texts(ctx: Context, customer_ids: Sequence[ObjectId]) -> dict[ObjectId, str]:
    """Return the newest message that no coach has read, of clients with any. Access is not checked."""
    where: Filter = {"customerId": {"$in": list(customer_ids)}, "unreadBy": "company"}
    order: PipelineStage = {"$sort": {"customerId": 1, "unreadBy": 1, "createdAt": 1}}
    group = {"_id": "$customerId", "text": {"$last": {"$ifNull": ["$text", ""]}}}
    newest: list[ClientText] = await delivered.aggregate(ctx, where, order, {"$group": group}, hint=_BY_UNREAD)
    return {each["_id"]: each["text"] for each in newest if each["text"]}


async def find_oldest_unread_time(ctx: Context, customer_id: ObjectId, side: Side) -> datetime | None:
    """Return when the oldest message that a side has not read was sent, or None."""
    where = {"customerId": customer_id, "unreadBy": side}
    oldest = await delivered.find(ctx, where, sort=("createdAt",), limit=1, fields=("createdAt",), hint=_BY_UNREAD)
    return oldest[0]["createdAt"] if oldest else None


async def find_turns(ctx: Context, customer_ids: Sequence[ObjectId], since: datetime, until: datetime) -> list[Turn]:
    """Return the first message of each turn of clients and coaches, by client, from one time up to another."""
    where: Filter = {
        "customerId": {"$in": list(customer_ids)},
        "createdAt": {"$gte": since, "$lt": until},
        "text": {"$ne": None},
    }
    is_of_client = {"$eq": ["$author.type", "client"]}
    previous = {"previous": {"$shift": {"output": "$isOfClient", "by": -1}}}
    by_client = {"partitionBy": "$customerId", "sortBy": {"createdAt": 1, "_id": 1}}
    stages: list[PipelineStage] = [
        {"$project": {"customerId": 1, "createdAt": 1, "isOfClient": is_of_client, "authorId": "$author._id"}},
        {"$setWindowFields": {**by_client, "output": previous}},
        {"$match": {"$expr": {"$ne": ["$isOfClient", "$previous"]}}},
        {"$sort": {"customerId": 1, "createdAt": 1, "_id": 1}},
        {"$project": {"previous": 0}},
    ]
    return await delivered.aggregate(ctx, where, *stages, hint=_BY_TIME)


# --- Files of messages: uploaded first, then sent with a message. One that is in no message after a day is deleted ----


ATTACHMENT_TYPES = (*IMAGE_TYPES, *VIDEO_TYPES, PDF)
DISCARD_ATTACHMENT = "discard_attachment"


@transactional
async def add_attachment(ctx: Context, customer_id: ObjectId, file: StoredFile | None) -> MessageAttachment:
    """Store an uploaded file for a message that the caller sends within a day, and return it.

    Raises InvalidFields without a file, NotFound if the company has no such client, Forbidden if the client is outside
    the caller's scope or in an impersonation session.
    """
    require_own_words(ctx)
    await customers.get_visible(ctx, customer_id)
    if file is None:
        raise invalid_field("file", "is required", code="REQUIRED")
    kind: AttachmentKind = "picture" if file.content_type in IMAGE_TYPES else "document"
    attached: AttachedFile = {
        "_id": ObjectId(),
        "kind": "video" if file.content_type in VIDEO_TYPES else kind,
        "contentType": file.content_type,
        "size": file.size,
        "fileId": file.id,
        "thumbnailId": file.thumbnail_id,
    }
    await customers.lock_and_mark_figures(ctx, customer_id)
    upload = {"customerId": customer_id, "uploadedBy": ctx.caller.id}
    await pending_attachments.insert(ctx, {**upload, "_id": attached["_id"], "file": attached})
    arguments = {"companyId": ctx.company_id, **upload, "attachmentId": attached["_id"]}
    await queue.enqueue(ctx, DISCARD_ATTACHMENT, arguments, after=timedelta(days=1), about=customer_id)
    return present_attachment(ctx, attached)


async def discard_unsent_attachment(services: Services, job: Job) -> None:
    """Delete an attachment with its file if no message has it."""
    with suppress(NotFound):  # the company is deleted
        owner = await team.get_owner(services, job.arguments["companyId"])

        async def discard(ctx: Context) -> None:
            upload = {name: job.arguments[name] for name in ("customerId", "uploadedBy")}
            pending = await pending_attachments.delete(ctx, {**upload, "_id": job.arguments["attachmentId"]})
            if pending is not None:
                await files.discard(ctx, file_ids(pending["file"]))

        await in_transaction(Context(services, owner), discard)


async def read_attachment(
    ctx: Context, customer_id: ObjectId, message_id: ObjectId, attachment_id: ObjectId, *, small: bool
) -> Download:
    """Return the file of a message, or the small version of a picture if it has one. It must not be cached.

    Raises NotFound if the client's conversation has no such message or the message no such file, and what
    `customers.get_visible` raises.
    """
    where: Filter = {"customerId": customer_id, "_id": message_id}
    _, message = await gather_reads(
        ctx, customers.get_visible(ctx, customer_id), delivered.find_one(ctx, where, ("attachments",))
    )
    if message is None and ctx.caller.is_coach:
        message = await waiting_messages.find_one(ctx, {**where, "isWaiting": True}, ("attachments",))
    file = require_by_id(require_found(message, "message").get("attachments", []), attachment_id, "attachment")
    return await stored_files.open_file(ctx, (file["thumbnailId"] if small else None) or file["fileId"])


def file_ids(file: AttachedFile) -> list[ObjectId | None]:
    """Return the identifiers of an attachment's file and its thumbnail."""
    return [file["fileId"], file["thumbnailId"]]


def present_attachment(ctx: Context, file: AttachedFile) -> MessageAttachment:
    """Return an attachment with a signed link to its file."""
    return {**take(MessageAttachment, file), "url": str(file_url(ctx, file["fileId"]))}


def require_own_words(ctx: Context) -> None:
    """Raise Forbidden in an impersonation session: what it writes would be read as the client's words."""
    if ctx.caller.impersonated_by is not None:
        raise Forbidden("An impersonation session cannot send or change messages", code="IMPERSONATED")


# --- Conversations ---------------------------------------------------------------------------------------------------


async def add_to_conversation(ctx: Context, message: StoredMessage, unread_by: Side) -> None:
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


async def set_unread(ctx: Context, customer_id: ObjectId, side: Side, count: int) -> None:
    """Set how many messages a side has not read."""
    is_unread = {"isUnread": count > 0} if side == "company" else {}
    change = {"$set": {f"unread.{side}": count, **is_unread}}
    await conversations.set_derived(ctx, {"customerId": customer_id}, change)


# --- Checks of the numbers of unread messages -------------------------------------------------------------------------


async def _find_wrong_counts(
    services: Services, ids: Sequence[ObjectId] | None = None, session: Any = None
) -> list[Document]:
    """Return the conversations (of `ids`, or all) that store other numbers of unread messages than there are.

    Each with its `_id`, and how many messages each side has not read (`actual`).
    """
    of_client: list[Document] = [{"$eq": [f"${name}", f"$${name}"]} for name in ("companyId", "customerId")]
    is_unread = {"$and": [*of_client, {"$in": ["$unreadBy", list(_SIDES)]}]}
    unread: list[Document] = [
        {"$match": {"$expr": is_unread, "unreadBy": {"$exists": True}}},
        {"$project": {"_id": 0, "unreadBy": 1}},
    ]
    variables = {"companyId": "$companyId", "customerId": "$customerId"}
    of_side = {side: {"input": "$unreadMessages", "cond": {"$eq": ["$$this.unreadBy", side]}} for side in _SIDES}
    counts = {side: {"$size": {"$filter": each}} for side, each in of_side.items()}
    differences: list[Document] = [{"$ne": [f"$unread.{side}", f"$actual.{side}"]} for side in _SIDES]
    stages: list[Document] = [
        {"$match": {} if ids is None else {"_id": {"$in": list(ids)}}},
        {"$project": {"companyId": 1, "customerId": 1, "unread": 1, "isUnread": 1}},
        {"$lookup": {"from": delivered.name, "let": variables, "pipeline": unread, "as": "unreadMessages"}},
        {"$set": {"actual": counts}},
        {"$match": {"$expr": {"$or": [*differences, {"$ne": ["$isUnread", {"$gt": ["$actual.company", 0]}]}]}}},
        {"$project": {"actual": 1}},
    ]
    cursor = conversations.across_companies(services).aggregate(stages, session=session)
    wrong: list[Any] = await cursor.to_list(None)
    return wrong


async def find_unread_counts(services: Services, count_read: CountRead) -> AsyncIterator[Finding]:
    """Find conversations that store other numbers of unread messages than there are."""
    occurrences = Occurrences()
    suspects = [wrong["_id"] for wrong in await _find_wrong_counts(services)]
    for start in range(0, len(suspects), _BATCH):
        async with reading_snapshot(services) as session:
            for wrong in await _find_wrong_counts(services, suspects[start : start + _BATCH], session):
                occurrences.add(wrong["_id"])
                count_read(1)
    yield occurrences.finding("Conversations with a wrong number of unread messages", "Run doctor --repair")


async def correct_counts(services: Services) -> None:
    """Count the unread messages of these conversations again."""

    async def count_again(ctx: Context) -> None:
        for each in await _find_wrong_counts(ctx.services, ids, ctx.session):
            change = {"$set": {"unread": each["actual"], "isUnread": each["actual"]["company"] > 0}}
            await conversations.across_companies(services).update_one({"_id": each["_id"]}, change, session=ctx.session)

    wrong = [each["_id"] for each in await _find_wrong_counts(services)]
    for start in range(0, len(wrong), _BATCH):
        ids = wrong[start : start + _BATCH]
        await in_transaction(Context(services), count_again)


CHECKS = (Check("unread-messages", "The numbers of unread messages are right", find_unread_counts, correct_counts),)
