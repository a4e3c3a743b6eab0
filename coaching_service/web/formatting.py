"""Formatting of values for pages: dates, numbers, personal records, names and options of selects (Jinja filters)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import urlsplit

import jinja2

from coaching_service.core.dates import format_day, zone_of
from coaching_service.people.activity import models
from coaching_service.progress.personal_records import PersonalRecord
from coaching_service.training.workouts.blocks.service import describe_settings
from coaching_service.training.workouts.sets import COUNT, RecordKey, is_better

_MISSING = "–"


def format_date(value: str | date | None) -> str:
    """Return `2026-03-02` as `Mon 2 Mar 2026`."""
    if value is None:
        return _MISSING
    day = date.fromisoformat(value[:10]) if isinstance(value, str) else value
    return format_day(day)


_NEAR = {-1: "Yesterday", 0: "Today", 1: "Tomorrow"}


def label_day(day: str | date, today: date, *, within: bool = False) -> str:
    """Return a date as `Today`, `Yesterday`, `Tomorrow`, `Mon 2 Mar`, or of another year `Mon 2 Mar 2025`.

    `within`: the date is not the first word of its sentence, so `today` is in small letters.
    """
    each = date.fromisoformat(day) if isinstance(day, str) else day
    near = _NEAR.get((each - today).days)
    year = "" if each.year == today.year else f" {each.year}"
    if near:
        return near.lower() if within else near
    return f"{each:%a} {each.day} {each:%b}{year}"


@jinja2.pass_context
def format_local_date(context: jinja2.runtime.Context, value: str | date | None) -> str:
    """Return a date as format_date does; of a stored UTC time the date in the time zone of format_datetime."""
    return format_date(_to_local_time(context, value).date() if isinstance(value, datetime) else value)


@jinja2.pass_context
def format_datetime(context: jinja2.runtime.Context, value: datetime | None) -> str:
    """Return a stored UTC time as `2 Mar 2026, 09:30`, in the time zone of the page's client, else of the reader.

    The zone is named if it is not the reader's: `2 Mar 2026, 09:30 CET`.
    """
    if value is None:
        return _MISSING
    local_time = _to_local_time(context, value)
    zone = "" if _zone_of_page(context) == _zone_of_reader(context) else f" {local_time:%Z}"
    return f"{local_time.day} {local_time:%b %Y, %H:%M}{zone}"


@jinja2.pass_context
def format_clock_time(context: jinja2.runtime.Context, value: datetime) -> str:
    """Return a stored UTC time as `09:30`, in the time zone of format_datetime."""
    return f"{_to_local_time(context, value):%H:%M}"


@jinja2.pass_context
def local_date(context: jinja2.runtime.Context, value: datetime) -> date:
    """Return the date of a stored UTC time, in the time zone of format_datetime."""
    return _to_local_time(context, value).date()


def _to_local_time(context: jinja2.runtime.Context, value: datetime) -> datetime:
    return value.replace(tzinfo=UTC).astimezone(zone_of(_zone_of_page(context)))


def _zone_of_page(context: jinja2.runtime.Context) -> str:
    customer = context.get("customer") or {}
    return str(customer.get("timezone") or _zone_of_reader(context) or "UTC")


def _zone_of_reader(context: jinja2.runtime.Context) -> str | None:
    user = context.get("current_user")
    return None if user is None else user.timezone or user.company.timezone


def format_number(value: float | None, unit: str = "") -> str:
    """Return a number with at most two decimals, thousands separators and its unit, which stay on one line."""
    if value is None:
        return _MISSING
    text = f"{value:,.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else f"{value:,}"
    return f"{text}\N{NO-BREAK SPACE}{unit}" if unit else text


def format_duration(seconds: float) -> str:
    """Return `45 s`, `2 min`, `1 min 30 s` or `1 h 5 min`."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    parts = [f"{hours} h"] if hours else []
    parts += [f"{minutes} min"] if minutes else []
    return " ".join([*parts, *([f"{format_number(rest)} s"] if rest or not parts else [])])


def format_change(value: float, unit: str = "") -> str:
    """Return a difference with its sign and unit, such as `+1.5 kg`; the minus is the sign, not a hyphen."""
    sign = "+" if value > 0 else "−" if value < 0 else ""
    return f"{sign}{format_number(abs(value), unit)}"


def file_size(size: int) -> str:
    """Return a number of bytes as `40 bytes`, `1.2 kB`, `3.4 MB` or `5.6 GB`."""
    if size < 1_000:
        return quantity(size, "byte")
    if size < 1_000_000:
        return format_number(round(size / 1e3, 1), "kB")
    if size < 1_000_000_000:
        return format_number(round(size / 1e6, 1), "MB")
    return format_number(round(size / 1e9, 1), "GB")


