"""Bulk actions on clients: selected in the list, confirmed on a page, then run with their progress shown."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import wraps
from typing import Annotated, Any, TypedDict, cast
from urllib.parse import urlencode

from marshmallow import Schema, fields

from coaching_service.core import validation
from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict, PermissionMissing, invalid_field
from coaching_service.core.fields import Default, input_of, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import Period
from coaching_service.library import metric_sets
from coaching_service.library.exercises import service as exercises
from coaching_service.lifecycle.customer_bulk import service as customer_bulk
from coaching_service.people import team
from coaching_service.people.customers import bulk, models
from coaching_service.people.customers import service as listing
from coaching_service.progress.conversation.messages import MessageField
from coaching_service.training import programs
from coaching_service.training.schedule import service as schedule
from coaching_service.training.schedule.models import ScheduleRange, SkipReason
from coaching_service.training.workouts.reports import exercises as exercise_reports
from coaching_service.web import pages as web_pages
from coaching_service.web.formatting import format_date, name_options, quantity
from coaching_service.web.views import check_ins, customer_calendar, customers, messages
from coaching_service.web.views.history import start_operation

pages = web_pages.Pages("/app/customers/bulk")

_MAX_NAMES, _MAX_HIDDEN_NAMES, _MAX_PROGRAMS, _MAX_PREVIEWED = 12, 250, 500, 100
_EMPTY_SELECTION = "No client matches any more. The action may already have been completed."


class ClientSelection(customers.CustomerFilter):
    """The selected clients: `ids`, or with `all` every match of the filter; `page` is the page of the list shown."""

    ids: Annotated[list[ObjectId], validation.ListOf(validation.Identifier(), maximum=1000), Default(list)]
    all: Annotated[bool, Default(False)]
    action: Annotated[str, validation.Choice(*customers.ACTIONS), Default("groups-add")]
    programId: ObjectId | None
    templateId: ObjectId | None


class ConfirmedClients(TypedDict):
    """The hash of the clients that the page has shown; `isSure`: an unusual change is meant."""

    selectionHash: Annotated[str, validation.Text(allow_blank=True), Default("")]
    isSure: Annotated[bool, Default(False)]


class _ActionInput(ConfirmedClients):
    groupNames: Annotated[list[str], validation.StringList(), Default(list)]
    coachId: Annotated[str, validation.Text(allow_blank=True), Default("")]
    programId: ObjectId | None
    startDate: Annotated[str | None, validation.CalendarDate()]
    onConflict: customer_calendar.ConflictChoice
    metricsSetId: ObjectId | None
    text: Annotated[str, MessageField(allow_blank=True), Default("")]
    deliverAt: messages.LocalTime
    content: Annotated[str, fields.String(), Default("")]
    title: Annotated[str, validation.Text(allow_blank=True), Default("")]
    rhythm: Annotated[str, validation.Choice(*(value for value, _ in check_ins.RHYTHMS)), Default("weekday-7")]
    until: Annotated[str | None, validation.Date()]


@pages.get("", access=coach(CUSTOMERS.VIEW), template="customers/bulk.html")
async def bulk_page(ctx: Context, query: ClientSelection) -> dict[str, Any] | web_pages.Redirect:
    """Confirmation of an action: the selected clients and the input it requires."""
    action = _get_action(ctx, query["action"])
    if action.page:
        return web_pages.Redirect(f"{action.page}?{urlencode(to_parameters(query), doseq=True)}")
    ids = await customer_bulk.list_selected(ctx, to_service_selection(query))
    if not ids:
        return web_pages.Redirect(list_url(query), _EMPTY_SELECTION if query["all"] else "Select at least one client.")
    shown = {customer["_id"] for customer in (await customers.find_customers(ctx, query))["docs"]}
    hidden = [customer_id for customer_id in ids if customer_id not in shown]
    visible = [customer_id for customer_id in ids if customer_id in shown]
    parameters = {**to_parameters(query), "action": query["action"]}
    without_template = {name: value for name, value in parameters.items() if name != "templateId"}
    return {
        "action": action,
        "count": len(ids),
        "hidden_count": len(hidden),
        "hidden_names": [*(await bulk.load_names(ctx, hidden, _MAX_HIDDEN_NAMES)).values()],
        "names": [*(await bulk.load_names(ctx, visible, _MAX_NAMES)).values()],
        "selection_hash": selection_hash(ids),
        "return_url": list_url(query),
        "template_path": f"{pages.prefix}?{urlencode(without_template, doseq=True)}&templateId=",
        **await _load_options(ctx, action.field, query["templateId"]),
    }


@pages.post("", access=coach(CUSTOMERS.VIEW), locks="program", on=bulk_page, request_class="bulk")
async def bulk_change(ctx: Context, query: ClientSelection, form: _ActionInput) -> web_pages.QueuedTask:
    """Run an action on the clients that were confirmed.

    Raises Conflict if the selection has changed.
    """
    action = _get_action(ctx, query["action"])
    arguments = action.read_arguments(form)
    ids = await customer_bulk.list_selected(ctx, to_service_selection(query))
    require_unchanged(ids, form["selectionHash"])

    if action.field == "coachId":
        (arguments["coachId"],) = customers.parse_trainer_ids([form["coachId"]])
    elif action.field == "content":
        arguments = dict(check_ins.to_check_in(cast("check_ins.CheckInForm", form)))
    elif action.field == "text":
        deliver_at = messages.to_delivery_time(form["deliverAt"], ctx.caller.company.timezone)
        arguments |= {"fillsNames": True, "deliverAt": deliver_at}
    return start_operation(ctx, action.operation, ids, arguments, return_url=list_url(query))


@pages.post("/preview", access=coach(CUSTOMERS.VIEW), on=bulk_page, preview_of=bulk_change, request_class="bulk")
async def preview_bulk_assignment(ctx: Context, query: ClientSelection, form: _ActionInput) -> web_pages.Render:
    """Show on which days of a program the first of the clients have workouts."""
    action = _get_action(ctx, "assign-program")
    arguments = action.read_arguments(form)
    ids = (await customer_bulk.list_selected(ctx, to_service_selection(query)))[:_MAX_PREVIEWED]
    operation = await customer_bulk.assign_program(
        ctx, arguments["programId"], arguments["startDate"], arguments["onConflict"]
    )
    await customer_bulk.run_operation(ctx, {"ids": ids, "dryRun": True}, operation, customer_bulk.Run())
    by_client = operation.conflicts
    shown = list(by_client)[:_MAX_NAMES]
    names = await bulk.load_names(ctx, shown)
    preview = {
        "checked": len(ids),
        "outcome": customer_calendar.OUTCOMES[form["onConflict"]],
        "count": len(by_client),
        "clients": [
            (names[each], customer_calendar.list_taken_days(by_client[each])) for each in shown if each in names
        ],
    }
    return web_pages.Render({"preview": preview}, customer_calendar.PREVIEW_SHOWN)


def require_unchanged(ids: list[ObjectId], confirmed: str) -> None:
    """Raise Conflict unless the clients are those whose hash was confirmed."""
    if confirmed != selection_hash(ids):
        raise Conflict(
            f"Nothing was changed: the selection changed to {quantity(len(ids), 'client')} meanwhile. Check it again.",
            code="SELECTION_CHANGED",
        )


def _get_action(ctx: Context, name: str) -> customers.Action:
    action = customers.ACTIONS[name]
    if permission := action.missing_permission(ctx.caller.permissions):
        raise PermissionMissing(permission)
    return action


async def _load_options(ctx: Context, field: str, template_id: ObjectId | None) -> dict[str, Any]:
    """Return the template variables from which the action's input is chosen."""
    if field == "groupNames":
        return {"groups": await listing.list_groups(ctx)}
    if field == "coachId":
        return {"coaches": await team.list_coaches(ctx)}
    if field == "metricsSetId":
        return {"sets": await metric_sets.list_all(ctx)}
    if field == "programId":
        return {"programs": await programs.list_page(ctx, archived=False, page=1, size=_MAX_PROGRAMS)}
    if field == "content":
        return {"check_in_kinds": await check_ins.list_check_in_kinds(ctx), "rhythms": check_ins.RHYTHMS}
    if field == "text":
        return await messages.load_templates(ctx, template_id, None)
    return {}


