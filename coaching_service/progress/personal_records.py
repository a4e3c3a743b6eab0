"""Personal records as they are sent, stored and returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple, NotRequired, TypeAlias, TypedDict, cast

from marshmallow import ValidationError, validates_schema

from coaching_service.core import fields as core_fields
from coaching_service.core import validation
from coaching_service.core.auth import CUSTOMERS, coach, customer
from coaching_service.core.database.context import Context, Services, gather_reads, transactional
from coaching_service.core.database.declared import RECORDS, History, Index, Portable, Stored
from coaching_service.core.database.documents import Documents, Filter, PipelineStage, now
from coaching_service.core.errors import Conflict, LegacyFailure, NotFound, invalid_field, require_found
from coaching_service.core.fields import input_of, output_of, private_of, take
from coaching_service.core.http.routes import Routes, list_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.core.jobs.worker import for_each_alone
from coaching_service.core.validation import patch_of
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import ADDED, ASSISTANCE, LoadTypeChanged
from coaching_service.people import account, team
from coaching_service.people.account import Conversion, LoadCount
from coaching_service.people.activity import service as activity
from coaching_service.people.activity.models import ESTIMATED_ONE_REP_MAX, FASTEST, HEAVIEST_LOAD, MOST_REPS, RecordType
from coaching_service.people.activity.service import RecordEventData
from coaching_service.people.customers import service as customers
from coaching_service.progress.metrics import service as metrics
from coaching_service.training import body_weights, training_maxes, visibility
from coaching_service.training.body_weights import BodyWeightsChanged
from coaching_service.training.workouts import sets as workout_sets
from coaching_service.training.workouts.blocks.models import CompletedWorkChanged
from coaching_service.training.workouts.blocks.service import recompute_added_loads, recompute_logs
from coaching_service.training.workouts.items.service import best_by_exercise
from coaching_service.training.workouts.reports import exercises as exercise_reports
from coaching_service.training.workouts.reports.blocks import DailyCount
from coaching_service.training.workouts.reports.exercises import earlier_session_stage
from coaching_service.training.workouts.sets import Best, RecordKey, is_better, rank_best

MAX_VALUE = 1_000_000
_TYPES = core_fields.Description(
    "`estimated_1rm`: Epley up to 12 reps, with the reps in reserve of RIR or RPE added first, the load itself for 1; "
    "of the whole weight, with the body's, where `loadType` is `added`. "
    "`longest_time` and `fastest` are in seconds, `farthest_distance` in meters. `least_assistance`: the least help, "
    "of exercises whose `loadType` is `assistance`."
)


class RecordDetails(TypedDict):
    """The fields of a record that can be changed."""

    value: Annotated[float, validation.Number(minimum=0, maximum=MAX_VALUE)]
    reps: Annotated[int | None, validation.Integer(minimum=0, maximum=100_000)]
    date: Annotated[str, validation.CalendarDate()]


class NewPersonalRecord(RecordDetails):
    """A record to enter."""

    exerciseId: ObjectId
    type: Annotated[RecordType, _TYPES]
    meters: Annotated[
        float | None,
        validation.Number(minimum=0, maximum=workout_sets.MAX_METERS),
        core_fields.Description("The distance; required for `fastest`, and only for it."),
    ]


class _DistanceOfFastest(validation.Input):
    @validates_schema
    def has_the_distance_of_a_fastest_time(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require a distance for the fastest time, and none otherwise."""
        if data["type"] == FASTEST and not data["meters"]:
            raise ValidationError("is required for fastest", "meters")
        if data["type"] != FASTEST and data["meters"] is not None:
            raise ValidationError("is only for fastest", "meters")


NEW_PERSONAL_RECORD = input_of(NewPersonalRecord, _DistanceOfFastest)
RecordFields: TypeAlias = core_fields.Partial[RecordDetails]


