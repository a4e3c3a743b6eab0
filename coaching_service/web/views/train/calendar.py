"""A client's own calendar: today, by week or by month, the workouts done, and what clients change of it."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from functools import partial
from typing import Annotated, Any, Literal, TypedDict

from coaching_service.core.auth import customer
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.errors import require_by_id
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import SearchedDate
from coaching_service.people.availability import service as availability
from coaching_service.people.availability.models import AvailabilityChange
from coaching_service.progress import nutrition_plans, own_today
from coaching_service.progress.own_today import Today
from coaching_service.training import own_schedule
from coaching_service.training.own_schedule import WorkoutDate
from coaching_service.training.workouts.blocks.models import SESSION_FIELDS, Block
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.web import pages as web_pages
from coaching_service.web.formatting import quantity
from coaching_service.web.views import customer_layout
from coaching_service.web.views.results import FEELINGS
from coaching_service.web.views.train.workout import WORKOUT, workout_page

# --- What a client sees first: the workouts of today, what is due, and the week ---------------------------------------


pages = web_pages.Pages("/train")

_NAMES = 4  # how many exercises of a session are named
_NOUNS = {"TASK": "task", "FORM": "form", "METRICS": "measurement", "REMINDER": "reminder"}


class Session(TypedDict):
    """A workout of today in words; `handled` of `total` items are completed or skipped.

    `days` are those to which the client may move it.
    """

    name: str
    path: str
    state: Literal["planned", "part", "done"]
    facts: str
    exercises: list[str]
    more: int
    handled: int
    total: int
    days: Sequence[str]
    block: Block


class Due(TypedDict):
    """Something to do, with the page to do it on; `icon` is its picture."""

    icon: str
    title: str
    note: str
    path: str
    isOverdue: bool


@pages.get("", access=customer(), template="train/today.html")
async def today_page(ctx: Context) -> dict[str, Any]:
    """The client's day."""
    overview = await own_today.get_overview(ctx)
    today = overview["today"]
    sessions = [block for block in today["blocks"] if customer_layout.is_session(block)]
    rights, days_to_move = await gather_reads(
        ctx, own_schedule.get_rights(ctx), own_schedule.list_days_to_move(ctx, sessions)
    )
    day = date.fromisoformat(today["date"])
    return {
        "today": today,
        "week": overview["week"],
        "keep": [
            *(["/train/add-workout"] if rights["clientsMayAdd"] else []),
            *_list_kept_paths([*today["blocks"], *overview["tomorrow"]]),
        ],
        "sessions": [_describe_session(block, days_to_move.get(block["_id"], ())) for block in sessions],
        "is_rest_day": any(block["isRest"] for block in today["blocks"]),
        "may_add": rights["clientsMayAdd"],
        "absence": customer_layout.describe_period(today["availability"], day) if today["availability"] else None,
        "kinds": customer_layout.KINDS,
        "lengths": customer_layout.LENGTHS,
        "usual_length": customer_layout.USUAL_LENGTH,
        "due": list(_list_due(today, day)),
        "label_day": partial(customer_layout.label_day, today=day),
    }


def _list_kept_paths(blocks: list[Block]) -> Iterator[str]:
    """Yield the paths of the pages that open without a connection: the calendar, workouts and forms of two days."""
    yield "/train/calendar"
    for block in blocks:
        if customer_layout.is_session(block):
            yield customer_layout.workout_path(block["_id"])
        for item in block["items"]:
            if item["type"] == "FORM":
                yield customer_layout.form_path(block["_id"], item["_id"])


def _describe_session(block: Block, days_to_move: Sequence[str]) -> Session:
    names = [name for item in block["items"] for name in _exercise_names(item)]
    handled = sum(item["isCompleted"] or item.get("skipped") is not None for item in block["items"])
    return {
        "name": block["name"],
        "path": customer_layout.workout_path(block["_id"]),
        "state": _state_of(block, handled),
        "facts": _count_parts(block["items"], len(names)),
        "exercises": names[:_NAMES],
        "more": len(names[_NAMES:]),
        "handled": handled,
        "total": len(block["items"]),
        "days": days_to_move,
        "block": block,
    }


def _state_of(block: Block, handled: int) -> Literal["planned", "part", "done"]:
    """Return whether a workout is still to do, has been started, or is over: completed, or ended by the client."""
    is_ended = any(block.get(name) is not None for name in SESSION_FIELDS if name != "comment")
    if block["isCompleted"] or is_ended or (block["items"] and handled == len(block["items"])):
        return "done"
    is_started = handled or any(item.get("customerSets") for item in block["items"])
    return "part" if is_started else "planned"


