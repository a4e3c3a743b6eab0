"""Photos of a client: the form that adds those of a date, and two dates side by side, with the weight at the time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any, Literal, TypedDict

from coaching_service.core.auth.access import METRICS
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import IMAGE_TYPES
from coaching_service.core.validation import SearchedDate
from coaching_service.progress.metrics import service as metrics
from coaching_service.progress.metrics.models import MetricHistoryEntry
from coaching_service.progress.progress_photos import service as progress_photos
from coaching_service.progress.progress_photos.models import ProgressPhoto
from coaching_service.web.formatting import format_date, format_number, relative_url
from coaching_service.web.uploads import ReceivedFiles

Side = Literal["front", "side", "back"]
SIDES: tuple[Side, ...] = ("front", "side", "back")
_WEIGHT_NAMES, _WEIGHT_UNITS = ("weight", "peso"), ("kg", "lb")
_INDEXES: dict[Side, str] = {"front": "1", "side": "3", "back": "2"}


class PhotosForm(TypedDict):
    """The date of photos."""

    createdAt: Annotated[str, SearchedDate()]


PHOTOS_FORM = MultipartBody("front", IMAGE_TYPES, PhotosForm, more_files=("side", "back"))


async def add_received(
    ctx: Context, customer_id: ObjectId, day: str, files: ReceivedFiles
) -> tuple[ProgressPhoto, str]:
    """Add the photos received to a date, in place of photos of the same sides; return them with a notice.

    The notice names the photos that were saved, and says of each other one that was sent why it was not. Raises what
    `progress_photos.add` raises.
    """
    saved = [side for side in SIDES if side in files.stored]
    for side in saved:
        photos = await progress_photos.create(ctx, customer_id, day, _INDEXES[side], files.stored[side])
    notice = f"{_join(saved).capitalize()} photo{'' if len(saved) == 1 else 's'} saved."
    reasons = [f"The {side} photo was not saved: it {why}." for side, why in files.rejected.items()]
    return photos, " ".join([notice, *reasons])


def missing_sides(photos: ProgressPhoto) -> list[Side]:
    """Return the sides without a photo on a date."""
    keys = {"front": "frontKey", "side": "sideKey", "back": "backKey"}
    links: dict[str, object] = {**photos["photos"]}
    return [side for side in SIDES if not links[keys[side]]]


def _join(words: list[Side]) -> str:
    """Return `front`, `front and side` or `front, side and back`."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


class Weights(TypedDict):
    """The history of the metric that is the client's weight, by date."""

    name: str
    unit: str
    values: list[MetricHistoryEntry]


async def find_weights(ctx: Context, customer_id: ObjectId) -> Weights | None:
    """Return the history of the first assigned metric that is a client's weight, if there is one.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    for assignment in await metrics.list_assigned(ctx, customer_id):
        for entry in assignment["metrics"]:
            metric = entry["metric"]
            unit, name = metric["metricUnit"]["shortName"], metric["name"]
            if unit in _WEIGHT_UNITS and any(word in name.casefold() for word in _WEIGHT_NAMES):
                set_id = assignment["metricsSet"]["_id"]
                values = await metrics.list_history(ctx, customer_id, set_id, metric["_id"])
                return {"name": name, "unit": unit, "values": values}
    return None


async def load_weights(ctx: Context, customer_id: ObjectId) -> Weights | None:
    """Return what `find_weights` returns, for a coach who may see metrics; None for any other."""
    return await find_weights(ctx, customer_id) if METRICS.VIEW in ctx.caller.permissions else None


def weight_at(weights: Weights | None, day: str) -> MetricHistoryEntry | None:
    """Return the latest weight up to a date (YYYY-MM-DD), which may be long before; None without one."""
    values = weights["values"] if weights else []
    at = bisect_right(values, day, key=lambda entry: entry["date"])
    return values[at - 1] if at else None


class ShownPhoto(TypedDict):
    """A photo as it is shown: `src` is the small picture, `full` the address of the large one, `note` the weight."""

    src: str
    full: str
    alt: str
    caption: str
    note: str


class PhotoPair(TypedDict):
    """The photos of one side on two dates; None where there is none."""

    side: Side
    left: ShownPhoto | None
    right: ShownPhoto | None


def has_photos(record: ProgressPhoto) -> bool:
    """Return whether a date has a photo of any side."""
    return any(record["photos"].values())


def pair_photos(left: ProgressPhoto, right: ProgressPhoto, name: str, weights: Weights | None) -> list[PhotoPair]:
    """Return the pairs of the sides with a photo on one of two dates; `name` is the client's."""
    pairs: list[PhotoPair] = [
        {"side": side, "left": _show(left, side, name, weights), "right": _show(right, side, name, weights)}
        for side in SIDES
    ]
    return [pair for pair in pairs if pair["left"] or pair["right"]]


def _show(record: ProgressPhoto, side: Side, name: str, weights: Weights | None) -> ShownPhoto | None:
    links: dict[str, Any] = {**record["photos"]}
    full = links[f"{side}Url"]
    if full is None:
        return None
    day = format_date(record["createdAt"])
    return {
        "src": relative_url(links[f"{side}ThumbnailUrl"] or full),
        "full": relative_url(full),
        "alt": f"{name}, {side}, {day}",
        "caption": day,
        "note": describe_weight(weights, record["createdAt"]),
    }


def describe_weight(weights: Weights | None, day: str) -> str:
    """Describe the weight at a date, with its own date if that is another one; empty without a weight."""
    entry = weight_at(weights, day)
    if weights is None or entry is None:
        return ""
    weight = f"{weights['name']}: {format_number(entry['value'], weights['unit'])}"
    return weight if entry["date"] == day else f"{weight}, on {format_date(entry['date'])}"


def compare_over_period(records: Sequence[ProgressPhoto], first: date, last: date) -> list[ProgressPhoto]:
    """Return the photos taken closest to the first day of a period, and the latest ones up to its last day.

    `records`: the photos of a client by date. Empty without two dates that have photos.
    """
    until = [record for record in records if has_photos(record) and record["createdAt"] <= str(last)]
    if len(until) < 2:
        return []
    latest = max(until, key=lambda record: record["createdAt"])
    earlier = [record for record in until if record is not latest]
    return [min(earlier, key=lambda record: abs((date.fromisoformat(record["createdAt"]) - first).days)), latest]
