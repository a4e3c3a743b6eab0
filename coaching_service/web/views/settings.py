"""Settings: the company, and its end."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach, owner_session
from coaching_service.core.database.context import Context
from coaching_service.core.errors import BadRequest, Forbidden
from coaching_service.core.validation import patch_of
from coaching_service.people.account import service as account
from coaching_service.people.account.models import AccountChange
from coaching_service.people.account.schemas import AccountDetails, AccountErasure
from coaching_service.people.customers import service as customers
from coaching_service.web.pages import Pages, Redirect

pages = Pages("/app/settings")
_DETAILS = patch_of(AccountDetails, name="CompanyForm")


@pages.get("", access=coach(), template="")
async def settings_page(_: Context) -> Redirect:
    """Settings begin with what every coach has."""
    return Redirect("/app/settings/api-keys")


@pages.get("/company", access=coach(), template="settings/company.html")
async def company_page(ctx: Context) -> dict[str, Any]:
    """The company: its name, time zone and unit of load."""
    company = await account.read(ctx)
    return {"company": company, "version": company["version"]}


@pages.post("/company", access=owner_session(), form=_DETAILS, on=company_page)
async def change_company(ctx: Context, form: AccountChange) -> Redirect:
    """Change the company."""
    await account.update(ctx, form)
    return Redirect("/app/settings/company", "The changes are kept.")


@pages.get("/delete-account", access=owner_session(), template="settings/delete_account.html")
async def delete_account_page(ctx: Context) -> dict[str, Any]:
    """What is lost with the company."""
    active = await customers.list_customers(ctx, archived=False, page=1, size=1)
    archived = await customers.list_customers(ctx, archived=True, page=1, size=1)
    return {"clients": active["totalDocs"] + archived["totalDocs"]}


@pages.post(
    "/delete-account", access=owner_session(), form=AccountErasure(), on=delete_account_page, request_class="unlimited"
)
async def delete_account(ctx: Context, form: dict[str, Any]) -> Redirect:
    """Erase the company; its owner's password is asked once more."""
    try:
        await account.erase(ctx, form["password"])
    except Forbidden:
        raise BadRequest(["password is not your password"]) from None
    return Redirect("/app/sign-in", "Your company is deleted. What is left of it is being erased.", ends_session=True)