def _exercise_names(item: WorkItem) -> list[str]:
    if item["type"] == "EXERCISE":
        return [item["exercise"]["name"]]
    if item["type"] == "CIRCUIT":
        return [entry["exercise"]["name"] for entry in item["circuitExercises"]]
    return []


def _count_parts(items: list[WorkItem], exercises: int) -> str:
    """Return what a workout consists of, such as `5 exercises · 16 sets · 1 task`."""
    sets = sum(_count_sets(item) for item in items)
    parts = [quantity(count, noun) for count, noun in ((exercises, "exercise"), (sets, "set")) if count]
    for item_type, noun in _NOUNS.items():
        if count := sum(item["type"] == item_type for item in items):
            parts.append(quantity(count, noun))
    return " · ".join(parts)


def _count_sets(item: WorkItem) -> int:
    if item["type"] == "EXERCISE":
        return len(item["exerciseSets"])
    if item["type"] == "CIRCUIT":
        return sum(entry["plannedSetsTotal"] for entry in item["circuitExercises"])
    return 0


def _list_due(today: Today, day: date) -> Iterator[Due]:
    """Yield what is due, what is overdue first: forms, measurements and habits of today, and unread messages."""
    for form in today["pendingForms"]:
        since = customer_layout.label_day(form["date"], day, within=True)
        note = f"Since {since}" if form["isOverdue"] else "Today"
        path = customer_layout.form_path(form["wblockId"], form["witemId"])
        yield _due("clipboard-list", form["formName"], note, path, is_overdue=form["isOverdue"])
    for block in today["blocks"]:
        for item in block["items"]:
            if not item["isCompleted"] and item.get("skipped") is None:
                yield from _due_item(block["_id"], item, is_habit=block.get("checkInId") is not None)
    if count := today["unreadMessages"]:
        yield _due("message-circle", quantity(count, "new message"), "From your coach", "/train/messages")


def _due_item(block_id: ObjectId, item: WorkItem, *, is_habit: bool) -> Iterator[Due]:
    path = customer_layout.item_path(block_id, item["_id"])
    if item["type"] == "METRICS":
        names = ", ".join(metric["name"] for metric in item["metricsFields"]["metrics"])
        yield _due("ruler", item["metricsFields"]["name"], names, path)
    elif item["type"] == "TASK" and is_habit:
        yield _due("circle-check", item["taskFields"]["title"], "Today", path)


def _due(icon: str, title: str, note: str, path: str, *, is_overdue: bool = False) -> Due:
    return {"icon": icon, "title": title, "note": note, "path": path, "isOverdue": is_overdue}


# --- A client's own calendar by week or by month, the workouts done, and the nutrition plan ---------------------------

_YEARS = (1900, 2200)
_WEEK = timedelta(days=7)
_PLANS_PER_PAGE = 20


class _CalendarQuery(web_pages.MonthQuery):
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
        "label_day": partial(customer_layout.label_day, today=today),
        "this_month": f"{today:%Y-%m}",
    }
    if query["month"]:
        return {**shared, **await _load_month(ctx, query["month"], today)}
    asked = date.fromisoformat(query["week"]) if query["week"] else today
    day = asked if _YEARS[0] < asked.year < _YEARS[1] else today
    return {**shared, **await _load_week(ctx, day, today)}


async def _list_bands(ctx: Context, first: date, last: date) -> dict[str, str]:
    periods = (await availability.get_periods(ctx, [ctx.caller.id], str(first), str(last)))[ctx.caller.id]
    return customer_layout.list_bands(periods, map(date.fromordinal, range(first.toordinal(), last.toordinal() + 1)))


async def _load_week(ctx: Context, day: date, today: date) -> dict[str, Any]:
    monday = day - timedelta(days=day.weekday())
    sunday = monday + timedelta(days=6)
    start = f"{monday.day}" if monday.month == sunday.month else f"{monday.day} {monday:%b}"
    return {
        "view": "week",
        "title": f"{start} – {sunday.day} {sunday:%b %Y}",
        "days": await own_today.list_own_days(ctx, monday, sunday, today=today),
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
        "title": customer_layout.label_month(month),
        "month": month,
        "days": await own_today.list_own_days(ctx, first, last, today=today),
        "bands": await _list_bands(ctx, first, last),
        "blank_days": first.weekday(),
        "week": today if first <= today <= last else first,
        "previous": f"month={first - timedelta(days=1):%Y-%m}",
        "next": f"month={last + timedelta(days=1):%Y-%m}",
        "is_present": first <= today <= last,
    }


