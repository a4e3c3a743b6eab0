"""The page of a workout: its items with results, adding, moving and removing them, changing it, and logging it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Annotated, Any, TypedDict, cast
from urllib.parse import urlencode

from marshmallow import Schema

from coaching_service.core.auth import EXERCISES, FORMS, METRICS, PROGRAMS, require_permission
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.database.documents import Document
from coaching_service.core.errors import InvalidFields
from coaching_service.core.fields import Default, input_of, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Integer, Text, patch_of
from coaching_service.library import forms, metric_sets
from coaching_service.library.exercises import service as exercises
from coaching_service.progress import personal_records
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.conversation.messages import MessageSubjectInput, MessageText
from coaching_service.progress.logs import service as logs
from coaching_service.progress.logs.schemas import CircuitItemLog, ExerciseItemLog, TaskItemLog, WorkoutBlockLog
from coaching_service.training import templates, training_maxes
from coaching_service.training.programs import LAST_DAY
from coaching_service.training.schedule.models import Day
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks import items as block_items
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import Block, BlockChange, BlockLog, BlockName, WorkoutSettings
from coaching_service.training.workouts.items import descriptions
from coaching_service.training.workouts.items import models as item_models
from coaching_service.training.workouts.items import service as items
from coaching_service.training.workouts.reports import exercises as exercise_reports
from coaching_service.web.formatting import document_options, format_number, quantity
from coaching_service.web.pages import Redirect, Search
from coaching_service.web.views import results
from coaching_service.web.views.check_ins import ANSWERS_FORM, FormAnswers, given_answers, recorded_answers
from coaching_service.web.views.workout import cards, editing

# --- Adding items to a workout: exercises, also suggested ones, tasks, reminders, forms and metrics to record ---------


pages = editing.WorkoutPages()
_EXERCISES_PER_PAGE = 12


class _ExerciseForm(editing.ExerciseChoice, editing.SetChoice, results.Confirmation):
    """An exercise to add, and its sets."""


class _FormChoice(TypedDict):
    formId: ObjectId


class _NewItems(results.Confirmation):
    text: Annotated[str, Text(max_length=cards.MAX_TEXT_LENGTH)]


def search_path(block_path: str, query: Search) -> str:
    """Return the path of a workout's page with the results of a search, scrolled to the form that adds an exercise."""
    return f"{block_path}?{urlencode({'keywords': query['keywords'], 'page': query['page']})}#more"


@pages.post(f"{editing.BLOCK}/items", query=Search, form=_ExerciseForm)
async def add_exercise(ctx: Context, workout: editing.OpenedWorkout, query: Search, form: _ExerciseForm) -> Redirect:
    """Add an exercise at the end of a workout, of one of its circuits, or of a new circuit."""
    exercise = await exercises.get(ctx, form["exerciseId"])
    sets = editing.plan_sets(exercise, form, in_circuit=bool(form["circuit"]))
    added = await editing.add_exercise(ctx, workout, form, sets)
    if form["circuit"] == editing.NEW_CIRCUIT:
        return Redirect(f"{workout.path}/items/{added['_id']}", "Circuit added. Set its name and rounds.")
    notice = f"Added to {added['circuitName']}." if added["type"] == "CIRCUIT" else f"{exercise['name']} added."
    return Redirect(search_path(workout.path, query), notice)


def _declare_addition(path: str, name: str, form: Any, to_item: Callable[[Any], Document]) -> None:
    """Declare the form `name` that adds to the end of a workout the item that a function makes of the form."""

    async def add(ctx: Context, workout: editing.OpenedWorkout, form: Any) -> Redirect:
        added = await editing.add_item(ctx, workout, to_item(form))
        title = descriptions.describe_item(added, ctx.caller.company.load_unit)["title"]
        return Redirect(f"{workout.path}#more", f"{title} added.")

    add.__name__ = name
    pages.post(f"{editing.BLOCK}/{path}", form=form)(add)


def _to_metrics(form: item_models.PlannedMetrics) -> Document:
    return {"type": "METRICS", "metricsFields": {"metricsSetId": str(form["metricsSetId"])}}


