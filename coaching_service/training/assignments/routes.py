"""Assigning programs, and the programs of a client, over REST."""

from __future__ import annotations

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.field_schemas import input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import DryRun
from coaching_service.training.assignments import service

routes = Routes("/coach/customers/{customerId}/programs", tag="Programs", locks="customer")
program_routes = Routes("/coach/programs/{programId}", tag="Programs", locks="customer")


@program_routes.post(
    "/assign",
    access=coach(CUSTOMERS.EDIT),
    body=input_of(service.ProgramAssignment, DryRun)(),
    example={"customerId": "66f0c0ffee0000000000abcd", "startDate": "2026-03-02"},
)
async def assign_program(
    ctx: Context, program_id: ObjectId, body: service.ProgramAssignment
) -> service.ProgramAssignmentResult:
    """Assign a program to a client.

    Every block is copied to the calendar, day 1 on `startDate` or the days with work on `weekdays`: all or none. The
    copies have `programId`, `assignmentId` and `day`.
    """
    return await service.assign(
        ctx,
        program_id,
        body["customerId"],
        body["startDate"],
        weekdays=body.get("weekdays"),
        on_conflict=body["onConflict"],
        dry_run=body["dryRun"],
    )


@routes.get("", access=coach(CUSTOMERS.VIEW))
async def list_customer_programs(ctx: Context, customer_id: ObjectId) -> list[service.ClientProgram]:
    """List the programs assigned to a client, latest start first."""
    return await service.list_programs(ctx, customer_id)


@routes.post(
    "/{assignmentId}/end",
    access=coach(CUSTOMERS.EDIT),
    status=200,
    body_optional=True,
    example={"removeUpcoming": True},
)
async def end_customer_program(
    ctx: Context, customer_id: ObjectId, assignment_id: ObjectId, body: service.ProgramEnd
) -> service.ProgramEndResult:
    """End a program of a client.

    Its completed blocks stay on the calendar, the others too unless `removeUpcoming`. Repeating is harmless.
    """
    removed = await service.end(ctx, customer_id, assignment_id, remove_upcoming=body["removeUpcoming"])
    return {"removed": removed}
