"""Where a coach arrives."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS, EXERCISES, PROGRAMS
from coaching_service.core.database.context import Context
from coaching_service.web.pages import Pages, Redirect

pages = Pages("/app")


_FIRST = (
    (CUSTOMERS.VIEW, "/app/customers"),
    (EXERCISES.VIEW, "/app/exercises"),
    (PROGRAMS.VIEW, "/app/programs"),
)


@pages.get("", access=coach(), template="")
async def home(ctx: Context) -> Redirect:
    """The first page of those that a coach may see."""
    return Redirect(
        next((path for permission, path in _FIRST if permission in ctx.caller.permissions), "/app/settings")
    )
