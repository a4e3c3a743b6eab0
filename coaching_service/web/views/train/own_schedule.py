"""What clients change of their calendar: moving a workout, workouts of their own, and when they cannot train."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.errors import invalid_field, require_by_id
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import CalendarDate, Text, patch_of
from coaching_service.people.availability import service as availability
from coaching_service.people.availability.models import AvailabilityChange
from coaching_service.training import own_schedule
from coaching_service.training.own_schedule import NewOwnWorkout, OwnWorkoutChange, WorkoutDate
from coaching_service.training.workout_text.finding import read_texts
from coaching_service.training.workout_text.lines import parse_items
from coaching_service.training.workouts.blocks.models import BlockName
from coaching_service.training.workouts.items.descriptions import describe_item
from coaching_service.training.workouts.items.models import WORKOUT_TYPES, ItemInput
from coaching_service.web.formatting import quantity
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
from coaching_service.web.views.train.layout import calendar_path, label_day, workout_path
from coaching_service.web.views.train.workout.page import WORKOUT, workout_page
from coaching_service.web.views.unusual_values import Confirmation

pages = Pages("/train")
_absences = pages.below("/availability")
_OWN, _PERIOD = "/own-workouts/{ownWorkoutId}", "/{availabilityId}"
_TEXT_LENGTH = 10_000


class _DayQuery(TypedDict):
    date: Annotated[str | None, CalendarDate()]


class _Details(BlockName, WorkoutDate):
    """The name and the day of a workout of the client's own."""


class _ItemsForm(Confirmation):
    text: Annotated[str, Text(max_length=_TEXT_LENGTH)]


class _NewWorkoutForm(_Details, Confirmation):
    text: Annotated[str, Text(max_length=_TEXT_LENGTH, allow_blank=True), Default("")]


@pages.post(f"{WORKOUT}/move", access=customer(), on=workout_page, idempotent=True)
async def move_own_workout(ctx: Context, wblock_id: ObjectId, form: WorkoutDate) -> Redirect:
    """Move a workout to another day."""
    block = await own_schedule.move(ctx, wblock_id, form["date"])
    day = label_day(str(block["date"]), ctx.caller.today(), within=True)
    return Redirect(calendar_path(str(block["date"])), f"{block['name']} moved to {day}.")


@pages.get("/add-workout", access=customer(), template="train/add_workout.html")
async def add_workout_page(ctx: Context, query: _DayQuery) -> dict[str, Any]:
    """A workout that the client adds."""
    rights = await own_schedule.get_rights(ctx)
    return {"may_add": rights["clientsMayAdd"], "day": query["date"] or str(ctx.caller.today())}


@pages.post("/add-workout", access=customer(), on=add_workout_page)
async def add_workout(ctx: Context, form: _NewWorkoutForm) -> Redirect:
    """Add a workout of the client's own."""
    items, remarks = await _read_items(ctx, form["text"])
    workout: NewOwnWorkout = {"name": form["name"], "date": form["date"], "items": items}
    block = await own_schedule.create(ctx, workout)
    target = workout_path(block["_id"]) if items else change_path(block["_id"])
    return Redirect(target, f"{block['name']} added.{remarks}")


@pages.get(_OWN, access=customer(), template="train/change_workout.html")
async def change_workout_page(ctx: Context, own_workout_id: ObjectId) -> dict[str, Any]:
    """A workout that the client has added: its name, day and exercises."""
    block = await own_schedule.get_own(ctx, own_workout_id)
    return {
        "block": block,
        "version": block["version"],
        "items": [describe_item(item, ctx.caller.company.load_unit) for item in block["items"]],
        "page_path": change_path(own_workout_id),
        "workout_path": workout_path(own_workout_id),
    }


@pages.post(
    _OWN,
    access=customer(),
    form=patch_of(input_of(_Details), name="OwnWorkoutForm"),
    on=change_workout_page,
)
async def change_own_workout(ctx: Context, own_workout_id: ObjectId, form: OwnWorkoutChange) -> Redirect:
    """Change the name and day of a workout of the client's own."""
    block = await own_schedule.update(ctx, own_workout_id, form)
    return Redirect(workout_path(own_workout_id), f"{block['name']} saved.")