def video_time(seconds: float) -> str:
    """Return a time of a video as `1:05`."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}"


def quantity(count: int, noun: str) -> str:
    """Return a count with its noun: `1 workout`, `2 workouts`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def document_options(documents: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return documents as options of a select: identifier and name."""
    return [(str(document["_id"]), document["name"]) for document in documents]


def name_options(names: Mapping[Any, str]) -> list[tuple[str, str]]:
    """Return names by identifier as options of a select, in the order of the names."""
    return sorted(((str(key), name) for key, name in names.items()), key=lambda option: option[1].casefold())


def word_options(words: Sequence[str]) -> list[tuple[str, str]]:
    """Return words as options of a select, labels capitalized."""
    return [(word, word.capitalize()) for word in words]


def permission_area(name: str) -> str:
    """Return the label of a permission area: `customers` is `Clients`."""
    return {"customers": "Clients"}.get(name, name.capitalize())


def permission_label(name: str) -> str:
    """Return the label of a permission: `customers.create` is `Clients: create`."""
    area, _, action = name.partition(".")
    return f"{permission_area(area)}: {action}" if action else permission_area(area)


def relative_url(url: str) -> str:
    """Return a URL of this service without scheme and host."""
    return urlsplit(url)._replace(scheme="", netloc="").geturl()


SOURCES = {
    "hevy": "Hevy",
    "strong": "Strong",
    "fitnotes": "FitNotes",
    "stronglifts": "StrongLifts",
    "gravl": "Gravl",
    "fitbod": "Fitbod",
    "liftosaur": "Liftosaur",
    "jefit": "JEFIT",
    "trainheroic": "TrainHeroic",
}


_YOUTUBE = re.compile(
    r"https?://(?:(?:www\.|m\.|music\.)?youtube(?:-nocookie)?\.com/(?:watch\?(?:[^#]*&)?v=|shorts/|embed/|live/|v/)"
    r"|youtu\.be/)([\w-]{11})(?![\w-])"
)
_VIMEO = re.compile(
    r"https?://(?:www\.|player\.)?vimeo\.com/"
    r"(?:(?:video|channels/[\w-]+|groups/[\w-]+/videos|(?:album|showcase)/\d+/video)/)?"
    r"(\d{6,12})(?:(?:/|\?(?:[^#]*&)?h=)([0-9a-f]{8,12}))?(?![\w-])"
)
_START = re.compile(r"[?&#](?:t|start)=(?:(\d{1,2})h)?(?:(\d{1,4})m)?(?:(\d{1,6})s?)?(?=&|#|$)")
EMBEDDED_SITES = ("https://www.youtube-nocookie.com", "https://player.vimeo.com")


def embedded_video(url: str) -> dict[str, Any] | None:
    """Return how a link to YouTube or Vimeo can be embedded, from the second that it names; None for other links."""
    start = _START.search(url)
    hours, minutes, seconds = (int(each or 0) for each in start.groups()) if start else (0, 0, 0)
    begins = hours * 3600 + minutes * 60 + seconds
    youtube, vimeo = EMBEDDED_SITES
    if found := _YOUTUBE.match(url):
        return {"provider": "YouTube", "address": f"{youtube}/embed/{found[1]}?autoplay=1&rel=0&start={begins}"}
    if found := _VIMEO.match(url):
        unlisted = f"&h={found[2]}" if found[2] else ""
        return {"provider": "Vimeo", "address": f"{vimeo}/video/{found[1]}?autoplay=1&dnt=1{unlisted}#t={begins}s"}
    return None


def source_name(source: Mapping[str, object]) -> str:
    """Return where a session was imported from, in words."""
    return SOURCES.get(str(source["format"]), "a file")


def record_name(record: Mapping[str, Any]) -> str:
    """Return the name of a record's type, with the distance of the fastest time, such as `Fastest 400 m`."""
    name = models.RECORD_NAMES[record["type"]]
    return f"{name} {format_number(float(record['meters']), 'm')}" if record.get("meters") else name


def record_value(record: Mapping[str, Any]) -> str:
    """Return the value of a record with its unit, such as `100 kg`, `12 reps` or `1 min 30 s`."""
    return format_record_value(record["type"], record["value"], record["unit"])


def format_record_value(record_type: str, value: float, unit: str) -> str:
    """Return a value of a type of record with its unit; times in minutes and hours."""
    if unit == "s":
        return format_duration(value)
    places = 1 if record_type == models.ESTIMATED_ONE_REP_MAX else 2
    return format_number(round(value, places), "reps" if unit == COUNT else unit)


def best_records(records: Iterable[PersonalRecord]) -> list[PersonalRecord]:
    """Return the best of the records of one exercise for each type and distance, in the order of the types."""
    best: dict[RecordKey, PersonalRecord] = {}
    for record in records:
        known = best.get(key := RecordKey(record["type"], record.get("meters")))
        if known is None or is_better(record["type"], record["value"], known["value"]):
            best[key] = record
    return [best[key] for key in sorted(best, key=lambda each: each.order)]


# --- Names of devices for the list of signed-in devices, from the User-Agent header -----------------------------------


# The first one whose mark is in the header: browsers also name those they are derived from.
_BROWSERS = (
    ("SamsungBrowser/", "Samsung Internet"),
    ("Edg", "Edge"),  # also EdgA and EdgiOS
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("CrOS", "ChromeOS"),
    ("Macintosh", "Mac"),
    ("Linux", "Linux"),
)


def describe_device(user_agent: str) -> str:
    """Return what a User-Agent header says in plain words, such as `Chrome on Android`."""
    browser, system = (
        next((name for mark, name in names if mark in user_agent), None) for names in (_BROWSERS, _SYSTEMS)
    )
    if system is None:
        return browser or "Unknown device"
    return f"{browser or 'Browser'} on {system}"


# --- The Jinja filters ------------------------------------------------------------------------------------------------


FILTERS: dict[str, Callable[..., Any]] = {
    "date": format_local_date,
    "datetime": format_datetime,
    "clock_time": format_clock_time,
    "number": format_number,
    "change": format_change,
    "device": describe_device,
    "settings": describe_settings,
    **{
        each.__name__: each
        for each in (
            *(local_date, quantity, source_name, embedded_video, file_size, video_time, document_options, word_options),
            *(record_name, record_value, relative_url, permission_area, permission_label),
        )
    },
}
