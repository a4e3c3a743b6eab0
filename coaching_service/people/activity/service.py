"""The activity feed of a client and of all: the entries that the change log has for it.

The feed has names of its own for the types of the log's events. An entry may hold names and texts; the event that is
recorded with it has only identifiers, dates and figures.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Annotated, Any, Literal, NotRequired, TypedDict, cast, get_args

from marshmallow import Schema, fields, validates_schema

from coaching_service.core import list_selection, mcp, validation
from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.changes import history as feed
from coaching_service.core.changes.models import CompanyFeedItem
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.database.recording import FeedEntry, LoggedEvent, RemovedFeedEntries
from coaching_service.core.dates import midnight
from coaching_service.core.events import EventValue
from coaching_service.core.fields import Description, Optional, Variant, names_of, output_of, query_of, take
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import Answer, Tools, typed
from coaching_service.core.validation import Choice, Date
from coaching_service.people import assistants
from coaching_service.people.account import LOAD_UNITS, convert_stored_load
from coaching_service.people.activity import models
from coaching_service.people.changes import events as change_events
from coaching_service.people.changes import service as changes
from coaching_service.people.changes.models import PLACES, ChangeSummary, DocumentValues, list_hidden_types
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import NamedCustomer

# The identifier in an event that the entry has only as its source.
_SOURCE_FIELDS: dict[models.ActivityType, str] = {
    "personal_record": "recordId",
    "program_assigned": "assignmentId",
}


async def record_event(
    ctx: Context,
    activity_type: models.ActivityType,
    customer_id: ObjectId,
    source_id: ObjectId,
    how: Literal["new", "first", "restored"] = "new",
    fields: Sequence[str] = (),
    /,
    **data: object,
) -> None:
    """Report an event by the caller with its entry in a client's feed, in the caller's transaction.

    The entry replaces an entry of the same type about the same source document; a `first` one is left out if there is
    one, and a `restored` one is shown again by an undo. An `.updated` event has the names of the `fields` that changed.
    """
    event_type = models.EVENT_TYPE_OF[activity_type]
    names = names_of(change_events.data_of(event_type))
    renamed = {"date" if name == "day" else name: cast("EventValue", value) for name, value in data.items()}
    event_data = {name: value for name, value in renamed.items() if name in names}
    if fields:
        event_data["fields"] = list(fields)
    if activity_type in _SOURCE_FIELDS:
        event_data[_SOURCE_FIELDS[activity_type]] = source_id
    document_id = cast("ObjectId", data.get("wblockId", source_id))
    if activity_type in ("form_submitted", "metric_recorded") and "witemId" in data:
        item_data = {name: value for name, value in event_data.items() if name != "responseId"}
        ctx.changes.events.append(LoggedEvent("item.logged", customer_id, item_data, document_id))
    feed_entry = None if how == "restored" else FeedEntry(source_id, data, is_first=how == "first")
    ctx.changes.events.append(LoggedEvent(event_type, customer_id, event_data, document_id, feed_entry))


async def correct_events(
    ctx: Context,
    activity_types: Collection[models.ActivityType],
    customer_id: ObjectId,
    source_ids: Collection[ObjectId],
    **data: object,
) -> None:
    """Set fields of the data of entries about source documents, in the caller's transaction; their dates stay."""
    types = [models.EVENT_TYPE_OF[each] for each in activity_types]
    await feed.correct_feed_entries(ctx, customer_id, [*source_ids], types, data)


async def delete_events(
    ctx: Context, customer_id: ObjectId, source_id: ObjectId, *activity_types: models.ActivityType
) -> None:
    """Remove entries about a source document, in the caller's transaction."""
    types = tuple(models.EVENT_TYPE_OF[each] for each in activity_types)
    ctx.changes.removed_entries.append(RemovedFeedEntries(customer_id, source_id, types))


async def create_many(ctx: Context, entries: Sequence[models.ImportedEvent]) -> None:
    """Add entries with their own dates, about source documents without entries of the same types: for imports."""
    for entry in entries:
        imported = FeedEntry(entry["sourceId"], entry["data"], entry["date"], entry["actor"])
        ctx.changes.events.append(
            LoggedEvent(models.EVENT_TYPE_OF[entry["type"]], entry["customerId"], {}, None, imported)
        )


