"""Owners of a schedule: the same operations serve the calendar of a client (by date) and a program (by day)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter, PipelineStage
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import Conflict, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import activity_dates
from coaching_service.people.customers import service as customers
from coaching_service.training.workouts import store
from coaching_service.training.workouts.blocks.models import CompletedWorkChanged, ScheduleChanged, StoredBlock
from coaching_service.training.workouts.blocks.recomputation import recompute_items
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.training.workouts.items.service import MAX_ITEMS, has_added_loads

DayField = Literal["date", "day"]
ReadBlocks = Callable[[PipelineStage | None], Awaitable[list[StoredBlock]]]


class ScheduleOwner(ABC):
    """What the block operations need to know about the owner of a schedule.

    `day_field` is the field of a block that has its date or day.
    """

    day_field: ClassVar[DayField] = "day"

    @property
    def client_id(self) -> ObjectId | None:
        """The client whose calendar it is; None for a program."""
        return None

    @property
    @abstractmethod
    def block_filter(self) -> Filter:
        """The filter that finds the owner's blocks; also the owner's fields in a new block."""

    @abstractmethod
    async def require_access(self, ctx: Context) -> None:
        """Raise NotFound or Forbidden if the caller may not access this owner."""

    async def authorize_and_lock(self, ctx: Context) -> None:
        """Do what `require_access` does, as the first operation of a transaction that changes the schedule."""
        await self.require_access(ctx)

    async def require_open(self, ctx: Context) -> None:  # noqa: B027  # only clients are closed
        """Raise Conflict (CUSTOMER_ARCHIVED) if nothing may be planned for this owner."""

    async def read_accessible(self, ctx: Context, read: ReadBlocks) -> list[StoredBlock]:
        """Return the blocks that `read` reads, if the caller may access this owner. Raises NotFound or Forbidden.

        `read` receives a stage with which the same command reads the owner, or None.
        """
        blocks: list[StoredBlock]
        _, blocks = await gather_reads(ctx, self.require_access(ctx), read(None))
        return blocks

    async def get_block(self, ctx: Context, block_id: ObjectId) -> StoredBlock:
        """Return a block of the owner, whose access has been checked. Raises NotFound."""
        if (block := await self.find_block(ctx, block_id)) is None:
            raise block_not_found()
        return block

    async def find_block(self, ctx: Context, block_id: ObjectId) -> StoredBlock | None:
        """Return a block of the owner, whose access has been checked, or None."""
        return await store.blocks.find_one(ctx, self.block_filter | {"_id": block_id})

    async def has_item(self, ctx: Context, item_id: ObjectId) -> bool:
        """Return whether any of the owner's blocks has an item."""
        return await store.blocks.find_one(ctx, self.block_filter | {"items._id": item_id}, ("_id",)) is not None

    async def push_item(self, ctx: Context, block_id: ObjectId, item: WorkItem) -> StoredBlock | None:
        """Append a new item, with nothing done, to a block that has room for it and is not of a check-in.

        Returns only `version`, `date`, `createdBy`, and `_id` and `isCompleted` of each item of the block, or None if
        there is no such block with room.
        """
        has_room = {f"items.{MAX_ITEMS - 1}": {"$exists": False}, "checkInId": None}
        fields = ("version", "date", "createdBy", "items._id", "items.isCompleted")
        where = self.block_filter | {"_id": block_id} | has_room
        return await store.blocks.update(ctx, where, {"$push": {"items": item}}, fields=fields)

    async def set_items(self, ctx: Context, block: StoredBlock, items: Sequence[WorkItem]) -> StoredBlock:
        """Replace the items of a block, and return it. Raises Conflict if it has changed since it was read."""
        [changed] = await store.set_items_each(ctx, [(block, items)])
        return changed

    @abstractmethod
    async def after_schedule_change(self, ctx: Context, *, added_until: str | None = None) -> None:
        """Update what depends on the schedule, in the transaction that changed it.

        `added_until` is the last date of new blocks, if nothing but adding them changed the schedule.
        """

    async def after_completed_work_change(  # noqa: B027  # only clients complete items
        self, ctx: Context, items: Sequence[WorkItem], block: StoredBlock | None = None
    ) -> None:
        """Update what depends on completed work, in the transaction that changed it.

        `items` were added, removed or changed (before and after), or got another date; `block` holds all of them now.
        """


@dataclass(frozen=True)
class ClientCalendar(ScheduleOwner):
    """The calendar of a client."""

    day_field: ClassVar[DayField] = "date"
    customer_id: ObjectId

    @property
    def client_id(self) -> ObjectId:
        """The client."""
        return self.customer_id

    @property
    def block_filter(self) -> Filter:
        """The filter that finds the client's blocks."""
        return {"customerId": self.customer_id}

    async def require_access(self, ctx: Context) -> None:
        """Raise NotFound or Forbidden if the caller may not access the client."""
        await customers.get_visible(ctx, self.customer_id)

    async def authorize_and_lock(self, ctx: Context) -> None:
        """Lock the client. Raises NotFound or Forbidden if the caller may not access the client."""
        await customers.authorize_and_lock(ctx, self.customer_id)

    async def require_open(self, ctx: Context) -> None:
        """Raise Conflict (CUSTOMER_ARCHIVED) if the client is archived."""
        if await customers.is_archived(ctx, self.customer_id):
            raise Conflict(
                "The client is archived: restore the client before you plan workouts", code="CUSTOMER_ARCHIVED"
            )

    async def read_accessible(self, ctx: Context, read: ReadBlocks) -> list[StoredBlock]:
        """Return the blocks that `read` reads together with the client. Raises NotFound or Forbidden."""
        if ctx.session is not None:  # a transaction has no `$unionWith`
            return await super().read_accessible(ctx, read)
        return customers.take_visible(ctx, await read(customers.add_visible(ctx, self.customer_id)))

    async def after_schedule_change(self, ctx: Context, *, added_until: str | None = None) -> None:
        """Store the date of the client's last block, and publish ScheduleChanged."""
        if added_until is not None:
            await activity_dates.extend_last_workout_date(ctx, self.customer_id, added_until)
        else:
            last_date = await store.find_last_date(ctx, self.block_filter)
            await activity_dates.set_last_workout_date(ctx, self.customer_id, last_date)
        await ctx.publish(ScheduleChanged(self.customer_id))

    async def after_completed_work_change(
        self, ctx: Context, items: Sequence[WorkItem], block: StoredBlock | None = None
    ) -> None:
        """Publish CompletedWorkChanged for the items with completed exercises, one change of a client at a time."""
        if changed := [item for item in items if item["doneExerciseIds"]]:
            await customers.lock_and_mark_figures(ctx, self.customer_id)
            if any(map(has_added_loads, changed)):  # they count with the body weight of the date
                await recompute_items(ctx, self.customer_id, [item["_id"] for item in changed])
                block = None
            await ctx.publish(CompletedWorkChanged(self.customer_id, changed, block))


def block_not_found() -> NotFound:
    """Return the error for a block that the owner does not have."""
    return NotFound("workout block")
