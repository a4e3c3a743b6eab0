"""Forms: questions that a company asks its clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coaching_service.core.database.context import Context
from coaching_service.core.errors import NotFound, require_found
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.library.forms import store
from coaching_service.library.forms.models import (
    Form,
    FormChange,
    FormContent,
    FormFields,
    NewForm,
    Question,
    QuestionDetails,
    QuestionInput,
)

list_all = store.find_all


async def get(ctx: Context, form_id: ObjectId) -> Form:
    """Return a form. Raises NotFound."""
    return require_found(await store.forms.find_one(ctx, {"_id": form_id}), "form")


async def create(ctx: Context, form: NewForm) -> Form:
    """Create a form."""
    content: FormContent = {"name": form["name"], "questions": assign_question_ids(form["questions"])}
    return await store.forms.insert(ctx, {**content, "sortName": normalize(form["name"])})


async def update(ctx: Context, form_id: ObjectId, change: FormChange) -> Form:
    """Change the fields of a form that are sent; a question sent with its `_id` remains the same question.

    Scheduled items keep the questions they were scheduled with. Raises NotFound for the form or for a question that it
    does not have, Conflict if the form has changed since `version`.
    """

    def changed_fields(stored: Form) -> Mapping[str, object]:
        fields: FormFields = {}
        if "name" in change:
            fields["name"] = change["name"]
        if "questions" in change:
            known = {question["_id"] for question in stored["questions"]}
            fields["questions"] = assign_question_ids(change["questions"], known)
        return {**fields, "sortName": normalize(fields["name"])} if "name" in fields else fields

    form = await store.forms.rewrite(ctx, {"_id": form_id}, changed_fields, version=change.get("version"))
    return require_found(form, "form")


async def delete(ctx: Context, form_id: ObjectId) -> None:
    """Delete a form; scheduled items keep its questions. Raises NotFound."""
    require_found(await store.forms.delete(ctx, {"_id": form_id}), "form")


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
