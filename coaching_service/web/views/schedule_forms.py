"""Forms that change many workouts of a calendar or program: their progression, and previews of what they would do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.fields import Default
from coaching_service.core.validation import Integer, Number
from coaching_service.library.exercises.models import ASSISTANCE
from coaching_service.training.schedule.models import (
    CopiedSchedule,
    CopyRequest,
    Day,
    LoadChange,
    OnConflict,
    Progression,
    ProgressionChanges,
    Repetition,
    ScheduleResult,
    SetCountChange,
    on_conflict,
)
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.items.descriptions import ItemDescription, describe_item, format_number
from coaching_service.training.workouts.sets.models import MAX_LOAD, MAX_REPS, MAX_SETS
from coaching_service.web.formatting import format_date, quantity
from coaching_service.web.pages import Render
from coaching_service.web.views.taken_days import TakenDays, describe_taken_days, describe_untouched

PREVIEW_SHOWN = "This is a preview: nothing has been changed."


# What happens on target days that have workouts: by default these days are left as they are.
ConflictChoice: TypeAlias = Annotated[OnConflict, on_conflict("skip")]


class ProgressionFields(TypedDict):
    """How planned loads, repetitions and sets change; each may be empty. An empty `rounding`: loads are not rounded."""

    loadChange: Annotated[float | None, Number(minimum=-MAX_LOAD, maximum=MAX_LOAD)]
    loadChangeIn: Annotated[Literal["unit", "percent"], Default("unit")]
    rounding: NotRequired[Annotated[float | None, Number(minimum=0.01, maximum=1_000)]]
    repsChange: Annotated[int | None, Integer(minimum=-MAX_REPS, maximum=MAX_REPS)]
    setsChange: Annotated[int | None, Integer(minimum=-MAX_SETS, maximum=MAX_SETS)]
    setsChangeIn: Annotated[Literal["count", "percent"], Default("count")]


class CopyOptions(Repetition, ProgressionFields):
    """How often days are copied, how the sets change, and what happens on target days that have workouts."""

    onConflict: ConflictChoice


class PreviewedBlock(TypedDict):
    """A workout as it would be after an operation."""

    date: str
    name: str
    isNew: bool
    items: list[ItemDescription]


class Preview(TypedDict):
    """What an operation would do; `operation` is the name of its form, `removed` the number of workouts removed.

    `loads` and `sets` are the changed loads and numbers of sets by exercise. `taken` are the target days that have
    workouts, if any can.
    """

    operation: str
    summary: str
    blocks: list[PreviewedBlock]
    removed: int
    loads: list[str]
    sets: list[str]
    taken: TakenDays | None


def to_copy_request(first: Day, last: Day, target: Day, form: CopyOptions) -> CopyRequest:
    """Return the request to copy days as a form states."""
    return CopyRequest(first, last, target, form["repeat"], to_progression(form), form["onConflict"])


def to_progression(form: ProgressionFields) -> Progression | None:
    """Return the progression that the fields of a form mean; None for no change."""
    progression: Progression = {}
    if form["loadChange"]:
        is_percent = form["loadChangeIn"] == "percent"
        progression["load"] = {"percent": form["loadChange"]} if is_percent else {"add": form["loadChange"]}
        if "rounding" in form:
            progression["rounding"] = form["rounding"]
    if form["repsChange"]:
        progression["reps"] = {"add": form["repsChange"]}
    if form["setsChange"]:
        is_percent = form["setsChangeIn"] == "percent"
        progression["sets"] = {"percent": form["setsChange"]} if is_percent else {"add": form["setsChange"]}
    return progression or None


def render_preview(
    ctx: Context,
    operation: str,
    summary: str,
    result: ScheduleResult,
    *,
    changes: ProgressionChanges | None = None,
    taken: TakenDays | None = None,
) -> Render:
    """Return the response to a preview: `summary` says what the form named `operation` would do."""
    unit = ctx.caller.company.load_unit
    blocks = [
        *(_describe_block(block, unit, is_new=True) for block in sorted(result["created"], key=_day_of)),
        *(_describe_block(block, unit, is_new=False) for block in sorted(result["changed"], key=_day_of)),
    ]
    preview: Preview = {
        "operation": operation,
        "summary": summary,
        "blocks": blocks,
        "removed": len(result["removed"]),
        "loads": describe_loads(changes["loadChanges"], unit) if changes else [],
        "sets": describe_set_counts(changes["setChanges"]) if changes else [],
        "taken": taken,
    }
    return Render({"preview": preview}, PREVIEW_SHOWN)


def render_summary(operation: str, summary: str, taken: TakenDays) -> Render:
    """Return the response to a preview that says only how much would change, and on which days there are workouts."""
    preview: Preview = {
        "operation": operation,
        "summary": summary,
        "blocks": [],
        "removed": 0,
        "loads": [],
        "sets": [],
        "taken": taken,
    }
    return Render({"preview": preview}, PREVIEW_SHOWN)


def render_copy_preview(
    ctx: Context, operation: str, summary: str, result: CopiedSchedule, on_conflict: OnConflict
) -> Render:
    """Return the response to the preview of copied days, with the days that have workouts."""
    taken = describe_taken_days(result["conflicts"], on_conflict)
    return render_preview(ctx, operation, summary, result, changes=result, taken=taken)


def _day_of(block: Block) -> tuple[str, int]:
    return block["date"] or "", block["day"] or 0


def describe_copy(result: CopiedSchedule, on_conflict: OnConflict) -> str:
    """Describe copied days: `3 workouts copied`, with those removed from the target days, and the days left out."""
    removed = f", {quantity(len(result['removed']), 'workout')} removed" if result["removed"] else ""
    untouched = describe_untouched(result["conflicts"], on_conflict)
    return f"{quantity(len(result['created']), 'workout')} copied{removed}{untouched}"


def describe_loads(changes: Sequence[LoadChange], unit: str) -> list[str]:
    """Describe changed loads, an entry for each exercise: `Squat 60 → 62.5 kg (3 sets)`.

    Less assistance is harder: `Assisted dip 20 → 22.5 kg assistance (3 sets, easier)`.
    """
    by_exercise: dict[str, list[str]] = {}
    for change in changes:
        loads = f"{format_number(change['before'])} → {format_number(change['after'], unit)}"
        sets = quantity(change["sets"], "set")
        if change["loadType"] == ASSISTANCE:
            loads += " assistance"
            sets += ", easier" if change["after"] > change["before"] else ", harder"
        by_exercise.setdefault(change["exerciseName"], []).append(f"{loads} ({sets})")
    return [f"{name} {', '.join(loads)}" for name, loads in by_exercise.items()]


def describe_set_counts(changes: Sequence[SetCountChange]) -> list[str]:
    """Describe changed numbers of sets, an entry for each exercise: `Squat 3 → 2 sets (4 times)`."""
    by_exercise: dict[str, list[str]] = {}
    for change in changes:
        times = f" ({change['items']} times)" if change["items"] > 1 else ""
        by_exercise.setdefault(change["exerciseName"], []).append(
            f"{change['before']} → {quantity(change['after'], 'set')}{times}"
        )
    return [f"{name} {', '.join(counts)}" for name, counts in by_exercise.items()]


def _describe_block(block: Block, unit: str, *, is_new: bool) -> PreviewedBlock:
    return {
        "date": f"Day {block['day']}" if block["date"] is None else format_date(block["date"]),
        "name": block["name"],
        "isNew": is_new,
        "items": [describe_item(item, unit) for item in block["items"]],
    }