@pages.get("/history", access=customer(), template="train/history.html")
async def history_page(ctx: Context, query: web_pages.MonthQuery) -> dict[str, Any]:
    """The workouts done in a month, the latest one that has any if none is named."""
    return {
        "done": await own_today.get_done_month(ctx, query["month"]),
        "label_day": partial(customer_layout.label_day, today=ctx.caller.today()),
        "label_month": customer_layout.label_month,
        "feelings": dict(FEELINGS),
    }


@pages.get("/plan", access=customer(), template="train/plan.html")
async def plan_page(ctx: Context, query: web_pages.PageQuery) -> dict[str, Any]:
    """The versions of the nutrition plan, the latest first."""
    page = await nutrition_plans.list_plans(ctx, ctx.caller.id, page=query["page"], size=_PLANS_PER_PAGE)
    return {"page": page, "address": web_pages.list_url("/train/plan", query)}


# --- What clients change of their calendar: moving a workout, and when they cannot train ------------------------------

_absences = pages.below("/availability")
_PERIOD = "/{availabilityId}"


@pages.post(f"{WORKOUT}/move", access=customer(), on=workout_page, idempotent=True)
async def move_own_workout(ctx: Context, wblock_id: ObjectId, form: WorkoutDate) -> web_pages.Redirect:
    """Move a workout to another day."""
    block = await own_schedule.move(ctx, wblock_id, form["date"])
    day = customer_layout.label_day(str(block["date"]), ctx.caller.today(), within=True)
    return web_pages.Redirect(customer_layout.calendar_path(str(block["date"])), f"{block['name']} moved to {day}.")


@_absences.get("", access=customer(), template="train/availability.html")
async def own_availability_page(ctx: Context) -> dict[str, Any]:
    """The periods in which the client cannot train as planned, the latest first, and a form for a new one."""
    today = ctx.caller.today()
    periods = await availability.list_availability(ctx, ctx.caller.id)
    return {
        "today": today,
        "kinds": customer_layout.KINDS,
        "lengths": customer_layout.LENGTHS,
        "usual_length": customer_layout.USUAL_LENGTH,
        "periods": [{**period, **customer_layout.describe_period(period, today)} for period in reversed(periods)],
    }


@_absences.post("", access=customer(), on=own_availability_page)
async def add_own_absence(ctx: Context, form: customer_layout.AbsenceForm) -> web_pages.Redirect:
    """Say that the client is away, ill, injured or trains with limits."""
    period = await availability.create(ctx, ctx.caller.id, customer_layout.to_period(form))
    return web_pages.Redirect(
        "/train", f"{customer_layout.describe_saved(period, ctx.caller.today())} Your coach sees it."
    )


@_absences.get(_PERIOD, access=customer(), template="train/change_availability.html")
async def change_own_availability_page(ctx: Context, availability_id: ObjectId) -> dict[str, Any]:
    """One period in which the client cannot train as planned."""
    periods = await availability.list_availability(ctx, ctx.caller.id)
    period = require_by_id(periods, availability_id, "availability")
    return {
        "period": {**period, **customer_layout.describe_period(period, ctx.caller.today())},
        "version": period["version"],
        "kinds": customer_layout.KINDS,
    }


@_absences.post(_PERIOD, access=customer(), form=customer_layout.PERIOD_CHANGE, on=change_own_availability_page)
async def change_own_absence(ctx: Context, availability_id: ObjectId, form: AvailabilityChange) -> web_pages.Redirect:
    """Change a period that the client has entered."""
    await availability.update(ctx, ctx.caller.id, availability_id, form)
    return web_pages.Redirect(_absences.prefix, "Saved.")


@_absences.post(f"{_PERIOD}/delete", access=customer(), on=change_own_availability_page, deletes=True)
async def delete_own_absence(ctx: Context, availability_id: ObjectId) -> web_pages.Redirect:
    """Delete a period that the client has entered."""
    await availability.delete(ctx, ctx.caller.id, availability_id)
    return web_pages.Redirect(_absences.prefix, "Deleted.")
