"""Settings: who one is, and one's own password."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import session_only
from coaching_service.core.database.context import Context
from coaching_service.core.errors import BadRequest, Forbidden
from coaching_service.people.sessions import service as sessions
from coaching_service.people.sessions.schemas import PasswordChange
from coaching_service.web.pages import Go, Pages

pages = Pages("/app/settings/you")


@pages.get("", access=session_only(), template="settings/you.html")
async def you_page(_: Context) -> dict[str, Any]:
    """Who is signed in."""
    return {}


@pages.post("", access=session_only(), form=PasswordChange(), on=you_page, lane="own")
async def change_password(ctx: Context, form: dict[str, Any]) -> Go:
    """Change one's own password; the one at hand is asked for again."""
    try:
        await sessions.change_password(ctx, form["currentPassword"], form["password"])
    except Forbidden:
        raise BadRequest(["currentPassword is not your password"]) from None
    return Go("/app/settings/you", "Your password is changed. Wherever else you were signed in, you are signed out.")
