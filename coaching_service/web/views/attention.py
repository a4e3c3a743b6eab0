"""The start page: the clients who need a coach, and why, as a list to work through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from typing import Annotated, Any, NamedTuple, TypedDict, cast

from coaching_service.core.auth import CUSTOMERS, FORMS, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.database.documents import now
from coaching_service.core.dates import local_date
from coaching_service.core.errors import Conflict
from coaching_service.core.fields import Default, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, Date, ListOf
from coaching_service.people import team
from coaching_service.people.activity import service as activity
from coaching_service.people.customers import derived_figures
from coaching_service.people.customers import models as customer_models
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import WEIGHTS
from coaching_service.people.file_links import file_url
from coaching_service.progress import form_checks, form_responses, notes, personal_records
from coaching_service.progress.attention import service as attention
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.conversation.messages import MessageText
from coaching_service.training.workouts.reports import blocks as block_reports
from coaching_service.web import pages as web_pages
from coaching_service.web.formatting import format_date, quantity
from coaching_service.web.views.assistants import list_waiting_by_assistant
from coaching_service.web.views.customer_layout import customer_path, describe_present, review_path, week_path
from coaching_service.web.views.customers import parse_trainer_ids
from coaching_service.web.views.messages import is_unread, remind

# --- Why clients need a coach, in words, with the pages on which a coach deals with the reasons -----------------------


_RESPONSES = "/app/inbox#responses"


class _Kind(NamedTuple):
    """A reason: its name in the filter of the list, its icon, and what is counted of it, if anything.

    `tab`: of the client's page on which a coach deals with it; None: the calendar, on its day.
    """

    name: str
    icon: str
    tab: str | None = None
    counted: str = ""


_KINDS: Mapping[customer_models.ReasonType, _Kind] = {
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


async def describe_entries(ctx: Context, listed: Sequence[customer_models.Customer]) -> list[dict[str, Any]]:
    """Describe clients with the fields of the attention list."""
    today_of = {each["_id"]: ctx.caller.today(each["timezone"]) for each in listed}
    absences = await describe_present(ctx, today_of)
    described = []
    for each in listed:
        entry, today, photo = attention.present(ctx, each), today_of[each["_id"]], each["profilePhoto"]
        timezone, absence = each["timezone"] or ctx.caller.company.timezone, absences.get(each["_id"], "")
        reasons: list[dict[str, Any]] = []  # in words, with the page of the client on which a coach deals with each
        for reason in entry["reasons"]:
            name, kind, count = reason["type"], _KINDS[reason["type"]], reason["count"]
            text = quantity(count, kind.counted) if kind.counted else kind.name
            day = local_date(reason["since"], timezone)
            when = _short(day, today) if name in attention.DATED_BY_NEWEST else f"since {_short(day, today)}"
            if name == "program_ending":  # which the reason has a week before
                day += timedelta(days=attention.ENDING_DAYS)
                when = f"on {_short(day, today)}"
            url = week_path(each["_id"], str(day)) if kind.tab is None else customer_path(each["_id"], kind.tab)
            if name == "check_in_to_review":
                text, url = f"{quantity(count, 'check-in')} to review", _RESPONSES
            elif absence and name == "unavailable":
                text = absence
            shown = {"type": name, "text": text, "when": when, "url": url, "icon": kind.icon}
            reasons.append({**shown, "hasPreview": _may_preview(ctx, name)})
        described.append(
            {
                "entry": entry,
                "name": customers.full_name(each),
                "timezone": timezone,
                "portrait": file_url(ctx, photo["thumbnailId"] if photo else None),
                "reasons": reasons,
                "snoozes": [(str(today + timedelta(days=days)), label) for days, label in _SNOOZES],
            }
        )
    return described


def _short(day: date, today: date) -> str:
    return f"{day.day} {day:%b}" if day.year == today.year else f"{day.day} {day:%b %Y}"


def _describe_filters(
    query: Mapping[str, Sequence[str]], counts: customer_models.AttentionCounts, coaches: Sequence[team.Coach]
) -> list[dict[str, Any]]:
    """Describe the filters of the list with what each value would show; one with a single value is left out."""
    trainer_counts = {
        customer_models.NO_TRAINER if each is None else str(each): n for each, n in counts["trainers"].items()
    }
    trainers = [(str(each["_id"]), each["name"]) for each in coaches] + [(customer_models.NO_TRAINER, "Unassigned")]
    filters = (
        ("reason", "Reason", [(name, kind.name) for name, kind in _KINDS.items()], counts["reasons"]),
        ("assignedTo", "Trainer", trainers, trainer_counts),
        ("groups", "Group", [(name, name) for name in sorted({*counts["groups"], *query["groups"]})], counts["groups"]),
    )
    described: list[dict[str, Any]] = []
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
# The reasons with a preview, each with the permission that its preview needs.
_PREVIEWED: Mapping[customer_models.ReasonType, str] = {
    "health_note": CUSTOMERS.VIEW,
    "unread_message": CUSTOMERS.VIEW,
    "check_in_to_review": FORMS.VIEW,
    "check_in_overdue": FORMS.VIEW,
    "missed_workout": CUSTOMERS.VIEW,
    "personal_record": CUSTOMERS.VIEW,
}


def _may_preview(ctx: Context, reason: customer_models.ReasonType) -> bool:
    return _PREVIEWED.get(reason) in ctx.caller.permissions


async def _load_preview(
    ctx: Context, customer_id: ObjectId, reason: customer_models.ReasonType, today: date
) -> Sequence[Any]:
    """Return what one of a client's reasons that has a preview is about. `today` is the client's."""
    if reason == "unread_message":
        page = await conversation.list_messages(ctx, customer_id, {"limit": _MESSAGES, "after": None})
        return [message for message in page["docs"][::-1] if is_unread(message)]
    if reason == "health_note":
        return [note for note in await notes.list_of_client(ctx, customer_id) if note["isHealth"]][:_OTHERS]
    if reason == "check_in_to_review":
        of_client: form_responses.InboxQuery = {"limit": _OTHERS, "after": None, "customerId": customer_id}
        return (await form_responses.list_received(ctx, {**of_client, "reviewed": False}))["docs"]
    if reason == "check_in_overdue":
        overdue: form_responses.FormRequestQuery = {"limit": _OTHERS, "after": None, "customerId": customer_id}
        return (await form_responses.list_pending(ctx, {**overdue, "overdue": True}))["docs"]
    if reason == "personal_record":
        first = str(today - timedelta(days=attention.RECORD_DAYS - 1))
        return await personal_records.list_achieved(ctx, customer_id, first, str(today))
    start, end = today - timedelta(days=attention.MISSED_DAYS - 1), today - timedelta(days=1)
    days = await block_reports.list_days(ctx, customer_id, start, end, today=today)
    missed = [block for day in days if day["absence"] is None for block in day["blocks"] if block["isWorkout"]]
    return [block for block in missed if block["status"] != "done"]


pages = web_pages.Pages("/app/attention", locks="customer")
_PATH = "/app/attention"
_CLIENTS_PER_PAGE = 8
# If more than a few clients have only other reasons, these have no entries: a line says how many have each reason.
_MOST_SINGLE = 5
_URGENT: list[customer_models.ReasonType] = [
    *("health_note", "erasure_requested", "unread_message", "check_in_to_review"),
    *("check_in_overdue", "missed_workout", "inactive"),
]


class _AttentionFilter(TypedDict):
    """The filters of the list, as in REST; they combine with AND."""

    reason: Annotated[list[customer_models.ReasonType], ListOf(Choice(*WEIGHTS), maximum=len(WEIGHTS)), Default(list)]
    assignedTo: web_pages.FilterValues
    groups: web_pages.FilterValues


class _Part(_AttentionFilter, web_pages.PartQuery):
    """A part of the list."""


class _Dismissal(TypedDict):
    """The reasons to dismiss, and the date until which they are; without one until something new happens."""

    reason: Annotated[list[customer_models.ReasonType], ListOf(Choice(*WEIGHTS), minimum=1, maximum=len(WEIGHTS))]
    until: Annotated[str | None, Date()]


@pages.get("", access=coach(CUSTOMERS.VIEW), template="attention.html")
async def attention_page(ctx: Context, query: _Part) -> dict[str, Any]:
    """The clients who need a coach, the most urgent first; many of lesser reasons in a line for each reason."""
    trainers, groups, chosen = parse_trainer_ids(query["assignedTo"]), query["groups"], query["reason"]
    count_clients = partial(derived_figures.count_attention, ctx, groups=groups, trainers=trainers)
    urgent = chosen or _URGENT
    count, urgent_count = await gather_reads(ctx, count_clients(reasons=chosen), count_clients(reasons=urgent))
    has_lines = count - urgent_count > _MOST_SINGLE
    page, counts, coaches, done_sessions, waiting = await gather_reads(
        ctx,
        derived_figures.list_attention(
            ctx,
            reasons=urgent if has_lines else chosen,
            groups=groups,
            trainers=trainers,
            limit=_CLIENTS_PER_PAGE,
            after=query["after"],
        ),
        derived_figures.count_attention_values(ctx, reasons=chosen, groups=groups, trainers=trainers),
        team.list_coaches(ctx),
        _list_done_sessions(ctx),
        list_waiting_by_assistant(ctx),
    )
    lesser = sorted((each for each in counts["reasons"] if each not in _URGENT), key=lambda each: -WEIGHTS[each])
    return {
        "entries": await describe_entries(ctx, page["docs"]),
        "filters": _describe_filters(cast("Mapping[str, Sequence[str]]", query), counts, coaches),
        "lines": [
            {
                "text": _KINDS[each].name,
                "icon": _KINDS[each].icon,
                "count": counts["reasons"][each],
                "url": web_pages.list_url(_PATH, take(_AttentionFilter, query))(reason=[each]),
            }
            for each in (lesser if has_lines else ())
        ],
        "filter_query": _filter_query(query),
        "is_filtered": any(take(_AttentionFilter, query).values()),
        "previews": None,
        "done_sessions": done_sessions,
        "proposing": waiting,
        "count": count,
        "most_counted": derived_figures.MOST_COUNTED,
        "has_clients": count > 0
        or (await customers.list_customers(ctx, archived=False, page=1, size=1))["totalDocs"] > 0,
        "next_url": _path(query, after=page["nextCursor"]) if page["hasMore"] else None,
    }


def _filter_query(query: _AttentionFilter, **more: str | None) -> str:
    """Return the query string with the filters of a query, with its question mark; empty without one."""
    return web_pages.list_url("", take(_AttentionFilter, query))(**more)


def _path(query: _AttentionFilter, **more: str | None) -> str:
    """Return the path of the list with the filters of a query."""
    return _PATH + _filter_query(query, **more)


@pages.get("/{customerId}", access=coach(CUSTOMERS.VIEW), template="attention.html")
async def attention_entry_page(ctx: Context, customer_id: ObjectId, query: _AttentionFilter) -> dict[str, Any]:
    """One client of the list, with what each reason is about: the part of the list that its forms change.

    Nothing is left of a client who has none of the reasons of the filter any more.
    """
    customer, count = await gather_reads(
        ctx,
        derived_figures.read_for_attention(ctx, customer_id),
        derived_figures.count_attention(
            ctx,
            reasons=query["reason"],
            groups=query["groups"],
            trainers=parse_trainer_ids(query["assignedTo"]),
        ),
    )
    [described] = await describe_entries(ctx, [customer])
    reasons = [reason["type"] for reason in described["reasons"]]
    if query["reason"] and not {*query["reason"]} & {*reasons}:
        reasons = []
    shown, today = [each for each in reasons if _may_preview(ctx, each)], ctx.caller.today(described["timezone"])
    loaded = await gather_reads(ctx, *(_load_preview(ctx, customer_id, each, today) for each in shown))
    previews = dict(zip(shown, loaded, strict=True))
    to_review = [each["_id"] for each in previews.get("check_in_to_review", ())]
    return {
        **dict.fromkeys(("filters", "lines", "done_sessions", "proposing"), ()),
        "entries": [described] if reasons else [],
        "filter_query": _filter_query(query),
        "is_filtered": any(take(_AttentionFilter, query).values()),
        "previews": previews,
        "photos": await form_checks.show_of_responses(ctx, to_review) if to_review else {},
        "count": count,
        "most_counted": derived_figures.MOST_COUNTED,
        "has_clients": True,
        "next_url": None,
        "path_with_query": _path(query),  # where an undo leads
    }


_post = partial(pages.post, query=_AttentionFilter, on=attention_entry_page)


@_post("/{customerId}/dismiss", access=coach(CUSTOMERS.EDIT), form=_Dismissal)
async def dismiss_attention(
    ctx: Context, customer_id: ObjectId, query: _AttentionFilter, form: _Dismissal
) -> web_pages.Redirect:
    """Dismiss reasons for the whole company, until a date or until something new happens."""
    until = form["until"]
    try:
        await attention.dismiss(ctx, customer_id, form["reason"], until=until)
    except Conflict:  # the list was shown before something changed
        return _leave(customer_id, query, "This reason no longer applies.")
    return _leave(customer_id, query, f"Dismissed until {format_date(until) if until else 'something new happens'}.")


@_post("/{customerId}/reply", access=coach(CUSTOMERS.EDIT), form=MessageText)
async def reply_to_client(
    ctx: Context, customer_id: ObjectId, query: _AttentionFilter, form: MessageText
) -> web_pages.Redirect:
    """Answer a client's messages, which count as read."""
    await conversation.mark_read(ctx, customer_id)
    await conversation.create(ctx, customer_id, {"text": form["text"]})
    await attention.renew(ctx, customer_id)
    return _leave(customer_id, query, "Message sent.")