def to_service_selection(query: ClientSelection) -> customer_bulk.Selection:
    """Return the selection that the query of a page means."""
    if not query["all"]:
        return {"ids": query["ids"], "dryRun": False}
    customer_filter: models.CustomerFilter = {"archived": query["archived"], "contains": query["keywords"]}
    if query["groups"]:
        customer_filter["groups"] = query["groups"]
    if query["assignedTo"]:
        customer_filter["assignedTo"] = customers.parse_trainer_ids(query["assignedTo"])
    return {"filter": customer_filter, "dryRun": False}


def to_parameters(query: ClientSelection) -> dict[str, Any]:
    """Return the parameters of a page for the same selection."""
    parameters = {name: value for name, value in query.items() if value and name != "action"}
    return {name: "true" if value is True else value for name, value in parameters.items()}


def selection_hash(ids: list[ObjectId]) -> str:
    """Return a hash of the clients on the confirmation page, so that the form applies to these clients only."""
    return hashlib.sha256(b"".join(customer_id.binary for customer_id in ids)).hexdigest()


def list_url(query: ClientSelection) -> str:
    """Return the address of the list in which the clients were selected."""
    return customers.address_of(take(customers.CustomerFilter, query))()


# --- Changes to the schedules of many clients, each with a preview that says what changes for every client ------------


