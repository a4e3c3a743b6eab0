"""Logging what a client did: the results of an item, and the session as a whole; and comments on a workout."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict, TypeVar

from marshmallow import Schema

from coaching_service.core.auth.access import require_permission
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.field_schemas import input_of
from coaching_service.core.ids import ObjectId
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.conversation.models import MessageSubjectInput, MessageText
from coaching_service.progress.logs import service as logs
from coaching_service.progress.logs.schemas import (
    ITEM_LOG,
    CircuitItemLog,
    ExerciseItemLog,
    TaskItemLog,
    WorkoutBlockLog,
)
from coaching_service.training.workouts.blocks.models import BlockLog
from coaching_service.training.workouts.items import content as items
from coaching_service.training.workouts.items.descriptions import describe_item, describe_set
from coaching_service.training.workouts.items.models import CircuitItem, ExerciseItem, LoggedSets, WorkItem
from coaching_service.training.workouts.sets import CustomerSet, PlannedSet
from coaching_service.web.pages import Redirect
from coaching_service.web.views.check_ins import ANSWERS_FORM, FormAnswers, answer_requests, recorded_answers
from coaching_service.web.views.results import (
    FEELINGS,
    Confirmation,
    ValuesForm,
    entered_values,
    pair_sets,
    require_confirmed_rows,
)
from coaching_service.web.views.workout.owner_pages import BLOCK, ITEM, OpenedWorkout, WorkoutPages

AmountField = Literal["reps", "seconds", "meters", "load", "rpe", "rir"]
_PlannedField = Literal["minPlannedReps", "minPlannedSeconds", "plannedMeters", "load"]
AMOUNT_FIELDS: dict[AmountField, str] = {
    "reps": "Reps",
    "seconds": "Seconds",
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
    value: float | None


class LogRow(TypedDict):
    """One set in the form; `exerciseId` and `round` only in circuits. `planned` describes the planned set."""

    label: str
    index: int
    exerciseId: NotRequired[ObjectId | None]
    round: NotRequired[int | None]
    planned: str
    isCompleted: bool
    amounts: list[Amount]


def _log_rows(item: WorkItem, unit: str) -> list[LogRow]:
    """Return the rows of an exercise or circuit, loads in `unit`; other items have none."""
    prefill = not items.is_recorded(item)
    if item["type"] == "EXERCISE":
        return list(_exercise_rows(item, unit, prefill))
    if item["type"] == "CIRCUIT":
        return list(_circuit_rows(item, unit, prefill))
    return []


def _exercise_rows(exercise: ExerciseItem, unit: str, prefill: bool) -> Iterator[LogRow]:
    for index, label, planned, logged in pair_sets(exercise):
        exercise_id = logged["exerciseId"] if logged else None
        row = _row(f"Set {label}", index, planned, logged, unit, prefill)
        yield {**row, "exerciseId": exercise_id, "round": None} if exercise_id else row


def _circuit_rows(circuit: CircuitItem, unit: str, prefill: bool) -> Iterator[LogRow]:
    """Yield the planned sets by round, then the logged sets that are no longer planned."""
    logged = {(each["exerciseId"], each["round"], each["index"]): each for each in circuit["customerSets"]}
    for round_number in range(1, circuit["rounds"] + 1):
        for entry in circuit["circuitExercises"]:
            for planned in entry["sets"]:
                exercise_id, index = entry["exerciseId"], planned["index"]
                label = f"Round {round_number}: {entry['exercise']['name']}"
                if len(entry["sets"]) > 1:
                    label += f", set {index}"
                row = _row(label, index, planned, logged.pop((exercise_id, round_number, index), None), unit, prefill)
                yield {**row, "exerciseId": exercise_id, "round": round_number}
    for unplanned in logged.values():
        label = f"Round {unplanned['round']}: no longer planned"
        row = _row(label, unplanned["index"], None, unplanned, unit, prefill)
        yield {**row, "exerciseId": unplanned["exerciseId"], "round": unplanned["round"]}


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
        amounts.append(Amount(name, label_with_unit, planned_value if prefill else logged_value))
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
T = TypeVar("T", bound=Mapping[str, Any])


class _SetsForm(LoggedSets, Confirmation):
    """The sets of an exercise or circuit."""


@pages.get(f"{BLOCK}/log", template="workout/session.html")
async def session_page(ctx: Context, workout: OpenedWorkout) -> dict[str, Any]:
    """The form for the duration, RPE, feeling and comment of a session."""
    variables = await workout.load_variables(ctx)
    texts = await logs.get_client_texts(ctx, workout.owner_id, workout.block_id)
    return {
        **variables,
        "version": variables["block"]["version"],
        "client_texts": texts["clientTexts"],
        "feelings": FEELINGS,
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
    _require_visible_log(ctx, item)
    rows = _log_rows(item, unit)
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
    block = await workout.read(ctx)
    _require_visible_log(ctx, block["items"][items.find_index(block["items"], witem_id)])
    await logs.log_item(ctx, workout.owner_id, workout.block_id, witem_id, ITEM_LOG.load({"isCompleted": False}))
    return Redirect(workout.path, "Log cleared.")


def _require_visible_log(ctx: Context, item: WorkItem) -> None:
    """Raise Forbidden if the caller may not see what is recorded in an item: the form would replace it."""
    if not items.may_see_log(ctx.caller, item):
        require_permission(ctx.caller, items.LOG_AREAS[item["type"]].VIEW)


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


async def _read_sets(_: Context, __: OpenedWorkout, ___: ObjectId, form: _SetsForm) -> Document:
    """Return the sets without empty rows."""
    return {"customerSets": [_set_request(row) for row in form["customerSets"] if _has_value(row)]}


async def _read_values(ctx: Context, workout: OpenedWorkout, _: ObjectId, form: ValuesForm) -> Document:
    await require_confirmed_rows(ctx, workout.owner_id, workout.block_id, form)
    entered = entered_values(form["values"]).values()
    return {"values": [{"metricId": str(metric_id), "value": value} for metric_id, value in entered]}


async def _read_answers(_: Context, _workout: OpenedWorkout, _item: ObjectId, form: FormAnswers) -> Document:
    return {"answers": answer_requests(form)}


async def _read_nothing(*_: object) -> Document:
    return {}


def _has_value(row: CustomerSet) -> bool:
    return row["isCompleted"] or any(row[name] is not None for name in AMOUNT_FIELDS)


def _set_request(row: CustomerSet) -> Document:
    request: Document = {"index": row["index"], "isCompleted": row["isCompleted"]}
    request |= {name: row[name] for name in AMOUNT_FIELDS}
    if row["exerciseId"] is not None:
        request["exerciseId"] = str(row["exerciseId"])
    if row["round"] is not None:
        request["round"] = row["round"]
    return request


def _declare_form(
    name: str,
    schema: Schema,
    read_results: Callable[[Context, OpenedWorkout, ObjectId, T], Awaitable[Document]],
) -> None:
    """Declare the form that logs one type of item; `read_results` returns its results as REST receives them."""

    async def log_item(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, form: T) -> Redirect:
        """Log the results of an item."""
        if (area := items.LOG_AREAS.get(name.upper())) is not None:
            require_permission(ctx.caller, area.VIEW)
        log = ITEM_LOG.load({**form, **await read_results(ctx, workout, witem_id, form)})
        await logs.log_item(ctx, workout.owner_id, workout.block_id, witem_id, log)
        return Redirect(workout.path, "Log saved.")

    log_item.__name__ = f"log_{name}"
    pages.post(f"{_LOG}/{name}", form=schema, on=log_page)(log_item)


_declare_form("exercise", input_of(_SetsForm, ExerciseItemLog)(), _read_sets)
_declare_form("circuit", input_of(_SetsForm, CircuitItemLog)(), _read_sets)
_declare_form("task", TaskItemLog(), _read_nothing)
_declare_form("metrics", input_of(ValuesForm, TaskItemLog)(), _read_values)
_declare_form("form", ANSWERS_FORM, _read_answers)


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
