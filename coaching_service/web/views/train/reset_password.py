"""Choosing a new password, linked from the e-mail to a client who forgot it."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import public
from coaching_service.core.database.context import Context
from coaching_service.people.sessions.models import PasswordReset
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.sign_in import TokenQuery, set_new_password

pages = Pages("/train/reset-password")


@pages.get("", access=public(), query=TokenQuery, template="sign_in/reset_password.html")
async def reset_password_page(_: Context, query: TokenQuery) -> dict[str, Any]:
    """The page to choose a new password."""
    return {"token": query["token"], "api_keys": 0}


@pages.post("", access=public(), form=PasswordReset, on=reset_password_page, request_class="unlimited")
async def reset_password(ctx: Context, form: PasswordReset) -> Redirect:
    """Set the password; every session of the client ends."""
    return await set_new_password(ctx, form, "/app/sign-in?next=/train")
