"""When clients cannot train as planned, in the words of the pages, and the form that coaches and clients fill in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Annotated, TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, patch_of
from coaching_service.people.availability import service as availability
from coaching_service.people.availability.absences import includes, is_absence
from coaching_service.people.availability.models import Availability, AvailabilityKind, NewAvailability
from coaching_service.web.formatting import format_date

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
