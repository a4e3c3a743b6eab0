"""A template as the owner of a single workout, so that the operations on items of workouts also change templates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from coaching_service.core.database.conflicts import version_conflict
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter
from coaching_service.core.database.models import Returned
from coaching_service.core.errors import NotFound
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId
from coaching_service.training.templates import store
from coaching_service.training.templates.models import WorkoutTemplate
from coaching_service.training.workouts.blocks.models import StoredBlock
from coaching_service.training.workouts.blocks.owners import ScheduleOwner
from coaching_service.training.workouts.blocks.plans import plan_of
from coaching_service.training.workouts.blocks.session_fields import no_session
from coaching_service.training.workouts.items.content import MAX_ITEMS
from coaching_service.training.workouts.items.models import WorkItem


@dataclass(frozen=True)
class TemplatePlan(ScheduleOwner):
    """A template as the owner of one block, which has the identifier of the template and no day."""

    template_id: ObjectId

    @property
    def block_filter(self) -> Filter:
        """The filter that finds the template."""
        return {"_id": self.template_id}

    async def require_access(self, ctx: Context) -> None:
        """Raise NotFound if the company has no such template."""
        if await store.find_one(ctx, self.template_id) is None:
            raise NotFound("workout template")

    async def find_block(self, ctx: Context, block_id: ObjectId) -> StoredBlock | None:
        """Return the template in the place of a block, or None."""
        template = await store.find_one(ctx, block_id)
        return None if template is None else _as_block(template)

    async def has_item(self, ctx: Context, item_id: ObjectId) -> bool:
        """Return whether the template has the item."""
        template = await store.find_one(ctx, self.template_id)
        return template is not None and any(item["_id"] == item_id for item in template["items"])

    async def push_item(self, ctx: Context, block_id: ObjectId, item: WorkItem) -> StoredBlock | None:
        """Append an item to a template; None if there is no such template with room."""
        block = await self.find_block(ctx, block_id)
        if block is None or len(block["items"]) >= MAX_ITEMS:
            return None
        return await self.set_items(ctx, block, [*block["items"], item])

    async def set_items(self, ctx: Context, block: StoredBlock, items: Sequence[WorkItem]) -> StoredBlock:
        """Replace the items of a template. Raises Conflict if it has changed since it was read, or was deleted."""
        template = await store.rewrite(ctx, block["_id"], {"items": list(items)}, block["version"])
        if template is None:
            raise version_conflict()
        return _as_block(template)

    async def after_schedule_change(self, ctx: Context, *, added_until: str | None = None) -> None:
        """Do nothing: nothing depends on a template."""


def _as_block(template: WorkoutTemplate) -> StoredBlock:
    """Return a template as a block without an owner and a day."""
    block = {
        **take(Returned, template),
        **dict.fromkeys(("customerId", "programId", "assignmentId", "checkInId", "date", "day")),
        **no_session(),
        **plan_of(template, template["items"]),
    }
    return cast("StoredBlock", block)