@_post("/{customerId}/read", access=coach(CUSTOMERS.EDIT), idempotent=True)
async def mark_client_messages_read(ctx: Context, customer_id: ObjectId, query: _AttentionFilter) -> web_pages.Redirect:
    """Mark a client's messages as read, for the whole company."""
    await conversation.mark_read(ctx, customer_id)
    await attention.renew(ctx, customer_id)
    return _leave(customer_id, query, "Marked as read.")


@_post("/{customerId}/responses/{responseId}/reviewed", access=coach(FORMS.EDIT), idempotent=True)
async def mark_client_response_reviewed(
    ctx: Context, customer_id: ObjectId, response_id: ObjectId, query: _AttentionFilter
) -> web_pages.Redirect:
    """Mark a response of a client as reviewed."""
    await form_responses.set_reviewed(ctx, response_id, {"reviewed": True})
    await attention.renew(ctx, customer_id)
    return _leave(customer_id, query, "Marked as reviewed.")


@_post("/{customerId}/responses/{responseId}/reply", access=coach(CUSTOMERS.EDIT, FORMS.EDIT), form=MessageText)
async def reply_to_response(
    ctx: Context, customer_id: ObjectId, response_id: ObjectId, query: _AttentionFilter, form: MessageText
) -> web_pages.Redirect:
    """Answer a response of a client, which is then reviewed."""
    await conversation.create(ctx, customer_id, {"text": form["text"]})
    await form_responses.set_reviewed(ctx, response_id, {"reviewed": True})
    await attention.renew(ctx, customer_id)
    return _leave(customer_id, query, "Message sent, and marked as reviewed.")


@_post("/{customerId}/remind", access=coach(CUSTOMERS.EDIT, FORMS.VIEW), idempotent=True)
async def remind_client(ctx: Context, customer_id: ObjectId, query: _AttentionFilter) -> web_pages.Redirect:
    """Remind a client of the forms without an answer."""
    return _leave(customer_id, query, await remind(ctx, customer_id))


def _leave(customer_id: ObjectId, query: _AttentionFilter, notice: str) -> web_pages.Redirect:
    return web_pages.Redirect(_path(query), notice, part=f"{_PATH}/{customer_id}{_filter_query(query)}")


_DAYS, _EVENTS, _SESSIONS = 7, 30, 12


async def _list_done_sessions(ctx: Context) -> list[dict[str, Any]]:
    """Return at most 12 workouts that clients in the coach's scope completed in the last week, newest first.

    Check-ins are left out: recurring ones, and blocks with nothing but forms.
    """
    since = now() - timedelta(days=_DAYS)
    part = await activity.list_company_events(ctx, limit=_EVENTS, since=since, types=["workout_completed"])
    trained = await block_reports.find_trained_ids(ctx, {event["data"]["wblockId"] for event in part["docs"]})
    sessions: dict[ObjectId, dict[str, Any]] = {}
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
