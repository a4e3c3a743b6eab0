"""A client's progress photos: taking them, the list by date, and two dates side by side."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import date, timedelta
from functools import partial
from typing import Any, TypedDict

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.http.downloads import Download
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import IMAGE_TYPES
from coaching_service.core.validation import Choice, Date, Input, Integer, Text
from coaching_service.progress.metrics import service as metrics
from coaching_service.progress.metrics.models import MetricHistoryEntry
from coaching_service.progress.progress_photos import service as progress_photos
from coaching_service.progress.progress_photos.models import ProgressPhotos
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.urls import list_url
from coaching_service.web.views.train.dates import label_day
from coaching_service.web.views.train.own_dates import require_past_date

pages = Pages("/train/photos")
SIDES = ("front", "side", "back")
_INDEXES = {"front": "1", "side": "3", "back": "2"}
_SIDE_OPTIONS = [(index, side.capitalize()) for side, index in _INDEXES.items()]
_DATES_PER_PAGE = 6
_COMPARED_DATES = 100
_WEIGHT_NAMES = ("weight", "peso")
_WEIGHT_UNITS = ("kg", "lb")
_WEIGHT_DAYS = timedelta(days=14)  # a weight from longer before a photo does not belong to it


class _PhotosQuery(Input):
    """`left` and `right` are dates to compare; `date` and `view` what the form for a photo begins with."""

    left = Text(allow_blank=True, load_default="")
    right = Text(allow_blank=True, load_default="")
    side = Choice(*SIDES, load_default=None, allow_none=True)
    date = Date(load_default=None, allow_none=True)
    view = Choice(*_INDEXES.values(), load_default=None, allow_none=True)
    page = Integer(minimum=1, load_default=1)


class _PictureQuery(Input):
    side = Choice(*SIDES, load_default="front")
    size = Choice("small", "full", load_default="full")


class _PhotoForm(Input):
    createdAt = Date(required=True)
    imageSideIndex = Choice(*_INDEXES.values(), required=True)


class PhotoDate(TypedDict):
    """The photos of one date: `sides` are those that have a picture, `weight` is the client's at the time."""

    _id: ObjectId
    date: str
    sides: list[str]
    weight: MetricHistoryEntry | None


class Weights(TypedDict):
    """The history of the metric that is the client's weight, by date."""

    name: str
    unit: str
    values: list[MetricHistoryEntry]


class Comparison(TypedDict):
    """Two dates with a picture of one side, and the dates and sides that can be chosen."""

    side: str
    left: PhotoDate
    right: PhotoDate
    dates: list[str]
    sides: list[str]


def describe_photos(record: ProgressPhotos, weights: Weights | None = None) -> PhotoDate:
    """Return what the pages show of the photos of one date."""
    keys = {"front": "frontKey", "side": "sideKey", "back": "backKey"}
    links: dict[str, Any] = {**record["photos"]}
    return {
        "_id": record["_id"],
        "date": record["createdAt"],
        "sides": [side for side in SIDES if links[keys[side]]],
        "weight": _weight_at(weights, record["createdAt"]),
    }


@pages.get("", access=customer(), query=_PhotosQuery(), template="train/photos.html")
async def photos_page(ctx: Context, query: dict[str, Any]) -> dict[str, Any]:
    """The photos by date, two of them side by side, and the form to add one."""
    page, newest, weights = await gather_reads(
        ctx,
        progress_photos.list_photos(ctx, ctx.caller.id, page=query["page"], size=_DATES_PER_PAGE),
        progress_photos.list_photos(ctx, ctx.caller.id, page=1, size=_COMPARED_DATES),
        _find_weights(ctx),
    )
    today = ctx.caller.today()
    dates = [describe_photos(record, weights) for record in page["docs"]]
    return {
        "page": page,
        "photo_dates": [each for each in dates if each["sides"]],
        # Pictures of full size are large, so they are sent to those who compare.
        "compared_size": "full" if query["left"] or query["right"] or query["side"] else "small",
        "comparison": _compare([describe_photos(record, weights) for record in newest["docs"]], query),
        "weight_name": weights["name"] if weights else "",
        "weight_unit": weights["unit"] if weights else "",
        "side_options": _SIDE_OPTIONS,
        "view": query["view"] or "1",
        "is_adding": query["date"] is not None,
        "date": query["date"] or today,
        "today": today,
        "label_day": partial(label_day, today=today),
        "page_url": list_url(pages.prefix, {}),
    }


def _compare(newest_first: Sequence[PhotoDate], query: dict[str, Any]) -> Comparison | None:
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


async def _find_weights(ctx: Context) -> Weights | None:
    """Return the history of the first assigned metric that is the client's weight, if there is one."""
    for assignment in await metrics.list_assigned(ctx, ctx.caller.id):
        for entry in assignment["metrics"]:
            metric = entry["metric"]
            unit, name = metric["metricUnit"]["shortName"], metric["name"]
            if unit in _WEIGHT_UNITS and any(word in name.casefold() for word in _WEIGHT_NAMES):
                set_id = assignment["metricsSet"]["_id"]
                values = await metrics.list_history(ctx, ctx.caller.id, set_id, metric["_id"])
                return {"name": name, "unit": unit, "values": values}
    return None


def _weight_at(weights: Weights | None, day: str) -> MetricHistoryEntry | None:
    """Return the latest weight up to a date; None if it is older than two weeks."""
    values = weights["values"] if weights else []
    at = bisect_right(values, day, key=lambda entry: entry["date"])
    if at == 0 or date.fromisoformat(day) - date.fromisoformat(values[at - 1]["date"]) > _WEIGHT_DAYS:
        return None
    return values[at - 1]


@pages.post("", access=customer(), form=MultipartBody("imageFile", IMAGE_TYPES, _PhotoForm()), on=photos_page)
async def add_own_photo(ctx: Context, form: dict[str, Any], file: StoredFile) -> Redirect:
    """Add a photo to a date, replacing the one of the same side, and offer the form for a side that is missing."""
    require_past_date(ctx, "createdAt", form["createdAt"])
    record = await progress_photos.add(ctx, ctx.caller.id, form["createdAt"], form["imageSideIndex"], file)
    taken = describe_photos(record)["sides"]
    missing = [side for side in SIDES if side not in taken]
    if not missing:
        return Redirect(pages.prefix, "Photo saved.")
    location = f"{pages.prefix}?date={form['createdAt']}&view={_INDEXES[missing[0]]}"
    return Redirect(location, f"Photo saved. Next: {missing[0]}.")


@pages.get("/{photoId}/picture", access=customer(), query=_PictureQuery(), template="")
async def picture(ctx: Context, photo_id: ObjectId, query: dict[str, Any]) -> Download:
    """One picture, for the client who is signed in; browsers do not keep it."""
    is_small = query["size"] == "small"
    return await progress_photos.read_picture(ctx, ctx.caller.id, photo_id, query["side"], small=is_small)


@pages.get("/{photoId}/delete", access=customer(), template="train/delete_photos.html")
async def delete_own_photos_page(ctx: Context, photo_id: ObjectId) -> dict[str, Any]:
    """Ask for confirmation before the photos of a date are deleted."""
    return {"photos": describe_photos(await progress_photos.read(ctx, ctx.caller.id, photo_id))}


@pages.post("/{photoId}/delete", access=customer(), on=delete_own_photos_page)
async def delete_own_photos(ctx: Context, photo_id: ObjectId) -> Redirect:
    """Delete the photos of a date."""
    await progress_photos.delete(ctx, ctx.caller.id, photo_id)
    return Redirect(pages.prefix, "Photos deleted.")
