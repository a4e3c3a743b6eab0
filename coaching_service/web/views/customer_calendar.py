"""A client's calendar by week or by month, moving items between its workouts, and the pages of each workout."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Annotated, Any, TypedDict

from coaching_service.core.auth.access import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.field_schemas import input_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import CalendarDate, SearchedDate
from coaching_service.people.availability import service as availability
from coaching_service.people.availability.models import Availability
from coaching_service.training.assignments import service as assignments
from coaching_service.training.assignments.service import describe_progress
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import Block, WorkoutBlockFields
from coaching_service.training.workouts.blocks.owners import ClientCalendar
from coaching_service.training.workouts.blocks.schemas import WorkoutBlockCopy
from coaching_service.training.workouts.items import service as item_service
from coaching_service.training.workouts.items.descriptions import describe_item
from coaching_service.training.workouts.reports import blocks as calendar_days
from coaching_service.web.formatting import format_date, name_options
from coaching_service.web.page_queries import MonthQuery
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.availability_forms import KINDS, LENGTHS, USUAL_LENGTH, describe_period, list_bands
from coaching_service.web.views.customer_layout import CustomerHeader, customer_path, load_header, week_path
from coaching_service.web.views.workout import WorkoutOwnerPages, declare_workout_pages, log_pages
from coaching_service.web.views.workout.cards import (
    NewWorkoutForm,
    NewWorkoutText,
    create_with_text,
    list_template_names,
)
from coaching_service.web.views.workout.item_actions import MoveForm, Place

pages = Pages("/app/customers/{customerId}")


class WeekQuery(TypedDict):
    """`week` is any date of the week to show; the current week if absent."""

    week: Annotated[str | None, SearchedDate()]


class _MoveForm(MoveForm):
    witemId: ObjectId
    source: ObjectId


class _MoveWorkoutForm(Place):
    date: Annotated[str, CalendarDate()]


class _NewWorkout(WorkoutBlockFields, NewWorkoutText):
    """A new workout or rest day on a client's calendar."""


@pages.get("", access=coach(CUSTOMERS.VIEW), template="customer/week.html")
async def week_page(ctx: Context, customer_id: ObjectId, query: WeekQuery) -> dict[str, Any]:
    """A week of the client's calendar."""
    customer = await load_header(ctx, customer_id)
    today = ctx.caller.today(customer["timezone"])
    days = days_of_week(date.fromisoformat(query["week"]) if query["week"] else today)
    blocks, outline, template_names, periods_of, listed = await gather_reads(
        ctx,
        workouts.list_blocks(ctx, ClientCalendar(customer_id), str(days[0]), str(days[-1])),
        calendar_days.list_days(ctx, customer_id, days[0], days[-1], today=today),
        list_template_names(ctx),
        availability.get_periods(ctx, [customer_id], str(days[0]), str(days[-1])),
        assignments.list_programs(ctx, customer_id),
    )
    periods: list[Availability] = periods_of[customer_id]
    statuses = {block["_id"]: block["status"] for day in outline for block in day["blocks"]}
    unit = ctx.caller.company.load_unit
    described = [
        {
            **block,
            "descriptions": [describe_item(item, unit) for item in block["items"]],
            "status": statuses.get(block["_id"], "planned"),
        }
        for block in blocks
    ]
    return {
        "customer": customer,
        "template_names": template_names,
        "programs": [describe_progress(each, today) for each in reversed(listed) if each["status"] != "ended"],
        "days": [(day, [block for block in described if block["date"] == str(day)]) for day in days],
        "move_targets": [
            (str(block["_id"]), f"{date.fromisoformat(str(block['date'])):%a}: {block['name']}")
            for block in blocks
            if not block["isRest"] and block.get("checkInId") is None
        ],
        "today": today,
        "bands": list_bands(periods, days),
        "periods": [describe_period(period, today) for period in periods],
        "kinds": KINDS,
        "lengths": LENGTHS,
        "usual_length": USUAL_LENGTH,
        "exercises_of_week": _list_exercises(blocks),
        "unit": unit,
        "preview": None,
        "monday": days[0],
        "sunday": days[-1],
        "outline": outline,
        "month": f"{days[0]:%Y-%m}",
        "previous_week": _add_days(days[0], -7),
        "next_week": _add_days(days[0], 7),
    }