class _Record(Stored):
    """Loads are in the company's unit, times in seconds, distances in meters, `most_reps` is a count.

    `reps` are the reps of the set. Only the fastest time over a distance has `meters`.
    """

    customerId: Annotated[ObjectId, core_fields.Private]
    exerciseId: ObjectId
    type: Annotated[RecordType, _TYPES]
    value: float
    unit: Annotated[str, validation.Choice(*workout_sets.RECORD_UNITS)]
    reps: int | None
    meters: NotRequired[
        Annotated[
            float,
            core_fields.Optional,
            core_fields.Description(
                "The distance, only of `fastest`. From 1,000 m on, derived records are of the distance in whole steps "
                "of 100 m that was covered."
            ),
        ]
    ]
    date: Annotated[str, validation.CalendarDate()]


class StoredRecord(_Record):
    """A stored record: entered by a coach (`manual`), or derived from the log of the item `witemId`."""

    source: Literal["manual", "log"]
    witemId: Annotated[ObjectId | None, core_fields.Description("The item whose log it is derived from.")]
    isImported: NotRequired[Annotated[bool, core_fields.Private]]


class LoggedRecord(_Record):
    """A stored record that was derived from a log."""

    source: Literal["log"]
    witemId: ObjectId
    isImported: NotRequired[bool]


class RecordToStore(NamedTuple):
    """The best set for an exercise and a record, to be stored as the one derived from logs instead of `previous`."""

    exercise_id: ObjectId
    key: RecordKey
    best: Best
    previous: LoggedRecord | None

    @property
    def is_changed(self) -> bool:
        """Whether the best set is not stored as it is."""
        old, new = self.previous, self.best
        return old is None or any(old.get(name) != new.get(name) for name in ("value", "reps", "date", "witemId"))


class PersonalRecord(StoredRecord):
    """A personal record of a client."""

    exerciseName: str


PERSONAL_RECORD = output_of(PersonalRecord, first=("_id", "exerciseId", "exerciseName"))


# --- Personal records in the database: entered ones, and at most one of an exercise and type derived from logs --------


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


async def count_by_date(ctx: Context, customer_ids: Sequence[ObjectId], first: str, last: str) -> list[DailyCount]:
    """Return how many records clients achieved on each date from `first` to `last`, by date. Access is not checked.

    Without records of an exercise that was done for the first time, and those of imported sessions.
    """
    where: Filter = {"customerId": {"$in": list(customer_ids)}, "date": {"$gte": first, "$lte": last}}
    group = {"_id": {"customerId": "$customerId", "date": "$date"}, "count": {"$sum": 1}}
    fields = {"_id": 0, "customerId": "$_id.customerId", "date": "$_id.date", "count": 1}
    stages: list[PipelineStage] = [{"$group": group}, {"$sort": {"_id.date": 1}}, {"$project": fields}]
    return await records.aggregate(ctx, where, earlier_session_stage(ctx), _IS_ACHIEVED, *stages, hint=_BY_DATE)


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


# --- The estimated one-repetition maximums that follow from a client's records ----------------------------------------


async def _update_estimates(ctx: Context, customer_id: ObjectId, exercise_ids: Sequence[ObjectId]) -> None:
    """Store what follows from a client's records of each of these exercises. The client must be locked."""
    where = {"customerId": customer_id, "exerciseId": {"$in": list(exercise_ids)}}
    highest = await _find_highest_estimates(
        ctx, customer_id, await records.find(ctx, where), ctx.caller.company.load_unit
    )
    await training_maxes.set_estimates(ctx, customer_id, {each: highest.get(each) for each in exercise_ids})


@transactional
async def _renew_estimates(ctx: Context, customer_id: ObjectId, exercise_id: ObjectId) -> None:
    """Store what follows from the records of an exercise that a coach entered, after its loads mean another thing."""
    where = {"customerId": customer_id, "exerciseId": exercise_id}
    if any(record["source"] == "manual" for record in await records.find(ctx, where)):
        await customers.lock_and_mark_figures(ctx, customer_id)
        await _update_estimates(ctx, customer_id, [exercise_id])


