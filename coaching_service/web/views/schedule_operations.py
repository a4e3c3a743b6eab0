"""Changes to many days of a client's calendar, each with a preview: copy, adjust, replace an exercise, clear."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, TypedDict

from marshmallow import ValidationError, validates_schema

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.errors import invalid_field
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import Period
from coaching_service.core.validation import Date, Input
from coaching_service.library.exercises import name_resolution
from coaching_service.training.schedule import service as schedule
from coaching_service.training.schedule.models import ReplacedLoad, ReplacedLoadField, TargetDate
from coaching_service.training.schedule.schemas import ScheduleRange, require_at_most_a_year
from coaching_service.training.workout_text.mentions import exercises_of
from coaching_service.training.workouts.blocks.owners import ClientCalendar
from coaching_service.web.formatting import quantity
from coaching_service.web.pages import Pages
from coaching_service.web.views.customer_calendar import week_page
from coaching_service.web.views.customer_layout import week_path
from coaching_service.web.views.schedule_forms import (
    CopyOptions,
    Outcome,
    ProgressionFields,
    declare_operation,
    describe_copy,
    describe_loads,
    describe_set_counts,
    to_copy_request,
    to_progression,
)

pages = Pages("/app/customers/{customerId}/schedule")
_NAMED_CHANGES = 3


class CopyForm(Period, TargetDate, CopyOptions):
    """The days to copy, where, how often, and how the sets change."""


class AdjustForm(Period, ProgressionFields):
    """The days whose sets change, and how."""


class _SomeChange(ScheduleRange):
    @validates_schema
    def require_change(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError unless loads, repetitions or sets change."""
        if all(data[name] is None for name in ("loadChange", "repsChange", "setsChange")):
            raise ValidationError("should not be empty: enter a change of load, of reps or of sets", "loadChange")


class ReplaceForm(TypedDict):
    """The exercise to replace, the name of another, and the days; without a last day, all from the first on."""

    exerciseId: ObjectId
    withExercise: str
    startDate: Annotated[str, Date()]
    endDate: Annotated[str | None, Date()]
    load: Annotated[ReplacedLoad | None, ReplacedLoadField(allow_none=True), Default(None)]


class _OpenRange(Input):
    @validates_schema
    def require_order(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError if the end is before the start, or more than 366 days after it."""
        if data["endDate"] is None:
            return
        if data["endDate"] < data["startDate"]:
            raise ValidationError("must not be before the first day", "endDate")
        require_at_most_a_year(data["startDate"], data["endDate"])


COPY_FORM = input_of(CopyForm, ScheduleRange)
ADJUST_FORM = input_of(AdjustForm, _SomeChange)
REPLACE_FORM = input_of(ReplaceForm, _OpenRange)


_operation = partial(declare_operation, pages, access=coach(CUSTOMERS.EDIT), on=week_page)


@_operation("/copy", form=COPY_FORM())
async def copy_schedule(ctx: Context, customer_id: ObjectId, form: CopyForm, *, dry_run: bool) -> Outcome:
    """Copy days to later or earlier ones, once or several times, with a progression."""
    request = to_copy_request(form["startDate"], form["endDate"], form["targetDate"], form)
    result = await schedule.copy_days(ctx, ClientCalendar(customer_id), request, dry_run=dry_run)
    return describe_copy(result, form["onConflict"], week_path(customer_id, form["targetDate"]))


@_operation("/adjust", form=ADJUST_FORM())
async def adjust_schedule(ctx: Context, customer_id: ObjectId, form: AdjustForm, *, dry_run: bool) -> Outcome:
    """Change loads, repetitions and sets of what has not been done."""
    calendar, days = ClientCalendar(customer_id), (form["startDate"], form["endDate"])
    result = await schedule.adjust(ctx, calendar, *days, to_progression(form) or {}, dry_run=dry_run)
    loads = describe_loads(result["loadChanges"], ctx.caller.company.load_unit)[:_NAMED_CHANGES]
    changes = "; ".join([*loads, *describe_set_counts(result["setChanges"])[:_NAMED_CHANGES]])
    summary, location = f"{quantity(result['items'], 'exercise')} changed", week_path(customer_id, days[0])
    return Outcome(result, summary, location, result, notice=f"{summary}: {changes}" if changes else "")


@_operation("/replace-exercise", form=REPLACE_FORM())
async def replace_scheduled_exercise(
    ctx: Context, customer_id: ObjectId, form: ReplaceForm, *, dry_run: bool
) -> Outcome:
    """Replace an exercise where it has not been done; the sets stay, and loads become what was chosen."""
    exercise_id, name = await find_exercise(ctx, form["withExercise"], customer_id)
    swap, days = (form["exerciseId"], exercise_id), (form["startDate"], form["endDate"])
    result = await schedule.replace_exercise(
        ctx, ClientCalendar(customer_id), *swap, *days, load=form["load"], dry_run=dry_run
    )
    summary = f"Replaced by {name} in {quantity(result['items'], 'place')}"
    return Outcome(result, summary, week_path(customer_id, form["startDate"]))


async def find_exercise(ctx: Context, name: str, customer_id: ObjectId | None = None) -> tuple[ObjectId, str]:
    """Return the identifier and name of the exercise that a name means. Raises InvalidFields without a match."""
    known = None if customer_id is None else exercises_of(customer_id)
    (resolved,) = await name_resolution.resolve_names(ctx, [name], known)
    if resolved["match"] is not None:
        return resolved["match"]["_id"], resolved["match"]["name"]
    similar = ", ".join(each["name"] for each in resolved["alternatives"])
    advice = f": did you mean {similar}?" if similar else ": choose one of your exercises"
    raise invalid_field("withExercise", f"is not an exercise of yours{advice}", code="EXERCISE_NOT_FOUND")


@_operation("/clear", form=ScheduleRange(), deletes=True)
async def clear_schedule(ctx: Context, customer_id: ObjectId, form: Period, *, dry_run: bool) -> Outcome:
    """Remove the workouts with nothing done."""
    days = form["startDate"], form["endDate"]
    result = await schedule.clear(ctx, ClientCalendar(customer_id), *days, dry_run=dry_run)
    done = result["kept"]
    remaining = f", {done} kept because {'it was' if done == 1 else 'they were'} done" if done else ""
    summary = f"{quantity(len(result['removed']), 'workout')} removed{remaining}"
    return Outcome(result, summary, week_path(customer_id, form["startDate"]))