_task, _reminder = item_models.TaskFields, item_models.PlannedReminder
_declare_addition("tasks", "add_task", _task, lambda form: {"type": "TASK", "taskFields": form})
_declare_addition("reminders", "add_reminder", _reminder, lambda form: {"type": "REMINDER", "reminderFields": form})
_declare_addition(
    "forms", "add_form", _FormChoice, lambda form: {"type": "FORM", "form": {"formId": str(form["formId"])}}
)
_declare_addition("metrics", "add_metrics", item_models.PlannedMetrics, _to_metrics)


@pages.post(f"{editing.BLOCK}/text", form=_NewItems)
async def add_items_as_text(ctx: Context, workout: editing.OpenedWorkout, form: _NewItems) -> Redirect:
    """Add the items that the lines of a text describe at the end of a workout."""
    added, remarks = await cards.add_text(ctx, workout.owner, workout.block_id, form["text"])
    return Redirect(f"{workout.path}#more", f"{quantity(added, 'item')} added.{remarks}")


_NOTHING_ENTERED: editing.SetChoice = {"sets": None, "low": None, "high": None, "load": None, "rest": None}


@pages.post(f"{editing.BLOCK}/exercises", form=editing.ExerciseChoice)
async def add_suggested_exercise(
    ctx: Context, workout: editing.OpenedWorkout, form: editing.ExerciseChoice
) -> Redirect:
    """Add an exercise at the end of a workout, planned as in the client's last workout with it, or of a circuit."""
    exercise = await exercises.get(ctx, form["exerciseId"])
    last: Sequence[Mapping[str, Any]] = []
    if not form["circuit"]:
        block = await workout.read(ctx)
        if block["customerId"] is not None and block["date"] is not None:  # none in programs
            last = await exercise_reports.find_last_plan(ctx, block["customerId"], exercise["_id"], block["date"])
    sets = last or editing.plan_sets(exercise, _NOTHING_ENTERED, in_circuit=bool(form["circuit"]))
    added = await editing.add_exercise(ctx, workout, form, sets)
    place = f" to {added['circuitName']}" if added["type"] == "CIRCUIT" else ""
    notice = "Circuit added." if form["circuit"] == editing.NEW_CIRCUIT else f"{exercise['name']} added{place}."
    return Redirect(f"{workout.path}#item-{added['_id']}", notice)


# --- Moving, duplicating and removing the items of a workout ----------------------------------------------------------


class Place(TypedDict):
    """The position to move something to, from 1; at the end by default."""

    place: Annotated[int, Integer(minimum=1, maximum=1000), Default(1000)]


class MoveForm(Place):
    """The workout to move an item to, and the position there."""

    target: ObjectId


class _RemoveForm(TypedDict):
    confirmed: Annotated[bool, Default(False)]


@pages.post(f"{editing.ITEM}/move", form=MoveForm)
async def place_item(ctx: Context, workout: editing.OpenedWorkout, witem_id: ObjectId, form: MoveForm) -> Redirect:
    """Move an item to a position in this or another workout, and open that workout."""
    source: item_models.ItemMoveSource = {"wblockId": workout.block_id, "witemId": witem_id}
    target: item_models.ItemMoveTarget = {"wblockId": form["target"], "index": form["place"] - 1}
    block = await block_items.move_item(ctx, workout.owner, source, target)
    notice = "Moved." if block["_id"] == workout.block_id else f"Moved to {block['name']}."
    return Redirect(f"{workout._replace(block_id=block['_id']).path}#item-{witem_id}", notice)


@pages.post(f"{editing.ITEM}/duplicate")
async def duplicate_item(ctx: Context, workout: editing.OpenedWorkout, witem_id: ObjectId) -> Redirect:
    """Add a copy of an item after it, with nothing done."""
    block = await workout.read(ctx)
    at = items.find_index(block["items"], witem_id)
    item, fields = cast("Document", block["items"][at]), dict[str, Any]()  # what it plans, in the form of a request
    match item["type"]:
        case "EXERCISE":
            fields["exerciseId"] = str(item["exerciseId"])
        case "CIRCUIT":
            fields["circuitExercises"] = editing.exercises_of(cast("item_models.CircuitItem", item))
        case "METRICS":
            fields["metricsFields"] = {"metricsSetId": str(item["metricsFields"]["metricsSetId"])}
        case "FORM" if item["form"]["formId"] is not None:
            fields["form"] = {"formId": str(item["form"]["formId"])}
        case "FORM":
            questions = [
                {name: value for name, value in each.items() if name != "_id"} for each in item["form"]["questions"]
            ]
            fields["form"] = {"name": item["form"]["name"], "questions": questions}
    planned = {name: item[name] for name in items.PLANNED_FIELDS[item["type"]] if name in item}
    added = await editing.add_item(ctx, workout, {"type": item["type"], **planned, **fields})
    if at + 1 < len(block["items"]):
        source: item_models.ItemMoveSource = {"wblockId": workout.block_id, "witemId": added["_id"]}
        await block_items.move_item(ctx, workout.owner, source, {"wblockId": workout.block_id, "index": at + 1})
    title = descriptions.describe_item(added, ctx.caller.company.load_unit)["title"]
    return Redirect(f"{workout.path}#item-{added['_id']}", f"{title} duplicated.")


