"""Arguments of the workout tools, and their conversion to items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import Arguments, CustomerArgument, Dates, ToolPage
from coaching_service.core.validation import (
    TEXT_LENGTH,
    Boolean,
    Choice,
    Date,
    Identifier,
    Integer,
    ListOf,
    Number,
    Text,
)
from coaching_service.training.workouts.item_schemas import ScheduledTime
from coaching_service.training.workouts.models import ItemInput, ReminderFields, TaskFields
from coaching_service.training.workouts.set_models import PlannedSet, SetKind
from coaching_service.training.workouts.set_schemas import (
    MAX_LOAD,
    MAX_METERS,
    MAX_PERCENT,
    MAX_REPS,
    MAX_SECONDS,
    MAX_SETS,
    SET_KINDS,
)

_MAX_CALENDAR = 93


class CalendarDates(Dates, ToolPage, CustomerArgument):
    """A client, a range of dates (at most three months), and a page."""

    max_days = _MAX_CALENDAR


def _optional(description: str, **options: Any) -> dict[str, Any]:
    return {"load_default": None, "allow_none": True, "metadata": {"description": description}, **options}


class ToolSet(Arguments):
    """A planned set: repetitions, seconds or meters, with a load or without."""

    reps = Integer(
        minimum=0,
        maximum=MAX_REPS,
        **_optional(
            "Repetitions, or their low end. A set has exactly one of reps, seconds and meters; AMRAP needs none."
        ),
    )
    repsMax = Integer(minimum=0, maximum=MAX_REPS, **_optional("High end of the repetitions."))
    load = Number(  # type: ignore[assignment]  # a field of this name does not affect marshmallow's own method
        minimum=0,
        maximum=MAX_LOAD,
        **_optional("In the company's unit (get_workouts returns it); not with meters."),
    )
    loadPercent = Number(
        minimum=0,
        maximum=MAX_PERCENT,
        **_optional("Percent of the client's training maximum, else of the estimated 1RM; instead of load."),
    )
    seconds = Number(minimum=0, maximum=MAX_SECONDS, **_optional("Work for this time."))
    meters = Number(minimum=0, maximum=MAX_METERS, **_optional("Work over this distance."))
    rest = Number(minimum=0, maximum=MAX_SECONDS, **_optional("Seconds of rest after the set."))
    rpe = Number(minimum=1, maximum=10, **_optional("Intended rating of perceived exertion."))
    rir = Number(minimum=0, maximum=100, **_optional("Intended repetitions in reserve."))
    tempo = Text(max_length=20, **_optional("Such as 3-1-1-0."))
    isWarmup = Boolean(load_default=False, metadata={"description": "Warm-up sets do not count as volume."})
    isAmrap = Boolean(
        load_default=False, metadata={"description": "As many repetitions as possible; reps are the minimum."}
    )
    perSide = Boolean(load_default=False, metadata={"description": "The quantity is for each side."})
    setKind = Choice(
        *SET_KINDS,
        load_default="normal",
        metadata={"description": "drop: less load, directly after the set before; failure: to failure."},
    )
    count = Integer(minimum=1, maximum=20, load_default=1, metadata={"description": "How many such sets."})

    @validates_schema
    def has_one_quantity(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require exactly one quantity, and a maximum that is not below the minimum."""
        quantities = sum(data[name] is not None for name in ("reps", "seconds", "meters"))
        if quantities != 1 and not (quantities == 0 and data["isAmrap"]):
            raise ValidationError("must have exactly one of reps, seconds and meters")
        if data["repsMax"] is not None and (data["reps"] is None or data["repsMax"] < data["reps"]):
            raise ValidationError("must not be less than reps", "repsMax")
        if data["load"] is not None and data["loadPercent"] is not None:
            raise ValidationError("must not be combined with load", "loadPercent")
        for name in ("load", "loadPercent"):
            if data["meters"] is not None and data[name] is not None:
                raise ValidationError("must not be combined with meters", name)


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
    instructions = Text(max_length=TEXT_LENGTH, **_optional("Instructions for the client."))
    superset = Text(max_length=50, **_optional("A label: exercises of the workout that share it alternate."))

    @validates_schema
    def limit_sets(self, data: Mapping[str, Any], **_: Any) -> None:
        """Limit the number of sets."""
        if sum(each["count"] for each in data["sets"]) > MAX_SETS:
            raise ValidationError(f"must not be more than {MAX_SETS} in all", "sets")


class NewWorkout(CustomerArgument):
    """A workout with its exercises."""

    date = Date(required=True, metadata={"description": "The date, YYYY-MM-DD, in the client's time zone."})
    name = Text(required=True, metadata={"description": "The name of the workout, such as Lower body."})
    exercises = ListOf(
        fields.Nested(ToolExercise),
        minimum=1,
        maximum=50,
        required=True,
        metadata={"description": "The exercises, in the order they are done."},
    )


