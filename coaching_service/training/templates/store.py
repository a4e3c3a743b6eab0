"""Workout templates in the database."""

from __future__ import annotations

from collections.abc import Callable

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents, Filter
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import keyword_filter, normalize, search_fields_of

templates = Documents[Document](
    "workoutTemplates",
    (Index(("sortName", "_id")), Index(("suf",)), Index(("tags", "sortName", "_id")), Index(("_id",))),
    private=("companyId", "sortName", "search", "suf"),
)


def search_fields(template: Document) -> Document:
    """The private fields a template is sorted and found by."""
    return {"sortName": normalize(template["name"]), **search_fields_of(template["name"], *template["tags"])}


async def matching(ctx: Context, kind: str | None, tag: str | None, keywords: str) -> list[Document]:
    """The templates of a type, with a tag, that hold every keyword in name or tags, by name."""
    where: Filter = {name: value for name, value in (("type", kind), ("tags", tag)) if value is not None}
    if "\0" in keywords:
        return []
    if keywords:
        where |= keyword_filter(keywords)
    return await templates.find(ctx, where, sort=("sortName", "_id"))


async def one(ctx: Context, template_id: ObjectId) -> Document | None:
    """The template, or None."""
    return await templates.find_one(ctx, {"_id": template_id})


async def add(ctx: Context, template: Document) -> Document:
    """Store a new template."""
    return await templates.insert(ctx, template | search_fields(template))


async def rewrite(
    ctx: Context, template_id: ObjectId, mutate: Callable[[Document], Document], version: int | None
) -> Document | None:
    """Change a template by a function of what is stored; None when there is no such template."""

    def with_search(stored: Document) -> Document:
        fields = mutate(stored)
        return fields | search_fields(stored | fields) if fields else fields

    return await templates.rewrite(ctx, {"_id": template_id}, with_search, version=version)


async def remove(ctx: Context, template_id: ObjectId) -> bool:
    """Remove a template; whether there was one."""
    return await templates.delete(ctx, {"_id": template_id}) is not None
