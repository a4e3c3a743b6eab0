"""MCP tools for assigning programs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from marshmallow import validates_schema

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.dates import name_days
from coaching_service.core.errors import invalid_field
from coaching_service.core.field_schemas import argument_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.results import Reason, Written, find_reasons, typed
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Identifier, invalid
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.bulk import ClientsArgument, choose_clients, identify_clients
from coaching_service.people.customers.models import NamedCustomer
from coaching_service.training.assignments import service
from coaching_service.training.assignments.service import ProgramAssignment, ProgramAssignmentResult
from coaching_service.training.programs import service as programs
from coaching_service.training.schedule.models import OnConflict, on_conflict
from coaching_service.training.schedule.service import OUTCOMES, days_between, describe_conflicts
from coaching_service.training.workout_text.argument_checks import check_names, run_checks
from coaching_service.training.workouts.blocks import batches

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
    _require_room(clients, assignments)
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
        each = "; ".join(map(_describe, clients, assignments))
        line += f"{len(clients)} clients, workouts {days}: {each}.{_describe_outcome(assignments, on_conflict)}"
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


def _require_room(clients: Sequence[NamedCustomer], assignments: Sequence[ProgramAssignmentResult]) -> None:
    """Raise InvalidFields, naming the clients, if all days of the program are taken and left as they are."""
    full = [
        typed(client["name"])
        for client, assignment in zip(clients, assignments, strict=True)
        if assignment["conflicts"] and not assignment["blocks"]
    ]
    if full:
        message = f"leaves nothing to add for {', '.join(full)}: every day of the program has workouts"
        raise invalid_field("onConflict", f"{message}; add or replace, or another startDate, assigns it", code="EMPTY")


def _describe(client: NamedCustomer, assignment: ProgramAssignmentResult) -> str:
    """Return the number of workouts that a client gets, and on how many days there were others."""
    taken = len({conflict["date"] for conflict in assignment["conflicts"]})
    conflicts = f" ({taken} {'day' if taken == 1 else 'days'} had workouts)" if taken else ""
    return f"{typed(client['name'])} {assignment['blocks']}{conflicts}"


def _describe_outcome(assignments: Sequence[ProgramAssignmentResult], on_conflict: OnConflict) -> str:
    if not any(assignment["conflicts"] for assignment in assignments):
        return ""
    return f" On days that had workouts: {OUTCOMES[on_conflict]}."
