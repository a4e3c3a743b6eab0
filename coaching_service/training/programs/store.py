"""Programs in the database; their blocks are kept with all others, by training/workouts."""

from __future__ import annotations

from collections.abc import Callable

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents, Filter
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import keyword_filter, normalize, search_fields_of

programs = Documents[Document](
    "programs",
    (Index(("isArchived", "sortName", "_id")), Index(("isArchived", "suf")), Index(("_id",))),
    private=("companyId", "sortName", "search", "suf", "scheduleChanges"),
)
_ORDER = ("sortName", "_id")


def search_fields(program: Document) -> Document:
    """The private fields a program is sorted and found by."""
    texts = (program["name"], program["description"] or "", *program["tags"])
    return {"sortName": normalize(program["name"]), **search_fields_of(*texts)}


async def page(ctx: Context, *, archived: bool, keywords: str, skip: int, limit: int) -> tuple[list[Document], int]:
    """One page of programs by name, and how many there are."""
    where: Filter = {"isArchived": archived}
    if "\0" in keywords:
        return [], 0
    hint = programs.indexes[0].name
    if keywords:
        where |= keyword_filter(keywords)
        hint = programs.indexes[1].name
    docs, total = await gather_reads(
        ctx,
        programs.find(ctx, where, sort=_ORDER, skip=skip, limit=limit, hint=hint),
        programs.count(ctx, where, hint=hint),
    )
    return docs, total


async def one(ctx: Context, program_id: ObjectId, fields: tuple[str, ...] | None = None) -> Document | None:
    """The program, or None."""
    return await programs.find_one(ctx, {"_id": program_id}, fields)


async def add(ctx: Context, program: Document) -> Document:
    """Store a new program."""
    return await programs.insert(ctx, program | search_fields(program))


async def rewrite(
    ctx: Context, program_id: ObjectId, mutate: Callable[[Document], Document], version: int | None
) -> Document | None:
    """Change a program by a function of what is stored; None when there is no such program."""

    def with_search(stored: Document) -> Document:
        fields = mutate(stored)
        return fields | search_fields(stored | fields) if fields else fields

    return await programs.rewrite(ctx, {"_id": program_id}, with_search, version=version)


async def touch(ctx: Context, program_id: ObjectId) -> bool:
    """Write to the program without changing it, so that two transactions collide; whether there is one."""
    return await programs.set_derived(ctx, {"_id": program_id}, {"$inc": {"scheduleChanges": 1}}) == 1


async def remove(ctx: Context, program_id: ObjectId) -> bool:
    """Remove a program; whether there was one."""
    return await programs.delete(ctx, {"_id": program_id}) is not None
