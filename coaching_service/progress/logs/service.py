"""Logs of completed items and sessions, and the updates that follow from them in the same transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, TypedDict, cast

import orjson

from coaching_service.core import independent_entries
from coaching_service.core.auth import Principal
from coaching_service.core.changes import history
from coaching_service.core.database.context import Context, gather_reads, transactional, version_conflict
from coaching_service.core.database.documents import now
from coaching_service.core.database.recording import Actor
from coaching_service.core.database.worker_thread import on_worker_thread
from coaching_service.core.errors import BadRequest, Conflict, NotFound, invalid_field
from coaching_service.core.events import DomainEvent
from coaching_service.core.fields import DeferredChange
from coaching_service.core.ids import ObjectId
from coaching_service.core.independent_entries import BatchResult, InvalidEntry, Saved, errors_at
from coaching_service.core.validation import NAME_LENGTH
from coaching_service.library.exercises import service as exercises
from coaching_service.people.activity import service as activity
from coaching_service.people.activity.models import ActivityType, ImportedEvent
from coaching_service.people.activity.service import WorkoutEventData
from coaching_service.people.customers import service as customers
from coaching_service.progress import form_responses, notes, personal_records
from coaching_service.progress.metrics import service as metrics
from coaching_service.progress.personal_records import PersonalRecord
from coaching_service.training import visibility
from coaching_service.training.workout_text.lines import name_of
from coaching_service.training.workouts import sets as workout_sets
from coaching_service.training.workouts.blocks import items as block_items
from coaching_service.training.workouts.blocks import models as block_models
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import BlockLog, LoggedBlock
from coaching_service.training.workouts.blocks.service import ClientCalendar, block_not_found
from coaching_service.training.workouts.items import models as item_models
from coaching_service.training.workouts.items import service as items
from coaching_service.training.workouts.items.models import CircuitItem, ExerciseItem, ItemLog, WorkItem
from coaching_service.training.workouts.reports.exercises import add_last_times
from coaching_service.training.workouts.sets import CustomerSet, is_better, with_kind

if TYPE_CHECKING:
    from coaching_service.progress.logs.schemas import LogUpsert

# --- A client's own words in a log: only the client changes them ------------------------------------------------------
# Which texts of a log the client wrote is stored with it as `clientTexts`: `comment`, `pain`, and the text answers of
# a form by the identifier of their question. A session in which a coach impersonates the client does not count as the
# client.


_DESCRIPTIONS = {"comment": "comment", "pain": "description of pain"}
_Text = str | float | list[str] | None
_Texts = Mapping[str, _Text]


def _keep_item_texts(caller: Principal, item: WorkItem, log: ItemLog) -> ItemLog:
    """Return the log of an item with the client's own words preserved, and which texts the client wrote.

    What a coach's log leaves out, or has null for, is preserved. Raises Conflict if a coach's log has a different text.
    """
    stored = _texts_of(item, item, (item["answers"] or ()) if item["type"] == "FORM" else ())
    sent = _texts_of(item, log, log.get("answers", ()))
    texts, client_texts = _merge(caller, stored, item.get("clientTexts", ()), sent)
    comment, pain = (None if texts[name] is None else str(texts[name]) for name in ("comment", "pain"))
    merged: ItemLog = {**log, "comment": comment, "pain": pain, "clientTexts": client_texts}
    if "answers" in log and item["type"] == "FORM":
        kept = {each["_id"]: texts.get(str(each["_id"])) for each in item["form"]["questions"]}
        kept = {question_id: text for question_id, text in kept.items() if text is not None}
        answers: list[item_models.FormAnswer] = [
            {**answer, "value": kept.pop(answer["questionId"], answer["value"])} for answer in log["answers"]
        ]
        added: list[item_models.FormAnswer] = [{"questionId": each, "value": text} for each, text in kept.items()]
        merged["answers"] = [*answers, *added]
    return merged


def _texts_of(item: WorkItem, log: WorkItem | ItemLog, answers: Sequence[item_models.FormAnswer]) -> _Texts:
    """Return the texts of a log, or of an item that was logged, by name; null for missing ones."""
    texts: dict[str, _Text] = {"comment": log["comment"], "pain": log.get("pain")}
    if item["type"] == "FORM":
        values = {answer["questionId"]: answer["value"] for answer in answers}
        text_ids = [question["_id"] for question in item["form"]["questions"] if question["type"] == "text"]
        texts |= {str(question_id): values.get(question_id) for question_id in text_ids}
    return texts


def _merge(caller: Principal, stored: _Texts, client_texts: Collection[str], sent: _Texts) -> tuple[_Texts, list[str]]:
    """Return the texts to store, and the names of texts by the client."""
    if not caller.is_coach and caller.impersonated_by is None:
        # A text of a coach that the client's application sends back unchanged stays the coach's.
        return sent, [name for name, text in sent.items() if text and (text != stored[name] or name in client_texts)]
    protected = [name for name in stored if name in client_texts]
    for name in protected:
        if sent[name] and sent[name] != stored[name]:
            what = _DESCRIPTIONS.get(name, "answer to a question")
            message = f"The client wrote this {what}: only the client can change it; leave it out to keep it"
            raise Conflict(message, code="CLIENT_TEXT")
    return {**sent, **{name: stored[name] for name in protected}}, protected


# --- Changes of the log of an item: of a part of it by its client, and of its sets ------------------------------------


class LogFields(TypedDict, total=False):
    """The fields of a log to set; `values` are the values of a metric set."""

    isCompleted: bool
    comment: str | None
    pain: str | None
    skipped: item_models.Skip | None
    swappedFor: item_models.Swap | None
    values: list[item_models.MetricValue]


def merge_change(item: WorkItem, change: LogFields) -> ItemLog:
    """Return the log of an item with a change.

    A skipped item is not completed, and a completed one not skipped. Raises Conflict if completed sets belong to the
    exercise that was done until now, and would belong to none.
    """
    log: ItemLog = {**stored_log(item), **change}
    if change.get("skipped") is not None:
        log["isCompleted"] = False
    elif log["isCompleted"]:
        log["skipped"] = None
    if item["type"] == "EXERCISE" and "swappedFor" in change:
        swap = change["swappedFor"]
        possible: set[ObjectId] = {item["exerciseId"]} | ({swap["exerciseId"]} if swap else set())
        done: list[CustomerSet] = [
            {**logged, "exerciseId": logged["exerciseId"] or item["exerciseId"]} for logged in item["customerSets"]
        ]
        # Sets that were taken back, of an exercise that is done no more, are not kept.
        log["customerSets"] = [logged for logged in done if logged["exerciseId"] in possible]
        if any(logged["isCompleted"] and logged["exerciseId"] not in possible for logged in done):
            message = "Sets of the other exercise are logged: take them back first"
            raise Conflict(message, code="SWAPPED_SETS_LOGGED")
    return log


def stored_log(item: WorkItem) -> ItemLog:
    """Return the log of an item as it is stored."""
    log: ItemLog = {
        "isCompleted": item["isCompleted"],
        "comment": item["comment"],
        "pain": item.get("pain"),
        "skipped": item.get("skipped"),
        "swappedFor": item.get("swappedFor"),
    }
    if item["type"] == "EXERCISE" or item["type"] == "CIRCUIT":
        log["customerSets"] = item["customerSets"]
    elif item["type"] == "FORM":
        log["answers"] = item["answers"] or []
    elif item["type"] == "METRICS":
        log["values"] = item["values"] or []
    return log


# --- The sets of a log: which exercise each belongs to, and one set in the place of another ---------------------------


def assign_exercises(item: WorkItem, log: ItemLog) -> ItemLog:
    """Return the log of an item with the exercise of each of its sets, as it is stored.

    Raises InvalidFields if a set has an exercise or a round that the item has not.
    """
    sets = log.get("customerSets") or []
    if item["type"] == "EXERCISE":
        swap = log.get("swappedFor")
        swapped_id = swap["exerciseId"] if swap else None
        ids = [
            exercise_of_set(item, swapped_id, logged["exerciseId"], f"customerSets.{position}.")
            for position, logged in enumerate(sets)
        ]
        sets = [{**logged, "exerciseId": each} for logged, each in zip(sets, ids, strict=True)]
    elif item["type"] == "CIRCUIT":
        for position, logged in enumerate(sets):
            require_in_circuit(item, logged["exerciseId"], logged["round"], f"customerSets.{position}.")
    else:
        return log
    if len({_place(logged) for logged in sets}) < len(sets):
        raise invalid_field("customerSets", "must have each index only once", code="DUPLICATE")
    return {**log, "customerSets": with_kinds(item, sets)}


def with_kinds(item: ExerciseItem | CircuitItem, sets: Sequence[CustomerSet]) -> list[CustomerSet]:
    """Return sets with their kinds: where it is not sent, the stored kind of the same set."""
    kinds: dict[object, dict[str, object]] = {
        _place(logged): {name: value for name, value in with_kind(logged).items() if name in ("isWarmup", "setKind")}
        for logged in item["customerSets"]
    }
    return [with_kind(cast("CustomerSet", {**kinds.get(_place(sent), {}), **sent})) for sent in sets]


def _place(logged: CustomerSet) -> tuple[ObjectId | None, int | None, int]:
    return logged["exerciseId"], logged["round"], logged["index"]


def exercise_of_set(
    item: ExerciseItem, swapped_id: ObjectId | None, sent: ObjectId | None, path: str = ""
) -> ObjectId | None:
    """Return the `exerciseId` to store with a set: null if the item has only the planned exercise.

    `swapped_id` is the exercise that was done in its place, and `sent` that in the set; None: the swapped one, else the
    planned one. Raises InvalidFields, naming the field after `path`, if it is neither.
    """
    if sent is not None and sent not in (item["exerciseId"], swapped_id):
        raise _unknown_exercise(path, "must be the exercise of the item, or the one in swappedFor")
    return None if swapped_id is None else sent or swapped_id


def require_in_circuit(
    item: CircuitItem, exercise_id: ObjectId | None, round_number: int | None, path: str = ""
) -> None:
    """Raise InvalidFields, naming the field after `path`, if a circuit has no such exercise or round."""
    if exercise_id not in items.exercise_ids([item]):
        raise _unknown_exercise(path, "must be an exercise of the circuit")
    if round_number is not None and round_number > item["rounds"]:
        raise invalid_field(f"{path}round", f"must not be greater than {item['rounds']}", code="TOO_LARGE")


def _unknown_exercise(path: str, message: str) -> Exception:
    return invalid_field(f"{path}exerciseId", message, code="UNKNOWN_EXERCISE")


# --- A set that a client logs by itself ------------------------------------------------------------------------------
# In any order and as often as it is sent: of the sets of one exercise, round and index the one with the later
# `loggedAt` wins; of two at the same time the one whose values come later in a fixed order, so that the result does not
# depend on which arrived first. A time in the future counts as now: a device whose clock is ahead does not lock a set.

# By how much the clocks of processes may differ: a stored time later than that is of a version that did not limit it.
_CLOCK_TOLERANCE = timedelta(minutes=5)
_SetKey = tuple[ObjectId, int, int]  # exercise, round (1 outside circuits) and index


class AlreadyLogged(Exception):
    """The item has this set, or a later one in its place: nothing changes."""


def merge_set(item: WorkItem, sent: CustomerSet, now: datetime) -> ItemLog:
    """Return the log of an item with a set in place of the set of the same exercise, round and index.

    Without `loggedAt`, or with a later one, the set was done `now`. The item is completed when every planned set has a
    completed one, and stays completed until one of its sets is not. Raises AlreadyLogged, BadRequest if the item has no
    sets, InvalidFields for an exercise or a round that it has not.
    """
    if item["type"] != "EXERCISE" and item["type"] != "CIRCUIT":
        raise BadRequest("Only exercises and circuits have sets; log the item as a whole", code="ITEM_WITHOUT_SETS")
    at = min(sent.get("loggedAt", now), now)
    at = at.replace(microsecond=at.microsecond // 1000 * 1000)  # as precise as what is stored
    if item["type"] == "EXERCISE":
        swap, round_number = item.get("swappedFor"), None
        exercise_id = exercise_of_set(item, swap["exerciseId"] if swap else None, sent["exerciseId"])
        in_plan = [item["exerciseId"]]
    else:
        exercise_id, round_number = sent["exerciseId"], sent["round"] or 1
        require_in_circuit(item, exercise_id, round_number)
        in_plan = [entry["exerciseId"] for entry in item["circuitExercises"]]
    [done] = with_kinds(item, [{**sent, "exerciseId": exercise_id, "round": round_number, "loggedAt": at}])
    sets = {_set_key(item, logged): logged for logged in item["customerSets"]}
    key = _set_key(item, done)
    if key in sets and not _wins(done, sets[key], is_ahead=sent.get("loggedAt", now) > now, now=now):
        raise AlreadyLogged
    sets[key] = done
    if len(sets) > (workout_sets.MAX_CIRCUIT_SETS if item["type"] == "CIRCUIT" else workout_sets.MAX_EXERCISE_SETS):
        raise invalid_field("index", "is one set too many for this item", code="TOO_MANY")

    def place(key: _SetKey) -> tuple[int, int, _SetKey]:
        """Return the order of a set: by round, then in the order of the item's exercises, then by index."""
        return key[1], in_plan.index(key[0]) if key[0] in in_plan else len(in_plan), key

    in_order = [sets[each] for each in sorted(sets, key=place)]
    completed = _has_every_planned_set(item, in_order) or (item["isCompleted"] and done["isCompleted"])
    log: ItemLog = {**stored_log(item), "isCompleted": completed, "customerSets": in_order}
    skipped = None if completed else item.get("skipped")
    return {**log, "skipped": skipped, "clientTexts": item.get("clientTexts", [])}


