"""The team over REST: the owner's session only."""

from __future__ import annotations

from coaching_service.core.auth import owner_session
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict
from coaching_service.core.field_schemas import input_of
from coaching_service.core.http.routes import Routes, list_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import patch_of
from coaching_service.people.team import service

routes = Routes("/coach/employees", tag="Team", path_descriptions={"employeeId": "The identifier of the employee."})


@routes.get("", access=owner_session(), returns=list_of(service.Employee))
async def list_employees(ctx: Context) -> list[service.Coach]:
    """List the employees."""
    return await service.list_employees(ctx)


@routes.post(
    "",
    access=owner_session(),
    returns=service.Employee,
    errors=(Conflict,),
    example={
        "name": "Eli",
        "email": "eli@example.com",
        "permissions": ["customers.view"],
        "customersScope": "assigned",
    },
)
async def create_employee(ctx: Context, body: service.NewEmployee) -> service.Coach:
    """Add an employee.

    The employee is sent a mail with a token to set a password.
    """
    return await service.create_employee(ctx, body["name"], body["email"], body["permissions"], body["customersScope"])


@routes.get("/{employeeId}", access=owner_session(), returns=service.Employee)
async def get_employee(ctx: Context, employee_id: ObjectId) -> service.Coach:
    """Read an employee."""
    return await service.get_employee(ctx, employee_id)


@routes.patch(
    "/{employeeId}",
    access=owner_session(),
    body=patch_of(input_of(service.NewEmployee), name="EmployeeChange"),
    returns=service.Employee,
    example={"name": "Eli Coach"},
)
async def update_employee(ctx: Context, employee_id: ObjectId, body: service.EmployeeChange) -> service.Coach:
    """Change an employee.

    With another `email` the employee signs in by that one: sign-in sessions end and mailed tokens become invalid. An
    employee who has not set a password yet is sent a new token.
    """
    return await service.update_employee(ctx, employee_id, body)


@routes.put(
    "/{employeeId}/permissions",
    access=owner_session(),
    body=service.EmployeePermissions,
    returns=service.Employee,
    example={"permissions": ["customers.view", "customers.edit"], "customersScope": "assigned"},
)
async def set_employee_permissions(ctx: Context, employee_id: ObjectId, body: service.EmployeeChange) -> service.Coach:
    """Set what an employee may do.

    They apply from the next request, for sessions and keys.
    """
    return await service.update_employee(ctx, employee_id, body)


@routes.delete("/{employeeId}", access=owner_session())
async def delete_employee(ctx: Context, employee_id: ObjectId) -> None:
    """Remove an employee.

    The employee's sessions and keys end at once; the employee's clients have no trainer.
    """
    await service.delete_employee(ctx, employee_id)
