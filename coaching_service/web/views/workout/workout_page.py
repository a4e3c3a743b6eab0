"""The page of a workout: its items with results, adding, moving and removing items, and changes to the workout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any, TypedDict, TypeVar, cast
from urllib.parse import urlencode

from coaching_service.core.auth import EXERCISES, FORMS, METRICS, PROGRAMS
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.database.documents import Document
from coaching_service.core.errors import InvalidFields
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Integer, Text, patch_of
from coaching_service.library import forms, metric_sets
from coaching_service.library.exercises import service as exercises
from coaching_service.progress import personal_records
from coaching_service.training import templates, training_maxes
from coaching_service.training.programs import LAST_DAY
from coaching_service.training.schedule.models import Day
from coaching_service.training.templates import TemplateDetails
from coaching_service.training.training_maxes import ReferenceLoads
from coaching_service.training.workouts.blocks import batches as block_batches
from coaching_service.training.workouts.blocks import items as block_items
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import Block, BlockChange, BlockName, WorkoutSettings
from coaching_service.training.workouts.items import models as item_models
from coaching_service.training.workouts.items import service as items
from coaching_service.training.workouts.items.descriptions import describe_item, describe_items
from coaching_service.training.workouts.items.service import exercise_ids
from coaching_service.training.workouts.reports import exercises as exercise_queries
from coaching_service.training.workouts.reports.exercises import add_last_times
from coaching_service.training.workouts.sets import CustomerSet
from coaching_service.web.formatting import document_options, format_number, quantity
from coaching_service.web.pages import Redirect, Search
from coaching_service.web.views.results import Confirmation, describe_results, describe_set
from coaching_service.web.views.workout import cards, editing
from coaching_service.web.views.workout.owner_pages import BLOCK, ITEM, OpenedWorkout, WorkoutPages

# --- Adding items to a workout: exercises, also suggested ones, tasks, reminders, forms and metrics to record ---------


pages = WorkoutPages()
T = TypeVar("T")
_EXERCISES_PER_PAGE = 12


class _ExerciseForm(editing.ExerciseChoice, editing.SetChoice, Confirmation):
    """An exercise to add, and its sets."""


class _FormChoice(TypedDict):
    formId: ObjectId


class _NewItems(Confirmation):
    text: Annotated[str, Text(max_length=cards.MAX_TEXT_LENGTH)]


def search_path(block_path: str, query: Search) -> str:
    """Return the path of a workout's page with the results of a search, scrolled to the form that adds an exercise."""
    return f"{block_path}?{urlencode({'keywords': query['keywords'], 'page': query['page']})}#more"


async def load_choices(ctx: Context, query: Search) -> dict[str, Any]:
    """Load the library items that can be added; `exercises` is one page of them, or None without permission."""
    permissions = ctx.caller.permissions
    exercise_page: dict[str, Any] | None = None
    if EXERCISES.VIEW in permissions:
        page = await exercises.list_exercises(
            ctx, page=query["page"], size=_EXERCISES_PER_PAGE, keywords=query["keywords"]
        )
        exercise_page = {**page, "docs": editing.with_proposed_ranges(page["docs"])}
    return {
        "exercises": exercise_page,
        "proposed_sets": editing.PROPOSED_SETS,
        "forms": document_options(await forms.list_all(ctx)) if FORMS.VIEW in permissions else [],
        "metric_sets": document_options(await metric_sets.list_all(ctx)) if METRICS.VIEW in permissions else [],
    }


@pages.post(f"{BLOCK}/items", query=Search, form=_ExerciseForm)
async def add_exercise(ctx: Context, workout: OpenedWorkout, query: Search, form: _ExerciseForm) -> Redirect:
    """Add an exercise at the end of a workout, of one of its circuits, or of a new circuit."""
    exercise = await exercises.get(ctx, form["exerciseId"])
    sets = editing.plan_sets(exercise, form, in_circuit=bool(form["circuit"]))
    added = await editing.add_exercise(ctx, workout, form, sets)
    if form["circuit"] == editing.NEW_CIRCUIT:
        return Redirect(f"{workout.path}/items/{added['_id']}", "Circuit added. Set its name and rounds.")
    notice = f"Added to {added['circuitName']}." if added["type"] == "CIRCUIT" else f"{exercise['name']} added."
    return Redirect(search_path(workout.path, query), notice)


@pages.post(f"{BLOCK}/tasks")
async def add_task(ctx: Context, workout: OpenedWorkout, form: item_models.TaskFields) -> Redirect:
    """Add a task at the end of a workout."""
    return await _add(ctx, workout, {"type": "TASK", "taskFields": form})


@pages.post(f"{BLOCK}/reminders")
async def add_reminder(ctx: Context, workout: OpenedWorkout, form: item_models.PlannedReminder) -> Redirect:
    """Add a reminder at the end of a workout."""
    return await _add(ctx, workout, {"type": "REMINDER", "reminderFields": form})


