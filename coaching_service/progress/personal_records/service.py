"""A client's personal records: entered by coaches, and derived from logs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Final

from coaching_service.core.database.context import Context, gather_reads, transactional
from coaching_service.core.database.documents import now
from coaching_service.core.errors import Conflict, invalid_field, require_found
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.people import account
from coaching_service.people.account import Conversion, LoadCount
from coaching_service.people.activity import service as activity
from coaching_service.people.activity.models import ESTIMATED_ONE_REP_MAX, FASTEST, MOST_REPS, RecordType
from coaching_service.people.activity.service import RecordEventData
from coaching_service.people.customers import service as customers
from coaching_service.progress.personal_records import _estimates, store
from coaching_service.progress.personal_records import models as personal_record_models
from coaching_service.progress.personal_records.store import IS_LOAD, records
from coaching_service.training import visibility
from coaching_service.training.workouts import sets
from coaching_service.training.workouts.blocks.models import CompletedWorkChanged
from coaching_service.training.workouts.items.models import DatedItem
from coaching_service.training.workouts.items.totals import best_by_exercise
from coaching_service.training.workouts.reports import exercises as exercise_queries

_EVENT: Final = "personal_record"


async def list_records(ctx: Context, customer_id: ObjectId) -> list[personal_record_models.PersonalRecord]:
    """Return a client's records by name of exercise and type, newest first.

    Those that were logged on a day that is hidden from a client are left out of what this client reads. Raises NotFound
    if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    _, visible, stored = await gather_reads(
        ctx,
        customers.get_visible(ctx, customer_id),
        visibility.find_visibility(ctx, customer_id),
        records.find(ctx, {"customerId": customer_id}, sort=("exerciseId", "type", "-date", "_id")),
    )
    shown = [each for each in stored if each["source"] != "log" or visible.allows(day=each["date"])]
    named = await _add_names(ctx, shown)
    return sorted(named, key=lambda record: record["exerciseName"].casefold())


async def get(ctx: Context, customer_id: ObjectId, record_id: ObjectId) -> personal_record_models.PersonalRecord:
    """Return a record of a client. Raises NotFound if the client has no such record, and what `list_records` raises."""
    return await _add_name(ctx, await _load(ctx, customer_id, record_id))


async def _load(ctx: Context, customer_id: ObjectId, record_id: ObjectId) -> personal_record_models.StoredRecord:
    await customers.get_visible(ctx, customer_id)
    return require_found(await records.find_one(ctx, {"customerId": customer_id, "_id": record_id}), "personal record")


@transactional
async def create(
    ctx: Context, customer_id: ObjectId, record: personal_record_models.NewPersonalRecord
) -> personal_record_models.PersonalRecord:
    """Enter a record and return it.

    Raises NotFound if the exercise does not exist, InvalidFields if `most_reps` is not a whole number, and what
    `list_records` raises.
    """
    await customers.get_visible(ctx, customer_id)
    _require_whole_reps(record["type"], record["value"])
    await exercises.require(ctx, [record["exerciseId"]])
    unit = await _unit_of(ctx, record["type"])
    await customers.lock_and_mark_figures(ctx, customer_id)
    given = {name: value for name, value in record.items() if name != "meters" or value is not None}
    about = {"customerId": customer_id, "unit": unit, "source": "manual", "witemId": None}
    named = await _add_name(ctx, await records.insert(ctx, {**given, **about}))
    await _estimates.update(ctx, customer_id, [record["exerciseId"]])
    await activity.record_event(ctx, _EVENT, customer_id, named["_id"], **_feed_data(named))
    return named


@transactional
async def update(
    ctx: Context, customer_id: ObjectId, record_id: ObjectId, change: personal_record_models.RecordChange
) -> personal_record_models.PersonalRecord:
    """Change an entered record and return it.

    Raises NotFound if the client has no such record, Conflict if it is derived from a log or has changed since
    `change["version"]`, and what `create` raises.
    """
    record = await _load_entered(ctx, customer_id, record_id)
    if "value" in change:
        _require_whole_reps(record["type"], change["value"])
    await customers.lock_and_mark_figures(ctx, customer_id)
    where, fields = {"customerId": customer_id, "_id": record_id}, take(personal_record_models.RecordFields, change)
    updated = require_found(
        await records.rewrite(ctx, where, lambda _: fields, version=change.get("version")), "personal record"
    )
    await _estimates.update(ctx, customer_id, [record["exerciseId"]])
    named = await _add_name(ctx, updated)
    await activity.correct_event(ctx, _EVENT, customer_id, record_id, **_feed_data(named))
    return named


