"""The workouts that a client has done, by month."""

from __future__ import annotations

from functools import partial
from typing import Any

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.progress.own_calendar import service as own_calendar
from coaching_service.web.pages import Pages
from coaching_service.web.search_fields import MonthQuery
from coaching_service.web.views.train.dates import label_day, label_month
from coaching_service.web.views.train.workout.feelings import FEELINGS

pages = Pages("/train")


@pages.get("/history", access=customer(), query=MonthQuery, template="train/history.html")
async def history_page(ctx: Context, query: MonthQuery) -> dict[str, Any]:
    """The workouts done in a month, the latest one that has any if none is named."""
    return {
        "done": await own_calendar.get_done_month(ctx, query["month"]),
        "label_day": partial(label_day, today=ctx.caller.today()),
        "label_month": label_month,
        "feelings": dict(FEELINGS),
    }