@pages.post(f"{BLOCK}/forms")
async def add_form(ctx: Context, workout: OpenedWorkout, form: _FormChoice) -> Redirect:
    """Add a form at the end of a workout."""
    return await _add(ctx, workout, {"type": "FORM", "form": {"formId": str(form["formId"])}})


@pages.post(f"{BLOCK}/metrics")
async def add_metrics(ctx: Context, workout: OpenedWorkout, form: item_models.PlannedMetrics) -> Redirect:
    """Add a metric set to record at the end of a workout."""
    return await _add(ctx, workout, {"type": "METRICS", "metricsFields": {"metricsSetId": str(form["metricsSetId"])}})


async def _add(ctx: Context, workout: OpenedWorkout, item: Document) -> Redirect:
    added = await editing.add_item(ctx, workout, item)
    title = describe_item(added, ctx.caller.company.load_unit)["title"]
    return Redirect(f"{workout.path}#more", f"{title} added.")


@pages.post(f"{BLOCK}/text", form=_NewItems)
async def add_items_as_text(ctx: Context, workout: OpenedWorkout, form: _NewItems) -> Redirect:
    """Add the items that the lines of a text describe at the end of a workout."""
    added, remarks = await cards.add_text(ctx, workout.owner, workout.block_id, form["text"])
    return Redirect(f"{workout.path}#more", f"{quantity(added, 'item')} added.{remarks}")


_NOTHING_ENTERED: editing.SetChoice = {"sets": None, "low": None, "high": None, "load": None, "rest": None}


@pages.post(f"{BLOCK}/exercises", form=editing.ExerciseChoice)
async def add_suggested_exercise(ctx: Context, workout: OpenedWorkout, form: editing.ExerciseChoice) -> Redirect:
    """Add an exercise at the end of a workout, planned as in the client's last workout with it, or of a circuit."""
    exercise = await exercises.get(ctx, form["exerciseId"])
    last = [] if form["circuit"] else await _read_last_plan(ctx, workout, exercise["_id"])
    sets = last or editing.plan_sets(exercise, _NOTHING_ENTERED, in_circuit=bool(form["circuit"]))
    added = await editing.add_exercise(ctx, workout, form, sets)
    place = f" to {added['circuitName']}" if added["type"] == "CIRCUIT" else ""
    notice = "Circuit added." if form["circuit"] == editing.NEW_CIRCUIT else f"{exercise['name']} added{place}."
    return Redirect(f"{workout.path}#item-{added['_id']}", notice)


async def _read_last_plan(ctx: Context, workout: OpenedWorkout, exercise_id: ObjectId) -> Sequence[Mapping[str, Any]]:
    """Return the sets that the client's last workout with an exercise plans of it; none in programs."""
    block = await workout.read(ctx)
    if block["customerId"] is None or block["date"] is None:
        return []
    return await exercise_queries.find_last_plan(ctx, block["customerId"], exercise_id, block["date"])


# --- Moving, duplicating and removing the items of a workout ----------------------------------------------------------


class Place(TypedDict):
    """The position to move something to, from 1; at the end by default."""

    place: Annotated[int, Integer(minimum=1, maximum=1000), Default(1000)]


class MoveForm(Place):
    """The workout to move an item to, and the position there."""

    target: ObjectId


class _RemoveForm(TypedDict):
    confirmed: Annotated[bool, Default(False)]


@pages.post(f"{ITEM}/move", form=MoveForm)
async def place_item(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, form: MoveForm) -> Redirect:
    """Move an item to a position in this or another workout, and open that workout."""
    source: item_models.ItemMoveSource = {"wblockId": workout.block_id, "witemId": witem_id}
    target: item_models.ItemMoveTarget = {"wblockId": form["target"], "index": form["place"] - 1}
    block = await block_items.move_item(ctx, workout.owner, source, target)
    notice = "Moved." if block["_id"] == workout.block_id else f"Moved to {block['name']}."
    return Redirect(f"{workout._replace(block_id=block['_id']).path}#item-{witem_id}", notice)


@pages.post(f"{ITEM}/duplicate")
async def duplicate_item(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId) -> Redirect:
    """Add a copy of an item after it, with nothing done."""
    block = await workout.read(ctx)
    at = items.find_index(block["items"], witem_id)
    added = await editing.add_item(ctx, workout, _planned_fields(block["items"][at]))
    if at + 1 < len(block["items"]):
        source: item_models.ItemMoveSource = {"wblockId": workout.block_id, "witemId": added["_id"]}
        await block_items.move_item(ctx, workout.owner, source, {"wblockId": workout.block_id, "index": at + 1})
    title = describe_item(added, ctx.caller.company.load_unit)["title"]
    return Redirect(f"{workout.path}#item-{added['_id']}", f"{title} duplicated.")


