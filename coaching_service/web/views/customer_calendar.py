"""A client's calendar by week or by month, changes to many days of it, absences, and the pages of each workout."""

from __future__ import annotations

from calendar import monthrange
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import date, timedelta
from functools import partial, wraps
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypeAlias, TypedDict

from marshmallow import ValidationError, validates_schema

from coaching_service.core import validation
from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.fields import Default, input_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import Period
from coaching_service.library.exercises import name_resolution
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import ASSISTANCE, ExerciseName
from coaching_service.people import availability
from coaching_service.people.availability import Availability
from coaching_service.training import resuming
from coaching_service.training.assignments import service as assignments
from coaching_service.training.schedule import models as schedule_models
from coaching_service.training.schedule import service as schedule
from coaching_service.training.workout_text.finding import exercises_of
from coaching_service.training.workout_text.lines import Problem, TextError, unmark
from coaching_service.training.workouts.blocks import items as block_items
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import (
    WORKOUT_BLOCK_COPY,
    Block,
    ScheduleChange,
    WorkoutBlockFields,
)
from coaching_service.training.workouts.items import descriptions
from coaching_service.training.workouts.reports import blocks as block_reports
from coaching_service.training.workouts.sets import MAX_LOAD, MAX_REPS, MAX_SETS
from coaching_service.web import pages as web_pages
from coaching_service.web.formatting import format_date, name_options, quantity
from coaching_service.web.views import customer_layout
from coaching_service.web.views.workout import cards
from coaching_service.web.views.workout.editing import WorkoutOwnerPages
from coaching_service.web.views.workout.workout_page import MoveForm, Place, declare_workout_pages

pages = web_pages.Pages("/app/customers/{customerId}", locks="customer")


class WeekQuery(TypedDict):
    """`week` is any date of the week to show, the current week if absent.

    `picked`: the exercise to put in the place of another one.
    """

    week: Annotated[str | None, validation.SearchedDate()]
    picked: ObjectId | None


class _MoveForm(MoveForm):
    witemId: ObjectId
    source: ObjectId


class _MoveWorkoutForm(Place):
    date: Annotated[str, validation.CalendarDate()]


class _NewWorkout(WorkoutBlockFields, cards.NewWorkoutText):
    """A new workout or rest day on a client's calendar."""


@pages.get("", access=coach(CUSTOMERS.VIEW), template="customer/week.html")
async def week_page(ctx: Context, customer_id: ObjectId, query: WeekQuery) -> dict[str, Any]:
    """A week of the client's calendar."""
    customer = await customer_layout.load_header(ctx, customer_id)
    today = ctx.caller.today(customer["timezone"])
    days = days_of_week(date.fromisoformat(query["week"]) if query["week"] else today)
    blocks, outline, template_names, periods_of, listed = await gather_reads(
        ctx,
        workouts.list_blocks(ctx, workouts.ClientCalendar(customer_id), str(days[0]), str(days[-1])),
        block_reports.list_days(ctx, customer_id, days[0], days[-1], today=today),
        cards.list_template_names(ctx),
        availability.get_periods(ctx, [customer_id], str(days[0]), str(days[-1])),
        assignments.list_programs(ctx, customer_id),
    )
    periods: list[Availability] = periods_of[customer_id]
    statuses = {block["_id"]: block["status"] for day in outline for block in day["blocks"]}
    unit, names = ctx.caller.company.load_unit, dict[ObjectId, str]()
    for item in (item for block in blocks for item in block["items"]):
        if item["type"] == "EXERCISE":
            names[item["exerciseId"]] = item["exercise"]["name"]
        elif item["type"] == "CIRCUIT":
            names |= {entry["exerciseId"]: entry["exercise"]["name"] for entry in item["circuitExercises"]}
    described = [
        {
            **block,
            "descriptions": descriptions.describe_items(block["items"], unit),
            "status": statuses.get(block["_id"], "planned"),
        }
        for block in blocks
    ]
    return {
        "customer": customer,
        "template_names": template_names,
        "programs": [
            assignments.describe_progress(each, today) for each in reversed(listed) if each["status"] != "ended"
        ],
        "days": [(day, [block for block in described if block["date"] == str(day)]) for day in days],
        "move_targets": [
            (str(block["_id"]), f"{date.fromisoformat(str(block['date'])):%a}: {block['name']}")
            for block in blocks
            if not block["isRest"] and block.get("checkInId") is None
        ],
        "today": today,
        "bands": customer_layout.list_bands(periods, days),
        "periods": [customer_layout.describe_period(period, today) for period in periods],
        **customer_layout.CHOICES,
        "exercises_of_week": name_options(names),
        "picked": await find_picked(ctx, query["picked"]),
        "monday": days[0],
        "sunday": days[-1],
        "outline": outline,
        "month": f"{days[0]:%Y-%m}",
        "previous_week": _add_days(days[0], -7),
        "next_week": _add_days(days[0], 7),
    }


