"""Recurring check-ins over REST."""

from __future__ import annotations

from calendar import day_name
from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, validates_schema

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.field_schemas import argument_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import results
from coaching_service.core.mcp.arguments import CustomerArgument, optional
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import BEFORE_START, Message, Text
from coaching_service.people.customers import service as customers
from coaching_service.progress.check_ins import service
from coaching_service.progress.check_ins.service import CheckIn, NewCheckIn, Recurrence
from coaching_service.progress.reminders import CHECK_INS_AT
from coaching_service.training.workout_text.edits import check_names
from coaching_service.training.workout_text.finding import resolve_document

routes = Routes(
    "/coach/customers/{customerId}/check-ins",
    tag="Check-ins",
    locks="customer",
    path_descriptions={"checkInId": "The identifier of the recurring check-in."},
)


@routes.get("", access=coach(CUSTOMERS.VIEW))
async def list_check_ins(ctx: Context, customer_id: ObjectId) -> list[service.CheckIn]:
    """List the recurring check-ins of a client, oldest first."""
    return await service.list_check_ins(ctx, customer_id)


@routes.post(
    "",
    access=coach(CUSTOMERS.EDIT),
    body=service.NEW_CHECK_IN(),
    example={"formId": "66f0c0ffee0000000000abcd", "weekday": 7, "startDate": "2026-03-02"},
)
async def create_check_in(ctx: Context, customer_id: ObjectId, body: service.NewCheckIn) -> service.CheckIn:
    """Add a recurring check-in.

    It is scheduled on the calendar for 28 days, from the client's today on, and then day by day, in workout blocks of
    its own with `checkInId`. Compliance, session counts and operations on the schedule ignore these.
    """
    return await service.create(ctx, customer_id, body)


@routes.get("/{checkInId}", access=coach(CUSTOMERS.VIEW))
async def get_check_in(ctx: Context, customer_id: ObjectId, check_in_id: ObjectId) -> service.CheckIn:
    """Read a recurring check-in of a client.

    One that has been ended is not found.
    """
    return await service.get(ctx, customer_id, check_in_id)


@routes.patch(
    "/{checkInId}",
    access=coach(CUSTOMERS.EDIT),
    body=service.CHECK_IN_CHANGE,
    example={"weekday": 1, "version": 0},
)
async def update_check_in(
    ctx: Context, customer_id: ObjectId, check_in_id: ObjectId, body: service.CheckInChange
) -> service.CheckIn:
    """Change a recurring check-in.

    Another content or rhythm takes the place of the one it has; `startDate` stays. Its blocks from the client's today
    on with nothing done are scheduled again; past and answered ones stay as they are.
    """
    return await service.update(ctx, customer_id, check_in_id, body)


@routes.delete("/{checkInId}", access=coach(CUSTOMERS.EDIT))
async def delete_check_in(ctx: Context, customer_id: ObjectId, check_in_id: ObjectId) -> None:
    """End a recurring check-in.

    Its blocks from the client's today on with nothing done are removed; past and answered ones stay.
    """
    await service.delete(ctx, customer_id, check_in_id)


# --- Recurring check-ins for assistants -------------------------------------------------------------------------------


_REMINDED = f" The client is reminded on the day at {CHECK_INS_AT}."
tools = Tools()
_CONTENT = ("form", "metrics", "task")
_RHYTHM = ("weekday", "everyDays")


class CheckInToSchedule(CustomerArgument):
    """What a client is asked for, and when."""

    form = Text(**optional("A form to answer: its name or _id."))
    metrics = Text(**optional("Instead: a metric set to record, its name or _id."))
    task = Text(**optional("Instead: a task, such as a daily habit."))
    weekday = argument_of(Recurrence, "weekday")
    everyDays = argument_of(Recurrence, "everyDays")
    startDate = argument_of(Recurrence, "startDate", may_be_absent=True)
    until = argument_of(Recurrence, "until")

    @validates_schema(skip_on_field_errors=False)
    def validate_choices(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError unless there is one content and one rhythm, and the end is not before the start."""
        errors: dict[str, list[str]] = {}
        for names in (_CONTENT, _RHYTHM):
            given = [name for name in names if data.get(name) is not None]
            if not given and all(name in data for name in names):
                errors[names[0]] = [Message(f"is required, or {' or '.join(names[1:])}", "REQUIRED")]
            for name in given[1:]:
                errors[name] = [Message(f"must not be combined with {given[0]}", "NOT_ALLOWED")]
        first, last = data.get("startDate"), data.get("until")
        if first is not None and last is not None and last < first:
            errors["until"] = [BEFORE_START]
        if errors:
            raise ValidationError(errors)


@tools.tool(
    "Schedule a check-in",
    access=coach(CUSTOMERS.EDIT),
    takes=CheckInToSchedule(),
    writes=True,
    locks="customer",
    confirms=(results.Reason.MANY_DAYS, results.Reason.FAR_DATE),
    check=check_names,
)
async def schedule_check_in(
    ctx: Context,
    customer_id: ObjectId,
    form: str | None,
    metrics: str | None,
    task: str | None,
    weekday: int | None,
    every_days: int | None,
    start_date: str | None,
    until: str | None,
) -> results.Written:
    """Ask a client for a form, measurements or a task again and again, apart from workouts. list_check_ins reads the
    answers, undo ends it."""
    today = await customers.get_local_date(ctx, customer_id)
    start_date = start_date or await customers.resolve_today(ctx, customer_id)
    existing = await service.list_check_ins(ctx, customer_id)
    new: NewCheckIn = {
        "formId": None if form is None else await resolve_document(ctx, "form", "form", form),
        "metricsSetId": None if metrics is None else await resolve_document(ctx, "metric set", "metrics", metrics),
        "taskFields": None if task is None else {"title": task, "description": None},
        "weekday": weekday,
        "everyDays": every_days,
        "startDate": start_date,
        "until": until,
    }
    check_in = await service.create(ctx, customer_id, new)
    customer = await customers.get_visible_reference(ctx, customer_id)
    same = [_describe(each) for each in existing if each["name"] == check_in["name"]]
    note = f" There was already {', '.join(same)}." if same else ""
    return results.Written(
        f"Scheduled {_describe(check_in)} for {results.typed(customer['name'])}.{_REMINDED}{note}",
        {"customerId": customer_id, "checkInId": check_in["_id"]},
        results.find_reasons(
            today=today,
            dates=[date for date in (check_in["startDate"], until) if date is not None],
            days=_count_days(check_in),
        ),
    )


def _count_days(check_in: Recurrence) -> int:
    """Return the number of days from the first to the last check-in, without an end those that are scheduled ahead."""
    first, last = check_in["startDate"], check_in["until"]
    return service.DAYS_AHEAD if last is None else results.count_span([first, last])


def _describe(check_in: CheckIn) -> str:
    """Return a check-in in words, such as `«Weekly» every Sunday from 2026-03-02 on`."""
    weekday, days = check_in["weekday"], check_in["everyDays"]
    rhythm = f"every {days} days" if weekday is None else f"every {day_name[weekday - 1]}"
    until = f" until {check_in['until']}" if check_in["until"] else " on"
    return (
        f"{results.typed(check_in['name'])} {'every day' if days == 1 else rhythm} from {check_in['startDate']}{until}"
    )
