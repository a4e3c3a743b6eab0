"""A client's personal records."""

from __future__ import annotations

from collections.abc import Iterable

from coaching_service.kernel.errors import Conflict, not_found
from coaching_service.kernel.storage.context import Context, in_transaction
from coaching_service.kernel.storage.documents import Document
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.people.account import service as account
from coaching_service.people.activity import service as activity
from coaching_service.people.customers import service as customers
from coaching_service.progress.personal_records import store
from coaching_service.progress.personal_records.bests import KINDS, best_of_each_kind
from coaching_service.training.workouts import readings

REPS = "count"


async def of(ctx: Context, customer_id: ObjectId) -> list[Document]:
    """A client's records by exercise and type. Raises NotFound, Forbidden."""
    await customers.visible(ctx, customer_id)
    return await store.of(ctx, customer_id)


async def create(ctx: Context, customer_id: ObjectId, details: Document) -> Document:
    """Type a record in: exerciseId, type, value, reps, date. Raises NotFound for the client or the exercise."""
    await customers.visible(ctx, customer_id)
    exercise = (await exercises.require(ctx, [details["exerciseId"]]))[details["exerciseId"]]
    record = {
        **details,
        "exerciseName": exercise["name"],
        "unit": await _unit(ctx, details["type"]),
        "source": "manual",
        "witemId": None,
    }

    async def added(tx: Context) -> Document:
        stored = await store.add(tx, customer_id, record)
        await _tell(tx, customer_id, stored)
        return stored

    return await in_transaction(ctx, added)


async def change(ctx: Context, customer_id: ObjectId, record_id: ObjectId, details: Document) -> Document:
    """Change a record that was typed in: value, reps, date.

    Raises NotFound; Conflict for one found in a log, and when it has moved on since `version`.
    """
    record = await _typed_in(ctx, customer_id, record_id)
    fields = dict(details)
    version = fields.pop("version", None)
    changed = await store.change(ctx, customer_id, record_id, fields, version) if fields else record
    if changed is None:
        raise _no_record()
    return changed


async def remove(ctx: Context, customer_id: ObjectId, record_id: ObjectId) -> None:
    """Delete a record that was typed in. Raises NotFound; Conflict for one found in a log."""
    await _typed_in(ctx, customer_id, record_id)

    async def removed(tx: Context) -> None:
        if not await store.remove(tx, customer_id, record_id):
            raise _no_record()
        await activity.undone(tx, customer_id, record_id, "personal_record")

    await in_transaction(ctx, removed)


async def renew(ctx: Context, customer_id: ObjectId, exercise_ids: Iterable[ObjectId]) -> None:
    """Find the records of exercises in the logs anew, in the transaction that changed what was done of them."""
    for exercise_id in exercise_ids:
        done = await readings.done_items(ctx, customer_id, exercise_id)
        bests = best_of_each_kind(done, exercise_id)
        before = await store.found_in_logs(ctx, customer_id, exercise_id)
        name = (await exercises.names(ctx, [exercise_id]))[exercise_id]["name"] if bests else ""
        for kind in KINDS:
            await _settle(ctx, customer_id, exercise_id, name, kind, bests.get(kind), before.get(kind))


async def _settle(
    ctx: Context,
    customer_id: ObjectId,
    exercise_id: ObjectId,
    name: str,
    kind: str,
    best: Document | None,
    before: Document | None,
) -> None:
    if best is None:
        if before is not None:
            await store.drop_found(ctx, customer_id, exercise_id, kind)
            await activity.undone(ctx, customer_id, before["_id"], "personal_record")
        return
    if before is not None and all(before[field] == best[field] for field in best):
        return
    fields = {**best, "exerciseName": name, "unit": await _unit(ctx, kind)}
    stored = await store.set_found(ctx, customer_id, exercise_id, kind, fields)
    if before is None or best["value"] > before["value"]:
        await _tell(ctx, customer_id, stored)


async def _tell(ctx: Context, customer_id: ObjectId, record: Document) -> None:
    facts = {name: record[name] for name in ("exerciseId", "exerciseName", "value", "unit", "reps")}
    await activity.happened(
        ctx, "personal_record", customer_id, record["_id"], **facts, recordType=record["type"], day=record["date"]
    )


async def _unit(ctx: Context, kind: str) -> str:
    if kind == "most_reps":
        return REPS
    await account.keep_unit(ctx)
    return ctx.who.company.load_unit


async def _typed_in(ctx: Context, customer_id: ObjectId, record_id: ObjectId) -> Document:
    await customers.visible(ctx, customer_id)
    record = await store.one(ctx, customer_id, record_id)
    if record is None:
        raise _no_record()
    if record["source"] == "log":
        raise Conflict("This record was found in a log; change the log instead")
    return record


def _no_record() -> Exception:
    return not_found("Personal record")