def _wins(done: CustomerSet, stored: CustomerSet, *, is_ahead: bool, now: datetime) -> bool:
    """Return whether a set takes the place of a stored one, which has no time if it was logged with the whole item.

    A set that was sent with a time in the future changes nothing if its values are stored: it is a repetition.
    """
    if "loggedAt" not in stored or stored["loggedAt"] > now + _CLOCK_TOLERANCE:
        return True
    if is_ahead and _rank(done)[1] == _rank(stored)[1]:
        return False
    return _rank(done) > _rank(stored)


def _rank(logged: CustomerSet) -> tuple[datetime, bytes]:
    values = {name: value for name, value in logged.items() if name not in ("loggedAt", "exerciseId", "round")}
    numbers = {name: float(value) if isinstance(value, int) else value for name, value in values.items()}
    return logged["loggedAt"], orjson.dumps(numbers, option=orjson.OPT_SORT_KEYS)


def _set_key(item: ExerciseItem | CircuitItem, logged: CustomerSet) -> _SetKey:
    exercise_id = logged["exerciseId"]
    if exercise_id is None:
        if item["type"] != "EXERCISE":
            raise ValueError("a logged set of a circuit must have an exercise")
        exercise_id = item["exerciseId"]
    return exercise_id, logged["round"] or 1, logged["index"]


