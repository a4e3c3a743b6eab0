"""The events of a company in the order of their numbers, and waiting for the next ones."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from datetime import timedelta
from functools import partial
from typing import cast

from coaching_service.core.auth.visibility import Visibility
from coaching_service.core.changes import history
from coaching_service.core.changes.history import NumberedPage
from coaching_service.core.changes.models import NumberedChange
from coaching_service.core.changes.numbering import batches
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.database.worker_thread import on_worker_thread
from coaching_service.core.errors import InvalidFields
from coaching_service.core.events import EventType
from coaching_service.core.ids import ObjectId
from coaching_service.core.signals import Listener
from coaching_service.people.account import suspension
from coaching_service.people.changes.models import Event, EventActor, EventPage
from coaching_service.people.changes.visibility import allows_event, load_visibility

RETENTION = timedelta(days=30)
_CHANGES_A_READ = 500
_MAX_READS = 4
_CHECK_SECONDS = 0.5  # between two checks whether the caller is still connected

# Returns at most so many changes after a number.
_Read = Callable[[int, int], Awaitable[NumberedPage]]


async def list_events(
    ctx: Context,
    *,
    limit: int,
    after: str | None = None,
    types: Collection[EventType] = (),
    customer_id: ObjectId | None = None,
    wait: int = 0,
) -> EventPage:
    """Return at most `limit` events after a cursor, oldest first; without a cursor, the events of the last 30 days.

    Only `types` (empty: all) and events of a client, if given. If there are none, waits up to `wait` seconds for the
    next ones, as long as the caller is connected and the service does not stop; requests that wait for the same
    changes share what is read. The database is used in `ctx.turn`. Raises InvalidFields for a text that is not a
    cursor, CursorExpired for one older than 30 days or ahead of the log, TooManyWaiting, CompanySuspended; after
    waiting, Unauthorized and Forbidden if the caller's access has ended.
    """
    if not wait:
        async with ctx.turn():
            page, _ = await read_events(ctx, await _position_of(ctx, after), limit, types, customer_id)
            return page
    deadline = asyncio.get_running_loop().time() + wait
    async with ctx.services.number_signals.hold(ctx.company_id, ctx.caller.credential_id) as listener:
        read = _sharing_reads(ctx, listener, customer_id)
        listener.event.clear()
        async with ctx.turn():
            page, position = await _read_events(ctx, await _position_of(ctx, after), limit, types, read)
        while not (page["docs"] or page["hasMore"]):
            has_changes = await wait_for_changes(ctx, listener, deadline)
            ctx = await ctx.with_current_caller()
            if not has_changes:
                break
            listener.event.clear()
            async with ctx.turn():
                page, position = await _read_events(ctx, position, limit, types, read)
                # Meanwhile the company may have been suspended
                await listener.share("active", partial(suspension.require_active, ctx.services, ctx.company_id))
        return page


async def find_event(ctx: Context, event_id: str) -> Event | None:
    """Return the event with this `id`; None if it is gone, or the caller may not see it."""
    change_id, _, number = event_id.partition(".")
    change = await history.find_one(ctx, ObjectId(change_id))
    if change is None or "seq" not in change:
        return None
    position = change["seq"] + int(number) - 1
    numbered = cast("NumberedChange", change)
    events = _events_of(numbered, position, await load_visibility(ctx), ())
    return next((event for event in events if event["id"] == event_id), None)


async def find_available(ctx: Context, position: int) -> int:
    """Return the number to continue from: that before the first event that is available, or the last of the log."""
    first = await batches.find_position_at(ctx, now() - RETENTION)
    return first if position < first else await batches.find_last_number(ctx)


async def wait_for_changes(
    ctx: Context, listener: Listener, deadline: float, check_seconds: float = _CHECK_SECONDS
) -> bool:
    """Wait for new changes; returns False when the time is up, the caller has disconnected, or the service stops.

    It looks every `check_seconds` whether the caller has disconnected.
    """
    while not (ctx.is_disconnected() or listener.is_ended):
        remaining = deadline - asyncio.get_running_loop().time()
        if remaining <= 0:
            return False
        if await listener.wait(min(remaining, check_seconds)):
            return True
    return False


@on_worker_thread
async def read_events(
    ctx: Context, position: int, limit: int, types: Collection[EventType] = (), customer_id: ObjectId | None = None
) -> tuple[EventPage, int]:
    """Return at most `limit` events after a number, and the number to continue from.

    It reads a bounded number of changes: a rare type may take several calls. Raises CursorExpired if the next
    number is older than 30 days, or `position` is ahead of the log.
    """
    return await _read_events(ctx, position, limit, types, partial(_list_numbered, ctx, customer_id))


async def _list_numbered(ctx: Context, customer_id: ObjectId | None, position: int, size: int) -> NumberedPage:
    return await history.list_numbered(ctx, position, size, since=now() - RETENTION, customer_id=customer_id)


def _sharing_reads(ctx: Context, listener: Listener, customer_id: ObjectId | None) -> _Read:
    """Return how a request reads what others that wait for the same changes have read, if they have."""

    async def read(position: int, size: int) -> NumberedPage:
        return await listener.share(
            (customer_id, position, size), partial(_list_numbered, ctx, customer_id, position, size)
        )

    return read


async def _read_events(
    ctx: Context, position: int, limit: int, types: Collection[EventType], read_changes: _Read
) -> tuple[EventPage, int]:
    visibility = await load_visibility(ctx)
    events: list[Event] = []
    has_more = True
    size = _CHANGES_A_READ if types else min(limit + 1, _CHANGES_A_READ)  # most changes have one event
    for _ in range(_MAX_READS):
        read = await read_changes(position, size)
        for change in read.changes:
            for event in _events_of(change, position, visibility, types):
                events.append(event)
                position = event["seq"]
                if len(events) == limit:
                    return _page(events, position, has_more=True), position
        position, has_more = read.until, read.has_more
        if not has_more:
            break
        size = _CHANGES_A_READ
    return _page(events, position, has_more=has_more), position


def _events_of(
    change: NumberedChange, position: int, visibility: Visibility, types: Collection[EventType]
) -> list[Event]:
    if (author := change["actor"]) is None:
        return []
    first, change_id, credential_id = change["seq"], change["_id"], change["credentialId"]
    has_key = change["via"] == "apiKey" or change.get("hasKey", False)
    actor: EventActor = {
        "type": author["type"],
        "_id": author["_id"],
        "keyId": credential_id if has_key else None,
        "applicationId": credential_id if change["via"] == "assistant" and not has_key else None,
    }
    return [
        {
            "id": f"{change_id}.{number}",
            "seq": first + number,
            "changeId": change_id,
            "type": event["type"],
            "createdAt": change["createdAt"],
            "customerId": event["customerId"],
            "actor": actor,
            "data": event["data"],
        }
        for number, event in enumerate(change["events"])
        if first + number > position and (not types or event["type"] in types) and allows_event(visibility, event)
    ]


def _page(events: list[Event], position: int, *, has_more: bool) -> EventPage:
    return {"docs": events, "nextCursor": str(position), "hasMore": has_more}


async def _position_of(ctx: Context, cursor: str | None) -> int:
    if cursor is None:
        return await batches.find_position_at(ctx, now() - RETENTION)
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 15):
        message = "must be a nextCursor of this list"
        raise InvalidFields([{"field": "after", "code": "INVALID_CURSOR", "message": message}])
    return int(cursor)
