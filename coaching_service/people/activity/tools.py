"""What happened, for assistants: the activity feed, and the other changes of plans and records."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, cast, get_args

from marshmallow import validates_schema

from coaching_service.core import list_selection, validation
from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.database.recording import Actor
from coaching_service.core.dates import midnight
from coaching_service.core.field_schemas import query_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import arguments
from coaching_service.core.mcp.results import Answer, typed
from coaching_service.core.mcp.tools import Tools
from coaching_service.people import assistants
from coaching_service.people.account import LOAD_UNITS, convert_stored_load
from coaching_service.people.activity import models, service
from coaching_service.people.activity.models import ActivityType, ChangedEvent
from coaching_service.people.activity.service import ActivityEventPage, CompanyEventList
from coaching_service.people.changes import service as changes
from coaching_service.people.changes.models import PLACES, ChangeList, ChangeSummary, DocumentValues
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import NamedCustomer

tools = Tools()
_TYPES = get_args(ActivityType)
_OTHER = "change"  # what has no entry in the feed
_MAX_ENTRIES = 10 * arguments.MAX_TOOL_PAGE
_MAX_DESCRIBED_DOCUMENTS, _LONGEST_TEXT, _MAX_SAID = 10, 80, 6
_READ_AT_ONCE, _MAX_READS = 200, 10
_CAPITAL = re.compile("[A-Z]")
# Kinds of documents that are computed from others: their numbers say enough.
_DERIVED_KINDS = {"personal_record", "training_max", "estimated_max"}
# The figures and names in the data of entries that are not text written by people.
_PHRASES = {"wblockId": "[workout {}]", "day": "of {}", "plannedDate": "planned for {}"}
_OWN_WORDS = {"itemType", "recordType", "side", "startDate"}


class ActivityPage(arguments.ToolPage):
    """Whose activity, since when, and which page of it."""

    customerId = validation.Identifier(**arguments.optional("Without it all clients."))
    since = models.Since(
        load_default=None,
        allow_none=True,
        metadata={"description": "From this date or time (ISO 8601) on.", "maxLength": 40},
    )
    types = validation.ListOf(
        validation.Choice(*_TYPES, _OTHER),
        load_default=list,
        maximum=len(_TYPES) + 1,
        metadata={"description": f"Only these; {_OTHER}: all others, such as of plans."},
    )
    mine = validation.Boolean(load_default=False, metadata={"description": "Only your own changes."})

    @validates_schema
    def validate_depth(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raises ValidationError for a page that ends after more than 1,000 entries."""
        if data["page"] * data["pageSize"] > _MAX_ENTRIES:
            raise validation.invalid(f"must end within the first {_MAX_ENTRIES} entries", "TOO_FAR", "page")


@tools.tool("Read activity", access=coach(CUSTOMERS.VIEW), takes=ActivityPage(), returns=arguments.PageOfLines)
async def get_activity(
    ctx: Context,
    customer_id: ObjectId | None,
    since: date | datetime | None,
    types: list[str],
    page: int,
    page_size: int,
    *,
    mine: bool,
) -> Answer:
    """Read what happened, newest first, a line a call: what, for how many clients, by whom, and the changeId with which
    undo takes all of it back (first_result: a record in a new exercise)."""
    if customer_id is not None:
        await customers.get_visible(ctx, customer_id)
    about: dict[str, Any] = {"since": _to_time(ctx, since), "customer_id": customer_id}
    wanted = page * page_size + 1
    events, others = await gather_reads(
        ctx,
        _read_calls(wanted, _event_reader(ctx, types, mine=mine, **about)),
        _read_calls(wanted, _change_reader(ctx, types, mine=mine, **about)),
    )
    calls: dict[ObjectId, _Call] = {}
    for event in events:
        calls.setdefault(event["batchId"] or event["changeId"], _Call(event["date"])).events.append(event)
    for change in others:
        calls.setdefault(change["batchId"] or change["_id"], _Call(change["at"])).changes.append(change)
    entries = sorted(calls.items(), key=lambda entry: entry[1].time, reverse=True)
    shown, has_more = dict(entries[wanted - 1 - page_size : wanted - 1]), len(entries) >= wanted
    lines = await _describe_calls(ctx, shown, customer_id)
    title = "Activity" + (f" since {since.isoformat()}" if since is not None else "")
    next_page = page + 1 if has_more else None
    extent = f"page {page}, {len(lines)} entries" if lines else "none"
    more = f"; more on page {next_page}" if has_more else ""
    data = {**arguments.describe_list(title, {"nextPage": next_page}), "docs": [{"line": line} for line in lines]}
    return Answer("\n".join([f"{title}: {extent}{more}", *lines]), data)


