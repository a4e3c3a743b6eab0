"""The start page: the clients who need a coach, and why, as a list to work through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, TypedDict, cast

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS, FORMS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import Conflict
from coaching_service.core.fields import Default, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, Date, ListOf
from coaching_service.people.activity import service as activity
from coaching_service.people.customers import derived_figures, listing
from coaching_service.people.customers.attention_events import WEIGHTS
from coaching_service.people.customers.models import ReasonType
from coaching_service.people.team import service as team
from coaching_service.progress.attention import service as attention
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.conversation.models import MessageText
from coaching_service.progress.form_responses import service as form_responses
from coaching_service.training.workouts.reports import blocks as queries
from coaching_service.web.formatting import format_date
from coaching_service.web.page_queries import FilterValues, PartQuery, list_url
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.attention_descriptions import describe_entries, describe_filters, load_previews
from coaching_service.web.views.customer_layout import review_path
from coaching_service.web.views.customers import parse_trainer_ids
from coaching_service.web.views.proposals import list_waiting_by_assistant

pages = Pages("/app/attention")
_PATH = "/app/attention"
_CLIENTS_PER_PAGE = 60


class _AttentionFilter(TypedDict):
    """The filters of the list, as in REST; they combine with AND."""

    reason: Annotated[list[ReasonType], ListOf(Choice(*WEIGHTS), maximum=len(WEIGHTS)), Default(list)]
    assignedTo: FilterValues
    groups: FilterValues


class _Part(_AttentionFilter, PartQuery):
    """A part of the list."""


class _Filters(TypedDict):
    """The filters as the services take them."""

    reasons: list[ReasonType]
    groups: list[str]
    trainers: list[ObjectId | None]


class _Dismissal(TypedDict):
    """The reasons to dismiss, and the date until which they are; without one until something new happens."""

    reason: Annotated[list[ReasonType], ListOf(Choice(*WEIGHTS), minimum=1, maximum=len(WEIGHTS))]
    until: Annotated[str | None, Date()]


@pages.get("", access=coach(CUSTOMERS.VIEW), template="attention.html")
async def attention_page(ctx: Context, query: _Part) -> dict[str, Any]:
    """The clients who need a coach, the most urgent first."""
    filters = _filters_of(query)
    page, count, counts, coaches, done_sessions, waiting = await gather_reads(
        ctx,
        derived_figures.list_attention(ctx, **filters, limit=_CLIENTS_PER_PAGE, after=query["after"]),
        derived_figures.count_attention(ctx, **filters),
        derived_figures.count_attention_values(ctx, **filters),
        team.list_coaches(ctx),
        list_done_sessions(ctx),
        list_waiting_by_assistant(ctx),
    )
    following = {"after": page["nextCursor"]}
    return {
        "entries": await describe_entries(ctx, page["docs"]),
        "filters": describe_filters(cast("Mapping[str, Sequence[str]]", query), counts, coaches),
        "filter_query": _filter_query(query),
        "is_filtered": _is_filtered(query),
        "previews": None,
        "done_sessions": done_sessions,
        "proposing": waiting,
        "count": count,
        "most_counted": derived_figures.MOST_COUNTED,
        "has_clients": bool(count) or await _has_clients(ctx),
        "next_url": _path(query, **following) if page["hasMore"] else None,
    }


def _filters_of(query: _AttentionFilter) -> _Filters:
    """Return the filters of a query as the services take them."""
    return {
        "reasons": query["reason"],
        "groups": query["groups"],
        "trainers": parse_trainer_ids(query["assignedTo"]),
    }


def _filter_query(query: _AttentionFilter, **more: str | None) -> str:
    """Return the query string with the filters of a query, with its question mark; empty without one."""
    return list_url("", take(_AttentionFilter, query))(**more)


def _path(query: _AttentionFilter, **more: str | None) -> str:
    """Return the path of the list with the filters of a query."""
    return _PATH + _filter_query(query, **more)


def _is_filtered(query: _AttentionFilter) -> bool:
    return any(take(_AttentionFilter, query).values())


async def _has_clients(ctx: Context) -> bool:
    return (await listing.list_customers(ctx, archived=False, page=1, size=1))["totalDocs"] > 0


@pages.get("/{customerId}", access=coach(CUSTOMERS.VIEW), template="attention.html")
async def attention_entry_page(ctx: Context, customer_id: ObjectId, query: _AttentionFilter) -> dict[str, Any]:
    """One client of the list, with what each reason is about: the part of the list that its forms change.

    Nothing is left of a client who has none of the reasons of the filter any more.
    """
    customer, count = await gather_reads(
        ctx,
        derived_figures.read_for_attention(ctx, customer_id),
        derived_figures.count_attention(ctx, **_filters_of(query)),
    )
    [described] = await describe_entries(ctx, [customer])
    reasons = [reason["type"] for reason in described["reasons"]]
    if query["reason"] and not {*query["reason"]} & {*reasons}:
        reasons = []
    today = ctx.caller.today(described["timezone"])
    return {
        "entries": [described] if reasons else [],
        "filters": [],
        "filter_query": _filter_query(query),
        "is_filtered": _is_filtered(query),
        "previews": await load_previews(ctx, customer_id, reasons, today),
        "done_sessions": [],
        "proposing": [],
        "count": count,
        "most_counted": derived_figures.MOST_COUNTED,
        "has_clients": True,
        "next_url": None,
        "path_with_query": _path(query),  # where an undo leads
    }


_post = partial(pages.post, query=_AttentionFilter, on=attention_entry_page)


@_post("/{customerId}/dismiss", access=coach(CUSTOMERS.EDIT), form=_Dismissal)
async def dismiss_attention(ctx: Context, customer_id: ObjectId, query: _AttentionFilter, form: _Dismissal) -> Redirect:
    """Dismiss reasons for the whole company, until a date or until something new happens."""
    until = form["until"]
    try:
        await attention.dismiss(ctx, customer_id, form["reason"], until=until)
    except Conflict:  # the list was shown before something changed
        return _leave(customer_id, query, "This reason no longer applies.")
    return _leave(customer_id, query, f"Dismissed until {format_date(until) if until else 'something new happens'}.")


@_post("/{customerId}/reply", access=coach(CUSTOMERS.EDIT), form=MessageText)
async def reply_to_client(ctx: Context, customer_id: ObjectId, query: _AttentionFilter, form: MessageText) -> Redirect:
    """Answer a client's messages, which count as read."""
    await conversation.mark_read(ctx, customer_id)
    await conversation.create(ctx, customer_id, {"text": form["text"]})
    await attention.renew(ctx, customer_id)
    return _leave(customer_id, query, "Message sent.")