@pages.get("/month", access=coach(CUSTOMERS.VIEW), template="customer/month.html")
async def month_page(ctx: Context, customer_id: ObjectId, query: MonthQuery) -> dict[str, Any]:
    """A month of the client's calendar, in weeks from Monday to Sunday."""
    customer = await load_header(ctx, customer_id)
    today = ctx.caller.today(customer["timezone"])
    first = date.fromisoformat(f"{query['month'] or f'{today:%Y-%m}'}-01")
    last = first.replace(day=monthrange(first.year, first.month)[1])
    start = first - timedelta(days=first.weekday())
    end = last + timedelta(days=6 - last.weekday())
    days, periods_of = await gather_reads(
        ctx,
        calendar_days.list_days(ctx, customer_id, start, end, today=today),
        availability.get_periods(ctx, [customer_id], str(start), str(end)),
    )
    return {
        "customer": customer,
        "bands": list_bands(periods_of[customer_id], [day["date"] for day in days]),
        "weeks": [days[at : at + 7] for at in range(0, len(days), 7)],
        "title": f"{first:%B} {first.year}",
        "month": f"{first:%Y-%m}",
        "week": today if first <= today <= last else first,
        "previous_month": f"{first - timedelta(days=1):%Y-%m}",
        "next_month": f"{last + timedelta(days=1):%Y-%m}",
        "today": str(today),
    }


def _list_exercises(blocks: Sequence[Block]) -> list[tuple[str, str]]:
    """Return the planned exercises of blocks by name, each once, as options of a select."""
    names: dict[ObjectId, str] = {}
    for item in (item for block in blocks for item in block["items"]):
        if item["type"] == "EXERCISE":
            names[item["exerciseId"]] = item["exercise"]["name"]
        elif item["type"] == "CIRCUIT":
            names |= {entry["exerciseId"]: entry["exercise"]["name"] for entry in item["circuitExercises"]}
    return name_options(names)


def days_of_week(day: date) -> list[date]:
    """Return the days, from Monday on, of the week that contains a day."""
    monday = day - timedelta(days=day.weekday())
    return [each for offset in range(7) if (each := _add_days(monday, offset))]


def _add_days(day: date, days: int) -> date | None:
    """Add days to a date; None outside the years 1 to 9999."""
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return None


@pages.post("/blocks", access=coach(CUSTOMERS.EDIT), form=input_of(_NewWorkout, NewWorkoutForm)(), on=week_page)
async def add_block(ctx: Context, customer_id: ObjectId, form: _NewWorkout) -> Redirect:
    """Schedule a workout or a rest day."""
    block, remarks = await create_with_text(ctx, ClientCalendar(customer_id), form)
    if form["isRest"]:
        return Redirect(week_path(customer_id, form["date"]), "Rest day added.")
    if block["items"]:
        return Redirect(week_path(customer_id, form["date"]), f"{block['name']} added.{remarks}")
    path = customer_path(customer_id, f"/blocks/{block['_id']}")
    return Redirect(path, f"{block['name']} added. Now add exercises to it.")


@pages.post("/move", access=coach(CUSTOMERS.EDIT), on=week_page)
async def move_item(ctx: Context, customer_id: ObjectId, form: _MoveForm) -> Redirect:
    """Move an item to a position in this or another workout."""
    block = await item_service.move_item(
        ctx,
        ClientCalendar(customer_id),
        {"wblockId": form["source"], "witemId": form["witemId"]},
        {"wblockId": form["target"], "index": form["place"] - 1},
    )
    return Redirect(week_path(customer_id, str(block["date"])), f"Moved to {block['name']}.")


@pages.post("/blocks/{blockId}/move", access=coach(CUSTOMERS.EDIT), on=week_page)
async def move_workout(ctx: Context, customer_id: ObjectId, block_id: ObjectId, form: _MoveWorkoutForm) -> Redirect:
    """Move a workout to a position of the same or another day."""
    calendar = ClientCalendar(customer_id)
    block = await workouts.update(ctx, calendar, block_id, {"date": form["date"], "order": form["place"] - 1})
    return Redirect(week_path(customer_id, form["date"]), f"{block['name']} moved to {format_date(block['date'])}.")


async def _layout_variables(ctx: Context, customer_id: ObjectId) -> dict[str, CustomerHeader]:
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
    load_comments=log_pages.load_comments,
)
declare_workout_pages(_CALENDAR)
log_pages.pages.declare_for(_CALENDAR)