def _has_every_planned_set(item: ExerciseItem | CircuitItem, sets: Sequence[CustomerSet]) -> bool:
    """Return whether each planned set has a completed one, of any exercise that was done in its place."""
    completed = [logged for logged in sets if logged["isCompleted"]]
    if item["type"] == "EXERCISE":
        return {planned["index"] for planned in item["exerciseSets"]} <= {logged["index"] for logged in completed}
    planned_keys = {
        (entry["exerciseId"], round_number, planned["index"])
        for entry in item["circuitExercises"]
        for round_number in range(1, item["rounds"] + 1)
        for planned in entry["sets"]
    }
    return planned_keys <= {_set_key(item, logged) for logged in completed}


# --- Logs of items and sessions ---------------------------------------------------------------------------------------


_MAX_LOGGED_ITEMS = 1_000  # of a request
_LOGGED = ("answers", "values")  # what a caller may not see without the permission of its area


@dataclass(frozen=True)
class ItemLogged(DomainEvent):
    """The log of a workout item of a client was replaced."""

    customer_id: ObjectId


_ACTIVITY_OF_ITEM: dict[str, ActivityType] = {"FORM": "form_submitted", "METRICS": "metric_recorded"}


async def log_item(
    ctx: Context, customer_id: ObjectId, block_id: ObjectId, item_id: ObjectId, log: ItemLog
) -> WorkItem:
    """Replace the log of an item and return the item; `isCompleted: false` marks it as not completed.

    Metric values, the form response, personal records and the activity feed are updated in the same transaction. A new
    text in `pain` also becomes a health note. In a coach's log, texts that the client wrote stay as they are; so do the
    client's choices, and answers and values that the coach may not see, unless the log has others. Raises InvalidFields
    if the log does not match the item, NotFound if the client, block or item does not exist or is hidden from the
    caller, Forbidden if the client is outside the caller's scope, Conflict if the block has changed since the log's
    `version`, or a coach's log has another text than the client wrote.
    """
    return await _log_item(ctx, customer_id, block_id, item_id, lambda item: _keep_unstated(ctx, item, log))


