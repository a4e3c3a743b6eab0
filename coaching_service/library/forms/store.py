"""Forms in the database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import LIBRARY, Portable
from coaching_service.core.database.recording import Action, EventData, History
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import UPDATED
from coaching_service.core.text import normalize
from coaching_service.core.validation import Text
from coaching_service.library.forms.models import Form, FormFields, Question


def _event(action: Action, known: Mapping[str, Any], _: Collection[str]) -> EventData | None:
    return {"type": "form.deleted", "data": {"formId": known["_id"]}} if action == "deleted" else None


forms = Documents[Form](
    "forms",
    (Index(("sortName", "_id")), Index(("_id",)), Index((UPDATED,))),
    private=("companyId", "sortName"),
    history=History("form", _event),
    transfer=Portable(
        Form,
        LIBRARY,
        checks={"questions.label": Text(max_length=1000), "questions.options": Text(max_length=1000)},
        complete=lambda form: {**form, "sortName": normalize(form["name"])},
    ),
)
_BY_UPDATE = forms.index_name(UPDATED)


async def find_all(ctx: Context, *, updated_since: datetime | None = None) -> list[Form]:
    """Return the company's forms, sorted by name; with `updated_since` (UTC), those changed at this time or later."""
    where, hint = ({}, None) if updated_since is None else ({UPDATED: {"$gte": updated_since}}, _BY_UPDATE)
    return await forms.find(ctx, where, sort=("sortName", "_id"), hint=hint)


async def find_one(ctx: Context, form_id: ObjectId) -> Form | None:
    """Return the form, or None."""
    return await forms.find_one(ctx, {"_id": form_id})


async def create(ctx: Context, name: str, questions: list[Question]) -> Form:
    """Store a new form."""
    return await forms.insert(ctx, {"name": name, "sortName": normalize(name), "questions": questions})


async def rewrite(
    ctx: Context, form_id: ObjectId, changed_fields: Callable[[Form], FormFields], version: int | None
) -> Form | None:
    """Set the fields that `changed_fields` returns for the stored form. Returns None if there is no such form."""

    def mutate(stored: Form) -> Mapping[str, Any]:
        fields = changed_fields(stored)
        return {**fields, "sortName": normalize(fields["name"])} if "name" in fields else fields

    return await forms.rewrite(ctx, {"_id": form_id}, mutate, version=version)


async def delete(ctx: Context, form_id: ObjectId) -> bool:
    """Delete a form. Returns whether it existed."""
    return await forms.delete(ctx, {"_id": form_id}) is not None
