"""The photos of two dates of a client, side by side, for coaches: links, labels and the weight at the time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, TypedDict

from coaching_service.progress.progress_photos.models import ProgressPhoto
from coaching_service.web.formatting import format_date, format_number, relative_url
from coaching_service.web.views.body_weights import Weights, weight_at
from coaching_service.web.views.photo_forms import SIDES, Side


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
