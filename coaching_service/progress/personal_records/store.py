"""Personal records in the database: entered ones, and at most one of an exercise and type derived from logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, Filter, PipelineStage, now
from coaching_service.core.database.portable import RECORDS, Portable
from coaching_service.core.database.recording import History
from coaching_service.core.fields import private_of
from coaching_service.core.ids import ObjectId
from coaching_service.people.activity.record_types import RecordType
from coaching_service.progress.personal_records.models import (
    DailyRecords,
    LoggedRecord,
    NewPersonalRecord,
    RecordFields,
    RecordOwner,
    RecordToStore,
    StoredRecord,
)
from coaching_service.training.workouts.sets.records import RecordKey

records = Documents[StoredRecord](
    "personalRecords",
    (Index(("customerId", "exerciseId", "type", "-date", "_id")), Index(("customerId", "date"))),
    private=private_of(StoredRecord),
    client_field="customerId",
    history=History("personal_record", undo="derived"),
    transfer=Portable(
        StoredRecord,
        RECORDS,
        references={"customerId": "customers", "exerciseId": "exercises"},
    ),
)
_BY_DATE = records.index_name("customerId", "date")
_IS_ACHIEVED: PipelineStage = {
    "$match": {"isImported": {"$ne": True}, "$or": [{"source": "manual"}, {"earlierSession": {"$ne": []}}]}
}


async def count_by_date(
    ctx: Context, customer_ids: Sequence[ObjectId], first: str, last: str, earlier_session: PipelineStage
) -> list[DailyRecords]:
    """Return how many records clients achieved on each date from `first` to `last`, as `list_achieved` finds them."""
    where: Filter = {"customerId": {"$in": list(customer_ids)}, "date": {"$gte": first, "$lte": last}}
    group = {"_id": {"customerId": "$customerId", "date": "$date"}, "count": {"$sum": 1}}
    fields = {"_id": 0, "customerId": "$_id.customerId", "date": "$_id.date", "count": 1}
    stages: list[PipelineStage] = [earlier_session, _IS_ACHIEVED, {"$group": group}, {"$sort": {"_id.date": 1}}]
    return await records.aggregate(ctx, where, *stages, {"$project": fields}, hint=_BY_DATE)


async def list_achieved(
    ctx: Context, customer_id: ObjectId, first: str, last: str, earlier_session: PipelineStage
) -> list[StoredRecord]:
    """Return the records of a client from the date `first` to `last`.

    Without those of imported sessions, and those derived from logs of an exercise that was done for the first time;
    `earlier_session` is the stage that adds an earlier session with the exercise.
    """
    where: Filter = {"customerId": customer_id, "date": {"$gte": first, "$lte": last}}
    stages: list[PipelineStage] = [earlier_session, _IS_ACHIEVED, {"$sort": {"exerciseId": 1, "type": 1, "_id": 1}}]
    private = dict.fromkeys(("companyId", "customerId", "isImported", "earlierSession"), 0)
    return await records.aggregate(ctx, where, *stages, {"$project": private}, hint=_BY_DATE)


async def find_newest(
    ctx: Context, customer_ids: Sequence[ObjectId], first: str, earlier_session: PipelineStage
) -> list[StoredRecord]:
    """Return the newest record of each client from the date `first`, as `list_achieved` finds them."""
    where: Filter = {"customerId": {"$in": list(customer_ids)}, "date": {"$gte": first}}
    order: PipelineStage = {"$sort": {"date": 1, "_id": 1}}
    group: PipelineStage = {"$group": {"_id": "$customerId", "newest": {"$last": "$$ROOT"}}}
    newest: PipelineStage = {"$replaceRoot": {"newRoot": "$newest"}}
    return await records.aggregate(ctx, where, earlier_session, _IS_ACHIEVED, order, group, newest, hint=_BY_DATE)


async def find_first_results(
    ctx: Context, customer_id: ObjectId, record_ids: Sequence[ObjectId], earlier_session: PipelineStage
) -> set[ObjectId]:
    """Return which of some records of a client are of an exercise without an earlier session."""
    where = {"customerId": customer_id, "_id": {"$in": list(record_ids)}}
    stages: list[PipelineStage] = [earlier_session, {"$match": {"earlierSession": []}}, {"$project": {"_id": 1}}]
    return {record["_id"] for record in await records.aggregate(ctx, where, *stages, hint="_id_")}


async def list_records(ctx: Context, customer_id: ObjectId) -> list[StoredRecord]:
    """Return a client's records by exercise and type, newest first."""
    return await records.find(ctx, {"customerId": customer_id}, sort=("exerciseId", "type", "-date", "_id"))


async def list_of_exercises(
    ctx: Context, customer_id: ObjectId, exercise_ids: Sequence[ObjectId]
) -> list[StoredRecord]:
    """Return a client's records of exercises, entered and derived from logs."""
    return await records.find(ctx, {"customerId": customer_id, "exerciseId": {"$in": list(exercise_ids)}})


