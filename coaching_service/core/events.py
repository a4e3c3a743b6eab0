"""Events: the types that the change log, the activity feed and webhooks share, and events between features.

A service reports a typed event of the log (`EventType`) with `ctx.recorder`; most are derived from the documents that
a transaction writes. A `DomainEvent` calls the features that react to a change, inside its transaction; the
subscribers are assembled in `coaching_service/subscriptions.py`, the only place where both sides are known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable
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
