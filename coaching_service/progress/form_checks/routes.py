"""Media of sets, and comments on them, over REST."""

from __future__ import annotations

from coaching_service.core.auth import CUSTOMERS, MESSAGES_SCOPES, coach, customer
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import Conflict, Forbidden, NotFound
from coaching_service.core.field_schemas import input_of
from coaching_service.core.http.routes import MultipartBody, Routes, list_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import CursorPage, cursor_page_of
from coaching_service.core.validation import patch_of
from coaching_service.progress.form_checks import models, service
from coaching_service.training.set_media import CONTENT_TYPES

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

_NEW_MEDIA = MultipartBody("file", CONTENT_TYPES, models.NewMedia, size_limit="attachment", file_required=True)
_NEW_COMMENT = {
    "text": "Keep your chest up here.",
    "at": 4.2,
    "marks": [{"kind": "line", "points": [[0.41, 0.22], [0.47, 0.71]]}],
}
_NEW_OWN_COMMENT = {"text": "This one felt unsteady.", "at": 7}
_COMMENT_CHANGE = patch_of(input_of(models.NewMediaComment), name="MediaCommentChange")
_CHANGE = {"text": "Keep your chest up here, and breathe."}


@routes.get("", access=coach(CUSTOMERS.VIEW), returns=list_of(models.MEDIA))
async def list_item_media(
    ctx: Context, customer_id: ObjectId, wblock_id: ObjectId, witem_id: ObjectId
) -> list[models.SetMedia]:
    """List the videos and pictures of an item, oldest first."""
    return await service.list_of_item(ctx, customer_id, wblock_id, witem_id)


@routes.post(
    "",
    access=coach(CUSTOMERS.EDIT),
    multipart=_NEW_MEDIA,
    returns=models.MEDIA,
    errors=(NotFound, Conflict),
    example={"index": "2"},
)
async def upload_item_media(
    ctx: Context,
    customer_id: ObjectId,
    wblock_id: ObjectId,
    witem_id: ObjectId,
    body: models.NewMedia,
    file: StoredFile | None,
) -> models.SetMedia:
    """Add a video or picture to an item of a client's workout.

    A picture, or an MP4, QuickTime or WebM video; an item has at most 20. Metadata, such as the location, is removed.
    The client is notified as about a message.
    """
    return await service.add(ctx, customer_id, wblock_id, witem_id, body, file)


@routes.delete("/{mediaId}", access=coach(CUSTOMERS.EDIT))
async def delete_item_media(
    ctx: Context, customer_id: ObjectId, wblock_id: ObjectId, witem_id: ObjectId, media_id: ObjectId
) -> None:
    """Delete a video or picture with its comments.

    Also one of an item that was removed.
    """
    await service.delete(ctx, customer_id, wblock_id, witem_id, media_id)


@inbox_routes.get("", access=coach(CUSTOMERS.VIEW), returns=cursor_page_of(models.RECEIVED))
async def list_received_media(ctx: Context, query: models.ReceivedQuery) -> CursorPage[models.ReceivedMedia]:
    """List the videos and pictures that clients have sent, newest first.

    Those of clients whom the caller may not see are left out.
    """
    return await service.list_received(
        ctx,
        limit=query["limit"],
        after=query["after"],
        customer_id=query.get("customerId"),
        reviewed=query.get("reviewed"),
    )


@inbox_routes.get("/{mediaId}", access=coach(CUSTOMERS.VIEW), returns=models.RECEIVED, errors=(NotFound,))
async def get_media(ctx: Context, media_id: ObjectId) -> models.ReceivedMedia:
    """Read a video or picture of a client, of whichever side it is."""
    return await service.get(ctx, media_id)


@inbox_routes.put(
    "/{mediaId}/reviewed",
    access=coach(CUSTOMERS.EDIT),
    returns=models.RECEIVED,
    errors=(NotFound,),
    example={"reviewed": True},
)
async def set_media_reviewed(ctx: Context, media_id: ObjectId, body: models.MediaReview) -> models.ReceivedMedia:
    """Mark a video or picture as reviewed, or remove the mark.

    Repeating is harmless.
    """
    return await service.set_reviewed(ctx, media_id, reviewed=body["reviewed"])