async def log_sent_item(
    ctx: Context, customer_id: ObjectId, block_id: ObjectId, item_id: ObjectId, sent: DeferredChange
) -> WorkItem:
    """Log an item as `log_item` does, with a log that is validated by the type of the stored item."""
    return await _log_item(ctx, customer_id, block_id, item_id, lambda item: _complete(ctx, item, sent))


def _complete(ctx: Context, item: WorkItem, sent: DeferredChange) -> ItemLog:
    log = cast("ItemLog", sent.validate_as(item["type"]))
    stated = {name: value for name, value in log.items() if name not in _LOGGED or sent.sent(name) is not None}
    return _keep_unstated(ctx, item, cast("ItemLog", stated))


async def clear_log(ctx: Context, customer_id: ObjectId, block_id: ObjectId, item_id: ObjectId) -> WorkItem:
    """Delete what was logged for an item, as `log_item` does; Forbidden if the caller may not see what it has."""

    def clear(item: WorkItem) -> ItemLog:
        items.require_visible_log(ctx.caller, item)
        return _keep_unstated(ctx, item, {"isCompleted": False, "comment": None})

    return await _log_item(ctx, customer_id, block_id, item_id, clear)


async def log_own_set(ctx: Context, block_id: ObjectId, item_id: ObjectId, done: CustomerSet) -> WorkItem:
    """Log one set of the caller, a client, and return the item; a repetition, or an earlier one, changes nothing.

    It takes the place of the set of the same exercise, round and index. Raises NotFound if the block or item never
    existed or its day is hidden, Conflict if it is gone, BadRequest or InvalidFields if the item has no such set.
    """
    try:
        return await _log_own(ctx, block_id, item_id, lambda item: merge_set(item, done, now()))
    except AlreadyLogged:
        return await block_items.get_item(ctx, ClientCalendar(ctx.caller.id), block_id, item_id)


