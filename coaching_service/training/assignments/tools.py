"""MCP tools for assigning programs, and for many days of the calendars of clients."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from marshmallow import ValidationError, validates_schema

from coaching_service.core import mcp, validation
from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.dates import name_days, name_period
from coaching_service.core.errors import invalid_field
from coaching_service.core.fields import argument_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import Reason, Tools, Written, find_reasons, typed
from coaching_service.core.validation import Identifier, ListOf, Text, invalid
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import ASSISTANCE
from coaching_service.people.account import convert_stored_load
from coaching_service.people.customers import bulk
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.bulk import ClientsArgument, choose_clients, identify_clients
from coaching_service.people.customers.models import NamedCustomer
from coaching_service.training import programs
from coaching_service.training.assignments import service, sync
from coaching_service.training.assignments.service import ProgramAssignment
from coaching_service.training.schedule import models as schedule_models
from coaching_service.training.schedule import service as schedule
from coaching_service.training.schedule.models import (
    AdjustedSchedule,
    ChangedItems,
    CopiedSchedule,
    CopyRequest,
    LoadProgression,
    OnConflict,
    PlacedBlock,
    Progression,
    ReplacedLoad,
    ReplacedLoadField,
    RepsProgression,
    ScheduleResult,
    SetsProgression,
    SkipReason,
    on_conflict,
)
from coaching_service.training.schedule.service import OUTCOMES, days_between, describe_conflicts
from coaching_service.training.workout_text.finding import describe_readings, resolve_exercises, run_checks
from coaching_service.training.workout_text.tools import check_names, identify_workouts
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.blocks.service import ClientCalendar
from coaching_service.training.workouts.items.service import is_recorded, planned_exercise_ids

# --- Assigning programs -----------------------------------------------------------------------------------------------


tools = Tools()
_MAX_WORKOUTS = 2_000  # that one transaction writes


class AssignProgram(ClientsArgument):
    """A program, the clients, and the date of the first day."""

    programId = Identifier(required=True, metadata={"description": "From list_programs."})
    startDate = argument_of(ProgramAssignment, "startDate")
    weekdays = argument_of(ProgramAssignment, "weekdays")
    onConflict = on_conflict(about="On days with workouts; replace: those with nothing done.")

    @validates_schema(skip_on_field_errors=False)
    def names_weekdays_once(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require each weekday at most once."""
        weekdays = data.get("weekdays") or ()
        if len(set(weekdays)) < len(weekdays):
            raise invalid("must have each weekday only once", "REPEATED", "weekdays")


async def _check(ctx: Context, valid: Mapping[str, Any]) -> None:
    """Raise InvalidFields for the clients, groups and program among the valid arguments."""
    checks: list[Callable[[], Awaitable[object]]] = [partial(check_names, ctx, valid)]
    if (program_id := valid.get("programId")) is not None:
        checks.append(partial(programs.get, ctx, program_id))
    await run_checks(checks)