@inbox_routes.post(
    "/{mediaId}/comments", access=coach(CUSTOMERS.EDIT), errors=(NotFound, Conflict), example=_NEW_COMMENT
)
async def create_media_comment(ctx: Context, media_id: ObjectId, body: models.NewMediaComment) -> models.MediaComment:
    """Comment on a video or picture of a client, at a time of a video, with marks on it.

    The client is notified as about a message. A video or picture has at most 100 comments.
    """
    return await service.add_comment(ctx, media_id, body)


@inbox_routes.patch(
    "/{mediaId}/comments/{commentId}",
    access=coach(CUSTOMERS.EDIT),
    body=_COMMENT_CHANGE,
    errors=(NotFound,),
    example=_CHANGE,
)
async def update_media_comment(
    ctx: Context, media_id: ObjectId, comment_id: ObjectId, body: models.CommentChange
) -> models.MediaComment:
    """Change a comment on a video or picture.

    Only its author may.
    """
    return await service.update_comment(ctx, media_id, comment_id, body)


@inbox_routes.delete("/{mediaId}/comments/{commentId}", access=coach(CUSTOMERS.EDIT), errors=(NotFound,))
async def delete_media_comment(ctx: Context, media_id: ObjectId, comment_id: ObjectId) -> None:
    """Delete a comment on a video or picture.

    Only its author may.
    """
    await service.delete_comment(ctx, media_id, comment_id)


@own_routes.get(_ITEM, access=customer(), returns=list_of(models.MEDIA))
async def list_own_item_media(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId) -> list[models.SetMedia]:
    """List the videos and pictures of an item of my workout, oldest first."""
    return await service.list_of_item(ctx, ctx.caller.id, wblock_id, witem_id)


@own_routes.post(
    _ITEM,
    access=customer(),
    multipart=_NEW_MEDIA,
    returns=models.MEDIA,
    errors=(Forbidden, NotFound, Conflict),
    example={"index": "2"},
)
async def upload_own_item_media(
    ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, body: models.NewMedia, file: StoredFile | None
) -> models.SetMedia:
    """Add a video or picture to an item of my workout, for my coaches to check.

    A picture, or an MP4, QuickTime or WebM video; an item has at most 20. Metadata, such as the location, is removed.
    Not in an impersonation session.
    """
    return await service.add(ctx, ctx.caller.id, wblock_id, witem_id, body, file)


@own_routes.delete(f"{_ITEM}/{{mediaId}}", access=customer(), errors=(Forbidden,))
async def delete_own_item_media(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, media_id: ObjectId) -> None:
    """Delete a video or picture that I have sent, with its comments."""
    await service.delete(ctx, ctx.caller.id, wblock_id, witem_id, media_id)


@own_routes.post(
    "/media/{mediaId}/comments",
    access=customer(),
    errors=(Forbidden, NotFound, Conflict),
    example=_NEW_OWN_COMMENT,
)
async def create_own_media_comment(
    ctx: Context, media_id: ObjectId, body: models.NewMediaComment
) -> models.MediaComment:
    """Comment on a video or picture of my workouts."""
    return await service.add_comment(ctx, media_id, body)


@own_routes.patch(
    "/media/{mediaId}/comments/{commentId}",
    access=customer(),
    body=_COMMENT_CHANGE,
    errors=(Forbidden, NotFound),
    example=_CHANGE,
)
async def update_own_media_comment(
    ctx: Context, media_id: ObjectId, comment_id: ObjectId, body: models.CommentChange
) -> models.MediaComment:
    """Change a comment of mine."""
    return await service.update_comment(ctx, media_id, comment_id, body)


@own_routes.delete("/media/{mediaId}/comments/{commentId}", access=customer(), errors=(Forbidden, NotFound))
async def delete_own_media_comment(ctx: Context, media_id: ObjectId, comment_id: ObjectId) -> None:
    """Delete a comment of mine."""
    await service.delete_comment(ctx, media_id, comment_id)
