"""Settings: the company, its storage, unit of loads and deletion, and the account of the signed-in coach."""

from __future__ import annotations

from typing import Any, TypedDict, cast

from coaching_service.core.auth.access import coach, even_while_converting, owner_session, session_only
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Forbidden, invalid_field
from coaching_service.core.field_schemas import input_of
from coaching_service.core.validation import patch_of
from coaching_service.integrations import load_unit
from coaching_service.integrations.background_jobs import service as background_jobs
from coaching_service.integrations.background_jobs.models import ConversionWork
from coaching_service.people.account import service as account
from coaching_service.people.account.models import AccountChange, AccountDetails, AccountErasure, LoadUnit
from coaching_service.people.api_keys import service as api_keys
from coaching_service.people.customers import listing
from coaching_service.people.sessions import passwords
from coaching_service.people.sessions.models import PasswordChange
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.sign_in import describe_api_keys

pages = Pages("/app/settings")
_LOAD_UNIT = f"{pages.prefix}/load-unit"
_UNIT_NAMES = {"kg": "kilograms", "lb": "pounds"}
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


@pages.post("/delete-account", access=owner_session(), on=delete_account_page, request_class="unlimited", deletes=True)
async def delete_account(ctx: Context, form: AccountErasure) -> Redirect:
    """Delete the company; its owner confirms with their password."""
    try:
        await account.erase(ctx, form["password"])
    except Forbidden:
        raise invalid_field("password", "is not your password", code="WRONG_PASSWORD") from None
    return Redirect("/app/sign-in", "Your company is deleted. Its data is being erased.", ends_session=True)


@pages.get("/my-account", access=session_only(), template="settings/my_account.html")
async def my_account_page(ctx: Context) -> dict[str, Any]:
    """The signed-in coach, and how many API keys the coach has."""
    return {"api_keys": await api_keys.count_own(ctx)}


@pages.post("/my-account", access=session_only(), on=my_account_page, request_class="unlimited")
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


class _UnitForm(TypedDict):
    loadUnit: LoadUnit


@pages.get("/load-unit", access=even_while_converting(owner_session()), template="settings/load_unit.html")
async def load_unit_page(ctx: Context) -> dict[str, Any]:
    """The unit of loads, the other one that loads can be converted to, and the latest conversion or count."""
    unit = (await account.get(ctx))["loadUnit"]
    other = next(each for each in _UNIT_NAMES if each != unit)
    jobs = await background_jobs.list_latest(ctx, "load_unit", 1)
    job = jobs[0] if jobs else None
    work = cast("ConversionWork", job["work"]) if job else None
    status = job["status"] if job else None
    was_counted = work is not None and status == "done" and work["isDryRun"] and work["loadUnit"] == other
    return {
        "names": _UNIT_NAMES,
        "unit": unit,
        "other": other,
        "job": job,
        "work": work,
        "is_running": status in ("queued", "running"),
        "was_counted": was_counted,
    }


@pages.post("/load-unit/count", access=owner_session(), on=load_unit_page)
async def count_loads(ctx: Context, form: _UnitForm) -> Redirect:
    """Count what would be converted."""
    await load_unit.begin(ctx, form["loadUnit"], dry_run=True)
    return Redirect(_LOAD_UNIT, "Counting has begun.")


@pages.post("/load-unit", access=owner_session(), on=load_unit_page)
async def convert_loads(ctx: Context, form: _UnitForm) -> Redirect:
    """Convert all loads."""
    await load_unit.begin(ctx, form["loadUnit"], dry_run=False)
    return Redirect(_LOAD_UNIT, "The conversion has begun.")
