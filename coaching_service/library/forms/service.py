"""What a coach does with forms."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.library.forms import store


async def everything(ctx: Context) -> list[Document]:
    """The company's forms by name."""
    return await store.everything(ctx)


async def read(ctx: Context, form_id: ObjectId) -> Document:
    """One form. Raises NotFound."""
    if (form := await store.one(ctx, form_id)) is None:
        raise NotFound("form")
    return form


async def create(ctx: Context, details: Document) -> Document:
    """A new form; `details`: name, questions."""
    return await store.add(ctx, _named(details) | {"questions": numbered(details["questions"])})


async def change(ctx: Context, form_id: ObjectId, details: Document) -> Document:
    """Change what is sent of a form; a question sent with its `_id` stays the same question.

    Items already scheduled keep the questions they were scheduled with. Raises NotFound, also for a question that
    is not of this form, and Conflict when the form has been changed since `version`.
    """
    details = dict(details)
    version = details.pop("version", None)

    def mutate(stored: Document) -> Document:
        fields = _named(details)
        if "questions" in details:
            known = {question["_id"] for question in stored["questions"]}
            fields["questions"] = numbered(details["questions"], known)
        return fields

    changed = await store.rewrite(ctx, form_id, mutate, version)
    if changed is None:
        raise NotFound("form")
    return changed


async def remove(ctx: Context, form_id: ObjectId) -> None:
    """Delete a form; items already scheduled keep its questions. Raises NotFound."""
    if not await store.remove(ctx, form_id):
        raise NotFound("form")


def numbered(questions: list[Document], known: set[ObjectId] | None = None) -> list[Document]:
    """Questions with identifiers: those they were sent with if `known`, new ones otherwise. Raises NotFound."""
    sent = [question["_id"] for question in questions if "_id" in question]
    if known is not None and (len(set(sent)) < len(sent) or not set(sent) <= known):
        raise NotFound("question")
    return [
        {**question, "_id": question["_id"] if known is not None and "_id" in question else ObjectId()}
        for question in questions
    ]


def _named(details: Document) -> Document:
    return {"name": details["name"], "sortName": normalize(details["name"])} if "name" in details else {}
