"""Settings: converting all loads of the company to another unit, with the progress."""

from __future__ import annotations

from typing import Any, TypedDict, cast

from coaching_service.core.auth.access import even_while_converting, owner_session
from coaching_service.core.database.context import Context
from coaching_service.integrations.background_jobs import service as background_jobs
from coaching_service.integrations.background_jobs.models import ConversionWork
from coaching_service.integrations.load_unit import service as load_unit
from coaching_service.people.account import service as account
from coaching_service.people.account.models import LoadUnit
from coaching_service.web.pages import Pages, Redirect

pages = Pages("/app/settings/load-unit")
_PATH = "/app/settings/load-unit"
_NAMES = {"kg": "kilograms", "lb": "pounds"}


class _UnitForm(TypedDict):
    loadUnit: LoadUnit


@pages.get("", access=even_while_converting(owner_session()), template="settings/load_unit.html")
async def load_unit_page(ctx: Context) -> dict[str, Any]:
    """The unit of loads, the other one that loads can be converted to, and the latest conversion or count."""
    unit = (await account.get(ctx))["loadUnit"]
    other = next(each for each in _NAMES if each != unit)
    jobs = await background_jobs.list_latest(ctx, "load_unit", 1)
    job = jobs[0] if jobs else None
    work = cast("ConversionWork", job["work"]) if job else None
    status = job["status"] if job else None
    was_counted = work is not None and status == "done" and work["isDryRun"] and work["loadUnit"] == other
    return {
        "names": _NAMES,
        "unit": unit,
        "other": other,
        "job": job,
        "work": work,
        "is_running": status in ("queued", "running"),
        "was_counted": was_counted,
    }


@pages.post("/count", access=owner_session(), form=_UnitForm, on=load_unit_page)
async def count_loads(ctx: Context, form: _UnitForm) -> Redirect:
    """Count what would be converted."""
    await load_unit.begin(ctx, form["loadUnit"], dry_run=True)
    return Redirect(_PATH, "Counting has begun.")


@pages.post("", access=owner_session(), form=_UnitForm, on=load_unit_page)
async def convert_loads(ctx: Context, form: _UnitForm) -> Redirect:
    """Convert all loads."""
    await load_unit.begin(ctx, form["loadUnit"], dry_run=False)
    return Redirect(_PATH, "The conversion has begun.")
