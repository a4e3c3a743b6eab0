"""The pages of a workout on a client's calendar."""

from __future__ import annotations

from datetime import date

from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.blocks.owners import ClientCalendar
from coaching_service.training.workouts.blocks.schemas import WorkoutBlockCopy
from coaching_service.web.pages import Pages
from coaching_service.web.views.customer_calendar import days_of_week
from coaching_service.web.views.customer_layout import load_header, week_path
from coaching_service.web.views.workout import WorkoutOwnerPages, comments, declare_workout_pages, log_pages

pages = Pages("/app/customers/{customerId}")


async def _layout_variables(ctx: Context, customer_id: ObjectId) -> dict[str, Document]:
    return {"customer": await load_header(ctx, customer_id)}


def _week_of_block(block: Block) -> tuple[str, str]:
    days = days_of_week(date.fromisoformat(str(block["date"])))
    return str(days[0]), str(days[-1])


_CALENDAR = WorkoutOwnerPages(
    pages=pages,
    owner_type=ClientCalendar,
    owner_parameter="customer_id",
    view=CUSTOMERS.VIEW,
    edit=CUSTOMERS.EDIT,
    layout="customer/layout.html",
    layout_variables=_layout_variables,
    place_form=WorkoutBlockCopy,
    move_range=_week_of_block,
    overview_path=lambda customer_id, block: week_path(customer_id, str(block["date"])),
    load_comments=comments.load_comments,
)
comments.declare(_CALENDAR, declare_workout_pages(_CALENDAR))
log_pages.declare(_CALENDAR)
