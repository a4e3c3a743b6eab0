"""Personal records in the database: typed in, and at most one of a kind and exercise found in logs."""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents
from coaching_service.core.ids import ObjectId

records = Documents[Document](
    "personalRecords",
    (Index(("customerId", "exerciseId", "type", "-date", "_id")),),
    private=("companyId", "customerId"),
    client_field="customerId",
)


async def of(ctx: Context, customer_id: ObjectId) -> list[Document]:
    """A client's records by exercise and type, the latest first."""
    return await records.find(ctx, {"customerId": customer_id}, sort=("exerciseId", "type", "-date", "_id"))


async def found_in_logs(
    ctx: Context, customer_id: ObjectId, exercise_ids: Sequence[ObjectId]
) -> dict[ObjectId, dict[str, Document]]:
    """The records of exercises that were found in logs, by exercise and type."""
    where = {"customerId": customer_id, "exerciseId": {"$in": list(exercise_ids)}, "source": "log"}
    found: dict[ObjectId, dict[str, Document]] = {}
    for record in await records.find(ctx, where):
        found.setdefault(record["exerciseId"], {})[record["type"]] = record
    return found


async def set_found(
    ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, kind: str, fields: Document
) -> Document:
    """Store the record of a kind and exercise found in logs, in place of the one before."""
    where = {"customerId": customer_id, "exerciseId": exercise_id, "source": "log", "type": kind}
    return await records.upsert(ctx, where, fields)


async def drop_found(ctx: Context, customer_id: ObjectId, exercise_id: ObjectId, kind: str) -> None:
    """Remove the record of a kind and exercise found in logs."""
    where = {"customerId": customer_id, "exerciseId": exercise_id, "source": "log", "type": kind}
    await records.delete_many(ctx, where)


async def add(ctx: Context, customer_id: ObjectId, record: Document) -> Document:
    """Store a record typed in."""
    return await records.insert(ctx, {"customerId": customer_id, **record})


async def one(ctx: Context, customer_id: ObjectId, record_id: ObjectId) -> Document | None:
    """The record, or None."""
    return await records.find_one(ctx, {"customerId": customer_id, "_id": record_id})


async def change(
    ctx: Context, customer_id: ObjectId, record_id: ObjectId, fields: Document, version: int | None
) -> Document | None:
    """Set fields of a record; None when the client has no such record."""
    return await records.update(ctx, {"customerId": customer_id, "_id": record_id}, {"$set": fields}, version=version)


async def remove(ctx: Context, customer_id: ObjectId, record_id: ObjectId) -> bool:
    """Remove a record; whether there was one."""
    return await records.delete(ctx, {"customerId": customer_id, "_id": record_id}) is not None
