"""The activity feed of a client: the entries that the change log has for it.

The feed has names of its own for the types of the log's events. An entry may hold names and texts; the event that is
recorded with it has only identifiers, dates and figures.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, NotRequired, TypedDict, cast, get_args

from marshmallow import Schema, fields

from coaching_service.core import list_selection
from coaching_service.core.changes import history as feed
from coaching_service.core.changes.models import CompanyFeedItem
from coaching_service.core.database.context import Context
from coaching_service.core.database.recording import FeedEntry, LoggedEvent, RemovedFeedEntries
from coaching_service.core.events import EventValue
from coaching_service.core.field_schemas import Variant, output_of
from coaching_service.core.fields import Description, Optional, names_of, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, Date
from coaching_service.people.activity import models as activity_models
from coaching_service.people.changes import events as change_events
from coaching_service.people.changes.models import list_hidden_types
from coaching_service.people.customers import service as customers

# The identifier in an event that the entry has only as its source.
_SOURCE_FIELDS: dict[activity_models.ActivityType, str] = {
    "personal_record": "recordId",
    "program_assigned": "assignmentId",
}


async def record_event(
    ctx: Context,
    activity_type: activity_models.ActivityType,
    customer_id: ObjectId,
    source_id: ObjectId,
    **data: object,
) -> None:
    """Report an event by the caller with its entry in a client's feed, in the caller's transaction.

    The entry replaces an entry of the same type about the same source document.
    """
    _record(ctx, activity_type, customer_id, FeedEntry(source_id, data))


async def record_update(
    ctx: Context,
    activity_type: activity_models.ActivityType,
    customer_id: ObjectId,
    source_id: ObjectId,
    fields: Sequence[str],
    **data: object,
) -> None:
    """Report an `.updated` event as `record_event` does, with the names of the fields that changed."""
    _record(ctx, activity_type, customer_id, FeedEntry(source_id, data), fields=list(fields))


async def record_first_event(
    ctx: Context,
    activity_type: activity_models.ActivityType,
    customer_id: ObjectId,
    source_id: ObjectId,
    **data: object,
) -> None:
    """Report an event as `record_event` does, if the feed has no entry of its type about the source document."""
    _record(ctx, activity_type, customer_id, FeedEntry(source_id, data, is_first=True))


async def record_restored_event(
    ctx: Context,
    activity_type: activity_models.ActivityType,
    customer_id: ObjectId,
    source_id: ObjectId,
    **data: object,
) -> None:
    """Report an event whose entry an undo shows again, in the caller's transaction."""
    _record(ctx, activity_type, customer_id, FeedEntry(source_id, data), in_feed=False)


def _record(
    ctx: Context,
    activity_type: activity_models.ActivityType,
    customer_id: ObjectId,
    entry: FeedEntry,
    *,
    in_feed: bool = True,
    **more: EventValue,
) -> None:
    event_type, data = activity_models.EVENT_TYPE_OF[activity_type], entry.data
    names = names_of(change_events.data_of(event_type))
    renamed = {"date" if name == "day" else name: cast("EventValue", value) for name, value in data.items()}
    event_data = {name: value for name, value in renamed.items() if name in names} | more
    if activity_type in _SOURCE_FIELDS:
        event_data[_SOURCE_FIELDS[activity_type]] = entry.source_id
    document_id = cast("ObjectId", data.get("wblockId", entry.source_id))
    if activity_type in ("form_submitted", "metric_recorded") and "witemId" in data:
        item_data = {name: value for name, value in event_data.items() if name != "responseId"}
        ctx.changes.events.append(LoggedEvent("item.logged", customer_id, item_data, document_id))
    feed = entry if in_feed else None
    ctx.changes.events.append(LoggedEvent(event_type, customer_id, event_data, document_id, feed))


async def correct_event(
    ctx: Context,
    activity_type: activity_models.ActivityType,
    customer_id: ObjectId,
    source_id: ObjectId,
    **data: object,
) -> None:
    """Set fields of the data of an entry, in the caller's transaction; its date stays."""
    await correct_events(ctx, [activity_type], customer_id, [source_id], **data)


async def correct_events(
    ctx: Context,
    activity_types: Collection[activity_models.ActivityType],
    customer_id: ObjectId,
    source_ids: Collection[ObjectId],
    **data: object,
) -> None:
    """Set fields of the data of entries about source documents, in the caller's transaction; their dates stay."""
    types = [activity_models.EVENT_TYPE_OF[each] for each in activity_types]
    await feed.correct_feed_entries(ctx, customer_id, [*source_ids], types, data)


async def delete_events(
    ctx: Context, customer_id: ObjectId, source_id: ObjectId, *activity_types: activity_models.ActivityType
) -> None:
    """Remove entries about a source document, in the caller's transaction."""
    types = tuple(activity_models.EVENT_TYPE_OF[each] for each in activity_types)
    ctx.changes.removed_entries.append(RemovedFeedEntries(customer_id, source_id, types))


