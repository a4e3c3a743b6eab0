"""Changes to the schedules of many clients, each with a preview that says what changes for every client."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, TypedDict
from urllib.parse import urlencode

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, Date, Input, Integer, Text
from coaching_service.library.exercises import service as exercises
from coaching_service.lifecycle.customer_bulk import schedules
from coaching_service.lifecycle.customer_bulk import service as customer_bulk
from coaching_service.people.customers import bulk as customers_by_id
from coaching_service.training.programs import service as programs
from coaching_service.training.schedule.conflicts import join_some
from coaching_service.training.schedule.effects import Effect, Operation
from coaching_service.training.schedule.models import SkipReason
from coaching_service.training.schedule.schemas import ScheduleRange
from coaching_service.training.workouts.reports import exercises as exercise_reports
from coaching_service.web.formatting import format_date, quantity
from coaching_service.web.pages import Pages, QueuedTask, Redirect, Render, StreamedTask
from coaching_service.web.views.bulk import (
    ClientSelection,
    list_url,
    require_unchanged,
    selection_hash,
    to_parameters,
    to_service_selection,
)
from coaching_service.web.views.bulk_jobs import start_operation
from coaching_service.web.views.schedule_forms import (
    PREVIEW_SHOWN,
    describe_loads,
    describe_set_counts,
    to_progression,
)
from coaching_service.web.views.schedule_operations import AdjustForm, CopyForm, ReplaceForm, find_exercise

pages = Pages("/app/customers/bulk/schedules")
_EDIT = coach(CUSTOMERS.EDIT)
_TITLE = "Change the schedule"
_MAX_NAMES, _MAX_PREVIEWED, _NAMED_WORKOUTS, _PLANNED_DAYS = 12, 100, 6, 28
# By operation: its operationId, and what it does with workouts.
_OPERATIONS: Mapping[Operation, tuple[str, str]] = {
    "adjust": ("bulkAdjustSchedule", "changed"),
    "replace-exercise": ("bulkReplaceScheduledExercise", "changed"),
    "clear": ("bulkClearSchedule", "removed"),
    "shift": ("bulkShiftSchedule", "moved"),
    "copy": ("bulkCopySchedule", "added or replaced"),
}
_LEFT: Mapping[SkipReason, str] = {
    "DONE": "left as it is, because something of it is done",
    "PARTLY_DONE": "what is done of it is left as it is",
    "DAY_TAKEN": "not copied, because the day has workouts",
}


class _Query(ClientSelection):
    """The selected clients, or everyone a program runs for, or who has an exercise planned; and the form to open."""

    assignedProgramId: ObjectId | None
    plannedExerciseId: ObjectId | None
    operation: Annotated[str, Choice(*_OPERATIONS), Default("replace-exercise")]


class _Confirmed(Input):
    """The clients that the page has shown."""

    selectionHash = Text(allow_blank=True, load_default="")


class _AdjustForm(AdjustForm, _Confirmed):
    pass


class _ReplaceForm(ReplaceForm, _Confirmed):
    pass


class _ClearForm(ScheduleRange, _Confirmed):
    pass


class _ShiftForm(_Confirmed):
    startDate = Date(required=True)
    days = Integer(minimum=-3_660, maximum=3_660, required=True)


class _CopyForm(CopyForm, _Confirmed):
    pass


class ClientPreview(TypedDict):
    """What changes for a client: how many workouts and which, loads and sets, and what is left alone; or the error."""

    name: str
    changed: str
    workouts: str
    progression: list[str]
    skipped: list[str]
    error: str


async def _list_ids(ctx: Context, query: _Query) -> list[ObjectId]:
    """Return the selected clients. Raises NotFound for the program."""
    if query["plannedExerciseId"] is not None:
        return await schedules.list_planned_for(ctx, query["plannedExerciseId"])
    if query["assignedProgramId"] is not None:
        return await customer_bulk.list_selected(
            ctx, {"assignedProgramId": query["assignedProgramId"], "dryRun": False}
        )
    return await customer_bulk.list_selected(ctx, to_service_selection(query))


def _return_url(query: _Query) -> str:
    if query["plannedExerciseId"] is not None:
        return f"/app/exercises/{query['plannedExerciseId']}"
    if query["assignedProgramId"] is not None:
        return f"/app/programs/{query['assignedProgramId']}"
    return list_url(query)


@pages.get("", access=_EDIT, query=_Query, template="customers/schedules.html")
async def many_schedules_page(ctx: Context, query: _Query) -> dict[str, Any] | Redirect:
    """The selected clients, and the changes that their schedules can have."""
    ids = await _list_ids(ctx, query)
    if not ids:
        return Redirect(_return_url(query), "No client is selected.")
    today = ctx.caller.today()
    monday = today - timedelta(days=today.weekday())
    planned = await exercise_reports.find_planned_exercises(
        ctx, ids[: customer_bulk.BATCH], str(today), str(today + timedelta(days=_PLANNED_DAYS))
    )
    exercise_id, program_id = query["plannedExerciseId"], query["assignedProgramId"]
    names = await exercises.get_names(ctx, [*planned, *([exercise_id] if exercise_id else [])])
    options = {str(each): name["name"] for each, name in names.items()}
    return {
        "query": query,
        "count": len(ids),
        "names": await customers_by_id.list_names(ctx, ids, _MAX_NAMES),
        "program": await programs.require(ctx, program_id) if program_id else None,
        "exercise_name": options.get(str(exercise_id), ""),
        "exercises": sorted(options.items(), key=lambda option: option[1].casefold()),
        "selection_hash": selection_hash(ids),
        "selection_query": urlencode(to_parameters(query), doseq=True),
        "return_url": _return_url(query),
        "today": today,
        "monday": monday,
        "sunday": monday + timedelta(days=6),
        "next_week": monday + timedelta(days=7),
        "unit": ctx.caller.company.load_unit,
        "preview": None,
    }


async def _read_fields(ctx: Context, operation: Operation, form: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an operation from its form. Raises InvalidFields for a name that is no exercise."""
    if operation == "shift":
        return {"from": form["startDate"], "days": form["days"]}
    fields: dict[str, Any] = {"startDate": form["startDate"], "endDate": form["endDate"]}
    if operation == "replace-exercise":
        with_id, _ = await find_exercise(ctx, form["withExercise"])
        return {**fields, "exerciseId": form["exerciseId"], "withExerciseId": with_id}
    if operation == "adjust":
        return {**fields, "progression": to_progression(form) or {}}
    if operation == "copy":
        copied = {name: form[name] for name in ("targetDate", "repeat", "onConflict")}
        return {**fields, **copied, "progression": to_progression(form)}
    return fields