@transactional
async def delete(ctx: Context, customer_id: ObjectId, record_id: ObjectId) -> None:
    """Delete an entered record and its entry in the activity feed.

    Raises NotFound if the client has no such record, Conflict if it is derived from a log, and what `list_records`
    raises.
    """
    record = await _load_entered(ctx, customer_id, record_id)
    await customers.lock_and_mark_figures(ctx, customer_id)
    await records.delete(ctx, {"customerId": customer_id, "_id": record_id})
    await _estimates.update(ctx, customer_id, [record["exerciseId"]])
    await activity.delete_events(ctx, customer_id, record_id, _EVENT)


count_by_date = store.count_by_date


async def describe_newest(ctx: Context, customer_ids: Sequence[ObjectId], first: str) -> dict[ObjectId, str]:
    """Return the newest record of each client from the date `first` in words. Access is not checked."""
    newest = await store.find_newest(ctx, customer_ids, first)
    named = await _add_names(ctx, newest)
    return {
        stored["customerId"]: f"{record['exerciseName']}: {_spell(record['type'])} {record['value']:.10g} "
        f"{'' if record['unit'] == 'count' else record['unit']}".rstrip()
        for stored, record in zip(newest, named, strict=True)
    }


def _spell(record_type: str) -> str:
    return record_type.replace("_", " ").replace("1rm", "1RM")


async def list_achieved(
    ctx: Context, customer_id: ObjectId, first: str, last: str
) -> list[personal_record_models.PersonalRecord]:
    """Return the records of a client that `count_by_date` counts. Raises what `list_records` raises."""
    await customers.get_visible(ctx, customer_id)
    return await _add_names(ctx, await store.list_achieved(ctx, customer_id, first, last))


async def update_records(ctx: Context, event: CompletedWorkChanged) -> None:
    """Update the records derived from logs after items changed.

    Transactions that publish this event for one client run one after another, so each sees the work of all before it.
    """
    customer_id = event.customer_id
    item_ids = {item["_id"] for item in event.items}
    exercise_ids = {exercise_id for item in event.items for exercise_id in item["doneExerciseIds"]}
    stored_by_exercise = await store.find_logged(ctx, customer_id, list(exercise_ids))
    new_by_exercise = best_by_exercise(await _find_changed_items(ctx, event, item_ids))
    lost: list[personal_record_models.LoggedRecord] = []
    better: list[personal_record_models.RecordToStore] = []
    changed_estimates: list[ObjectId] = []
    for exercise_id in exercise_ids:
        stored = stored_by_exercise.get(exercise_id, {})
        new = new_by_exercise.get(exercise_id, {})
        if any(_may_have_lost(key, record, new.get(key), item_ids) for key, record in stored.items()):
            bests = await exercise_queries.find_best_sets(ctx, customer_id, exercise_id)
        else:
            bests = _better_of(new, stored)
        lost += [record for key, record in stored.items() if key not in bests]
        better += _list_better(exercise_id, bests, stored)
        if _value_of(bests) != _value_of(stored):
            changed_estimates.append(exercise_id)
    await _delete_lost(ctx, customer_id, lost)
    await _store_better(ctx, customer_id, better)
    if changed_estimates:
        await _estimates.update(ctx, customer_id, changed_estimates)


@transactional
async def rebuild_records(ctx: Context, customer_id: ObjectId) -> None:
    """Derive the records of a client again from all logs, after a change of what is a record; no event is new."""
    await customers.lock_and_mark_figures(ctx, customer_id)
    stored = await store.find_logged(ctx, customer_id)
    bests = await exercise_queries.find_all_best_sets(ctx, customer_id)
    exercise_ids = sorted(stored.keys() | bests.keys())
    lost = [
        record
        for exercise_id, of_exercise in stored.items()
        for key, record in of_exercise.items()
        if key not in bests.get(exercise_id, {})
    ]
    better = [
        change
        for exercise_id in exercise_ids
        for change in _list_better(exercise_id, bests.get(exercise_id, {}), stored.get(exercise_id, {}))
    ]
    await _delete_lost(ctx, customer_id, lost)
    await _store_better(ctx, customer_id, better, reports=False)
    await _estimates.update(ctx, customer_id, exercise_ids)


