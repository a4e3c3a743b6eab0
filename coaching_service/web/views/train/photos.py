"""A client's progress photos: taking them, the list by date, and two dates side by side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal, TypedDict

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.fields import Default
from coaching_service.core.http.responses import Download
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, SearchedDate, Text
from coaching_service.progress.metrics.models import MetricHistoryEntry
from coaching_service.progress.progress_photos import service as progress_photos
from coaching_service.progress.progress_photos.models import ProgressPhoto
from coaching_service.web.formatting import format_date
from coaching_service.web.page_queries import PageQuery, list_url
from coaching_service.web.pages import ConfirmedAction, Pages, Redirect
from coaching_service.web.uploads import ReceivedFiles
from coaching_service.web.views.photos import (
    PHOTOS_FORM,
    SIDES,
    PhotosForm,
    ShownPhoto,
    Side,
    Weights,
    add_received,
    describe_weight,
    find_weights,
    missing_sides,
    weight_at,
)
from coaching_service.web.views.train.layout import label_day
from coaching_service.web.views.unusual_values import require_past_date

pages = Pages("/train/photos")
_DATES_PER_PAGE = 6
_COMPARED_DATES = 100


class _PhotosQuery(PageQuery):
    """`left` and `right` are dates to compare; `date` is the one with which the form for photos begins."""

    left: Annotated[str, Text(allow_blank=True), Default("")]
    right: Annotated[str, Text(allow_blank=True), Default("")]
    side: Annotated[str | None, Choice(*SIDES)]
    date: Annotated[str | None, SearchedDate()]


class _PictureQuery(TypedDict):
    side: Annotated[str, Choice(*SIDES), Default("front")]
    size: Annotated[Literal["small", "full"], Default("full")]


class PhotoDate(TypedDict):
    """The photos of one date: `sides` have a picture, `weight` is the client's at the time."""

    _id: ObjectId
    date: str
    sides: list[Side]
    weight: MetricHistoryEntry | None


class Comparison(TypedDict):
    """Two dates with a picture of one side, and the dates and sides that can be chosen."""

    side: Side
    left: PhotoDate
    right: PhotoDate
    dates: list[str]
    sides: list[Side]


def describe_photos(record: ProgressPhoto, weights: Weights | None = None) -> PhotoDate:
    """Return what the pages show of the photos of one date."""
    missing = missing_sides(record)
    return {
        "_id": record["_id"],
        "date": record["createdAt"],
        "sides": [side for side in SIDES if side not in missing],
        "weight": weight_at(weights, record["createdAt"]),
    }


@pages.get("", access=customer(), template="train/photos.html")
async def photos_page(ctx: Context, query: _PhotosQuery) -> dict[str, Any]:
    """The photos by date, two of them side by side, and the form to add one."""
    page, newest, weights = await gather_reads(
        ctx,
        progress_photos.list_photos(ctx, ctx.caller.id, page=query["page"], size=_DATES_PER_PAGE),
        progress_photos.list_photos(ctx, ctx.caller.id, page=1, size=_COMPARED_DATES),
        find_weights(ctx, ctx.caller.id),
    )
    today = ctx.caller.today()
    comparison = _compare([describe_photos(record, weights) for record in newest["docs"]], query)
    # Pictures of full size are large, so they are sent to those who compare.
    size = "full" if query["left"] or query["right"] or query["side"] else "small"
    dates = [describe_photos(record, weights) for record in page["docs"]]
    return {
        "page": page,
        "photo_dates": [each for each in dates if each["sides"]],
        "comparison": comparison,
        "compared": [
            _show(photos, comparison["side"], size, weights, label_day(photos["date"], today))
            for photos in (comparison["left"], comparison["right"])
        ]
        if comparison
        else [],
        "weight_name": weights["name"] if weights else "",
        "weight_unit": weights["unit"] if weights else "",
        "form_sides": SIDES,
        "is_adding": query["date"] is not None,
        "date": query["date"] or today,
        "today": today,
        "label_day": partial(label_day, today=today),
        "page_url": list_url(pages.prefix, {}),
    }


def _compare(newest_first: Sequence[PhotoDate], query: _PhotosQuery) -> Comparison | None:
    """Choose two dates and a side that both have, as far as the query leaves a choice; None without two such dates."""
    by_side = {side: [each for each in newest_first if side in each["sides"]] for side in SIDES}
    sides = [side for side in SIDES if len(by_side[side]) > 1]
    if not sides:
        return None
    side = query["side"] if query["side"] in sides else sides[0]
    by_date = {each["date"]: each for each in by_side[side]}
    return {
        "side": side,
        "left": by_date.get(query["left"], by_side[side][-1]),
        "right": by_date.get(query["right"], by_side[side][0]),
        "dates": [*by_date],
        "sides": sides,
    }


def _show(photos: PhotoDate, side: str, size: str, weights: Weights | None, caption: str) -> ShownPhoto:
    picture_url = f"{pages.prefix}/{photos['_id']}/picture?side={side}"
    return {
        "src": f"{picture_url}&size={size}",
        "full": picture_url,
        "alt": f"{side.capitalize()}, {format_date(photos['date'])}",
        "caption": caption,
        "note": describe_weight(weights, photos["date"]),
    }


@pages.post("", access=customer(), form=PHOTOS_FORM, on=photos_page)
async def add_own_photos(ctx: Context, form: PhotosForm, files: ReceivedFiles) -> Redirect:
    """Add the photos of a date, replacing the photos of the same sides, and offer the form for missing ones."""
    day = form["createdAt"]
    require_past_date("createdAt", day, ctx.caller.today())
    record, notice = await add_received(ctx, ctx.caller.id, day, files)
    return Redirect(f"{pages.prefix}?date={day}" if missing_sides(record) else pages.prefix, notice)


@pages.get("/{photoId}/picture", access=customer(), template="")
async def picture(ctx: Context, photo_id: ObjectId, query: _PictureQuery) -> Download:
    """One picture, for the client who is signed in; browsers do not keep it."""
    is_small = query["size"] == "small"
    return await progress_photos.get_picture(ctx, ctx.caller.id, photo_id, query["side"], small=is_small)


@pages.confirm("/{photoId}/delete", access=customer(), template="train/delete_photos.html", deletes=True)
async def delete_own_photos(ctx: Context, photo_id: ObjectId) -> ConfirmedAction:
    """Delete the photos of a date."""
    photos = describe_photos(await progress_photos.get(ctx, ctx.caller.id, photo_id))
    done = Redirect(pages.prefix, "Photos deleted.")
    return ConfirmedAction({"photos": photos}, partial(progress_photos.delete, ctx, ctx.caller.id, photo_id), done)
