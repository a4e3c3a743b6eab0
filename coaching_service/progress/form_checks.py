"""Form checks: videos and pictures of sets, which the client and the coaches add, look at and comment on.

What is sent outlives its item: a deletion of a workout can be undone, a deletion of a file cannot. A file of a removed
item stays in the list of form checks, until it or its client is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, NotRequired, TypeAlias, TypedDict, cast

from marshmallow import fields

from coaching_service.core import validation
from coaching_service.core.auth import CUSTOMERS, MESSAGES_SCOPES, coach, customer
from coaching_service.core.database import files
from coaching_service.core.database.context import Context, gather_reads, transactional
from coaching_service.core.database.declared import Returned
from coaching_service.core.database.documents import now
from coaching_service.core.database.files import StoredFile
from coaching_service.core.database.recording import Actor, actor_of
from coaching_service.core.errors import Conflict, Forbidden, NotFound, invalid_field, require_by_id, require_found
from coaching_service.core.fields import Change, Default, Description, input_of, output_of, take
from coaching_service.core.http.responses import Download
from coaching_service.core.http.routes import MultipartBody, Routes, list_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.mail import subject_with
from coaching_service.core.list_selection import CursorPage, ListPart, PartQuery, cursor_page_of
from coaching_service.core.media import VIDEO_TYPES
from coaching_service.core.query import FormInteger
from coaching_service.library.exercises import service as exercises
from coaching_service.people import files as stored_files
from coaching_service.people import notifications
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import NamedCustomer
from coaching_service.people.file_links import file_url
from coaching_service.progress import form_responses
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.conversation.messages import MessageAuthor, MessageField, Side
from coaching_service.training import set_media, visibility
from coaching_service.training.set_media import CONTENT_TYPES, StoredComment, StoredMedia
from coaching_service.training.workouts.blocks.service import ClientCalendar, block_not_found
from coaching_service.training.workouts.items import service as items
from coaching_service.training.workouts.items.models import ExerciseItem, WorkItem
from coaching_service.training.workouts.reports import blocks as block_reports

MAX_MARKS = 20


class NewMedia(TypedDict):
    """The set that a file shows; without these fields it shows the item as a whole."""

    exerciseId: NotRequired[Annotated[ObjectId, Description("An exercise of the item, or the one done instead.")]]
    round: NotRequired[Annotated[int, FormInteger(maximum=1_000), Description("In a circuit: the round, from 1.")]]
    index: NotRequired[Annotated[int, FormInteger(maximum=1_000), Description("The number of the set, from 1.")]]
    questionId: NotRequired[Annotated[ObjectId, Description("The question of type `photo` that a picture answers.")]]


class NewMediaComment(TypedDict):
    """A comment on a video or picture, with what is drawn on it."""

    text: Annotated[str, MessageField(), Description("Plain text.")]
    at: Annotated[
        float | None,
        validation.Number(minimum=0, maximum=set_media.LONGEST_VIDEO),
        Description("The time of the video in seconds; null for the whole video, and always on a picture."),
    ]
    marks: Annotated[
        list[set_media.MediaMark],
        validation.ListOf(fields.Nested(input_of(set_media.MediaMark, name="MediaMarkInput")), maximum=MAX_MARKS),
        fields.List(fields.Nested(output_of(set_media.MediaMark))),
        Default(list),
        Description(
            "What is drawn: two points of a line, an arrow (the second is its head) and a circle (its centre, and a "
            "point on it), three of an angle (the second is its vertex); at most 20. Default: none."
        ),
    ]


CommentChange: TypeAlias = Change[NewMediaComment]


class MediaComment(set_media.StoredComment):
    """A comment on a video or picture."""

    author: Annotated[Actor, fields.Nested(MessageAuthor)]
    version: Annotated[int, Description("The version of the video or picture.")]


class SetMedia(set_media.MediaSet, Returned):
    """A video or picture of an item."""

    questionId: Annotated[ObjectId | None, Description("The question of a form that it answers; null for others.")]
    question: Annotated[str | None, Description("The text of this question at the time; null without one.")]
    kind: Annotated[set_media.MediaKind, Description("What kind of file it is.")]
    url: Annotated[str, fields.Url(), Description("A signed link to the file, valid for two hours.")]
    posterUrl: Annotated[
        str | None,
        fields.Url(),
        Description("A signed link to a small picture of it; null for a video that was sent without one."),
    ]
    name: Annotated[str, Description("The name of the file.")]
    contentType: str
    size: Annotated[int, Description("Its size in bytes.")]
    author: Annotated[Actor, fields.Nested(MessageAuthor)]
    reviewedAt: Annotated[datetime | None, Description("When a coach reviewed it; null until then.")]
    reviewedBy: Annotated[ObjectId | None, Description("The coach who reviewed it.")]
    comments: Annotated[list[MediaComment], Description("The comments on it, oldest first.")]


class ShownWorkout(TypedDict):
    """The workout that the item of a video or picture is in."""

    name: str
    date: Annotated[str, validation.Date()]
    item: Annotated[str, Description("The exercise, or another name of the item.")]


class ReceivedMedia(SetMedia):
    """A video or picture of an item with its client."""

    customer: Annotated[NamedCustomer, Description("The client.")]
    wblockId: Annotated[ObjectId, Description("The workout that the item is in, or was in before it was removed.")]
    witemId: Annotated[ObjectId, Description("The item.")]
    workout: Annotated[ShownWorkout | None, Description("The workout and item; null if the item was removed.")]


MEDIA = output_of(SetMedia, first=("_id", "kind", "url", "posterUrl", "name", "size", "createdAt"))
RECEIVED = output_of(ReceivedMedia, MEDIA)


class ReceivedQuery(PartQuery):
    """Filters of what clients have sent; they combine with AND."""

    reviewed: NotRequired[Annotated[bool, Description("`true`: only reviewed ones; `false`: only the others.")]]
    customerId: NotRequired[Annotated[ObjectId, Description("Only of this client.")]]


class MediaReview(TypedDict):
    """Whether a video or picture is reviewed."""

    reviewed: Annotated[bool, Description("`false` takes the mark away.")]


_IDS = {"mediaId": "The identifier of the video or picture.", "commentId": "The identifier of the comment."}
_ITEM = "/wblocks/{wblockId}/witems/{witemId}/media"
routes = Routes(
    f"/coach/customers/{{customerId}}{_ITEM}",
    tag="Form checks",
    locks="customer",
    path_descriptions=_IDS,
    scope_area=MESSAGES_SCOPES,
)
inbox_routes = Routes("/coach/media", tag="Form checks", path_descriptions=_IDS, scope_area=MESSAGES_SCOPES)
own_routes = Routes("/customer", tag="The client's own", path_descriptions=_IDS)

_NEW_MEDIA = MultipartBody("file", CONTENT_TYPES, NewMedia, size_limit="attachment", file_required=True)
_NEW_COMMENT = {
    "text": "Keep your chest up here.",
    "at": 4.2,
    "marks": [{"kind": "line", "points": [[0.41, 0.22], [0.47, 0.71]]}],
}
_NEW_OWN_COMMENT = {"text": "This one felt unsteady.", "at": 7}
_COMMENT_CHANGE = validation.patch_of(input_of(NewMediaComment), name="MediaCommentChange")
_CHANGE = {"text": "Keep your chest up here, and breathe."}

MAX_OF_ITEM, MAX_COMMENTS = 20, 100
_POINTS: Mapping[set_media.MarkKind, int] = {"line": 2, "arrow": 2, "circle": 2, "angle": 3}

# --- of one item -----------------------------------------------------------------------------------------------------


@routes.get("", access=coach(CUSTOMERS.VIEW), returns=list_of(MEDIA), operation_id="listItemMedia")
async def list_of_item(ctx: Context, customer_id: ObjectId, wblock_id: ObjectId, witem_id: ObjectId) -> list[SetMedia]:
    """List the videos and pictures of an item, oldest first."""
    await _get_item(ctx, customer_id, wblock_id, witem_id)
    return [_present(ctx, each) for each in await set_media.find_of_items(ctx, [customer_id], [witem_id])]


async def show_of_items(
    ctx: Context, customer_id: ObjectId, item_ids: Sequence[ObjectId], *, seen: bool = True
) -> dict[ObjectId, list[SetMedia]]:
    """Return the videos and pictures of items of a client whose access has been checked, by item, oldest first.

    With `seen` the caller's side has seen them now.
    """
    stored = await set_media.find_of_items(ctx, [customer_id], item_ids)
    unseen = [each["_id"] for each in stored if each.get("unseenBy") == _own_side(ctx)]
    if seen and unseen:
        await mark_seen(ctx, customer_id, unseen)
    shown: dict[ObjectId, list[SetMedia]] = {}
    for each in stored:
        shown.setdefault(each["witemId"], []).append(_present(ctx, each))
    return shown


async def show_of_responses(ctx: Context, response_ids: Sequence[ObjectId]) -> dict[ObjectId, list[SetMedia]]:
    """Return the pictures that answer questions, by response to a form, whose access has been checked."""
    found = await form_responses.find_items(ctx, response_ids)
    customer_ids, item_ids = ({each[at] for each in found.values()} for at in (0, 1))
    sent = await set_media.find_of_items(ctx, customer_ids, item_ids) if found else []
    return {
        response_id: [_present(ctx, each) for each in sent if each["witemId"] == item_id and "questionId" in each]
        for response_id, (_, item_id) in found.items()
    }


@routes.post(
    "",
    access=coach(CUSTOMERS.EDIT),
    multipart=_NEW_MEDIA,
    returns=MEDIA,
    errors=(NotFound, Conflict),
    example={"index": "2"},
    operation_id="uploadItemMedia",
)
@transactional
async def add(
    ctx: Context,
    customer_id: ObjectId,
    wblock_id: ObjectId,
    witem_id: ObjectId,
    body: NewMedia,
    file: StoredFile | None,
    poster: StoredFile | None = None,
) -> SetMedia:
    """Add a video or picture to an item of a client's workout.

    A picture, or an MP4, QuickTime or WebM video; an item has at most 20. Metadata, such as the location, is removed.
    The client is notified as about a message.
    """
    _require_own_words(ctx)
    item = await _get_item(ctx, customer_id, wblock_id, witem_id)
    if file is None:
        raise invalid_field("file", "is required", code="REQUIRED")
    exercise_id = body.get("exerciseId")
    if exercise_id is not None and exercise_id not in item["exerciseIds"]:
        raise NotFound("exercise")
    await customers.record_activity(ctx, customer_id)
    if (await set_media.count_by_item(ctx, customer_id, [witem_id])).get(witem_id, 0) >= MAX_OF_ITEM:
        message = f"An item has at most {MAX_OF_ITEM} videos and pictures: delete one first"
        raise Conflict(message, code="TOO_MANY_MEDIA")
    is_video, answered = file.content_type in VIDEO_TYPES, {}
    if poster is not None and (not is_video or poster.content_type in VIDEO_TYPES):
        raise invalid_field("poster", "must be a picture of a video", code="NOT_A_PICTURE")
    if (question_id := body.get("questionId")) is not None:
        questions = item["form"]["questions"] if item["type"] == "FORM" else []
        question = require_by_id([each for each in questions if each["type"] == "photo"], question_id, "question")
        if is_video:
            raise invalid_field("file", "must be a picture", code="NOT_A_PICTURE")
        answered = {"questionId": question_id, "question": question["label"]}
    place = {"customerId": customer_id, "wblockId": wblock_id, "witemId": witem_id, **answered}
    of_set: set_media.MediaSet = {"exerciseId": exercise_id, "round": body.get("round"), "index": body.get("index")}
    unseen = {"unseenBy": _other_side(ctx), "unseenAt": now()}
    added = await set_media.insert(ctx, {**_new_media(actor_of(ctx), of_set, file, poster), **place, **unseen})
    await _notify(ctx, added)
    return _present(ctx, added)


def _new_media(
    author: Actor, shown: set_media.MediaSet, file: StoredFile, poster: StoredFile | None
) -> dict[str, object]:
    kind: set_media.MediaKind = "video" if file.content_type in VIDEO_TYPES else "picture"
    stored = {"kind": kind, "contentType": file.content_type, "size": file.size}
    return {
        "_id": ObjectId(),
        **shown,
        "author": author,
        "name": file.name or kind,
        "file": {**stored, "fileId": file.id, "thumbnailId": file.thumbnail_id},
        "poster": None if poster is None else {"fileId": poster.id, "thumbnailId": poster.thumbnail_id},
        "reviewedAt": None,
        "reviewedBy": None,
        "comments": [],
    }


@transactional
async def create_sample(
    ctx: Context, customer_id: ObjectId, block_id: ObjectId, item: ExerciseItem, file: StoredFile, poster: StoredFile
) -> None:
    """Add a video of the second set of an exercise that a client has sent, for sample data: without a notification."""
    reference = await customers.get_visible_reference(ctx, customer_id)
    author: Actor = {"type": "client", "_id": customer_id, "name": reference["name"]}
    new = _new_media(author, {"exerciseId": item["exerciseId"], "round": None, "index": 2}, file, poster)
    await set_media.insert(ctx, {**new, "customerId": customer_id, "wblockId": block_id, "witemId": item["_id"]})


@routes.delete("/{mediaId}", access=coach(CUSTOMERS.EDIT), operation_id="deleteItemMedia")
@transactional
async def delete(
    ctx: Context, customer_id: ObjectId, wblock_id: ObjectId, witem_id: ObjectId, media_id: ObjectId
) -> None:
    """Delete a video or picture with its comments.

    Also one of an item that was removed.
    """
    _require_own_words(ctx)
    await customers.get_visible(ctx, customer_id)
    stored = require_found(await set_media.find(ctx, media_id), "media")
    if (stored["customerId"], stored["witemId"]) != (customer_id, witem_id):
        raise NotFound("media")
    is_client = not ctx.caller.is_coach
    if stored["wblockId"] != wblock_id or (
        is_client and await block_reports.find_items(ctx, [customer_id], [witem_id])
    ):
        await _get_item(ctx, customer_id, wblock_id, witem_id)
    if is_client:
        _require_author(ctx, stored["author"]["_id"])
    await customers.record_activity(ctx, customer_id)
    await set_media.delete(ctx, stored)
    stored_parts = [part for part in (stored["file"], stored["poster"]) if part is not None]
    await files.discard(ctx, [each for part in stored_parts for each in (part["fileId"], part["thumbnailId"])])


async def read_file(ctx: Context, media_id: ObjectId, *, small: bool) -> Download:
    """Return a video or picture, or a small picture of it if there is one. Raises what `get` raises."""
    stored = await _get(ctx, media_id)
    preview = _preview_of(stored) if small else None
    return await stored_files.open_file(ctx, preview or stored["file"]["fileId"])


async def _get_item(ctx: Context, customer_id: ObjectId, block_id: ObjectId, item_id: ObjectId) -> WorkItem:
    calendar = ClientCalendar(customer_id)
    _, block = await gather_reads(ctx, calendar.require_access(ctx), calendar.find_block(ctx, block_id))
    if block is None or not await visibility.is_shown(ctx, customer_id, block["date"]):
        raise block_not_found()
    found: WorkItem = block["items"][items.find_index(block["items"], item_id)]
    return found


# --- of all clients --------------------------------------------------------------------------------------------------


@inbox_routes.get("", access=coach(CUSTOMERS.VIEW), returns=cursor_page_of(RECEIVED), operation_id="listReceivedMedia")
async def list_received(ctx: Context, query: ReceivedQuery) -> CursorPage[ReceivedMedia]:
    """List the videos and pictures that clients have sent, newest first.

    Those of clients whom the caller may not see are left out.
    """
    customer_id, reviewed = query.get("customerId"), query.get("reviewed")
    filters = {"reviewed": reviewed, "customerId": customer_id}
    part = ListPart(ctx, "media", filters, set_media.ORDER, size=query["limit"], after=query["after"])
    customer_ids = await customers.select_ids_in_scope(ctx, customer_id)
    stored = await set_media.find_sent(ctx, customer_ids, part.condition(), reviewed=reviewed, limit=part.limit)
    listed = part.by_cursor(stored, lambda entry: entry)
    return {**listed, "docs": await _present_received(ctx, listed["docs"])}


@inbox_routes.get(
    "/{mediaId}", access=coach(CUSTOMERS.VIEW), returns=RECEIVED, errors=(NotFound,), operation_id="getMedia"
)
async def get(ctx: Context, media_id: ObjectId) -> ReceivedMedia:
    """Read a video or picture of a client, of whichever side it is."""
    received = await _present_received(ctx, [await _get(ctx, media_id)])
    return require_by_id(received, media_id, "media")


async def _get(ctx: Context, media_id: ObjectId) -> StoredMedia:
    """Return a file of any client in the coach's scope, or of the client who calls.

    Raises NotFound, also for a client if its day is hidden or its item was removed; Forbidden.
    """
    stored = await set_media.find(ctx, media_id)
    if stored is None or (not ctx.caller.is_coach and stored["customerId"] != ctx.caller.id):
        raise NotFound("media")
    await customers.get_visible(ctx, stored["customerId"])
    if not ctx.caller.is_coach:
        found = await block_reports.find_items(ctx, [stored["customerId"]], [stored["witemId"]])
        item = require_found(found.get(stored["witemId"]), "media")
        if not await visibility.is_shown(ctx, stored["customerId"], item["date"]):
            raise NotFound("media")
    return stored


@inbox_routes.put(
    "/{mediaId}/reviewed",
    access=coach(CUSTOMERS.EDIT),
    returns=RECEIVED,
    errors=(NotFound,),
    example={"reviewed": True},
    operation_id="setMediaReviewed",
)
@transactional
async def set_reviewed(ctx: Context, media_id: ObjectId, body: MediaReview) -> ReceivedMedia:
    """Mark a video or picture as reviewed, or remove the mark.

    Repeating is harmless.
    """
    stored, reviewed = await _get(ctx, media_id), body["reviewed"]
    customer_id = stored["customerId"]
    if reviewed != (stored["reviewedAt"] is not None):
        await customers.record_activity(ctx, customer_id)
        review = {"reviewedAt": now() if reviewed else None, "reviewedBy": ctx.caller.id if reviewed else None}
        await set_media.rewrite(ctx, stored, lambda _: review)
    if reviewed:
        await mark_seen(ctx, customer_id, [media_id])
    return await get(ctx, media_id)


async def _present_received(ctx: Context, stored: Sequence[StoredMedia]) -> list[ReceivedMedia]:
    """Return what clients have sent with these clients, those that are being erased left out."""
    ids = list({each["customerId"] for each in stored})
    references, found = await gather_reads(
        ctx,
        customers.find_references(ctx, ids),
        block_reports.find_items(ctx, ids, {each["witemId"] for each in stored}),
    )
    known = [(each, found.get(each["witemId"])) for each in stored if each["customerId"] in references]
    shown = [each["exerciseId"] or (item["exerciseId"] if item else None) for each, item in known]
    names = await exercises.get_names(ctx, {each for each in shown if each is not None})
    received: list[ReceivedMedia] = []
    for (each, item), exercise_id in zip(known, shown, strict=True):
        workout: ShownWorkout | None = None
        if item is not None:
            title = names[exercise_id]["name"] if exercise_id in names else item["title"]
            workout = {"name": item["name"], "date": item["date"], "item": title or item["name"]}
        about = {"customer": references[each["customerId"]], "witemId": each["witemId"], "workout": workout}
        block_id = item["wblockId"] if item else each["wblockId"]
        received.append(cast("ReceivedMedia", {**_present(ctx, each), **about, "wblockId": block_id}))
    return received


def _present(ctx: Context, stored: StoredMedia) -> SetMedia:
    file, preview = stored["file"], _preview_of(stored)
    comments: list[MediaComment] = [{**comment, "version": stored["version"]} for comment in stored["comments"]]
    derived = {
        **{name: file[name] for name in ("kind", "contentType", "size")},
        **{name: stored.get(name) for name in ("questionId", "question")},
        "url": file_url(ctx, file["fileId"]),
        "posterUrl": file_url(ctx, preview),
        "comments": comments,
    }
    return take(SetMedia, {**stored, **derived})


def _preview_of(stored: StoredMedia) -> ObjectId | None:
    """Return the file of a small picture of a video or picture, if there is one; a small picture is its own."""
    shown = stored["file"] if stored["file"]["kind"] == "picture" else stored["poster"]
    return None if shown is None else shown["thumbnailId"] or shown["fileId"]


# --- comments --------------------------------------------------------------------------------------------------------


@inbox_routes.post(
    "/{mediaId}/comments",
    access=coach(CUSTOMERS.EDIT),
    errors=(NotFound, Conflict),
    example=_NEW_COMMENT,
    operation_id="createMediaComment",
)
@transactional
async def add_comment(ctx: Context, media_id: ObjectId, body: NewMediaComment) -> MediaComment:
    """Comment on a video or picture of a client, at a time of a video, with marks on it.

    The client is notified as about a message. A video or picture has at most 100 comments.
    """
    _require_own_words(ctx)
    stored = await _get(ctx, media_id)
    _require_valid(stored, body["at"], body["marks"])
    await customers.record_activity(ctx, stored["customerId"])
    comment: StoredComment = {
        "_id": ObjectId(),
        "author": actor_of(ctx),
        "text": body["text"],
        "at": body["at"],
        "marks": body["marks"],
        "createdAt": now(),
        "editedAt": None,
    }

    def change(current: StoredMedia) -> Mapping[str, object]:
        if len(current["comments"]) >= MAX_COMMENTS:
            message = f"A video or picture has at most {MAX_COMMENTS} comments"
            raise Conflict(message, code="TOO_MANY_COMMENTS")
        side = _other_side(ctx)
        since = current.get("unseenAt") if current.get("unseenBy") == side else None
        return {"comments": [*current["comments"], comment], "unseenBy": side, "unseenAt": since or now()}

    changed = await set_media.rewrite(ctx, stored, change)
    await _notify(ctx, changed)
    return {**comment, "version": changed["version"]}


@inbox_routes.patch(
    "/{mediaId}/comments/{commentId}",
    access=coach(CUSTOMERS.EDIT),
    body=_COMMENT_CHANGE,
    errors=(NotFound,),
    example=_CHANGE,
    operation_id="updateMediaComment",
)
@transactional
async def update_comment(ctx: Context, media_id: ObjectId, comment_id: ObjectId, body: CommentChange) -> MediaComment:
    """Change a comment on a video or picture.

    Only its author may.
    """
    stored, comment = await _get_own_comment(ctx, media_id, comment_id)
    known: Mapping[str, object] = comment
    fields = {name: value for name, value in body.items() if name != "version" and value != known[name]}
    changed = cast("StoredComment", {**comment, **fields, "editedAt": now()}) if fields else comment
    _require_valid(stored, changed["at"], changed["marks"])
    replaced = [changed if each["_id"] == comment_id else each for each in stored["comments"]]
    after = await _set_comments(ctx, stored, replaced if fields else None, body.get("version"))
    return {**changed, "version": after["version"]}


@inbox_routes.delete(
    "/{mediaId}/comments/{commentId}",
    access=coach(CUSTOMERS.EDIT),
    errors=(NotFound,),
    operation_id="deleteMediaComment",
)
@transactional
async def delete_comment(ctx: Context, media_id: ObjectId, comment_id: ObjectId) -> None:
    """Delete a comment on a video or picture.

    Only its author may.
    """
    stored, _ = await _get_own_comment(ctx, media_id, comment_id)
    await _set_comments(ctx, stored, [each for each in stored["comments"] if each["_id"] != comment_id])


async def _get_own_comment(ctx: Context, media_id: ObjectId, comment_id: ObjectId) -> tuple[StoredMedia, StoredComment]:
    _require_own_words(ctx)
    stored = await _get(ctx, media_id)
    comment = require_by_id(stored["comments"], comment_id, "comment")
    _require_author(ctx, comment["author"]["_id"])
    return stored, comment


async def _set_comments(
    ctx: Context, stored: StoredMedia, comments: Sequence[StoredComment] | None, version: int | None = None
) -> StoredMedia:
    """Replace the comments of a file, in the transaction that has read it; None leaves them as they are."""
    await customers.record_activity(ctx, stored["customerId"])
    fields = {} if comments is None else {"comments": list(comments)}
    return await set_media.rewrite(ctx, stored, lambda _: fields, version)


def _require_valid(stored: StoredMedia, at: float | None, marks: Sequence[set_media.MediaMark]) -> None:
    """Raise InvalidFields for a time on a picture, and marks with another number of points than their kind has."""
    if at is not None and stored["file"]["kind"] == "picture":
        raise invalid_field("at", "must be null on a picture", code="NOT_A_VIDEO")
    for number, mark in enumerate(marks):
        if len(mark["points"]) != (count := _POINTS[mark["kind"]]):
            message = f"must be {count} points for {mark['kind']}"
            raise invalid_field(f"marks.{number}.points", message, code="WRONG_NUMBER_OF_POINTS")


# --- rules -----------------------------------------------------------------------------------------------------------


def _require_own_words(ctx: Context) -> None:
    """Raise Forbidden in an impersonation session: what it sends would be taken for the client's."""
    if ctx.caller.impersonated_by is not None:
        raise Forbidden("An impersonation session cannot send or change videos and comments", code="IMPERSONATED")


