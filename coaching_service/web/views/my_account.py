"""Settings: the signed-in coach's account and password."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import session_only
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Forbidden, invalid_field
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.sessions import passwords
from coaching_service.people.sessions.models import PasswordChange
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.sign_in import describe_api_keys

pages = Pages("/app/settings/my-account")


@pages.get("", access=session_only(), template="settings/my_account.html")
async def my_account_page(ctx: Context) -> dict[str, Any]:
    """The signed-in coach, and how many API keys the coach has."""
    return {"api_keys": await api_keys.count_own(ctx)}


@pages.post("", access=session_only(), form=PasswordChange, on=my_account_page, request_class="unlimited")
async def change_password(ctx: Context, form: PasswordChange) -> Redirect:
    """Change the password, confirmed with the current one."""
    try:
        new_password = await passwords.change_password(
            ctx, form["currentPassword"], form["password"], form["deleteApiKeys"]
        )
    except Forbidden:
        raise invalid_field("currentPassword", "is not your password", code="WRONG_PASSWORD") from None
    notice = f"Password changed. You are signed out on all other devices.{describe_api_keys(new_password)}"
    return Redirect("/app/settings/my-account", notice, device_token=new_password["deviceToken"])