@pages.get(f"{editing.ITEM}/delete", template="workout/delete_item.html")
async def delete_item_page(ctx: Context, workout: editing.OpenedWorkout, witem_id: ObjectId) -> dict[str, Any]:
    """Ask for confirmation before an item is removed with its results and personal records."""
    variables = await workout.load_variables(ctx)
    block, unit = variables["block"], ctx.caller.company.load_unit
    item = block["items"][items.find_index(block["items"], witem_id)]
    records = await personal_records.list_records(ctx, block["customerId"]) if block["customerId"] else []
    return {
        **variables,
        "item": {**descriptions.describe_item(item, unit), "results": results.describe_results(item, unit)},
        "records": [record for record in records if record["witemId"] == witem_id],
    }


@pages.post(f"{editing.ITEM}/delete", form=_RemoveForm, on=delete_item_page, deletes=True)
async def delete_item(ctx: Context, workout: editing.OpenedWorkout, witem_id: ObjectId, form: _RemoveForm) -> Redirect:
    """Remove an item from a workout; one with results only after confirmation."""
    block = await workout.read(ctx)
    item = block["items"][items.find_index(block["items"], witem_id)]
    if items.is_recorded(item) and not form["confirmed"]:
        return Redirect(f"{workout.path}/items/{witem_id}/delete")
    await block_items.delete_item(ctx, workout.owner, workout.block_id, witem_id)
    return Redirect(workout.path, "Item removed.")


# --- The page of a workout: its items with their results, and what the client did the last time and can lift ----------


@pages.get(editing.BLOCK, to_view=True, query=Search, template="workout/workout.html")
async def workout_page(ctx: Context, workout: editing.OpenedWorkout, query: Search) -> dict[str, Any]:
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
    next_week: str | int = min((block["day"] or 0) + 7, LAST_DAY)
    if block["date"] is not None:
        next_week = block["date"]
        with suppress(InvalidFields):  # at the end of the calendar
            next_week = workouts.shift_date(block["date"], 7, "date")
    choices: dict[str, Any] = {}  # what of the library can be added: one page of exercises, or None without permission
    if can_edit and not block["isRest"]:
        permissions, exercise_page = ctx.caller.permissions, None
        if EXERCISES.VIEW in permissions:
            size, keywords = _EXERCISES_PER_PAGE, query["keywords"]
            found = await exercises.list_exercises(ctx, page=query["page"], size=size, keywords=keywords)
            exercise_page = {**found, "docs": editing.with_proposed_ranges(found["docs"])}
        choices = {
            "exercises": exercise_page,
            "proposed_sets": editing.PROPOSED_SETS,
            "forms": document_options(await forms.list_all(ctx)) if FORMS.VIEW in permissions else [],
            "metric_sets": document_options(await metric_sets.list_all(ctx)) if METRICS.VIEW in permissions else [],
        }
    comments = {}
    if of.is_of_client:
        listed = await conversation.list_messages(
            ctx, workout.owner_id, {"limit": _MAX_COMMENTS, "after": None, "wblockId": workout.block_id}
        )
        comments = {"comments": listed["docs"][::-1], "has_more_comments": listed["hasMore"]}
    described_items = [
        {
            **described,
            "results": results.describe_results(item, unit),
            "may_log": items.may_see_log(ctx.caller, item),
        }
        for item, described in zip(block["items"], descriptions.describe_items(block["items"], unit), strict=True)
    ]
    return {
        **variables,
        **comments,
        **choices,
        **cards.card_variables(block["items"] if can_edit else []),
        "lift_facts": await _load_lift_facts(ctx, block),
        "used_columns": cards.used_columns,
        "version": block["version"],
        "descriptions": described_items,
        "comment_options": [(str(item["_id"]), item["title"]) for item in described_items],
        "circuits": [(str(circuit["_id"]), f"In {circuit['circuitName']}") for circuit in editing.circuits_of(block)],
        "move_targets": move_targets,
        "proposed_copy": next_week,
        "first_date": move_range[0] if move_range else None,
        "address": lambda page: search_path(workout.path, query | {"page": page}),
    }