@dataclass
class _Call:
    """What one call, form or request did: its entries of the feed and its other changes, of all its clients."""

    time: datetime
    events: list[ChangedEvent] = field(default_factory=list)
    changes: list[ChangeSummary] = field(default_factory=list)


async def _read_calls(wanted: int, read: Callable[[str | None], Awaitable[Mapping[str, Any]]]) -> list[Any]:
    """Return what `read` returns after each cursor, until it is of as many calls as wanted."""
    found, after = [], None
    for _ in range(_MAX_READS):
        part = await read(after)
        found += part["docs"]
        after = part["nextCursor"]
        if after is None or len({each["batchId"] or each.get("changeId", each.get("_id")) for each in found}) >= wanted:
            break
    return found


def _event_reader(ctx: Context, types: Sequence[str], **where: Any) -> Callable[[str | None], Awaitable[Any]]:
    wanted = cast("list[ActivityType]", [each for each in types if each != _OTHER])

    async def read(after: str | None) -> list_selection.CursorPage[ChangedEvent]:
        if types and not wanted:
            return {"docs": [], "nextCursor": None, "hasMore": False}
        return await service.list_changed_events(ctx, types=wanted, limit=_READ_AT_ONCE, after=after, **where)

    return read


def _change_reader(ctx: Context, types: Sequence[str], *, mine: bool, **where: Any) -> Callable[[str | None], Any]:
    """Return what reads the changes without an entry in the feed; those that changed no document are no entries."""
    by = {"via": "assistant", "credential_id": ctx.caller.credential_id} if mine else {}

    async def read(after: str | None) -> ChangeList:
        if types and _OTHER not in types:
            return {"docs": [], "nextCursor": None, "hasMore": False}
        more = where | by
        return await changes.list_changes(
            ctx, in_feed=False, has_documents=True, limit=_READ_AT_ONCE, after=after, **more
        )

    return read


async def _describe_calls(ctx: Context, calls: Mapping[ObjectId, _Call], customer_id: ObjectId | None) -> list[str]:
    """Return a line for each call: when, of whom, what, by whom, for how many clients, and what undoes all of it."""
    firsts = [call.changes[0] for call in calls.values() if call.changes]
    ids = list({each["changeId"] for call in calls.values() for each in call.events} | {each["_id"] for each in firsts})
    documents, names, about, credentials, counts = await gather_reads(
        ctx,
        _read_documents(ctx, firsts),
        _name_clients(ctx, firsts),
        changes.get_summaries(ctx, ids),
        assistants.name_credentials(ctx, ids),
        changes.count_clients(ctx, list(calls), await customers.select_ids_in_scope(ctx, None)),
    )
    labels, lines = _ClientLabels(), []
    for change_id, call in calls.items():
        if call.events:
            first, actor = call.events[0]["changeId"], call.events[0]["actor"]
            client = labels.label(call.events[0]["customer"])
            of_client = [event for event in call.events if event["customer"] == call.events[0]["customer"]]
            said = [_describe_event(_show_load(event, ctx.caller.load_unit)) for event in of_client[:_MAX_SAID]]
            said += [f"{len(of_client) - _MAX_SAID} more"] if len(of_client) > _MAX_SAID else []
        else:
            change = call.changes[0]
            first, actor, reference = change["_id"], change["actor"], _reference(change, names)
            client = "" if reference is None else labels.label(reference)
            said = [_describe_change(change, documents.get(first, []))]
        summary = about.get(first)
        approver = summary["approvedBy"] if summary is not None else None
        approved = f"approved by {typed(approver['name'])}" if approver is not None else ""
        if summary is not None and summary["decidedIn"] is not None:
            approved += f" {PLACES[summary['decidedIn']]}"
        operation = f"{call.changes[0]['operation']} " if not call.events else ""
        others = counts.get(change_id, 1) - 1
        facts = arguments.join_facts(
            ("" if customer_id is not None else client) + ", ".join(said),
            f"and for {others} more {'client' if others == 1 else 'clients'}" if others > 0 else "",
            f"{operation}by {_describe_actor(actor, credentials.get(first))}",
            approved,
            f"changeId {change_id}",
            summary is not None and summary["undoneBy"] and "undone",
        )
        lines.append(f"{arguments.format_time(call.time)} {facts}")
    return lines


