"""What all pages about a client share, for coaches and for the client: the header, absences, days and paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Annotated, Any

from coaching_service.core.database.context import Context
from coaching_service.core.fields import Default, input_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, patch_of
from coaching_service.people import availability
from coaching_service.people.availability import Availability, AvailabilityKind, NewAvailability, includes, is_absence
from coaching_service.people.customers import service as customers
from coaching_service.people.file_links import file_url
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.web.formatting import format_date

# --- When clients cannot train as planned, in the words of the pages, and the form that coaches and clients fill in ---


KINDS: Sequence[tuple[AvailabilityKind, str]] = (
    ("ill", "Ill"),
    ("away", "Away"),
    ("injured", "Injured"),
    ("limited", "Limited"),
)
WORDS: Mapping[AvailabilityKind, str] = dict(KINDS)
_OPEN = "open"
LENGTHS = (("1", "1 day"), ("3", "3 days"), ("7", "1 week"), ("14", "2 weeks"), (_OPEN, "No end yet"))
_USUAL_LENGTH = "7"
CHOICES = {"kinds": KINDS, "lengths": LENGTHS, "usual_length": _USUAL_LENGTH}  # of `absence_fields` in templates
PERIOD_CHANGE = patch_of(input_of(NewAvailability), name="AvailabilityForm")


class AbsenceForm(NewAvailability):
    """A new period: its length, or its last day, which counts if there is one."""

    length: Annotated[str, Choice(*(value for value, _ in LENGTHS)), Default(_USUAL_LENGTH)]


def to_period(form: AbsenceForm) -> NewAvailability:
    """Return the period that an AbsenceForm states."""
    until = form["until"]
    if until is None and form["length"] != _OPEN:
        until = str(date.fromisoformat(form["from"]) + timedelta(days=int(form["length"]) - 1))
    return {"kind": form["kind"], "from": form["from"], "until": until, "note": form["note"]}


def describe_period(period: Availability, today: date) -> dict[str, Any]:
    """Return a period in words; `today` is the client's."""
    word, first, last = WORDS[period["kind"]], period["from"], period["until"]
    if first <= str(today):
        text = f"{word}, no end yet" if last is None else f"{word} until {format_date(last)}"
    elif last == first:
        text = f"{word} on {format_date(first)}"
    else:
        text = f"{word} from {format_date(first)}" + (f" to {format_date(last)}" if last else "")
    return {**period, "text": text, "isAbsence": is_absence(period)}


async def describe_present(ctx: Context, today_of: Mapping[ObjectId, date]) -> dict[ObjectId, str]:
    """Return the present period of each client who has one, in words; `today_of` has the clients with their today."""
    if not today_of:
        return {}
    first, last = str(min(today_of.values())), str(max(today_of.values()))
    periods_of = await availability.get_periods(ctx, list(today_of), first, last)
    return {
        client: describe_period(period, today)["text"]
        for client, today in today_of.items()
        for period in periods_of[client]
        if includes(period, str(today))
    }


def describe_saved(period: Availability, today: date) -> str:
    """Return the notice about a period that was saved."""
    effect = " Nothing in it counts as missed." if is_absence(period) else ""
    return f"{describe_period(period, today)['text']}.{effect}"


def list_bands(periods: Iterable[Availability], days: Iterable[date | str]) -> dict[str, str]:
    """Return, by date, the word for the period that has the day; days without one are left out."""
    dates = [str(day) for day in days]
    return {day: WORDS[period["kind"]] for period in periods for day in dates if includes(period, day)}


# --- What all pages of a client share: the page header and the addresses of their tabs --------------------------------


_HEADER_FIELDS = ("_id", "name", "surname", "timezone", "customerRoleData", "profilePhoto")


async def load_header(ctx: Context, customer_id: ObjectId) -> dict[str, Any]:
    """Load what the layout of a client's pages shows. Raises NotFound, Forbidden.

    `portrait` is the address of the thumbnail, `period` the present or next one in which the client cannot train.
    """
    customer = await customers.get_visible(ctx, customer_id, _HEADER_FIELDS)
    photo = customer.get("profilePhoto")
    today = ctx.caller.today(customer["timezone"])
    period = await availability.find_present_or_next(ctx, customer_id, today)
    return {
        **customer,
        "portrait": file_url(ctx, photo["thumbnailId"] if photo else None),
        "period": describe_period(period, today) if period else None,
    }


def customer_path(customer_id: ObjectId, tab: str = "") -> str:
    """Return the path of a client's page, such as `/app/customers/{id}/notes` for the tab `/notes`."""
    return f"/app/customers/{customer_id}{tab}"


def week_path(customer_id: ObjectId, day: str) -> str:
    """Return the path of the calendar week that contains a date."""
    return f"/app/customers/{customer_id}?week={day}"


def review_path(customer_id: ObjectId, block_id: ObjectId) -> str:
    """Return the path of the review of a client's workout."""
    return customer_path(customer_id, f"/blocks/{block_id}/review")


async def get_today(ctx: Context, customer_id: ObjectId) -> date:
    """Return today's date where a client is. Raises NotFound, Forbidden."""
    customer = await customers.get_visible(ctx, customer_id, (*customers.SCOPE_FIELDS, "timezone"))
    return ctx.caller.today(customer["timezone"])


# --- What all pages for clients share: days in words, which blocks are workouts, and paths ----------------------------


def label_month(month: str) -> str:
    """Return a month (`YYYY-MM`) as `March 2026`."""
    first = date.fromisoformat(f"{month}-01")
    return f"{first:%B} {first.year}"


def is_session(block: Block) -> bool:
    """Return whether a block is a workout to a client: neither rest, nor only something to answer or to measure."""
    if block["isRest"] or block.get("checkInId") is not None:
        return False
    return not block["items"] or any(item["type"] not in ("FORM", "METRICS") for item in block["items"])


def workout_path(block_id: ObjectId) -> str:
    """Return the path of a workout."""
    return f"/train/workouts/{block_id}"


def calendar_path(day: str) -> str:
    """Return the path of a day in its week of the calendar."""
    return f"/train/calendar?week={day}#day-{day}"


def item_path(block_id: ObjectId, item_id: ObjectId) -> str:
    """Return the path of an item's place on the page of its workout."""
    return f"{workout_path(block_id)}#item-{item_id}"


def form_path(block_id: ObjectId, item_id: ObjectId) -> str:
    """Return the path of the page on which a form item is answered."""
    return f"{workout_path(block_id)}/items/{item_id}/form"
