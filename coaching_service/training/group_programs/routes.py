"""The programs of groups over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import CUSTOMERS, PROGRAMS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.errors import NotFound
from coaching_service.core.http.routes import Routes
from coaching_service.training.group_programs import service
from coaching_service.training.group_programs.models import Enrolment, GroupName, GroupProgram, GroupProgramChange

routes = Routes(
    "/coach/customers/groups/{name}/program",
    tag="Programs",
    path_descriptions={"name": "The name of a group, percent-encoded."},
)
_NAME = {"name": GroupName()}


@routes.get("", access=coach(CUSTOMERS.VIEW, PROGRAMS.VIEW), errors=(NotFound,), path_fields=_NAME)
async def get_group_program(ctx: Context, name: str) -> GroupProgram:
    """Return the program that clients get when they join a group."""
    return await service.get(ctx, name)


@routes.put(
    "",
    access=coach(CUSTOMERS.EDIT, PROGRAMS.VIEW),
    locks="program",
    errors=(NotFound,),
    example={"programId": "66f0c0ffee0000000000abcd", "startOn": "nextMonday", "leave": "removeUpcoming"},
    path_fields=_NAME,
)
async def set_group_program(ctx: Context, name: str, body: GroupProgramChange) -> Enrolment:
    """Set the program that clients get when they join a group.

    A client for whom the program runs already does not get it again, and an archived client does not get it.
    """
    return {"enrolled": await service.set_program(ctx, name, body)}


@routes.delete("", access=coach(CUSTOMERS.EDIT), errors=(NotFound,), path_fields=_NAME)
async def delete_group_program(ctx: Context, name: str) -> None:
    """Give clients who join a group no program any more.

    Clients who have it keep it.
    """
    await service.remove_program(ctx, name)
