"""Arguments of the workout tools, and their conversion to items."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypedDict

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core import mcp, validation
from coaching_service.core.field_schemas import argument_of, arguments_of, input_of
from coaching_service.core.fields import Default, Description, names_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Integer, ListOf, Text
from coaching_service.training.workout_text.writing import DETAILS
from coaching_service.training.workouts import sets as workout_sets
from coaching_service.training.workouts.blocks.models import BlockSettings

_MAX_CALENDAR = 93
MAX_DAYS, MAX_TEXT = 31, 20_000
_SETS_TEXT = Text(max_length=2_000)
_ITEM_ID = re.compile(r"#?[0-9a-fA-F]{6,24}", re.ASCII)


class WorkoutPage(mcp.ToolPage):
    """How much of each workout, and a page."""

    pageSize = Integer(minimum=1, maximum=mcp.MAX_TOOL_PAGE, load_default=40)
    detail = validation.Choice(
        *DETAILS,
        load_default="plan",
        metadata={
            "description": "summary: names of items; plan: sets, notes, what was done; full: also answers, times, "
            "loads of percentages, and arrays."
        },
    )


class CalendarDates(mcp.Dates, WorkoutPage, mcp.CustomerArgument):
    """A client, a range of dates (at most three months), how much of each workout, and a page."""

    max_days = _MAX_CALENDAR


class ItemIdentifier(Text):
    """The identifier of an item, or its last 6 characters or more."""

    def __init__(self, **options: Any) -> None:
        options["metadata"] = {"pattern": "^#?[0-9a-fA-F]{6,24}$", **options.pop("metadata", {})}
        super().__init__(max_length=25, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if not _ITEM_ID.fullmatch(text):
            raise ValidationError("must be 6 to 24 hexadecimal characters, from get_workouts")
        return text


class _Quantity(TypedDict):
    reps: Annotated[int | None, Integer(minimum=0, maximum=workout_sets.MAX_REPS)]
    repsMax: Annotated[int | None, Integer(minimum=0, maximum=workout_sets.MAX_REPS)]
    seconds: Annotated[float | None, validation.Number(minimum=0, maximum=workout_sets.MAX_SECONDS)]
    meters: Annotated[float | None, validation.Number(minimum=0, maximum=workout_sets.MAX_METERS)]


class ToolSetArguments(_Quantity, workout_sets.PlannedLoad, workout_sets.SetOptions):
    """A planned set: repetitions, seconds or meters, with a load or without; `count` such sets."""

    count: Annotated[int, Integer(minimum=1, maximum=20), Default(1)]


class _Quantities(mcp.Arguments):
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


_ToolSet = input_of(ToolSetArguments, _Quantities, name="ToolSet")


class ToolSets(ListOf):
    """Sets as text or as an array: at most 100 in all, each counted `count` times."""

    def __init__(self, **options: Any) -> None:
        super().__init__(fields.Nested(_ToolSet), minimum=1, maximum=50, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        if isinstance(value, str):
            return _SETS_TEXT.deserialize(value)
        return super()._deserialize(value, attr, data, **kwargs)


class ToolExerciseArguments(TypedDict):
    """An exercise of a workout, by identifier or by name, with its sets, as text or as an array."""

    exerciseId: ObjectId | None
    name: str | None
    sets: Annotated[str | list[ToolSetArguments], ToolSets()]
    instructions: Annotated[str | None, Text(max_length=validation.TEXT_LENGTH)]
    superset: Annotated[str | None, Text(max_length=50)]


class _NamedExercise(mcp.Arguments):
    @validates_schema
    def names_one_exercise(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require an identifier or a name."""
        if (data["exerciseId"] is None) == (data["name"] is None):
            raise ValidationError("is required (or a name)", "exerciseId")

    @validates_schema
    def limit_sets(self, data: Mapping[str, Any], **_: Any) -> None:
        """Limit the number of sets."""
        if not isinstance(data["sets"], str) and sum(each["count"] for each in data["sets"]) > workout_sets.MAX_SETS:
            raise ValidationError(f"must not be more than {workout_sets.MAX_SETS} in all", "sets")


_ToolExercise = input_of(ToolExerciseArguments, _NamedExercise, name="ToolExercise")


def workout_text(description: str, **options: Any) -> Text:
    """Return the field of a text with a line for each item."""
    return Text(max_length=MAX_TEXT, metadata={"description": description}, **options)