@tools.tool(
    "Assign a program",
    access=coach(CUSTOMERS.EDIT),
    takes=AssignProgram(),
    writes=True,
    locks="customer",
    destructive=True,
    confirms=(Reason.MANY_DAYS, Reason.FAR_DATE, Reason.MANY_CLIENTS),
    check=_check,
)
async def assign_program(
    ctx: Context,
    customer_id: ObjectId | None,
    customer_ids: list[ObjectId] | None,
    groups: list[str] | None,
    program_id: ObjectId,
    start_date: str,
    weekdays: list[int] | None,
    on_conflict: OnConflict,
) -> Written:
    """Copy every workout of a program to the calendar of a client, or of each of several, day 1 on startDate, or only
    onto some weekdays: all or none."""
    clients = await choose_clients(ctx, customer_id, customer_ids, groups)
    dated = await programs.get_dated(ctx, program_id, start_date, weekdays)
    if len(dated.blocks) * len(clients) > _MAX_WORKOUTS:
        message = f"would get more than {_MAX_WORKOUTS} workouts together: choose fewer clients"
        raise invalid_field("customerIds", message, code="TOO_MANY")
    assignments = [
        await service.add_to_calendar(ctx, dated, client["_id"], on_conflict=on_conflict) for client in clients
    ]
    pairs = zip(clients, assignments, strict=True)
    if full := [typed(client["name"]) for client, each in pairs if each["conflicts"] and not each["blocks"]]:
        message = f"leaves nothing to add for {', '.join(full)}: every day of the program has workouts"
        raise invalid_field("onConflict", f"{message}; add or replace, or another startDate, assigns it", code="EMPTY")
    dates = sorted({start_date, *(date for assignment in assignments for date in assignment["dates"])})
    planned = sorted({date for assignment in assignments for date in assignment["dates"]})
    today = await customers.resolve_today(ctx, clients[0]["_id"])
    days = name_days(planned, today) or f"from {name_days([start_date], today)} on"
    line = f"Assigned {typed(dated.program['name'])} to "
    if len(clients) == 1:
        conflicts = describe_conflicts(assignments[0]["conflicts"], on_conflict, today)
        count = assignments[0]["blocks"]
        line += f"{typed(clients[0]['name'])}: {count} workout{'' if count == 1 else 's'}, {days}{conflicts}."
    else:
        texts = []
        for client, assigned in zip(clients, assignments, strict=True):
            taken = len({conflict["date"] for conflict in assigned["conflicts"]})
            others = f" ({taken} {'day' if taken == 1 else 'days'} had workouts)" if taken else ""
            texts.append(f"{typed(client['name'])} {assigned['blocks']}{others}")
        line += f"{len(clients)} clients, workouts {days}: {'; '.join(texts)}."
        if any(assignment["conflicts"] for assignment in assignments):
            line += f" On days that had workouts: {OUTCOMES[on_conflict]}."
    span = days_between(planned[0], planned[-1]) + 1 if planned else 0
    if weekdays and span != dated.days:
        line += f" On these weekdays the {dated.days} days of the program take {span}."
    ids = [assignment["assignmentId"] for assignment in assignments]
    return Written(
        line,
        {
            **identify_clients(clients),
            "programId": program_id,
            **({"assignmentId": ids[0]} if len(ids) == 1 else {"assignmentIds": [each for each in ids if each]}),
        },
        find_reasons(
            today=await customers.get_local_date(ctx, clients[0]["_id"]),
            dates=dates,
            days=days_between(dates[0], dates[-1]) + 1,
            clients=len(clients),
        ),
        depends_on=[assignment["dates"] for assignment in assignments],
        sources=[await batches.read_program(ctx, program_id)],
        details={"workoutsAdded": sum(assignment["blocks"] for assignment in assignments)},
    )


# --- Arguments of the tools for many days of the calendars of clients -------------------------------------------------


_MAX_DAYS, _MAX_EXERCISES = 366, 50
_CHANGES = ("addLoad", "addPercent", "addReps", "addSets", "setsPercent")
_LOAD_CHANGES = ("addLoad", "addPercent")


_UNLISTED: dict[str, Any] = {"load_default": None, "allow_none": True, "metadata": mcp.UNLISTED}


class CalendarsArgument(ClientsArgument):
    """The clients whose calendars change: also everyone a program runs for.

    All tools accept each choice; `tools/list` has the usual ones, as each costs every assistant context.
    """

    choices = (*bulk.ClientsArgument.choices, "assignedProgramId")
    customerIds = ListOf(Identifier(), minimum=1, maximum=bulk.MAX_CLIENTS, **_UNLISTED)
    groups = ListOf(Text(max_length=100), minimum=1, maximum=bulk.MAX_CLIENTS, **_UNLISTED)
    assignedProgramId = Identifier(**_UNLISTED)


class SeveralCalendarsArgument(CalendarsArgument):
    """The same, with the choices for several clients listed."""

    customerIds = ListOf(Identifier(), minimum=1, maximum=bulk.MAX_CLIENTS, **mcp.optional("Instead: several."))
    assignedProgramId = Identifier(**mcp.optional("Or all on it: a program's _id from list_programs."))