async def _find_highest_estimates(
    ctx: Context, customer_id: ObjectId, stored: Sequence[StoredRecord], load_unit: str
) -> dict[ObjectId, float]:
    """Return the highest estimate that follows from a client's records (in `load_unit`), of each exercise with any.

    Nothing follows from a load that a coach entered for an exercise whose loads are assistance, or are added to the
    body's weight, if that is not known.
    """
    entered = {record["exerciseId"] for record in stored if record["source"] == "manual"}
    types = {each: name.get("loadType") for each, name in (await exercises.get_names(ctx, entered)).items()}
    weighed = {record["date"] for record in stored if types.get(record["exerciseId"]) == ADDED}
    weights = await body_weights.find_on_dates(ctx, customer_id, weighed, load_unit)
    highest: dict[ObjectId, float] = {}
    for record in stored:
        load_type = types.get(record["exerciseId"])
        body_weight = weights.get(record["date"]) if load_type == ADDED else 0
        if load_type != ASSISTANCE and (estimate := _estimate_of(record, body_weight)) is not None:
            highest[record["exerciseId"]] = max(estimate, highest.get(record["exerciseId"], estimate))
    return highest


def _estimate_of(record: StoredRecord, body_weight: float | None) -> float | None:
    """Return the estimate that follows from a record, in its unit; None if none does.

    A heaviest load that a coach entered was lifted for its `reps`, for one repetition if they are not known, with the
    body weight to which it was added (0: to none). From the set of one that was logged follows an estimate of its own.
    """
    if record["type"] == ESTIMATED_ONE_REP_MAX:
        return record["value"]
    if record["type"] != HEAVIEST_LOAD or record["source"] == "log" or body_weight is None:
        return None
    estimate = workout_sets.estimate_one_rep_max(
        1 if record["reps"] is None else record["reps"], record["value"] + body_weight
    )
    return None if estimate is None else round(estimate.value, 2)


# --- A client's personal records: entered by coaches, and derived from logs -------------------------------------------


_EVENT: Final = "personal_record"
routes = Routes(
    "/coach/customers/{customerId}/personal-records",
    tag="Personal records",
    locks="customer",
    path_descriptions={"recordId": "The identifier of the personal record."},
)
own_routes = Routes("/customer/personal-records", tag="The client's own")
# The specification documents a malformed identifier here as a 500.
_MALFORMED = {"recordId": ("PERSONAL_RECORD_ID_INVALID", "The personal record's identifier is malformed")}


@routes.get("", access=coach(CUSTOMERS.VIEW), returns=list_of(PERSONAL_RECORD), operation_id="listPersonalRecords")
async def list_records(ctx: Context, customer_id: ObjectId) -> list[PersonalRecord]:
    """List a client's personal records.

    Those entered by a coach, and the best of each exercise and type that was logged (`source`).
    """
    # By name of exercise and type, newest first; without those of days hidden from the client who reads.
    _, visible, stored = await gather_reads(
        ctx,
        customers.get_visible(ctx, customer_id),
        visibility.find_visibility(ctx, customer_id),
        records.find(ctx, {"customerId": customer_id}, sort=("exerciseId", "type", "-date", "_id")),
    )
    shown = [each for each in stored if each["source"] != "log" or visible.allows(day=each["date"])]
    named = await _add_names(ctx, shown)
    return sorted(named, key=lambda record: record["exerciseName"].casefold())


@own_routes.get("", access=customer(), returns=list_of(PERSONAL_RECORD))
async def list_own_personal_records(ctx: Context) -> list[PersonalRecord]:
    """List my personal records.

    Those entered by a coach, and the best of each exercise and type that was logged (`source`).
    """
    return await list_records(ctx, ctx.caller.id)


@routes.get(
    "/{recordId}",
    access=coach(CUSTOMERS.VIEW),
    returns=PERSONAL_RECORD,
    errors=(LegacyFailure,),
    legacy_id_errors=_MALFORMED,
    operation_id="getPersonalRecord",
)
async def get(ctx: Context, customer_id: ObjectId, record_id: ObjectId) -> PersonalRecord:
    """Read a personal record of a client.

    A malformed identifier is 500 with `code` PERSONAL_RECORD_ID_INVALID.
    """
    return await _add_name(ctx, await _load(ctx, customer_id, record_id))


async def _load(ctx: Context, customer_id: ObjectId, record_id: ObjectId) -> StoredRecord:
    await customers.get_visible(ctx, customer_id)
    return require_found(await records.find_one(ctx, {"customerId": customer_id, "_id": record_id}), "personal record")


