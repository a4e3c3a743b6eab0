"""Workout templates in the database."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import TEMPLATES, Portable
from coaching_service.core.database.recording import Action, EventData, History
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import UPDATED
from coaching_service.core.text import normalize, search_fields_of
from coaching_service.training.templates.models import TemplateContent, TemplateFields, WorkoutTemplate
from coaching_service.training.workouts.items.descriptions import COMPUTED_ITEM_FIELDS, ITEM_REFERENCES, complete_items
from coaching_service.training.workouts.items.service import list_contacts


def _event(action: Action, known: Mapping[str, Any], _: Collection[str]) -> EventData | None:
    return {"type": "template.deleted", "data": {"templateId": known["_id"]}} if action == "deleted" else None


templates = Documents[WorkoutTemplate](
    "workoutTemplates",
    (
        Index(("sortName", "_id")),
        Index(("suf",)),
        Index(("tags", "sortName", "_id")),
        Index(("_id",)),
        Index((UPDATED,)),
    ),
    private=("companyId", "sortName", "search", "suf"),
    history=History("template", _event, contact=list_contacts),
    transfer=Portable(
        WorkoutTemplate,
        TEMPLATES,
        computed=COMPUTED_ITEM_FIELDS,
        references=ITEM_REFERENCES,
        complete=lambda template: {**complete_items(template), **_search_fields(template)},
    ),
)
ORDER = ("sortName", "_id")
BY_UPDATE, BY_NAME = templates.index_name(UPDATED), templates.index_name(*ORDER)
BY_SUFFIX = templates.index_name("suf")


async def find_one(ctx: Context, template_id: ObjectId) -> WorkoutTemplate | None:
    """Return the template, or None."""
    return await templates.find_one(ctx, {"_id": template_id})


async def create(ctx: Context, template: TemplateContent) -> WorkoutTemplate:
    """Store a new template."""
    return await templates.insert(ctx, {**template, **_search_fields(template)})


async def rewrite(
    ctx: Context, template_id: ObjectId, fields: TemplateFields, version: int | None
) -> WorkoutTemplate | None:
    """Set fields of a template. Returns None if it does not exist; raises Conflict if it has another version."""

    def mutate(stored: WorkoutTemplate) -> Mapping[str, Any]:
        return {**fields, **_search_fields({**stored, **fields})} if fields else fields

    return await templates.rewrite(ctx, {"_id": template_id}, mutate, version=version)


def _search_fields(template: Mapping[str, Any]) -> dict[str, Any]:
    """Return the private fields by which a template is sorted and searched."""
    return {"sortName": normalize(template["name"]), **search_fields_of(template["name"], *template["tags"])}
