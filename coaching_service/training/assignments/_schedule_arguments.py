"""Arguments of the tools for many days of the calendars of clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, validates_schema

from coaching_service.core.field_schemas import argument_of
from coaching_service.core.mcp.arguments import UNLISTED, Arguments, Dates, optional, require_range
from coaching_service.core.validation import Date, Identifier, ListOf, Number, Text
from coaching_service.people.customers.chosen_clients import MAX_CLIENTS, ClientsArgument
from coaching_service.training.schedule import models
from coaching_service.training.schedule.models import (
    LoadProgression,
    ReplacedLoadField,
    RepsProgression,
    SetsProgression,
    on_conflict,
)

_MAX_DAYS, _MAX_EXERCISES = 366, 50
_CHANGES = ("addLoad", "addPercent", "addReps", "addSets", "setsPercent")
_LOAD_CHANGES = ("addLoad", "addPercent")


_UNLISTED: dict[str, Any] = {"load_default": None, "allow_none": True, "metadata": UNLISTED}


class CalendarsArgument(ClientsArgument):
    """The clients whose calendars change: also everyone a program runs for.

    All tools accept each choice; `tools/list` has the usual ones, as each costs every assistant context.
    """

    choices = (*ClientsArgument.choices, "assignedProgramId")
    customerIds = ListOf(Identifier(), minimum=1, maximum=MAX_CLIENTS, **_UNLISTED)
    groups = ListOf(Text(max_length=100), minimum=1, maximum=MAX_CLIENTS, **_UNLISTED)
    assignedProgramId = Identifier(**_UNLISTED)


class SeveralCalendarsArgument(CalendarsArgument):
    """The same, with the choices for several clients listed."""

    customerIds = ListOf(Identifier(), minimum=1, maximum=MAX_CLIENTS, **optional("Instead: several."))
    assignedProgramId = Identifier(**optional("Instead: all on this program."))


class ProgressionArguments(Arguments):
    """How the sets of exercises change."""

    addLoad = argument_of(LoadProgression, "add")
    addPercent = argument_of(LoadProgression, "percent")
    addReps = argument_of(RepsProgression, "add", may_be_absent=True)
    addSets = argument_of(SetsProgression, "add")
    setsPercent = argument_of(SetsProgression, "percent")
    rounding = Number(
        minimum=0,
        maximum=1_000,
        **optional("Step of loads, default 2.5 kg or 5 lb; smaller changes and 0: exact."),
    )
    exercises = ListOf(Text(), minimum=1, maximum=_MAX_EXERCISES, **optional("Only these: names or _ids."))

    @validates_schema(skip_on_field_errors=False)
    def changes_each_once(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require at most one change of loads, and of numbers of sets."""
        for name, other in (("addPercent", "addLoad"), ("setsPercent", "addSets")):
            if data.get(name) is not None and data.get(other) is not None:
                raise ValidationError(f"must not be combined with {other}", name)

    @validates_schema(skip_on_field_errors=False)
    def require_change(self, data: Mapping[str, object], **_: object) -> None:
        """Require a change of loads for a step of loads, and a change for exercises."""
        needed = {"rounding": _LOAD_CHANGES, "exercises": _CHANGES}
        errors: dict[str, list[str]] = {}
        for name, changes in needed.items():
            if data.get(name) is not None and all(data.get(change, ...) is None for change in changes):
                listed = [change for change in changes if not self.fields[change].metadata.get("unlisted")]
                errors[name] = [f"needs a change: {', '.join(listed[:-1])} or {listed[-1]}"]
        if errors:
            raise ValidationError(errors)


class ScheduleCopy(ProgressionArguments, Dates, CalendarsArgument):
    """The days to copy, and where; what is rare is listed with adjust_schedule only."""

    addSets = argument_of(SetsProgression, "add", **UNLISTED)
    setsPercent = argument_of(SetsProgression, "percent", **UNLISTED)
    rounding = Number(minimum=0, maximum=1_000, **_UNLISTED)
    targetDate = argument_of(models.ScheduleCopy, "targetDate")
    repeat = argument_of(models.ScheduleCopy, "repeat")
    onConflict = on_conflict(about="As in assign_program.")


class ScheduleAdjustment(ProgressionArguments, Dates, SeveralCalendarsArgument):
    """The days whose sets change, and how."""

    @validates_schema(skip_on_field_errors=False)
    def changes_something(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require a change."""
        if all(data.get(name, ...) is None for name in _CHANGES):
            raise ValidationError("is required, or addPercent, addReps, addSets or setsPercent", "addLoad")


class ScheduleClearing(Dates, CalendarsArgument):
    """The days to clear."""

    customerIds = ListOf(Identifier(), minimum=1, maximum=MAX_CLIENTS, **optional("Instead: several."))


class ExerciseReplacement(SeveralCalendarsArgument):
    """The exercise to replace, the one that takes its place, and the days."""

    exercise = Text(required=True, metadata={"description": "Its name or _id."})
    withExercise = Text(required=True, metadata={"description": "Name or _id of the new one."})
    startDate = Date(required=True)
    endDate = Date(**optional("Last day. Default: no end."))
    load = ReplacedLoadField(  # type: ignore[assignment]  # marshmallow removes fields from the class, which keeps its load()
        load_default=None,
        allow_none=True,
        metadata={
            "type": "string",
            "maxLength": 6,
            "description": "Loads: keep, clear or 80%. Default: keep for like exercises.",
        },
    )

    @validates_schema(skip_on_field_errors=False)
    def dates_in_order(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require the end not to be before the start, and at most 366 days."""
        require_range(data.get("startDate"), data.get("endDate"), _MAX_DAYS)