async def list_attributed_events(
    ctx: Context,
    customer_id: ObjectId,
    *,
    page: int,
    size: int,
    selection: list_selection.ListSelection = list_selection.ALL_ENTRIES,
    after: str | None = None,
) -> list_selection.Page[models.AttributedEvent]:
    """Return one page of a client's feed with the author of each entry, newest first, or those after a cursor.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    await customers.get_visible(ctx, customer_id)
    filters = {"customerId": customer_id, **selection.for_cursor()}
    list_part = list_selection.ListPart(
        ctx, "client-feed", filters, feed.COMPANY_FEED_ORDER, page=page, size=size, after=after
    )
    stored, total = await feed.find_feed_page(ctx, customer_id, list_part, selection, list_hidden_types(ctx))
    return list_part.present(stored, total, _attributed_event)


def _attributed_event(stored: CompanyFeedItem) -> models.AttributedEvent:
    entry = stored["feed"]
    return {
        "_id": entry["_id"],
        "type": models.ACTIVITY_TYPE_OF[entry["type"]],
        "date": stored["feedAt"],
        "data": entry["data"],
        "actor": stored["actor"],
    }


async def list_company_events(ctx: Context, **which: Any) -> list_selection.CursorPage[models.CompanyEvent]:
    """Return what `list_changed_events` returns for the same arguments, without the changes."""
    part = await list_changed_events(ctx, **which)
    docs = [take(models.CompanyEvent, event) for event in part["docs"]]
    return {"docs": docs, "nextCursor": part["nextCursor"], "hasMore": part["hasMore"]}


async def list_changed_events(
    ctx: Context,
    *,
    limit: int,
    after: str | None = None,
    since: datetime | None = None,
    types: Sequence[models.ActivityType] = (),
    customer_id: ObjectId | None = None,
    mine: bool = False,
) -> list_selection.CursorPage[models.ChangedEvent]:
    """Return part of the feed of all clients in the coach's scope, newest first, with the change that each is from.

    Only of `types` (empty: all), recorded at `since` or later (UTC), of one client, or `mine`: made with the key, grant
    or session of this request. A client that does not exist or is out of scope has no entries. Raises InvalidFields if
    `after` is not a cursor of this list with the same filters.
    """
    credential_id = ctx.caller.credential_id if mine else None
    filters = {"since": since, "types": sorted(set(types)), "customerId": customer_id, "credentialId": credential_id}
    list_part = list_selection.ListPart(ctx, "activity-feed", filters, feed.COMPANY_FEED_ORDER, size=limit, after=after)
    hidden = list_hidden_types(ctx)
    wanted = [models.EVENT_TYPE_OF[each] for each in types or (models.EVENT_TYPE_OF if hidden else ())]
    shown = [each for each in wanted if each not in hidden]
    if wanted and not shown:
        return {"docs": [], "nextCursor": None, "hasMore": False}
    stored = await feed.find_company_feed(
        ctx,
        list_part.condition(),
        since=since,
        types=shown,
        customer_ids=await customers.select_ids_in_scope(ctx, customer_id),
        credential_id=credential_id,
        limit=limit + 1,
    )
    part = list_part.by_cursor(stored, lambda entry: entry)
    references = await customers.find_references(ctx, list({entry["customerId"] for entry in part["docs"]}))
    docs: list[models.ChangedEvent] = [
        {
            **_attributed_event(entry),
            "changeId": entry["_id"],
            "batchId": entry.get("batchId"),
            "customer": references[entry["customerId"]],
        }
        for entry in part["docs"]
        if entry["customerId"] in references  # the client may be being erased
    ]
    return {"docs": docs, "nextCursor": part["nextCursor"], "hasMore": part["hasMore"]}


# --- The data of each type of entry of the activity feed: what services record, and what interfaces return ------------


class WorkoutEventData(TypedDict):
    """The workout block that was completed or added."""

    wblockId: ObjectId
    blockName: Annotated[str, Description("The name of the block.")]
    day: Annotated[str, Date(), Description("The date of the session.")]


class MovedWorkoutEventData(WorkoutEventData):
    """The workout block that the client moved to another day."""

    plannedDate: Annotated[str, Date(), Description("The date for which the coach had planned it.")]


class ItemEventData(WorkoutEventData, change_events.LoggedItem):
    """The workout item that was logged."""

    itemName: NotRequired[
        Annotated[str, Description("The name of the item, such as the name of its exercise."), Optional]
    ]


class FormEventData(ItemEventData):
    """The workout item whose form was answered."""

    responseId: NotRequired[Annotated[ObjectId | None, Description("The response; null without an answer."), Optional]]


class MeasuredValue(TypedDict):
    """A value that was recorded for a metric."""

    metricName: Annotated[str, Description("The name of the metric.")]
    unit: Annotated[str, Description("The symbol of the unit.")]
    value: float


class MetricEventData(TypedDict):
    """The value or values that were recorded: one for a metric, or those in the log of a workout item."""

    day: Annotated[str, Date(), Description("The date of the values.")]
    metricId: NotRequired[Annotated[ObjectId, Optional]]
    metricName: NotRequired[Annotated[str, Description("The name of the metric."), Optional]]
    unit: NotRequired[Annotated[str, Description("The symbol of the unit."), Optional]]
    value: NotRequired[Annotated[float, Optional]]
    wblockId: NotRequired[Annotated[ObjectId, Optional]]
    blockName: NotRequired[Annotated[str, Description("The name of the block."), Optional]]
    witemId: NotRequired[Annotated[ObjectId, Optional]]
    itemType: NotRequired[Annotated[str, Description("`METRICS`."), Optional]]
    itemName: NotRequired[Annotated[str, Description("The name of the metric set."), Optional]]
    measured: NotRequired[Annotated[list[MeasuredValue], Description("The values in the log of an item."), Optional]]


class PhotoEventData(change_events.PhotoSide):
    """The progress photo that was added."""

    day: Annotated[str, Date(), Description("The date of the photos.")]


class PlanEventData(change_events.PlanNotificationData):
    """The nutrition plan that was uploaded."""

    fileName: str


class RecordEventData(TypedDict):
    """The personal record."""

    exerciseId: ObjectId
    exerciseName: str
    recordType: Annotated[models.RecordType, Description("The type of record.")]
    value: Annotated[float, Description("The value, in `unit`.")]
    unit: str
    reps: int | None
    meters: NotRequired[Annotated[float, Description("The distance, only of `fastest`."), Optional]]
    day: Annotated[str, Date(), Description("The date of the record.")]
    isFirst: NotRequired[
        Annotated[
            bool,
            Description(
                "Whether the exercise was done for the first time, so that nothing was improved; missing in older "
                "entries."
            ),
            Optional,
        ]
    ]


class NoteEventData(change_events.NoteNotificationData):
    """The note that was added."""

    text: Annotated[str, Description("The beginning of the note, as plain text.")]


class ProgramEventData(change_events.ProgramNotificationData):
    """The program that was assigned."""

    programName: Annotated[str, Description("The name of the program.")]
    startDate: Annotated[str, Date(), Description("The date of its first day.")]
    blocks: int


_DATA: Mapping[models.ActivityType, type] = {
    "workout_completed": WorkoutEventData,
    "item_logged": ItemEventData,
    "form_submitted": FormEventData,
    "metric_recorded": MetricEventData,
    "photo_added": PhotoEventData,
    "plan_uploaded": PlanEventData,
    "personal_record": RecordEventData,
    "note_added": NoteEventData,
    "program_assigned": ProgramEventData,
    "workout_moved": MovedWorkoutEventData,
    "workout_added": WorkoutEventData,
}
_EVENT = output_of(models.ActivityEvent)
_COMPANY_EVENT = output_of(models.CompanyEvent, first=("customer", "actor"))


def _events(base: type[Schema], name: str) -> fields.Field[list[Any]]:
    """Return the field of events, with a schema of each type, such as `WorkoutCompletedEvent`."""
    schemas: dict[str, type[Schema]] = {}
    for each in get_args(models.ActivityType):
        data = {"type": Choice(each), "data": fields.Nested(output_of(_DATA[each]))}
        about = {"__doc__": f"An event of the type `{each}`."}
        schemas[each] = type("".join(word.capitalize() for word in each.split("_")) + name, (base,), about | data)
    return fields.List(Variant(schemas))


ActivityEventPage = list_selection.part_schema(
    "ActivityEventPage", list_selection.PagePosition, _events(_EVENT, "Event"), "A page of the activity feed."
)
CompanyEventList = list_selection.part_schema(
    "CompanyEventList",
    list_selection.CursorPosition,
    _events(_COMPANY_EVENT, "CompanyEvent"),
    "A part of the activity feed of all clients.",
)


# --- What happened, for assistants: the activity feed, and the other changes of plans and records ---------------------


tools = Tools()
_TYPES = get_args(models.ActivityType)
_OTHER = "change"  # what has no entry in the feed
_MAX_ENTRIES = 10 * mcp.MAX_TOOL_PAGE
_MAX_DESCRIBED_DOCUMENTS, _LONGEST_TEXT, _MAX_SAID = 10, 80, 6
_READ_AT_ONCE, _MAX_READS = 200, 10
_CAPITAL = re.compile("[A-Z]")
# Kinds of documents that are computed from others: their numbers say enough.
_DERIVED_KINDS = {"personal_record", "training_max", "estimated_max"}
# The figures and names in the data of entries that are not text written by people.
_PHRASES = {"wblockId": "[workout {}]", "day": "of {}", "plannedDate": "planned for {}"}
_OWN_WORDS = {"itemType", "recordType", "side", "startDate"}


class ActivityPage(mcp.ToolPage):
    """Whose activity, since when, and which page of it."""

    customerId = validation.Identifier(**mcp.optional("Without it all clients."))
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


@tools.tool("Read activity", access=coach(CUSTOMERS.VIEW), takes=ActivityPage(), returns=mcp.Lines)
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
    since_time = since
    if since is not None and not isinstance(since, datetime):
        since_time = midnight(since, ctx.caller.company.timezone)
    about: dict[str, Any] = {"since": since_time, "customer_id": customer_id, "limit": _READ_AT_ONCE}
    of_feed = cast("list[models.ActivityType]", [each for each in types if each != _OTHER])
    by = {"via": "assistant", "credential_id": ctx.caller.credential_id} if mine else {}
    not_in_feed = about | by | {"in_feed": False, "has_documents": True}
    wanted = page * page_size + 1
    events, others = await gather_reads(
        ctx,
        _read_calls(
            wanted if of_feed or not types else 0,
            lambda after: list_changed_events(ctx, types=of_feed, after=after, mine=mine, **about),
        ),
        # Changes without an entry in the feed; those that changed no document are no entries.
        _read_calls(
            wanted if _OTHER in types or not types else 0,
            lambda after: changes.list_changes(ctx, after=after, **not_in_feed),
        ),
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
    data = {**mcp.describe_list(title, {"nextPage": next_page}), "docs": [{"line": line} for line in lines]}
    return Answer("\n".join([f"{title}: {extent}{more}", *lines]), data)


@dataclass
class _Call:
    """What one call, form or request did: its entries of the feed and its other changes, of all its clients."""

    time: datetime
    events: list[models.ChangedEvent] = field(default_factory=list)
    changes: list[ChangeSummary] = field(default_factory=list)


async def _read_calls(wanted: int, read: Callable[[str | None], Awaitable[Mapping[str, Any]]]) -> list[Any]:
    """Return what `read` returns after each cursor, until it is of as many calls as wanted."""
    found, after = [], None
    for _ in range(_MAX_READS if wanted else 0):
        part = await read(after)
        found += part["docs"]
        after = part["nextCursor"]
        if after is None or len({each["batchId"] or each.get("changeId", each.get("_id")) for each in found}) >= wanted:
            break
    return found


async def _describe_calls(ctx: Context, calls: Mapping[ObjectId, _Call], customer_id: ObjectId | None) -> list[str]:
    """Return a line for each call: when, of whom, what, by whom, for how many clients, and what undoes all of it."""
    firsts = [call.changes[0] for call in calls.values() if call.changes]
    ids = list({each["changeId"] for call in calls.values() for each in call.events} | {each["_id"] for each in firsts})
    few = [change["_id"] for change in firsts if len(change["documents"]) <= _MAX_DESCRIBED_DOCUMENTS]
    clients = {change["customerId"] for change in firsts if change["customerId"] is not None}
    details = await gather_reads(ctx, *(changes.get_change(ctx, change_id) for change_id in few))
    documents = {change["_id"]: change["documents"] for change in details}
    references, about, credentials, counts = await gather_reads(
        ctx,
        customers.find_references(ctx, list(clients)),
        changes.get_summaries(ctx, ids),
        assistants.name_credentials(ctx, ids),
        feed.count_clients(ctx, list(calls), await customers.select_ids_in_scope(ctx, None)),
    )
    labels, lines = _ClientLabels(), []
    for change_id, call in calls.items():
        if call.events:
            first, actor = call.events[0]["changeId"], call.events[0]["actor"]
            client = labels.label(call.events[0]["customer"])
            of_client = [event for event in call.events if event["customer"] == call.events[0]["customer"]]
            said = [_describe_event(event, ctx.caller.load_unit) for event in of_client[:_MAX_SAID]]
            said += [f"{len(of_client) - _MAX_SAID} more"] if len(of_client) > _MAX_SAID else []
        else:
            change = call.changes[0]
            first, actor, client_id = change["_id"], change["actor"], change["customerId"]
            unnamed: NamedCustomer = {"_id": client_id or ObjectId(), "name": ""}
            client = "" if client_id is None else labels.label(references.get(client_id, unnamed))
            described = Counter(filter(None, map(_describe_document, documents.get(first, ()))))
            parts = [each if count == 1 else f"{each} ({count} times)" for each, count in described.items()]
            said = [change["summary"] + (f": {', '.join(parts)}" if parts else "")]
        summary = about.get(first)
        approver = summary["approvedBy"] if summary is not None else None
        approved = f"approved by {typed(approver['name'])}" if approver is not None else ""
        if summary is not None and summary["decidedIn"] is not None:
            approved += f" {PLACES[summary['decidedIn']]}"
        operation = f"{call.changes[0]['operation']} " if not call.events else ""
        others = counts.get(change_id, 1) - 1
        credential = credentials.get(first) if actor and actor["type"] in ("assistant", "key") else None
        name = typed(actor["name"]) if actor else ""
        by = f"{actor['type']} {f'{typed(credential)} of ' if credential else ''}{name}" if actor else "unknown"
        facts = mcp.join_facts(
            ("" if customer_id is not None else client) + ", ".join(said),
            f"and for {others} more {'client' if others == 1 else 'clients'}" if others > 0 else "",
            f"{operation}by {by}",
            approved,
            f"changeId {change_id}",
            summary is not None and summary["undoneBy"] and "undone",
        )
        lines.append(f"{mcp.format_time(call.time)} {facts}")
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


def _describe_event(event: models.ChangedEvent, load_unit: str) -> str:
    """Return an entry in words; a personal record that is a load has it in `load_unit`.

    The first results in an exercise are no records, as in the attention list.
    """
    data = event["data"]
    if event["type"] == "personal_record" and data["unit"] in LOAD_UNITS:
        data = {**data, "value": convert_stored_load(data["value"], data["unit"], load_unit), "unit": load_unit}
    shown = {name: value for name, value in data.items() if not isinstance(value, bool)}
    name = "first_result" if data.get("isFirst") else event["type"]
    return f"{name} {_describe_data(shown)}".rstrip()


def _describe_data(data: Mapping[str, Any]) -> str:
    parts = []
    for name, value in data.items():
        if name in _PHRASES:
            parts.append(_PHRASES[name].format(value))
        elif name == "value":
            unit = "" if data.get("unit") == "count" else data.get("unit", "")
            parts.append(f"{mcp.format_figure(value)} {unit}".strip())
        elif name == "reps" and data.get("recordType") == "most_reps":
            continue
        elif name == "measured":
            parts += [
                f"{typed(each['metricName'])} {mcp.format_figure(each['value'])} {each['unit']}" for each in value
            ]
        elif name in _OWN_WORDS or isinstance(value, int | float):
            parts.append(str(value) if name in _OWN_WORDS else f"{name} {value}")
        elif isinstance(value, str) and name != "unit":
            parts.append(mcp.typed_line(value, _LONGEST_TEXT))
    return " ".join(parts)


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
    return " ".join([*([str(day)] if day else []), *([mcp.typed_line(name, _LONGEST_TEXT)] if name else [])])


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
        return mcp.format_time(value)
    return mcp.typed_line(value, _LONGEST_TEXT) if isinstance(value, str) else "-" if value is None else str(value)


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
    selection = list_selection.ListSelection.of(query)
    page = await list_attributed_events(
        ctx, customer_id, page=query["page"], size=query["limit"], selection=selection, after=query["after"]
    )
    docs = [take(models.ActivityEvent, event) for event in page["docs"]]
    return cast("list_selection.Page[models.ActivityEvent]", {**page, "docs": docs})


@company_routes.get("", access=coach(CUSTOMERS.VIEW), returns=CompanyEventList)
async def list_company_activity(
    ctx: Context, query: models.CompanyFeedQuery
) -> list_selection.CursorPage[models.CompanyEvent]:
    """Read the activity of all clients, newest first: what happened since yesterday, with client and author.

    Entries of clients that the caller may not see are left out.
    """
    return await list_company_events(
        ctx,
        limit=query["limit"],
        after=query["after"],
        since=query["since"],
        types=query["types"],
        customer_id=query["customerId"],
        mine=query["mine"],
    )
