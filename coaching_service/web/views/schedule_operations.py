"""Changes to many days of a client's calendar, each with a preview: copy, adjust, replace an exercise, clear."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypedDict

from marshmallow import ValidationError, validates_schema

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.errors import invalid_field
from coaching_service.core.field_schemas import input_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import Period
from coaching_service.core.validation import Date, Input
from coaching_service.library.exercises import name_resolution
from coaching_service.training.schedule import service as schedule
from coaching_service.training.schedule.models import (
    AdjustedSchedule,
    ChangedItems,
    ClearedSchedule,
    CopiedSchedule,
    TargetDate,
)
from coaching_service.training.schedule.schemas import ScheduleRange, require_at_most_a_year
from coaching_service.training.workouts.blocks.owners import ClientCalendar
from coaching_service.web.formatting import quantity
from coaching_service.web.pages import Pages, Redirect, Render
from coaching_service.web.views.customer_calendar import week_page
from coaching_service.web.views.customer_layout import week_path
from coaching_service.web.views.schedule_forms import (
    CopyOptions,
    ProgressionFields,
    describe_copy,
    describe_loads,
    describe_set_counts,
    render_copy_preview,
    render_preview,
    to_copy_request,
    to_progression,
)

pages = Pages("/app/customers/{customerId}/schedule")
_EDIT = coach(CUSTOMERS.EDIT)
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


# --- copy ------------------------------------------------------------------------------------------------------------


async def _copy(ctx: Context, customer_id: ObjectId, form: CopyForm, *, dry_run: bool) -> CopiedSchedule:
    request = to_copy_request(form["startDate"], form["endDate"], form["targetDate"], form)
    return await schedule.copy_days(ctx, ClientCalendar(customer_id), request, dry_run=dry_run)


@pages.post("/copy", access=_EDIT, form=COPY_FORM(), on=week_page)
async def copy_schedule(ctx: Context, customer_id: ObjectId, form: CopyForm) -> Redirect:
    """Copy days to later or earlier ones, once or several times, with a progression."""
    result = await _copy(ctx, customer_id, form, dry_run=False)
    return Redirect(week_path(customer_id, form["targetDate"]), f"{describe_copy(result, form['onConflict'])}.")


@pages.post("/copy/preview", access=_EDIT, form=COPY_FORM(), on=week_page, preview_of=copy_schedule)
async def preview_copy(ctx: Context, customer_id: ObjectId, form: CopyForm) -> Render:
    """Show what copying would do."""
    result = await _copy(ctx, customer_id, form, dry_run=True)
    summary = describe_copy(result, form["onConflict"])
    return render_copy_preview(ctx, "copy_schedule", summary, result, form["onConflict"])


# --- adjust ----------------------------------------------------------------------------------------------------------


async def _adjust(ctx: Context, customer_id: ObjectId, form: AdjustForm, *, dry_run: bool) -> AdjustedSchedule:
    calendar, days = ClientCalendar(customer_id), (form["startDate"], form["endDate"])
    return await schedule.adjust(ctx, calendar, *days, to_progression(form) or {}, dry_run=dry_run)


@pages.post("/adjust", access=_EDIT, form=ADJUST_FORM(), on=week_page)
async def adjust_schedule(ctx: Context, customer_id: ObjectId, form: AdjustForm) -> Redirect:
    """Change loads, repetitions and sets of what has not been done."""
    result = await _adjust(ctx, customer_id, form, dry_run=False)
    loads = describe_loads(result["loadChanges"], ctx.caller.company.load_unit)[:_NAMED_CHANGES]
    changes = "; ".join([*loads, *describe_set_counts(result["setChanges"])[:_NAMED_CHANGES]])
    notice = f"{quantity(result['items'], 'exercise')} changed{f': {changes}' if changes else ''}."
    return Redirect(week_path(customer_id, form["startDate"]), notice)


@pages.post("/adjust/preview", access=_EDIT, form=ADJUST_FORM(), on=week_page, preview_of=adjust_schedule)
async def preview_adjustment(ctx: Context, customer_id: ObjectId, form: AdjustForm) -> Render:
    """Show what adjusting would do."""
    result = await _adjust(ctx, customer_id, form, dry_run=True)
    summary = f"{quantity(result['items'], 'exercise')} changed"
    return render_preview(ctx, "adjust_schedule", summary, result, changes=result)


# --- replace an exercise ---------------------------------------------------------------------------------------------


async def find_exercise(ctx: Context, name: str) -> tuple[ObjectId, str]:
    """Return the identifier and name of the exercise that a name means. Raises InvalidFields without a match."""
    (resolved,) = await name_resolution.resolve_names(ctx, [name])
    if resolved["match"] is not None:
        return resolved["match"]["_id"], resolved["match"]["name"]
    similar = ", ".join(each["name"] for each in resolved["alternatives"])
    advice = f": did you mean {similar}?" if similar else ": choose one of your exercises"
    raise invalid_field("withExercise", f"is not an exercise of yours{advice}", code="EXERCISE_NOT_FOUND")


async def _replace(
    ctx: Context, customer_id: ObjectId, form: ReplaceForm, *, dry_run: bool
) -> tuple[ChangedItems, str]:
    """Return what changes, and a description of it."""
    exercise_id, name = await find_exercise(ctx, form["withExercise"])
    swap, days = (form["exerciseId"], exercise_id), (form["startDate"], form["endDate"])
    result = await schedule.replace_exercise(ctx, ClientCalendar(customer_id), *swap, *days, dry_run=dry_run)
    return result, f"Replaced by {name} in {quantity(result['items'], 'place')}"


@pages.post("/replace-exercise", access=_EDIT, form=REPLACE_FORM(), on=week_page)
async def replace_scheduled_exercise(ctx: Context, customer_id: ObjectId, form: ReplaceForm) -> Redirect:
    """Replace an exercise where it has not been done; the sets stay."""
    _, summary = await _replace(ctx, customer_id, form, dry_run=False)
    return Redirect(week_path(customer_id, form["startDate"]), f"{summary}.")


@pages.post(
    "/replace-exercise/preview", access=_EDIT, form=REPLACE_FORM(), on=week_page, preview_of=replace_scheduled_exercise
)
async def preview_replacement(ctx: Context, customer_id: ObjectId, form: ReplaceForm) -> Render:
    """Show what replacing an exercise would do."""
    result, summary = await _replace(ctx, customer_id, form, dry_run=True)
    return render_preview(ctx, "replace_scheduled_exercise", summary, result)


# --- clear -----------------------------------------------------------------------------------------------------------


async def _clear(ctx: Context, customer_id: ObjectId, form: Period, *, dry_run: bool) -> tuple[ClearedSchedule, str]:
    """Return what changes, and a description of it: `2 workouts removed, 1 kept because it was done`."""
    days = form["startDate"], form["endDate"]
    result = await schedule.clear(ctx, ClientCalendar(customer_id), *days, dry_run=dry_run)
    done = result["kept"]
    remaining = f", {done} kept because {'it was' if done == 1 else 'they were'} done" if done else ""
    return result, f"{quantity(len(result['removed']), 'workout')} removed{remaining}"


@pages.post("/clear", access=_EDIT, form=ScheduleRange(), on=week_page)
async def clear_schedule(ctx: Context, customer_id: ObjectId, form: Period) -> Redirect:
    """Remove the workouts with nothing done."""
    _, summary = await _clear(ctx, customer_id, form, dry_run=False)
    return Redirect(week_path(customer_id, form["startDate"]), f"{summary}.")


@pages.post("/clear/preview", access=_EDIT, form=ScheduleRange(), on=week_page, preview_of=clear_schedule)
async def preview_clearing(ctx: Context, customer_id: ObjectId, form: Period) -> Render:
    """Show what clearing would do."""
    result, summary = await _clear(ctx, customer_id, form, dry_run=True)
    return render_preview(ctx, "clear_schedule", summary, result)
