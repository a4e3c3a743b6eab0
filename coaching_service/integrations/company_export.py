"""Exporting a company as a ZIP archive that is streamed in bounded memory, whatever its size.

What is exported of each collection is declared with the collection. Records are exported one after another while others
may write: each is as it was when it was read.
"""

from __future__ import annotations

import codecs
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from marshmallow import validates_schema

from coaching_service.core import audit
from coaching_service.core.auth import owner
from coaching_service.core.database import files
from coaching_service.core.database.context import Context
from coaching_service.core.database.declared import Portable, file_holders
from coaching_service.core.database.documents import Documents, now, registry
from coaching_service.core.fields import Default, Description, names_of, query_of, take
from coaching_service.core.http.responses import Download, to_json
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import CursorPage
from coaching_service.core.media import file_extension
from coaching_service.core.text import snake_case, write_rows
from coaching_service.core.validation import Input, invalid
from coaching_service.integrations.history_files.rosters import join_groups
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import ASSISTANCE, ExerciseName
from coaching_service.lifecycle.export import Archive
from coaching_service.people import account, audit_log, notification_settings, team
from coaching_service.people.activity import service as activity
from coaching_service.people.changes import service as changes
from coaching_service.people.customers import service as customers
from coaching_service.training.workouts.blocks.models import StoredBlock, WorkoutSettings
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.training.workouts.reports import blocks as block_reports
from coaching_service.training.workouts.sets import CustomerSet

# --- The format of a company's export, which is described in docs/export-format.md. Exports and imports share it ------


FORMAT = "coaching-service-company"
VERSION = 1
HEADER, ACCOUNT, COACHES, MANIFEST = "export.json", "account.json", "coaches.jsonl", "manifest.json"
# To be read by people: an import leaves them out.
ACTIVITY, HISTORY, AUDIT = "activity.jsonl", "history.jsonl", "audit.jsonl"
_RECORDS, _FILES = "records/", "files/"
_MAX_NAME = 100


def portable_collections() -> list[tuple[str, Documents[dict[str, object]], Portable]]:
    """Return the collections of an export with their names, in the order in which they are imported."""
    declared = [(name, each, each.transfer) for name, each in registry.items() if isinstance(each.transfer, Portable)]
    return sorted(declared, key=lambda each: (each[2].stage, each[0]))


def records_entry(collection: str) -> str:
    """Return the name of the entry with the records of a collection."""
    return f"{_RECORDS}{collection}.jsonl"


def collection_of(entry: str) -> str | None:
    """Return the collection of an entry with records; None for other entries."""
    is_records = entry.startswith(_RECORDS) and entry.endswith(".jsonl")
    return entry.removeprefix(_RECORDS).removesuffix(".jsonl") if is_records else None


def is_known(entry: str) -> bool:
    """Return whether an export of this version may have an entry of this name; collections and files may be others."""
    single = (HEADER, ACCOUNT, COACHES, MANIFEST, ACTIVITY, HISTORY, AUDIT)
    return entry in single or collection_of(entry) is not None or file_of(entry) is not None


def file_of(entry: str) -> tuple[str, str] | None:
    """Return the identifier and the name of the file in an entry; None for other entries."""
    parts = entry.split("/")
    return (parts[1], parts[2]) if len(parts) == 3 and entry.startswith(_FILES) else None


# --- Clients as CSV, in columns that an import reads as the same clients (docs/export-format.md) ----------------------


_BATCH = 200
_CLIENT_COLUMNS = (
    *("name", "surname", "email", "phone", "birthday", "timezone"),
    *("external_id", "groups", "status", "coach_email"),
)


