"""A workout on a client's calendar."""

from __future__ import annotations

from datetime import date

from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.owners import ClientCalendar
from coaching_service.training.workouts.schemas import WorkoutBlockCopy
from coaching_service.web.pages import Pages
from coaching_service.web.views.customer import days_of_week, head, week_of
from coaching_service.web.views.workout import Kind, declare, log

pages = Pages("/app/customers/{customerId}")


async def _top(ctx: Context, customer_id: ObjectId) -> Document:
    return {"customer": await head(ctx, customer_id)}


def _near(block: Document) -> tuple[str, str]:
    """The week a workout is in."""
    days = days_of_week(date.fromisoformat(block["date"]))
    return str(days[0]), str(days[-1])


_CALENDAR = Kind(
    pages=pages,
    owner=ClientCalendar,
    view=CUSTOMERS.VIEW,
    edit=CUSTOMERS.EDIT,
    frame="customer/frame.html",
    top=_top,
    place=WorkoutBlockCopy,
    near=_near,
    seen=lambda customer_id, block: week_of(customer_id, block["date"]),
)
declare(_CALENDAR)
log.declare(_CALENDAR)