@pages.get(f"{ITEM}/delete", template="workout/delete_item.html")
async def delete_item_page(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId) -> dict[str, Any]:
    """Ask for confirmation before an item is removed with its results and personal records."""
    variables = await workout.load_variables(ctx)
    block, unit = variables["block"], ctx.caller.company.load_unit
    item = block["items"][items.find_index(block["items"], witem_id)]
    records = await personal_records.list_records(ctx, block["customerId"]) if block["customerId"] else []
    return {
        **variables,
        "item": {**describe_item(item, unit), "results": describe_results(item, unit)},
        "records": [record for record in records if record["witemId"] == witem_id],
    }


@pages.post(f"{ITEM}/delete", form=_RemoveForm, on=delete_item_page, deletes=True)
async def delete_item(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, form: _RemoveForm) -> Redirect:
    """Remove an item from a workout; one with results only after confirmation."""
    block = await workout.read(ctx)
    item = block["items"][items.find_index(block["items"], witem_id)]
    if items.is_recorded(item) and not form["confirmed"]:
        return Redirect(f"{workout.path}/items/{witem_id}/delete")
    await block_items.delete_item(ctx, workout.owner, workout.block_id, witem_id)
    return Redirect(workout.path, "Item removed.")


def _planned_fields(item: item_models.WorkItem) -> Document:
    """Return what an item plans, in the form of a request."""
    stored, planned = cast("Document", item), items.PLANNED_FIELDS[item["type"]]
    fields: Document = {name: stored[name] for name in planned if name in stored}
    if item["type"] == "EXERCISE":
        fields["exerciseId"] = str(item["exerciseId"])
    elif item["type"] == "CIRCUIT":
        fields["circuitExercises"] = editing.exercises_of(item)
    elif item["type"] == "METRICS":
        fields["metricsFields"] = {"metricsSetId": str(item["metricsFields"]["metricsSetId"])}
    elif item["type"] == "FORM" and item["form"]["formId"] is not None:
        fields["form"] = {"formId": str(item["form"]["formId"])}
    elif item["type"] == "FORM":
        questions = [
            {name: value for name, value in each.items() if name != "_id"} for each in item["form"]["questions"]
        ]
        fields["form"] = {"name": item["form"]["name"], "questions": questions}
    return {"type": item["type"], **fields}


# --- The page of a workout: its items with their results, and what the client did the last time and can lift ----------


@pages.get(BLOCK, to_view=True, query=Search, template="workout/workout.html")
async def workout_page(ctx: Context, workout: OpenedWorkout, query: Search) -> dict[str, Any]:
    """A workout with its items and results, and what can be added to it."""
    variables = await workout.load_variables(ctx)
    block, unit, of = variables["block"], ctx.caller.company.load_unit, workout.of
    can_edit = of.edit in ctx.caller.permissions
    move_range = of.move_range(block) if of.move_range else None
    move_targets = [block]
    if can_edit and block["items"] and move_range:
        blocks = await workouts.list_blocks(ctx, workout.owner, *move_range)
        regular = [other for other in blocks if other.get("checkInId") is None]
        move_targets = [other for other in regular if not other["isRest"] or other["_id"] == workout.block_id]
    comments = await of.load_comments(ctx, workout.owner_id, workout.block_id) if of.load_comments else {}
    descriptions = [
        {
            **described,
            "results": describe_results(item, unit),
            "may_log": items.may_see_log(ctx.caller, item),
        }
        for item, described in zip(block["items"], describe_items(block["items"], unit), strict=True)
    ]
    return {
        **variables,
        **comments,
        **(await load_choices(ctx, query) if can_edit and not block["isRest"] else {}),
        **cards.card_variables(block["items"] if can_edit else []),
        "lift_facts": await _load_lift_facts(ctx, block),
        "used_columns": cards.used_columns,
        "version": block["version"],
        "descriptions": descriptions,
        "comment_options": [(str(item["_id"]), item["title"]) for item in descriptions],
        "circuits": [(str(circuit["_id"]), f"In {circuit['circuitName']}") for circuit in editing.circuits_of(block)],
        "move_targets": move_targets,
        "proposed_copy": _same_day_next_week(block),
        "first_date": move_range[0] if move_range else None,
        "query": query,
        "address": lambda page: search_path(workout.path, query | {"page": page}),
        "unit": unit,
    }


def _same_day_next_week(block: Block) -> str | int:
    """Return the date or program day one week after a workout; its own at the end of the calendar."""
    if block["date"] is None:
        return min((block["day"] or 0) + 7, LAST_DAY)
    try:
        return workouts.shift_date(block["date"], 7, "date")
    except InvalidFields:
        return block["date"]


class LastSession(TypedDict):
    """The latest session of an exercise: its date, block, and sets in words."""

    date: str
    wblockId: ObjectId
    sets: str