def _require_author(ctx: Context, author_id: ObjectId | None) -> None:
    if author_id != ctx.caller.id:
        raise Forbidden("Only its author may change or delete it", code="NOT_THE_AUTHOR")


# --- what each side has not seen, and the notifications about it -----------------------------------------------------
# They are sent as those about unread messages are, and count in no number of unread messages.


@transactional
async def mark_seen(ctx: Context, customer_id: ObjectId, media_ids: Sequence[ObjectId]) -> None:
    """Note that the caller's side has seen files of a client, whose access has been checked, with their comments.

    An impersonation session changes nothing.
    """
    if ctx.caller.impersonated_by is None:
        await set_media.mark_seen(ctx, customer_id, media_ids, _own_side(ctx))


def _own_side(ctx: Context) -> Side:
    return "company" if ctx.caller.is_coach else "client"


def _other_side(ctx: Context) -> Side:
    return "client" if ctx.caller.is_coach else "company"


async def _notify(ctx: Context, changed: StoredMedia) -> None:
    """Make notifications due to the other side, which has not seen what was added."""
    subject: notifications.Subject = {"mediaId": changed["_id"]}
    await conversation.notify(ctx, "media", changed["customerId"], _other_side(ctx), subject)


async def write_message(
    ctx: Context, notification: notifications.Notification
) -> notifications.Message | datetime | None:
    """Return what to send about files and comments that are not seen, or about unread messages; None without any."""
    customer_id = notification["customerId"]
    if "mediaId" not in notification["subject"] or customer_id is None:
        return await conversation.write_message(ctx, notification)
    side: Side = "client" if notification["recipient"]["type"] == "client" else "company"
    unseen = await set_media.find_unseen(ctx, customer_id, side)
    found = await block_reports.find_items(ctx, [customer_id], {each["witemId"] for each in unseen})
    if side == "client":
        days = [each["date"] for each in found.values()]
        hidden = await visibility.find_hidden_days(ctx, customer_id, min(days, default=""), max(days, default=""))
        shown = {each for each, item in found.items() if item["date"] not in hidden}
        unseen = [each for each in unseen if each["witemId"] in shown]
    if not unseen:
        return None
    first = unseen[0]
    name = await conversation.find_sender(ctx, notification, first.get("unseenAt"))
    if not isinstance(name, str):
        return name
    if side == "client":
        return notifications.Message(
            subject=subject_with(name, "{} has checked your form", "Your coach has checked your form"),
            paragraphs=[f"{name} has sent a comment or a file about a set of yours."],
            button="See it in your workout",
            path=f"/train/workouts/{found[first['witemId']]['wblockId']}#item-{first['witemId']}",
            reason=f"You receive this mail because you train with {name} and have not seen it yet.",
            title="Form check",
            text="Your coach has answered in your workout",
        )
    return notifications.Message(
        subject="A form check from a client",
        paragraphs=[f"{name} has sent a video, a picture or a comment."],
        button="Look at it",
        path=f"/app/form-checks/{first['_id']}",
        reason=f"You receive this mail because you coach this client at {ctx.caller.company.name}.",
        title="Form check",
        text="A client has sent you a form check",
        details=f"{name} has sent you a form check",
    )