async def _change(
    ctx: Context, operation: Operation, query: _Query, form: Mapping[str, Any]
) -> StreamedTask | QueuedTask:
    """Return the response that changes the clients who were shown. Raises Conflict if the selection has changed."""
    ids = await _list_ids(ctx, query)
    require_unchanged(ids, form["selectionHash"])
    fields = await _read_fields(ctx, operation, form)
    operation_id, _ = _OPERATIONS[operation]
    return start_operation(ctx, operation_id, ids, fields, title=_TITLE, return_url=_return_url(query))


async def _preview(ctx: Context, operation: Operation, query: _Query, form: Mapping[str, Any]) -> Render:
    """Return the page with what an operation would do to each client."""
    ids = await _list_ids(ctx, query)
    fields = await _read_fields(ctx, operation, form)
    result = await schedules.preview(ctx, ids[:_MAX_PREVIEWED], operation, fields)
    names = await customers_by_id.load_names(ctx, ids[:_MAX_PREVIEWED])
    unit, verb = ctx.caller.company.load_unit, _OPERATIONS[operation][1]
    clients = [_describe(names.get(each, ""), effect, verb, unit) for each, effect in result.effects.items()]
    clients += [_describe_failure(names.get(each["customerId"], ""), each["message"]) for each in result.failed]
    workouts = sum(len(effect.changed) for effect in result.effects.values())
    preview = {
        "operation": operation,
        "summary": f"{quantity(workouts, 'workout')} {verb}",
        "checked": len(clients),
        "clients": sorted(clients, key=lambda client: client["name"].casefold()),
    }
    return Render({"preview": preview}, PREVIEW_SHOWN)


def _describe(name: str, effect: Effect, verb: str, unit: str) -> ClientPreview:
    workouts = [f"{block['name']} on {format_date(str(block['day']))}" for block in effect.changed]
    changes = effect.progression
    return {
        "name": name,
        "changed": f"{quantity(len(workouts), 'workout')} {verb}" if workouts else "Nothing changes",
        "workouts": join_some(workouts, _NAMED_WORKOUTS),
        "progression": []
        if changes is None
        else [*describe_loads(changes["loadChanges"], unit), *describe_set_counts(changes["setChanges"])],
        "skipped": [
            f"{block['name']} on {format_date(str(block['day']))}: {_LEFT[block['code']]}" for block in effect.skipped
        ],
        "error": "",
    }


