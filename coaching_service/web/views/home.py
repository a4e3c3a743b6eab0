"""The start page of the coach application."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS, EXERCISES, PROGRAMS
from coaching_service.core.database.context import Context
from coaching_service.web.pages import Pages, Redirect

pages = Pages("/app")

_START_PAGES = (
    (CUSTOMERS.VIEW, "/app/attention"),
    (EXERCISES.VIEW, "/app/exercises"),
    (PROGRAMS.VIEW, "/app/programs"),
)


@pages.get("", access=coach(), template="")
async def home(ctx: Context) -> Redirect:
    """Redirect to the first area that the coach has permission to view."""
    permissions = ctx.caller.permissions
    return Redirect(next((path for permission, path in _START_PAGES if permission in permissions), "/app/settings"))
