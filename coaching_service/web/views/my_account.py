"""Settings: who one is, and one's own password."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import session_only
from coaching_service.core.database.context import Context
from coaching_service.core.errors import BadRequest, Forbidden
from coaching_service.people.sessions import service as sessions
from coaching_service.people.sessions.schemas import PasswordChange
from coaching_service.web.pages import Pages, Redirect

pages = Pages("/app/settings/my-account")


@pages.get("", access=session_only(), template="settings/my_account.html")
async def you_page(_: Context) -> dict[str, Any]:
    """Who is signed in."""
    return {}


@pages.post("", access=session_only(), form=PasswordChange(), on=you_page, request_class="unlimited")
async def change_password(ctx: Context, form: dict[str, Any]) -> Redirect:
    """Change one's own password; the one at hand is asked for again."""
    try:
        await sessions.change_password(ctx, form["currentPassword"], form["password"])
    except Forbidden:
        raise BadRequest(["currentPassword is not your password"]) from None
    return Redirect(
        "/app/settings/my-account", "Your password is changed. Wherever else you were signed in, you are signed out."
    )
