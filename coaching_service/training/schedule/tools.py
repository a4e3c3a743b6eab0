"""MCP tools for many days of a client's calendar."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from marshmallow import Schema, ValidationError, validates_schema

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import UNLISTED, Arguments, CustomerArgument, Dates, optional, require_range
from coaching_service.core.mcp.confirmation import Reason, count_span, find_reasons
from coaching_service.core.mcp.results import RaisedLoad, Written, typed
from coaching_service.core.mcp.tools import ToolHandler, Tools
from coaching_service.core.validation import Choice, Date, Integer, ListOf, Number, Text
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import ASSISTANCE
from coaching_service.people.account.load_units import convert_stored_load
from coaching_service.people.customers import service as customers
from coaching_service.training.schedule import service
from coaching_service.training.schedule.conflicts import describe_conflicts, join_some
from coaching_service.training.schedule.days import days_between, last_day_of
from coaching_service.training.schedule.models import (
    CopyRequest,
    LoadProgression,
    OnConflict,
    Progression,
    ProgressionChanges,
    SetsProgression,
)
from coaching_service.training.workout_text.argument_checks import check_names
from coaching_service.training.workout_text.mentions import describe_readings, resolve_exercises
from coaching_service.training.workout_text.tools import identify_workouts
from coaching_service.training.workout_text.writing import write_item
from coaching_service.training.workouts.blocks import batches as block_batches
from coaching_service.training.workouts.blocks.done_work import regular_blocks
from coaching_service.training.workouts.blocks.models import Block, DayBlock
from coaching_service.training.workouts.blocks.owners import ClientCalendar
from coaching_service.training.workouts.items.content import is_recorded
from coaching_service.training.workouts.items.totals import planned_exercise_ids
from coaching_service.training.workouts.sets.schemas import MAX_LOAD, MAX_REPS, MAX_SETS

tools = Tools()
_MAX_DAYS, _MAX_REPEAT, _MAX_EXERCISES = 366, 12, 50
_MAX_NAMED, _MAX_LISTED = 10, 30
_LAST_DATE = "9999-12-31"
_CHANGES = ("addLoad", "addPercent", "addReps", "addSets", "setsPercent")


class ProgressionArguments(Arguments):
    """How the sets of exercises change."""

    addLoad = Number(minimum=-MAX_LOAD, maximum=MAX_LOAD, **optional("Added to loads, in the client's unit."))
    addPercent = Number(minimum=-100, maximum=1_000, **optional("Percent added to loads, instead of addLoad."))
    addReps = Integer(minimum=-MAX_REPS, maximum=MAX_REPS, **optional("Added to repetitions."))
    addSets = Integer(minimum=-MAX_SETS, maximum=MAX_SETS, **optional("Working sets added; at least one stays."))
    setsPercent = Number(minimum=-100, maximum=1_000, **optional("Percent of working sets, instead of addSets."))
    rounding = Number(
        minimum=0,
        maximum=1_000,
        **optional("Step of loads, default 2.5 kg or 5 lb; 0: exact."),
    )
    exercises = ListOf(Text(), minimum=1, maximum=_MAX_EXERCISES, **optional("Only these: names or _ids."))

    @validates_schema(skip_on_field_errors=False)
    def changes_each_once(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require at most one change of loads, and of numbers of sets."""
        for name, other in (("addPercent", "addLoad"), ("setsPercent", "addSets")):
            if data.get(name) is not None and data.get(other) is not None:
                raise ValidationError(f"must not be combined with {other}", name)


class ScheduleCopy(ProgressionArguments, Dates, CustomerArgument):
    """The days to copy, and where; what is rare is listed with adjust_schedule only."""

    addSets = Integer(minimum=-MAX_SETS, maximum=MAX_SETS, load_default=None, allow_none=True, metadata=UNLISTED)
    setsPercent = Number(minimum=-100, maximum=1_000, load_default=None, allow_none=True, metadata=UNLISTED)
    rounding = Number(minimum=0, maximum=1_000, load_default=None, allow_none=True, metadata=UNLISTED)
    targetDate = Date(required=True, metadata={"description": "First day of the copy."})
    repeat = Integer(
        minimum=1, maximum=_MAX_REPEAT, load_default=1, metadata={"description": "Copies, one after another."}
    )
    onConflict = Choice(
        *("add", "skip", "replace"),
        load_default="add",
        metadata={"description": "On days with workouts; replace: those with nothing done."},
    )