async def update_own_log(ctx: Context, block_id: ObjectId, item_id: ObjectId, fields: LogFields) -> WorkItem:
    """Change fields of the log of an item of the caller, a client, and return the item; the rest of the log stays.

    Raises what `log_own_set` raises, NotFound for an exercise in `swappedFor` that does not exist, InvalidFields if it
    is the planned one, and Conflict if completed sets are of an exercise that was done until now.
    """
    return await _log_own(ctx, block_id, item_id, lambda item: merge_change(item, fields))


async def _log_own(
    ctx: Context, block_id: ObjectId, item_id: ObjectId, complete: Callable[[WorkItem], ItemLog]
) -> WorkItem:
    """Log an item of the caller, a client. Raises Conflict if it is gone."""
    customer_id, date = ctx.caller.id, None
    try:
        return await _log_item(ctx, customer_id, block_id, item_id, complete)
    except NotFound:
        with suppress(NotFound):
            date = await workouts.get_date(ctx, ClientCalendar(customer_id), block_id)
        patch = await history.find_removed(ctx, customer_id, block_id, "items", item_id)
        # Its block is on a visible day now, or was when it was removed.
        if patch and await visibility.is_shown(ctx, customer_id, date or (patch["before"] or {}).get("date")):
            raise Conflict("The item is no longer in the workout; read the calendar again", code="ITEM_GONE") from None
        raise


@on_worker_thread
@transactional
async def _log_item(
    ctx: Context, customer_id: ObjectId, block_id: ObjectId, item_id: ObjectId, complete: Callable[[WorkItem], ItemLog]
) -> WorkItem:
    """Store the log that `complete` returns for the stored item, and what follows from it."""
    # The lock comes first, so that concurrent logs of one client wait before they do any work that is repeated.
    await customers.lock_active(ctx, customer_id)
    calendar = ClientCalendar(customer_id)
    block = await calendar.get_block(ctx, block_id)
    await _require_shown_day(ctx, customer_id, block["date"])
    previous = block["items"][items.find_index(block["items"], item_id)]
    log = await _validate_log(ctx, previous, complete(previous))
    _, [item] = await _store_logs(ctx, customer_id, block, {"": (previous, log)})
    return item


