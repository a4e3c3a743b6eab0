"""Forms that change many workouts of a calendar or program: their progression, and previews of what they would do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.validation import Choice, Input, Integer, Number
from coaching_service.training.schedule.models import Progression, ScheduleResult
from coaching_service.training.workouts.models import Block
from coaching_service.training.workouts.set_schemas import MAX_LOAD, MAX_REPS
from coaching_service.web.formatting import format_date, quantity
from coaching_service.web.pages import Render
from coaching_service.web.views.item_descriptions import ItemDescription, describe_item

_PREVIEW_SHOWN = "This is a preview: nothing has been changed."


class ProgressionFields(Input):
    """How planned loads and repetitions change; both may be empty."""

    loadChange = Number(minimum=-MAX_LOAD, maximum=MAX_LOAD, allow_none=True, load_default=None)
    loadChangeIn = Choice("unit", "percent", load_default="unit")
    repsChange = Integer(minimum=-MAX_REPS, maximum=MAX_REPS, allow_none=True, load_default=None)


class PreviewedBlock(TypedDict):
    """A workout as it would be after an operation."""

    date: str
    name: str
    isNew: bool
    items: list[ItemDescription]


class Preview(TypedDict):
    """What an operation would do; `operation` is the name of its form, `removed` the number of workouts removed."""

    operation: str
    summary: str
    blocks: list[PreviewedBlock]
    removed: int


def to_progression(form: Mapping[str, Any]) -> Progression | None:
    """Return the progression that the fields of a form mean; None for no change."""
    progression: Progression = {}
    if form["loadChange"]:
        is_percent = form["loadChangeIn"] == "percent"
        progression["load"] = {"percent": form["loadChange"]} if is_percent else {"add": form["loadChange"]}
    if form["repsChange"]:
        progression["reps"] = {"add": form["repsChange"]}
    return progression or None


def render_preview(ctx: Context, operation: str, summary: str, result: ScheduleResult) -> Render:
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
    }
    return Render({"preview": preview}, _PREVIEW_SHOWN)


def _day_of(block: Block) -> tuple[str, int]:
    return block["date"] or "", block["day"] or 0


def describe_copy(result: ScheduleResult) -> str:
    """Describe copied days: `3 workouts copied`, with those removed from the target days."""
    removed = f", {quantity(len(result['removed']), 'workout')} removed" if result["removed"] else ""
    return f"{quantity(len(result['created']), 'workout')} copied{removed}"


def _describe_block(block: Block, unit: str, *, is_new: bool) -> PreviewedBlock:
    return {
        "date": f"Day {block['day']}" if block["date"] is None else format_date(block["date"]),
        "name": block["name"],
        "isNew": is_new,
        "items": [describe_item(item, unit) for item in block["items"]],
    }
