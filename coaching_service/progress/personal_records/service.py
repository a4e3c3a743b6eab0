"""A client's personal records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, version_conflict
from coaching_service.core.database.transactions import gather_reads, in_transaction
from coaching_service.core.errors import Conflict, NotFound, invalid_field
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.people.account import service as account
from coaching_service.people.activity import service as activity
from coaching_service.people.customers import service as customers
from coaching_service.progress.personal_records import store
from coaching_service.training.workouts import queries
from coaching_service.training.workouts.events import CompletedWorkChanged
from coaching_service.training.workouts.models import Best, RecordType
from coaching_service.training.workouts.training_load import MOST_REPS, RECORD_TYPES, best_by_exercise, rank_best

REPS = "count"
_EVENT: Final = "personal_record"


async def of(ctx: Context, customer_id: ObjectId) -> list[Document]:
    """A client's records by exercise and type, the latest first. Raises NotFound, Forbidden."""
    _, records = await gather_reads(ctx, customers.get_visible(ctx, customer_id), store.of(ctx, customer_id))
    named = await _named(ctx, records)
    return sorted(named, key=lambda record: str(record["exerciseName"]).casefold())


async def create(ctx: Context, customer_id: ObjectId, details: Document) -> Document:
    """Type a record in: exerciseId, type, value, reps, date.

    Raises NotFound for the client or the exercise, InvalidFields for a part of a repetition.
    """
    await customers.get_visible(ctx, customer_id)
    _require_whole(details["type"], details)
    await exercises.require(ctx, [details["exerciseId"]])
    record = {**details, "unit": await _unit(ctx, details["type"]), "source": "manual", "witemId": None}

    async def added(tx: Context) -> Document:
        stored = await store.add(tx, customer_id, record)
        await activity.record_event(tx, _EVENT, customer_id, stored["_id"], **await _about(tx, stored))
        return stored

    return (await _named(ctx, [await in_transaction(ctx, added)]))[0]


async def change(ctx: Context, customer_id: ObjectId, record_id: ObjectId, details: Document) -> Document:
    """Change a record that was typed in: value, reps, date.

    Raises NotFound, InvalidFields; Conflict for one found in a log, and when it has moved on since `version`.
    """
    record = await _typed_in(ctx, customer_id, record_id)
    fields = dict(details)
    version = fields.pop("version", None)
    _require_whole(record["type"], fields)
    if version not in (None, record["version"]):
        raise version_conflict()

    async def changed(tx: Context) -> Document:
        stored = await store.change(tx, customer_id, record_id, fields, version)
        if stored is None:
            raise _no_record()
        await activity.correct_event(tx, _EVENT, customer_id, record_id, **await _about(tx, stored))
        return stored

    return (await _named(ctx, [await in_transaction(ctx, changed) if fields else record]))[0]


async def remove(ctx: Context, customer_id: ObjectId, record_id: ObjectId) -> None:
    """Delete a record that was typed in. Raises NotFound; Conflict for one found in a log."""
    await _typed_in(ctx, customer_id, record_id)

    async def removed(tx: Context) -> None:
        if not await store.remove(tx, customer_id, record_id):
            raise _no_record()
        await activity.remove_events(tx, customer_id, record_id, _EVENT)

    await in_transaction(ctx, removed)


async def update_records(ctx: Context, event: CompletedWorkChanged) -> None:
    """Update the records found in logs after items changed.

    Transactions that publish this event for one client run one after another, so that the result holds for all of them.
    """
    customer_id, changed = event.customer_id, event.items
    item_ids = {item["_id"] for item in changed}
    exercise_ids = {identifier for item in changed for identifier in item["doneExerciseIds"]}
    found = await store.found_in_logs(ctx, customer_id, list(exercise_ids))
    there = best_by_exercise(await queries.find_items(ctx, customer_id, list(item_ids)))
    for exercise_id in exercise_ids:
        held = found.get(exercise_id, {})
        new = there.get(exercise_id, {})
        if any(_lost(held[kind], new.get(kind), item_ids) for kind in RECORD_TYPES if kind in held):
            bests = await queries.find_best_sets(ctx, customer_id, exercise_id)
        else:
            bests = _better_of(new, held)
        for kind in RECORD_TYPES:
            await _settle(ctx, customer_id, exercise_id, kind, bests.get(kind), held.get(kind))


def _better_of(new: Mapping[RecordType, Best], held: Mapping[str, Document]) -> dict[RecordType, Best]:
    """Return the better of the new and the stored record of each type."""
    bests: dict[RecordType, Best] = {}
    for kind in RECORD_TYPES:
        candidates = [cast("Best", each) for each in (new.get(kind), held.get(kind)) if each]
        if candidates:
            bests[kind] = min(candidates, key=rank_best)
    return bests


def _lost(record: Document, new: Best | None, changed: set[ObjectId]) -> bool:
    """Whether a record was held by an item that changed and now has less to show: another may be the best."""
    return record["witemId"] in changed and (new is None or rank_best(new) > rank_best(cast("Best", record)))


async def _settle(
    ctx: Context,
    customer_id: ObjectId,
    exercise_id: ObjectId,
    kind: str,
    best: Best | None,
    before: Document | None,
) -> None:
    if best is None:
        if before is not None:
            await store.drop_found(ctx, customer_id, exercise_id, kind)
            await activity.remove_events(ctx, customer_id, before["_id"], _EVENT)
        return
    if before is not None and all(before[name] == value for name, value in best.items()):
        return
    fields: Document = {**best, "unit": await _unit(ctx, kind)}
    stored = await store.set_found(ctx, customer_id, exercise_id, kind, fields)
    # A record that fell back, or came to stand on another date, is no news: what was told of it is put right.
    news = before is None or best["value"] > before["value"]
    tell = activity.record_event if news else activity.correct_event
    await tell(ctx, _EVENT, customer_id, stored["_id"], **await _about(ctx, stored))


async def _named(ctx: Context, records: list[Document]) -> list[Document]:
    """Records with their exercises' names, those of deleted ones included."""
    names = await exercises.load_names(ctx, {record["exerciseId"] for record in records})
    return [{**record, "exerciseName": names[record["exerciseId"]]["name"]} for record in records]


async def _about(ctx: Context, record: Document) -> Document:
    [named] = await _named(ctx, [record])
    facts = {name: named[name] for name in ("exerciseId", "exerciseName", "value", "unit", "reps")}
    return {**facts, "recordType": record["type"], "day": record["date"]}


async def _unit(ctx: Context, kind: str) -> str:
    if kind == MOST_REPS:
        return REPS
    await account.lock_load_unit(ctx)
    return ctx.caller.company.load_unit


async def _typed_in(ctx: Context, customer_id: ObjectId, record_id: ObjectId) -> Document:
    await customers.get_visible(ctx, customer_id)
    record = await store.one(ctx, customer_id, record_id)
    if record is None:
        raise _no_record()
    if record["source"] == "log":
        raise Conflict("This record was found in a log; change the log instead")
    return record


def _require_whole(kind: str, details: Document) -> None:
    if kind == MOST_REPS and details.get("value", 0) % 1:
        raise invalid_field("value", "must be a whole number of repetitions", code="NOT_AN_INTEGER")


def _no_record() -> Exception:
    return NotFound("personal record")