async def _store_logs(
    ctx: Context,
    customer_id: ObjectId,
    block: block_models.StoredBlock,
    logs: Mapping[str, tuple[WorkItem, ItemLog]],
) -> tuple[block_models.StoredBlock, list[WorkItem]]:
    """Store logs of items of a block, by their paths in the request, and what follows from them.

    That is their values or answers, and the entries in the activity feed, which completed items have. Returns the
    block, and the items as they are read.
    """
    block, logged = await block_items.log_items(ctx, ClientCalendar(customer_id), block, list(logs.values()))
    for (path, (previous, _)), item in zip(logs.items(), logged, strict=True):
        with errors_at(path):
            item_id, date, data = item["_id"], str(block["date"]), _item_data(block, item)
            stored = block["items"][items.find_index(block["items"], item_id)]  # with what the caller may not see
            if stored["type"] == "METRICS":
                set_id, values = stored["metricsFields"]["metricsSetId"], stored["values"] or []
                before = previous["values"] or [] if previous["type"] == "METRICS" else []
                measured = await metrics.record_logged_values(ctx, customer_id, item_id, set_id, date, values, before)
                data["measured"] = measured
            if stored["type"] == "FORM":
                form, answers = stored["form"], stored["answers"] or []
                response_id = await form_responses.record_response(ctx, customer_id, item_id, form, date, answers)
                data["responseId"] = response_id
            activity_type = _ACTIVITY_OF_ITEM.get(item["type"], "item_logged")
            if item["isCompleted"]:
                how: Literal["new", "first"] = "new" if previous["isCompleted"] else "first"
                await activity.record_event(ctx, activity_type, customer_id, item_id, how, **data)
            elif previous["isCompleted"]:
                await activity.delete_events(ctx, customer_id, item_id, activity_type)
            if item["pain"] and item["pain"] != previous.get("pain"):
                await notes.create_health_note(ctx, customer_id, item["pain"])
    await ctx.publish(ItemLogged(customer_id))
    return block, logged


@on_worker_thread
@transactional
async def upsert_logs(ctx: Context, customer_id: ObjectId, entries: Sequence[LogUpsert | InvalidEntry]) -> BatchResult:
    """Replace the logs of items of a client's blocks, each entry whole or not at all.

    Logs that are stored already are no change. An entry fails if its block or an item does not exist, an earlier one
    has its block, the block has changed since its `version`, and as `log_item` does. Raises NotFound and Forbidden for
    the client, InvalidFields for too many items.
    """
    if sum(len(each["items"]) for each in entries if not isinstance(each, InvalidEntry)) > _MAX_LOGGED_ITEMS:
        raise invalid_field("logs", f"must not hold more than {_MAX_LOGGED_ITEMS} items", code="TOO_MANY")
    await customers.lock_active(ctx, customer_id)
    calendar, require_first = ClientCalendar(customer_id), independent_entries.repetitions("wblockId")

    async def save(entry: LogUpsert) -> Saved:
        block = await workouts.get_named(ctx, calendar, entry.get("wblockId"), entry.get("externalId"))
        require_first(block["_id"])
        if entry.get("version") not in (None, block["version"]):
            raise version_conflict()
        require_item, logs = independent_entries.repetitions("witemId"), {}
        for index, sent in enumerate(entry["items"]):
            with errors_at(f"items.{index}"):
                require_item(sent["witemId"])
                item = block["items"][items.find_index(block["items"], sent["witemId"])]
                log = await _validate_log(ctx, item, _complete(ctx, item, sent["log"]))
                if not items.has_log(item, log):
                    logs[f"items.{index}"] = (item, log)
        if not logs:
            return Saved(block["_id"], "unchanged", block["version"])
        is_new = not any(items.is_recorded(item) for item, _ in logs.values())
        after, _ = await _store_logs(ctx, customer_id, block, logs)
        return Saved(block["_id"], "created" if is_new else "updated", after["version"])

    saved = await independent_entries.save_each(ctx, entries, save)
    return independent_entries.result_of(ctx, entries, saved)


async def _validate_log(ctx: Context, item: WorkItem, sent: ItemLog) -> ItemLog:
    """Return a log as it is stored. Raises if it does not match the item, or changes what a client wrote."""
    log = _keep_item_texts(ctx.caller, item, {"answers": [], **sent} if item["type"] == "FORM" else sent)
    swap, previous = log.get("swappedFor"), item.get("swappedFor")
    if swap is not None and (previous is None or swap["exerciseId"] != previous["exerciseId"]):
        if item["type"] == "EXERCISE" and swap["exerciseId"] == item["exerciseId"]:
            raise invalid_field("swappedFor.exerciseId", "must be another exercise than the planned one", code="SAME")
        await exercises.require(ctx, [swap["exerciseId"]])
    if item["type"] == "FORM":
        form_responses.require_valid(item["form"], log.get("answers", []), complete=log["isCompleted"])
    values = log.get("values", [])
    if len({value["metricId"] for value in values}) < len(values):
        raise invalid_field("values", "must name each metric only once", code="DUPLICATE")
    return assign_exercises(item, log)


def _keep_unstated(ctx: Context, item: WorkItem, log: ItemLog) -> ItemLog:
    """Return a log in which what it does not state stays: of a coach's the choices, and what the caller may not see."""
    stored = stored_log(item)
    kept = [] if items.may_see_log(ctx.caller, item) else list(_LOGGED)
    if ctx.caller.is_coach:
        kept += ["swappedFor"] if log["isCompleted"] else ["swappedFor", "skipped"]
    return cast("ItemLog", {**{name: value for name, value in stored.items() if name in kept}, **log})