@routes.post(
    "",
    access=coach(CUSTOMERS.EDIT),
    body=NEW_PERSONAL_RECORD(),
    returns=PERSONAL_RECORD,
    errors=(NotFound,),
    example={
        "exerciseId": "66f0c0ffee0000000000abcd",
        "type": "heaviest_load",
        "value": 120,
        "reps": 1,
        "date": "2026-03-02",
    },
    operation_id="createPersonalRecord",
)
@transactional
async def create(ctx: Context, customer_id: ObjectId, body: NewPersonalRecord) -> PersonalRecord:
    """Enter a personal record."""
    await customers.get_visible(ctx, customer_id)
    _require_whole_reps(body["type"], body["value"])
    await exercises.require(ctx, [body["exerciseId"]])
    unit = await _unit_of(ctx, body["type"])
    await customers.lock_and_mark_figures(ctx, customer_id)
    given = {name: value for name, value in body.items() if name != "meters" or value is not None}
    about = {"customerId": customer_id, "unit": unit, "source": "manual", "witemId": None}
    named = await _add_name(ctx, await records.insert(ctx, {**given, **about}))
    await _update_estimates(ctx, customer_id, [body["exerciseId"]])
    await activity.record_event(ctx, _EVENT, customer_id, named["_id"], **_feed_data(named))
    return named


@routes.patch(
    "/{recordId}",
    access=coach(CUSTOMERS.EDIT),
    body=patch_of(input_of(RecordDetails), name="PersonalRecordChange"),
    returns=PERSONAL_RECORD,
    errors=(LegacyFailure, Conflict),
    legacy_id_errors=_MALFORMED,
    example={"value": 122.5, "version": 0},
    operation_id="updatePersonalRecord",
)
@transactional
async def update(
    ctx: Context, customer_id: ObjectId, record_id: ObjectId, body: core_fields.Change[RecordDetails]
) -> PersonalRecord:
    """Change a personal record that was entered by a coach.

    One derived from a log is 409; a malformed identifier is 500 with `code` PERSONAL_RECORD_ID_INVALID.
    """
    record = await _load_entered(ctx, customer_id, record_id)
    if "value" in body:
        _require_whole_reps(record["type"], body["value"])
    await customers.lock_and_mark_figures(ctx, customer_id)
    where, fields = {"customerId": customer_id, "_id": record_id}, take(RecordFields, body)
    updated = require_found(
        await records.rewrite(ctx, where, lambda _: fields, version=body.get("version")), "personal record"
    )
    await _update_estimates(ctx, customer_id, [record["exerciseId"]])
    named = await _add_name(ctx, updated)
    await activity.correct_events(ctx, [_EVENT], customer_id, [record_id], **_feed_data(named))
    return named


@routes.delete(
    "/{recordId}",
    access=coach(CUSTOMERS.EDIT),
    errors=(LegacyFailure, Conflict),
    legacy_id_errors=_MALFORMED,
    operation_id="deletePersonalRecord",
)
@transactional
async def delete(ctx: Context, customer_id: ObjectId, record_id: ObjectId) -> None:
    """Delete a personal record that was entered by a coach.

    One derived from a log is 409; a malformed identifier is 500 with `code` PERSONAL_RECORD_ID_INVALID.
    """
    record = await _load_entered(ctx, customer_id, record_id)
    await customers.lock_and_mark_figures(ctx, customer_id)
    await records.delete(ctx, {"customerId": customer_id, "_id": record_id})
    await _update_estimates(ctx, customer_id, [record["exerciseId"]])
    await activity.delete_events(ctx, customer_id, record_id, _EVENT)


async def describe_newest(ctx: Context, customer_ids: Sequence[ObjectId], first: str) -> dict[ObjectId, str]:
    """Return the newest record of each client from the date `first` in words. Access is not checked."""
    where: Filter = {"customerId": {"$in": list(customer_ids)}, "date": {"$gte": first}}
    stages: list[PipelineStage] = [
        {"$sort": {"date": 1, "_id": 1}},
        {"$group": {"_id": "$customerId", "newest": {"$last": "$$ROOT"}}},
        {"$replaceRoot": {"newRoot": "$newest"}},
    ]
    newest: list[StoredRecord] = await records.aggregate(
        ctx, where, earlier_session_stage(ctx), _IS_ACHIEVED, *stages, hint=_BY_DATE
    )
    named = await _add_names(ctx, newest)
    return {
        stored["customerId"]: f"{record['exerciseName']}: {record['type'].replace('_', ' ').replace('1rm', '1RM')} "
        f"{record['value']:.10g} {'' if record['unit'] == 'count' else record['unit']}".rstrip()
        for stored, record in zip(newest, named, strict=True)
    }


