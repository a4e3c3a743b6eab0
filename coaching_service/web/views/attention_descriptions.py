"""Why clients need a coach, in words, with the pages on which a coach deals with the reasons."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple, TypedDict

from coaching_service.core.auth.permissions import CUSTOMERS, FORMS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.dates import local_date
from coaching_service.core.file_links import file_url
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import AttentionCounts, Customer, Reason, ReasonType
from coaching_service.people.customers.trainer_filter import NO_TRAINER
from coaching_service.people.team.models import Coach
from coaching_service.progress.attention import service as attention
from coaching_service.progress.attention.models import AttentionEntry
from coaching_service.progress.attention.reasons import DATED_BY_NEWEST, ENDING_DAYS, MISSED_DAYS, RECORD_DAYS
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.conversation.models import Message
from coaching_service.progress.form_requests import service as form_requests
from coaching_service.progress.form_requests.models import FormRequest
from coaching_service.progress.form_responses import service as form_responses
from coaching_service.progress.form_responses.models import ReceivedResponse
from coaching_service.progress.notes import service as notes
from coaching_service.progress.notes.models import Note
from coaching_service.progress.personal_records import service as personal_records
from coaching_service.progress.personal_records.models import PersonalRecord
from coaching_service.training.workouts.reports import calendar_days
from coaching_service.training.workouts.reports.calendar_days import CalendarBlock
from coaching_service.web.formatting import quantity
from coaching_service.web.views.availability_forms import describe_present
from coaching_service.web.views.customer_layout import customer_path, week_path
from coaching_service.web.views.customer_messages import is_unread

_RESPONSES = "/app/inbox#responses"


class _Kind(NamedTuple):
    """A reason: its name in the filter of the list, its icon, and what is counted of it, if anything.

    `tab`: of the client's page on which a coach deals with it; None: the calendar, on its day.
    """

    name: str
    icon: str
    tab: str | None = None
    counted: str = ""


_KINDS: Mapping[ReasonType, _Kind] = {
    "health_note": _Kind("Health notes", "heart-pulse", "/notes", "health note"),
    "erasure_requested": _Kind("Erasure requested", "trash-2", "/details"),
    "unread_message": _Kind("Unread messages", "message-circle", "/messages", "unread message"),
    "check_in_to_review": _Kind("Check-ins to review", "clipboard-check"),
    "check_in_overdue": _Kind("Overdue check-ins", "clipboard-list", counted="overdue check-in"),
    "missed_workout": _Kind("Missed workouts", "circle-x", counted="missed workout"),
    "inactive": _Kind("Not training", "pause", ""),
    "low_compliance": _Kind("Low compliance", "trending-down", "/progress"),
    "nothing_scheduled": _Kind("Nothing scheduled", "calendar", ""),
    "program_ending": _Kind("Program ending", "timer"),
    "returning": _Kind("Back soon", "undo-2", "/availability"),
    "personal_record": _Kind("Personal records", "trophy", "/records", "personal record"),
    "unavailable": _Kind("Away or ill", "bed", "/availability"),
}
# For how many days all reasons of a client can be dismissed.
_SNOOZES = ((1, "Until tomorrow"), (3, "For 3 days"), (7, "For a week"))


class ReasonDescription(TypedDict):
    """A reason in words, with the page on which a coach deals with it."""

    type: ReasonType
    text: str
    when: str
    url: str
    icon: str
    hasPreview: bool


class EntryDescription(TypedDict):
    """A client of the list, the reasons in words, and until when they can be dismissed: dates with their labels.

    `portrait` is the address of the thumbnail of the client's photo.
    """

    entry: AttentionEntry
    name: str
    timezone: str
    portrait: str | None
    reasons: list[ReasonDescription]
    snoozes: list[tuple[str, str]]


async def describe_entries(ctx: Context, listed: Sequence[Customer]) -> list[EntryDescription]:
    """Describe clients with the fields of the attention list."""
    today_of = {each["_id"]: ctx.caller.today(each["timezone"]) for each in listed}
    absences = await describe_present(ctx, today_of)
    return [_describe_entry(ctx, each, absences.get(each["_id"], "")) for each in listed]


def _describe_entry(ctx: Context, customer: Customer, absence: str) -> EntryDescription:
    entry = attention.present(ctx, customer)
    timezone = customer["timezone"] or ctx.caller.company.timezone
    today, photo = ctx.caller.today(timezone), customer["profilePhoto"]
    return {
        "entry": entry,
        "name": customers.full_name(customer),
        "timezone": timezone,
        "portrait": file_url(ctx.services, photo["thumbnailId"] if photo else None),
        "reasons": [_describe_reason(ctx, customer["_id"], reason, timezone, absence) for reason in entry["reasons"]],
        "snoozes": [(str(today + timedelta(days=days)), label) for days, label in _SNOOZES],
    }


def _describe_reason(
    ctx: Context, customer_id: ObjectId, reason: Reason, timezone: str, absence: str
) -> ReasonDescription:
    reason_type, day = reason["type"], local_date(reason["since"], timezone)
    url = _RESPONSES if reason_type == "check_in_to_review" else _url(customer_id, reason_type, day)
    return {
        "type": reason_type,
        "text": absence if absence and reason_type == "unavailable" else _name(reason),
        "when": _when(reason_type, day, ctx.caller.today(timezone)),
        "url": url,
        "icon": _KINDS[reason_type].icon,
        "hasPreview": has_preview(ctx, reason_type),
    }


def _url(customer_id: ObjectId, reason_type: ReasonType, day: date) -> str:
    """Return the page of the client on which a coach deals with a reason that began on a day."""
    if (tab := _KINDS[reason_type].tab) is not None:
        return customer_path(customer_id, tab)
    return week_path(customer_id, str(_end(day) if reason_type == "program_ending" else day))


def _name(reason: Reason) -> str:
    if reason["type"] == "check_in_to_review":
        return f"{quantity(reason['count'], 'check-in')} to review"
    kind = _KINDS[reason["type"]]
    return quantity(reason["count"], kind.counted) if kind.counted else kind.name


def _when(reason_type: ReasonType, day: date, today: date) -> str:
    """Return when a reason began, or when what it announces is: `since 2 Mar`, with the year unless it is this year."""
    if reason_type == "program_ending":
        return f"on {_short(_end(day), today)}"
    if reason_type in DATED_BY_NEWEST:
        return _short(day, today)
    return f"since {_short(day, today)}"


def _short(day: date, today: date) -> str:
    return f"{day.day} {day:%b}" if day.year == today.year else f"{day.day} {day:%b %Y}"


def _end(since: date) -> date:
    """Return the last day of the program that ends, which the reason has `since` a week before."""
    return since + timedelta(days=ENDING_DAYS)


class FilterDescription(TypedDict):
    """A filter of the list: its parameter and label, and each value with its name, count and whether it is chosen."""

    name: str
    label: str
    options: list[tuple[str, str, int, bool]]


def describe_filters(
    query: Mapping[str, Sequence[str]], counts: AttentionCounts, coaches: Sequence[Coach]
) -> list[FilterDescription]:
    """Describe the filters of the list with what each value would show; one with a single value is left out."""
    trainer_counts = {NO_TRAINER if each is None else str(each): n for each, n in counts["trainers"].items()}
    trainers = [(str(each["_id"]), each["name"]) for each in coaches] + [(NO_TRAINER, "Unassigned")]
    filters = (
        ("reason", "Reason", [(name, kind.name) for name, kind in _KINDS.items()], counts["reasons"]),
        ("assignedTo", "Trainer", trainers, trainer_counts),
        ("groups", "Group", [(name, name) for name in sorted({*counts["groups"], *query["groups"]})], counts["groups"]),
    )
    described: list[FilterDescription] = []
    for name, label, values, numbers in filters:
        counted: Mapping[Any, int] = numbers
        options = [
            (value, text, counted.get(value, 0), value in query[name])
            for value, text in values
            if value in counted or value in query[name]
        ]
        if len(options) > 1 or query[name]:
            described.append({"name": name, "label": label, "options": options})
    return described


_MESSAGES, _OTHERS = 20, 5
_Loader = Callable[[Context, ObjectId, date], Awaitable[Sequence[Any]]]


def has_preview(ctx: Context, reason_type: ReasonType) -> bool:
    """Return whether there is a preview of a reason that the coach may see."""
    return reason_type in _LOADERS and _LOADERS[reason_type][0] in ctx.caller.permissions


async def load_previews(
    ctx: Context, customer_id: ObjectId, reasons: Collection[ReasonType], today: date
) -> dict[ReasonType, Sequence[Any]]:
    """Return what each of a client's `reasons` that has a preview is about. `today` is the client's."""
    shown = [reason for reason in reasons if has_preview(ctx, reason)]
    loaded = await gather_reads(ctx, *(_LOADERS[reason][1](ctx, customer_id, today) for reason in shown))
    return dict(zip(shown, loaded, strict=True))


async def _load_unread(ctx: Context, customer_id: ObjectId, _: date) -> list[Message]:
    """Return the messages of the client that are not read yet, oldest first."""
    page = await conversation.list_messages(ctx, customer_id, limit=_MESSAGES)
    return [message for message in page["docs"][::-1] if is_unread(message)]


async def _load_health_notes(ctx: Context, customer_id: ObjectId, _: date) -> list[Note]:
    return [note for note in await notes.list_notes(ctx, customer_id) if note["isHealth"]][:_OTHERS]


async def _load_responses(ctx: Context, customer_id: ObjectId, _: date) -> list[ReceivedResponse]:
    page = await form_responses.list_received(ctx, customer_id=customer_id, reviewed=False, limit=_OTHERS)
    return page["docs"]


async def _load_overdue(ctx: Context, customer_id: ObjectId, _: date) -> list[FormRequest]:
    page = await form_requests.list_pending(ctx, customer_id=customer_id, overdue=True, limit=_OTHERS)
    return page["docs"]


async def _load_missed(ctx: Context, customer_id: ObjectId, today: date) -> list[CalendarBlock]:
    """Return the workouts of the days before today that were not done completely."""
    start, end = today - timedelta(days=MISSED_DAYS - 1), today - timedelta(days=1)
    days = await calendar_days.list_days(ctx, customer_id, start, end, today=today)
    missed = [block for day in days if day["absence"] is None for block in day["blocks"] if block["isWorkout"]]
    return [block for block in missed if block["status"] != "done"]


async def _load_records(ctx: Context, customer_id: ObjectId, today: date) -> list[PersonalRecord]:
    return await personal_records.list_achieved(
        ctx, customer_id, str(today - timedelta(days=RECORD_DAYS - 1)), str(today)
    )


# The reasons with a preview, each with the permission that its preview needs.
_LOADERS: Mapping[ReasonType, tuple[str, _Loader]] = {
    "health_note": (CUSTOMERS.VIEW, _load_health_notes),
    "unread_message": (CUSTOMERS.VIEW, _load_unread),
    "check_in_to_review": (FORMS.VIEW, _load_responses),
    "check_in_overdue": (FORMS.VIEW, _load_overdue),
    "missed_workout": (CUSTOMERS.VIEW, _load_missed),
    "personal_record": (CUSTOMERS.VIEW, _load_records),
}
