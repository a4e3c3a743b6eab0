"""Forms that change many workouts of a calendar or program: their fields, and previews of what they would do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial, wraps
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypeAlias, TypedDict

from marshmallow import ValidationError, validates_schema

from coaching_service.core.auth.access import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.errors import invalid_field
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import Period
from coaching_service.core.validation import Date, Input, Integer, Number
from coaching_service.library.exercises import name_resolution
from coaching_service.library.exercises.models import ASSISTANCE
from coaching_service.training.schedule import service as schedule
from coaching_service.training.schedule.models import (
    CopiedSchedule,
    CopyRequest,
    Day,
    LoadChange,
    OnConflict,
    Progression,
    ProgressionChanges,
    Repetition,
    ReplacedLoad,
    ReplacedLoadField,
    ScheduleConflict,
    SetCountChange,
    TargetDate,
    on_conflict,
)
from coaching_service.training.schedule.schemas import ScheduleRange, require_at_most_a_year
from coaching_service.training.schedule.service import day_name, join_some
from coaching_service.training.workout_text.finding import exercises_of
from coaching_service.training.workouts.blocks.models import Block, ScheduleChange
from coaching_service.training.workouts.blocks.owners import ClientCalendar
from coaching_service.training.workouts.items.descriptions import ItemDescription, describe_item, format_number
from coaching_service.training.workouts.sets import MAX_LOAD, MAX_REPS, MAX_SETS
from coaching_service.web.formatting import format_date, quantity
from coaching_service.web.pages import Handler, Pages, Redirect, Render
from coaching_service.web.views.customer_calendar import week_page
from coaching_service.web.views.customer_layout import week_path

PREVIEW_SHOWN = "This is a preview: nothing has been changed."
_NAMED_WORKOUTS = 5
OUTCOMES: dict[OnConflict, str] = {
    "add": "These days have workouts. The new ones are added after them:",
    "skip": "These days have workouts and stay as they are:",
    "replace": "These days have workouts. What is not done of them is removed:",
}

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


class TakenDay(TypedDict):
    """A target day that has workouts, and their names."""

    day: str
    names: str


class TakenDays(TypedDict):
    """The target days that have workouts, and a sentence about what happens on them."""

    outcome: str
    days: list[TakenDay]


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


class Outcome(NamedTuple):
    """What an operation has changed or would change, a summary of it, and where it is seen.

    `result` has the workouts that the preview shows, if any. `changes` are the changed loads and sets. `taken` are the
    target days that have workouts, if any can. `notice` says more than the summary once the operation is done.
    `customer_id`: the client, when the path does not name one.
    """

    result: ScheduleChange | None
    summary: str
    location: str
    changes: ProgressionChanges | None = None
    taken: TakenDays | None = None
    notice: str = ""
    customer_id: ObjectId | None = None


def declare_operation(
    pages: Pages, path: str, **options: Any
) -> Callable[[Callable[..., Awaitable[Outcome]]], Handler]:
    """Declare the form of an operation, and its preview, with the function that carries it out.

    The function has the name of the form, and receives the identifier in the path, the form and `dry_run`.
    """

    def declare(run: Callable[..., Awaitable[Outcome]]) -> Handler:
        @pages.post(path, **options)
        @wraps(run)
        async def change(ctx: Context, form: Any, **owner: ObjectId) -> Redirect:
            outcome: Outcome = await run(ctx, *owner.values(), form, dry_run=False)
            notice = f"{outcome.notice or outcome.summary}."
            return Redirect(outcome.location, notice, customer_id=outcome.customer_id)

        async def preview(ctx: Context, form: Any, **owner: ObjectId) -> Render:
            return _render_preview(ctx, run.__name__, await run(ctx, *owner.values(), form, dry_run=True))

        preview.__name__ = f"preview_{run.__name__}"
        pages.post(f"{path}/preview", preview_of=change, **options)(preview)
        return change

    return declare


def _render_preview(ctx: Context, operation: str, outcome: Outcome) -> Render:
    """Return the response to a preview of what the form named `operation` would do."""
    unit, changes = ctx.caller.company.load_unit, outcome.changes
    result: ScheduleChange = outcome.result or {"created": [], "changed": [], "removed": []}
    preview: Preview = {
        "operation": operation,
        "summary": outcome.summary,
        "blocks": [
            *(_describe_block(block, unit, is_new=True) for block in sorted(result["created"], key=_day_of)),
            *(_describe_block(block, unit, is_new=False) for block in sorted(result["changed"], key=_day_of)),
        ],
        "removed": len(result["removed"]),
        "loads": describe_loads(changes["loadChanges"], unit) if changes else [],
        "sets": describe_set_counts(changes["setChanges"]) if changes else [],
        "taken": outcome.taken,
    }
    return Render({"preview": preview}, PREVIEW_SHOWN)


def describe_taken_days(conflicts: Sequence[ScheduleConflict], on_conflict: OnConflict) -> TakenDays:
    """Return the target days that have workouts, and what happens on them."""
    return {"outcome": OUTCOMES[on_conflict], "days": list_taken_days(conflicts)}


def list_taken_days(conflicts: Sequence[ScheduleConflict]) -> list[TakenDay]:
    """Return the target days that have workouts, by day."""
    by_day: dict[str, list[str]] = {}
    for conflict in conflicts:
        day = format_date(conflict["date"]) if "date" in conflict else day_name(conflict).capitalize()
        by_day.setdefault(day, []).append(conflict["name"])
    return [{"day": day, "names": join_some(names, _NAMED_WORKOUTS)} for day, names in by_day.items()]


def describe_untouched(conflicts: Sequence[ScheduleConflict], on_conflict: OnConflict) -> str:
    """Return how many target days stayed as they are, to add to a notice: `, 2 days left as they are`; or nothing."""
    count = len({day_name(conflict) for conflict in conflicts}) if on_conflict == "skip" else 0
    return f", {quantity(count, 'day')} left as {'it is' if count == 1 else 'they are'}" if count else ""


def _day_of(block: Block) -> tuple[str, int]:
    return block["date"] or "", block["day"] or 0


def describe_copy(result: CopiedSchedule, on_conflict: OnConflict, location: str) -> Outcome:
    """Describe copied days: `3 workouts copied`, with those removed from the target days, and the days left out."""
    removed = f", {quantity(len(result['removed']), 'workout')} removed" if result["removed"] else ""
    untouched = describe_untouched(result["conflicts"], on_conflict)
    summary = f"{quantity(len(result['created']), 'workout')} copied{removed}{untouched}"
    return Outcome(result, summary, location, result, describe_taken_days(result["conflicts"], on_conflict))


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


# --- Changes to many days of a client's calendar, each with a preview: copy, adjust, replace an exercise, clear -------


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
