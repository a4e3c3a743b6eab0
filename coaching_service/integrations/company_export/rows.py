"""The format of a company's export, which is described in docs/export-format.md. Exports and imports share it."""

from __future__ import annotations

import codecs
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, declared_collections
from coaching_service.core.database.portable import Portable
from coaching_service.core.fields import names_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import file_extension
from coaching_service.core.text import snake_case, write_rows
from coaching_service.integrations.history_files.rosters import join_groups
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import ASSISTANCE, ExerciseName
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import Customer
from coaching_service.people.team import service as team
from coaching_service.training.workouts.blocks.models import StoredBlock, WorkoutSettings
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.training.workouts.reports import blocks as queries
from coaching_service.training.workouts.sets import CustomerSet, PlannedSet

FORMAT = "coaching-service-company"
VERSION = 1
HEADER, ACCOUNT, COACHES, MANIFEST = "export.json", "account.json", "coaches.jsonl", "manifest.json"
ACTIVITY, HISTORY = "activity.jsonl", "history.jsonl"  # to be read by people: an import leaves them out
_RECORDS, _FILES = "records/", "files/"
_MAX_NAME = 100


def portable_collections() -> Iterator[tuple[str, Documents[dict[str, object]], Portable]]:
    """Yield the collections of an export with their names, in the order in which they are imported."""
    named = [
        (name, collection, collection.transfer)
        for name, collection in declared_collections().items()
        if isinstance(collection.transfer, Portable)
    ]
    yield from sorted(named, key=lambda each: (each[2].stage, each[0]))


def records_entry(collection: str) -> str:
    """Return the name of the entry with the records of a collection."""
    return f"{_RECORDS}{collection}.jsonl"


def collection_of(entry: str) -> str | None:
    """Return the collection of an entry with records; None for other entries."""
    is_records = entry.startswith(_RECORDS) and entry.endswith(".jsonl")
    return entry.removeprefix(_RECORDS).removesuffix(".jsonl") if is_records else None


def is_known(entry: str) -> bool:
    """Return whether an export of this version may have an entry of this name; collections and files may be others."""
    single = (HEADER, ACCOUNT, COACHES, MANIFEST, ACTIVITY, HISTORY)
    return entry in single or collection_of(entry) is not None or file_of(entry) is not None


def file_entry(file_id: object, name: str, content_type: str) -> str:
    """Return the name of the entry with a file: its identifier, and the name that it was uploaded with."""
    extension = file_extension(content_type)
    stem = name.removesuffix(extension)[:_MAX_NAME].replace("/", "_").replace("\\", "_").strip(". ")
    return f"{_FILES}{file_id}/{stem or 'file'}{extension}"


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
        rows.append(_row_of(customer, coaches))
        if len(rows) >= _BATCH:
            yield write_rows(rows)
            rows = []
    yield write_rows(rows)


def _row_of(customer: Customer, coaches: Mapping[ObjectId, str]) -> list[object]:
    status = customer["customerRoleData"]
    trainer = status["assignedTo"]
    return [
        customer["name"],
        customer["surname"],
        customer["email"],
        customer["phone"],
        customer["birthday"],
        customer["timezone"],
        customer.get("externalId"),
        join_groups(status["groups"]),
        "archived" if status["isArchived"] else "active",
        coaches.get(trainer) if trainer is not None else None,
    ]


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
    async for block in queries.iterate_logged_blocks(ctx):
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
            meters = done["meters"]
            row = [
                block["name"],
                _start_of(block),
                _end_of(block),
                block["comment"],
                names[exercise_id]["name"] if exercise_id in names else None,
                group,
                item["comment"],
                index,
                _set_type(item, exercise_id, done),
                _load_of(done, names.get(exercise_id)),
                done["reps"],
                None if meters is None else round(meters / 1000, 6),
                done["seconds"],
                done["rpe"],
                done["rir"],
                _cell_of(done["isCompleted"]),
                block["durationMinutes"],
                *(_cell_of(block.get(name)) for name in _SETTINGS),
            ]
            yield [int(cell) if isinstance(cell, float) and cell.is_integer() else cell for cell in row]


def _cell_of(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def _start_of(block: StoredBlock) -> str:
    """Return the date of a block, with its time of day if it has one."""
    clock = block.get("startTime")
    return f"{block['date']} {clock}" if clock else str(block["date"])


def _end_of(block: StoredBlock) -> str | None:
    """Return when a block ended; None if its start or its duration is not known."""
    if not block.get("startTime") or block["durationMinutes"] is None:
        return None
    try:
        end = datetime.fromisoformat(_start_of(block)) + timedelta(minutes=block["durationMinutes"])
    except OverflowError:  # stored by a version that did not limit dates
        return None
    return f"{end:%Y-%m-%d %H:%M}"


def _load_of(done: CustomerSet, exercise: ExerciseName | None) -> float | None:
    """Return the load of a set; help is negative, as in Hevy."""
    load = done["load"]
    helps = exercise is not None and exercise.get("loadType") == ASSISTANCE
    return -load if load and helps else load


def _set_type(item: WorkItem, exercise_id: ObjectId, done: CustomerSet) -> str:
    """Return the type of a set in Hevy's words: its own, else the type of the planned set of the same index."""
    if done.get("isWarmup"):
        return "warmup"
    if (kind := done.get("setKind", "normal")) in _SET_TYPES:
        return _SET_TYPES[kind]
    for planned in _planned_sets(item, exercise_id):
        if planned["index"] == done["index"]:
            return "warmup" if planned["isWarmup"] else _SET_TYPES.get(planned.get("setKind", "normal"), "normal")
    return "normal"


def _planned_sets(item: WorkItem, exercise_id: ObjectId) -> list[PlannedSet]:
    if item["type"] == "EXERCISE":
        return item["exerciseSets"]
    entries: list[Any] = item["circuitExercises"] if item["type"] == "CIRCUIT" else []
    return [planned for entry in entries if entry["exerciseId"] == exercise_id for planned in entry["sets"]]
