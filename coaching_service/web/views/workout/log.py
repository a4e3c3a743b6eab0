"""What a client did, written down by their coach: of an item, and of the whole session. A client's calendar has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, fields, validates_schema

from coaching_service.core.auth.access import coach
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import TEXT_LENGTH, Choice, Identifier, Input, Integer, ListOf, Number, Text
from coaching_service.library.forms.schemas import QUESTION_TYPES
from coaching_service.progress.logs import service as logs
from coaching_service.progress.logs.schemas import (
    ITEM_LOG,
    CircuitItemLog,
    ExerciseItemLog,
    TaskItemLog,
    WorkoutBlockLog,
)
from coaching_service.training.workouts import items
from coaching_service.web.forms import parse_value
from coaching_service.web.pages import Redirect
from coaching_service.web.views.items import described
from coaching_service.web.views.workout.kind import BLOCK, ITEM, Handler, Kind
from coaching_service.web.views.workout.rows_done import AMOUNTS, rows_done

_LOG = f"{ITEM}/log"
_MAX_ROWS = 300


class _Value(Input):
    metricId = Identifier(required=True)
    value = Number(minimum=-1e12, allow_none=True, load_default=None)


class _MetricsDone(TaskItemLog):
    values = ListOf(fields.Nested(_Value), load_default=list)


class _Answer(Input):
    questionId = Identifier(required=True)
    type = Choice(*QUESTION_TYPES, required=True)
    required = fields.Boolean(load_default=False)
    value = Text(max_length=TEXT_LENGTH, allow_blank=True, load_default="")
    chosen = ListOf(Text(max_length=1_000), load_default=list)


class _FormDone(TaskItemLog):
    answers = ListOf(fields.Nested(_Answer), load_default=list)

    @validates_schema
    def answered(self, data: Mapping[str, Any], **_: Any) -> None:
        """What must be answered is, unless the form is not done yet."""
        open_ones = [at for at, each in enumerate(data["answers"]) if each["required"] and _answer(each) is None]
        if data["isCompleted"] and open_ones:
            raise ValidationError({"answers": {at: {"value": ["must be answered"]} for at in open_ones}})


def declare(kind: Kind) -> None:
    """Declare the pages on which a coach writes down what a client did."""
    _declare_session(kind)
    page = _declare_page(kind)
    for name, form in (("exercise", ExerciseItemLog()), ("circuit", CircuitItemLog()), ("task", TaskItemLog())):
        _declare_form(kind, page, name, form)
    _declare_form(kind, page, "metrics", _MetricsDone())
    _declare_form(kind, page, "form", _FormDone())


def _declare_session(kind: Kind) -> None:
    @kind.pages.get(f"{BLOCK}/log", access=coach(kind.edit), template="workout/session.html")
    async def session_page(ctx: Context, customer_id: ObjectId, block_id: ObjectId) -> Document:
        """How long the session took, how hard it was, and what the client said."""
        shown = await kind.page(ctx, {"customer_id": customer_id}, block_id)
        return {**shown, "version": shown["block"]["version"]}

    @kind.pages.post(f"{BLOCK}/log", access=coach(kind.edit), form=WorkoutBlockLog(), on=session_page)
    async def log_session(ctx: Context, customer_id: ObjectId, block_id: ObjectId, form: dict[str, Any]) -> Redirect:
        """Keep how the session went."""
        await logs.log_block(ctx, customer_id, block_id, form)
        return Redirect(kind.address({"customer_id": customer_id}, block_id), "How it went is kept.")


def _declare_page(kind: Kind) -> Handler:
    @kind.pages.get(_LOG, access=coach(kind.edit), template="workout/log.html")
    async def log_page(ctx: Context, customer_id: ObjectId, block_id: ObjectId, witem_id: ObjectId) -> Document:
        """What was done of an item; of one without a log, what was planned is offered."""
        shown = await kind.page(ctx, {"customer_id": customer_id}, block_id)
        block, unit = shown["block"], ctx.caller.company.load_unit
        item = block["items"][items.find(block["items"], witem_id)]
        rows = rows_done(item, unit)
        return {
            **shown,
            "version": block["version"],
            "item": item,
            "title": described(item, unit)["title"],
            "rows": rows,
            "too_many": len(rows) > _MAX_ROWS,
            "recorded": items.is_recorded(item),
            "given": _given(item),
            "options": _options(item),
            "there": f"{shown['here']}/items/{witem_id}/log",
            "unit": unit,
        }

    @kind.pages.post(f"{_LOG}/undo", access=coach(kind.edit), on=log_page)
    async def take_back(ctx: Context, customer_id: ObjectId, block_id: ObjectId, witem_id: ObjectId) -> Redirect:
        """Take back all that was recorded of an item, and what followed from it."""
        await logs.log_item(ctx, customer_id, block_id, witem_id, ITEM_LOG.load({"isCompleted": False}))
        return Redirect(kind.address({"customer_id": customer_id}, block_id), "What was recorded is taken back.")

    return log_page


def _given(item: Document) -> Document:
    """The answers or values recorded of an item, by question or metric."""
    answers = {str(each["questionId"]): each["value"] for each in item.get("answers") or ()}
    return answers | {str(each["metricId"]): each["value"] for each in item.get("values") or ()}


def _options(item: Document) -> dict[str, list[tuple[str, str]]]:
    """What the questions of a form offer, to choose one of."""
    questions = item["form"]["questions"] if item["type"] == "FORM" else []
    return {str(each["_id"]): [("", "–"), *((option, option) for option in each["options"])] for each in questions}


def _declare_form(kind: Kind, page: Handler, name: str, schema: Schema) -> None:
    """One form of the page: items of each type have their own."""

    async def log(
        ctx: Context, customer_id: ObjectId, block_id: ObjectId, witem_id: ObjectId, form: dict[str, Any]
    ) -> Redirect:
        """Keep what was done of an item."""
        await logs.log_item(ctx, customer_id, block_id, witem_id, ITEM_LOG.load(_as_sent(form)))
        return Redirect(kind.address({"customer_id": customer_id}, block_id), "What was done is kept.")

    log.__name__ = f"log_{name}"
    kind.pages.post(f"{_LOG}/{name}", access=coach(kind.edit), form=schema, on=page)(log)


def _as_sent(form: Document) -> Document:
    """A form as a log is sent: without the rows in which nothing was said."""
    sent: Document = {name: form[name] for name in ("isCompleted", "comment", "version") if name in form}
    if "customerSets" in form:
        sent["customerSets"] = [_set_as_sent(done) for done in form["customerSets"] if _says(done)]
    if "values" in form:
        measured = [each for each in form["values"] if each["value"] is not None]
        sent["values"] = [{"metricId": str(each["metricId"]), "value": each["value"]} for each in measured]
    if "answers" in form:
        answers = [(str(each["questionId"]), _answer(each)) for each in form["answers"]]
        sent["answers"] = [{"questionId": of, "value": value} for of, value in answers if value is not None]
    return sent


def _says(done: Document) -> bool:
    return done["isCompleted"] or any(done[name] is not None for name, _ in AMOUNTS)


def _set_as_sent(done: Document) -> Document:
    named = {name: str(done[name]) for name in ("exerciseId",) if done[name] is not None}
    rounds = {name: done[name] for name in ("round",) if done[name] is not None}
    return {name: done[name] for name in ("index", "isCompleted", *dict(AMOUNTS))} | named | rounds


def _answer(sent: Document) -> Any:
    """An answer as its question's type has it; None for none."""
    if sent["type"] == "multi":
        return sent["chosen"] or None
    if not sent["value"]:
        return None
    kinds: dict[str, fields.Field[Any]] = {"number": Number(), "rating": Integer()}
    return parse_value(kinds[sent["type"]], sent["value"]) if sent["type"] in kinds else sent["value"]