@_post("/{customerId}/read", access=coach(CUSTOMERS.EDIT), idempotent=True)
async def mark_client_messages_read(ctx: Context, customer_id: ObjectId, query: _AttentionFilter) -> Redirect:
    """Mark a client's messages as read, for the whole company."""
    await conversation.mark_read(ctx, customer_id)
    await attention.renew(ctx, customer_id)
    return _leave(customer_id, query, "Marked as read.")


@_post("/{customerId}/responses/{responseId}/reviewed", access=coach(FORMS.EDIT), idempotent=True)
async def mark_client_response_reviewed(
    ctx: Context, customer_id: ObjectId, response_id: ObjectId, query: _AttentionFilter
) -> Redirect:
    """Mark a response of a client as reviewed."""
    await form_responses.set_reviewed(ctx, response_id, reviewed=True)
    await attention.renew(ctx, customer_id)
    return _leave(customer_id, query, "Marked as reviewed.")


def _leave(customer_id: ObjectId, query: _AttentionFilter, notice: str) -> Redirect:
    return Redirect(_path(query), notice, part=f"{_PATH}/{customer_id}{_filter_query(query)}")


_DAYS, _EVENTS, _SESSIONS = 7, 30, 12


class DoneSession(TypedDict):
    """A completed workout: the client's and the workout's name, when it was completed (UTC), and its review."""

    client: str
    workout: str
    at: datetime
    url: str


async def list_done_sessions(ctx: Context) -> list[DoneSession]:
    """Return at most 12 workouts that clients in the coach's scope completed in the last week, newest first.

    Check-ins are left out: recurring ones, and blocks with nothing but forms.
    """
    since = now() - timedelta(days=_DAYS)
    part = await activity.list_company_events(ctx, limit=_EVENTS, since=since, types=["workout_completed"])
    trained = await queries.find_trained_ids(ctx, {event["data"]["wblockId"] for event in part["docs"]})
    sessions: dict[ObjectId, DoneSession] = {}
    for event in part["docs"]:
        block_id, client = event["data"]["wblockId"], event["customer"]
        if block_id not in trained:
            continue
        sessions.setdefault(
            block_id,
            {
                "client": client["name"],
                "workout": event["data"]["blockName"],
                "at": event["date"],
                "url": review_path(client["_id"], block_id),
            },
        )
    return list(sessions.values())[:_SESSIONS]
