"""Pages that follow what others do: requests that are held until there is an event that the page shows.

They share the reads of the requests that wait for events: how many pages are open does not change what is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial

from coaching_service.core.changes import history
from coaching_service.core.changes.numbering import batches
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.events import EventType
from coaching_service.core.ids import ObjectId
from coaching_service.people.account import suspension
from coaching_service.people.changes.events import RETENTION, wait_for_changes

_CHANGES_A_READ = 500
_CHECK_SECONDS = 5.0  # between two checks whether the page is still open


@dataclass(frozen=True)
class Followed:
    """The number to continue from, and whether there was an event."""

    position: int
    has_event: bool


async def find_position(ctx: Context) -> int:
    """Return the number to continue from for a page that is read afterwards."""
    return await batches.find_last_number(ctx)


async def follow(
    ctx: Context,
    position: int,
    types: Collection[EventType],
    is_shown: Callable[[ObjectId | None], bool],
    *,
    wait: float,
) -> Followed:
    """Wait up to `wait` seconds for an event of `types` after a number, about a client for whom `is_shown` is true.

    Whether the caller may still see it is checked by reading the page again. Raises CursorExpired for a number that is
    older than 30 days or ahead of the log, TooManyWaiting, CompanySuspended; Unauthorized and Forbidden if the caller's
    access has ended meanwhile.
    """
    deadline = asyncio.get_running_loop().time() + wait
    async with ctx.services.number_signals.hold(ctx.company_id, ctx.caller.credential_id, "page") as listener:
        while True:
            listener.event.clear()
            async with ctx.turn():
                key = (None, position, _CHANGES_A_READ)
                read = partial(history.list_numbered, ctx, position, _CHANGES_A_READ, since=now() - RETENTION)
                page = await listener.share(key, read)
                await listener.share("active", partial(suspension.require_active, ctx.services, ctx.company_id))
            events = (each for change in page.changes for each in change["events"])
            position = page.until
            if any(each["type"] in types and is_shown(each["customerId"]) for each in events):
                return Followed(position, has_event=True)
            has_changes = page.has_more or await wait_for_changes(ctx, listener, deadline, _CHECK_SECONDS)
            ctx = await ctx.with_current_caller()
            if not has_changes:
                return Followed(position, has_event=False)
