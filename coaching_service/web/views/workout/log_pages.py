"""Logging what a client did: the results of an item, and the session as a whole; and comments on a workout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict, cast

from coaching_service.core.auth import FORMS, METRICS, require_permission
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.conversation.messages import MessageSubjectInput, MessageText
from coaching_service.progress.logs import service as logs
from coaching_service.progress.logs.schemas import CircuitItemLog, ExerciseItemLog, TaskItemLog, WorkoutBlockLog
from coaching_service.training.workouts.blocks.models import BlockLog
from coaching_service.training.workouts.items import service as items
from coaching_service.training.workouts.items.descriptions import describe_item, describe_set, write_seconds
from coaching_service.training.workouts.items.models import ItemLog, WorkItem
from coaching_service.training.workouts.sets import CustomerSet, PlannedSet
from coaching_service.web.pages import Redirect
from coaching_service.web.views import results
from coaching_service.web.views.check_ins import ANSWERS_FORM, FormAnswers, given_answers, recorded_answers
from coaching_service.web.views.workout.owner_pages import BLOCK, ITEM, OpenedWorkout, WorkoutPages

AmountField = Literal["reps", "seconds", "meters", "load", "rpe", "rir"]
_PlannedField = Literal["minPlannedReps", "minPlannedSeconds", "plannedMeters", "load"]
AMOUNT_FIELDS: dict[AmountField, str] = {
    "reps": "Reps",
    "seconds": "Time",
    "meters": "Meters",
    "load": "Load",
    "rpe": "RPE",
    "rir": "RIR",
}
_PLANNED_FIELDS: dict[AmountField, _PlannedField] = {
    "reps": "minPlannedReps",
    "seconds": "minPlannedSeconds",
    "meters": "plannedMeters",
    "load": "load",
}
_AMOUNTS_BY_MEASURE = {"reps": ("reps", "load"), "time": ("seconds", "load"), "distance": ("meters", "seconds", "load")}


class Amount(NamedTuple):
    """One field of a row: the field's name, its label, and its initial value."""

    name: AmountField
    label: str
    value: float | str | None


class LogRow(TypedDict):
    """One set in the form; `exerciseId` and `round` only in circuits. `planned` describes the planned set."""

    label: str
    index: int
    exerciseId: NotRequired[ObjectId | None]
    round: NotRequired[int | None]
    planned: str
    isCompleted: bool
    amounts: list[Amount]


def _log_rows(item: WorkItem, unit: str) -> Iterator[LogRow]:
    """Yield the rows of an exercise or circuit, loads in `unit`; other items have none."""
    prefill, is_circuit = not items.is_recorded(item), item["type"] == "CIRCUIT"
    for each in results.pair_sets(item):
        label = each.label if is_circuit else f"Set {each.label}"
        if is_circuit and each.planned is None:
            label = f"Round {each.round}: no longer planned"
        row = _row(label, each.index, each.planned, each.logged, unit, prefill)
        yield {**row, "exerciseId": each.exercise_id, "round": each.round or None} if each.exercise_id else row


def _row(
    label: str, index: int, planned: PlannedSet | None, logged: CustomerSet | None, unit: str, prefill: bool
) -> LogRow:
    amounts = []
    for name, field_label in AMOUNT_FIELDS.items():
        logged_value = logged.get(name) if logged else None
        if logged_value is None and not _is_offered(name, planned):
            continue
        planned_value = planned.get(_PLANNED_FIELDS[name]) if planned and name in _PLANNED_FIELDS else None
        label_with_unit = f"{field_label}, {unit}" if name == "load" else field_label
        value = planned_value if prefill else logged_value
        amounts.append(Amount(name, label_with_unit, write_seconds(value) if name == "seconds" else value))
    return {
        "label": label,
        "index": index,
        "planned": describe_set(planned, unit) if planned else "",
        "isCompleted": logged["isCompleted"] if logged else prefill,
        "amounts": amounts,
    }


def _is_offered(name: AmountField, planned: PlannedSet | None) -> bool:
    """Return whether a set of this type is logged with this amount; reps and load for a set that is not planned."""
    measure = planned["type"].partition("_")[0] if planned else "reps"
    return name in _AMOUNTS_BY_MEASURE[measure] or name in ("rpe", "rir")


pages = WorkoutPages()
_LOG = f"{ITEM}/log"
_MAX_ROWS, _MAX_COMMENTS = 300, 50


class _SetsForm(ItemLog, results.Confirmation):
    """The log of an exercise or circuit."""


@pages.get(f"{BLOCK}/log", template="workout/session.html")
async def session_page(ctx: Context, workout: OpenedWorkout) -> dict[str, Any]:
    """The form for the duration, RPE, feeling and comment of a session."""
    variables = await workout.load_variables(ctx)
    texts = await logs.get_client_texts(ctx, workout.owner_id, workout.block_id)
    return {
        **variables,
        "version": variables["block"]["version"],
        "client_texts": texts["clientTexts"],
        "feelings": results.FEELINGS,
    }


@pages.post(f"{BLOCK}/log", form=WorkoutBlockLog(), on=session_page)
async def log_session(ctx: Context, workout: OpenedWorkout, form: BlockLog) -> Redirect:
    """Record the duration, RPE, feeling and comment of a session."""
    await logs.log_block(ctx, workout.owner_id, workout.block_id, form)
    return Redirect(workout.path, "Session saved.")