def _item_data(block: block_models.StoredBlock | block_models.Block, item: WorkItem) -> dict[str, object]:
    """Return what an entry of the activity feed says about an item; its name has at most 200 characters."""
    about = {"witemId": item["_id"], "itemType": item["type"], "itemName": name_of(item)[:NAME_LENGTH]}
    return {**_block_data(block), **about}


def _block_data(block: block_models.StoredBlock | block_models.Block) -> WorkoutEventData:
    return {"wblockId": block["_id"], "blockName": block["name"], "day": str(block["date"])}


@transactional
async def create_logged_blocks(ctx: Context, customer_id: ObjectId, blocks: Sequence[block_models.LoggedBlock]) -> None:
    """Add blocks with their logs to the calendar of a client who has none, with records, responses and activity.

    The activity feed has the times of the logs. For sample data: access and references are not checked.
    """
    calendar = ClientCalendar(customer_id)
    customer = await customers.get_visible(ctx, customer_id, (*customers.SCOPE_FIELDS, "name"))
    actor: Actor = {"type": "client", "_id": customer_id, "name": customer["name"]}
    marked: list[LoggedBlock] = []
    for logged in blocks:  # every text is in the client's own words
        logs: list[ItemLog | None] = []
        for planned, log in zip(logged["plan"]["items"], logged["logs"], strict=True):
            texts = {} if log is None else _texts_of(cast("WorkItem", planned), log, log.get("answers", ()))
            logs.append(log and {**log, "clientTexts": [name for name, text in texts.items() if text]})
        marked.append({**logged, "logs": logs, "clientTexts": ["comment"] if logged["comment"] else []})
    stored = await block_items.add_logged_blocks(ctx, calendar, marked)
    times = {str(block["plan"].get("date")): block["loggedAt"] for block in blocks}
    entries: list[ImportedEvent] = []
    added = {block["_id"] for block in stored}

    def add_entry(kind: ActivityType, source_id: ObjectId, at: datetime, data: Mapping[str, object]) -> None:
        about = {"customerId": customer_id, "sourceId": source_id, "actor": actor}
        entries.append(cast("ImportedEvent", {**about, "type": kind, "date": at, "data": dict(data)}))

    for block in await workouts.list_blocks(ctx, calendar, min(times), max(times)):
        if block["_id"] not in added:
            continue
        at = times[str(block["date"])]
        for item in block["items"]:
            if not item["isCompleted"]:
                continue
            if item["type"] == "FORM":
                form, answers = item["form"], item["answers"] or []
                await form_responses.record_response(ctx, customer_id, item["_id"], form, str(block["date"]), answers)
            kind = _ACTIVITY_OF_ITEM.get(item["type"], "item_logged")
            add_entry(kind, item["_id"], at, _item_data(block, item))
        if block["isCompleted"]:
            add_entry("workout_completed", block["_id"], at, _block_data(block))
    await activity.create_many(ctx, entries)
    await calendar.after_completed_work_change(ctx, [item for block in stored for item in block["items"]])
    await ctx.publish(ItemLogged(customer_id))


@transactional
async def log_block(
    ctx: Context, customer_id: ObjectId, block_id: ObjectId, log: block_models.BlockLog
) -> block_models.Block:
    """Replace the log of a session (duration in minutes, RPE from 0 to 10, comment) and return the block.

    A comment that the client wrote stays as it is in a coach's log. Raises NotFound if the client or block does not
    exist or is hidden from the caller, Forbidden if the client is outside the caller's scope, Conflict if the block has
    changed since the log's `version`, or a coach's log has another comment than the client wrote.
    """
    await customers.lock_active(ctx, customer_id)
    calendar = ClientCalendar(customer_id)
    stored = await block_items.read_texts(ctx, calendar, block_id)
    await _require_shown_day(ctx, customer_id, stored["date"])
    if not ctx.caller.is_coach:
        log = {"feeling": None, **log}
    before, sent = {"comment": stored["comment"]}, {"comment": log["comment"]}
    texts, client_texts = _merge(ctx.caller, before, stored["clientTexts"], sent)
    comment = None if texts["comment"] is None else str(texts["comment"])
    merged: BlockLog = {**log, "comment": comment, "clientTexts": client_texts}
    return await block_items.log_block(ctx, calendar, block_id, merged)