_schedules = pages.below("/schedules")
_EDIT = coach(CUSTOMERS.EDIT)
_NAMED_WORKOUTS, _PLANNED_DAYS, _USUAL_PERCENT = 6, 28, 20
_LEFT: Mapping[SkipReason, str] = {
    "DONE": "left as it is, because something of it is done",
    "PARTLY_DONE": "what is done of it is left as it is",
    "DAY_TAKEN": "not copied, because the day has workouts",
}


class _Query(ClientSelection):
    """The selected clients, or everyone a program runs for, or who has an exercise planned; and the form to open."""

    assignedProgramId: ObjectId | None
    plannedExerciseId: ObjectId | None
    operation: Annotated[schedule.Operation, Default("replace-exercise")]
    picked: ObjectId | None


class _ShiftForm(TypedDict):
    startDate: Annotated[str, validation.Date()]
    days: Annotated[int, validation.Integer(minimum=-3_660, maximum=3_660)]


async def _list_ids(ctx: Context, query: _Query) -> list[ObjectId]:
    """Return the selected clients. Raises NotFound for the program."""
    if query["plannedExerciseId"] is not None:
        return await customer_bulk.list_planned_for(ctx, query["plannedExerciseId"])
    selection = to_service_selection(query)
    if query["assignedProgramId"] is not None:
        selection = {"assignedProgramId": query["assignedProgramId"], "dryRun": False}
    return await customer_bulk.list_selected(ctx, selection)


def _return_url(query: _Query) -> str:
    exercise_id, program_id = query["plannedExerciseId"], query["assignedProgramId"]
    if exercise_id is None and program_id is None:
        return list_url(query)
    return f"/app/programs/{program_id}" if exercise_id is None else f"/app/exercises/{exercise_id}"


@_schedules.get("", access=_EDIT, template="customers/schedules.html")
async def many_schedules_page(ctx: Context, query: _Query) -> dict[str, Any] | web_pages.Redirect:
    """The selected clients, and the changes that their schedules can have."""
    ids = await _list_ids(ctx, query)
    if not ids:
        return web_pages.Redirect(_return_url(query), "No client is selected.")
    today = ctx.caller.today()
    planned = await exercise_reports.find_planned_exercises(
        ctx, ids[: customer_bulk.BATCH], str(today), str(today + timedelta(days=_PLANNED_DAYS))
    )
    exercise_id, program_id = query["plannedExerciseId"], query["assignedProgramId"]
    names = await exercises.get_names(ctx, [*planned, *([exercise_id] if exercise_id else [])])
    options = {each: name["name"] for each, name in names.items()}
    return {
        "count": len(ids),
        "names": [*(await bulk.load_names(ctx, ids, _MAX_NAMES)).values()],
        "program": await programs.require(ctx, program_id) if program_id else None,
        "exercise_name": options.get(exercise_id, "") if exercise_id else "",
        "exercises": name_options(options),
        "picked": await customer_calendar.find_picked(ctx, query["picked"]),
        "selection_hash": selection_hash(ids),
        "selection_query": urlencode(to_parameters(query), doseq=True),
        "return_url": _return_url(query),
        "in_six_days": today + timedelta(days=6),
        "in_a_week": today + timedelta(days=7),
    }


_Read = Callable[[Context, Any], Awaitable[schedule.Fields]]


def _is_large(form: Mapping[str, Any]) -> bool:
    """Return whether a form raises the loads of many clients by more than is usual."""
    return form.get("loadChangeIn") == "percent" and (form["loadChange"] or 0) > _USUAL_PERCENT


