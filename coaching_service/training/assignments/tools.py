"""MCP tools for assigning programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import validates_schema

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import CustomerArgument, optional
from coaching_service.core.mcp.confirmation import Reason, find_reasons
from coaching_service.core.mcp.results import Written, typed
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Choice, Date, Identifier, Integer, ListOf
from coaching_service.core.validation_messages import invalid
from coaching_service.people.customers import service as customers
from coaching_service.training.assignments import service
from coaching_service.training.programs import service as programs
from coaching_service.training.schedule.conflicts import describe_conflicts
from coaching_service.training.schedule.days import days_between
from coaching_service.training.schedule.models import OnConflict

tools = Tools()


class AssignProgram(CustomerArgument):
    """A program, a client, and the date of the first day."""

    programId = Identifier(required=True, metadata={"description": "From list_programs."})
    startDate = Date(required=True, metadata={"description": "The date of the program's day 1, YYYY-MM-DD."})
    weekdays = ListOf(
        Integer(minimum=1, maximum=7),
        minimum=1,
        maximum=7,
        **optional("1 Monday to 7: days with work go onto the next such dates, rest days are left out."),
    )
    onConflict = Choice(
        *("add", "skip", "replace"),
        load_default="add",
        metadata={"description": "On days with workouts: add, skip the day, or replace those with nothing done."},
    )

    @validates_schema
    def names_weekdays_once(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require each weekday at most once."""
        if data["weekdays"] and len(set(data["weekdays"])) < len(data["weekdays"]):
            raise invalid("must have each weekday only once", "REPEATED", "weekdays")


@tools.tool(
    "Assign a program",
    access=coach(CUSTOMERS.EDIT),
    takes=AssignProgram(),
    writes=True,
    destructive=True,
    confirms=(Reason.MANY_DAYS, Reason.FAR_DATE),
)
async def assign_program(
    ctx: Context,
    customer_id: ObjectId,
    program_id: ObjectId,
    start_date: str,
    weekdays: list[int] | None,
    on_conflict: OnConflict,
) -> Written:
    """Copy every workout of a program to a client's calendar, day 1 on startDate, or only onto some weekdays: all or
    none."""
    assignment = await service.assign(
        ctx, program_id, customer_id, start_date, weekdays=weekdays, on_conflict=on_conflict
    )
    customer, program = await gather_reads(
        ctx, customers.get_visible_reference(ctx, customer_id), programs.require(ctx, program_id)
    )
    dates = sorted({start_date, *assignment["dates"]})
    return Written(
        f"Assigned {typed(program['name'])} to {typed(customer['name'])}: {assignment['blocks']} workouts from "
        f"{dates[0]} to {dates[-1]}{describe_conflicts(assignment['conflicts'], on_conflict)}.",
        {"programId": program_id, "assignmentId": assignment["assignmentId"]},
        find_reasons(
            today=await customers.get_local_date(ctx, customer_id),
            dates=dates,
            days=days_between(dates[0], dates[-1]) + 1,
        ),
        depends_on=assignment["dates"],
        details={"workoutsAdded": assignment["blocks"]},
    )
