"""Logging what a client did: the results of an item, and the duration and RPE of the session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

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
from coaching_service.training.workouts.blocks.models import BlockLog
from coaching_service.training.workouts.items import content as items
from coaching_service.training.workouts.items.descriptions import describe_item
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.web.pages import Redirect
from coaching_service.web.views.far_values import Confirmation, ValuesForm, require_confirmed_rows
from coaching_service.web.views.form_answers import ANSWERS_FORM, FormAnswers, answer_requests, recorded_answers
from coaching_service.web.views.train.workout.feelings import FEELINGS
from coaching_service.web.views.workout.log_rows import AMOUNT_FIELDS, log_rows
from coaching_service.web.views.workout.owner_pages import BLOCK, ITEM, Handler, WorkoutOwnerPages
from coaching_service.web.views.workout.unusual_loads import loads_of_item, require_confirmed_loads, row_loads

_LOG = f"{ITEM}/log"
_MAX_ROWS = 300


def declare(owner_pages: WorkoutOwnerPages) -> None:
    """Declare the pages on which a coach logs a client's results."""
    _declare_session_page(owner_pages)
    page = _declare_log_page(owner_pages)
    _declare_log_form(owner_pages, page, "exercise", input_of(Confirmation, ExerciseItemLog)())
    _declare_log_form(owner_pages, page, "circuit", input_of(Confirmation, CircuitItemLog)())
    _declare_log_form(owner_pages, page, "task", TaskItemLog())
    _declare_log_form(owner_pages, page, "metrics", input_of(ValuesForm, TaskItemLog)())
    _declare_log_form(owner_pages, page, "form", ANSWERS_FORM)


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
    async def log_session(ctx: Context, owner_id: ObjectId, block_id: ObjectId, form: dict[str, Any]) -> Redirect:
        """Record the duration, RPE, feeling and comment of a session."""
        await logs.log_block(ctx, owner_id, block_id, cast("BlockLog", form))
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


def _declare_log_form(owner_pages: WorkoutOwnerPages, page: Handler, name: str, schema: Schema) -> None:
    """Declare the form that logs one type of item."""

    async def log_item(
        ctx: Context, owner_id: ObjectId, block_id: ObjectId, witem_id: ObjectId, form: dict[str, Any]
    ) -> Redirect:
        """Log the results of an item."""
        if (area := items.LOG_AREAS.get(name.upper())) is not None:
            require_permission(ctx.caller, area.VIEW)
        if "values" in form:
            await require_confirmed_rows(ctx, owner_id, block_id, cast("ValuesForm", form))
        if "customerSets" in form:
            block = await workouts.get(ctx, owner_pages.owner_type(owner_id), block_id)
            known = loads_of_item(block["items"][items.find_index(block["items"], witem_id)])
            loads = row_loads("customerSets", form["customerSets"])
            require_confirmed_loads(ctx, loads, known, confirmed=form["confirmed"])
        await logs.log_item(ctx, owner_id, block_id, witem_id, ITEM_LOG.load(_log_request(form)))
        return Redirect(owner_pages.block_path(owner_id, block_id), "Log saved.")

    log_item.__name__ = f"log_{name}"
    owner_pages.post(f"{_LOG}/{name}", form=schema, on=page)(log_item)


def _log_request(form: Mapping[str, Any]) -> Document:
    """Return a submitted form as the log request of the REST interface, without its empty rows."""
    request: Document = {name: form[name] for name in ("isCompleted", "comment", "pain", "version") if name in form}
    if "customerSets" in form:
        request["customerSets"] = [_set_request(row) for row in form["customerSets"] if _has_value(row)]
    if "values" in form:
        request["values"] = [
            {"metricId": str(row["metricId"]), "value": row["value"]}
            for row in form["values"]
            if row["value"] is not None
        ]
    if "answers" in form:
        request["answers"] = answer_requests(cast("FormAnswers", form))
    return request


def _has_value(row: Mapping[str, Any]) -> bool:
    return row["isCompleted"] or any(row[name] is not None for name in AMOUNT_FIELDS)


def _set_request(row: Mapping[str, Any]) -> Document:
    request = {name: row[name] for name in ("index", "isCompleted", *AMOUNT_FIELDS)}
    if row["exerciseId"] is not None:
        request["exerciseId"] = str(row["exerciseId"])
    if row["round"] is not None:
        request["round"] = row["round"]
    return request