async def get_client_texts(ctx: Context, customer_id: ObjectId, block_id: ObjectId) -> block_models.LogTexts:
    """Return which texts of the logs of a block its client wrote: a coach cannot change these.

    Raises NotFound if the client or block does not exist, Forbidden if the client is outside the caller's scope.
    """
    await customers.get_visible(ctx, customer_id)
    return await block_items.read_texts(ctx, ClientCalendar(customer_id), block_id)


async def list_own_blocks(ctx: Context, start_date: str, end_date: str) -> list[block_models.Block]:
    """Return the blocks of the caller, a client, between two dates on the days that are visible to them."""
    visible = await visibility.find_visibility(ctx, ctx.caller.id, start_date, end_date)
    blocks = await workouts.list_blocks(ctx, ClientCalendar(ctx.caller.id), start_date, end_date)
    return [block for block in blocks if visible.allows(day=block["date"])]


async def get_own_block(ctx: Context, block_id: ObjectId) -> block_models.Block:
    """Return a block of the caller, a client. Raises NotFound, also if its day is hidden from the client."""
    block = await workouts.get(ctx, ClientCalendar(ctx.caller.id), block_id)
    await _require_shown_day(ctx, ctx.caller.id, block["date"])
    return block


async def _require_shown_day(ctx: Context, customer_id: ObjectId, date: str | None) -> None:
    """Raise NotFound if the caller is a client, and the day of the block is hidden."""
    if not await visibility.is_shown(ctx, customer_id, date):
        raise block_not_found()


# --- A client's workout with what they did the last time, and the personal records they set in it ---------------------


_Key = tuple[ObjectId, str, float | None]


async def read_own_workout(ctx: Context, block_id: ObjectId) -> block_models.Block:
    """Return a workout of the caller, a client, with `lastTime` of each exercise; days hidden from them are left out.

    Raises NotFound if there is no such workout, or its day is hidden.
    """
    client_id = ctx.caller.id
    visible, block = await gather_reads(
        ctx,
        visibility.find_visibility(ctx, client_id),
        workouts.get(ctx, ClientCalendar(client_id), block_id),
    )
    if not visible.allows(day=block["date"]):
        raise block_not_found()
    [with_last_times] = await add_last_times(ctx, client_id, [block], without=visible.hidden_days)
    return with_last_times


async def log_set(
    ctx: Context, block_id: ObjectId, item_id: ObjectId, done: CustomerSet
) -> tuple[block_models.Block, list[PersonalRecord]]:
    """Log one set of the caller as `log_own_set` does; return the workout, and the records that the set improved.

    A first record of an exercise that was never done before the day of the workout improves nothing.
    """
    before = await personal_records.list_records(ctx, ctx.caller.id)
    await log_own_set(ctx, block_id, item_id, done)
    block, after = await gather_reads(
        ctx, read_own_workout(ctx, block_id), personal_records.list_records(ctx, ctx.caller.id)
    )
    bests = _best_values(before)
    improved = [
        record
        for record in _records_of(block, after)
        if record["witemId"] == item_id
        and is_better(record["type"], record["value"], bests.get(_key(record), record["value"]))
    ]
    return block, improved


async def list_records_of(ctx: Context, customer_id: ObjectId, block: block_models.Block) -> list[PersonalRecord]:
    """Return the personal records that a client set in a workout whose items have `lastTime`.

    Without records of exercises that were never done before, and those that are not as good as a record entered by a
    coach. Raises what `personal_records.list_records` raises.
    """
    return _records_of(block, await personal_records.list_records(ctx, customer_id))


def _records_of(block: block_models.Block, records: Sequence[PersonalRecord]) -> list[PersonalRecord]:
    bests, item_ids = _best_values(records), {item["_id"] for item in block["items"]}
    known = {item["exerciseId"] for item in block["items"] if item["type"] == "EXERCISE" and item.get("lastTime")}
    return [
        record
        for record in records
        if record["witemId"] in item_ids and record["exerciseId"] in known and record["value"] == bests[_key(record)]
    ]


def _best_values(records: Sequence[PersonalRecord]) -> Mapping[_Key, float]:
    bests: dict[_Key, float] = {}
    for record in records:
        known = bests.get(_key(record))
        if known is None or is_better(record["type"], record["value"], known):
            bests[_key(record)] = record["value"]
    return bests


def _key(record: PersonalRecord) -> _Key:
    return record["exerciseId"], record["type"], record.get("meters")
