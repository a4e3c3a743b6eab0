"""Forms: questions that a company asks its clients."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core import validation
from coaching_service.core.auth import FORMS, coach
from coaching_service.core.database import declared
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.errors import NotFound, require_found
from coaching_service.core.fields import Change, Default, Partial, input_of, take
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import UPDATED, UpdatedSince
from coaching_service.core.text import normalize
from coaching_service.core.validation import ListOf

# --- Forms as they are sent, stored and read --------------------------------------------------------------------------


QuestionType = Literal["text", "number", "rating", "choice", "multi", "photo"]
WITH_OPTIONS = ("choice", "multi")
QUESTION_LENGTH = 1_000


class AnswerValue(fields.Raw):
    """An answer: a text or an option, a number or rating, a list of options; null for none."""

    def __init__(self, **options: Any) -> None:
        metadata = {
            "description": "Text, or an option, as a string; a number, or a rating from 1 to 10, as a number; several "
            "options as an array; null for no answer.",
            "anyOf": [
                {"type": "string"},
                {"type": "number"},
                {"type": "array", "items": {"type": "string"}},
                {"type": "null"},
            ],
        }
        super().__init__(allow_none=True, metadata=metadata, **options)


class _KnownQuestion(TypedDict):
    _id: NotRequired[ObjectId]


class QuestionDetails(TypedDict):
    """The fields of a question without its identifier; `options` is empty unless the type is `choice` or `multi`.

    A question of type `photo` is answered with pictures of the item that name it (`questionId`), and has no answer
    itself: that there is one if it is required is only checked by pages, since pictures may arrive after the answers.
    """

    label: Annotated[str, validation.Text(max_length=QUESTION_LENGTH)]
    type: Annotated[QuestionType, Default("text")]
    options: Annotated[list[str], validation.StringList(max_length=QUESTION_LENGTH), Default(list)]
    required: Annotated[bool, Default(False)]


class QuestionInput(_KnownQuestion, QuestionDetails):
    """A question; `choice` and `multi` need options. `_id` refers to one that the form already has."""


class Question(QuestionDetails):
    """A question of a form."""

    _id: ObjectId


class _OptionsOfChoice(validation.Input):
    @validates_schema
    def has_options(self, data: Mapping[str, Any], **_: Any) -> None:
        """Questions with a choice have options."""
        if data["type"] in WITH_OPTIONS and not data["options"]:
            raise ValidationError("should not be empty", "options")


def questions_field(**options: Any) -> ListOf:
    """Return a field of at least one question."""
    return ListOf(fields.Nested(input_of(QuestionInput, _OptionsOfChoice, name="NewQuestion")), minimum=1, **options)


class FormName(TypedDict):
    """The name of a form."""

    name: Annotated[str, validation.Text()]


class NewForm(FormName):
    """A form to create."""

    questions: Annotated[list[QuestionInput], questions_field()]


class FormContent(FormName):
    """The content of a stored form."""

    questions: list[Question]


class Form(FormContent, declared.Stored):
    """A form with its questions."""


FormChange: TypeAlias = Change[NewForm]
FormFields: TypeAlias = Partial[FormContent]


# --- Forms in the database --------------------------------------------------------------------------------------------


def _event(action: declared.Action, known: Mapping[str, Any], _: Collection[str]) -> declared.EventData | None:
    return {"type": "form.deleted", "data": {"formId": known["_id"]}} if action == "deleted" else None


forms = Documents[Form](
    "forms",
    (declared.Index(("sortName", "_id")), declared.Index(("_id",)), declared.Index((UPDATED,))),
    private=("companyId", "sortName"),
    history=declared.History("form", _event),
    transfer=declared.Portable(
        Form,
        declared.LIBRARY,
        checks={
            "questions.label": validation.Text(max_length=1000),
            "questions.options": validation.Text(max_length=1000),
        },
        complete=lambda form: {**form, "sortName": normalize(form["name"])},
    ),
)
_BY_UPDATE = forms.index_name(UPDATED)


routes = Routes("/coach/forms", tag="Forms")


async def list_all(ctx: Context, *, updated_since: datetime | None = None) -> list[Form]:
    """Return the company's forms, sorted by name; with `updated_since` (UTC), those changed at this time or later."""
    where, hint = ({}, None) if updated_since is None else ({UPDATED: {"$gte": updated_since}}, _BY_UPDATE)
    return await forms.find(ctx, where, sort=("sortName", "_id"), hint=hint)


@routes.get("", access=coach(FORMS.VIEW))
async def list_forms(ctx: Context, query: UpdatedSince) -> list[Form]:
    """List the forms by name."""
    return await list_all(ctx, updated_since=query.get("updatedSince"))


@routes.get("/{formId}", access=coach(FORMS.VIEW), operation_id="getForm")
async def get(ctx: Context, form_id: ObjectId) -> Form:
    """Read a form."""
    return require_found(await forms.find_one(ctx, {"_id": form_id}), "form")


@routes.post(
    "",
    access=coach(FORMS.CREATE),
    example={"name": "Weekly check-in", "questions": [{"label": "How did you sleep?", "type": "rating"}]},
    operation_id="createForm",
)
async def create(ctx: Context, body: NewForm) -> Form:
    """Create a form."""
    content: FormContent = {"name": body["name"], "questions": assign_question_ids(body["questions"])}
    return await forms.insert(ctx, {**content, "sortName": normalize(body["name"])})


@routes.patch(
    "/{formId}",
    access=coach(FORMS.EDIT),
    body=validation.patch_of(input_of(NewForm), name="FormChange"),
    example={"name": "Check-in", "version": 0},
    operation_id="updateForm",
)
async def update(ctx: Context, form_id: ObjectId, body: FormChange) -> Form:
    """Change a form.

    Scheduled items keep the questions they were scheduled with.
    """

    def changed_fields(stored: Form) -> Mapping[str, object]:
        fields: FormFields = {}
        if "name" in body:
            fields["name"] = body["name"]
        if "questions" in body:
            known = {question["_id"] for question in stored["questions"]}
            fields["questions"] = assign_question_ids(body["questions"], known)
        return {**fields, "sortName": normalize(fields["name"])} if "name" in fields else fields

    form = await forms.rewrite(ctx, {"_id": form_id}, changed_fields, version=body.get("version"))
    return require_found(form, "form")


@routes.delete("/{formId}", access=coach(FORMS.DELETE), operation_id="deleteForm")
async def delete(ctx: Context, form_id: ObjectId) -> None:
    """Delete a form.

    Scheduled items keep its questions.
    """
    require_found(await forms.delete(ctx, {"_id": form_id}), "form")


def assign_question_ids(
    questions: Sequence[QuestionInput | Question], known: set[ObjectId] | None = None
) -> list[Question]:
    """Return questions with identifiers: their own if `known` is given, otherwise new ones.

    Raises NotFound for an identifier that is not `known` or is sent twice.
    """
    sent = [question["_id"] for question in questions if "_id" in question]
    if known is not None and (len(set(sent)) < len(sent) or not set(sent) <= known):
        raise NotFound("question")
    return [
        {
            "_id": question["_id"] if known is not None and "_id" in question else ObjectId(),
            **take(QuestionDetails, question),
        }
        for question in questions
    ]
