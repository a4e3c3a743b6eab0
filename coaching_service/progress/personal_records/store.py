"""Personal records in the database: entered ones, and at most one of an exercise and type derived from logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from coaching_service.core.database.context import Context
from coaching_service.core.database.declared import RECORDS, History, Index, Portable
from coaching_service.core.database.documents import Documents, Filter, PipelineStage
from coaching_service.core.fields import private_of
from coaching_service.core.ids import ObjectId
from coaching_service.people.activity.models import RecordType
from coaching_service.progress.personal_records.models import DailyRecords, LoggedRecord, RecordToStore, StoredRecord
from coaching_service.training.workouts.reports.exercises import earlier_session_stage
from coaching_service.training.workouts.sets import RecordKey

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
IS_LOAD: Final = {"unit": {"$in": ["kg", "lb"]}}
_IS_ACHIEVED: PipelineStage = {
    "$match": {"isImported": {"$ne": True}, "$or": [{"source": "manual"}, {"earlierSession": {"$ne": []}}]}
}


async def count_by_date(ctx: Context, customer_ids: Sequence[ObjectId], first: str, last: str) -> list[DailyRecords]:
    """Return how many records clients achieved on each date from `first` to `last`, by date. Access is not checked.

    Without records of an exercise that was done for the first time, and those of imported sessions.
    """
    where: Filter = {"customerId": {"$in": list(customer_ids)}, "date": {"$gte": first, "$lte": last}}
    group = {"_id": {"customerId": "$customerId", "date": "$date"}, "count": {"$sum": 1}}
    fields = {"_id": 0, "customerId": "$_id.customerId", "date": "$_id.date", "count": 1}
    stages: list[PipelineStage] = [{"$group": group}, {"$sort": {"_id.date": 1}}, {"$project": fields}]
    return await records.aggregate(ctx, where, earlier_session_stage(ctx), _IS_ACHIEVED, *stages, hint=_BY_DATE)


async def list_achieved(ctx: Context, customer_id: ObjectId, first: str, last: str) -> list[StoredRecord]:
    """Return the records of a client that `count_by_date` counts."""
    where: Filter = {"customerId": customer_id, "date": {"$gte": first, "$lte": last}}
    private = dict.fromkeys(("companyId", "customerId", "isImported", "earlierSession"), 0)
    stages: list[PipelineStage] = [{"$sort": {"exerciseId": 1, "type": 1, "_id": 1}}, {"$project": private}]
    return await records.aggregate(ctx, where, earlier_session_stage(ctx), _IS_ACHIEVED, *stages, hint=_BY_DATE)


async def find_newest(ctx: Context, customer_ids: Sequence[ObjectId], first: str) -> list[StoredRecord]:
    """Return the newest record of each client from the date `first`, of those that `count_by_date` counts."""
    where: Filter = {"customerId": {"$in": list(customer_ids)}, "date": {"$gte": first}}
    stages: list[PipelineStage] = [
        {"$sort": {"date": 1, "_id": 1}},
        {"$group": {"_id": "$customerId", "newest": {"$last": "$$ROOT"}}},
        {"$replaceRoot": {"newRoot": "$newest"}},
    ]
    return await records.aggregate(ctx, where, earlier_session_stage(ctx), _IS_ACHIEVED, *stages, hint=_BY_DATE)


async def find_first_results(ctx: Context, customer_id: ObjectId, record_ids: Sequence[ObjectId]) -> set[ObjectId]:
    """Return which of some records of a client are of an exercise without an earlier session."""
    where = {"customerId": customer_id, "_id": {"$in": list(record_ids)}}
    stages: list[PipelineStage] = [{"$match": {"earlierSession": []}}, {"$project": {"_id": 1}}]
    first = await records.aggregate(ctx, where, earlier_session_stage(ctx), *stages, hint="_id_")
    return {record["_id"] for record in first}


async def find_logged(
    ctx: Context, customer_id: ObjectId, exercise_ids: Sequence[ObjectId] | None = None
) -> dict[ObjectId, dict[RecordKey, LoggedRecord]]:
    """Return the records derived from logs, of some exercises or of all, by exercise and key."""
    where: Filter = {"customerId": customer_id, "source": "log"}
    if exercise_ids is not None:
        where["exerciseId"] = {"$in": list(exercise_ids)}
    logged: dict[ObjectId, dict[RecordKey, LoggedRecord]] = {}
    for record in await records.find(ctx, where, including=("customerId", "isImported")):
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
