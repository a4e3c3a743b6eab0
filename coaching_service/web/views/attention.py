"""The start page: the clients who need a coach, and why."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any, TypedDict
from urllib.parse import urlencode

from marshmallow import fields

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS, FORMS
from coaching_service.core.database.context import Context
from coaching_service.core.dates import local_date
from coaching_service.core.errors import Conflict, InvalidFields
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Input
from coaching_service.people.customers import derived_figures, listing
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import Customer, Reason, ReasonType
from coaching_service.progress.attention import service as attention
from coaching_service.progress.attention.models import AttentionEntry, NewDismissal
from coaching_service.progress.attention.reasons import ENDING_DAYS
from coaching_service.progress.attention.schemas import AttentionDismissal
from coaching_service.web.formatting import format_date, quantity
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.customer_calendar import week_page
from coaching_service.web.views.customer_layout import customer_path, week_path

pages = Pages("/app/attention")
_PATH = "/app/attention"
_RESPONSES = "/app/inbox#responses"
_CLIENTS_PER_PAGE = 20
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
}


class _Part(Input):
    """A part of the list: `after` is the cursor of the one before."""

    after = fields.String(load_default=None)


class ReasonDescription(TypedDict):
    """A reason in words, with the page on which a coach deals with it."""

    type: ReasonType
    text: str
    when: str
    url: str


class EntryDescription(TypedDict):
    """A client of the list, and the reasons in words."""

    entry: AttentionEntry
    name: str
    reasons: list[ReasonDescription]


@pages.get("", access=coach(CUSTOMERS.VIEW), query=_Part(), template="attention.html")
async def attention_page(ctx: Context, query: dict[str, Any]) -> dict[str, Any] | Redirect:
    """The clients who need a coach, the most urgent first."""
    try:
        page = await derived_figures.list_attention(ctx, limit=_CLIENTS_PER_PAGE, after=query["after"])
    except InvalidFields:  # the cursor is of another list
        return Redirect(_PATH)
    has_clients = bool(page["docs"]) or await _has_clients(ctx)
    return {
        "entries": [_describe(ctx, customer) for customer in page["docs"]],
        "has_clients": has_clients,
        "next_url": f"{_PATH}?{urlencode({'after': page['nextCursor']})}" if page["hasMore"] else None,
    }


async def _has_clients(ctx: Context) -> bool:
    return (await listing.list_customers(ctx, archived=False, page=1, size=1))["totalDocs"] > 0


@pages.post("/{customerId}/dismiss", access=coach(CUSTOMERS.EDIT), form=AttentionDismissal(), on=week_page)
async def dismiss_attention(ctx: Context, customer_id: ObjectId, form: NewDismissal) -> Redirect:
    """Dismiss a reason for the whole company, until something new happens."""
    try:
        await attention.dismiss(ctx, customer_id, form)
    except Conflict:  # the list was shown before something changed
        return Redirect(_PATH, "This reason no longer applies.")
    return Redirect(_PATH, "Dismissed until something new happens.")


def _describe(ctx: Context, customer: Customer) -> EntryDescription:
    entry = attention.present(ctx, customer)
    timezone = customer["timezone"] or ctx.caller.company.timezone
    return {
        "entry": entry,
        "name": customers.full_name(customer),
        "reasons": [_describe_reason(ctx, customer["_id"], reason, timezone) for reason in entry["reasons"]],
    }


def _describe_reason(ctx: Context, customer_id: ObjectId, reason: Reason, timezone: str) -> ReasonDescription:
    reason_type, day = reason["type"], local_date(reason["since"], timezone)
    url = _url(customer_id, reason_type, day)
    if reason_type == "check_in_to_review" and FORMS.VIEW in ctx.caller.permissions:
        url = _RESPONSES
    return {"type": reason_type, "text": _name(reason), "when": _when(reason_type, day), "url": url}


def _url(customer_id: ObjectId, reason_type: ReasonType, day: date) -> str:
    """The page of the client on which a coach deals with a reason that began on a day."""
    if reason_type in _TABS:
        return customer_path(customer_id, _TABS[reason_type])
    return week_path(customer_id, str(_end(day) if reason_type == "program_ending" else day))


def _name(reason: Reason) -> str:
    if reason["type"] == "check_in_to_review":
        return f"{quantity(reason['count'], 'check-in')} to review"
    if reason["type"] in _COUNTED:
        return quantity(reason["count"], _COUNTED[reason["type"]])
    return _STATES[reason["type"]]


def _when(reason_type: ReasonType, day: date) -> str:
    if reason_type == "program_ending":
        return f"on {format_date(_end(day))}"
    if reason_type in ("health_note", "unread_message", "check_in_to_review", "personal_record"):
        return format_date(day)
    return f"since {format_date(day)}"


def _end(since: date) -> date:
    """The last day of the program that ends, which the reason has `since` a week before."""
    return since + timedelta(days=ENDING_DAYS)
