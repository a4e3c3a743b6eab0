"""Who is asking."""

from __future__ import annotations

from typing import Any

from coaching_service.kernel.auth.access import anyone
from coaching_service.kernel.rest.routes import Routes
from coaching_service.kernel.storage.context import Context
from coaching_service.people.account.schemas import Me

routes = Routes("", tag="Account")


@routes.get("/me", access=anyone(), returns=Me)
async def me(ctx: Context) -> dict[str, Any]:
    """Who am I.

    The coach or client this credential is evaluated as, with the permissions it holds at present.
    """
    who = ctx.who
    return {
        "_id": who.id,
        "name": who.name,
        "email": who.email,
        "role": who.role,
        "companyId": who.company.id,
        "permissions": sorted(who.permissions),
        "via": who.via,
    }