async def iterate_client_rows(ctx: Context) -> AsyncGenerator[bytes, None]:
    """Yield the CSV in chunks: the columns, then a row for each client, archived ones too.

    It begins with a byte order mark, without which Excel takes UTF-8 for another encoding.
    """
    coaches = {coach["_id"]: coach["email"] for coach in await team.list_coaches(ctx)}
    rows: list[list[object]] = [[*_CLIENT_COLUMNS]]
    yield codecs.BOM_UTF8
    async for customer in customers.iterate_all(ctx):
        status = customer["customerRoleData"]
        rows.append(
            [
                *(customer[name] for name in ("name", "surname", "email", "phone", "birthday", "timezone")),
                customer.get("externalId"),
                join_groups(status["groups"]),
                "archived" if status["isArchived"] else "active",
                None if status["assignedTo"] is None else coaches.get(status["assignedTo"]),
            ]
        )
        if len(rows) >= _BATCH:
            yield write_rows(rows)
            rows = []
    yield write_rows(rows)


# --- Logged sets as CSV, in the columns of Hevy's export, with the client before them (docs/export-format.md) ---------

_COLUMNS = (
    *("client_id", "client_name", "title", "start_time", "end_time", "description"),
    *("exercise_title", "superset_id", "exercise_notes", "set_index", "set_type"),
    *("{weight}", "reps", "distance_km", "duration_seconds", "rpe", "rir", "is_completed", "duration_minutes"),
)
_SETTINGS = names_of(WorkoutSettings)
_WEIGHT = {"kg": "weight_kg", "lb": "weight_lbs"}
_SET_TYPES = {"drop": "dropset", "failure": "failure"}


async def iterate_workout_rows(ctx: Context) -> AsyncGenerator[bytes, None]:
    """Yield the CSV in chunks: the columns, then a row for each logged set of every client.

    It begins with a byte order mark, without which Excel takes UTF-8 for another encoding.
    """
    weight = _WEIGHT[ctx.caller.company.load_unit]
    yield codecs.BOM_UTF8 + write_rows(
        [[column.format(weight=weight) for column in (*_COLUMNS, *map(snake_case, _SETTINGS))]]
    )
    batch: list[StoredBlock] = []
    async for block in block_reports.iterate_logged_blocks(ctx):
        batch.append(block)
        if len(batch) == _BATCH:
            yield await _rows_of(ctx, batch)
            batch = []
    if batch:
        yield await _rows_of(ctx, batch)


async def _rows_of(ctx: Context, blocks: Sequence[StoredBlock]) -> bytes:
    customer_ids = {block["customerId"] for block in blocks if block["customerId"]}
    names = await customers.find_references(ctx, list(customer_ids))
    exercise_ids = {each for block in blocks for item in block["items"] for each in item.get("exerciseIds", ())}
    exercise_names = await exercises.get_names(ctx, exercise_ids)
    rows: list[list[object]] = []
    for block in blocks:
        customer = names.get(block["customerId"]) if block["customerId"] else None
        if customer is not None:  # not erased in the meantime
            client = [str(customer["_id"]), customer["name"]]
            rows += [[*client, *row] for row in _rows_of_block(block, exercise_names)]
    return write_rows(rows)


def _rows_of_block(block: StoredBlock, names: Mapping[ObjectId, ExerciseName]) -> Iterator[list[object]]:
    start, end, minutes = str(block["date"]), None, block["durationMinutes"]
    if clock := block.get("startTime"):
        start += f" {clock}"
    with suppress(OverflowError):  # stored by a version that did not limit dates
        if clock and minutes is not None:
            end = f"{datetime.fromisoformat(start) + timedelta(minutes=minutes):%Y-%m-%d %H:%M}"
    for item in block["items"]:
        if item["type"] != "EXERCISE" and item["type"] != "CIRCUIT":
            continue
        group = item["supersetId"] if item["type"] == "EXERCISE" else str(item["_id"])
        indexes: dict[ObjectId, int] = {}
        for done in item["customerSets"]:
            exercise_id = done["exerciseId"] or (item["exerciseId"] if item["type"] == "EXERCISE" else None)
            if exercise_id is None:
                continue
            index = indexes[exercise_id] = indexes.get(exercise_id, -1) + 1
            meters, load, exercise = done["meters"], done["load"], names.get(exercise_id)
            is_help = exercise is not None and exercise.get("loadType") == ASSISTANCE
            row = [
                block["name"],
                start,
                end,
                block["comment"],
                None if exercise is None else exercise["name"],
                group,
                item["comment"],
                index,
                _set_type(item, exercise_id, done),
                -load if load and is_help else load,  # as in Hevy
                done["reps"],
                None if meters is None else round(meters / 1000, 6),
                done["seconds"],
                done["rpe"],
                done["rir"],
                _cell_of(done["isCompleted"]),
                minutes,
                *(_cell_of(block.get(name)) for name in _SETTINGS),
            ]
            yield [int(cell) if isinstance(cell, float) and cell.is_integer() else cell for cell in row]


