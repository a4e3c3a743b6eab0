"""Workouts that clients add to their own calendar: picked from the library, repeated, or written as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from marshmallow import fields

from coaching_service.core.auth import customer
from coaching_service.core.database.context import Context
from coaching_service.core.errors import invalid_field
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import NAME_LENGTH, CalendarDate, Identifier, ListOf, Text, patch_of
from coaching_service.library.exercises import service as exercises
from coaching_service.progress.logs import service as logs
from coaching_service.training import own_schedule
from coaching_service.training.own_schedule import NewOwnWorkout, OwnWorkoutChange, WorkoutDate
from coaching_service.training.workout_text.finding import read_texts
from coaching_service.training.workout_text.lines import parse_items
from coaching_service.training.workouts.blocks.load_conversion import show_loads
from coaching_service.training.workouts.blocks.models import Block, BlockName
from coaching_service.training.workouts.items.descriptions import describe_items
from coaching_service.training.workouts.items.models import WORKOUT_TYPES, ItemInput
from coaching_service.training.workouts.items.service import MAX_ITEMS
from coaching_service.web import pages as web_pages
from coaching_service.web.formatting import quantity
from coaching_service.web.views import customer_layout, exercise_picker, own_rows
from coaching_service.web.views.results import Confirmation

pages = web_pages.Pages("/train")
_OWN = "/own-workouts/{ownWorkoutId}"
_TEXT_LENGTH = 10_000
_REPEATABLE = 6


class _Picked(TypedDict):
    """The exercises that were picked on the page that searches."""

    picked: Annotated[list[ObjectId], ListOf(Identifier(), maximum=MAX_ITEMS), Default(list)]


class _NewQuery(_Picked):
    """The day of the workout, and the workout to repeat."""

    date: Annotated[str | None, CalendarDate()]
    repeat: ObjectId | None


class _Details(BlockName, WorkoutDate):
    """The name and the day of a workout of the client's own."""


class _ItemsForm(Confirmation):
    """Exercises to add: rows that were picked, and a text. `unpicked` is what remains in the field that searches."""

    rows: Annotated[
        list[own_rows.OwnRow], ListOf(fields.Nested(input_of(own_rows.OwnRow)), maximum=MAX_ITEMS), Default(list)
    ]
    text: Annotated[str, Text(max_length=_TEXT_LENGTH, allow_blank=True), Default("")]
    unpicked: Annotated[str, Text(max_length=NAME_LENGTH, allow_blank=True), Default("")]


class _NewWorkoutForm(_Details, _ItemsForm):
    """A workout of the client's own with its exercises."""


@pages.get("/add-workout", access=customer(), template="train/add_workout.html")
async def add_workout_page(ctx: Context, query: _NewQuery) -> dict[str, Any]:
    """A workout that the client adds."""
    rights = await own_schedule.get_rights(ctx)
    variables = await _load_picker(ctx, query["picked"])
    repeated: Block | None = None
    if query["repeat"] is not None:
        repeated = show_loads(await logs.get_own_block(ctx, query["repeat"]), ctx, ctx.caller.load_unit)
        variables["rows"] = await own_rows.to_rows(ctx, repeated["items"])
    day = query["date"] or str(ctx.caller.today())
    return {
        **variables,
        "may_add": rights["clientsMayAdd"],
        "day": day,
        "name": repeated["name"] if repeated else "My workout",
        "add_path": "/train/add-workout",
    }


async def _load_picker(ctx: Context, picked: Sequence[ObjectId]) -> dict[str, Any]:
    """Return what the form that picks exercises shows: rows, exercises to pick without a text, and past workouts."""
    latest = await own_rows.list_latest(ctx)
    plans = own_rows.last_plans(latest)
    chosen = [await exercises.get(ctx, each) for each in picked]
    return {
        "options": await exercise_picker.list_own_options(ctx, latest),
        "rows": [
            {**own_rows.propose(each, plans.get(each["_id"])), "exerciseId": str(each["_id"]), "name": each["name"]}
            for each in chosen
        ],
        "measures": own_rows.MEASURES,
        "unit": ctx.caller.load_unit,
        "past": latest[:_REPEATABLE],
    }