class _ClientLabels:
    """How the lines name clients: the first line about one has the identifier, as do all if names are the same."""

    def __init__(self) -> None:
        self._ids: dict[str, ObjectId] = {}
        self._seen: set[ObjectId] = set()

    def label(self, client: NamedCustomer) -> str:
        """Return the name of a client, and the identifier if it is needed, with a space after it."""
        is_known = self._ids.setdefault(client["name"], client["_id"]) == client["_id"] and client["_id"] in self._seen
        self._seen.add(client["_id"])
        return f"{typed(client['name'])} " if is_known else f"{typed(client['name'])} [{client['_id']}] "


def _to_time(ctx: Context, since: date | datetime | None) -> datetime | None:
    if since is None or isinstance(since, datetime):
        return since
    return midnight(since, ctx.caller.company.timezone)


async def _name_clients(ctx: Context, shown: Sequence[ChangeSummary]) -> dict[ObjectId | None, str]:
    ids = {change["customerId"] for change in shown if change["customerId"] is not None}
    references = await customers.find_references(ctx, list(ids))
    return {each: reference["name"] for each, reference in references.items()}


async def _read_documents(ctx: Context, shown: Sequence[ChangeSummary]) -> dict[ObjectId, list[DocumentValues]]:
    """Return the documents with their values of changes that have few documents."""
    few = [change["_id"] for change in shown if len(change["documents"]) <= _MAX_DESCRIBED_DOCUMENTS]
    details = await gather_reads(ctx, *(changes.get_change(ctx, change_id) for change_id in few))
    return {change["_id"]: change["documents"] for change in details}


def _reference(change: ChangeSummary, names: Mapping[ObjectId | None, str]) -> NamedCustomer | None:
    client = change["customerId"]
    return None if client is None else {"_id": client, "name": names.get(client, "")}


def _show_load(event: ChangedEvent, load_unit: str) -> ChangedEvent:
    """Return an entry; of a personal record that is a load, with this load in `load_unit`."""
    data = event["data"]
    if event["type"] != "personal_record" or data["unit"] not in LOAD_UNITS or data["unit"] == load_unit:
        return event
    value = convert_stored_load(data["value"], data["unit"], load_unit)
    return {**event, "data": {**data, "value": value, "unit": load_unit}}


def _describe_actor(actor: Actor | None, credential: str | None = None) -> str:
    if actor is None:
        return "unknown"
    if credential is None or actor["type"] not in ("assistant", "key"):
        return f"{actor['type']} {typed(actor['name'])}"
    return f"{actor['type']} {typed(credential)} of {typed(actor['name'])}"


def _describe_event(event: ChangedEvent) -> str:
    data = {name: value for name, value in event["data"].items() if not isinstance(value, bool)}
    return f"{_name_type(event)} {_describe_data(data)}".rstrip()


def _name_type(event: ChangedEvent) -> str:
    """Return the type of an entry; the first results in an exercise are no records, as in the attention list."""
    return "first_result" if event["data"].get("isFirst") else event["type"]


def _describe_data(data: Mapping[str, Any]) -> str:
    parts = []
    for name, value in data.items():
        if name in _PHRASES:
            parts.append(_PHRASES[name].format(value))
        elif name == "value":
            unit = "" if data.get("unit") == "count" else data.get("unit", "")
            parts.append(f"{arguments.format_figure(value)} {unit}".strip())
        elif name == "reps" and data.get("recordType") == "most_reps":
            continue
        elif name == "measured":
            parts += [
                f"{typed(each['metricName'])} {arguments.format_figure(each['value'])} {each['unit']}" for each in value
            ]
        elif name in _OWN_WORDS or isinstance(value, int | float):
            parts.append(str(value) if name in _OWN_WORDS else f"{name} {value}")
        elif isinstance(value, str) and name != "unit":
            parts.append(arguments.typed_line(value, _LONGEST_TEXT))
    return " ".join(parts)


