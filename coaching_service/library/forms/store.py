"""Forms in the database."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import LIBRARY, Portable
from coaching_service.core.database.recording import Action, EventData, History
from coaching_service.core.list_selection import UPDATED
from coaching_service.core.text import normalize
from coaching_service.core.validation import Text
from coaching_service.library.forms.models import Form


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