@pages.post("/add-workout", access=customer(), on=add_workout_page)
async def add_workout(ctx: Context, form: _NewWorkoutForm) -> web_pages.Redirect:
    """Add a workout of the client's own."""
    items, remarks = await _read_items(ctx, form)
    workout: NewOwnWorkout = {"name": form["name"], "date": form["date"], "items": items}
    block = await own_schedule.create(ctx, workout)
    target = customer_layout.workout_path(block["_id"]) if items else change_path(block["_id"])
    return web_pages.Redirect(target, f"{block['name']} added.{remarks}")


@pages.get(_OWN, access=customer(), template="train/change_workout.html")
async def change_workout_page(ctx: Context, own_workout_id: ObjectId, query: _Picked) -> dict[str, Any]:
    """A workout that the client has added: its name, day and exercises."""
    block = show_loads(await own_schedule.get_own(ctx, own_workout_id), ctx, ctx.caller.load_unit)
    return {
        **await _load_picker(ctx, query["picked"]),
        "block": block,
        "version": block["version"],
        "items": describe_items(block["items"], ctx.caller.load_unit),
        "page_path": change_path(own_workout_id),
        "workout_path": customer_layout.workout_path(own_workout_id),
    }


@pages.post(
    _OWN,
    access=customer(),
    form=patch_of(input_of(_Details), name="OwnWorkoutForm"),
    on=change_workout_page,
)
async def change_own_workout(ctx: Context, own_workout_id: ObjectId, form: OwnWorkoutChange) -> web_pages.Redirect:
    """Change the name and day of a workout of the client's own."""
    block = await own_schedule.update(ctx, own_workout_id, form)
    return web_pages.Redirect(customer_layout.workout_path(own_workout_id), f"{block['name']} saved.")


@pages.post(f"{_OWN}/text", access=customer(), on=change_workout_page)
async def add_own_items(ctx: Context, own_workout_id: ObjectId, form: _ItemsForm) -> web_pages.Redirect:
    """Add exercises to a workout of the client's own."""
    items, remarks = await _read_items(ctx, form)
    if not items:
        raise invalid_field("text", "must name an exercise: pick one, or write one", code="REQUIRED")
    await own_schedule.add_items(ctx, own_workout_id, items)
    return web_pages.Redirect(change_path(own_workout_id), f"{quantity(len(items), 'item')} added.{remarks}")


@pages.post(f"{_OWN}/items/{{witemId}}/remove", access=customer(), on=change_workout_page, deletes=True)
async def remove_own_item(ctx: Context, own_workout_id: ObjectId, witem_id: ObjectId) -> web_pages.Redirect:
    """Remove an exercise from a workout of the client's own."""
    await own_schedule.delete_item(ctx, own_workout_id, witem_id)
    return web_pages.Redirect(change_path(own_workout_id), "Removed.")


@pages.post(f"{_OWN}/delete", access=customer(), on=change_workout_page, deletes=True)
async def delete_own_workout(ctx: Context, own_workout_id: ObjectId) -> web_pages.Redirect:
    """Delete a workout of the client's own."""
    block = await own_schedule.get_own(ctx, own_workout_id)
    await own_schedule.delete(ctx, own_workout_id)
    return web_pages.Redirect(customer_layout.calendar_path(str(block["date"])), "Workout deleted.")


def change_path(block_id: ObjectId) -> str:
    """Return the path of the page that changes a workout of the client's own."""
    return f"/train/own-workouts/{block_id}"


async def _read_items(ctx: Context, form: _ItemsForm) -> tuple[list[ItemInput], str]:
    """Return the exercises that were picked and those that a text describes, and remarks on how it was read."""
    picked = own_rows.to_items(ctx, form["rows"])
    if form["unpicked"].strip():
        raise invalid_field("unpicked", "must be empty: pick an exercise of the list, or clear the field")
    if not form["text"].strip():
        return picked, ""
    for item in parse_items(form["text"], ctx.caller.load_unit, "text").items:
        if item.details["type"] not in WORKOUT_TYPES:
            raise invalid_field("text", "must have only exercises, circuits and tasks")
    read = await read_texts(ctx, [("text", form["text"])], customer_id=ctx.caller.id)
    return [*picked, *read.items[0]], read.remarks
