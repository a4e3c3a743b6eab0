"""Settings: the team and the permissions of its employees."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, NotRequired

from coaching_service.core.auth.access import ACTIONS, AREAS, owner_session
from coaching_service.core.database.context import Context
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Version
from coaching_service.people.customers import listing
from coaching_service.people.team import service as team
from coaching_service.people.team.models import CoachName, CustomersScope, EmployeeChange, NewEmployee, Permissions
from coaching_service.web.pages import ConfirmedAction, Pages, Redirect

pages = Pages("/app/settings/team")
_PERMISSION_GRID = {"areas": [area.name for area in AREAS], "actions": ACTIONS}
_DEFAULT_PERMISSIONS = (
    "customers.view",
    "customers.create",
    "customers.edit",
    "exercises.view",
    "programs.view",
    "forms.view",
    "metrics.view",
    "metrics.edit",
    "nutrition.view",
)


class _EmployeeForm(CoachName):
    permissions: Annotated[list[str], Permissions(), Default(list)]
    customersScope: CustomersScope
    version: NotRequired[Annotated[int, Version()]]


@pages.get("", access=owner_session(), template="settings/team.html")
async def team_page(ctx: Context) -> dict[str, Any]:
    """The owner and the employees."""
    return {"coaches": await team.list_coaches(ctx), **_PERMISSION_GRID}


@pages.get("/new", access=owner_session(), template="settings/employee.html")
async def new_employee_page(_: Context) -> dict[str, Any]:
    """The form for a new employee."""
    return {"employee": None, "default_permissions": _DEFAULT_PERMISSIONS, **_PERMISSION_GRID}


@pages.post("/new", access=owner_session(), on=new_employee_page)
async def create_employee(ctx: Context, form: NewEmployee) -> Redirect:
    """Add an employee, who receives an e-mail to set a password."""
    await team.create_employee(ctx, form["name"], form["email"], form["permissions"], form["customersScope"])
    return Redirect("/app/settings/team", f"{form['name']} added. We sent an email with a link to set a password.")


@pages.get("/{employeeId}", access=owner_session(), template="settings/employee.html")
async def employee_page(ctx: Context, employee_id: ObjectId) -> dict[str, Any]:
    """One employee and their permissions."""
    employee = await team.get_employee(ctx, employee_id)
    return {"employee": employee, "version": employee["version"], **_PERMISSION_GRID}


@pages.post("/{employeeId}", access=owner_session(), form=_EmployeeForm, on=employee_page)
async def update_employee(ctx: Context, employee_id: ObjectId, form: EmployeeChange) -> Redirect:
    """Change an employee; permissions apply from their next request."""
    await team.update_employee(ctx, employee_id, form)
    return Redirect("/app/settings/team", f"Changes to {form['name']} saved.")


@pages.confirm("/{employeeId}/delete", access=owner_session(), template="settings/delete_employee.html", deletes=True)
async def delete_employee(ctx: Context, employee_id: ObjectId) -> ConfirmedAction:
    """Remove an employee: they are signed out and their clients become unassigned."""
    employee = await team.get_employee(ctx, employee_id)
    assigned = await listing.list_customers(ctx, archived=False, page=1, size=1, trainers=[employee_id])
    shown = {"employee": employee, "client_count": assigned["totalDocs"]}
    done = Redirect(pages.prefix, f"{employee['name']} removed.")
    return ConfirmedAction(shown, partial(team.delete_employee, ctx, employee_id), done)