async def _find_changed_items(
    ctx: Context, event: CompletedWorkChanged, item_ids: Collection[ObjectId]
) -> list[DatedItem]:
    """Return the changed items as they are now, without removed ones."""
    if event.block is None:
        return await exercise_queries.find_items(ctx, event.customer_id, list(item_ids))
    date = str(event.block["date"])
    return [{"date": date, "item": item} for item in event.block["items"] if item["_id"] in item_ids]


def _list_better(
    exercise_id: ObjectId,
    bests: Mapping[sets.RecordKey, sets.Best],
    stored: Mapping[sets.RecordKey, personal_record_models.LoggedRecord],
) -> list[personal_record_models.RecordToStore]:
    """Return the best sets of an exercise that are not stored as they are, in the order of the types."""
    return [
        personal_record_models.RecordToStore(exercise_id, key, bests[key], stored.get(key))
        for key in sorted(bests, key=lambda each: each.order)
        if not _is_same(stored.get(key), bests[key])
    ]


def _value_of(
    records: Mapping[sets.RecordKey, sets.Best] | Mapping[sets.RecordKey, personal_record_models.LoggedRecord],
) -> float | None:
    """Return the estimated one-repetition maximum among records of an exercise."""
    record = records.get(sets.RecordKey(ESTIMATED_ONE_REP_MAX))
    return record["value"] if record else None


def _better_of(
    new: Mapping[sets.RecordKey, sets.Best], stored: Mapping[sets.RecordKey, personal_record_models.LoggedRecord]
) -> dict[sets.RecordKey, sets.Best]:
    """Return the better of the new and the stored best of each record."""
    bests: dict[sets.RecordKey, sets.Best] = {}
    for key in new.keys() | stored.keys():
        candidates: list[sets.Best] = [best for best in (new.get(key), stored.get(key)) if best]
        bests[key] = min(candidates, key=partial(sets.rank_best, key.type))
    return bests


def _may_have_lost(
    key: sets.RecordKey, record: personal_record_models.LoggedRecord, new: sets.Best | None, changed_ids: set[ObjectId]
) -> bool:
    """Return whether the item that holds a record changed for the worse, so that another item may be the best now."""
    return record["witemId"] in changed_ids and (
        new is None or sets.rank_best(key.type, new) > sets.rank_best(key.type, record)
    )


async def _delete_lost(
    ctx: Context, customer_id: ObjectId, lost: Sequence[personal_record_models.LoggedRecord]
) -> None:
    """Delete records that no logged set holds any more, with their entries in the activity feed."""
    if lost:
        where = {"customerId": customer_id, "_id": {"$in": [record["_id"] for record in lost]}}
        await records.delete_many(ctx, where)
    for record in lost:
        await activity.delete_events(ctx, customer_id, record["_id"], _EVENT)


async def _store_better(
    ctx: Context, customer_id: ObjectId, better: Sequence[personal_record_models.RecordToStore], *, reports: bool = True
) -> None:
    """Store the records that changed, in a few round trips for any number, and report them if `reports`."""
    if not better:
        return
    units = {each.key.type: "" for each in better}
    for record_type in units:
        units[record_type] = await _unit_of(ctx, record_type)
    named = await _add_names(ctx, await store.store_logged(ctx, customer_id, better, units))
    changed = list(zip(better, named, strict=True))
    first_results = await _find_first_results(ctx, customer_id, changed)
    for each, record in changed:
        if each.best.get("isImported") or (each.previous is None and not reports):
            continue  # neither is in the feed
        # Only a better value is a new event; otherwise the data of the existing event is corrected.
        report = activity.record_event if reports and _is_event(each) else activity.correct_event
        await report(
            ctx, _EVENT, customer_id, record["_id"], **_feed_data(record, is_first=record["_id"] in first_results)
        )


async def _find_first_results(
    ctx: Context,
    customer_id: ObjectId,
    stored: Sequence[tuple[personal_record_models.RecordToStore, personal_record_models.PersonalRecord]],
) -> set[ObjectId]:
    """Return which of some records derived from logs have an exercise that the client did for the first time."""
    unsure = [new["_id"] for old, new in stored if old.previous is None or old.previous["date"] >= new["date"]]
    if not unsure:
        return set()
    return await store.find_first_results(ctx, customer_id, unsure)


def _is_event(change: personal_record_models.RecordToStore) -> bool:
    """Return whether a better set is an event of the feed; the first time over a distance is not."""
    if change.previous is None:
        return change.key.type != FASTEST
    return sets.is_better(change.key.type, change.best["value"], change.previous["value"])


