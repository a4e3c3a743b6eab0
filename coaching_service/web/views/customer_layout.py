"""What all pages about a client share, for coaches and for the client: the header, absences, days and paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Annotated, TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default
from coaching_service.core.file_links import file_url
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, patch_of
from coaching_service.people.availability import service as availability
from coaching_service.people.availability.absences import includes, is_absence
from coaching_service.people.availability.models import Availability, AvailabilityKind, NewAvailability
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import CustomerRoleData
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
USUAL_LENGTH = "7"
PERIOD_CHANGE = patch_of(input_of(NewAvailability), name="AvailabilityForm")


class AbsenceForm(NewAvailability):
    """A new period: its length, or its last day, which counts if there is one."""

    length: Annotated[str, Choice(*(value for value, _ in LENGTHS)), Default(USUAL_LENGTH)]


class PeriodText(TypedDict):
    """A period in words, such as `Ill until Sun 8 Mar 2026`; `isAbsence`: the client does not train in it."""

    _id: ObjectId
    kind: AvailabilityKind
    text: str
    note: str | None
    isAbsence: bool


def to_period(form: AbsenceForm) -> NewAvailability:
    """Return the period that an AbsenceForm states."""
    return {"kind": form["kind"], "from": form["from"], "until": _last_day(form), "note": form["note"]}


def _last_day(form: AbsenceForm) -> str | None:
    if form["until"] is not None:
        return form["until"]
    if form["length"] == _OPEN:
        return None
    return str(date.fromisoformat(form["from"]) + timedelta(days=int(form["length"]) - 1))


def describe_period(period: Availability, today: date) -> PeriodText:
    """Return a period in words; `today` is the client's."""
    word, first, last = WORDS[period["kind"]], period["from"], period["until"]
    if first <= str(today):
        text = f"{word}, no end yet" if last is None else f"{word} until {format_date(last)}"
    elif last == first:
        text = f"{word} on {format_date(first)}"
    else:
        text = f"{word} from {format_date(first)}" + (f" to {format_date(last)}" if last else "")
    return {
        "_id": period["_id"],
        "kind": period["kind"],
        "text": text,
        "note": period["note"],
        "isAbsence": is_absence(period),
    }


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


class CustomerHeader(TypedDict):
    """What the layout of a client's pages shows; `portrait`: the address of the thumbnail.

    `period`: the present or next one in which the client cannot train as planned, or None.
    """

    _id: ObjectId
    name: str
    surname: str | None
    timezone: str | None
    customerRoleData: CustomerRoleData
    portrait: str | None
    period: PeriodText | None


async def load_header(ctx: Context, customer_id: ObjectId) -> CustomerHeader:
    """Load what the layout of a client's pages shows. Raises NotFound, Forbidden."""
    customer = await customers.get_visible(ctx, customer_id, _HEADER_FIELDS)
    photo = customer.get("profilePhoto")
    today = ctx.caller.today(customer["timezone"])
    period = await availability.find_present_or_next(ctx, customer_id, today)
    return {
        "_id": customer_id,
        "name": customer["name"],
        "surname": customer["surname"],
        "timezone": customer["timezone"],
        "customerRoleData": customer["customerRoleData"],
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
