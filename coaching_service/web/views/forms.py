"""Settings: forms, with their questions in the order in which clients answer them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import FORMS
from coaching_service.core.database.context import Context
from coaching_service.core.errors import invalid_field
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, Identifier, Input, Integer, ListOf, Text, Version
from coaching_service.library.forms import service as forms
from coaching_service.library.forms.models import QUESTION_TYPES, WITH_OPTIONS, Form, QuestionInput, QuestionType
from coaching_service.web.pages import Pages, Redirect

pages = Pages("/app/settings/forms")
_MAX_QUESTIONS, _BLANK_ROWS = 100, 3
_LABELS: dict[QuestionType, str] = {
    "text": "Text",
    "number": "Number",
    "rating": "Rating from 1 to 10",
    "choice": "One of several options",
    "multi": "Any of several options",
}


class _QuestionRow(Input):
    """A question as it is edited; without a label it is left out, with `out` it is removed."""

    _id = Identifier(allow_none=True, load_default=None)
    position = Integer(minimum=1, maximum=1_000, allow_none=True, load_default=None)
    label = Text(max_length=1_000, allow_blank=True, load_default="")
    type = Choice(*QUESTION_TYPES, load_default="text")
    options = ListOf(Text(max_length=1_000), load_default=list)
    required = fields.Boolean(load_default=False)
    out = fields.Boolean(load_default=False)

    @validates_schema
    def has_options(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError for a choice without options."""
        if data["label"] and not data["out"] and data["type"] in WITH_OPTIONS and not data["options"]:
            raise ValidationError("must have options, one in each line", "options")


class _NewForm(Input):
    name = Text(required=True)
    questions = ListOf(fields.Nested(_QuestionRow), maximum=_MAX_QUESTIONS + _BLANK_ROWS, load_default=list)


class _FormUpdate(_NewForm):
    version = Version(required=True)


class _Row(TypedDict):
    """A row of the table of questions; `_id` is empty for a new question."""

    _id: str
    label: str
    type: QuestionType
    options: list[str]
    required: bool


_BLANK: _Row = {"_id": "", "label": "", "type": "text", "options": [], "required": False}


def _path(form_id: ObjectId) -> str:
    return f"{pages.prefix}/{form_id}"


def _to_rows(form: Form | None) -> list[_Row]:
    questions = form["questions"] if form is not None else []
    rows: list[_Row] = [{**question, "_id": str(question["_id"])} for question in questions]
    return [*rows, *[_BLANK] * _BLANK_ROWS]


def _to_questions(rows: Sequence[Mapping[str, Any]]) -> list[QuestionInput]:
    """Return the questions of rows in the order of their positions. Raises InvalidFields without any."""
    used = [row for row in rows if row["label"] and not row["out"]]
    if not used:
        raise invalid_field("questions.0.label", "should not be empty: a form has at least one question")
    questions: list[QuestionInput] = []
    for row in sorted(used, key=lambda row: row["position"] or _MAX_QUESTIONS + _BLANK_ROWS):
        options = row["options"] if row["type"] in WITH_OPTIONS else []
        question: QuestionInput = {
            "label": row["label"],
            "type": row["type"],
            "options": options,
            "required": row["required"],
        }
        questions.append({**question, "_id": row["_id"]} if row["_id"] else question)
    return questions


@pages.get("", access=coach(FORMS.VIEW), template="settings/forms.html")
async def forms_page(ctx: Context) -> dict[str, Any]:
    """The forms, by name."""
    return {"forms": await forms.list_all(ctx), "rows": _to_rows(None), "types": list(_LABELS.items())}


@pages.post("", access=coach(FORMS.CREATE), form=_NewForm(), on=forms_page)
async def create_form(ctx: Context, form: dict[str, Any]) -> Redirect:
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


@pages.post("/{formId}", access=coach(FORMS.EDIT), form=_FormUpdate(), on=form_page)
async def update_form(ctx: Context, form_id: ObjectId, form: dict[str, Any]) -> Redirect:
    """Change a form; what is scheduled already keeps its questions."""
    questions = _to_questions(form["questions"])
    await forms.update(ctx, form_id, {"name": form["name"], "questions": questions, "version": form["version"]})
    return Redirect(_path(form_id), "Changes saved.")


@pages.get("/{formId}/delete", access=coach(FORMS.DELETE), template="settings/delete_form.html")
async def delete_form_page(ctx: Context, form_id: ObjectId) -> dict[str, Any]:
    """Confirmation of deleting a form."""
    return {"questionnaire": await forms.get(ctx, form_id)}


@pages.post("/{formId}/delete", access=coach(FORMS.DELETE), on=delete_form_page)
async def delete_form(ctx: Context, form_id: ObjectId) -> Redirect:
    """Delete a form; scheduled ones and answers stay."""
    form = await forms.get(ctx, form_id)
    await forms.delete(ctx, form_id)
    return Redirect(pages.prefix, f"{form['name']} deleted.")
