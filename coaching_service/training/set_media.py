"""Media of sets: videos and pictures of items of a client's workouts, with comments on them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from coaching_service.core.database import declared
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, Filter
from coaching_service.core.database.recording import Actor
from coaching_service.core.errors import require_found
from coaching_service.core.fields import Description, Private
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import IMAGE_TYPES, VIDEO_TYPES
from coaching_service.core.validation import Integer, ListOf, Number, Text
from coaching_service.library.forms import QUESTION_LENGTH

MediaKind = Literal["video", "picture"]
SeenBy = Literal["client", "company"]
MarkKind = Literal["line", "arrow", "circle", "angle"]
CONTENT_TYPES = (*IMAGE_TYPES, *VIDEO_TYPES)
MAX_COMMENT_LENGTH = 5_000  # characters
LONGEST_VIDEO = 86_400  # seconds
# A point of a mark: shares of the width and height of what is shown.
POINTS = ListOf(ListOf(Number(minimum=0, maximum=1), minimum=2, maximum=2), minimum=2, maximum=3)


class MediaSet(TypedDict):
    """The set that a file shows; null: of the item as a whole."""

    exerciseId: ObjectId | None
    round: Annotated[int | None, Integer(minimum=1, maximum=1_000)]
    index: Annotated[int | None, Integer(minimum=1, maximum=1_000)]


class PosterFile(TypedDict):
    """A picture of a video, and its small version."""

    fileId: ObjectId
    thumbnailId: ObjectId | None


class MediaFile(PosterFile):
    """A stored video or picture, and the small version of a picture; `size` is in bytes."""

    kind: MediaKind
    contentType: str
    size: int


class MediaMark(TypedDict):
    """A mark on the picture, or on the video at the time of its comment."""

    kind: Annotated[MarkKind, Description("Its shape.")]
    points: Annotated[
        list[list[float]],
        POINTS,
        Description("Shares of width and height: two points, or three of an angle, the second being its vertex."),
    ]


class StoredComment(TypedDict):
    """A comment on a file; `at` is a time of a video in seconds."""

    _id: ObjectId
    author: Actor
    text: Annotated[str, Description("Plain text.")]
    at: Annotated[float | None, Description("The time of the video in seconds; null for the whole of it.")]
    marks: Annotated[list[MediaMark], Description("What is drawn on it.")]
    createdAt: datetime
    editedAt: Annotated[datetime | None, Description("When it was last changed; null for never.")]


class StoredMedia(MediaSet, declared.Stored):
    """A video or picture of an item.

    `wblockId` is the workout that the item was in when it was added. `questionId` is the question of type `photo` that
    it answers, `question` its text at the time; both are absent for others. `unseenBy` is the side that has not seen
    what the other one added last, since `unseenAt`; both are absent once it has.
    """

    customerId: ObjectId
    wblockId: ObjectId
    witemId: ObjectId
    questionId: NotRequired[ObjectId]
    question: NotRequired[Annotated[str, Text(max_length=QUESTION_LENGTH)]]
    author: Actor
    name: Annotated[str, Text(max_length=200)]
    file: MediaFile
    poster: PosterFile | None
    reviewedAt: datetime | None
    reviewedBy: ObjectId | None
    comments: list[StoredComment]
    unseenBy: NotRequired[Annotated[SeenBy, Private]]
    unseenAt: NotRequired[Annotated[datetime, Private]]


ORDER = ("-createdAt", "-_id")


def _event(action: declared.Action, known: Mapping[str, Any], _: Collection[str]) -> declared.EventData | None:
    data = {"mediaId": known["_id"], "wblockId": known["wblockId"], "witemId": known["witemId"]}
    return {"type": "media.added", "data": data} if action == "created" else None


media = Documents[StoredMedia](
    "setMedia",
    (
        declared.Index(("customerId", "witemId", "createdAt")),
        declared.Index(("author.type", *ORDER, "customerId")),
        declared.Index(("author.type", "reviewedAt", *ORDER, "customerId")),
        declared.Index(("customerId", "unseenBy", "unseenAt"), partial_filter=(("unseenBy", {"$exists": True}),)),
    ),
    private=("unseenBy", "unseenAt"),
    client_field="customerId",
    history=declared.History(
        "media",
        _event,
        ("wblockId", "witemId"),
        undo="never",
        contact=lambda stored: [each["text"] for each in stored["comments"]],
    ),
    transfer=declared.Portable(
        StoredMedia,
        declared.RECORDS,
        checks={
            "comments.text": Text(max_length=MAX_COMMENT_LENGTH),
            "comments.at": Number(minimum=0, maximum=LONGEST_VIDEO),
            "comments.marks.points": Number(minimum=0, maximum=1),
        },
        references={"customerId": "customers", "exerciseId": "exercises"},
        files=declared.FileRule(CONTENT_TYPES, "attachment"),
    ),
)
_BY_ITEM = media.index_name("customerId", "witemId", "createdAt")
_BY_SENDER = media.index_name("author.type", *ORDER, "customerId")
_BY_REVIEW = media.index_name("author.type", "reviewedAt", *ORDER, "customerId")
_BY_UNSEEN = media.index_name("customerId", "unseenBy", "unseenAt")


async def find(ctx: Context, media_id: ObjectId) -> StoredMedia | None:
    """Return a file of the company, if there is one."""
    return await media.find_one(ctx, {"_id": media_id})


async def find_of_items(
    ctx: Context, customer_ids: Collection[ObjectId], item_ids: Collection[ObjectId]
) -> list[StoredMedia]:
    """Return the files of some items of clients, oldest first."""
    where = {"customerId": {"$in": list(customer_ids)}, "witemId": {"$in": list(item_ids)}}
    return await media.find(ctx, where, sort=("createdAt", "_id"), including=("unseenBy",), hint=_BY_ITEM)


async def find_sent(
    ctx: Context,
    customer_ids: Collection[ObjectId] | None,
    part: Filter,
    *,
    reviewed: bool | None,
    limit: int,
) -> list[StoredMedia]:
    """Return what some clients (None: all) have sent, newest first: `reviewed` or not (None: both), and in `part`."""
    where: Filter = {"author.type": "client", **part}
    if reviewed is not None:
        where["reviewedAt"] = {"$ne": None} if reviewed else None
    if customer_ids is not None:
        where["customerId"] = {"$in": list(customer_ids)}
    hint = _BY_REVIEW if reviewed is False else _BY_SENDER
    return await media.find(ctx, where, sort=ORDER, limit=limit, hint=hint)


async def find_unseen(ctx: Context, customer_id: ObjectId, side: SeenBy) -> list[StoredMedia]:
    """Return the files of a client with something that a side has not seen, longest unseen first."""
    where = {"customerId": customer_id, "unseenBy": side}
    return await media.find(ctx, where, sort=("unseenAt",), including=("unseenAt",), hint=_BY_UNSEEN)


async def insert(ctx: Context, new: Mapping[str, object]) -> StoredMedia:
    """Add a file, and return it."""
    return await media.insert(ctx, new)


async def rewrite(
    ctx: Context,
    stored: StoredMedia,
    change: Callable[[StoredMedia], Mapping[str, object]],
    version: int | None = None,
) -> StoredMedia:
    """Set the fields that `change` returns for a file, and return it.

    Raises NotFound if it is gone, Conflict if it has changed since `version`.
    """
    where = {"customerId": stored["customerId"], "_id": stored["_id"]}
    return require_found(await media.rewrite(ctx, where, change, version=version), "media")


async def mark_seen(ctx: Context, customer_id: ObjectId, media_ids: Sequence[ObjectId], side: SeenBy) -> None:
    """Note that a side has seen files of a client."""
    where = {"customerId": customer_id, "_id": {"$in": list(media_ids)}, "unseenBy": side}
    await media.set_derived(ctx, where, {"$unset": {"unseenBy": "", "unseenAt": ""}})


async def delete(ctx: Context, stored: StoredMedia) -> None:
    """Delete a file with its comments."""
    await media.delete(ctx, {"customerId": stored["customerId"], "_id": stored["_id"]})


async def count_by_item(
    ctx: Context, customer_id: ObjectId | None, item_ids: Sequence[ObjectId]
) -> dict[ObjectId, int]:
    """Return how many files some items of a client have; items without any, and of no client, are left out."""
    if customer_id is None or not item_ids:
        return {}
    where = {"customerId": customer_id, "witemId": {"$in": list(item_ids)}}
    group = {"$group": {"_id": "$witemId", "count": {"$sum": 1}}}
    counts = await media.aggregate(ctx, where, group, hint=_BY_ITEM)
    return {each["_id"]: each["count"] for each in counts}
