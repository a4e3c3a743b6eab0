"""Converting the loads of templates to another unit."""

from __future__ import annotations

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.people.account.load_units import Conversion, LoadCount
from coaching_service.training.templates import store
from coaching_service.training.workouts.blocks.load_conversion import convert_items


async def list_ids_after(ctx: Context, last: ObjectId | None, limit: int) -> list[ObjectId]:
    """Return the next identifiers of templates after `last`, ascending."""
    return [template["_id"] for template in await store.list_after(ctx, last, limit)]


async def convert_template(ctx: Context, template_id: ObjectId, conversion: Conversion) -> LoadCount:
    """Convert a template, in the caller's transaction."""
    template = await store.find_one(ctx, template_id)
    if template is None:
        return LoadCount()
    items, loads = convert_items(template["items"], conversion.convert)
    if loads and conversion.is_stored:
        await store.set_converted_items(ctx, template_id, items)
    return LoadCount(1 if loads else 0, loads)


has_loads = store.has_loads
