"""Half a year of daily training of one client, inserted directly into the database, to measure the cost of reads."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import date, timedelta
from typing import cast

from coaching_service.core.database.context import Context, transactional
from coaching_service.core.database.documents import Document
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import store as library
from coaching_service.people.activity import service as activity
from coaching_service.people.activity.models import ImportedEvent
from coaching_service.people.customers import service as customers
from coaching_service.progress import form_responses as responses
from coaching_service.progress import personal_records
from coaching_service.training.workouts import store
from coaching_service.training.workouts.blocks.models import BlockContent, CompletedWorkChanged, StoredBlock
from coaching_service.training.workouts.items import service as items
from coaching_service.training.workouts.items.models import ItemInput, ItemLog, WorkItem
from coaching_service.training.workouts.items.service import planned_exercise_ids

FIRST, LAST = date(2025, 9, 8), date(2026, 3, 8)
DAYS = (LAST - FIRST).days + 1
ITEMS_A_DAY, EXERCISES = 6, 32
_BATCH = 100
_INCOMPLETE_EVERY = 10  # every tenth item is not logged


@dataclass(frozen=True)
class Year:
    """The client, the exercises in training, and an item of the last day, with its block."""

    customer_id: ObjectId
    exercises: list[ObjectId]
    block_id: ObjectId
    item_id: ObjectId

    @property
    def path(self) -> str:
        """The path of the client."""
        return f"/coach/customers/{self.customer_id}"

    @property
    def item_path(self) -> str:
        """The path of the item."""
        return f"{self.path}/wblocks/{self.block_id}/witems/{self.item_id}"


async def train(ctx: Context, customer_id: ObjectId) -> Year:
    """Fill the client's calendar from FIRST to LAST with six items a day, nine of ten logged, and derived documents."""
    shared = await library.exercises.find(ctx, {"deletedAt": None}, sort=("sortName",), limit=EXERCISES)
    exercises = [exercise["_id"] for exercise in shared]
    days = [FIRST + timedelta(number) for number in range(DAYS)]
    blocks = [_block(customer_id, number, day, exercises) for number, day in enumerate(days)]
    for start in range(0, DAYS, _BATCH):
        await store.create_many(ctx, blocks[start : start + _BATCH])
    calendar = await store.blocks.find(ctx, {"customerId": customer_id}, sort=("date", "position", "_id"))
    for start in range(0, DAYS, _BATCH):
        await _insert_derived(ctx, customer_id, calendar[start : start + _BATCH])
    await customers.set_last_workout_date(ctx, customer_id, str(LAST))
    return Year(customer_id, exercises, calendar[-1]["_id"], calendar[-1]["items"][0]["_id"])


def _block(customer_id: ObjectId, number: int, day: date, exercises: list[ObjectId]) -> BlockContent:
    rotation = itertools.islice(itertools.cycle(exercises), number * 5 % EXERCISES, None)
    plans = [_exercise(next(rotation)) for _ in range(4)]
    plans += [_circuit(next(rotation), next(rotation)), _form() if day.weekday() == 6 else _task()]
    planned = [items.create_item(cast("ItemInput", plan)) for plan in plans]
    logged = [
        item
        if (number + position) % _INCOMPLETE_EVERY == 0
        else items.log_item(item, cast("ItemLog", _log(item, number)))
        for position, item in enumerate(planned)
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
        "items": logged,
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
    labels = {"How was it?": "text", "Hours of sleep?": "number", "Energy?": "rating"}
    questions = [
        {"_id": ObjectId(), "label": label, "type": question_type, "options": [], "required": False}
        for label, question_type in labels.items()
    ]
    return {"type": "FORM", "form": {"formId": None, "name": "Check-in", "questions": questions}}


def _log(item: WorkItem, number: int) -> Document:
    load = 50 + number % 40 * 0.5 + number // 100
    log: Document = {"isCompleted": True, "comment": None}
    if item["type"] == "EXERCISE":
        log["customerSets"] = [_set(index, 8 + index % 3, load) for index in (1, 2, 3, 4)]
    if item["type"] == "CIRCUIT":
        log["customerSets"] = [
            _set(1, 10, 20 + number % 5, exercise_id, round_number)
            for round_number in (1, 2)
            for exercise_id in planned_exercise_ids(item)
        ]
    if item["type"] == "FORM":
        values = ("Fine, thank you", 7.5, 6)
        questions = item["form"]["questions"]
        log["answers"] = [
            {"questionId": question["_id"], "value": value} for question, value in zip(questions, values, strict=True)
        ]
    return log


def _set(
    index: int, reps: int, load: float, exercise_id: ObjectId | None = None, round_number: int | None = None
) -> Document:
    extra = {"seconds": None, "meters": None, "rpe": 8, "rir": None, "isCompleted": True}
    return {"index": index, "exerciseId": exercise_id, "round": round_number, "reps": reps, "load": load, **extra}


@transactional
async def _insert_derived(ctx: Context, customer_id: ObjectId, blocks: list[StoredBlock]) -> None:
    """Insert the records, feed events and form responses that follow from the logs of these blocks."""
    events: list[ImportedEvent] = []
    form_responses = []
    for block in blocks:
        for item in block["items"]:
            if not item["isCompleted"]:
                continue
            assert item["completedAt"] is not None
            data = {
                "wblockId": block["_id"],
                "blockName": block["name"],
                "day": block["date"],
                "witemId": item["_id"],
                "itemType": item["type"],
            }
            events.append(
                {
                    "customerId": customer_id,
                    "sourceId": item["_id"],
                    "type": "item_logged",
                    "date": item["completedAt"],
                    "data": data,
                    "actor": {"type": "client", "_id": customer_id, "name": "Client"},
                }
            )
            if item["type"] == "FORM":
                assert item["answers"] is not None
                labels = {question["_id"]: question["label"] for question in item["form"]["questions"]}
                answers = [{**answer, "label": labels[answer["questionId"]]} for answer in item["answers"]]
                form = {"formId": None, "formName": item["form"]["name"], "date": block["date"], "answers": answers}
                form_responses.append({"customerId": customer_id, "witemId": item["_id"], **form})
    logged_items = [item for block in blocks for item in block["items"]]
    await personal_records.update_records(ctx, CompletedWorkChanged(customer_id, logged_items))
    await activity.create_many(ctx, events)
    await responses.responses.insert_many(ctx, form_responses)
