"""What the workout tools take, in an assistant's words, and what becomes of it in ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core.database.documents import Document
from coaching_service.core.mcp.arguments import Arguments, CustomerArgument, Dates, ToolPage
from coaching_service.core.validation import TEXT_LENGTH, Boolean, Date, Identifier, Integer, ListOf, Number, Text
from coaching_service.training.workouts.item_schemas import ScheduledTime
from coaching_service.training.workouts.set_schemas import MAX_LOAD, MAX_METERS, MAX_REPS, MAX_SECONDS, MAX_SETS

_MAX_CALENDAR = 93


class CalendarDates(Dates, ToolPage, CustomerArgument):
    """Whose workouts, of which days (at most three months), and which page of them."""

    max_length = _MAX_CALENDAR


def _optional(about: str, **options: Any) -> dict[str, Any]:
    return {"load_default": None, "allow_none": True, "metadata": {"description": about}, **options}


class ToolSet(Arguments):
    """A planned set: repetitions, seconds or meters, with a load or without."""

    reps = Integer(
        minimum=0,
        maximum=MAX_REPS,
        **_optional("Repetitions; with repsMax the low end. A set has exactly one of reps, seconds and meters."),
    )
    repsMax = Integer(minimum=0, maximum=MAX_REPS, **_optional("High end of the repetitions."))
    load = Number(  # type: ignore[assignment]  # a field may be called so: marshmallow keeps its own method
        minimum=0,
        maximum=MAX_LOAD,
        **_optional("In the company's unit (get_workouts tells it); not with meters."),
    )
    seconds = Number(minimum=0, maximum=MAX_SECONDS, **_optional("Work for this time."))
    meters = Number(minimum=0, maximum=MAX_METERS, **_optional("Work over this distance."))
    rest = Number(minimum=0, maximum=MAX_SECONDS, **_optional("Seconds of rest after the set."))
    rpe = Number(minimum=1, maximum=10, **_optional("Intended rating of perceived exertion."))
    rir = Number(minimum=0, maximum=100, **_optional("Intended repetitions in reserve."))
    tempo = Text(max_length=20, **_optional("Such as 3-1-1-0."))
    isWarmup = Boolean(load_default=False, metadata={"description": "Warm-up sets do not count as volume."})
    count = Integer(minimum=1, maximum=20, load_default=1, metadata={"description": "How many such sets."})

    @validates_schema
    def fits_together(self, data: Mapping[str, Any], **_: Any) -> None:
        """One quantity that tells how much work, and ends in order."""
        if sum(data[name] is not None for name in ("reps", "seconds", "meters")) != 1:
            raise ValidationError("must have exactly one of reps, seconds and meters")
        if data["repsMax"] is not None and (data["reps"] is None or data["repsMax"] < data["reps"]):
            raise ValidationError("must not be less than reps", "repsMax")
        if data["meters"] is not None and data["load"] is not None:
            raise ValidationError("does not go with meters", "load")


class ToolExercise(Arguments):
    """An exercise of a workout with its sets."""

    exerciseId = Identifier(required=True, metadata={"description": "The exercise's _id, from list_exercises."})
    sets = ListOf(
        fields.Nested(ToolSet),
        minimum=1,
        maximum=50,
        required=True,
        metadata={"description": "The sets, in order: at most 100 in all, each counted count times."},
    )
    instructions = Text(max_length=TEXT_LENGTH, **_optional("What the client should mind."))
    superset = Text(max_length=50, **_optional("A label: exercises of the workout that share it alternate."))

    @validates_schema
    def not_too_many(self, data: Mapping[str, Any], **_: Any) -> None:
        """No more sets than an exercise takes."""
        if sum(given["count"] for given in data["sets"]) > MAX_SETS:
            raise ValidationError(f"must not be more than {MAX_SETS} in all", "sets")


class NewWorkout(CustomerArgument):
    """A workout with its exercises."""

    date = Date(required=True, metadata={"description": "The day it is scheduled on, YYYY-MM-DD, the client's date."})
    name = Text(required=True, metadata={"description": "What the workout is called, such as Lower body."})
    exercises = ListOf(
        fields.Nested(ToolExercise),
        minimum=1,
        maximum=50,
        required=True,
        metadata={"description": "The exercises, in the order they are done."},
    )


class ToolTask(Arguments):
    """Something to do that is no exercise."""

    title = Text(required=True, metadata={"description": "What is to be done."})
    description = Text(max_length=TEXT_LENGTH, **_optional("More about it."))


class ToolReminder(Arguments):
    """Something to be reminded of."""

    time = ScheduledTime(required=True, metadata={"description": "HH:MM where the client is, or a moment in ISO 8601."})
    message = Text(max_length=2_000, required=True, metadata={"description": "What the client is reminded of."})


class NewWorkoutItem(CustomerArgument):
    """An item to add: an exercise, a task or a reminder."""

    workoutId = Identifier(required=True, metadata={"description": "The workout's _id, from get_workouts."})
    exercise = fields.Nested(ToolExercise, **_optional("An exercise with its sets."))
    task = fields.Nested(ToolTask, **_optional("Something to do that is no exercise."))
    reminder = fields.Nested(ToolReminder, **_optional("Something to be reminded of."))

    @validates_schema
    def exactly_one(self, data: Mapping[str, Any], **_: Any) -> None:
        """One thing is added at a time."""
        if sum(data[name] is not None for name in ("exercise", "task", "reminder")) != 1:
            raise ValidationError("must have exactly one of exercise, task and reminder")


class WorkoutMove(CustomerArgument):
    """An item's move."""

    itemId = Identifier(required=True, metadata={"description": "The item's _id, from get_workouts."})
    fromWorkoutId = Identifier(required=True, metadata={"description": "The _id of the workout it is in."})
    toWorkoutId = Identifier(
        required=True, metadata={"description": "The _id of the workout it goes to; may be the same."}
    )
    index = Integer(
        minimum=0, maximum=1000, load_default=1000, metadata={"description": "Its new place from 0; left out: the end."}
    )


def as_item(kind: str, given: Document) -> Document:
    """An `exercise`, `task` or `reminder` as the item operations take it."""
    if kind == "exercise":
        return {
            "type": "EXERCISE",
            "exerciseId": given["exerciseId"],
            "exerciseSets": _numbered(given["sets"]),
            "exerciseInstructions": given["instructions"],
            "supersetId": given["superset"],
        }
    if kind == "task":
        return {"type": "TASK", "taskFields": given}
    return {"type": "REMINDER", "reminderFields": {"scheduledTime": given["time"], "message": given["message"]}}


def _numbered(sets: Iterable[Document]) -> list[Document]:
    each_once = [_planned(given) for given in sets for _ in range(given["count"])]
    return [{**planned, "index": number} for number, planned in enumerate(each_once, 1)]


def _planned(given: Document) -> Document:
    shared = {name: given[name] for name in ("rest", "rpe", "rir", "tempo", "isWarmup")}
    if given["meters"] is not None:
        return {"type": "distance", "plannedMeters": given["meters"], **shared}
    load = {} if given["load"] is None else {"load": given["load"]}
    if given["seconds"] is not None:
        ends = {"minPlannedSeconds": given["seconds"], "maxPlannedSeconds": given["seconds"]}
        return {"type": "time_load" if load else "time", **ends, **load, **shared}
    ends = {"minPlannedReps": given["reps"], "maxPlannedReps": given["repsMax"] or given["reps"]}
    return {"type": "reps_load" if load else "reps", **ends, **load, **shared}