class ScheduleAdjustment(ProgressionArguments, Dates, CustomerArgument):
    """The days whose sets change, and how."""

    @validates_schema(skip_on_field_errors=False)
    def changes_something(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require a change."""
        if all(data.get(name, ...) is None for name in _CHANGES):
            raise ValidationError("is required, or addPercent, addReps, addSets or setsPercent", "addLoad")


class ScheduleClearing(Dates, CustomerArgument):
    """The days to clear."""


class ExerciseReplacement(CustomerArgument):
    """The exercise to replace, the one that takes its place, and the days."""

    exercise = Text(required=True, metadata={"description": "Its name or _id."})
    withExercise = Text(required=True, metadata={"description": "Name or _id of the new one."})
    startDate = Date(required=True, metadata={"description": "First day."})
    endDate = Date(**optional("Last day. Default: no end."))

    @validates_schema(skip_on_field_errors=False)
    def dates_in_order(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require the end not to be before the start, and at most 366 days."""
        require_range(data.get("startDate"), data.get("endDate"), _MAX_DAYS)


def _declare(title: str, takes: Schema) -> Callable[[ToolHandler], ToolHandler]:
    """Declare a tool that changes a schedule."""
    return tools.tool(
        title,
        access=coach(CUSTOMERS.EDIT),
        takes=takes,
        writes=True,
        check=check_names,
        destructive=True,
        confirms=(Reason.MANY_DAYS, Reason.FAR_DATE),
    )


@_declare("Copy days of a calendar", ScheduleCopy())
async def copy_schedule(
    ctx: Context,
    customer_id: ObjectId,
    start_date: str,
    end_date: str,
    target_date: str,
    repeat: int,
    on_conflict: OnConflict,
    **sent: Any,
) -> Written:
    """Copy days of a client's calendar, such as last week, with nothing done; each copy may add load or repetitions."""
    progression, named, read_as = await _read_progression(ctx, customer_id, sent)
    request = CopyRequest(start_date, end_date, target_date, repeat, progression, on_conflict)
    days = (days_between(start_date, end_date) + 1) * repeat
    last = str(last_day_of(target_date, days))
    result = await service.copy_days(ctx, ClientCalendar(customer_id), request)
    created, load_unit = result["created"], ctx.caller.company.load_unit
    removed = f", replacing {_count(len(result['removed']), 'workout')}" if result["removed"] else ""
    return Written(
        f"Copied {start_date} to {end_date} of {await _name(ctx, customer_id)}: {_count(len(created), 'new workout')} "
        f"from {target_date} to {last}{_describe(sent, named)}{removed}{_describe_changes(ctx, result)}"
        f"{describe_conflicts(result['conflicts'], on_conflict)}.{read_as}",
        identify_workouts(created),
        find_reasons(
            today=await customers.get_local_date(ctx, customer_id),
            dates=(start_date, last, target_date),
            days=days,
        ),
        depends_on=_describe_blocks(created, load_unit),
        raised=[
            RaisedLoad(customer_id, change["exerciseId"], change["before"], change["after"])
            for change in result["loadChanges"]
        ],
    )


@_declare("Adjust loads, repetitions and sets", ScheduleAdjustment())
async def adjust_schedule(ctx: Context, customer_id: ObjectId, start_date: str, end_date: str, **sent: Any) -> Written:
    """Change the loads, repetitions or number of sets that are planned on days of a client's calendar, of all exercises
    or some. Items with something done stay."""
    progression, named, read_as = await _read_progression(ctx, customer_id, sent)
    owner = ClientCalendar(customer_id)
    result = await service.adjust(ctx, owner, start_date, end_date, cast("Progression", progression))
    planned = "" if result["items"] else await _name_planned(ctx, owner, start_date, end_date)
    return Written(
        f"Adjusted {_count(result['items'], 'item')} of {await _name(ctx, customer_id)} from {start_date} to "
        f"{end_date}{_describe(sent, named)}{_describe_changes(ctx, result)}.{read_as}{planned}",
        identify_workouts(result["changed"]),
        find_reasons(
            today=await customers.get_local_date(ctx, customer_id),
            dates=(start_date, end_date),
            days=days_between(start_date, end_date) + 1,
        ),
    )


@_declare("Replace an exercise", ExerciseReplacement())
async def replace_exercise(
    ctx: Context, customer_id: ObjectId, exercise: str, with_exercise: str, start_date: str, end_date: str | None
) -> Written:
    """Replace an exercise with another on a client's calendar from startDate on; sets stay, and so do items with
    something done."""
    texts = {"exercise": exercise, "withExercise": with_exercise}
    exercise_id, with_id = await resolve_exercises(ctx, texts, customer_id, ["exercise"])
    owner = ClientCalendar(customer_id)
    result = await service.replace_exercise(ctx, owner, exercise_id, with_id, start_date, end_date)
    found = await exercises.get_names(ctx, [exercise_id, with_id])
    names = [found[each]["name"] for each in (exercise_id, with_id)]
    planned = "" if result["items"] else await _name_planned(ctx, owner, start_date, end_date)
    dates = [str(block["date"]) for block in result["changed"]] or [start_date]
    return Written(
        f"Replaced {typed(names[0])} with {typed(names[1])} in {_count(result['items'], 'item')} of "
        f"{await _name(ctx, customer_id)}, {min(dates)} to {max(dates)}."
        f"{describe_readings(texts.values(), names)}{planned}",
        {"exerciseId": with_id, **identify_workouts(result["changed"])},
        find_reasons(
            today=await customers.get_local_date(ctx, customer_id),
            dates=(*dates, start_date, *([end_date] if end_date else [])),
            days=count_span(dates) if end_date is None else days_between(start_date, end_date) + 1,
        ),
    )


@_declare("Clear days of a calendar", ScheduleClearing())
async def clear_schedule(ctx: Context, customer_id: ObjectId, start_date: str, end_date: str) -> Written:
    """Remove every workout from days of a client's calendar. Those with something done stay, and so do check-ins."""
    owner = ClientCalendar(customer_id)
    await owner.require_access(ctx)
    blocks = regular_blocks(await service.get_target_days(ctx, owner, start_date, end_date, "endDate"))
    result = await service.clear(ctx, owner, start_date, end_date)
    removed = [block for block in blocks if block["_id"] in set(result["removed"])]
    done = [block for block in blocks if block not in removed]
    sentences = [
        f"Removed {_name_blocks(removed)} of {await _name(ctx, customer_id)}, {start_date} to {end_date}",
        *([f"kept {_name_blocks(done)}, with something done"] if done else []),
    ]
    return Written(
        f"{'; '.join(sentences)}.",
        {"workoutIds": result["removed"] if len(removed) <= _MAX_NAMED else []},
        find_reasons(
            today=await customers.get_local_date(ctx, customer_id),
            dates=(start_date, end_date),
            days=days_between(start_date, end_date) + 1,
        ),
    )


def _name_blocks(blocks: Sequence[DayBlock]) -> str:
    """Return how many workouts there are, with their names and dates: `1 workout: «Legs» on 2026-03-02`."""
    named = [f"{typed(block['name'])} on {block['date']}" for block in blocks]
    return f"{_count(len(blocks), 'workout')}{f': {join_some(named, _MAX_NAMED)}' if named else ''}"


async def _name_planned(ctx: Context, owner: ClientCalendar, first: str, last: str | None) -> str:
    """Return a sentence about the exercises that days have, with nothing done, and a space before it."""
    blocks = await block_batches.read_between(ctx, owner, first, last or _LAST_DATE, service.MAX_BLOCKS)
    open_items = [item for block in blocks for item in block["items"] if not is_recorded(item)]
    ids = list(dict.fromkeys(each for item in open_items for each in planned_exercise_ids(item)))
    names = await exercises.get_names(ctx, ids)
    listed = join_some([typed(names[each]["name"]) for each in ids], _MAX_LISTED)
    return f" Planned there, with nothing done: {listed or 'no exercise'}."


async def _read_progression(
    ctx: Context, customer_id: ObjectId, sent: Mapping[str, Any]
) -> tuple[Progression | None, Sequence[str], str]:
    """Return the progression of the arguments, the exercises it names, and how their names were read.

    Raises InvalidFields for a name that means no exercise.
    """
    load: LoadProgression = {}
    if sent["add_load"] is not None:
        load["add"] = sent["add_load"]
    if sent["add_percent"] is not None:
        load["percent"] = sent["add_percent"]
    sets: SetsProgression = {}
    if sent["add_sets"] is not None:
        sets["add"] = sent["add_sets"]
    if sent["sets_percent"] is not None:
        sets["percent"] = sent["sets_percent"]
    if not load and not sets and sent["add_reps"] is None:
        return None, (), ""
    named: Sequence[str] = sent["exercises"] or ()
    texts = {f"exercises.{index}": name for index, name in enumerate(named)}
    ids = await resolve_exercises(ctx, texts, customer_id, texts)
    progression: Progression = {
        "load": load or None,
        "reps": None if sent["add_reps"] is None else {"add": sent["add_reps"]},
        "sets": sets or None,
        "exerciseIds": ids or None,
        "loadUnit": ctx.caller.load_unit,
    }
    if sent["rounding"] is not None:
        progression["rounding"] = sent["rounding"] or None
    found = await exercises.get_names(ctx, ids)
    names = [found[each]["name"] for each in ids]
    return progression, names, describe_readings(named, names)


def _describe(sent: Mapping[str, Any], named: Sequence[str]) -> str:
    """Return the change of the sets in words, such as `, load +2.5`, with the exercises that are named."""
    words = {
        "add_load": "load {:+g}",
        "add_percent": "load {:+g}%",
        "add_reps": "repetitions {:+g}",
        "add_sets": "sets {:+g}",
        "sets_percent": "sets {:+g}%",
    }
    changes = [text.format(sent[name]) for name, text in words.items() if sent[name] is not None]
    of = f" of {', '.join(map(typed, named))}" if named else ""
    return f", {', '.join(changes)}{of}" if changes else ""


def _describe_changes(ctx: Context, changes: ProgressionChanges) -> str:
    """Return the loads and numbers of sets that changed, such as `; «Squat» 60 → 62.5 kg, 3 → 2 sets`, or nothing."""
    show = partial(convert_stored_load, unit=ctx.caller.company.load_unit, target=ctx.caller.load_unit)
    by_exercise: dict[str, list[str]] = {}
    for change in changes["loadChanges"]:
        loads = f"{show(change['before']):.10g} → {show(change['after']):.10g} {ctx.caller.load_unit}"
        if change["loadType"] == ASSISTANCE:
            loads += " assistance"
        by_exercise.setdefault(change["exerciseName"], []).append(loads)
    for count in changes["setChanges"]:
        sets = f"{count['before']} → {_count(count['after'], 'set')}"
        by_exercise.setdefault(count["exerciseName"], []).append(sets)
    shown = [f"{typed(name)} {join_some(loads, _MAX_NAMED)}" for name, loads in by_exercise.items()]
    return f"; {join_some(shown, _MAX_NAMED)}" if shown else ""


def _describe_blocks(blocks: Sequence[Block], load_unit: str) -> list[object]:
    """Return what a confirmation of new blocks depends on: their days, names and items."""
    return [
        [block["date"], block["name"], block["isRest"], [write_item(item, load_unit) for item in block["items"]]]
        for block in blocks
    ]


async def _name(ctx: Context, customer_id: ObjectId) -> str:
    return typed((await customers.get_visible_reference(ctx, customer_id))["name"])


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