@pages.get(_LOG, template="workout/log.html")
async def log_page(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId) -> dict[str, Any]:
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
        "title": describe_item(item, unit)["title"],
        "rows": rows,
        "too_many_rows": len(rows) > _MAX_ROWS,
        "is_recorded": items.is_recorded(item),
        "recorded_values": _recorded_values(item),
        "client_texts": texts["ofItems"].get(witem_id, []),
        "options": _question_options(item),
        "log_path": f"{variables['block_path']}/items/{witem_id}/log",
    }


@pages.post(f"{_LOG}/undo", on=log_page, deletes=True)
async def clear_log(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId) -> Redirect:
    """Delete everything that was logged for an item, and what was derived from it."""
    await logs.clear_log(ctx, workout.owner_id, workout.block_id, witem_id)
    return Redirect(workout.path, "Log cleared.")


def _recorded_values(item: Document) -> dict[str, Any]:
    """Return the recorded answers or metric values, by the identifier of the question or metric."""
    answers = recorded_answers(item)
    return answers | {str(value["metricId"]): value["value"] for value in item.get("values") or ()}


def _question_options(item: Document) -> dict[str, list[tuple[str, str]]]:
    """Return the options of each question of a form item, by the question's identifier."""
    questions = item["form"]["questions"] if item["type"] == "FORM" else []
    return {
        str(question["_id"]): [("", "–"), *((option, option) for option in question["options"])]
        for question in questions
    }


@pages.post(f"{_LOG}/exercise", form=input_of(results.Confirmation, ExerciseItemLog)(), on=log_page)
async def log_exercise(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, form: _SetsForm) -> Redirect:
    """Log the sets of an exercise."""
    return await _log_sets(ctx, workout, witem_id, form)


@pages.post(f"{_LOG}/circuit", form=input_of(results.Confirmation, CircuitItemLog)(), on=log_page)
async def log_circuit(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, form: _SetsForm) -> Redirect:
    """Log the sets of a circuit."""
    return await _log_sets(ctx, workout, witem_id, form)


@pages.post(f"{_LOG}/task", form=TaskItemLog(), on=log_page)
async def log_task(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, form: ItemLog) -> Redirect:
    """Log a task or reminder."""
    return await _log_item(ctx, workout, witem_id, form)


@pages.post(f"{_LOG}/metrics", form=input_of(results.ValuesForm, TaskItemLog)(), on=log_page)
async def log_metrics(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, form: results.ValuesForm) -> Redirect:
    """Log the values of a metric set."""
    require_permission(ctx.caller, METRICS.VIEW)
    await results.require_confirmed_rows(ctx, workout.owner_id, workout.block_id, form)
    return await _log_item(ctx, workout, witem_id, {**take(ItemLog, form), "values": results.given_values(form)})


@pages.post(f"{_LOG}/form", form=ANSWERS_FORM, on=log_page)
async def log_form(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, form: FormAnswers) -> Redirect:
    """Log the answers to a form."""
    require_permission(ctx.caller, FORMS.VIEW)
    return await _log_item(ctx, workout, witem_id, {**take(ItemLog, form), "answers": given_answers(form)})


async def _log_sets(ctx: Context, workout: OpenedWorkout, item_id: ObjectId, form: _SetsForm) -> Redirect:
    """Log the sets without empty rows; what they were for (warming up, dropping the load) stays as it is logged."""
    rows = [
        row
        for row in form["customerSets"]
        if row["isCompleted"] or any(row[name] is not None for name in AMOUNT_FIELDS)
    ]
    names = ("index", "exerciseId", "round", "isCompleted", *AMOUNT_FIELDS)
    sets = [cast("CustomerSet", {name: value for name, value in row.items() if name in names}) for row in rows]
    return await _log_item(ctx, workout, item_id, {**take(ItemLog, form), "customerSets": sets})


async def _log_item(ctx: Context, workout: OpenedWorkout, item_id: ObjectId, log: ItemLog) -> Redirect:
    await logs.log_item(ctx, workout.owner_id, workout.block_id, item_id, log)
    return Redirect(workout.path, "Log saved.")


class CommentForm(MessageText):
    """A comment on the workout, or on one of its items."""

    item: ObjectId | None


async def load_comments(ctx: Context, customer_id: ObjectId, block_id: ObjectId) -> dict[str, Any]:
    """Load the newest comments on a client's workout, oldest first."""
    page = await conversation.list_messages(ctx, customer_id, limit=_MAX_COMMENTS, block_id=block_id)
    return {"comments": page["docs"][::-1], "has_more_comments": page["hasMore"]}


@pages.post(f"{BLOCK}/comments", form=CommentForm)
async def add_comment(ctx: Context, workout: OpenedWorkout, form: CommentForm) -> Redirect:
    """Send a message about the workout to the client."""
    about: MessageSubjectInput = {"wblockId": workout.block_id, "witemId": form["item"]}
    await conversation.create(ctx, workout.owner_id, {"text": form["text"], "about": about})
    return Redirect(f"{workout.path}#comments", "Comment sent.")