async def _load_lift_facts(ctx: Context, block: Block) -> dict[ObjectId, dict[str, Any]]:
    """Load what is known of each exercise of a workout by item; nothing in programs. Two queries for the page.

    For a client whose access has been checked.
    """
    customer_id = block["customerId"]
    if customer_id is None or block["date"] is None or not block["items"]:
        return {}
    [with_last_times], loads = await gather_reads(
        ctx,
        exercise_reports.add_last_times(ctx, customer_id, [block]),
        training_maxes.load_reference_loads(ctx, customer_id, items.exercise_ids(block["items"])),
    )
    unit, facts = ctx.caller.company.load_unit, {}
    for item in (each for each in with_last_times["items"] if each["type"] == "EXERCISE"):
        last, known = item.get("lastTime"), loads.get(item["exerciseId"])
        done = [each for each in last["sets"] if each["isCompleted"]] if last else []
        parts: list[str] = []  # consecutive sets of the same load together, such as `8, 8, 7 x 60 kg; 12 x 50 kg`
        for load, same in groupby(done, key=lambda each: each["load"] if each["reps"] is not None else None):
            sets = list(same)
            if load:
                parts.append(f"{', '.join(str(each['reps']) for each in sets)} × {format_number(load, unit)}")
            else:
                parts += [results.describe_set(each, unit)["amount"] for each in sets]
        values = (
            [("Training max", known["trainingMax"]), ("Estimated 1RM", known["estimatedOneRepMax"])] if known else []
        )
        facts[item["_id"]] = {
            "exerciseId": item["exerciseId"],
            "last": {**last, "sets": "; ".join(parts)} if last and done else None,
            "loads": [f"{name} {format_number(round(value, 1), unit)}" for name, value in values if value is not None],
        }
    return facts


# --- Changing a workout on a day of a calendar or program: renaming, moving, copying, deleting, and saving it ---------


day_pages = editing.WorkoutPages()


class _WorkoutForm(BlockName, WorkoutSettings):
    """What a coach changes of a workout as a whole."""


@day_pages.post(editing.BLOCK, form_of=lambda of: patch_of(input_of(_WorkoutForm), of.place_form, name="WorkoutForm"))
async def change_workout(ctx: Context, workout: editing.OpenedWorkout, form: BlockChange) -> Redirect:
    """Rename a workout or move it to another day; on the same day it keeps its position."""
    await workouts.update(ctx, workout.owner, workout.block_id, form)
    return Redirect(workout.path, "Changes saved.")


@day_pages.post(f"{editing.BLOCK}/copy", form_of=lambda of: of.place_form())
async def copy_workout(ctx: Context, workout: editing.OpenedWorkout, form: Mapping[str, Day]) -> Redirect:
    """Copy a workout to another day, without its results."""
    block = await batches.copy(ctx, workout.owner, workout.block_id, form[workout.owner.day_field])
    return Redirect(workout.of.overview_path(workout.owner_id, block), f"{block['name']} copied.")


@day_pages.get(f"{editing.BLOCK}/delete", template="workout/delete.html")
async def delete_workout_page(ctx: Context, workout: editing.OpenedWorkout) -> dict[str, Any]:
    """Ask for confirmation before a workout is deleted."""
    variables = await workout.load_variables(ctx)
    return {**variables, "recorded_items": sum(map(items.is_recorded, variables["block"]["items"]))}


@day_pages.post(f"{editing.BLOCK}/delete", on=delete_workout_page, deletes=True)
async def delete_workout(ctx: Context, workout: editing.OpenedWorkout) -> Redirect:
    """Delete a workout with its items and their results."""
    block = await workout.read(ctx)
    await workouts.delete(ctx, workout.owner, workout.block_id)
    return Redirect(workout.of.overview_path(workout.owner_id, block), f"{block['name']} deleted.")