def _describe_failure(name: str, message: str) -> ClientPreview:
    return {"name": name, "changed": "", "workouts": "", "progression": [], "skipped": [], "error": message}


# --- the forms -------------------------------------------------------------------------------------------------------


@pages.post("/adjust", access=_EDIT, query=_Query, form=_AdjustForm(), on=many_schedules_page, request_class="bulk")
async def adjust_schedules(ctx: Context, query: _Query, form: dict[str, Any]) -> StreamedTask | QueuedTask:
    """Change loads, repetitions and sets of what has not been done."""
    return await _change(ctx, "adjust", query, form)


@pages.post(
    "/adjust/preview",
    access=_EDIT,
    query=_Query,
    form=_AdjustForm(),
    on=many_schedules_page,
    preview_of=adjust_schedules,
    request_class="bulk",
)
async def preview_adjustments(ctx: Context, query: _Query, form: dict[str, Any]) -> Render:
    """Show what adjusting would do to each client."""
    return await _preview(ctx, "adjust", query, form)


@pages.post(
    "/replace-exercise", access=_EDIT, query=_Query, form=_ReplaceForm(), on=many_schedules_page, request_class="bulk"
)
async def replace_exercise_of_many(ctx: Context, query: _Query, form: dict[str, Any]) -> StreamedTask | QueuedTask:
    """Replace an exercise where it has not been done; the sets stay."""
    return await _change(ctx, "replace-exercise", query, form)


@pages.post(
    "/replace-exercise/preview",
    access=_EDIT,
    query=_Query,
    form=_ReplaceForm(),
    on=many_schedules_page,
    preview_of=replace_exercise_of_many,
    request_class="bulk",
)
async def preview_replacements(ctx: Context, query: _Query, form: dict[str, Any]) -> Render:
    """Show what replacing an exercise would do to each client."""
    return await _preview(ctx, "replace-exercise", query, form)


@pages.post("/clear", access=_EDIT, query=_Query, form=_ClearForm(), on=many_schedules_page, request_class="bulk")
async def clear_schedules(ctx: Context, query: _Query, form: dict[str, Any]) -> StreamedTask | QueuedTask:
    """Remove the workouts with nothing done."""
    return await _change(ctx, "clear", query, form)


@pages.post(
    "/clear/preview",
    access=_EDIT,
    query=_Query,
    form=_ClearForm(),
    on=many_schedules_page,
    preview_of=clear_schedules,
    request_class="bulk",
)
async def preview_clearings(ctx: Context, query: _Query, form: dict[str, Any]) -> Render:
    """Show what clearing would do to each client."""
    return await _preview(ctx, "clear", query, form)


@pages.post("/shift", access=_EDIT, query=_Query, form=_ShiftForm(), on=many_schedules_page, request_class="bulk")
async def shift_schedules(ctx: Context, query: _Query, form: dict[str, Any]) -> StreamedTask | QueuedTask:
    """Move the workouts with nothing done by some days."""
    return await _change(ctx, "shift", query, form)


@pages.post(
    "/shift/preview",
    access=_EDIT,
    query=_Query,
    form=_ShiftForm(),
    on=many_schedules_page,
    preview_of=shift_schedules,
    request_class="bulk",
)
async def preview_shifts(ctx: Context, query: _Query, form: dict[str, Any]) -> Render:
    """Show what moving workouts would do to each client."""
    return await _preview(ctx, "shift", query, form)


@pages.post("/copy", access=_EDIT, query=_Query, form=_CopyForm(), on=many_schedules_page, request_class="bulk")
async def copy_schedules(ctx: Context, query: _Query, form: dict[str, Any]) -> StreamedTask | QueuedTask:
    """Copy days of each client to later or earlier ones of the same client."""
    return await _change(ctx, "copy", query, form)


@pages.post(
    "/copy/preview",
    access=_EDIT,
    query=_Query,
    form=_CopyForm(),
    on=many_schedules_page,
    preview_of=copy_schedules,
    request_class="bulk",
)
async def preview_copies(ctx: Context, query: _Query, form: dict[str, Any]) -> Render:
    """Show what copying days would do to each client."""
    return await _preview(ctx, "copy", query, form)