@pages.get("/month", access=coach(CUSTOMERS.VIEW), template="customer/month.html")
async def month_page(ctx: Context, customer_id: ObjectId, query: web_pages.MonthQuery) -> dict[str, Any]:
    """A month of the client's calendar, in weeks from Monday to Sunday."""
    customer = await customer_layout.load_header(ctx, customer_id)
    today = ctx.caller.today(customer["timezone"])
    first = date.fromisoformat(f"{query['month'] or f'{today:%Y-%m}'}-01")
    last = first.replace(day=monthrange(first.year, first.month)[1])
    start = first - timedelta(days=first.weekday())
    end = last + timedelta(days=6 - last.weekday())
    days, periods_of = await gather_reads(
        ctx,
        block_reports.list_days(ctx, customer_id, start, end, today=today),
        availability.get_periods(ctx, [customer_id], str(start), str(end)),
    )
    return {
        "customer": customer,
        "bands": customer_layout.list_bands(periods_of[customer_id], [day["date"] for day in days]),
        "weeks": [days[at : at + 7] for at in range(0, len(days), 7)],
        "title": f"{first:%B} {first.year}",
        "month": f"{first:%Y-%m}",
        "week": today if first <= today <= last else first,
        "previous_month": f"{first - timedelta(days=1):%Y-%m}",
        "next_month": f"{last + timedelta(days=1):%Y-%m}",
        "today": str(today),
    }


def days_of_week(day: date) -> list[date]:
    """Return the days, from Monday on, of the week that contains a day."""
    monday = day - timedelta(days=day.weekday())
    return [each for offset in range(7) if (each := _add_days(monday, offset))]


def _add_days(day: date, days: int) -> date | None:
    """Add days to a date; None outside the years 1 to 9999."""
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return None


@pages.post("/blocks", access=coach(CUSTOMERS.EDIT), form=input_of(_NewWorkout, cards.NewWorkoutForm)(), on=week_page)
async def add_block(ctx: Context, customer_id: ObjectId, form: _NewWorkout) -> web_pages.Redirect:
    """Schedule a workout or a rest day."""
    block, remarks = await cards.create_with_text(ctx, workouts.ClientCalendar(customer_id), form)
    week = customer_layout.week_path(customer_id, form["date"])
    if form["isRest"]:
        return web_pages.Redirect(week, "Rest day added.")
    if block["items"]:
        return web_pages.Redirect(week, f"{block['name']} added.{remarks}")
    path = customer_layout.customer_path(customer_id, f"/blocks/{block['_id']}")
    return web_pages.Redirect(path, f"{block['name']} added. Now add exercises to it.")


@pages.post("/move", access=coach(CUSTOMERS.EDIT), on=week_page)
async def move_item(ctx: Context, customer_id: ObjectId, form: _MoveForm) -> web_pages.Redirect:
    """Move an item to a position in this or another workout."""
    block = await block_items.move_item(
        ctx,
        workouts.ClientCalendar(customer_id),
        {"wblockId": form["source"], "witemId": form["witemId"]},
        {"wblockId": form["target"], "index": form["place"] - 1},
    )
    return web_pages.Redirect(customer_layout.week_path(customer_id, str(block["date"])), f"Moved to {block['name']}.")


