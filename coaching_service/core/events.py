"""Events: the types that the change log, the activity feed and webhooks share, and events between features.

A service reports a typed event of the log (`EventType`) with `ctx.recorder`; most are derived from the documents that
a transaction writes. A `DomainEvent` calls the features that react to a change, inside its transaction; the
subscribers are assembled in `coaching_service/subscriptions.py`, the only place where both sides are known.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar, cast, get_args

from coaching_service.core.cached_reads import CachedReads
from coaching_service.core.errors import TooManyRequests
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
    "media.added",
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
    "employee.created",
    "employee.updated",
    "employee.removed",
    "key.created",
    "key.revoked",
]
EVENT_TYPES: tuple[EventType, ...] = get_args(EventType)
# What only the owner may see: they concern the team.
OWNER_EVENTS = frozenset(each for each in EVENT_TYPES if each.partition(".")[0] in ("employee", "key"))

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


# --- The response to a request whose work continues after it ----------------------------------------------------------


@dataclass(frozen=True)
class Accepted:
    """Work that has been queued: its job, as interfaces return it with the status 202."""

    job_id: ObjectId

    def to_response(self) -> dict[str, ObjectId]:
        """Return the body of the response."""
        return {"jobId": self.job_id}


# --- Notifying the requests that wait for new changes of a company ----------------------------------------------------


T = TypeVar("T")

MAX_PAGES_OF_A_SESSION = 10
# How many requests, and pages, one process holds at most: of a company, and of a credential.
_MOST = {"request": (50, 20), "page": (1000, MAX_PAGES_OF_A_SESSION)}
_RETRY_SECONDS = 5
_SHARED_SECONDS = 1.0


class TooManyWaiting(TooManyRequests):
    """The credential, or the company, has too many requests that wait for events."""

    default_code = "TOO_MANY_WAITING"
    default_message = f"Too many requests wait for events; try again in {_RETRY_SECONDS} seconds"
    default_headers: ClassVar[Mapping[str, str]] = {"Retry-After": str(_RETRY_SECONDS)}


class Listener:
    """What waits for a company. `event` is set when there may be something new; `is_ended` when waiting is over."""

    def __init__(self, company: _Company) -> None:
        self._company = company
        self.event = asyncio.Event()
        self.is_ended = False

    async def wait(self, seconds: float) -> bool:
        """Wait until there may be something new, at most `seconds`; returns whether there may be."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.event.wait()
        return self.event.is_set() and not self.is_ended

    async def share(self, key: Hashable, read: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return what `read` returns, or what it returned to another listener of the company for the same `key`.

        Only what was read since the company was notified last, and within a second, is returned again.
        """
        return cast("T", await self._company.reads.get(key, read))


class _Company:
    """What waits for one company: its listeners, how many requests and pages a credential holds, and shared reads."""

    def __init__(self) -> None:
        self.listeners: set[Listener] = set()
        self.held: defaultdict[str, Counter[ObjectId]] = defaultdict(Counter)
        self.reads = CachedReads[Hashable, Any](_SHARED_SECONDS)

    def notify(self) -> None:
        """Notify all listeners; what has been read before is not used again."""
        self.reads = CachedReads[Hashable, Any](_SHARED_SECONDS)
        for listener in self.listeners:
            listener.event.set()


class CompanySignals:
    """What waits for which company; `is_needed` is set while anything waits."""

    def __init__(self) -> None:
        self._companies: dict[ObjectId, _Company] = {}
        self.is_needed = asyncio.Event()

    @asynccontextmanager
    async def listen(self, company_id: ObjectId) -> AsyncIterator[Listener]:
        """Listen for new changes of a company; the caller clears the event of the listener."""
        company = self._companies.setdefault(company_id, _Company())
        listener = Listener(company)
        company.listeners.add(listener)
        self.is_needed.set()
        try:
            yield listener
        finally:
            company.listeners.discard(listener)
            if not company.listeners:
                del self._companies[company_id]
            if not self._companies:
                self.is_needed.clear()

    @asynccontextmanager
    async def hold(
        self, company_id: ObjectId, credential_id: ObjectId, by: Literal["request", "page"] = "request"
    ) -> AsyncIterator[Listener]:
        """Listen for new changes in a request that is held with a credential, or that an open page of a session sends.

        Raises TooManyWaiting if this process holds as many as it may, of the credential or of the company.
        """
        most, most_of_a_credential = _MOST[by]
        async with self.listen(company_id) as listener:
            held = self._companies[company_id].held[by]
            if held.total() >= most or held[credential_id] >= most_of_a_credential:
                raise TooManyWaiting
            held[credential_id] += 1
            try:
                yield listener
            finally:
                held[credential_id] -= 1

    def count(self, company_id: ObjectId) -> int:
        """Return how many requests, and webhooks, wait for a company."""
        company = self._companies.get(company_id)
        return 0 if company is None else len(company.listeners)

    def notify(self, company_id: ObjectId) -> None:
        """Notify what waits for a company."""
        if (company := self._companies.get(company_id)) is not None:
            company.notify()

    def notify_all(self) -> None:
        """Notify everything that waits."""
        for company in self._companies.values():
            company.notify()

    def end_waiting(self) -> None:
        """Stop everything that waits, because the service stops."""
        for company in self._companies.values():
            for listener in company.listeners:
                listener.is_ended = True
        self.notify_all()