class ToolTask(Arguments):
    """A task that is not an exercise."""

    title = Text(required=True, metadata={"description": "The title of the task."})
    description = Text(max_length=TEXT_LENGTH, **_optional("A description of the task."))


class ToolReminder(Arguments):
    """A reminder."""

    time = ScheduledTime(
        required=True, metadata={"description": "HH:MM in the client's time zone, or a date-time in ISO 8601."}
    )
    message = Text(max_length=2_000, required=True, metadata={"description": "The text of the reminder."})


class NewWorkoutItem(CustomerArgument):
    """An item to add: an exercise, a task or a reminder."""

    workoutId = Identifier(required=True, metadata={"description": "The workout's _id, from get_workouts."})
    exercise = fields.Nested(ToolExercise, **_optional("An exercise with its sets."))
    task = fields.Nested(ToolTask, **_optional("A task that is not an exercise."))
    reminder = fields.Nested(ToolReminder, **_optional("A reminder."))

    @validates_schema
    def exactly_one(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require exactly one item."""
        if sum(data[name] is not None for name in ("exercise", "task", "reminder")) != 1:
            raise ValidationError("must have exactly one of exercise, task and reminder")


class WorkoutMove(CustomerArgument):
    """The move of an item."""

    itemId = Identifier(required=True, metadata={"description": "The item's _id, from get_workouts."})
    fromWorkoutId = Identifier(required=True, metadata={"description": "The _id of the workout that contains it."})
    toWorkoutId = Identifier(
        required=True, metadata={"description": "The _id of the workout to move it to; may be the same."}
    )
    index = Integer(
        minimum=0,
        maximum=1000,
        load_default=1000,
        metadata={"description": "Its new position from 0. Default: the end."},
    )


class ToolSetArguments(TypedDict):
    """The validated arguments of ToolSet."""

    reps: int | None
    repsMax: int | None
    load: float | None
    seconds: float | None
    meters: float | None
    rest: float | None
    rpe: float | None
    rir: float | None
    tempo: str | None
    loadPercent: float | None
    isWarmup: bool
    isAmrap: bool
    perSide: bool
    setKind: SetKind
    count: int


class ToolExerciseArguments(TypedDict):
    """The validated arguments of ToolExercise."""

    exerciseId: ObjectId
    sets: list[ToolSetArguments]
    instructions: str | None
    superset: str | None


class ToolReminderArguments(TypedDict):
    """The validated arguments of ToolReminder."""

    time: str
    message: str


def to_item(
    *, exercise: ToolExerciseArguments | None, task: TaskFields | None, reminder: ToolReminderArguments | None
) -> ItemInput:
    """Return the item that the one given argument describes. Raises ValueError if there is none."""
    if exercise is not None:
        return to_exercise_item(exercise)
    if task is not None:
        return {"type": "TASK", "taskFields": task}
    if reminder is not None:
        fields: ReminderFields = {"scheduledTime": reminder["time"], "message": reminder["message"]}
        return {"type": "REMINDER", "reminderFields": fields}
    raise ValueError("one of exercise, task and reminder is required")


def to_exercise_item(exercise: ToolExerciseArguments) -> ItemInput:
    """Return an exercise with its sets as an item."""
    return {
        "type": "EXERCISE",
        "exerciseId": exercise["exerciseId"],
        "exerciseSets": _planned_sets(exercise["sets"]),
        "exerciseInstructions": exercise["instructions"],
        "supersetId": exercise["superset"],
    }


def _planned_sets(sets: Iterable[ToolSetArguments]) -> list[PlannedSet]:
    repeated = [each for each in sets for _ in range(each["count"])]
    return [_planned_set(index, each) for index, each in enumerate(repeated, 1)]


def _planned_set(index: int, sent: ToolSetArguments) -> PlannedSet:
    planned: PlannedSet = {
        "index": index,
        "type": "reps",
        "rest": sent["rest"],
        "rpe": sent["rpe"],
        "rir": sent["rir"],
        "tempo": sent["tempo"],
        "isWarmup": sent["isWarmup"],
        "isAmrap": sent["isAmrap"],
        "perSide": sent["perSide"],
        "setKind": sent["setKind"],
    }
    if sent["meters"] is not None:
        return {**planned, "type": "distance", "plannedMeters": sent["meters"]}
    has_load = sent["load"] is not None or sent["loadPercent"] is not None
    if has_load:
        planned["load"], planned["loadPercent"] = sent["load"], sent["loadPercent"]
    if sent["seconds"] is not None:
        planned["type"] = "time_load" if has_load else "time"
        return {**planned, "minPlannedSeconds": sent["seconds"], "maxPlannedSeconds": sent["seconds"]}
    planned["type"] = "reps_load" if has_load else "reps"
    return {**planned, "minPlannedReps": sent["reps"], "maxPlannedReps": sent["repsMax"] or sent["reps"]}