async def find_logged(
    ctx: Context, customer_id: ObjectId, exercise_ids: Sequence[ObjectId]
) -> dict[ObjectId, dict[RecordKey, LoggedRecord]]:
    """Return the records derived from logs, by exercise and key, as `store_logged` replaces them."""
    return await _find_logged(ctx, {"customerId": customer_id, "exerciseId": {"$in": list(exercise_ids)}})


async def find_all_logged(ctx: Context, customer_id: ObjectId) -> dict[ObjectId, dict[RecordKey, LoggedRecord]]:
    """Return all records of a client that are derived from logs, as `find_logged` does."""
    return await _find_logged(ctx, {"customerId": customer_id})


async def _find_logged(ctx: Context, where: Filter) -> dict[ObjectId, dict[RecordKey, LoggedRecord]]:
    logged: dict[ObjectId, dict[RecordKey, LoggedRecord]] = {}
    for record in await records.find(ctx, {**where, "source": "log"}, including=("customerId", "isImported")):
        key = RecordKey(record["type"], record.get("meters"))
        logged.setdefault(record["exerciseId"], {})[key] = cast("LoggedRecord", record)
    return logged


async def store_logged(
    ctx: Context, customer_id: ObjectId, changes: Sequence[RecordToStore], units: Mapping[RecordType, str]
) -> list[StoredRecord]:
    """Store records derived from logs, with the unit of their type; returns them in the same order.

    Takes at most two round trips. Others must be unable to store such records of the client at the same time.
    """
    added: list[dict[str, object]] = []
    replaced: list[tuple[StoredRecord, dict[str, object]]] = []
    for exercise_id, key, best, previous in changes:
        fields: dict[str, object] = {
            "value": best["value"],
            "reps": best["reps"],
            "date": best["date"],
            "witemId": best["witemId"],
            "isImported": best.get("isImported", False),
            "unit": units[key.type],
        }
        if previous is None:
            about = {"customerId": customer_id, "exerciseId": exercise_id, "source": "log", "type": key.type}
            added.append({**about, **({} if key.meters is None else {"meters": key.meters}), **fields})
        else:
            replaced.append((cast("StoredRecord", previous), fields))
    new = iter(await records.insert_many(ctx, added))
    changed = iter(await records.rewrite_each(ctx, replaced))
    return [next(new if each.previous is None else changed) for each in changes]


async def delete_many(ctx: Context, customer_id: ObjectId, record_ids: Sequence[ObjectId]) -> None:
    """Delete records of a client."""
    if record_ids:
        await records.delete_many(ctx, {"customerId": customer_id, "_id": {"$in": list(record_ids)}})


async def list_loads(ctx: Context, customer_id: ObjectId) -> list[StoredRecord]:
    """Return the records of a client that are loads."""
    return await records.find(ctx, {"customerId": customer_id, "unit": {"$in": ["kg", "lb"]}})


async def set_converted(ctx: Context, values: Mapping[ObjectId, float], load_unit: str) -> None:
    """Store values that have been converted, by identifier: a change, but not one of the history."""
    fields = {"unit": load_unit, "updatedAt": now()}
    await records.set_derived_each(
        ctx,
        [
            ({"_id": each}, {"$set": {**fields, "value": value}, "$inc": {"version": 1}})
            for each, value in values.items()
        ],
    )


async def find_with_load(ctx: Context, without: Sequence[ObjectId]) -> RecordOwner | None:
    """Return the `customerId` of a record that is a load, but not of the clients `without`; else None."""
    where: Filter = {"unit": {"$in": ["kg", "lb"]}, "customerId": {"$nin": list(without)}}
    return await records.find_one(ctx, where, ("customerId",))


async def create(ctx: Context, customer_id: ObjectId, record: NewPersonalRecord, unit: str) -> StoredRecord:
    """Store a record entered by a coach."""
    given = {name: value for name, value in record.items() if name != "meters" or value is not None}
    fields = {**given, "customerId": customer_id, "unit": unit, "source": "manual", "witemId": None}
    return await records.insert(ctx, fields)


async def find_one(ctx: Context, customer_id: ObjectId, record_id: ObjectId) -> StoredRecord | None:
    """Return a record, or None if the client has no such record."""
    return await records.find_one(ctx, {"customerId": customer_id, "_id": record_id})


async def update(
    ctx: Context, customer_id: ObjectId, record_id: ObjectId, fields: RecordFields, version: int | None
) -> StoredRecord | None:
    """Set fields of a record; None if the client has no such record. Raises Conflict if it is not at `version`."""
    where = {"customerId": customer_id, "_id": record_id}
    return await records.rewrite(ctx, where, lambda _: fields, version=version)


async def delete(ctx: Context, customer_id: ObjectId, record_id: ObjectId) -> bool:
    """Delete a record; returns whether it existed."""
    return await records.delete(ctx, {"customerId": customer_id, "_id": record_id}) is not None