@day_pages.post(f"{editing.BLOCK}/template", form=templates.TemplateDetails, permission=PROGRAMS.CREATE)
async def save_as_template(ctx: Context, workout: editing.OpenedWorkout, form: templates.TemplateDetails) -> Redirect:
    """Create a template of what a workout plans."""
    template = await templates.create_from_block(ctx, workout.owner, workout.block_id, form)
    return Redirect(f"/app/templates/{template['_id']}", f"Template {template['name']} created.")


# --- Logging what a client did: the results of an item, and the session as a whole; and comments on a workout ---------


AMOUNT_FIELDS = {"reps": "Reps", "seconds": "Time", "meters": "Meters", "load": "Load", "rpe": "RPE", "rir": "RIR"}
_AMOUNTS_BY_MEASURE = {"reps": ("reps", "load"), "time": ("seconds", "load"), "distance": ("meters", "seconds", "load")}


def _log_rows(item: item_models.WorkItem, unit: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of an exercise or circuit, loads in `unit`; other items have none.

    A row has the fields (name, label, initial value) that a set of its type is logged with (reps and load for one that
    is not planned) or that were logged. Until the item is logged, they have what is planned.
    """
    prefill, is_circuit = not items.is_recorded(item), item["type"] == "CIRCUIT"
    for each in results.pair_sets(item):
        label, planned, logged = each.label if is_circuit else f"Set {each.label}", each.planned, each.logged
        if is_circuit and planned is None:
            label = f"Round {each.round}: no longer planned"
        offered = (*_AMOUNTS_BY_MEASURE[planned["type"].partition("_")[0] if planned else "reps"], "rpe", "rir")
        amounts, done, plan = [], cast("Document", logged or {}), cast("Document", planned or {})
        for name, field_label in AMOUNT_FIELDS.items():
            value = done.get(name)
            if value is None and name not in offered:
                continue
            if prefill:
                value = plan.get(results.PLANNED_FIELDS.get(name, ("",))[0])
            shown = descriptions.write_seconds(value) if name == "seconds" else value
            amounts.append((name, f"{field_label}, {unit}" if name == "load" else field_label, shown))
        place = {"exerciseId": each.exercise_id, "round": each.round or None} if each.exercise_id else {}
        yield {
            "label": label,
            "index": each.index,
            "planned": descriptions.describe_set(planned, unit) if planned else "",
            "isCompleted": logged["isCompleted"] if logged else prefill,
            "amounts": amounts,
            **place,
        }


log_pages = editing.WorkoutPages()
_LOG = f"{editing.ITEM}/log"
_MAX_ROWS, _MAX_COMMENTS = 300, 50


@log_pages.get(f"{editing.BLOCK}/log", template="workout/session.html")
async def session_page(ctx: Context, workout: editing.OpenedWorkout) -> dict[str, Any]:
    """The form for the duration, RPE, feeling and comment of a session."""
    variables = await workout.load_variables(ctx)
    texts = await logs.get_client_texts(ctx, workout.owner_id, workout.block_id)
    return {
        **variables,
        "version": variables["block"]["version"],
        "client_texts": texts["clientTexts"],
        "feelings": results.FEELINGS,
    }


@log_pages.post(f"{editing.BLOCK}/log", form=WorkoutBlockLog(), on=session_page)
async def log_session(ctx: Context, workout: editing.OpenedWorkout, form: BlockLog) -> Redirect:
    """Record the duration, RPE, feeling and comment of a session."""
    await logs.log_block(ctx, workout.owner_id, workout.block_id, form)
    return Redirect(workout.path, "Session saved.")


@log_pages.get(_LOG, template="workout/log.html")
async def log_page(ctx: Context, workout: editing.OpenedWorkout, witem_id: ObjectId) -> dict[str, Any]:
    """The form that logs an item, prefilled with the plan until it is logged."""
    variables = await workout.load_variables(ctx)
    block, unit = variables["block"], ctx.caller.company.load_unit
    item = block["items"][items.find_index(block["items"], witem_id)]
    items.require_visible_log(ctx.caller, item)
    rows = list(_log_rows(item, unit))
    texts = await logs.get_client_texts(ctx, workout.owner_id, workout.block_id)
    return {
        **variables,
        "version": block["version"],
        "item": item,
        "title": descriptions.describe_item(item, unit)["title"],
        "rows": rows,
        "too_many_rows": len(rows) > _MAX_ROWS,
        "is_recorded": items.is_recorded(item),
        # By the identifier of the question or metric.
        "recorded_values": recorded_answers(item)
        | {str(value["metricId"]): value["value"] for value in item.get("values") or ()},
        "client_texts": texts["ofItems"].get(witem_id, []),
        "options": {
            str(question["_id"]): [("", "–"), *((option, option) for option in question["options"])]
            for question in (item["form"]["questions"] if item["type"] == "FORM" else ())
        },
    }


@log_pages.post(f"{_LOG}/undo", on=log_page, deletes=True)
async def clear_log(ctx: Context, workout: editing.OpenedWorkout, witem_id: ObjectId) -> Redirect:
    """Delete everything that was logged for an item, and what was derived from it."""
    await logs.clear_log(ctx, workout.owner_id, workout.block_id, witem_id)
    return Redirect(workout.path, "Log cleared.")


_Made = Callable[[Context, editing.OpenedWorkout, Any], Awaitable[Document]]


def _declare_log(path: str, name: str, form: Schema) -> Callable[[_Made], _Made]:
    """Declare the form `name` that logs an item, with the function that returns what the form means in the log."""

    def declare(read: _Made) -> _Made:
        async def log(ctx: Context, workout: editing.OpenedWorkout, witem_id: ObjectId, form: Any) -> Redirect:
            item_log: Any = {**take(item_models.ItemLog, form), **await read(ctx, workout, form)}
            await logs.log_item(ctx, workout.owner_id, workout.block_id, witem_id, item_log)
            return Redirect(workout.path, "Log saved.")

        log.__name__ = name
        log_pages.post(f"{_LOG}/{path}", form=form, on=log_page)(log)
        return read

    return declare


@_declare_log("exercise", "log_exercise", input_of(results.Confirmation, ExerciseItemLog)())
@_declare_log("circuit", "log_circuit", input_of(results.Confirmation, CircuitItemLog)())
async def _read_sets(_ctx: Context, _workout: editing.OpenedWorkout, form: item_models.ItemLog) -> Document:
    """Return the sets without empty rows; what they were for (warming up, dropping the load) stays as it is logged."""
    rows = [cast("Document", row) for row in form["customerSets"]]
    names = ("index", "exerciseId", "round", "isCompleted", *AMOUNT_FIELDS)
    used = [row for row in rows if row["isCompleted"] or any(row[name] is not None for name in AMOUNT_FIELDS)]
    return {"customerSets": [{name: value for name, value in row.items() if name in names} for row in used]}


@_declare_log("task", "log_task", TaskItemLog())
async def _read_task(_ctx: Context, _workout: editing.OpenedWorkout, _form: item_models.ItemLog) -> Document:
    return {}


@_declare_log("metrics", "log_metrics", input_of(results.ValuesForm, TaskItemLog)())
async def _read_values(ctx: Context, workout: editing.OpenedWorkout, form: results.ValuesForm) -> Document:
    require_permission(ctx.caller, METRICS.VIEW)
    await results.require_confirmed_rows(ctx, workout.owner_id, workout.block_id, form)
    return {"values": results.given_values(form)}


@_declare_log("form", "log_form", ANSWERS_FORM)
async def _read_answers(ctx: Context, _workout: editing.OpenedWorkout, form: FormAnswers) -> Document:
    require_permission(ctx.caller, FORMS.VIEW)
    return {"answers": given_answers(form)}


class CommentForm(MessageText):
    """A comment on the workout, or on one of its items."""

    item: ObjectId | None


@log_pages.post(f"{editing.BLOCK}/comments", form=CommentForm)
async def add_comment(ctx: Context, workout: editing.OpenedWorkout, form: CommentForm) -> Redirect:
    """Send a message about the workout to the client."""
    about: MessageSubjectInput = {"wblockId": workout.block_id, "witemId": form["item"]}
    await conversation.create(ctx, workout.owner_id, {"text": form["text"], "about": about})
    return Redirect(f"{workout.path}#comments", "Comment sent.")


def declare_workout_pages(of: editing.WorkoutOwnerPages) -> None:
    """Declare the pages of the workouts of one type of owner."""
    for declared in (pages, cards.pages, editing.pages):
        declared.declare_for(of)
    if not of.is_single:
        day_pages.declare_for(of)
    if of.is_of_client:
        log_pages.declare_for(of)
