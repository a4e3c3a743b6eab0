"""Why clients need a coach, in words, with the pages on which a coach deals with the reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any, TypedDict

from coaching_service.core.auth.permissions import FORMS
from coaching_service.core.database.context import Context
from coaching_service.core.dates import local_date
from coaching_service.core.file_links import file_url
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import AttentionCounts, Customer, Reason, ReasonType
from coaching_service.people.customers.trainer_filter import NO_TRAINER
from coaching_service.people.team.models import Coach
from coaching_service.progress.attention import service as attention
from coaching_service.progress.attention.models import AttentionEntry
from coaching_service.progress.attention.reasons import DATED_BY_NEWEST, ENDING_DAYS
from coaching_service.web.formatting import quantity
from coaching_service.web.views.attention_previews import has_preview
from coaching_service.web.views.availability_forms import describe_present
from coaching_service.web.views.customer_layout import customer_path, week_path

_RESPONSES = "/app/inbox#responses"
# The reasons that have a number, by what is counted.
_COUNTED: dict[ReasonType, str] = {
    "health_note": "health note",
    "unread_message": "unread message",
    "check_in_overdue": "overdue check-in",
    "missed_workout": "missed workout",
    "personal_record": "personal record",
}
_STATES: dict[ReasonType, str] = {
    "erasure_requested": "Erasure requested",
    "inactive": "Not training",
    "low_compliance": "Low compliance",
    "nothing_scheduled": "Nothing scheduled",
    "program_ending": "Program ending",
    "returning": "Back soon",
    "unavailable": "Away or ill",
}
# The names of the reasons in the filter of the list.
_NAMES: dict[ReasonType, str] = {
    "health_note": "Health notes",
    "erasure_requested": "Erasure requested",
    "unread_message": "Unread messages",
    "check_in_to_review": "Check-ins to review",
    "check_in_overdue": "Overdue check-ins",
    "missed_workout": "Missed workouts",
    "inactive": "Not training",
    "low_compliance": "Low compliance",
    "nothing_scheduled": "Nothing scheduled",
    "program_ending": "Program ending",
    "returning": "Back soon",
    "personal_record": "Personal records",
    "unavailable": "Away or ill",
}
_ICONS: dict[ReasonType, str] = {
    "health_note": "heart-pulse",
    "erasure_requested": "trash-2",
    "unread_message": "message-circle",
    "check_in_to_review": "clipboard-check",
    "check_in_overdue": "clipboard-list",
    "missed_workout": "circle-x",
    "inactive": "pause",
    "low_compliance": "trending-down",
    "nothing_scheduled": "calendar",
    "program_ending": "timer",
    "personal_record": "trophy",
    "returning": "undo-2",
    "unavailable": "bed",
}
# The tabs of a client's page on which a coach deals with a reason; the calendar for the others.
_TABS: dict[ReasonType, str] = {
    "health_note": "/notes",
    "erasure_requested": "/details",
    "unread_message": "/messages",
    "low_compliance": "/progress",
    "personal_record": "/records",
    "inactive": "",
    "nothing_scheduled": "",
    "returning": "/availability",
    "unavailable": "/availability",
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
    url = _url(customer_id, reason_type, day)
    if reason_type == "check_in_to_review" and FORMS.VIEW in ctx.caller.permissions:
        url = _RESPONSES
    return {
        "type": reason_type,
        "text": absence if absence and reason_type == "unavailable" else _name(reason),
        "when": _when(reason_type, day, ctx.caller.today(timezone)),
        "url": url,
        "icon": _ICONS[reason_type],
        "hasPreview": has_preview(ctx, reason_type),
    }


def _url(customer_id: ObjectId, reason_type: ReasonType, day: date) -> str:
    """Return the page of the client on which a coach deals with a reason that began on a day."""
    if reason_type in _TABS:
        return customer_path(customer_id, _TABS[reason_type])
    return week_path(customer_id, str(_end(day) if reason_type == "program_ending" else day))


def _name(reason: Reason) -> str:
    if reason["type"] == "check_in_to_review":
        return f"{quantity(reason['count'], 'check-in')} to review"
    if reason["type"] in _COUNTED:
        return quantity(reason["count"], _COUNTED[reason["type"]])
    return _STATES[reason["type"]]


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
        ("reason", "Reason", list(_NAMES.items()), counts["reasons"]),
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