async def create_many(ctx: Context, entries: Sequence[activity_models.ImportedEvent]) -> None:
    """Add entries with their own dates, about source documents without entries of the same types: for imports."""
    for entry in entries:
        imported = FeedEntry(entry["sourceId"], entry["data"], entry["date"], entry["actor"])
        ctx.changes.events.append(
            LoggedEvent(activity_models.EVENT_TYPE_OF[entry["type"]], entry["customerId"], {}, None, imported)
        )


def set_dates(ctx: Context, dates: Mapping[ObjectId, datetime]) -> None:
    """Set the dates (UTC) of entries that this transaction adds, by their source documents: for imports."""
    ctx.changes.set_feed_dates(dates)


async def list_events(
    ctx: Context, customer_id: ObjectId, part: list_selection.PartOfList
) -> list_selection.Page[activity_models.ActivityEvent]:
    """Return part of a client's feed, as `list_attributed_events` does, without authors."""
    events = await list_attributed_events(ctx, customer_id, **part)
    docs = [take(activity_models.ActivityEvent, event) for event in events["docs"]]
    return cast("list_selection.Page[activity_models.ActivityEvent]", {**events, "docs": docs})


async def list_attributed_events(
    ctx: Context,
    customer_id: ObjectId,
    *,
    page: int,
    size: int,
    selection: list_selection.ListSelection = list_selection.ALL_ENTRIES,
    after: str | None = None,
) -> list_selection.Page[activity_models.AttributedEvent]:
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


def _attributed_event(stored: CompanyFeedItem) -> activity_models.AttributedEvent:
    entry = stored["feed"]
    return {
        "_id": entry["_id"],
        "type": activity_models.ACTIVITY_TYPE_OF[entry["type"]],
        "date": stored["feedAt"],
        "data": entry["data"],
        "actor": stored["actor"],
    }


async def list_company_events(
    ctx: Context,
    *,
    limit: int,
    after: str | None = None,
    since: datetime | None = None,
    types: Sequence[activity_models.ActivityType] = (),
    customer_id: ObjectId | None = None,
    mine: bool = False,
) -> list_selection.CursorPage[activity_models.CompanyEvent]:
    """Return part of the feed of all clients in the coach's scope, newest first.

    Only of `types` (empty: all), recorded at `since` or later (UTC), of one client, or `mine`: made with the key, grant
    or session of this request. A client that does not exist or is out of scope has no entries. Raises InvalidFields if
    `after` is not a cursor of this list with the same filters.
    """
    part = await list_changed_events(
        ctx, limit=limit, after=after, since=since, types=types, customer_id=customer_id, mine=mine
    )
    docs = [take(activity_models.CompanyEvent, event) for event in part["docs"]]
    return {"docs": docs, "nextCursor": part["nextCursor"], "hasMore": part["hasMore"]}


async def list_changed_events(
    ctx: Context,
    *,
    limit: int,
    after: str | None = None,
    since: datetime | None = None,
    types: Sequence[activity_models.ActivityType] = (),
    customer_id: ObjectId | None = None,
    mine: bool = False,
) -> list_selection.CursorPage[activity_models.ChangedEvent]:
    """Return what `list_company_events` returns, with the change that each entry is from."""
    credential_id = ctx.caller.credential_id if mine else None
    filters = {"since": since, "types": sorted(set(types)), "customerId": customer_id, "credentialId": credential_id}
    list_part = list_selection.ListPart(ctx, "activity-feed", filters, feed.COMPANY_FEED_ORDER, size=limit, after=after)
    hidden = list_hidden_types(ctx)
    wanted = [
        activity_models.EVENT_TYPE_OF[each] for each in types or (activity_models.EVENT_TYPE_OF if hidden else ())
    ]
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
    docs: list[activity_models.ChangedEvent] = [
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
    recordType: Annotated[activity_models.RecordType, Description("The type of record.")]
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


_DATA: Mapping[activity_models.ActivityType, type] = {
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
_EVENT = output_of(activity_models.ActivityEvent)
_COMPANY_EVENT = output_of(activity_models.CompanyEvent, first=("customer", "actor"))


def _event(event_type: activity_models.ActivityType, base: type[Schema], name: str) -> type[Schema]:
    """Return the schema of an event of one type, such as `WorkoutCompletedEvent`."""
    attributes = {
        "__doc__": f"An event of the type `{event_type}`.",
        "type": Choice(event_type),
        "data": fields.Nested(output_of(_DATA[event_type])),
    }
    return type("".join(word.capitalize() for word in event_type.split("_")) + name, (base,), attributes)


def _events(base: type[Schema], name: str) -> fields.Field[list[Any]]:
    return fields.List(Variant({each: _event(each, base, name) for each in get_args(activity_models.ActivityType)}))


ActivityEventPage = list_selection.part_schema(
    "ActivityEventPage", list_selection.PagePosition, _events(_EVENT, "Event"), "A page of the activity feed."
)
CompanyEventList = list_selection.part_schema(
    "CompanyEventList",
    list_selection.CursorPosition,
    _events(_COMPANY_EVENT, "CompanyEvent"),
    "A part of the activity feed of all clients.",
)