class ProgressionArguments(mcp.Arguments):
    """How the sets of exercises change."""

    addLoad = argument_of(LoadProgression, "add")
    addPercent = argument_of(LoadProgression, "percent")
    addReps = argument_of(RepsProgression, "add", may_be_absent=True)
    addSets = argument_of(SetsProgression, "add")
    setsPercent = argument_of(SetsProgression, "percent")
    rounding = validation.Number(
        minimum=0,
        maximum=1_000,
        **mcp.optional("Step of loads, default 2.5 kg or 5 lb; smaller changes and 0: exact."),
    )
    exercises = ListOf(Text(), minimum=1, maximum=_MAX_EXERCISES, **mcp.optional("Only these: names or _ids."))

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


class ScheduleCopy(ProgressionArguments, mcp.Dates, CalendarsArgument):
    """The days to copy, and where; what is rare is listed with adjust_schedule only."""

    addSets = argument_of(SetsProgression, "add", **mcp.UNLISTED)
    setsPercent = argument_of(SetsProgression, "percent", **mcp.UNLISTED)
    rounding = validation.Number(minimum=0, maximum=1_000, **_UNLISTED)
    exercises = ListOf(
        Text(),
        minimum=1,
        maximum=_MAX_EXERCISES,
        **mcp.optional("All is copied; only these (names or _ids) get more."),
    )
    targetDate = argument_of(schedule_models.ScheduleCopy, "targetDate")
    repeat = argument_of(schedule_models.ScheduleCopy, "repeat")
    onConflict = on_conflict(about="As in assign_program.")


