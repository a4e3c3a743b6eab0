"""Form checks: what clients have sent, and the page on which a coach looks at it and answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypedDict

import orjson
from marshmallow import ValidationError, fields

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default
from coaching_service.core.http.responses import Download
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.validation import Number
from coaching_service.progress import form_checks
from coaching_service.progress.conversation.messages import MessageText
from coaching_service.progress.form_checks import MAX_MARKS, ReceivedMedia
from coaching_service.training.set_media import LONGEST_VIDEO, MediaMark
from coaching_service.web.pages import Pages, PartQuery, Redirect, list_url
from coaching_service.web.views.customer_layout import review_path
from coaching_service.web.views.messages import FileQuery

pages = Pages("/app/form-checks")
_LISTED, _COMPARED = 30, 50
_CHECK = "/{mediaId}"
Then = Literal["next", "stay", "review"]


class _ListQuery(PartQuery):
    """With `all` also what is reviewed."""

    all: Annotated[bool, Default(False)]


@pages.get("", access=coach(CUSTOMERS.VIEW), template="form_checks/list.html")
async def form_checks_page(ctx: Context, query: _ListQuery) -> dict[str, Any]:
    """What clients have sent and no coach has reviewed, or all of it."""
    page = await form_checks.list_received(
        ctx, limit=_LISTED, after=query["after"], customer_id=None, reviewed=None if query["all"] else False
    )
    return {
        "checks": page,
        "shows_all": query["all"],
        "next_url": list_url(pages.prefix, {"after": page["nextCursor"], "all": query["all"]})(),
    }


class _CheckQuery(TypedDict):
    """What a video is compared with (`other`), another one of the same client."""

    other: Annotated[str, fields.String(), Default("")]


@pages.get(_CHECK, access=coach(CUSTOMERS.VIEW), template="form_checks/check.html")
async def form_check_page(ctx: Context, media_id: ObjectId, query: _CheckQuery) -> dict[str, Any]:
    """A video or picture with its comments, tools to look at it and to draw, and a form to answer."""
    check = await form_checks.get(ctx, media_id)
    customer_id = check["customer"]["_id"]
    others, following = await gather_reads(
        ctx,
        form_checks.list_received(ctx, limit=_COMPARED, customer_id=customer_id, reviewed=None),
        find_next(ctx, media_id),
    )
    if CUSTOMERS.EDIT in ctx.caller.permissions:
        await form_checks.mark_seen(ctx, customer_id, [media_id])
    comparable = [each for each in others["docs"] if each["_id"] != media_id]
    other_id = parse_id(query["other"])
    return {
        "check": check,
        "comparable": comparable,
        "other": next((each for each in comparable if each["_id"] == other_id), None),
        "next": following,
    }


async def find_next(ctx: Context, media_id: ObjectId) -> ReceivedMedia | None:
    """Return the newest file that no coach has reviewed, another one than this; None if there is none."""
    page = await form_checks.list_received(ctx, limit=2, customer_id=None, reviewed=False)
    return next((each for each in page["docs"] if each["_id"] != media_id), None)


@pages.get(f"{_CHECK}/file", access=coach(CUSTOMERS.VIEW), template="")
async def form_check_file(ctx: Context, media_id: ObjectId, query: FileQuery) -> Download:
    """A video or picture of a client; browsers do not keep it."""
    return await form_checks.read_file(ctx, media_id, small=query["size"] == "small")


class _MarksField(fields.String):
    """What is drawn, as the script of the page writes it: JSON; nothing without it."""

    _marks = fields.List(fields.Nested(input_of(MediaMark)))

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> Any:
        try:
            read = orjson.loads(value or "[]")
        except orjson.JSONDecodeError:
            raise ValidationError("is not JSON") from None
        if not isinstance(read, list) or len(read) > MAX_MARKS:
            raise ValidationError(f"must not be more than {MAX_MARKS} marks")
        return self._marks.deserialize(read)


class AnswerForm(MessageText):
    """An answer to a form check, and where its form leads."""

    at: Annotated[float | None, Number(minimum=0, maximum=LONGEST_VIDEO)]
    marks: Annotated[Sequence[MediaMark], _MarksField(), Default(())]
    then: Annotated[Then, Default("stay")]


class ReviewForm(TypedDict):
    """Whether a file is reviewed, and where its form leads."""

    reviewed: bool
    then: Annotated[Then, Default("stay")]


@pages.post(f"{_CHECK}/comments", access=coach(CUSTOMERS.EDIT), form=AnswerForm, on=form_check_page)
async def answer_form_check(ctx: Context, media_id: ObjectId, form: AnswerForm) -> Redirect:
    """Send a comment to the client; with `next` the file is reviewed, too."""
    await form_checks.add_comment(ctx, media_id, {"text": form["text"], "at": form["at"], "marks": list(form["marks"])})
    return await _leave(ctx, media_id, form["then"], "Comment sent.", reviews=form["then"] == "next")


@pages.post(f"{_CHECK}/reviewed", access=coach(CUSTOMERS.EDIT), form=ReviewForm, on=form_check_page, idempotent=True)
async def review_form_check(ctx: Context, media_id: ObjectId, form: ReviewForm) -> Redirect:
    """Mark a file as reviewed without a comment, or as not reviewed."""
    await form_checks.set_reviewed(ctx, media_id, reviewed=form["reviewed"])
    return await _leave(ctx, media_id, form["then"], "Marked as checked." if form["reviewed"] else "On the list again.")


async def _leave(ctx: Context, media_id: ObjectId, then: Then, notice: str, *, reviews: bool = False) -> Redirect:
    """Return where a form leads: to the next file that is not reviewed, to the workout, or to the same page again."""
    check = await (
        form_checks.set_reviewed(ctx, media_id, reviewed=True) if reviews else form_checks.get(ctx, media_id)
    )
    customer_id = check["customer"]["_id"]
    if then == "review" and check["workout"] is not None:
        path = f"{review_path(customer_id, check['wblockId'])}#check-{media_id}"
    elif then == "next":
        following = await find_next(ctx, media_id)
        path = f"{pages.prefix}/{following['_id']}" if following else pages.prefix
    else:
        path = f"{pages.prefix}/{media_id}"
    return Redirect(path, notice, customer_id=customer_id)


@pages.post(f"{_CHECK}/comments/{{commentId}}/delete", access=coach(CUSTOMERS.EDIT), on=form_check_page, deletes=True)
async def delete_check_comment(ctx: Context, media_id: ObjectId, comment_id: ObjectId) -> Redirect:
    """Delete a comment of the coach."""
    await form_checks.delete_comment(ctx, media_id, comment_id)
    return Redirect(f"{pages.prefix}/{media_id}", "Comment deleted.")


@pages.post(f"{_CHECK}/delete", access=coach(CUSTOMERS.EDIT), on=form_check_page, deletes=True)
async def delete_form_check(ctx: Context, media_id: ObjectId) -> Redirect:
    """Delete a video or picture with its comments."""
    check = await form_checks.get(ctx, media_id)
    await form_checks.delete(ctx, check["customer"]["_id"], check["wblockId"], check["witemId"], media_id)
    return Redirect(pages.prefix, "Deleted.")