@pages.post("/blocks/{blockId}/move", access=coach(CUSTOMERS.EDIT), on=week_page)
async def move_workout(
    ctx: Context, customer_id: ObjectId, block_id: ObjectId, form: _MoveWorkoutForm
) -> web_pages.Redirect:
    """Move a workout to a position of the same or another day."""
    calendar = workouts.ClientCalendar(customer_id)
    block = await workouts.update(ctx, calendar, block_id, {"date": form["date"], "order": form["place"] - 1})
    return web_pages.Redirect(
        customer_layout.week_path(customer_id, form["date"]), f"{block['name']} moved to {format_date(block['date'])}."
    )


declare_workout_pages(
    WorkoutOwnerPages(
        pages=pages,
        owner_type=workouts.ClientCalendar,
        owner_parameter="customer_id",
        view=CUSTOMERS.VIEW,
        edit=CUSTOMERS.EDIT,
        layout="customer/layout.html",
        layout_variables={"customer": customer_layout.load_header},
        place_form=WORKOUT_BLOCK_COPY,
        move_range=lambda block: (
            str((week := days_of_week(date.fromisoformat(str(block["date"]))))[0]),
            str(week[-1]),
        ),
        overview_path=lambda customer_id, block: customer_layout.week_path(customer_id, str(block["date"])),
        is_of_client=True,
    )
)


# --- Forms that change many workouts of a calendar or program: their fields, and previews of what they would do -------


PREVIEW_SHOWN = "This is a preview: nothing has been changed."
_NAMED_WORKOUTS = 5
OUTCOMES: dict[schedule_models.OnConflict, str] = {
    "add": "These days have workouts. The new ones are added after them:",
    "skip": "These days have workouts and stay as they are:",
    "replace": "These days have workouts. What is not done of them is removed:",
}

# What happens on target days that have workouts: by default these days are left as they are.
ConflictChoice: TypeAlias = Annotated[schedule_models.OnConflict, schedule_models.on_conflict("skip")]


class ProgressionFields(TypedDict):
    """How planned loads, repetitions and sets change; each may be empty. An empty `rounding`: loads are not rounded."""

    loadChange: Annotated[float | None, validation.Number(minimum=-MAX_LOAD, maximum=MAX_LOAD)]
    loadChangeIn: Annotated[Literal["unit", "percent"], Default("unit")]
    rounding: NotRequired[Annotated[float | None, validation.Number(minimum=0.01, maximum=1_000)]]
    repsChange: Annotated[int | None, validation.Integer(minimum=-MAX_REPS, maximum=MAX_REPS)]
    setsChange: Annotated[int | None, validation.Integer(minimum=-MAX_SETS, maximum=MAX_SETS)]
    setsChangeIn: Annotated[Literal["count", "percent"], Default("count")]


class CopyOptions(schedule_models.Repetition, ProgressionFields):
    """How often days are copied, how the sets change, and what happens on target days that have workouts."""

    onConflict: ConflictChoice


def to_copy_request(
    first: schedule_models.Day, last: schedule_models.Day, target: schedule_models.Day, form: CopyOptions
) -> schedule_models.CopyRequest:
    """Return the request to copy days as a form states."""
    return schedule_models.CopyRequest(first, last, target, form["repeat"], to_progression(form), form["onConflict"])


