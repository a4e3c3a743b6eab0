"""Events: the types that the change log, the activity feed and webhooks share, and events between features.

A service reports a typed event of the log (`EventType`) with `ctx.recorder`; most are derived from the documents that
a transaction writes. A `DomainEvent` calls the features that react to a change, inside its transaction; the
subscribers are assembled in `coaching_service/subscriptions.py`, the only place where both sides are known.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar, get_args

from coaching_service.core.ids import ObjectId

if TYPE_CHECKING:
    from coaching_service.core.database.context import Context

EventType = Literal[
    "customer.created",
    "customer.updated",
    "customer.archived",
    "customer.unarchived",
    "customer.deleted",
    "workout.created",
    "workout.updated",
    "workout.deleted",
    "workout.completed",
    "item.logged",
    "form.submitted",
    "form.reviewed",
    "metric.recorded",
    "photo.added",
    "photo.deleted",
    "plan.uploaded",
    "plan.deleted",
    "record.achieved",
    "note.created",
    "note.updated",
    "note.deleted",
    "message.created",
    "message.updated",
    "message.deleted",
    "check_in.created",
    "check_in.ended",
    "availability.created",
    "availability.updated",
    "availability.deleted",
    "metrics_set.assigned",
    "metrics_set.unassigned",
    "program.created",
    "program.updated",
    "program.deleted",
    "program.assigned",
    "program.ended",
    "exercise.created",
    "exercise.updated",
    "exercise.deleted",
    "form.deleted",
    "metrics_set.deleted",
    "template.deleted",
    "proposal.created",
    "proposal.decided",
    "reminder.sent",
    "history.imported",
    "history.removed",
    "attention.raised",
    "attention.cleared",
]

EVENT_TYPES: tuple[EventType, ...] = get_args(EventType)


# A value in the data of an event of the log: an identifier, a date, a figure, a code such as a unit, or names of
# fields; no free text.
EventValue: TypeAlias = ObjectId | datetime | str | float | bool | list[str] | None


class DomainEvent:
    """The base of all events: frozen dataclasses named for what happened, such as `CustomersCreated`.

    Unless `changes_nothing`, an event is published in the transaction of its change, so that what follows from the
    change is stored with it or not at all, whenever the process is killed.
    """

    changes_nothing: ClassVar[bool] = False


E = TypeVar("E", bound=DomainEvent)


class EventBus:
    """Which functions are called for which event."""

    def __init__(self) -> None:
        self._subscribers: defaultdict[type[DomainEvent], list[Callable[[Context, Any], Awaitable[None]]]] = (
            defaultdict(list)
        )

    def subscribe(self, event_type: type[E], *subscribers: Callable[[Context, E], Awaitable[None]]) -> None:
        """Call `subscribers`, in this order, for each event of `event_type`."""
        self._subscribers[event_type].extend(subscribers)

    async def publish(self, ctx: Context, event: DomainEvent) -> None:
        """Call the subscribers of `event` one after another; what they raise reaches the publisher.

        Raises RuntimeError when the event has no subscriber: the process was started without its subscriptions.
        """
        if type(event) not in self._subscribers:
            raise RuntimeError(
                f"{type(event).__name__} has no subscriber: make Services with subscriptions.assemble(), "
                "as runtime.open_services does"
            )
        for subscriber in self._subscribers[type(event)]:
            await subscriber(ctx, event)


@dataclass(frozen=True)
class Accepted:
    """Work that has been queued: its job, as interfaces return it with the status 202."""

    job_id: ObjectId

    def to_response(self) -> dict[str, ObjectId]:
        """Return the body of the response."""
        return {"jobId": self.job_id}


@asynccontextmanager
async def running_in_background(
    work: Callable[[], Awaitable[None]], *, start: asyncio.Event | None = None
) -> AsyncIterator[None]:
    """Run `work` in a task while the context is open, then cancel it; with `start`, not before that event."""

    async def run() -> None:
        if start is not None:
            await start.wait()
        await work()

    task = asyncio.create_task(run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def retrieve_failure(task: asyncio.Future[Any]) -> None:
    """Retrieve the exception of a task that may have no caller any more, so that it is not logged as forgotten."""
    if not task.cancelled():
        task.exception()


class PendingCounts:
    """How often something of a company was used since the counts were stored; for any thread."""

    def __init__(self) -> None:
        self._counts: dict[ObjectId, Counter[ObjectId]] = {}
        self._taken: dict[ObjectId, Counter[ObjectId]] = {}
        self._lock = threading.Lock()

    def add(self, company_id: ObjectId, ids: Iterable[ObjectId]) -> None:
        """Count one more use of each."""
        with self._lock:
            self._counts.setdefault(company_id, Counter()).update(ids)

    def of(self, company_id: ObjectId) -> Mapping[ObjectId, int]:
        """Return the counts of a company that are not stored yet, or are being stored."""
        with self._lock:
            return self._counts.get(company_id, Counter()) + self._taken.get(company_id, Counter())

    def take(self) -> Mapping[ObjectId, Mapping[ObjectId, int]]:
        """Return the counts of all companies to store them, and begin again with none; `end_storing` forgets them."""
        with self._lock:
            self._taken, self._counts = self._counts, {}
            return self._taken

    def end_storing(self) -> None:
        """Forget the counts that were taken: they are stored, or lost."""
        with self._lock:
            self._taken = {}
