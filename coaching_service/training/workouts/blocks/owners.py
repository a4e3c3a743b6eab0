"""Owners of a schedule: the same operations serve the calendar of a client (by date) and a program (by day)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter, PipelineStage
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import activity_dates
from coaching_service.people.customers import service as customers
from coaching_service.training.workouts import store
from coaching_service.training.workouts.blocks.events import CompletedWorkChanged, ScheduleChanged
from coaching_service.training.workouts.blocks.models import StoredBlock
from coaching_service.training.workouts.items.models import WorkItem

DayField = Literal["date", "day"]
ReadBlocks = Callable[[PipelineStage | None], Awaitable[list[StoredBlock]]]


class BlockStore(Protocol):
    """Where the blocks of an owner are stored, for the operations on their items; see the functions of store.py."""

    async def find_one(self, ctx: Context, owner: Filter, block_id: ObjectId) -> StoredBlock | None:
        """Return the owner's block, or None."""

    async def set_items(self, ctx: Context, block: StoredBlock, items: Sequence[WorkItem]) -> StoredBlock:
        """Replace the items of a block, and return it. Raises Conflict if it has changed since it was read."""

    async def push_item(self, ctx: Context, owner: Filter, block_id: ObjectId, item: WorkItem) -> StoredBlock | None:
        """Append a new item to a block; None if there is no such block with room."""

    async def has_item(self, ctx: Context, owner: Filter, item_id: ObjectId) -> bool:
        """Return whether any of the owner's blocks has the item."""


WORKOUT_BLOCKS: BlockStore = store


class ScheduleOwner(ABC):
    """What the block operations need to know about the owner of a schedule.

    `day_field` is the field of a block that has its date or day.
    """

    day_field: ClassVar[DayField] = "day"

    @property
    def blocks(self) -> BlockStore:
        """Where the blocks are stored."""
        return WORKOUT_BLOCKS

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

    async def read_accessible(self, ctx: Context, read: ReadBlocks) -> list[StoredBlock]:
        """Return the blocks that `read` reads, if the caller may access this owner. Raises NotFound or Forbidden.

        `read` receives a stage with which the same command reads the owner, or None.
        """
        blocks: list[StoredBlock]
        _, blocks = await gather_reads(ctx, self.require_access(ctx), read(None))
        return blocks

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
    def block_filter(self) -> Filter:
        """The filter that finds the client's blocks."""
        return {"customerId": self.customer_id}

    async def require_access(self, ctx: Context) -> None:
        """Raise NotFound or Forbidden if the caller may not access the client."""
        await customers.get_visible(ctx, self.customer_id)

    async def authorize_and_lock(self, ctx: Context) -> None:
        """Lock the client. Raises NotFound or Forbidden if the caller may not access the client."""
        await customers.authorize_and_lock(ctx, self.customer_id)

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
            await ctx.publish(CompletedWorkChanged(self.customer_id, changed, block))