def to_progression(form: ProgressionFields) -> schedule_models.Progression | None:
    """Return the progression that the fields of a form mean; None for no change."""
    progression: schedule_models.Progression = {}
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
    `customer_id`: the client, when the path does not name one. `days`: by how many the changed workouts have moved.
    `notes`: lines that the preview adds to the summary.
    """

    result: ScheduleChange | None
    summary: str
    location: str
    changes: schedule_models.ProgressionChanges | None = None
    taken: dict[str, Any] | None = None
    notice: str = ""
    customer_id: ObjectId | None = None
    days: int = 0
    notes: Sequence[str] = ()


def declare_operation(
    of: web_pages.Pages, path: str, **options: Any
) -> Callable[[Callable[..., Awaitable[Outcome]]], web_pages.Handler]:
    """Declare the form of an operation, and its preview, with the function that carries it out.

    The function has the name of the form, and receives the identifier in the path, the form and `dry_run`.
    """

    def declare(run: Callable[..., Awaitable[Outcome]]) -> web_pages.Handler:
        @of.post(path, **options)
        @wraps(run)
        async def change(ctx: Context, form: Any, **owner: ObjectId) -> web_pages.Redirect:
            outcome: Outcome = await run(ctx, *owner.values(), form, dry_run=False)
            notice = f"{outcome.notice or outcome.summary}."
            return web_pages.Redirect(outcome.location, notice, customer_id=outcome.customer_id)

        async def preview(ctx: Context, form: Any, **owner: ObjectId) -> web_pages.Render:
            outcome: Outcome = await run(ctx, *owner.values(), form, dry_run=True)
            unit, changes = ctx.caller.company.load_unit, outcome.changes
            result: ScheduleChange = outcome.result or {"created": [], "changed": [], "removed": []}
            new, changed = (
                sorted(blocks, key=lambda block: (block["date"] or "", block["day"] or 0))
                for blocks in (result["created"], result["changed"])
            )
            preview = {
                "operation": run.__name__,
                "summary": outcome.summary,
                "notes": outcome.notes,
                "blocks": [
                    *(_describe_block(block, unit, is_new=True) for block in new),
                    *(_describe_block(block, unit, is_new=False, days=outcome.days) for block in changed),
                ],
                "removed": len(result["removed"]),
                "loads": describe_loads(changes["loadChanges"], unit) if changes else [],
                "sets": describe_set_counts(changes["setChanges"]) if changes else [],
                "taken": outcome.taken,
            }
            return web_pages.Render({"preview": preview}, PREVIEW_SHOWN)

        of.post(f"{path}/preview", preview_of=change, **options)(preview)
        return change

    return declare


def describe_taken_days(
    conflicts: Sequence[schedule_models.ScheduleConflict], on_conflict: schedule_models.OnConflict
) -> dict[str, Any]:
    """Return the target days that have workouts, and what happens on them."""
    return {"outcome": OUTCOMES[on_conflict], "days": list_taken_days(conflicts)}


def list_taken_days(conflicts: Sequence[schedule_models.ScheduleConflict]) -> list[dict[str, Any]]:
    """Return the target days that have workouts, by day."""
    by_day: dict[str, list[str]] = {}
    for conflict in conflicts:
        day = format_date(conflict["date"]) if "date" in conflict else schedule.day_name(conflict).capitalize()
        by_day.setdefault(day, []).append(conflict["name"])
    return [{"day": day, "names": schedule.join_some(names, _NAMED_WORKOUTS)} for day, names in by_day.items()]


def describe_untouched(
    conflicts: Sequence[schedule_models.ScheduleConflict], on_conflict: schedule_models.OnConflict
) -> str:
    """Return how many target days stayed as they are, to add to a notice: `, 2 days left as they are`; or nothing."""
    count = len({schedule.day_name(conflict) for conflict in conflicts}) if on_conflict == "skip" else 0
    return f", {quantity(count, 'day')} left as {'it is' if count == 1 else 'they are'}" if count else ""


def describe_copy(
    result: schedule_models.CopiedSchedule, on_conflict: schedule_models.OnConflict, location: str
) -> Outcome:
    """Describe copied days: `3 workouts copied`, with those removed from the target days, and the days left out."""
    removed = f", {quantity(len(result['removed']), 'workout')} removed" if result["removed"] else ""
    untouched = describe_untouched(result["conflicts"], on_conflict)
    summary = f"{quantity(len(result['created']), 'workout')} copied{removed}{untouched}"
    return Outcome(result, summary, location, result, describe_taken_days(result["conflicts"], on_conflict))


def describe_loads(changes: Sequence[schedule_models.LoadChange], unit: str) -> list[str]:
    """Describe changed loads, an entry for each exercise: `Squat 60 → 62.5 kg (3 sets)`.

    Less assistance is harder: `Assisted dip 20 → 22.5 kg assistance (3 sets, easier)`.
    """
    by_exercise: dict[str, list[str]] = {}
    for change in changes:
        loads = f"{descriptions.format_number(change['before'])} → {descriptions.format_number(change['after'], unit)}"
        sets = quantity(change["sets"], "set")
        if change["loadType"] == ASSISTANCE:
            loads += " assistance"
            sets += ", easier" if change["after"] > change["before"] else ", harder"
        by_exercise.setdefault(change["exerciseName"], []).append(f"{loads} ({sets})")
    return [f"{name} {', '.join(loads)}" for name, loads in by_exercise.items()]


def describe_set_counts(changes: Sequence[schedule_models.SetCountChange]) -> list[str]:
    """Describe changed numbers of sets, an entry for each exercise: `Squat 3 → 2 sets (4 times)`."""
    by_exercise: dict[str, list[str]] = {}
    for change in changes:
        times = f" ({change['items']} times)" if change["items"] > 1 else ""
        by_exercise.setdefault(change["exerciseName"], []).append(
            f"{change['before']} → {quantity(change['after'], 'set')}{times}"
        )
    return [f"{name} {', '.join(counts)}" for name, counts in by_exercise.items()]


def _describe_block(block: Block, unit: str, *, is_new: bool, days: int = 0) -> dict[str, Any]:
    day = f"Day {block['day']}" if block["date"] is None else format_date(block["date"])
    if days:
        day = f"{format_date(date.fromisoformat(str(block['date'])) - timedelta(days=days))} → {day}"
    return {
        "day": block["date"],
        "date": day,
        "name": block["name"],
        "isNew": is_new,
        "items": descriptions.describe_items(block["items"], unit),
    }


# --- Changes to many days of a client's calendar, each with a preview: copy, adjust, replace an exercise, clear -------


_schedule = pages.below("/schedule")
_NAMED_CHANGES = 3


class CopyForm(Period, schedule_models.TargetDate, CopyOptions):
    """The days to copy, where, how often, and how the sets change."""


class AdjustForm(Period, ProgressionFields):
    """The days whose sets change, and how."""


class _SomeChange(schedule_models.ScheduleRange):
    @validates_schema
    def require_change(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError unless loads, repetitions or sets change."""
        if all(data[name] is None for name in ("loadChange", "repsChange", "setsChange")):
            raise ValidationError("should not be empty: enter a change of load, of reps or of sets", "loadChange")


