"""Personal records in the database: entered ones, and at most one of an exercise and type derived from logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, Filter, PipelineStage
from coaching_service.core.database.portable import RECORDS, Portable
from coaching_service.core.database.recording import History
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, Date
from coaching_service.progress.personal_records.models import (
    DailyRecords,
    LoggedRecord,
    NewRecord,
    RecordFields,
    StoredRecord,
)
from coaching_service.training.workouts.totals_models import Best, RecordType

records = Documents[StoredRecord](
    "personalRecords",
    (Index(("customerId", "exerciseId", "type", "-date", "_id")), Index(("customerId", "date"))),
    private=("companyId", "customerId"),
    client_field="customerId",
    history=History("personal_record", undo="derived"),
    transfer=Portable(
        StoredRecord,
        RECORDS,
        checks={"date": Date(), "unit": Choice("kg", "lb", "count")},
        references={"customerId": "customers", "exerciseId": "exercises"},
    ),
)
_BY_DATE = records.index_name("customerId", "date")


async def count_by_date(ctx: Context, customer_ids: Sequence[ObjectId], first: str, last: str) -> list[DailyRecords]:
    """Return how many records clients achieved on each date from `first` to `last` on which they achieved any."""
    where: Filter = {"customerId": {"$in": list(customer_ids)}, "date": {"$gte": first, "$lte": last}}
    group = {"_id": {"customerId": "$customerId", "date": "$date"}, "count": {"$sum": 1}}
    fields = {"_id": 0, "customerId": "$_id.customerId", "date": "$_id.date", "count": 1}
    stages: list[PipelineStage] = [{"$group": group}, {"$sort": {"_id.date": 1}}, {"$project": fields}]
    return await records.aggregate(ctx, where, *stages, hint=_BY_DATE)


async def list_records(ctx: Context, customer_id: ObjectId) -> list[StoredRecord]:
    """Return a client's records by exercise and type, newest first."""
    return await records.find(ctx, {"customerId": customer_id}, sort=("exerciseId", "type", "-date", "_id"))


async def list_of_exercise(ctx: Context, customer_id: ObjectId, exercise_id: ObjectId) -> list[StoredRecord]:
    """Return a client's records of an exercise, entered and derived from logs."""
    return await records.find(ctx, {"customerId": customer_id, "exerciseId": exercise_id})


async def find_logged(
    ctx: Context, customer_id: ObjectId, exercise_ids: Sequence[ObjectId]
) -> dict[ObjectId, dict[RecordType, LoggedRecord]]:
    """Return the records derived from logs, by exercise and type."""
    where = {"customerId": customer_id, "exerciseId": {"$in": list(exercise_ids)}, "source": "log"}
    logged: dict[ObjectId, dict[RecordType, LoggedRecord]] = {}
    for record in await records.find(ctx, where):
        logged.setdefault(record["exerciseId"], {})[record["type"]] = cast("LoggedRecord", record)
    return logged


async def set_logged(
    ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, record_type: RecordType, best: Best, unit: str
) -> StoredRecord:
    """Store the record of an exercise and type derived from logs, replacing the previous one."""
    fields = {
        "value": best["value"],
        "reps": best["reps"],
        "date": best["date"],
        "witemId": best["witemId"],
        "unit": unit,
    }
    return await records.upsert(ctx, _logged_filter(customer_id, exercise_id, record_type), fields)


async def delete_logged(ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, record_type: RecordType) -> None:
    """Delete the record of an exercise and type derived from logs."""
    await records.delete_many(ctx, _logged_filter(customer_id, exercise_id, record_type))


def _logged_filter(customer_id: ObjectId, exercise_id: ObjectId, record_type: RecordType) -> Filter:
    return {"customerId": customer_id, "exerciseId": exercise_id, "source": "log", "type": record_type}


async def insert(ctx: Context, customer_id: ObjectId, record: NewRecord, unit: str) -> StoredRecord:
    """Store a record entered by a coach."""
    fields = {**record, "customerId": customer_id, "unit": unit, "source": "manual", "witemId": None}
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