async def list_achieved(ctx: Context, customer_id: ObjectId, first: str, last: str) -> list[PersonalRecord]:
    """Return the records of a client that `count_by_date` counts. Raises what `list_records` raises."""
    await customers.get_visible(ctx, customer_id)
    where: Filter = {"customerId": customer_id, "date": {"$gte": first, "$lte": last}}
    private = dict.fromkeys(("companyId", "customerId", "isImported", "earlierSession"), 0)
    stages: list[PipelineStage] = [{"$sort": {"exerciseId": 1, "type": 1, "_id": 1}}, {"$project": private}]
    achieved = records.aggregate(ctx, where, earlier_session_stage(ctx), _IS_ACHIEVED, *stages, hint=_BY_DATE)
    return await _add_names(ctx, await achieved)


async def update_records(ctx: Context, event: CompletedWorkChanged) -> None:
    """Update the records derived from logs after items changed.

    Transactions that publish this event for one client run one after another, so each sees the work of all before it.
    """
    customer_id, item_ids = event.customer_id, {item["_id"] for item in event.items}
    exercise_ids = {exercise_id for item in event.items for exercise_id in item["doneExerciseIds"]}
    stored_by_exercise = await find_logged(ctx, customer_id, list(exercise_ids))
    if event.block is None:
        changed = await exercise_reports.find_items(ctx, customer_id, list(item_ids))  # without removed ones
    else:
        date = str(event.block["date"])
        changed = [{"date": date, "item": item} for item in event.block["items"] if item["_id"] in item_ids]
    new_by_exercise = best_by_exercise(changed)
    bests_by_exercise: dict[ObjectId, dict[RecordKey, Best]] = {}
    for exercise_id in exercise_ids:
        stored, new = stored_by_exercise.get(exercise_id, {}), new_by_exercise.get(exercise_id, {})
        # The item that holds a record changed for the worse: another item may be the best now.
        if any(
            record["witemId"] in item_ids
            and (key not in new or rank_best(key.type, new[key]) > rank_best(key.type, record))
            for key, record in stored.items()
        ):
            bests = await exercise_reports.find_best_sets(ctx, customer_id, exercise_id)
        else:
            bests = {**stored}
            for key, best in new.items():
                if key not in bests or rank_best(key.type, best) <= rank_best(key.type, bests[key]):
                    bests[key] = best
        bests_by_exercise[exercise_id] = bests
    await _replace_logged(ctx, customer_id, stored_by_exercise, bests_by_exercise)
    estimate, changed_estimates = RecordKey(ESTIMATED_ONE_REP_MAX), []
    for exercise_id in exercise_ids:
        after, before = (
            bests_by_exercise[exercise_id].get(estimate),
            stored_by_exercise.get(exercise_id, {}).get(estimate),
        )
        if (after and after["value"]) != (before and before["value"]):
            changed_estimates.append(exercise_id)
    if changed_estimates:
        await _update_estimates(ctx, customer_id, changed_estimates)


@transactional
async def rebuild_records(ctx: Context, customer_id: ObjectId) -> None:
    """Derive the records of a client again from all logs, after a change of what is a record; no event is new."""
    await customers.lock_and_mark_figures(ctx, customer_id)
    stored = await find_logged(ctx, customer_id)
    bests = await exercise_reports.find_all_best_sets(ctx, customer_id)
    await _replace_logged(ctx, customer_id, stored, bests, reports=False)
    await _update_estimates(ctx, customer_id, sorted(stored.keys() | bests.keys()))


