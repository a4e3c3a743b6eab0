"""Logging what a client did: the results of an item, and the duration and RPE of the session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from marshmallow import Schema

from coaching_service.core.auth.access import require_permission
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.field_schemas import input_of
from coaching_service.core.ids import ObjectId
from coaching_service.progress.logs import service as logs
from coaching_service.progress.logs.schemas import (
    ITEM_LOG,
    CircuitItemLog,
    ExerciseItemLog,
    TaskItemLog,
    WorkoutBlockLog,
)
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.log_models import BlockLog
from coaching_service.training.workouts.blocks.owners import ClientCalendar
from coaching_service.training.workouts.items import content as items
from coaching_service.training.workouts.items.descriptions import describe_item
from coaching_service.training.workouts.items.models import LoggedSets, WorkItem
from coaching_service.training.workouts.sets.models import CustomerSet
from coaching_service.web.pages import Redirect
from coaching_service.web.views.far_values import Confirmation, ValuesForm, entered_values, require_confirmed_rows
from coaching_service.web.views.form_answers import ANSWERS_FORM, FormAnswers, answer_requests, recorded_answers
from coaching_service.web.views.train.workout.feelings import FEELINGS
from coaching_service.web.views.workout.log_rows import AMOUNT_FIELDS, log_rows
from coaching_service.web.views.workout.owner_pages import BLOCK, ITEM, Handler, WorkoutOwnerPages
from coaching_service.web.views.workout.unusual_loads import loads_of_item, require_confirmed_loads, row_loads

_LOG = f"{ITEM}/log"
_MAX_ROWS = 300
T = TypeVar("T", bound=Mapping[str, Any])


class _SetsForm(LoggedSets, Confirmation):
    """The sets of an exercise or circuit."""


def declare(owner_pages: WorkoutOwnerPages) -> None:
    """Declare the pages on which a coach logs a client's results."""
    _declare_session_page(owner_pages)
    page = _declare_log_page(owner_pages)
    _declare_log_form(owner_pages, page, "exercise", input_of(_SetsForm, ExerciseItemLog)(), _read_sets)
    _declare_log_form(owner_pages, page, "circuit", input_of(_SetsForm, CircuitItemLog)(), _read_sets)
    _declare_log_form(owner_pages, page, "task", TaskItemLog(), _read_nothing)
    _declare_log_form(owner_pages, page, "metrics", input_of(ValuesForm, TaskItemLog)(), _read_values)
    _declare_log_form(owner_pages, page, "form", ANSWERS_FORM, _read_answers)


def _declare_session_page(owner_pages: WorkoutOwnerPages) -> None:
    @owner_pages.get(f"{BLOCK}/log", permission=owner_pages.edit, template="workout/session.html")
    async def session_page(ctx: Context, owner_id: ObjectId, block_id: ObjectId) -> dict[str, Any]:
        """The form for the duration, RPE, feeling and comment of a session."""
        variables = await owner_pages.load_variables(ctx, owner_id, block_id)
        texts = await logs.get_client_texts(ctx, owner_id, block_id)
        return {
            **variables,
            "version": variables["block"]["version"],
            "client_texts": texts["clientTexts"],
            "feelings": FEELINGS,
        }

    @owner_pages.post(f"{BLOCK}/log", form=WorkoutBlockLog(), on=session_page)
    async def log_session(ctx: Context, owner_id: ObjectId, block_id: ObjectId, form: BlockLog) -> Redirect:
        """Record the duration, RPE, feeling and comment of a session."""
        await logs.log_block(ctx, owner_id, block_id, form)
        return Redirect(owner_pages.block_path(owner_id, block_id), "Session saved.")


def _declare_log_page(owner_pages: WorkoutOwnerPages) -> Handler:
    @owner_pages.get(_LOG, permission=owner_pages.edit, template="workout/log.html")
    async def log_page(ctx: Context, owner_id: ObjectId, block_id: ObjectId, witem_id: ObjectId) -> dict[str, Any]:
        """The form that logs an item, prefilled with the plan until it is logged."""
        variables = await owner_pages.load_variables(ctx, owner_id, block_id)
        block, unit = variables["block"], ctx.caller.company.load_unit
        item = block["items"][items.find_index(block["items"], witem_id)]
        _require_visible_log(ctx, item)
        rows = log_rows(item, unit)
        texts = await logs.get_client_texts(ctx, owner_id, block_id)
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

    @owner_pages.post(f"{_LOG}/undo", on=log_page)
    async def clear_log(ctx: Context, owner_id: ObjectId, block_id: ObjectId, witem_id: ObjectId) -> Redirect:
        """Delete everything that was logged for an item, and what was derived from it."""
        block = await workouts.get(ctx, owner_pages.owner_type(owner_id), block_id)
        _require_visible_log(ctx, block["items"][items.find_index(block["items"], witem_id)])
        await logs.log_item(ctx, owner_id, block_id, witem_id, ITEM_LOG.load({"isCompleted": False}))
        return Redirect(owner_pages.block_path(owner_id, block_id), "Log cleared.")

    return log_page


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


def _declare_log_form(
    owner_pages: WorkoutOwnerPages,
    page: Handler,
    name: str,
    schema: Schema,
    read_results: Callable[[Context, ObjectId, ObjectId, ObjectId, T], Awaitable[Document]],
) -> None:
    """Declare the form that logs one type of item; `read_results` returns its results as REST receives them."""

    async def log_item(ctx: Context, owner_id: ObjectId, block_id: ObjectId, witem_id: ObjectId, form: T) -> Redirect:
        """Log the results of an item."""
        if (area := items.LOG_AREAS.get(name.upper())) is not None:
            require_permission(ctx.caller, area.VIEW)
        results = await read_results(ctx, owner_id, block_id, witem_id, form)
        await logs.log_item(ctx, owner_id, block_id, witem_id, ITEM_LOG.load({**form, **results}))
        return Redirect(owner_pages.block_path(owner_id, block_id), "Log saved.")

    log_item.__name__ = f"log_{name}"
    owner_pages.post(f"{_LOG}/{name}", form=schema, on=page)(log_item)


async def _read_sets(
    ctx: Context, customer_id: ObjectId, block_id: ObjectId, item_id: ObjectId, form: _SetsForm
) -> Document:
    """Return the sets without empty rows. Raises InvalidFields for loads that are unusual and not confirmed."""
    block = await workouts.get(ctx, ClientCalendar(customer_id), block_id)
    known = loads_of_item(block["items"][items.find_index(block["items"], item_id)])
    require_confirmed_loads(ctx, row_loads("customerSets", form["customerSets"]), known, confirmed=form["confirmed"])
    return {"customerSets": [_set_request(row) for row in form["customerSets"] if _has_value(row)]}


async def _read_values(
    ctx: Context, customer_id: ObjectId, block_id: ObjectId, _: ObjectId, form: ValuesForm
) -> Document:
    await require_confirmed_rows(ctx, customer_id, block_id, form)
    entered = entered_values(form["values"]).values()
    return {"values": [{"metricId": str(metric_id), "value": value} for metric_id, value in entered]}


async def _read_answers(
    _: Context, _customer: ObjectId, _block: ObjectId, _item: ObjectId, form: FormAnswers
) -> Document:
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
