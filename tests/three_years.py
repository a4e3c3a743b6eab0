"""Three years of daily training of one client, put straight into the database: to see what readings cost."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import date, timedelta

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import store as library
from coaching_service.people.activity import store as activity
from coaching_service.people.customers import service as customers
from coaching_service.progress.form_responses import store as responses
from coaching_service.progress.personal_records import service as personal_records
from coaching_service.training.workouts import items, store
from coaching_service.training.workouts.events import CompletedWorkChanged
from coaching_service.training.workouts.training_load import planned_exercise_ids

FIRST, LAST = date(2023, 3, 6), date(2026, 3, 8)
DAYS = (LAST - FIRST).days + 1
ITEMS_A_DAY, EXERCISES = 6, 32
_BATCH = 100
_EVERY_TENTH = 10  # item is left undone


@dataclass(frozen=True)
class Years:
    """The client, the exercises in training, and an item of the last day, with its block."""

    customer_id: ObjectId
    exercises: list[ObjectId]
    block_id: ObjectId
    item_id: ObjectId

    @property
    def path(self) -> str:
        """Where the client is."""
        return f"/coach/customers/{self.customer_id}"

    @property
    def item_path(self) -> str:
        """Where the item is."""
        return f"{self.path}/wblocks/{self.block_id}/witems/{self.item_id}"


async def train(ctx: Context, customer_id: ObjectId) -> Years:
    """Fill the client's calendar from FIRST to LAST with six items a day, nine of ten logged, and what follows."""
    shared = await library.exercises.find(ctx, {"deletedAt": None}, sort=("sortName",), limit=EXERCISES)
    exercises = [exercise["_id"] for exercise in shared]
    days = [FIRST + timedelta(number) for number in range(DAYS)]
    made = [_block(customer_id, number, day, exercises) for number, day in enumerate(days)]
    for at in range(0, DAYS, _BATCH):
        await store.insert_many(ctx, made[at : at + _BATCH])
    calendar = await store.find_all(ctx, {"customerId": customer_id}, "date")
    for at in range(0, DAYS, _BATCH):
        part = calendar[at : at + _BATCH]
        await in_transaction(ctx, lambda tx, part=part: _follow(tx, customer_id, part))  # type: ignore[misc]
    await customers.set_last_workout_date(ctx, customer_id, str(LAST))
    return Years(customer_id, exercises, calendar[-1]["_id"], calendar[-1]["items"][0]["_id"])


def _block(customer_id: ObjectId, number: int, day: date, exercises: list[ObjectId]) -> Document:
    named = itertools.islice(itertools.cycle(exercises), number * 5 % EXERCISES, None)
    plans = [_exercise(next(named)) for _ in range(4)]
    plans += [_circuit(next(named), next(named)), _form() if day.weekday() == 6 else _task()]
    made = [items.create_item(plan) for plan in plans]
    done = [
        item if (number + at) % _EVERY_TENTH == 0 else items.log_item(item, _done(item, number))
        for at, item in enumerate(made)
    ]
    return {
        "customerId": customer_id,
        "programId": None,
        "name": "Training",
        "date": str(day),
        "day": None,
        "isRest": False,
        "durationMinutes": 60 + number % 30,
        "sessionRpe": 5 + number % 4,
        "comment": None,
        "items": done,
    }


def _exercise(exercise_id: ObjectId) -> Document:
    sets = [_planned(index, 60, warm_up=index == 1) for index in (1, 2, 3, 4)]
    return {"type": "EXERCISE", "exerciseId": exercise_id, "exerciseSets": sets, "exerciseInstructions": "Pause below"}


def _circuit(*exercises: ObjectId) -> Document:
    entries = [{"exerciseId": each, "sets": [_planned(1, 20)], "instructions": None} for each in exercises]
    return {"type": "CIRCUIT", "circuitName": "Finisher", "circuitExercises": entries, "rounds": 2}


def _planned(index: int, load: float, *, warm_up: bool = False) -> Document:
    reps = {"minPlannedReps": 8, "maxPlannedReps": 10, "load": load}
    effort = {"rest": 90, "rpe": None, "rir": None, "tempo": None}
    return {"type": "reps_load", "index": index, **reps, **effort, "isWarmup": warm_up}


def _task() -> Document:
    return {"type": "TASK", "taskFields": {"title": "Walk", "description": "Half an hour"}}


def _form() -> Document:
    kinds = [("How was it?", "text"), ("Hours of sleep?", "number"), ("Energy?", "rating")]
    questions = [
        {"_id": ObjectId(), "label": label, "type": kind, "options": [], "required": False} for label, kind in kinds
    ]
    return {"type": "FORM", "form": {"formId": None, "name": "Check-in", "questions": questions}}


def _done(item: Document, number: int) -> Document:
    load = 50 + number % 40 * 0.5 + number // 100
    log: Document = {"isCompleted": True, "comment": None}
    if item["type"] == "EXERCISE":
        log["customerSets"] = [_set(index, 8 + index % 3, load) for index in (1, 2, 3, 4)]
    if item["type"] == "CIRCUIT":
        log["customerSets"] = [
            _set(1, 10, 20 + number % 5, exercise_id, lap)
            for lap in (1, 2)
            for exercise_id in planned_exercise_ids(item)
        ]
    if item["type"] == "FORM":
        values = ("Fine, thank you", 7.5, 6)
        asked = item["form"]["questions"]
        log["answers"] = [{"questionId": one["_id"], "value": value} for one, value in zip(asked, values, strict=True)]
    return log


def _set(index: int, reps: int, load: float, exercise_id: ObjectId | None = None, lap: int | None = None) -> Document:
    extra = {"seconds": None, "meters": None, "rpe": 8, "rir": None, "isCompleted": True}
    return {"index": index, "exerciseId": exercise_id, "round": lap, "reps": reps, "load": load, **extra}


async def _follow(ctx: Context, customer_id: ObjectId, blocks: list[Document]) -> None:
    """What the logs of these blocks leave among the records and in the feed, and the answers to forms."""
    told, answered = [], []
    for block in blocks:
        for item in block["items"]:
            if not item["isCompleted"]:
                continue
            about = {"wblockId": block["_id"], "blockName": block["name"], "day": block["date"]}
            data = {**about, "witemId": item["_id"], "itemType": item["type"]}
            event = {"customerId": customer_id, "type": "item_logged", "date": item["completedAt"], "data": data}
            told.append({**event, "sourceId": item["_id"]})
            if item["type"] == "FORM":
                labels = {one["_id"]: one["label"] for one in item["form"]["questions"]}
                written = [{**answer, "label": labels[answer["questionId"]]} for answer in item["answers"]]
                form = {"formId": None, "formName": item["form"]["name"], "date": block["date"], "answers": written}
                answered.append({"customerId": customer_id, "witemId": item["_id"], **form})
    items = [item for block in blocks for item in block["items"]]
    await personal_records.update_records(ctx, CompletedWorkChanged(customer_id, items))
    await activity.events.insert_many(ctx, told)
    await responses.responses.insert_many(ctx, answered)