class ScheduleAdjustment(ProgressionArguments, mcp.Dates, SeveralCalendarsArgument):
    """The days whose sets change, and how."""

    @validates_schema(skip_on_field_errors=False)
    def changes_something(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require a change."""
        if all(data.get(name, ...) is None for name in _CHANGES):
            raise ValidationError("is required, or addPercent, addReps, addSets or setsPercent", "addLoad")


class ScheduleClearing(mcp.Dates, CalendarsArgument):
    """The days to clear."""

    customerIds = ListOf(Identifier(), minimum=1, maximum=bulk.MAX_CLIENTS, **mcp.optional("Instead: several."))


class ExerciseReplacement(SeveralCalendarsArgument):
    """The exercise to replace, the one that takes its place, and the days."""

    exercise = Text(required=True, metadata={"description": "Its name or _id."})
    withExercise = Text(required=True, metadata={"description": "Name or _id of the new one."})
    startDate = validation.Date(required=True)
    endDate = validation.Date(**mcp.optional("Last day. Default: no end."))
    load = ReplacedLoadField(  # type: ignore[assignment]  # marshmallow removes fields from the class, which keeps its load()
        load_default=None,
        allow_none=True,
        metadata={
            "type": "string",
            "maxLength": 6,
            "description": "Loads: keep, clear or 80%. Default: keep for the same movement and equipment, else clear.",
        },
    )

    @validates_schema(skip_on_field_errors=False)
    def dates_in_order(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require the end not to be before the start, and at most 366 days."""
        mcp.require_range(data.get("startDate"), data.get("endDate"), _MAX_DAYS)


schedule_tools = Tools()
_change = partial(
    schedule_tools.tool,
    access=coach(CUSTOMERS.EDIT),
    writes=True,
    locks="customer",
    check=check_names,
    destructive=True,
    confirms=(mcp.Reason.MANY_DAYS, mcp.Reason.FAR_DATE, mcp.Reason.MANY_CLIENTS),
)
R = TypeVar("R", bound=ScheduleResult)
_MAX_NAMED, _MAX_LISTED = 10, 30
_LAST_DATE = "9999-12-31"
_LEFT: Mapping[SkipReason, str] = {
    "DONE": "left because something is done",
    "PARTLY_DONE": "changed only where nothing is done",
    "DAY_TAKEN": "left out because the day has workouts",
}


@_change("Copy days of a calendar", takes=ScheduleCopy())
async def copy_schedule(
    ctx: Context,
    start_date: str,
    end_date: str,
    target_date: str,
    repeat: int,
    on_conflict: OnConflict,
    **sent: Any,
) -> Written:
    """Copy days of a client's calendar, such as last week, with nothing done; each copy may add load or repetitions."""
    clients = await _choose(ctx, sent)
    progression, named, read_as = await _read_progression(ctx, clients, sent)
    request = CopyRequest(start_date, end_date, target_date, repeat, progression, on_conflict)
    days = (schedule.days_between(start_date, end_date) + 1) * repeat
    last = str(schedule.last_day_of(target_date, days))
    copied = [await batches.read_calendar(ctx, client["_id"], start_date, end_date) for client in clients]
    outcomes = await _for_each(clients, lambda calendar: schedule.copy_days(ctx, calendar, request))
    results = [outcome.result for outcome in outcomes]
    created = [block for result in results for block in result["created"]]
    removed = sum(len(result["removed"]) for result in results)
    replaced = f", replacing {_count(removed, 'workout')}" if removed else ""
    today = await customers.resolve_today(ctx, clients[0]["_id"])
    conflicts = schedule.describe_conflicts(results[0]["conflicts"], on_conflict, today) if len(clients) == 1 else ""
    past = " All of these days are in the past." if last < today else ""
    return await _answer(
        ctx,
        clients,
        f"Copied {name_period(start_date, end_date, today)} of {_name(clients)}: "
        f"{_count(len(created), 'new workout')}, {_name_changed(created, target_date, last, today)}"
        f"{_describe(sent, named)}{replaced}"
        f"{_describe_each(clients, outcomes)}{await _describe_changes(ctx, outcomes)}{conflicts}.{past}{read_as}",
        identify_workouts(created),
        (start_date, last, target_date),
        days,
        depends_on=[[block["date"], block["name"]] for block in created],
        sources=copied,
        raised=[
            mcp.RaisedLoad(client["_id"], change["exerciseId"], change["before"], change["after"])
            for client, result in zip(clients, results, strict=True)
            for change in result["loadChanges"]
        ],
    )


@_change("Adjust loads, repetitions and sets", takes=ScheduleAdjustment())
async def adjust_schedule(ctx: Context, start_date: str, end_date: str, **sent: Any) -> Written:
    """Change the planned loads, repetitions or number of sets on days of a client's calendar, of all exercises or some.
    Items with something done stay."""
    clients = await _choose(ctx, sent)
    progression, named, read_as = await _read_progression(ctx, clients, sent)
    change = cast("Progression", progression)
    outcomes = await _for_each(clients, lambda calendar: schedule.adjust(ctx, calendar, start_date, end_date, change))
    today, changed = await customers.resolve_today(ctx, clients[0]["_id"]), _list_changed(outcomes)
    planned = "" if changed else await _name_planned(ctx, clients[0]["_id"], start_date, end_date)
    return await _answer(
        ctx,
        clients,
        f"Adjusted {_count_changed(outcomes)} of {_name(clients)}, "
        f"{_name_changed(changed, start_date, end_date, today)}{_describe(sent, named)}"
        f"{_describe_each(clients, outcomes)}{await _describe_changes(ctx, outcomes)}.{read_as}{planned}",
        identify_workouts(changed),
        (start_date, end_date),
    )


@_change("Replace an exercise", takes=ExerciseReplacement())
async def replace_exercise(
    ctx: Context,
    exercise: str,
    with_exercise: str,
    start_date: str,
    end_date: str | None,
    load: ReplacedLoad | None,
    **sent: Any,
) -> Written:
    """Replace an exercise with another on a client's calendar from startDate on; sets stay, and so do items with
    something done."""
    clients = await _choose(ctx, sent)
    texts = {"exercise": exercise, "withExercise": with_exercise}
    exercise_id, with_id = await resolve_exercises(ctx, texts, clients[0]["_id"], ["exercise"])
    swap, days = (exercise_id, with_id), (start_date, end_date)
    chosen = await schedule.choose_load(ctx, *swap) if load is None else load
    become = {"keep": "are kept", "clear": "are removed"}[chosen] if isinstance(chosen, str) else ""
    become = become or f"are {cast('Mapping[str, Any]', chosen)['percent']:g} % of before"
    outcomes = await _for_each(
        clients, lambda calendar: schedule.replace_accessible(ctx, calendar, *swap, *days, chosen, dry_run=False)
    )
    found = await exercises.get_names(ctx, [exercise_id, with_id])
    names = [found[each]["name"] for each in (exercise_id, with_id)]
    today, changed = await customers.resolve_today(ctx, clients[0]["_id"]), _list_changed(outcomes)
    planned = "" if changed else await _name_planned(ctx, clients[0]["_id"], start_date, end_date)
    dates = [str(block["date"]) for block in changed] or [start_date]
    return await _answer(
        ctx,
        clients,
        f"Replaced {mcp.typed(names[0])} by {mcp.typed(names[1])} "
        f"in {_count_changed(outcomes)} of {_name(clients)}, "
        f"{_name_changed(changed, start_date, end_date, today)}{_describe_each(clients, outcomes)}"
        f"{f'; planned loads {become}' if changed else ''}."
        f"{describe_readings(texts.values(), names)}{planned}",
        {"exerciseId": with_id, **identify_workouts(changed)},
        (*dates, start_date, *([end_date] if end_date else [])),
        mcp.count_span(dates) if end_date is None else schedule.days_between(start_date, end_date) + 1,
    )


@_change("Clear days of a calendar", takes=ScheduleClearing(), deletes=True)
async def clear_schedule(ctx: Context, start_date: str, end_date: str, **sent: Any) -> Written:
    """Remove every workout from days of a client's calendar. Those with something done stay, and so do check-ins."""
    clients = await _choose(ctx, sent)
    days = start_date, end_date
    outcomes = await _for_each(clients, lambda calendar: schedule.clear(ctx, calendar, *days))
    removed = [block_id for outcome in outcomes for block_id in outcome.result["removed"]]
    today = await customers.resolve_today(ctx, clients[0]["_id"])
    affected = [block for outcome in outcomes for block in outcome.affected]
    on = name_days({str(block["day"]) for block in affected}, today) or name_period(*days, today)
    line = f"Removed {_count(len(removed), 'workout')} of {_name(clients)}, {on}"
    if len(clients) == 1:
        line += _name_blocks(affected, today)
        if kept := outcomes[0].skipped:
            line += f"; kept {_count(len(kept), 'workout')} with something done{_name_blocks(kept, today)}"
    workout_ids = removed if len(removed) <= _MAX_NAMED else []
    return await _answer(ctx, clients, f"{line}{_describe_each(clients, outcomes)}.", {"workoutIds": workout_ids}, days)


# --- Clients ---------------------------------------------------------------------------------------------------------


async def _choose(ctx: Context, sent: Mapping[str, Any]) -> list[NamedCustomer]:
    """Return the chosen clients. Raises what `choose_clients` raises, and NotFound for the program."""
    if (program_id := sent["assigned_program_id"]) is not None:
        ids = await bulk.keep_resolved(ctx, f"program {program_id}", await sync.list_running_clients(ctx, program_id))
        return await bulk.name_chosen(ctx, ids, "assignedProgramId")
    return await bulk.choose_clients(ctx, sent["customer_id"], sent["customer_ids"], sent["groups"])


async def _for_each(
    clients: Sequence[NamedCustomer], change: Callable[[ClientCalendar], Awaitable[schedule.Outcome[R]]]
) -> list[schedule.Outcome[R]]:
    """Return the outcome for each client. Raises InvalidFields if they are too many workouts for one transaction."""
    outcomes: list[schedule.Outcome[R]] = []
    for client in clients:
        outcomes.append(await change(ClientCalendar(client["_id"])))
        if sum(len(outcome.affected) for outcome in outcomes) > _MAX_WORKOUTS:
            message = f"would change more than {_MAX_WORKOUTS} workouts together: choose fewer clients"
            raise invalid_field("customerIds", message, code="TOO_MANY")
    return outcomes


async def _answer(
    ctx: Context,
    clients: Sequence[NamedCustomer],
    line: str,
    identifiers: mcp.Identifiers,
    dates: Sequence[str],
    days: int | None = None,
    **options: Any,
) -> Written:
    """Return what a call has done, and why it has to be confirmed; one that changes nothing says so, and needs none.

    `days`: over how many days; by default from the first of the dates to the last. Several clients are identified: one
    was named by the call.
    """
    identifiers = {**identifiers, **(bulk.identify_clients(clients) if len(clients) > 1 else {})}
    if ctx.changes.is_empty:
        return Written(f"{line} Nothing was changed.", identifiers, (), **options)
    today = await customers.get_local_date(ctx, clients[0]["_id"])
    days = schedule.days_between(dates[0], dates[-1]) + 1 if days is None else days
    reasons = mcp.find_reasons(today=today, dates=dates, days=days, clients=len(clients))
    return Written(line, identifiers, reasons, **options)


def _list_changed(
    outcomes: Sequence[schedule.Outcome[ChangedItems]] | Sequence[schedule.Outcome[AdjustedSchedule]],
) -> list[Block]:
    return [block for outcome in outcomes for block in outcome.result["changed"]]


def _name(clients: Sequence[NamedCustomer]) -> str:
    return mcp.typed(clients[0]["name"]) if len(clients) == 1 else f"{len(clients)} clients"


def _describe_each(clients: Sequence[NamedCustomer], outcomes: Sequence[schedule.Outcome[R]]) -> str:
    """Return what happens to each of several clients: `: «Ana» 3 workouts, 1 left because it is done; «Bo» 2 workouts`.

    Empty for one client.
    """
    if len(clients) == 1:
        return ""
    texts = []
    for client, outcome in zip(clients, outcomes, strict=True):
        counts = Counter(block["code"] for block in outcome.skipped)
        left = "".join(f", {counts[code]} {words}" for code, words in _LEFT.items() if counts[code])
        texts.append(f"{mcp.typed(client['name'])} {_count(len(outcome.affected), 'workout')}{left}")
    return f": {'; '.join(texts)}"


# --- Sentences -------------------------------------------------------------------------------------------------------


def _name_blocks(blocks: Sequence[PlacedBlock], today: str) -> str:
    """Return the names and days of workouts: `: «Legs» on 2 Dec`; empty without any."""
    named = [f"{mcp.typed(block['name'])} on {name_days([str(block['day'])], today)}" for block in blocks]
    return f": {schedule.join_some(named, _MAX_NAMED)}" if named else ""


def _name_changed(blocks: Sequence[Block], first: str, last: str | None, today: str) -> str:
    """Return the days of workouts: `2 and 9 Dec`; without any the period in which there are none."""
    if blocks:
        return name_days({str(block["date"]) for block in blocks}, today)
    return name_period(first, last, today) if last else f"from {name_days([first], today)} on"


def _count_changed(
    outcomes: Sequence[schedule.Outcome[ChangedItems]] | Sequence[schedule.Outcome[AdjustedSchedule]],
) -> str:
    """Return how many workouts are changed, and how many of their items if these are more."""
    workouts, items = len(_list_changed(outcomes)), sum(outcome.result["items"] for outcome in outcomes)
    return _count(workouts, "workout") + (f" ({_count(items, 'item')})" if items > workouts else "")


async def _name_planned(ctx: Context, customer_id: ObjectId, first: str, last: str | None) -> str:
    """Return a sentence about the exercises that days have, with nothing done, and a space before it."""
    calendar = ClientCalendar(customer_id)
    blocks = await batches.read_between(ctx, calendar, first, last or _LAST_DATE, schedule.MAX_BLOCKS)
    open_items = [item for block in blocks for item in block["items"] if not is_recorded(item)]
    ids = list(dict.fromkeys(each for item in open_items for each in planned_exercise_ids(item)))
    names = await exercises.get_names(ctx, ids)
    listed = schedule.join_some([mcp.typed(names[each]["name"]) for each in ids], _MAX_LISTED)
    return f" Planned there, with nothing done: {listed or 'no exercise'}."


async def _read_progression(
    ctx: Context, clients: Sequence[NamedCustomer], sent: Mapping[str, Any]
) -> tuple[Progression | None, Sequence[str], str]:
    """Return the progression of the arguments, the exercises it names, and how their names were read.

    Names mean first the exercises on the calendar of the first client. Raises InvalidFields for a name that means no
    exercise.
    """
    load = cast("LoadProgression", _sent_ones(sent, add="add_load", percent="add_percent"))
    sets = cast("SetsProgression", _sent_ones(sent, add="add_sets", percent="sets_percent"))
    if not load and not sets and sent["add_reps"] is None:
        return None, (), ""
    named: Sequence[str] = sent["exercises"] or ()
    texts = {f"exercises.{index}": name for index, name in enumerate(named)}
    ids = await resolve_exercises(ctx, texts, clients[0]["_id"], texts)
    progression: Progression = {
        "load": load or None,
        "reps": None if sent["add_reps"] is None else {"add": sent["add_reps"]},
        "sets": sets or None,
        "loadUnit": ctx.caller.load_unit,
    }
    if ids:
        progression["exerciseIds"] = ids
    if sent["rounding"] is not None:
        progression["rounding"] = sent["rounding"] or None
    found = await exercises.get_names(ctx, ids)
    names = [found[each]["name"] for each in ids]
    return progression, names, describe_readings(named, names)


def _sent_ones(sent: Mapping[str, Any], **names: str) -> dict[str, Any]:
    """Return the arguments that have a value, by the names of their fields."""
    return {field: sent[name] for field, name in names.items() if sent[name] is not None}


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
    of = f" of {', '.join(map(mcp.typed, named))}" if named else ""
    return f", {', '.join(changes)}{of}" if changes else ""


async def _describe_changes(
    ctx: Context, outcomes: Sequence[schedule.Outcome[CopiedSchedule] | schedule.Outcome[AdjustedSchedule]]
) -> str:
    """Return the loads, repetitions and numbers of sets that changed, of all clients each once, or nothing.

    Such as `; «Squat» 60 → 62.5 kg, 8 → 9 reps, 3 → 2 sets`.
    """
    show = partial(convert_stored_load, unit=ctx.caller.company.load_unit, target=ctx.caller.load_unit)
    by_exercise: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for change in (each for outcome in outcomes for each in outcome.result["loadChanges"]):
        loads = f"{show(change['before']):.10g} → {show(change['after']):.10g} {ctx.caller.load_unit}"
        if change["loadType"] == ASSISTANCE:
            loads += " assistance"
        by_exercise[change["exerciseName"]][loads] = None
    reps = [change for outcome in outcomes for change in outcome.rep_changes]
    names = await exercises.get_names(ctx, {change.exercise_id for change in reps})
    for rep_change in reps:
        by_exercise[names[rep_change.exercise_id]["name"]][f"{rep_change.before} → {rep_change.after} reps"] = None
    for count in (each for outcome in outcomes for each in outcome.result["setChanges"]):
        by_exercise[count["exerciseName"]][f"{count['before']} → {_count(count['after'], 'set')}"] = None
    shown = [
        f"{mcp.typed(name)} {schedule.join_some(list(changes), _MAX_NAMED)}" for name, changes in by_exercise.items()
    ]
    return f"; {schedule.join_some(shown, _MAX_NAMED)}" if shown else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