# --- Of clients over REST ---------------------------------------------------------------------------------------------


@own_routes.get(_ITEM, access=customer(), returns=list_of(MEDIA))
async def list_own_item_media(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId) -> list[SetMedia]:
    """List the videos and pictures of an item of my workout, oldest first."""
    return await list_of_item(ctx, ctx.caller.id, wblock_id, witem_id)


@own_routes.post(
    _ITEM,
    access=customer(),
    multipart=_NEW_MEDIA,
    returns=MEDIA,
    errors=(Forbidden, NotFound, Conflict),
    example={"index": "2"},
)
async def upload_own_item_media(
    ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, body: NewMedia, file: StoredFile | None
) -> SetMedia:
    """Add a video or picture to an item of my workout, for my coaches to check.

    A picture, or an MP4, QuickTime or WebM video; an item has at most 20. Metadata, such as the location, is removed.
    Not in an impersonation session.
    """
    return await add(ctx, ctx.caller.id, wblock_id, witem_id, body, file)


@own_routes.delete(f"{_ITEM}/{{mediaId}}", access=customer(), errors=(Forbidden,))
async def delete_own_item_media(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, media_id: ObjectId) -> None:
    """Delete a video or picture that I have sent, with its comments."""
    await delete(ctx, ctx.caller.id, wblock_id, witem_id, media_id)


@own_routes.post(
    "/media/{mediaId}/comments",
    access=customer(),
    errors=(Forbidden, NotFound, Conflict),
    example=_NEW_OWN_COMMENT,
)
async def create_own_media_comment(ctx: Context, media_id: ObjectId, body: NewMediaComment) -> MediaComment:
    """Comment on a video or picture of my workouts."""
    return await add_comment(ctx, media_id, body)


@own_routes.patch(
    "/media/{mediaId}/comments/{commentId}",
    access=customer(),
    body=_COMMENT_CHANGE,
    errors=(Forbidden, NotFound),
    example=_CHANGE,
)
async def update_own_media_comment(
    ctx: Context, media_id: ObjectId, comment_id: ObjectId, body: CommentChange
) -> MediaComment:
    """Change a comment of mine."""
    return await update_comment(ctx, media_id, comment_id, body)


@own_routes.delete("/media/{mediaId}/comments/{commentId}", access=customer(), errors=(Forbidden, NotFound))
async def delete_own_media_comment(ctx: Context, media_id: ObjectId, comment_id: ObjectId) -> None:
    """Delete a comment of mine."""
    await delete_comment(ctx, media_id, comment_id)
