"""What a client did the last time in each exercise of a workout, and what they can lift, in words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.training.training_maxes import service as training_maxes
from coaching_service.training.training_maxes.models import ReferenceLoads
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.items.content import exercise_ids
from coaching_service.training.workouts.items.models import LastTime
from coaching_service.training.workouts.reports.exercises import add_last_times
from coaching_service.training.workouts.sets.models import CustomerSet
from coaching_service.web.formatting import format_number
from coaching_service.web.views.train.lift_words import describe_set


class LastSession(TypedDict):
    """The latest session of an exercise: its date, block, and sets in words."""

    date: str
    wblockId: ObjectId
    sets: str


class LiftFacts(TypedDict):
    """What is known of an exercise; `loads` are such as `Training max 100 kg`."""

    exerciseId: ObjectId
    last: LastSession | None
    loads: list[str]


async def load_lift_facts(ctx: Context, block: Block) -> dict[ObjectId, LiftFacts]:
    """Load what is known of each exercise of a workout by item; nothing in programs. Two queries for the page.

    For a client whose access has been checked.
    """
    customer_id = block["customerId"]
    if customer_id is None or block["date"] is None or not block["items"]:
        return {}
    [with_last_times], loads = await gather_reads(
        ctx,
        add_last_times(ctx, customer_id, [block]),
        training_maxes.load_reference_loads(ctx, customer_id, exercise_ids(block["items"])),
    )
    unit = ctx.caller.company.load_unit
    return {
        item["_id"]: {
            "exerciseId": item["exerciseId"],
            "last": _describe_session(item.get("lastTime"), unit),
            "loads": _describe_loads(loads.get(item["exerciseId"]), unit),
        }
        for item in with_last_times["items"]
        if item["type"] == "EXERCISE"
    }


def _describe_session(last: LastTime | None, unit: str) -> LastSession | None:
    done = [each for each in last["sets"] if each["isCompleted"]] if last is not None else []
    if last is None or not done:
        return None
    return {"date": last["date"], "wblockId": last["wblockId"], "sets": _describe_sets(done, unit)}


def _describe_sets(done: Sequence[CustomerSet], unit: str) -> str:
    """Describe sets, consecutive ones of the same load together, such as `60 kg x 8, 8, 7; 50 kg x 12`."""
    parts: list[str] = []
    for load, same in groupby(done, key=lambda each: each["load"] if each["reps"] is not None else None):
        sets = list(same)
        if load:
            parts.append(f"{format_number(load, unit)} × {', '.join(str(each['reps']) for each in sets)}")
        else:
            parts += [describe_set(each, unit)["amount"] for each in sets]
    return "; ".join(parts)


def _describe_loads(loads: ReferenceLoads | None, unit: str) -> list[str]:
    if loads is None:
        return []
    values = (("Training max", loads["trainingMax"]), ("Estimated 1RM", loads["estimatedOneRepMax"]))
    return [f"{name} {format_number(round(value, 1), unit)}" for name, value in values if value is not None]
