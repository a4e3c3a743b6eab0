"""The videos and pictures that a client adds to the sets of a workout, and the comments on them."""

from __future__ import annotations

import re
from typing import Annotated, TypedDict

from coaching_service.core.auth import customer
from coaching_service.core.database.context import Context
from coaching_service.core.errors import InvalidFields, invalid_field
from coaching_service.core.fields import Default
from coaching_service.core.http.responses import Download
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Text
from coaching_service.progress import form_checks
from coaching_service.progress.conversation.messages import MessageText
from coaching_service.progress.form_checks import NewMedia
from coaching_service.training.set_media import CONTENT_TYPES
from coaching_service.web.forms import ReceivedFiles
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.customer_layout import form_path, item_path
from coaching_service.web.views.messages import FileQuery
from coaching_service.web.views.train.workout import ITEM, workout_page

pages = Pages("/train")

_MEDIA = f"{ITEM}/media"
_SET = re.compile(r"([0-9a-f]{24})-([0-9]{1,4})-([0-9]{1,4})")


class MediaForm(TypedDict):
    """Which set a file shows, as `exercise-round-index`; empty: the whole exercise; or the question that it answers."""

    questionId: ObjectId | None
    shown: Annotated[str, Text(max_length=40, allow_blank=True), Default("")]


# The picture of a video is made by the browser that sends it.
_MEDIA_FORM = MultipartBody("file", CONTENT_TYPES, MediaForm, size_limit="attachment", more_files=("poster",))


@pages.post(_MEDIA, access=customer(), form=_MEDIA_FORM, on=workout_page)
async def add_media(
    ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, form: MediaForm, files: ReceivedFiles
) -> Redirect:
    """Send a video or picture of a set to the coaches."""
    if "file" not in files.stored:
        message = files.rejected.get("file", "must be chosen")
        raise InvalidFields([{"field": "file", "code": "REQUIRED", "message": message}])
    if "poster" in files.rejected:
        raise invalid_field("file", "has a preview that is not a picture", code="NOT_A_PICTURE")
    stored = files.stored
    question_id = form["questionId"]
    shown = _read_set(form["shown"]) if question_id is None else NewMedia(questionId=question_id)
    await form_checks.add(ctx, ctx.caller.id, wblock_id, witem_id, shown, stored["file"], stored.get("poster"))
    if question_id is not None:
        return Redirect(f"{form_path(wblock_id, witem_id)}?edit=true#photo-{question_id}", "Photo sent to your coach.")
    return Redirect(item_path(wblock_id, witem_id), "Sent to your coach.")


def _read_set(shown: str) -> NewMedia:
    """Return the set that a form names."""
    if (named := _SET.fullmatch(shown)) is None:
        return {}
    place: NewMedia = {"exerciseId": ObjectId(named[1]), "index": int(named[3])}
    return {**place, "round": int(named[2])} if int(named[2]) else place


@pages.get("/media/{mediaId}/file", access=customer(), template="")
async def own_media_file(ctx: Context, media_id: ObjectId, query: FileQuery) -> Download:
    """A video or picture of the client's workouts; browsers do not keep it."""
    return await form_checks.read_file(ctx, media_id, small=query["size"] == "small")


@pages.post(f"{_MEDIA}/{{mediaId}}/comments", access=customer(), form=MessageText, on=workout_page)
async def comment_on_media(
    ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, media_id: ObjectId, form: MessageText
) -> Redirect:
    """Answer the coach's comments on a video or picture."""
    await form_checks.add_comment(ctx, media_id, {"text": form["text"], "at": None, "marks": []})
    return Redirect(item_path(wblock_id, witem_id), "Sent to your coach.")


@pages.post(f"{_MEDIA}/{{mediaId}}/delete", access=customer(), on=workout_page, deletes=True)
async def delete_media(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, media_id: ObjectId) -> Redirect:
    """Delete a video or picture that the client has sent."""
    await form_checks.delete(ctx, ctx.caller.id, wblock_id, witem_id, media_id)
    return Redirect(item_path(wblock_id, witem_id), "Deleted.")
