"""What happened, for assistants: the activity feed, and the other changes of plans and records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple, cast, get_args

from marshmallow import validates_schema

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.recording import Actor
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.dates import midnight
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import MAX_TOOL_PAGE, ToolPage, optional
from coaching_service.core.mcp.lists import (
    PageOfLines,
    describe_list,
    format_figure,
    format_time,
    join_facts,
    typed_line,
)
from coaching_service.core.mcp.results import Answer, typed
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Boolean, Choice, Identifier, ListOf
from coaching_service.core.validation_messages import invalid
from coaching_service.people.account.load_units import LOAD_UNITS, convert_stored_load
from coaching_service.people.activity import service
from coaching_service.people.activity.models import ActivityType, ChangedEvent
from coaching_service.people.activity.tool_schemas import Since
from coaching_service.people.changes import service as changes
from coaching_service.people.changes.models import ChangeSummary, DocumentValues
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import NamedCustomer

tools = Tools()
_TYPES = get_args(ActivityType)
_OTHER = "change"  # what has no entry in the feed
_MAX_ENTRIES = 10 * MAX_TOOL_PAGE
_MAX_DESCRIBED_DOCUMENTS, _LONGEST_TEXT = 10, 80
# Kinds of documents that are computed from others: their numbers say enough.
_DERIVED_KINDS = {"personal_record", "training_max", "estimated_max"}
# The figures and names in the data of entries that are not text written by people.
_PHRASES = {"wblockId": "[workout {}]", "day": "of {}", "plannedDate": "planned for {}"}
_OWN_WORDS = {"itemType", "recordType", "side", "startDate"}


class ActivityPage(ToolPage):
    """Whose activity, since when, and which page of it."""

    customerId = Identifier(**optional("The client; without it all clients."))
    since = Since(
        load_default=None,
        allow_none=True,
        metadata={"description": "From this date or time (ISO 8601) on.", "maxLength": 40},
    )
    types = ListOf(
        Choice(*_TYPES, _OTHER),
        load_default=list,
        maximum=len(_TYPES) + 1,
        metadata={"description": f"Only these; {_OTHER}: all others, such as of plans."},
    )
    mine = Boolean(load_default=False, metadata={"description": "Only your own changes."})

    @validates_schema
    def validate_depth(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raises ValidationError for a page that ends after more than 1,000 entries."""
        if data["page"] * data["pageSize"] > _MAX_ENTRIES:
            raise invalid(f"must end within the first {_MAX_ENTRIES} entries", "TOO_FAR", "page")


@tools.tool("Read activity", access=coach(CUSTOMERS.VIEW), takes=ActivityPage(), returns=PageOfLines)
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
    """Read what happened, newest first: the feed (first_result: a record in a new exercise) and every other change,
    with its author and the changeId that undo takes."""
    if customer_id is not None:
        await customers.get_visible(ctx, customer_id)
    start = _to_time(ctx, since)
    wanted = page * page_size + 1
    events, others = await gather_reads(
        ctx,
        _list_events(ctx, types, limit=wanted, since=start, customer_id=customer_id, mine=mine),
        _list_others(ctx, types, limit=wanted, since=start, customer_id=customer_id, mine=mine),
    )
    reported = {event["changeId"] for event in events}
    others = [change for change in others if change["_id"] not in reported and change["documents"]]
    entries: list[Entry] = [*map(Entry.of_event, events), *map(Entry.of_change, others)]
    entries.sort(key=lambda entry: entry.time, reverse=True)
    shown, has_more = entries[wanted - 1 - page_size : wanted - 1], len(entries) >= wanted
    of_change = [entry.change for entry in shown if entry.change is not None]
    names, documents = await gather_reads(ctx, _name_clients(ctx, of_change), _read_documents(ctx, of_change))
    labels = _ClientLabels()
    lines = []
    for entry in shown:
        if entry.event is not None:
            event = _show_load(entry.event, ctx.caller.load_unit)
            client = labels.label(event["customer"]) if customer_id is None else ""
            lines.append(_describe_event(event, client))
        if entry.change is not None:
            reference = None if customer_id is not None else _reference(entry.change, names)
            client = "" if reference is None else labels.label(reference)
            lines.append(_describe_change(entry.change, client, documents.get(entry.change["_id"], [])))
    title = "Activity" + (f" since {since.isoformat()}" if since is not None else "")
    next_page = page + 1 if has_more else None
    extent = f"page {page}, {len(lines)} entries" if lines else "none"
    more = f"; more on page {next_page}" if has_more else ""
    data = {**describe_list(title, {"nextPage": next_page}), "docs": [{"line": line} for line in lines]}
    return Answer("\n".join([f"{title}: {extent}{more}", *lines]), data)


