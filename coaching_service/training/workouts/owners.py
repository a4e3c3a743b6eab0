"""Whose blocks they are: the same operations serve a client's calendar, by date, and a program, by day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Filter
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service as customers
from coaching_service.training.workouts import store
from coaching_service.training.workouts.events import CompletedWorkChanged


class Owner(Protocol):
    """What the block operations need to know of an owner."""

    @property
    def where(self) -> Filter:
        """The condition that a block is this owner's; also the fields a new block is given."""

    @property
    def slot(self) -> str:
        """The field that says when: `date` or `day`."""

    async def check(self, ctx: Context) -> None:
        """Raise NotFound or Forbidden when the one asking may not touch this owner."""

    async def rescheduled(self, ctx: Context) -> None:
        """Renew what is remembered of the owner's schedule, in the transaction that changed it."""

    async def done_changed(self, ctx: Context, items: list[Document]) -> None:
        """Renew what follows from what was done of `items`, which went, came, changed (then they are given as they were
        and as they are) or got another date; in the transaction of that change."""


@dataclass(frozen=True)
class ClientCalendar:
    """A client's calendar."""

    customer_id: ObjectId

    @property
    def where(self) -> Filter:
        """The client's blocks."""
        return {"customerId": self.customer_id}

    @property
    def slot(self) -> str:
        """A client's blocks are found by date."""
        return "date"

    async def check(self, ctx: Context) -> None:
        """Raise NotFound or Forbidden when this coach may not touch the client."""
        await customers.get_visible(ctx, self.customer_id)

    async def rescheduled(self, ctx: Context) -> None:
        """The client remembers the last day anything is scheduled on."""
        last = await store.last_day(ctx, self.where)
        await customers.set_last_workout_date(ctx, self.customer_id, last)

    async def done_changed(self, ctx: Context, items: list[Document]) -> None:
        """Whoever keeps what follows from done exercises is told of `items` with any, one change after another."""
        if changed := [item for item in items if item["doneExerciseIds"]]:
            await customers.lock(ctx, self.customer_id)
            await ctx.publish(CompletedWorkChanged(self.customer_id, changed))