def _describe_change(change: ChangeSummary, documents: Sequence[DocumentValues]) -> str:
    described = Counter(filter(None, map(_describe_document, documents)))
    parts = [each if count == 1 else f"{each} ({count} times)" for each, count in described.items()]
    return change["summary"] + (f": {', '.join(parts)}" if parts else "")


def _describe_document(document: DocumentValues) -> str:
    """Return the name and date of a document that was created or deleted, and what has changed of another one."""
    before, after = document["before"] or {}, document["after"] or {}
    if document["kind"] in _DERIVED_KINDS:
        return ""
    if document["action"] == "changed":
        fields = [name for name in after if not isinstance(after[name] or before.get(name), ObjectId)]
        return ", ".join(_describe_field(name, before.get(name), after.get(name)) for name in fields)
    values = after or before
    name, day = values.get("name"), values.get("date")
    return " ".join([*([str(day)] if day else []), *([arguments.typed_line(name, _LONGEST_TEXT)] if name else [])])


def _describe_field(name: str, before: Any, after: Any) -> str:
    words = _CAPITAL.sub(lambda match: f" {match[0].lower()}", name)
    if isinstance(before, list) or isinstance(after, list):
        return f"{words}: {_describe_lists(before or [], after or [])}"
    if isinstance(before, dict) or isinstance(after, dict):
        return f"{words} changed"
    return f"{words} {_describe_value(before)} -> {_describe_value(after)}"


def _describe_lists(before: Sequence[Any], after: Sequence[Any]) -> str:
    """Return how many entries were added, changed and removed; those with identifiers are compared by them."""

    def by_key(entries: Sequence[Any]) -> dict[Any, Any]:
        return {str(each.get("_id", each)) if isinstance(each, dict) else str(each): each for each in entries}

    old, new = by_key(before), by_key(after)
    counts = {
        "added": len(new.keys() - old.keys()),
        "changed": sum(new[key] != old[key] for key in new.keys() & old.keys()),
        "removed": len(old.keys() - new.keys()),
    }
    return ", ".join(f"{count} {verb}" for verb, count in counts.items() if count) or "in another order"


def _describe_value(value: Any) -> str:
    if isinstance(value, datetime):
        return arguments.format_time(value)
    return (
        arguments.typed_line(value, _LONGEST_TEXT) if isinstance(value, str) else "-" if value is None else str(value)
    )


# --- The activity feed over REST --------------------------------------------------------------------------------------


routes = Routes("/coach/customers/{customerId}/activity-feed", tag="Activity")
company_routes = Routes("/coach/activity-feed", tag="Activity")


class _FeedPage(list_selection.AfterCursor):
    page_field = "page"


@routes.get("", access=coach(CUSTOMERS.VIEW), query=query_of(models.FeedQuery, _FeedPage)(), returns=ActivityEventPage)
async def list_activity(
    ctx: Context, customer_id: ObjectId, query: models.FeedQuery
) -> list_selection.Page[models.ActivityEvent]:
    """Read a client's activity feed, newest first."""
    part: list_selection.PartOfList = {
        "page": query["page"],
        "size": query["limit"],
        "selection": list_selection.ListSelection.of(query),
        "after": query["after"],
    }
    return await service.list_events(ctx, customer_id, part)


@company_routes.get("", access=coach(CUSTOMERS.VIEW), returns=CompanyEventList)
async def list_company_activity(
    ctx: Context, query: models.CompanyFeedQuery
) -> list_selection.CursorPage[models.CompanyEvent]:
    """Read the activity of all clients, newest first: what happened since yesterday, with client and author.

    Entries of clients that the caller may not see are left out.
    """
    return await service.list_company_events(
        ctx,
        limit=query["limit"],
        after=query["after"],
        since=query["since"],
        types=query["types"],
        customer_id=query["customerId"],
        mine=query["mine"],
    )