class BlockArguments(mcp.Arguments):
    """What is set for a workout with a `text`; a day of rest has none."""

    class Meta(mcp.Arguments.Meta):
        include = arguments_of(BlockSettings)

    @validates_schema
    def rests_without_items(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require a day of rest to have no text."""
        if data["isRest"] and data["text"].strip():
            raise ValidationError("must be empty for a day of rest", "text")


class WorkoutDayArguments(BlockSettings):
    """A workout of a date, as text."""

    date: Annotated[str, validation.CalendarDate(), Description("YYYY-MM-DD, the client's local date.")]
    name: Annotated[str, Description("Name of the workout, such as Lower body.")]
    text: Annotated[
        str, Text(max_length=MAX_TEXT, allow_blank=True), Default(""), Description("A line for each item, in order.")
    ]


class WorkoutDay(BlockArguments):
    """A workout of a date, as text."""

    class Meta(BlockArguments.Meta):
        include = arguments_of(WorkoutDayArguments)


class NewWorkouts(mcp.CustomerArgument):
    """Workouts as text; or one with its exercises as an array."""

    days = ListOf(fields.Nested(WorkoutDay), minimum=1, maximum=MAX_DAYS, **mcp.optional("The workouts."))
    date = validation.CalendarDate(load_default=None, allow_none=True, metadata=mcp.UNLISTED)
    name = Text(load_default=None, allow_none=True, metadata=mcp.UNLISTED)
    exercises = ListOf(
        fields.Nested(_ToolExercise),
        minimum=1,
        maximum=50,
        load_default=None,
        allow_none=True,
        metadata=mcp.UNLISTED,
    )

    @validates_schema
    def days_or_exercises(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require days, or one workout with an array of exercises, but not both."""
        array = [data[name] for name in ("date", "name", "exercises")]
        if data["days"] is None and any(value is not None for value in array):
            for name in ("date", "name", "exercises"):
                if data[name] is None:
                    raise ValidationError("is required", name)
        elif data["days"] is None:
            raise ValidationError("is required", "days")
        elif any(value is not None for value in array):
            raise ValidationError("must not be combined with date, name or exercises", "days")


class WorkoutArgument(mcp.CustomerArgument):
    """A workout of a client."""

    workoutId = validation.Identifier(required=True, metadata={"description": "From get_workouts."})


class WorkoutChange(WorkoutArgument):
    """A new name, date, position or other settings of a workout."""

    class Meta(mcp.Arguments.Meta):
        include = {name: argument_of(BlockSettings, name, may_be_absent=True) for name in names_of(BlockSettings)}

    name = Text(**mcp.optional("A new name."))
    date = validation.CalendarDate(**mcp.optional("A new date, YYYY-MM-DD."))
    order = Integer(minimum=0, maximum=1000, **mcp.optional("New position in the day, from 0."))

    @validates_schema(skip_on_field_errors=False)
    def changes_something(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require a change."""
        settings = ("name", "date", "order", *names_of(BlockSettings))
        if all(data.get(name, ...) is None for name in settings):
            raise ValidationError(f"must have {', '.join(settings[:-1])} or {settings[-1]}")


class ItemEditArguments(TypedDict):
    """One change of a workout's items."""

    action: Annotated[Literal["add", "change", "move", "remove"], Description("What to do.")]
    itemId: Annotated[
        str | None, ItemIdentifier(), Description("The item (not for add): the id after # in get_workouts.")
    ]
    text: Annotated[
        str | None,
        Text(max_length=MAX_TEXT),
        Description("add: lines as in create_workout. change: one such item, or only its sets."),
    ]
    index: Annotated[
        int | None, Integer(minimum=0, maximum=1000), Description("add, move: new position from 0. Default: the end.")
    ]
    toWorkoutId: Annotated[ObjectId | None, Description("move: another workout of the client.")]


class ItemEdit(mcp.Arguments):
    """One change of a workout's items."""

    class Meta(mcp.Arguments.Meta):
        include = arguments_of(ItemEditArguments)

    @validates_schema
    def has_what_the_action_needs(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require the item, and the text, where the action needs them."""
        if (action := data["action"]) != "add" and data["itemId"] is None:
            raise ValidationError(f"is required to {action}", "itemId")
        if action in ("add", "change") and data["text"] is None:
            raise ValidationError(f"is required to {action}", "text")


class ItemEdits(WorkoutArgument):
    """Changes of a workout's items, in order."""

    changes = ListOf(
        fields.Nested(ItemEdit), minimum=1, maximum=50, required=True, metadata={"description": "In order."}
    )
