"""Settings: forms, with their questions in the order in which clients answer them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core.auth.access import FORMS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.errors import invalid_field
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Input, Integer, ListOf, Text, Version
from coaching_service.library.forms import service as forms
from coaching_service.library.forms.models import (
    QUESTION_LENGTH,
    WITH_OPTIONS,
    Form,
    FormName,
    QuestionDetails,
    QuestionInput,
    QuestionType,
)
from coaching_service.web.pages import ConfirmedAction, Pages, Redirect

pages = Pages("/app/settings/forms")
_MAX_QUESTIONS, _BLANK_ROWS = 100, 3
_LABELS: dict[QuestionType, str] = {
    "text": "Text",
    "number": "Number",
    "rating": "Rating from 1 to 10",
    "choice": "One of several options",
    "multi": "Any of several options",
}


class _QuestionRow(QuestionDetails):
    """A question as it is edited; without a label it is left out, with `out` it is removed."""

    _id: ObjectId | None
    position: Annotated[int | None, Integer(minimum=1, maximum=1_000)]
    out: Annotated[bool, Default(False)]


class _RowChecks(Input):
    label = Text(max_length=QUESTION_LENGTH, allow_blank=True, load_default="")

    @validates_schema
    def has_options(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError for a choice without options."""
        if data["label"] and not data["out"] and data["type"] in WITH_OPTIONS and not data["options"]:
            raise ValidationError("must have options, one in each line", "options")


_ROWS = ListOf(fields.Nested(input_of(_QuestionRow, _RowChecks)), maximum=_MAX_QUESTIONS + _BLANK_ROWS)


class _NewForm(FormName):
    questions: Annotated[list[_QuestionRow], _ROWS, Default(list)]


class _FormUpdate(_NewForm):
    version: Annotated[int, Version()]


class _Row(QuestionDetails):
    """A row of the table of questions; `_id` is empty for a new question."""

    _id: str


_BLANK: _Row = {"_id": "", "label": "", "type": "text", "options": [], "required": False}


def _path(form_id: ObjectId) -> str:
    return f"{pages.prefix}/{form_id}"


def _to_rows(form: Form | None) -> list[_Row]:
    questions = form["questions"] if form is not None else []
    rows: list[_Row] = [{**question, "_id": str(question["_id"])} for question in questions]
    return [*rows, *[_BLANK] * _BLANK_ROWS]


def _to_questions(rows: Sequence[_QuestionRow]) -> list[QuestionInput]:
    """Return the questions of rows in the order of their positions. Raises InvalidFields without any."""
    used = [row for row in rows if row["label"] and not row["out"]]
    if not used:
        raise invalid_field("questions.0.label", "should not be empty: a form has at least one question")
    questions: list[QuestionInput] = []
    for row in sorted(used, key=lambda row: row["position"] or _MAX_QUESTIONS + _BLANK_ROWS):
        options = row["options"] if row["type"] in WITH_OPTIONS else []
        question = take(QuestionInput, {**row, "options": options})
        if row["_id"] is None:
            del question["_id"]
        questions.append(question)
    return questions


@pages.get("", access=coach(FORMS.VIEW), template="settings/forms.html")
async def forms_page(ctx: Context) -> dict[str, Any]:
    """The forms, by name."""
    return {"forms": await forms.list_all(ctx), "rows": _to_rows(None), "types": list(_LABELS.items())}


@pages.post("", access=coach(FORMS.CREATE), on=forms_page)
async def create_form(ctx: Context, form: _NewForm) -> Redirect:
    """Create a form."""
    created = await forms.create(ctx, {"name": form["name"], "questions": _to_questions(form["questions"])})
    return Redirect(_path(created["_id"]), f"{created['name']} created.")


@pages.get("/{formId}", access=coach(FORMS.VIEW), template="settings/form.html")
async def form_page(ctx: Context, form_id: ObjectId) -> dict[str, Any]:
    """A form: its questions as clients see them, and the fields to change them."""
    form = await forms.get(ctx, form_id)
    return {
        "questionnaire": form,
        "version": form["version"],
        "rows": _to_rows(form),
        "types": list(_LABELS.items()),
    }


@pages.post("/{formId}", access=coach(FORMS.EDIT), on=form_page)
async def update_form(ctx: Context, form_id: ObjectId, form: _FormUpdate) -> Redirect:
    """Change a form; what is scheduled already keeps its questions."""
    questions = _to_questions(form["questions"])
    await forms.update(ctx, form_id, {"name": form["name"], "questions": questions, "version": form["version"]})
    return Redirect(_path(form_id), "Changes saved.")


@pages.confirm("/{formId}/delete", access=coach(FORMS.DELETE), template="settings/delete_form.html", deletes=True)
async def delete_form(ctx: Context, form_id: ObjectId) -> ConfirmedAction:
    """Delete a form; scheduled ones and answers stay."""
    form = await forms.get(ctx, form_id)
    done = Redirect(pages.prefix, f"{form['name']} deleted.")
    return ConfirmedAction({"questionnaire": form}, partial(forms.delete, ctx, form_id), done)
