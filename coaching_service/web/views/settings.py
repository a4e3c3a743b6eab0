"""Settings: the company, its storage and its deletion."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach, owner_session
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Forbidden, invalid_field
from coaching_service.core.field_schemas import input_of
from coaching_service.core.validation import patch_of
from coaching_service.people.account import service as account
from coaching_service.people.account.models import AccountChange, AccountDetails, AccountErasure
from coaching_service.people.customers import listing
from coaching_service.web.pages import Pages, Redirect

pages = Pages("/app/settings")
_COMPANY_FORM = patch_of(input_of(AccountDetails), name="CompanyForm")


@pages.get("", access=coach(), template="")
async def settings_page(_: Context) -> Redirect:
    """Redirect to the first settings page, which every coach can see."""
    return Redirect("/app/settings/company")


@pages.get("/company", access=coach(), template="settings/company.html")
async def company_page(ctx: Context) -> dict[str, Any]:
    """The company's name, time zone and load unit."""
    company = await account.get(ctx)
    return {"company": company, "version": company["version"]}


@pages.post("/company", access=owner_session(), form=_COMPANY_FORM, on=company_page)
async def update_company(ctx: Context, form: AccountChange) -> Redirect:
    """Change the company's details."""
    await account.update(ctx, form)
    return Redirect("/app/settings/company", "Changes saved.")


@pages.get("/storage", access=owner_session(), template="settings/storage.html")
async def storage_page(ctx: Context) -> dict[str, Any]:
    """The number and the size of the company's files, and how much it may store."""
    return {"usage": await account.get_storage(ctx)}


@pages.get("/delete-account", access=owner_session(), template="settings/delete_account.html")
async def delete_account_page(ctx: Context) -> dict[str, Any]:
    """Confirmation of deleting the company."""
    active = await listing.list_customers(ctx, archived=False, page=1, size=1)
    archived = await listing.list_customers(ctx, archived=True, page=1, size=1)
    return {"client_count": active["totalDocs"] + archived["totalDocs"]}


@pages.post(
    "/delete-account",
    access=owner_session(),
    form=AccountErasure,
    on=delete_account_page,
    request_class="unlimited",
)
async def delete_account(ctx: Context, form: AccountErasure) -> Redirect:
    """Delete the company; its owner confirms with their password."""
    try:
        await account.erase(ctx, form["password"])
    except Forbidden:
        raise invalid_field("password", "is not your password", code="WRONG_PASSWORD") from None
    return Redirect("/app/sign-in", "Your company is deleted. Its data is being erased.", ends_session=True)