async def _list_events(ctx: Context, types: Sequence[str], **where: Any) -> Sequence[ChangedEvent]:
    wanted = cast("list[ActivityType]", [each for each in types if each != _OTHER])
    if types and not wanted:
        return []
    return (await service.list_changed_events(ctx, types=wanted, **where))["docs"]


async def _list_others(ctx: Context, types: Sequence[str], *, mine: bool, **where: Any) -> Sequence[ChangeSummary]:
    """Return the changes, from which those with an entry in the feed are still to be left out."""
    if types and _OTHER not in types:
        return []
    part = await changes.list_changes(
        ctx,
        in_feed=False if types else None,
        via="assistant" if mine else None,
        credential_id=ctx.caller.credential_id if mine else None,
        **where,
    )
    return part["docs"]


class Entry(NamedTuple):
    """An entry of the feed, or a change that has none."""

    time: datetime
    event: ChangedEvent | None = None
    change: ChangeSummary | None = None

    @classmethod
    def of_event(cls, event: ChangedEvent) -> Entry:
        """Return the entry of the feed."""
        return cls(event["date"], event=event)

    @classmethod
    def of_change(cls, change: ChangeSummary) -> Entry:
        """Return the change as an entry."""
        return cls(change["at"], change=change)


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


def _describe_actor(actor: Actor | None) -> str:
    return f"{actor['type']} {typed(actor['name'])}" if actor else "unknown"


def _describe_event(event: ChangedEvent, client: str) -> str:
    data = {name: value for name, value in event["data"].items() if not isinstance(value, bool)}
    facts = join_facts(
        f"{client}{_name_type(event)} {_describe_data(data)}".rstrip(),
        f"by {_describe_actor(event['actor'])}",
        f"changeId {event['changeId']}",
    )
    return f"{format_time(event['date'])} {facts}"


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
            parts.append(f"{format_figure(value)} {unit}".strip())
        elif name == "reps" and data.get("recordType") == "most_reps":
            continue
        elif name == "measured":
            parts += [f"{typed(each['metricName'])} {format_figure(each['value'])} {each['unit']}" for each in value]
        elif name in _OWN_WORDS or isinstance(value, int | float):
            parts.append(str(value) if name in _OWN_WORDS else f"{name} {value}")
        elif isinstance(value, str) and name != "unit":
            parts.append(typed_line(value, _LONGEST_TEXT))
    return " ".join(parts)


def _describe_change(change: ChangeSummary, client: str, documents: Sequence[DocumentValues]) -> str:
    described = ", ".join(filter(None, map(_describe_document, documents)))
    facts = join_facts(
        f"{client}{change['summary']}" + (f": {described}" if described else ""),
        f"{change['operation']} by {_describe_actor(change['actor'])}",
        f"changeId {change['_id']}",
        change["undoneBy"] and "undone",
    )
    return f"{format_time(change['at'])} {facts}"


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
    return " ".join([*([str(day)] if day else []), *([typed_line(name, _LONGEST_TEXT)] if name else [])])


def _describe_field(name: str, before: Any, after: Any) -> str:
    if isinstance(before, dict | list) or isinstance(after, dict | list):
        return name
    return f"{name} {_describe_value(before)} -> {_describe_value(after)}"


def _describe_value(value: Any) -> str:
    return typed_line(value, _LONGEST_TEXT) if isinstance(value, str) else "-" if value is None else str(value)
