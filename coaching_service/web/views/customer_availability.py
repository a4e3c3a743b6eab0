"""When a client cannot train as planned: entering and changing it."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.people.availability import service as availability
from coaching_service.people.availability.models import AvailabilityChange
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
from coaching_service.web.views.customer_layout import customer_path, load_header, week_path

pages = Pages("/app/customers/{customerId}/availability")
_EDIT = coach(CUSTOMERS.EDIT)
_PERIOD = "/{availabilityId}"


@pages.get("", access=coach(CUSTOMERS.VIEW), template="customer/availability.html")
async def availability_page(ctx: Context, customer_id: ObjectId) -> dict[str, Any]:
    """The periods in which a client cannot train as planned, the latest first."""
    customer = await load_header(ctx, customer_id)
    today = ctx.caller.today(customer["timezone"])
    periods = await availability.list_availability(ctx, customer_id)
    return {
        "customer": customer,
        "today": today,
        "kinds": KINDS,
        "periods": [{**period, **describe_period(period, today)} for period in reversed(periods)],
    }


@pages.post("", access=_EDIT, query=WeekQuery, form=AbsenceForm(), on=week_page)
async def add_absence(ctx: Context, customer_id: ObjectId, query: WeekQuery, form: dict[str, Any]) -> Redirect:
    """Enter that a client is away, ill, injured or trains with limits."""
    period = await availability.create(ctx, customer_id, to_period(form))
    customer = await load_header(ctx, customer_id)
    notice = describe_saved(period, ctx.caller.today(customer["timezone"]))
    return Redirect(week_path(customer_id, query["week"] or period["from"]), notice)


@pages.post(_PERIOD, access=_EDIT, form=PERIOD_CHANGE, on=availability_page)
async def change_absence(
    ctx: Context, customer_id: ObjectId, availability_id: ObjectId, form: AvailabilityChange
) -> Redirect:
    """Change a period in which a client cannot train as planned."""
    await availability.update(ctx, customer_id, availability_id, form)
    return Redirect(customer_path(customer_id, "/availability"), "Changes saved.")


@pages.post(f"{_PERIOD}/delete", access=_EDIT, on=availability_page)
async def delete_absence(ctx: Context, customer_id: ObjectId, availability_id: ObjectId) -> Redirect:
    """Delete a period in which a client cannot train as planned."""
    await availability.delete(ctx, customer_id, availability_id)
    return Redirect(customer_path(customer_id, "/availability"), "Deleted.")