def _is_same(record: personal_record_models.LoggedRecord | None, best: sets.Best) -> bool:
    return record is not None and (record["value"], record["reps"], record["date"], record["witemId"]) == (
        best["value"],
        best["reps"],
        best["date"],
        best["witemId"],
    )


async def _add_name(ctx: Context, record: personal_record_models.StoredRecord) -> personal_record_models.PersonalRecord:
    [named] = await _add_names(ctx, [record])
    return named


async def _add_names(
    ctx: Context, records: Sequence[personal_record_models.StoredRecord]
) -> list[personal_record_models.PersonalRecord]:
    """Add the names of the exercises, deleted ones included."""
    names = await exercises.get_names(ctx, {record["exerciseId"] for record in records})
    return [{**record, "exerciseName": names[record["exerciseId"]]["name"]} for record in records]


def _feed_data(record: personal_record_models.PersonalRecord, *, is_first: bool = False) -> RecordEventData:
    data: RecordEventData = {
        "exerciseId": record["exerciseId"],
        "exerciseName": record["exerciseName"],
        "recordType": record["type"],
        "value": record["value"],
        "unit": record["unit"],
        "reps": record["reps"],
        "day": record["date"],
        "isFirst": is_first,
    }
    return {**data, "meters": record["meters"]} if "meters" in record else data


async def _unit_of(ctx: Context, record_type: RecordType) -> str:
    """Return the unit of a type of record; the company's load unit is locked once a record has it."""
    if (unit := sets.unit_of(record_type)) is not None:
        return unit
    await account.lock_load_unit(ctx)
    return ctx.caller.company.load_unit


async def _load_entered(
    ctx: Context, customer_id: ObjectId, record_id: ObjectId
) -> personal_record_models.StoredRecord:
    record = await _load(ctx, customer_id, record_id)
    if record["source"] == "log":
        raise Conflict("This record is derived from a log; change the log instead", code="RECORD_DERIVED_FROM_LOG")
    return record


def _require_whole_reps(record_type: RecordType, value: float) -> None:
    if record_type == MOST_REPS and value % 1:
        raise invalid_field("value", "must be a whole number of repetitions", code="NOT_AN_INTEGER")


# --- Converting the loads of personal records to another unit ---------------------------------------------------------


async def convert_client(
    ctx: Context, customer_id: ObjectId, conversion: Conversion
) -> tuple[LoadCount, Mapping[ObjectId, float]]:
    """Convert the records of a client, who is locked and whose workouts have been converted, in a transaction.

    Those derived from logs follow from the converted sets. Also returns the estimated one-repetition maximums that
    follow from the records, by exercise.
    """
    loads = await records.find(ctx, {"customerId": customer_id, **IS_LOAD})
    count = LoadCount(len(loads), len(loads))
    if not conversion.is_stored:
        return count, {}
    values = await _find_values(ctx, customer_id, loads, conversion)
    fields = {"unit": conversion.load_unit, "updatedAt": now()}
    writes = [
        ({"_id": each}, {"$set": {**fields, "value": value}, "$inc": {"version": 1}}) for each, value in values.items()
    ]
    await records.set_derived_each(ctx, writes)  # a change, but not one of the history
    converted: list[personal_record_models.StoredRecord] = [
        {**record, "value": values[record["_id"]]} for record in loads
    ]
    return count, await _estimates.find_highest(ctx, customer_id, converted, conversion.load_unit)


async def _find_values(
    ctx: Context, customer_id: ObjectId, loads: Sequence[personal_record_models.StoredRecord], conversion: Conversion
) -> dict[ObjectId, float]:
    values = {
        record["_id"]: min(conversion.convert(record["value"]), personal_record_models.MAX_VALUE) for record in loads
    }
    logged = [record for record in loads if record["source"] == "log"]
    for exercise_id in {record["exerciseId"] for record in logged}:
        bests = await exercise_queries.find_best_sets(ctx, customer_id, exercise_id)
        for record in logged:
            if record["exerciseId"] == exercise_id and (best := bests.get(sets.RecordKey(record["type"]))):
                values[record["_id"]] = best["value"]
    return values


async def find_with_load(ctx: Context, without: Sequence[ObjectId]) -> tuple[ObjectId | None] | None:
    """Return the client of a personal record with a load, but none of the clients `without`; None if there is none."""
    stored = await records.find_one(ctx, {**IS_LOAD, "customerId": {"$nin": list(without)}}, ("customerId",))
    return None if stored is None else (stored["customerId"],)