@pages.post(f"{_OWN}/text", access=customer(), on=change_workout_page)
async def add_own_items(ctx: Context, own_workout_id: ObjectId, form: _ItemsForm) -> Redirect:
    """Add exercises to a workout of the client's own."""
    items, remarks = await _read_items(ctx, form["text"])
    await own_schedule.add_items(ctx, own_workout_id, items)
    return Redirect(change_path(own_workout_id), f"{quantity(len(items), 'item')} added.{remarks}")


@pages.post(f"{_OWN}/items/{{witemId}}/remove", access=customer(), on=change_workout_page, deletes=True)
async def remove_own_item(ctx: Context, own_workout_id: ObjectId, witem_id: ObjectId) -> Redirect:
    """Remove an exercise from a workout of the client's own."""
    await own_schedule.delete_item(ctx, own_workout_id, witem_id)
    return Redirect(change_path(own_workout_id), "Removed.")


@pages.post(f"{_OWN}/delete", access=customer(), on=change_workout_page, deletes=True)
async def delete_own_workout(ctx: Context, own_workout_id: ObjectId) -> Redirect:
    """Delete a workout of the client's own."""
    block = await own_schedule.get_own(ctx, own_workout_id)
    await own_schedule.delete(ctx, own_workout_id)
    return Redirect(calendar_path(str(block["date"])), "Workout deleted.")


def change_path(block_id: ObjectId) -> str:
    """Return the path of the page that changes a workout of the client's own."""
    return f"/train/own-workouts/{block_id}"


async def _read_items(ctx: Context, text: str) -> tuple[list[ItemInput], str]:
    """Return the exercises, circuits and tasks that a text describes, and remarks on how it was read."""
    for item in parse_items(text, ctx.caller.load_unit, "text").items:
        if item.details["type"] not in WORKOUT_TYPES:
            raise invalid_field("text", "must have only exercises, circuits and tasks")
    read = await read_texts(ctx, [("text", text)], customer_id=ctx.caller.id)
    return read.items[0], read.remarks


@_absences.get("", access=customer(), template="train/availability.html")
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


@_absences.post("", access=customer(), on=own_availability_page)
async def add_own_absence(ctx: Context, form: AbsenceForm) -> Redirect:
    """Say that the client is away, ill, injured or trains with limits."""
    period = await availability.create(ctx, ctx.caller.id, to_period(form))
    return Redirect("/train", f"{describe_saved(period, ctx.caller.today())} Your coach sees it.")


@_absences.get(_PERIOD, access=customer(), template="train/change_availability.html")
async def change_own_availability_page(ctx: Context, availability_id: ObjectId) -> dict[str, Any]:
    """One period in which the client cannot train as planned."""
    periods = await availability.list_availability(ctx, ctx.caller.id)
    period = require_by_id(periods, availability_id, "availability")
    return {
        "period": {**period, **describe_period(period, ctx.caller.today())},
        "version": period["version"],
        "kinds": KINDS,
    }


@_absences.post(_PERIOD, access=customer(), form=PERIOD_CHANGE, on=change_own_availability_page)
async def change_own_absence(ctx: Context, availability_id: ObjectId, form: AvailabilityChange) -> Redirect:
    """Change a period that the client has entered."""
    await availability.update(ctx, ctx.caller.id, availability_id, form)
    return Redirect(_absences.prefix, "Saved.")


@_absences.post(f"{_PERIOD}/delete", access=customer(), on=change_own_availability_page, deletes=True)
async def delete_own_absence(ctx: Context, availability_id: ObjectId) -> Redirect:
    """Delete a period that the client has entered."""
    await availability.delete(ctx, ctx.caller.id, availability_id)
    return Redirect(_absences.prefix, "Deleted.")
