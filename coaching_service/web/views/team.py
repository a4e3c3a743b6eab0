"""Settings: the team and what everybody may do."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import owner_session
from coaching_service.core.auth.permissions import ACTIONS, AREAS
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, Version
from coaching_service.people.customers import service as customers
from coaching_service.people.team import service as team
from coaching_service.people.team.models import EmployeeChange
from coaching_service.people.team.schemas import SCOPES, NewEmployee, Permissions
from coaching_service.web.pages import Pages, Redirect

pages = Pages("/app/settings/team")
_OFFERED = {"areas": [area.name for area in AREAS], "actions": ACTIONS}


class _Change(NewEmployee):
    permissions = Permissions(load_default=list)
    customersScope = Choice(*SCOPES, required=True)
    version = Version()


@pages.get("", access=owner_session(), template="settings/team.html")
async def team_page(ctx: Context) -> dict[str, Any]:
    """Everybody on the team."""
    return {"everybody": await team.list_coaches(ctx), **_OFFERED}


@pages.get("/new", access=owner_session(), template="settings/employee.html")
async def new_employee_page(_: Context) -> dict[str, Any]:
    """The page on which somebody joins."""
    return {"employee": None, **_OFFERED}


@pages.post("/new", access=owner_session(), form=NewEmployee(), on=new_employee_page)
async def new_employee(ctx: Context, form: dict[str, Any]) -> Redirect:
    """Add somebody; a mail asks them to set a password."""
    await team.create_employee(ctx, form["name"], form["email"], form["permissions"], form["customersScope"])
    return Redirect("/app/settings/team", f"{form['name']} is on the team. A mail with a link is on its way.")


@pages.get("/{employeeId}", access=owner_session(), template="settings/employee.html")
async def employee_page(ctx: Context, employee_id: ObjectId) -> dict[str, Any]:
    """Somebody, and what they may do."""
    employee = await team.get_employee(ctx, employee_id)
    return {"employee": employee, "version": employee["version"], **_OFFERED}


@pages.post("/{employeeId}", access=owner_session(), form=_Change(), on=employee_page)
async def change_employee(ctx: Context, employee_id: ObjectId, form: EmployeeChange) -> Redirect:
    """Change what somebody may do; it holds from their next request."""
    await team.update_employee(ctx, employee_id, form)
    return Redirect("/app/settings/team", f"{form['name']} is changed.")


@pages.get("/{employeeId}/delete", access=owner_session(), template="settings/delete_employee.html")
async def delete_employee_page(ctx: Context, employee_id: ObjectId) -> dict[str, Any]:
    """What ends when somebody leaves."""
    employee = await team.get_employee(ctx, employee_id)
    theirs = await customers.list_customers(ctx, archived=False, page=1, size=1, trainers=[employee_id])
    return {"employee": employee, "clients": theirs["totalDocs"]}


@pages.post("/{employeeId}/delete", access=owner_session(), on=delete_employee_page)
async def delete_employee(ctx: Context, employee_id: ObjectId) -> Redirect:
    """Remove somebody: signed out at once, their clients are nobody's."""
    employee = await team.get_employee(ctx, employee_id)
    await team.remove_employee(ctx, employee_id)
    return Redirect("/app/settings/team", f"{employee['name']} is removed.")
