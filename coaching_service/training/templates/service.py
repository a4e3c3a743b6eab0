"""What a coach does with workout templates."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.training.templates import store
from coaching_service.training.workouts import item_service
from coaching_service.training.workouts import service as workouts
from coaching_service.training.workouts.owners import ClientCalendar


async def matching(ctx: Context, *, kind: str | None = None, tag: str | None = None, words: str = "") -> list[Document]:
    """The company's templates by name; `kind` and `tag` exactly, `words` each somewhere in name or tags."""
    return await _presented(ctx, await store.matching(ctx, kind, tag, normalize(words)))


async def read(ctx: Context, template_id: ObjectId) -> Document:
    """One template. Raises NotFound."""
    return (await _presented(ctx, [await _require(ctx, template_id)]))[0]


async def create(ctx: Context, details: Document) -> Document:
    """A new template; `details`: name, type, tags, items. Raises NotFound for what an item names."""
    items = await item_service.fresh_items(ctx, details["items"])
    return (await _presented(ctx, [await store.add(ctx, details | {"items": items})]))[0]


async def change(ctx: Context, template_id: ObjectId, details: Document) -> Document:
    """Change what is sent of a template; its items are replaced whole.

    Raises NotFound, and Conflict when it has moved on since `version`.
    """
    fields = dict(details)
    version = fields.pop("version", None)
    if "items" in fields:
        fields["items"] = await item_service.fresh_items(ctx, fields["items"])
    changed = await store.rewrite(ctx, template_id, lambda _: fields, version)
    if changed is None:
        raise NotFound("workout template")
    return (await _presented(ctx, [changed]))[0]


async def remove(ctx: Context, template_id: ObjectId) -> None:
    """Delete a template; blocks made from it stay. Raises NotFound."""
    if not await store.remove(ctx, template_id):
        raise NotFound("workout template")


async def apply(ctx: Context, template_id: ObjectId, customer_id: ObjectId, date: str) -> Document:
    """Put a template onto a client's calendar as a block; gives the block. Raises NotFound, Forbidden."""
    calendar = ClientCalendar(customer_id)
    await calendar.check(ctx)
    template = await _require(ctx, template_id)
    plan = {"name": template["name"], "isRest": False, "date": date, "items": template["items"]}
    return await workouts.add_one(ctx, calendar, plan)


async def _require(ctx: Context, template_id: ObjectId) -> Document:
    if (template := await store.one(ctx, template_id)) is None:
        raise NotFound("workout template")
    return template


async def _presented(ctx: Context, templates: list[Document]) -> list[Document]:
    return await workouts.present_items(ctx, templates)