class ReplaceForm(TypedDict):
    """The exercise to replace, the name of another, and the days; without a last day, all from the first on.

    `withExerciseId` is the one that was picked; it counts while its name is in the field.
    """

    exerciseId: ObjectId
    withExercise: Annotated[str, validation.Text(max_length=200)]
    withExerciseId: ObjectId | None
    startDate: Annotated[str, validation.Date()]
    endDate: Annotated[str | None, validation.Date()]
    load: Annotated[
        schedule_models.ReplacedLoad | None, schedule_models.ReplacedLoadField(allow_none=True), Default(None)
    ]


class _OpenRange(validation.Input):
    @validates_schema
    def require_order(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError if the end is before the start, or more than 366 days after it."""
        if data["endDate"] is None:
            return
        if data["endDate"] < data["startDate"]:
            raise ValidationError("must not be before the first day", "endDate")
        schedule_models.require_at_most_a_year(data["startDate"], data["endDate"])


COPY_FORM = input_of(CopyForm, schedule_models.ScheduleRange)
ADJUST_FORM = input_of(AdjustForm, _SomeChange)
REPLACE_FORM = input_of(ReplaceForm, _OpenRange)


_operation = partial(declare_operation, _schedule, access=coach(CUSTOMERS.EDIT), on=week_page)


@_operation("/copy", form=COPY_FORM())
async def copy_schedule(ctx: Context, customer_id: ObjectId, form: CopyForm, *, dry_run: bool) -> Outcome:
    """Copy days to later or earlier ones, once or several times, with a progression."""
    request = to_copy_request(form["startDate"], form["endDate"], form["targetDate"], form)
    result = (await schedule.copy_days(ctx, workouts.ClientCalendar(customer_id), request, dry_run=dry_run)).result
    return describe_copy(result, form["onConflict"], customer_layout.week_path(customer_id, form["targetDate"]))


@_operation("/adjust", form=ADJUST_FORM())
async def adjust_schedule(ctx: Context, customer_id: ObjectId, form: AdjustForm, *, dry_run: bool) -> Outcome:
    """Change loads, repetitions and sets of what has not been done."""
    calendar, days = workouts.ClientCalendar(customer_id), (form["startDate"], form["endDate"])
    result = (await schedule.adjust(ctx, calendar, *days, to_progression(form) or {}, dry_run=dry_run)).result
    loads = describe_loads(result["loadChanges"], ctx.caller.company.load_unit)[:_NAMED_CHANGES]
    changes = "; ".join([*loads, *describe_set_counts(result["setChanges"])[:_NAMED_CHANGES]])
    summary, location = (
        f"{quantity(result['items'], 'exercise')} changed",
        customer_layout.week_path(customer_id, days[0]),
    )
    return Outcome(result, summary, location, result, notice=f"{summary}: {changes}" if changes else "")


@_operation("/replace-exercise", form=REPLACE_FORM())
async def replace_scheduled_exercise(
    ctx: Context, customer_id: ObjectId, form: ReplaceForm, *, dry_run: bool
) -> Outcome:
    """Replace an exercise where it has not been done; the sets stay, and loads become what was chosen."""
    exercise_id = await find_exercise(ctx, form, customer_id)
    swap, days = (form["exerciseId"], exercise_id), (form["startDate"], form["endDate"])
    load = form["load"] or await schedule.choose_load(ctx, *swap)
    outcome = await schedule.replace_exercise(
        ctx, workouts.ClientCalendar(customer_id), *swap, *days, load=load, dry_run=dry_run
    )
    result, unit = outcome.result, ctx.caller.company.load_unit
    names = f"{result['exercise']['name']} → {result['withExercise']['name']}"
    summary = f"{names} in {quantity(result['items'], 'place')}"
    lines = [describe_replaced_load(load, form["load"]), *describe_replaced_sets(outcome.replaced, unit)]
    path = customer_layout.week_path(customer_id, form["startDate"])
    return Outcome(result, summary, path, notes=lines if outcome.replaced else ())


def describe_replaced_load(load: schedule_models.ReplacedLoad, chosen: schedule_models.ReplacedLoad | None) -> str:
    """Return what becomes of planned loads; `chosen`: what the form said, None if it left it to the exercises."""
    if isinstance(load, dict):
        return f"Planned loads become {descriptions.format_number(load['percent'], '%')} of what they were"
    why = (
        ""
        if chosen
        else ": movement and equipment are the same"
        if load == "keep"
        else ": the movement or the equipment differs"
    )
    return f"Planned loads {'stay' if load == 'keep' else 'are removed'}{why}"


def describe_replaced_sets(replaced: Sequence[schedule.ReplacedSets], unit: str) -> list[str]:
    """Describe the sets of a replaced exercise: `3 x 8 x 60 kg → 3 x 8 x 54 kg (2 times)`; those alike once."""
    counts = Counter(
        tuple("; ".join(descriptions.describe_sets(sets, unit)) for sets in (before, after))
        for before, after in replaced
    )
    return [
        (before if before == after else f"{before} → {after}") + (f" ({times} times)" if times > 1 else "")
        for (before, after), times in counts.items()
    ]


async def find_picked(ctx: Context, exercise_id: ObjectId | None) -> ExerciseName | None:
    """Return the exercise that was picked on the page that searches, if any."""
    return (
        None
        if exercise_id is None
        else (await exercises.get_names(ctx, [exercise_id], only_usable=True)).get(exercise_id)
    )


async def find_exercise(ctx: Context, form: ReplaceForm, customer_id: ObjectId | None = None) -> ObjectId:
    """Return the exercise that was picked, or that the name in the form means. Raises TextError without a match."""
    name, picked = unmark(form["withExercise"]), form["withExerciseId"]
    if picked is not None:
        named = (await exercises.get_names(ctx, [picked], only_usable=True)).get(picked)
        if named is not None and named["name"] == name:
            return picked
    known = None if customer_id is None else exercises_of(customer_id)
    (resolved,) = await name_resolution.resolve_names(ctx, [name], known)
    if resolved["match"] is not None:
        return resolved["match"]["_id"]
    similar = [each["name"] for each in resolved["alternatives"]]
    problem = f"“{name}” is not an exercise of yours"
    description = f"{problem}. Did you mean" if similar else f"{problem}: choose one from the list"
    raise TextError(
        [Problem("withExercise", None, problem, description, "EXERCISE_NOT_FOUND", name=name, suggestions=similar)]
    )


@_operation("/clear", form=schedule_models.ScheduleRange(), deletes=True)
async def clear_schedule(ctx: Context, customer_id: ObjectId, form: Period, *, dry_run: bool) -> Outcome:
    """Remove the workouts with nothing done."""
    days = form["startDate"], form["endDate"]
    result = (await schedule.clear(ctx, workouts.ClientCalendar(customer_id), *days, dry_run=dry_run)).result
    done = result["kept"]
    remaining = f", {done} kept because {'it was' if done == 1 else 'they were'} done" if done else ""
    summary = f"{quantity(len(result['removed']), 'workout')} removed{remaining}"
    return Outcome(result, summary, customer_layout.week_path(customer_id, form["startDate"]))


# --- When a client cannot train as planned: entering it, changing it, and the return, with a preview ------------------


_availability = pages.below("/availability")
_EDIT = coach(CUSTOMERS.EDIT)
_PERIOD = "/{availabilityId}"


# `from` is a keyword of Python, so this type has the functional form.
_ResumeForm = TypedDict(
    "_ResumeForm",
    {"from": Annotated[str, validation.AbsenceDate()], "mode": Annotated[resuming.ResumeMode, Default("weeks")]},
)


@_availability.get("", access=coach(CUSTOMERS.VIEW), template="customer/availability.html")
async def availability_page(ctx: Context, customer_id: ObjectId) -> dict[str, Any]:
    """The periods in which a client cannot train as planned, the latest first, and the return from the last one."""
    customer = await customer_layout.load_header(ctx, customer_id)
    today = ctx.caller.today(customer["timezone"])
    periods = await availability.list_availability(ctx, customer_id)
    absence = await availability.find_absence_before(ctx, customer_id, str(today + timedelta(days=1)))
    return {
        "customer": customer,
        "today": today,
        "kinds": customer_layout.KINDS,
        "periods": [customer_layout.describe_period(period, today) for period in reversed(periods)],
        # To propose for the return from the latest absence that has begun.
        "first_day_back": max(today, date.fromisoformat(absence["from"]) + timedelta(days=1)) if absence else None,
    }


@_availability.post("", access=_EDIT, on=week_page)
async def add_absence(
    ctx: Context, customer_id: ObjectId, query: WeekQuery, form: customer_layout.AbsenceForm
) -> web_pages.Redirect:
    """Enter that a client is away, ill, injured or trains with limits."""
    period = await availability.create_availability(ctx, customer_id, customer_layout.to_period(form))
    notice = customer_layout.describe_saved(period, await customer_layout.get_today(ctx, customer_id))
    return web_pages.Redirect(customer_layout.week_path(customer_id, query["week"] or period["from"]), notice)


_act = partial(_availability.act, access=_EDIT, on=availability_page)
_act(_PERIOD, "change_absence", availability.update_availability, "Changes saved.", form=customer_layout.PERIOD_CHANGE)
_act(f"{_PERIOD}/delete", "delete_absence", availability.delete_availability, "Deleted.", deletes=True)


@declare_operation(_availability, "/resume", access=_EDIT, form=_ResumeForm, on=availability_page)
async def resume_training(ctx: Context, customer_id: ObjectId, form: _ResumeForm, *, dry_run: bool) -> Outcome:
    """End the latest absence, and move or remove what was planned in it."""
    result = await resuming.resume(ctx, customer_id, form["from"], form["mode"], dry_run=dry_run)
    days = (
        0 if form["mode"] == "drop" else resuming.count_days(result["availability"]["from"], form["from"], form["mode"])
    )
    changed = quantity(len(result["changed"] if days else result["removed"]), "workout")
    done = f"{changed} moved by {quantity(days, 'day')}" if days else f"{changed} removed"
    stay = f", {result['kept']} kept because of what is done" if result["kept"] else ""
    summary = f"Trains again from {format_date(form['from'])}: {done}{stay}"
    return Outcome(result, summary, customer_layout.week_path(customer_id, form["from"]), days=days)
