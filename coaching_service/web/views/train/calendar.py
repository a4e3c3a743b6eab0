"""A client's own calendar by week or by month, the workouts done, and the nutrition plan."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, timedelta
from functools import partial
from typing import Annotated, Any

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.validation import SearchedDate
from coaching_service.people.availability import service as availability
from coaching_service.progress import own_calendar
from coaching_service.progress.nutrition_plans import service as nutrition_plans
from coaching_service.training import own_schedule
from coaching_service.web.page_queries import MonthQuery, PageQuery, list_url
from coaching_service.web.pages import Pages
from coaching_service.web.views.availability_forms import list_bands
from coaching_service.web.views.train.layout import label_day, label_month
from coaching_service.web.views.train.workout.session_words import FEELINGS

pages = Pages("/train")
_YEARS = (1900, 2200)
_WEEK = timedelta(days=7)
_PLANS_PER_PAGE = 20


class _CalendarQuery(MonthQuery):
    """`week` is any date of the week to show; the current week if there is neither."""

    week: Annotated[str | None, SearchedDate()]


@pages.get("/calendar", access=customer(), template="train/calendar.html")
async def calendar_page(ctx: Context, query: _CalendarQuery) -> dict[str, Any]:
    """The days of a week or month with their workouts."""
    today = ctx.caller.today()
    rights = await own_schedule.get_rights(ctx)
    shared = {
        "may_add": rights["clientsMayAdd"],
        "today": today,
        "label_day": partial(label_day, today=today),
        "this_month": f"{today:%Y-%m}",
    }
    if query["month"]:
        return {**shared, **await _load_month(ctx, query["month"], today)}
    asked = date.fromisoformat(query["week"]) if query["week"] else today
    day = asked if _YEARS[0] < asked.year < _YEARS[1] else today
    return {**shared, **await _load_week(ctx, day, today)}


async def _list_bands(ctx: Context, first: date, last: date) -> dict[str, str]:
    periods = (await availability.get_periods(ctx, [ctx.caller.id], str(first), str(last)))[ctx.caller.id]
    return list_bands(periods, map(date.fromordinal, range(first.toordinal(), last.toordinal() + 1)))


async def _load_week(ctx: Context, day: date, today: date) -> dict[str, Any]:
    monday = day - timedelta(days=day.weekday())
    sunday = monday + timedelta(days=6)
    start = f"{monday.day}" if monday.month == sunday.month else f"{monday.day} {monday:%b}"
    return {
        "view": "week",
        "title": f"{start} – {sunday.day} {sunday:%b %Y}",
        "days": await own_calendar.list_own_days(ctx, monday, sunday, today=today),
        "bands": await _list_bands(ctx, monday, sunday),
        "month": f"{day:%Y-%m}",
        "previous": f"week={monday - _WEEK}",
        "next": f"week={monday + _WEEK}",
        "is_present": monday <= today <= sunday,
    }


async def _load_month(ctx: Context, month: str, today: date) -> dict[str, Any]:
    first = date.fromisoformat(f"{month}-01")
    last = first.replace(day=monthrange(first.year, first.month)[1])
    return {
        "view": "month",
        "title": label_month(month),
        "month": month,
        "days": await own_calendar.list_own_days(ctx, first, last, today=today),
        "bands": await _list_bands(ctx, first, last),
        "blank_days": first.weekday(),
        "week": today if first <= today <= last else first,
        "previous": f"month={first - timedelta(days=1):%Y-%m}",
        "next": f"month={last + timedelta(days=1):%Y-%m}",
        "is_present": first <= today <= last,
    }


@pages.get("/history", access=customer(), template="train/history.html")
async def history_page(ctx: Context, query: MonthQuery) -> dict[str, Any]:
    """The workouts done in a month, the latest one that has any if none is named."""
    return {
        "done": await own_calendar.get_done_month(ctx, query["month"]),
        "label_day": partial(label_day, today=ctx.caller.today()),
        "label_month": label_month,
        "feelings": dict(FEELINGS),
    }


@pages.get("/plan", access=customer(), template="train/plan.html")
async def plan_page(ctx: Context, query: PageQuery) -> dict[str, Any]:
    """The versions of the nutrition plan, the latest first."""
    page = await nutrition_plans.list_plans(ctx, ctx.caller.id, page=query["page"], size=_PLANS_PER_PAGE)
    return {"page": page, "address": list_url("/train/plan", query)}
