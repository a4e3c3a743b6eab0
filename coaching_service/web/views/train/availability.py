"""When a client cannot train as planned: what the client enters, and what the coaches have entered."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.errors import require_by_id
from coaching_service.core.ids import ObjectId
from coaching_service.people.availability import service as availability
from coaching_service.people.availability.models import AvailabilityChange
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.availability_forms import (
    KINDS,
    LENGTHS,
    PERIOD_CHANGE,
    USUAL_LENGTH,
    AbsenceForm,
    describe_period,
    describe_saved,
    to_period,
)

pages = Pages("/train/availability")
_PATH, _PERIOD = "/train/availability", "/{availabilityId}"


@pages.get("", access=customer(), template="train/availability.html")
async def own_availability_page(ctx: Context) -> dict[str, Any]:
    """The periods in which the client cannot train as planned, the latest first, and a form for a new one."""
    today = ctx.caller.today()
    periods = await availability.list_availability(ctx, ctx.caller.id)
    return {
        "today": today,
        "kinds": KINDS,
        "lengths": LENGTHS,
        "usual_length": USUAL_LENGTH,
        "periods": [{**period, **describe_period(period, today)} for period in reversed(periods)],
    }


@pages.post("", access=customer(), form=AbsenceForm, on=own_availability_page)
async def add_own_absence(ctx: Context, form: AbsenceForm) -> Redirect:
    """Say that the client is away, ill, injured or trains with limits."""
    period = await availability.create(ctx, ctx.caller.id, to_period(form))
    return Redirect("/train", f"{describe_saved(period, ctx.caller.today())} Your coach sees it.")


@pages.get(_PERIOD, access=customer(), template="train/change_availability.html")
async def change_own_availability_page(ctx: Context, availability_id: ObjectId) -> dict[str, Any]:
    """One period in which the client cannot train as planned."""
    periods = await availability.list_availability(ctx, ctx.caller.id)
    period = require_by_id(periods, availability_id, "availability")
    return {
        "period": {**period, **describe_period(period, ctx.caller.today())},
        "version": period["version"],
        "kinds": KINDS,
    }


@pages.post(_PERIOD, access=customer(), form=PERIOD_CHANGE, on=change_own_availability_page)
async def change_own_absence(ctx: Context, availability_id: ObjectId, form: AvailabilityChange) -> Redirect:
    """Change a period that the client has entered."""
    await availability.update(ctx, ctx.caller.id, availability_id, form)
    return Redirect(_PATH, "Saved.")


@pages.post(f"{_PERIOD}/delete", access=customer(), on=change_own_availability_page)
async def delete_own_absence(ctx: Context, availability_id: ObjectId) -> Redirect:
    """Delete a period that the client has entered."""
    await availability.delete(ctx, ctx.caller.id, availability_id)
    return Redirect(_PATH, "Deleted.")