async def _replace_logged(
    ctx: Context,
    customer_id: ObjectId,
    stored: Mapping[ObjectId, Mapping[RecordKey, LoggedRecord]],
    bests: Mapping[ObjectId, Mapping[RecordKey, Best]],
    *,
    reports: bool = True,
) -> None:
    """Store the best sets of exercises that changed; what no logged set holds any more is deleted, also from the feed.

    `stored`: the records of these exercises. Better ones are reported if `reports`.
    """
    lost = [
        record["_id"]
        for exercise_id, of_exercise in stored.items()
        for key, record in of_exercise.items()
        if key not in bests.get(exercise_id, {})
    ]
    if lost:
        await records.delete_many(ctx, {"customerId": customer_id, "_id": {"$in": lost}})
    for each in lost:
        await activity.delete_events(ctx, customer_id, each, _EVENT)
    better = [
        RecordToStore(exercise_id, key, bests[exercise_id][key], stored.get(exercise_id, {}).get(key))
        for exercise_id in sorted(bests)
        for key in sorted(bests[exercise_id], key=lambda each: each.order)
    ]
    await _store_better(ctx, customer_id, [change for change in better if change.is_changed], reports=reports)


async def _store_better(
    ctx: Context, customer_id: ObjectId, better: Sequence[RecordToStore], *, reports: bool = True
) -> None:
    """Store the records that changed, in a few round trips for any number, and report them if `reports`."""
    if not better:
        return
    units = {each.key.type: "" for each in better}
    for record_type in units:
        units[record_type] = await _unit_of(ctx, record_type)
    added: list[dict[str, object]] = []
    replaced: list[tuple[StoredRecord, dict[str, object]]] = []
    for exercise_id, key, best, previous in better:
        fields: dict[str, object] = {
            **{name: best[name] for name in ("value", "reps", "date", "witemId")},
            "isImported": best.get("isImported", False),
            "unit": units[key.type],
        }
        if previous is None:
            about = {"customerId": customer_id, "exerciseId": exercise_id, "source": "log", "type": key.type}
            added.append({**about, **({} if key.meters is None else {"meters": key.meters}), **fields})
        else:
            replaced.append((cast("StoredRecord", previous), fields))
    new = iter(await records.insert_many(ctx, added))
    rewritten = iter(await records.rewrite_each(ctx, replaced))
    # Others cannot store such records of the client at the same time.
    named = await _add_names(ctx, [next(new if each.previous is None else rewritten) for each in better])
    changed = list(zip(better, named, strict=True))
    unsure = [new["_id"] for old, new in changed if old.previous is None or old.previous["date"] >= new["date"]]
    first_results = set()  # those of an exercise without an earlier session
    if unsure:
        where = {"customerId": customer_id, "_id": {"$in": unsure}}
        stages: list[PipelineStage] = [{"$match": {"earlierSession": []}}, {"$project": {"_id": 1}}]
        first = await records.aggregate(ctx, where, earlier_session_stage(ctx), *stages, hint="_id_")
        first_results = {record["_id"] for record in first}
    for each, record in changed:
        if each.best.get("isImported") or (each.previous is None and not reports):
            continue  # neither is in the feed
        # Only a better value is a new event, but for the first time over a distance; otherwise the event is corrected.
        if each.previous is None:
            is_event = each.key.type != FASTEST
        else:
            is_event = is_better(each.key.type, each.best["value"], each.previous["value"])
        data = _feed_data(record, is_first=record["_id"] in first_results)
        if reports and is_event:
            await activity.record_event(ctx, _EVENT, customer_id, record["_id"], **data)
        else:
            await activity.correct_events(ctx, [_EVENT], customer_id, [record["_id"]], **data)


async def _add_name(ctx: Context, record: StoredRecord) -> PersonalRecord:
    [named] = await _add_names(ctx, [record])
    return named


async def _add_names(ctx: Context, records: Sequence[StoredRecord]) -> list[PersonalRecord]:
    """Add the names of the exercises, deleted ones included."""
    names = await exercises.get_names(ctx, {record["exerciseId"] for record in records})
    return [{**record, "exerciseName": names[record["exerciseId"]]["name"]} for record in records]


def _feed_data(record: PersonalRecord, *, is_first: bool = False) -> RecordEventData:
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
    if (unit := workout_sets.unit_of(record_type)) is not None:
        return unit
    await account.lock_load_unit(ctx)
    return ctx.caller.company.load_unit


