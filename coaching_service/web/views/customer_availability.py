"""When a client cannot train as planned: entering it, changing it, and the return, with a preview."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Annotated, Any, TypedDict

from coaching_service.core.auth.access import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import AbsenceDate
from coaching_service.people.availability import service as availability
from coaching_service.people.availability.models import AvailabilityChange
from coaching_service.training import resuming
from coaching_service.training.resuming import ResumeMode
from coaching_service.training.schedule.service import days_between
from coaching_service.web.formatting import format_date, quantity
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.availability_forms import (
    KINDS,
    PERIOD_CHANGE,
    AbsenceForm,
    describe_period,
    describe_saved,
    to_period,
)
from coaching_service.web.views.customer_calendar import WeekQuery, week_page
from coaching_service.web.views.customer_layout import customer_path, get_today, load_header, week_path
from coaching_service.web.views.schedule_forms import Outcome, declare_operation

pages = Pages("/app/customers/{customerId}/availability")
_EDIT = coach(CUSTOMERS.EDIT)
_PERIOD = "/{availabilityId}"


# `from` is a keyword of Python, so this type has the functional form.
_ResumeForm = TypedDict(
    "_ResumeForm", {"from": Annotated[str, AbsenceDate()], "mode": Annotated[ResumeMode, Default("shift")]}
)


@pages.get("", access=coach(CUSTOMERS.VIEW), template="customer/availability.html")
async def availability_page(ctx: Context, customer_id: ObjectId) -> dict[str, Any]:
    """The periods in which a client cannot train as planned, the latest first, and the return from the last one."""
    customer = await load_header(ctx, customer_id)
    today = ctx.caller.today(customer["timezone"])
    periods = await availability.list_availability(ctx, customer_id)
    return {
        "customer": customer,
        "today": today,
        "kinds": KINDS,
        "periods": [{**period, **describe_period(period, today)} for period in reversed(periods)],
        "first_day_back": await _first_day_back(ctx, customer_id, today),
        "unit": ctx.caller.company.load_unit,
        "preview": None,
    }


async def _first_day_back(ctx: Context, customer_id: ObjectId, today: date) -> date | None:
    """Return the day to propose for the return from the latest absence that has begun; None without one."""
    absence = await availability.find_absence_before(ctx, customer_id, str(today + timedelta(days=1)))
    return None if absence is None else max(today, date.fromisoformat(absence["from"]) + timedelta(days=1))


@pages.post("", access=_EDIT, on=week_page)
async def add_absence(ctx: Context, customer_id: ObjectId, query: WeekQuery, form: AbsenceForm) -> Redirect:
    """Enter that a client is away, ill, injured or trains with limits."""
    period = await availability.create(ctx, customer_id, to_period(form))
    notice = describe_saved(period, await get_today(ctx, customer_id))
    return Redirect(week_path(customer_id, query["week"] or period["from"]), notice)


@pages.post(_PERIOD, access=_EDIT, form=PERIOD_CHANGE, on=availability_page)
async def change_absence(
    ctx: Context, customer_id: ObjectId, availability_id: ObjectId, form: AvailabilityChange
) -> Redirect:
    """Change a period in which a client cannot train as planned."""
    await availability.update(ctx, customer_id, availability_id, form)
    return Redirect(customer_path(customer_id, "/availability"), "Changes saved.")


@pages.post(f"{_PERIOD}/delete", access=_EDIT, on=availability_page, deletes=True)
async def delete_absence(ctx: Context, customer_id: ObjectId, availability_id: ObjectId) -> Redirect:
    """Delete a period in which a client cannot train as planned."""
    await availability.delete(ctx, customer_id, availability_id)
    return Redirect(customer_path(customer_id, "/availability"), "Deleted.")


@declare_operation(pages, "/resume", access=_EDIT, form=_ResumeForm, on=availability_page)
async def resume_training(ctx: Context, customer_id: ObjectId, form: _ResumeForm, *, dry_run: bool) -> Outcome:
    """End the latest absence, and move or remove what was planned in it."""
    result = await resuming.resume(ctx, customer_id, form["from"], form["mode"], dry_run=dry_run)
    if form["mode"] == "shift":
        days = quantity(days_between(result["availability"]["from"], form["from"]), "day")
        done = f"{quantity(len(result['changed']), 'workout')} moved by {days}"
    else:
        done = f"{quantity(len(result['removed']), 'workout')} removed"
    stay = f", {result['kept']} kept because of what is done" if result["kept"] else ""
    summary = f"Trains again from {format_date(form['from'])}: {done}{stay}"
    return Outcome(result, summary, week_path(customer_id, form["from"]))