def _cell_of(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def _set_type(item: WorkItem, exercise_id: ObjectId, done: CustomerSet) -> str:
    """Return the type of a set in Hevy's words: its own, else the type of the planned set of the same index."""
    if done.get("isWarmup"):
        return "warmup"
    if (kind := done.get("setKind", "normal")) in _SET_TYPES:
        return _SET_TYPES[kind]
    entries: list[Any] = item["circuitExercises"] if item["type"] == "CIRCUIT" else []
    in_circuit = [planned for entry in entries if entry["exerciseId"] == exercise_id for planned in entry["sets"]]
    for planned in item["exerciseSets"] if item["type"] == "EXERCISE" else in_circuit:
        if planned["index"] == done["index"]:
            return "warmup" if planned["isWarmup"] else _SET_TYPES.get(planned.get("setKind", "normal"), "normal")
    return "normal"


_COACH_FIELDS = ("_id", "name", "email", "role", "permissions", "customersScope", "createdAt")
_HISTORY_FIELDS = ("_id", "at", "actor", "via", "operation", "summary", "customerId", "documents")
_PAGE = 50


async def export(ctx: Context, kind: Literal["archive", "workouts", "customers"]) -> Download:
    """Return an export of the caller's company, and record that it was made.

    A ZIP archive of everything, or as CSV a row for each logged set, or for each client.
    """
    name, ending, content_type, iterate = _KINDS[kind]
    company = await account.get_account(ctx)
    await audit.record(ctx, "company.exported", name=kind)

    def read_all(_start: int, _end: int) -> AsyncGenerator[bytes, None]:
        return iterate(ctx)

    return Download(content_type, f"{name}-{company['_id']}-{now():%Y-%m-%d}.{ending}", read_all)


async def _zip(ctx: Context) -> AsyncGenerator[bytes, None]:
    archive = Archive()
    header = {"format": FORMAT, "version": VERSION, "companyId": ctx.company_id, "exportedAt": now()}
    company = await account.get_account(ctx)
    settings: account.AccountDetails = take(account.AccountDetails, company)
    stored = {"_id": company["_id"], **settings, "hasStoredLoads": await account.has_stored_loads(ctx)}
    for name, content in ((HEADER, header), (ACCOUNT, stored)):
        async for output in archive.add(name, _single(content)):
            yield output
    for name, entries in _lists(ctx):
        async for output in archive.add_records(name, entries):
            yield output
    for _, collection, portable in portable_collections():
        if portable.files is None:
            continue
        async for document in collection.stream_own(ctx, None):
            for holder in file_holders(document):  # which have no thumbnails
                file_id: ObjectId = holder["fileId"]
                if (file := await files.find(ctx.services, file_id)) is None:  # replaced since the document was read
                    continue
                chunks = files.read(ctx.services, file, 0, file["length"])
                extension = file_extension(file["contentType"])
                stem = file["filename"].removesuffix(extension)[:_MAX_NAME]
                stem = stem.replace("/", "_").replace("\\", "_").strip(". ")
                name = f"{_FILES}{file_id}/{stem or 'file'}{extension}"  # the name that it was uploaded with
                async for output in archive.add(name, chunks, compressed=True):
                    yield output
    yield archive.close(header)


def _lists(ctx: Context) -> Iterator[tuple[str, AsyncIterator[Mapping[str, Any]]]]:
    """Yield the entries of the archive that are lists of records, with the records of each."""
    yield COACHES, _coaches(ctx)
    for name, collection, portable in portable_collections():
        documents = collection.stream_own(ctx, tuple(portable.exported_fields))
        yield records_entry(name), (portable.to_export(document) async for document in documents)
    yield ACTIVITY, _pages(partial(activity.list_company_events, ctx, limit=_PAGE))
    yield HISTORY, _pages(partial(changes.list_changes, ctx, limit=_PAGE), _HISTORY_FIELDS)  # without values
    yield AUDIT, audit_log.iterate_entries(ctx)


async def _single(content: Mapping[str, Any]) -> AsyncGenerator[bytes, None]:
    yield to_json(content)


async def _coaches(ctx: Context) -> AsyncIterator[Mapping[str, Any]]:
    settings = await team.list_notifications(ctx)
    for coach in await team.list_coaches(ctx):
        fields = {name: value for name, value in coach.items() if name in _COACH_FIELDS}
        yield {**fields, "notifications": notification_settings.complete(settings[coach["_id"]])}


async def _pages(
    list_page: Callable[..., Awaitable[CursorPage[Any]]], fields: Sequence[str] | None = None
) -> AsyncIterator[Mapping[str, Any]]:
    """Yield the entries of all pages of a list, newest first: with these fields, or all of them."""
    after: str | None = None
    while True:
        page = await list_page(after=after)
        for entry in page["docs"]:
            yield entry if fields is None else {name: value for name, value in entry.items() if name in fields}
        if (after := page["nextCursor"]) is None:
            return


_CSV = "text/csv; charset=utf-8"
# By the kind of an export: the name of its file, its ending and content type, and what yields it.
_KINDS: Mapping[str, tuple[str, str, str, Callable[[Context], AsyncGenerator[bytes, None]]]] = {
    "archive": ("company", "zip", "application/zip", _zip),
    "workouts": ("workouts", "csv", _CSV, iterate_workout_rows),
    "customers": ("clients", "csv", _CSV, iterate_client_rows),
}


# --- A company's export over REST -------------------------------------------------------------------------------------


class ExportQuery(TypedDict):
    """What to export."""

    format: Annotated[Literal["zip", "csv"], Default("zip"), Description("`zip`: everything. Default: `zip`.")]
    kind: NotRequired[
        Annotated[
            Literal["workouts", "customers"],
            Description("What the CSV file contains: required with `format=csv`."),
        ]
    ]


class _KindOfTable(Input):
    @validates_schema
    def validate_kind(self, data: ExportQuery, **_: Any) -> None:
        """Require `kind` with `format=csv`."""
        if data["format"] == "csv" and "kind" not in data:
            raise invalid("is required with format=csv", "REQUIRED", "kind")


routes = Routes("/coach/export", tag="Export")


@routes.get(
    "",
    access=owner(),
    query=query_of(ExportQuery, _KindOfTable)(),
    returns=bytes,
    media_types=("application/zip", "text/csv"),
    request_class="bulk",
)
async def export_company(ctx: Context, query: ExportQuery) -> Download:
    """Export the whole company.

    A streamed ZIP archive of the account, the libraries and every client, with all files and a manifest, but without
    passwords, keys and tokens; POST /coach/import reads it. With `format=csv&kind=workouts` a CSV file of every logged
    set, in the columns of Hevy's export; with `kind=customers` one of every client, archived ones too. POST
    /coach/import reads both. The formats are described in docs/export-format.md.
    """
    return await export(ctx, "archive" if query["format"] == "zip" else query["kind"])