async def _load_entered(ctx: Context, customer_id: ObjectId, record_id: ObjectId) -> StoredRecord:
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
    values = {record["_id"]: min(conversion.convert(record["value"]), MAX_VALUE) for record in loads}
    logged = [record for record in loads if record["source"] == "log"]
    for exercise_id in {record["exerciseId"] for record in logged}:
        bests = await exercise_reports.find_best_sets(ctx, customer_id, exercise_id)
        for record in logged:
            if record["exerciseId"] == exercise_id and (best := bests.get(RecordKey(record["type"]))):
                values[record["_id"]] = best["value"]
    fields = {"unit": conversion.load_unit, "updatedAt": now()}
    writes = [
        ({"_id": each}, {"$set": {**fields, "value": value}, "$inc": {"version": 1}}) for each, value in values.items()
    ]
    await records.set_derived_each(ctx, writes)  # a change, but not one of the history
    converted: list[StoredRecord] = [{**record, "value": values[record["_id"]]} for record in loads]
    return count, await _find_highest_estimates(ctx, customer_id, converted, conversion.load_unit)


async def find_with_load(ctx: Context, without: Sequence[ObjectId]) -> tuple[ObjectId | None] | None:
    """Return the client of a personal record with a load, but none of the clients `without`; None if there is none."""
    stored = await records.find_one(ctx, {**IS_LOAD, "customerId": {"$nin": list(without)}}, ("customerId",))
    return None if stored is None else (stored["customerId"],)


# --- The background job that computes figures of logs and personal records again when their meaning has changed -------


RENEW = "renew_training_load"
_RENEWED_AT_ONCE = 10


async def queue_renewal(ctx: Context, event: LoadTypeChanged) -> None:
    """Have the figures of all clients who did an exercise computed again."""
    await queue.enqueue(ctx, RENEW, {"last": None, "exerciseId": event.exercise_id})


async def queue_renewal_of_all(ctx: Context) -> None:
    """Have the figures of all clients of the company computed again."""
    await queue.enqueue(ctx, RENEW, {"last": None, "exerciseId": None})


async def renew_added_loads(ctx: Context, event: BodyWeightsChanged) -> None:
    """Compute again what follows from the loads that were added to a client's body weight; no record is reported."""
    customer_id, first, last = event.customer_id, event.first, event.last
    if await recompute_added_loads(ctx, customer_id, first, last):
        await rebuild_records(ctx, customer_id)
    # What follows from added loads that a coach entered.
    where: Filter = {"customerId": customer_id, "date": {"$gte": first, "$lte": last}, "source": "manual"}
    entered = {each["exerciseId"] for each in await records.find(ctx, where) if each["type"] == HEAVIEST_LOAD}
    names = await exercises.get_names(ctx, entered)
    if added := [each for each, name in names.items() if name.get("loadType") == ADDED]:
        await _update_estimates(ctx, customer_id, added)


async def renew_batch(services: Services, job: Job) -> RunAgain | None:
    """Compute again the figures and records of the next 10 clients of the job's company.

    Of one exercise (`exerciseId`), or of all: then first with the shared library of this version. A client of whom it
    fails gets a job of its own.
    """
    company_id = queue.company_of(job)
    last, exercise_id = job.arguments["last"], job.arguments["exerciseId"]
    if last is None and exercise_id is None:
        await exercises.publish_shared(services)
    try:
        owner = await team.get_owner(services, company_id)
    except NotFound:  # the company is being erased
        return None
    ctx = Context(services, owner, operation=RENEW, interface="system")
    only: ObjectId | None = job.arguments.get("only")
    ids = [only] if only else await customers.list_ids_after(ctx, last, _RENEWED_AT_ONCE)

    async def renew(clients: Sequence[ObjectId]) -> None:
        for customer_id in clients:
            if exercise_id is None:
                await metrics.copy_all(ctx, customer_id)
            if await recompute_logs(ctx, customer_id, exercise_id):
                await rebuild_records(ctx, customer_id)
            elif exercise_id is not None:
                await _renew_estimates(ctx, customer_id, exercise_id)

    for customer_id, wait in (await for_each_alone(services, "training-load", company_id, ids, renew)).items():
        again = {"last": customer_id, "exerciseId": exercise_id, "only": customer_id}
        await queue.enqueue(ctx, RENEW, again, after=wait, about=customer_id)
    return RunAgain(progress={"last": ids[-1]}) if ids and not only else None