class LiftFacts(TypedDict):
    """What is known of an exercise; `loads` are such as `Training max 100 kg`."""

    exerciseId: ObjectId
    last: LastSession | None
    loads: list[str]


async def _load_lift_facts(ctx: Context, block: Block) -> dict[ObjectId, LiftFacts]:
    """Load what is known of each exercise of a workout by item; nothing in programs. Two queries for the page.

    For a client whose access has been checked.
    """
    customer_id = block["customerId"]
    if customer_id is None or block["date"] is None or not block["items"]:
        return {}
    [with_last_times], loads = await gather_reads(
        ctx,
        add_last_times(ctx, customer_id, [block]),
        training_maxes.load_reference_loads(ctx, customer_id, exercise_ids(block["items"])),
    )
    unit = ctx.caller.company.load_unit
    return {
        item["_id"]: {
            "exerciseId": item["exerciseId"],
            "last": _describe_session(item.get("lastTime"), unit),
            "loads": _describe_loads(loads.get(item["exerciseId"]), unit),
        }
        for item in with_last_times["items"]
        if item["type"] == "EXERCISE"
    }


def _describe_session(last: item_models.LastTime | None, unit: str) -> LastSession | None:
    done = [each for each in last["sets"] if each["isCompleted"]] if last is not None else []
    if last is None or not done:
        return None
    return {"date": last["date"], "wblockId": last["wblockId"], "sets": _describe_sets(done, unit)}


def _describe_sets(done: Sequence[CustomerSet], unit: str) -> str:
    """Describe sets, consecutive ones of the same load together, such as `8, 8, 7 x 60 kg; 12 x 50 kg`."""
    parts: list[str] = []
    for load, same in groupby(done, key=lambda each: each["load"] if each["reps"] is not None else None):
        sets = list(same)
        if load:
            parts.append(f"{', '.join(str(each['reps']) for each in sets)} × {format_number(load, unit)}")
        else:
            parts += [describe_set(each, unit)["amount"] for each in sets]
    return "; ".join(parts)


def _describe_loads(loads: ReferenceLoads | None, unit: str) -> list[str]:
    if loads is None:
        return []
    values = (("Training max", loads["trainingMax"]), ("Estimated 1RM", loads["estimatedOneRepMax"]))
    return [f"{name} {format_number(round(value, 1), unit)}" for name, value in values if value is not None]


# --- Changing a workout on a day of a calendar or program: renaming, moving, copying, deleting, and saving it ---------


day_pages = WorkoutPages()


class _WorkoutForm(BlockName, WorkoutSettings):
    """What a coach changes of a workout as a whole."""


@day_pages.post(BLOCK, form_of=lambda of: patch_of(input_of(_WorkoutForm), of.place_form, name="WorkoutForm"))
async def change_workout(ctx: Context, workout: OpenedWorkout, form: BlockChange) -> Redirect:
    """Rename a workout or move it to another day; on the same day it keeps its position."""
    await workouts.update(ctx, workout.owner, workout.block_id, form)
    return Redirect(workout.path, "Changes saved.")


@day_pages.post(f"{BLOCK}/copy", form_of=lambda of: of.place_form())
async def copy_workout(ctx: Context, workout: OpenedWorkout, form: Mapping[str, Day]) -> Redirect:
    """Copy a workout to another day, without its results."""
    block = await block_batches.copy(ctx, workout.owner, workout.block_id, form[workout.owner.day_field])
    return Redirect(workout.of.overview_path(workout.owner_id, block), f"{block['name']} copied.")


@day_pages.get(f"{BLOCK}/delete", template="workout/delete.html")
async def delete_workout_page(ctx: Context, workout: OpenedWorkout) -> dict[str, Any]:
    """Ask for confirmation before a workout is deleted."""
    variables = await workout.load_variables(ctx)
    return {**variables, "recorded_items": sum(map(items.is_recorded, variables["block"]["items"]))}


@day_pages.post(f"{BLOCK}/delete", on=delete_workout_page, deletes=True)
async def delete_workout(ctx: Context, workout: OpenedWorkout) -> Redirect:
    """Delete a workout with its items and their results."""
    block = await workout.read(ctx)
    await workouts.delete(ctx, workout.owner, workout.block_id)
    return Redirect(workout.of.overview_path(workout.owner_id, block), f"{block['name']} deleted.")


@day_pages.post(f"{BLOCK}/template", form=TemplateDetails, permission=PROGRAMS.CREATE)
async def save_as_template(ctx: Context, workout: OpenedWorkout, form: TemplateDetails) -> Redirect:
    """Create a template of what a workout plans."""
    template = await templates.create_from_block(ctx, workout.owner, workout.block_id, form)
    return Redirect(f"/app/templates/{template['_id']}", f"Template {template['name']} created.")