def _operation(
    operation: schedule.Operation, operation_id: str, form: type[Schema], *, done: str, deletes: bool = False
) -> Callable[[_Read], web_pages.Handler]:
    """Declare the form of an operation, and its preview, with a function that returns the fields of the operation.

    The function has the name of the form and receives its values. `done`: what the operation does with workouts.
    """
    options: Mapping[str, Any] = {
        "access": _EDIT,
        "query": _Query,
        "form": input_of(ConfirmedClients, form)(),
        "on": many_schedules_page,
        "request_class": "bulk",
        "deletes": deletes,
    }

    def declare(read: _Read) -> web_pages.Handler:
        @_schedules.post(f"/{operation}", **options)
        @wraps(read)
        async def change(ctx: Context, query: _Query, form: ConfirmedClients) -> web_pages.QueuedTask:
            ids = await _list_ids(ctx, query)
            require_unchanged(ids, form["selectionHash"])
            if _is_large(form) and not form["isSure"]:
                raise invalid_field("isSure", "has to be confirmed", code="NOT_CONFIRMED")
            return start_operation(ctx, operation_id, ids, await read(ctx, form), return_url=_return_url(query))

        async def preview(ctx: Context, query: _Query, form: ConfirmedClients) -> web_pages.Render:
            ids = (await _list_ids(ctx, query))[:_MAX_PREVIEWED]
            fields, notes = await read(ctx, form), []
            effects, failed = await customer_bulk.preview(ctx, ids, operation, fields)
            if operation == "replace-exercise":  # what the form was read as, and what becomes of the loads
                swap = fields["exerciseId"], fields["withExerciseId"]
                exercise_names = await exercises.get_names(ctx, swap)
                notes = [" → ".join(exercise_names[each]["name"] for each in swap)]
                notes.append(customer_calendar.describe_replaced_load(fields["load"], cast("Any", form)["load"]))
            names, unit = await bulk.load_names(ctx, ids), ctx.caller.company.load_unit
            clients: list[dict[str, Any]] = []
            for customer_id, effect in effects.items():
                planned = [f"{each['name']} on {format_date(str(each['day']))}" for each in effect.affected]
                lines = customer_calendar.describe_replaced_sets(effect.replaced, unit)
                if (changes := effect.result) is not None and "loadChanges" in changes:
                    lines = customer_calendar.describe_loads(changes["loadChanges"], unit)
                    lines += customer_calendar.describe_set_counts(changes["setChanges"])
                clients.append(
                    {
                        "name": names.get(customer_id, ""),
                        "changed": f"{quantity(len(planned), 'workout')} {done}" if planned else "Nothing changes",
                        "workouts": schedule.join_some(planned, _NAMED_WORKOUTS),
                        "progression": lines,
                        "skipped": [
                            f"{each['name']} on {format_date(str(each['day']))}: {_LEFT[each['code']]}"
                            for each in effect.skipped
                        ],
                        "error": "",
                    }
                )
            empty = {"changed": "", "workouts": "", "progression": [], "skipped": []}
            clients += [
                {**empty, "name": names.get(each["customerId"], ""), "error": each["message"]} for each in failed
            ]
            workouts = sum(len(effect.affected) for effect in effects.values())
            shown = {
                "operation": operation,
                "summary": f"{quantity(workouts, 'workout')} {done}",
                "notes": notes,
                "checked": len(clients),
                "asks": _is_large(form),  # whether that is meant
                "clients": sorted(clients, key=lambda client: client["name"].casefold()),
            }
            return web_pages.Render({"preview": shown}, customer_calendar.PREVIEW_SHOWN)

        _schedules.post(f"/{operation}/preview", preview_of=change, **options)(preview)
        return change

    return declare


@_operation("adjust", "bulkAdjustSchedule", customer_calendar.ADJUST_FORM, done="changed")
async def adjust_schedules(_: Context, form: customer_calendar.AdjustForm) -> schedule.Fields:
    """Change loads, repetitions and sets of what has not been done."""
    return {**take(Period, form), "progression": customer_calendar.to_progression(form) or {}}


@_operation("replace-exercise", "bulkReplaceScheduledExercise", customer_calendar.REPLACE_FORM, done="changed")
async def replace_exercise_of_many(ctx: Context, form: customer_calendar.ReplaceForm) -> schedule.Fields:
    """Replace an exercise where it has not been done; the sets stay."""
    swap = form["exerciseId"], await customer_calendar.find_exercise(ctx, form)
    load = form["load"] or await schedule.choose_load(ctx, *swap)
    return {**take(Period, form), "exerciseId": swap[0], "withExerciseId": swap[1], "load": load}


@_operation("clear", "bulkClearSchedule", ScheduleRange, done="removed", deletes=True)
async def clear_schedules(_: Context, form: Period) -> schedule.Fields:
    """Remove the workouts with nothing done."""
    return take(Period, form)


@_operation("shift", "bulkShiftSchedule", input_of(_ShiftForm), done="moved")
async def shift_schedules(_: Context, form: _ShiftForm) -> schedule.Fields:
    """Move the workouts with nothing done by some days."""
    return {"from": form["startDate"], "days": form["days"]}


@_operation("copy", "bulkCopySchedule", customer_calendar.COPY_FORM, done="added or replaced")
async def copy_schedules(_: Context, form: customer_calendar.CopyForm) -> schedule.Fields:
    """Copy days of each client to later or earlier ones of the same client."""
    return {
        **take(Period, form),
        "targetDate": form["targetDate"],
        "repeat": form["repeat"],
        "onConflict": form["onConflict"],
        "progression": customer_calendar.to_progression(form),
    }
