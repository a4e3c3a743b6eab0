"""Sending the deliveries of one webhook, which it stores first: first attempts in the order of events, others apart."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from coaching_service.core.changes.numbering import batches
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import CursorExpired
from coaching_service.core.ids import ObjectId
from coaching_service.core.signals import Listener
from coaching_service.people.changes import events
from coaching_service.people.changes.models import Event
from coaching_service.people.team import service as team
from coaching_service.people.webhooks import store
from coaching_service.people.webhooks._attempts import Message, Response, prepare, record, send
from coaching_service.people.webhooks._pace import AttemptSlots, Lane, Pace
from coaching_service.people.webhooks.deliveries import new_delivery
from coaching_service.people.webhooks.models import DueDelivery

_BATCH = 100
_CHECK_SECONDS = 30.0  # between two looks at the database if nothing is signalled
_OVERLAP_SECONDS = 0.25  # after which the next first attempt no longer waits for the response to the one before
_OWNER_SECONDS = 5.0


class Endpoint:
    """The deliveries of one active webhook, sent by this process as long as it has the lease."""

    def __init__(self, services: Services, company_id: ObjectId, webhook_id: ObjectId, slots: AttemptSlots) -> None:
        self._services, self._company_id, self._webhook_id = services, company_id, webhook_id
        self._pace = Pace(slots)
        self._first, self._further = Lane(self._pace, 8, 2), Lane(self._pace, 4, 1)
        self._running_further: set[ObjectId] = set()
        self._may_be_failing = True
        self._due_changed = asyncio.Event()
        self._next_due: datetime | None = None
        self._owner: Context | None = None
        self._owner_loaded = 0.0

    def look_again(self) -> None:
        """Look for attempts that have become due."""
        self._due_changed.set()

    async def run(self) -> None:
        """Work until cancelled. Raises NotFound if the webhook is no longer active, or the company is deleted."""
        async with (
            self._services.number_signals.listen(self._company_id) as listener,
            asyncio.TaskGroup() as tasks,
        ):
            tasks.create_task(self._send_new(tasks, listener))
            tasks.create_task(self._send_due(tasks))

    async def _load_context(self) -> Context:
        """Return the context of the owner, who sees all events, loaded again every few seconds."""
        clock = asyncio.get_running_loop().time()
        if self._owner is None or clock - self._owner_loaded > _OWNER_SECONDS:
            owner = await team.get_owner(self._services, self._company_id)
            self._owner = Context(self._services, owner, operation="webhooks", interface="system")
            self._owner_loaded = clock
        return self._owner

    async def _send_new(self, tasks: asyncio.TaskGroup, listener: Listener) -> None:
        """Send the first attempts, in the order of the numbers of the events."""
        after = -1
        while True:
            listener.event.clear()
            ctx = await self._load_context()
            queued = await store.list_queued(ctx, self._webhook_id, after, _BATCH)
            for delivery in queued:
                after = delivery["seq"]
                await self._start(tasks, self._first, delivery)
            if not queued and not await _plan_deliveries(ctx, self._webhook_id):
                with suppress(TimeoutError):
                    async with asyncio.timeout(_CHECK_SECONDS):
                        await listener.event.wait()

    async def _send_due(self, tasks: asyncio.TaskGroup) -> None:
        """Send the attempts whose time has come: retries, tests, and requested ones."""
        while True:
            self._due_changed.clear()
            self._next_due = None
            ctx, at = await self._load_context(), now()
            due = await store.list_due(ctx, self._webhook_id, at, _BATCH, without=self._running_further)
            for delivery in due:
                self._running_further.add(delivery["_id"])
                await self._start(tasks, self._further, delivery)
            if not due:
                check_at = at + timedelta(seconds=_CHECK_SECONDS)
                self._next_due = min(await store.find_next_due(ctx, self._webhook_id, at) or check_at, check_at)
                with suppress(TimeoutError):
                    async with asyncio.timeout((self._next_due - now()).total_seconds()):
                        await self._due_changed.wait()

    async def _start(self, tasks: asyncio.TaskGroup, lane: Lane, delivery: DueDelivery) -> None:
        """Start an attempt when the lane has room; returns once the receiver has responded, or after a short time."""
        await lane.enter()
        try:
            message = await prepare(await self._load_context(), delivery)
        except BaseException:
            lane.leave()
            raise
        if message is None:
            self._leave(lane, delivery)
            return
        has_response = asyncio.Event()
        tasks.create_task(self._attempt(lane, message, has_response))
        with suppress(TimeoutError):
            async with asyncio.timeout(_OVERLAP_SECONDS):
                await has_response.wait()

    async def _attempt(self, lane: Lane, message: Message, has_response: asyncio.Event) -> None:
        ctx, next_attempt = await self._load_context(), None
        try:
            async with self._pace.attempting():
                response = await send(ctx, message)
            has_response.set()
            next_attempt = await record(ctx, message, response)
            await self._follow(ctx, response)
        finally:
            self._leave(lane, message.delivery)
        if next_attempt is not None and (self._next_due is None or next_attempt < self._next_due):
            self._due_changed.set()

    async def _follow(self, ctx: Context, response: Response) -> None:
        """Record a success after failures; the database is not asked after each success."""
        if not response.is_success:
            self._may_be_failing = True
        elif self._may_be_failing:
            self._may_be_failing = False
            where = {"_id": self._webhook_id, "failingSince": {"$ne": None}}
            await store.webhooks.set_derived(ctx, where, {"$set": {"failingSince": None}})

    def _leave(self, lane: Lane, delivery: DueDelivery) -> None:
        lane.leave()
        self._running_further.discard(delivery["_id"])


async def _plan_deliveries(ctx: Context, webhook_id: ObjectId) -> bool:
    """Store the deliveries of the next events of an active webhook; returns whether there may be more events.

    There is one for each event of a type that it wants, in the order of the numbers. Events that are older than 30 days
    are left out. A position ahead of the log, or one that is missing, becomes its end.
    """
    fields = ("position", "types", "isActive")
    webhook = await store.webhooks.find_one(ctx, {"_id": webhook_id}, fields)
    if webhook is None or not webhook["isActive"]:
        return False
    if (position := webhook.get("position")) is None:
        await store.move_position(ctx, webhook_id, None, await batches.find_last_number(ctx))
        return True
    try:
        page, new_position = await events.read_events(ctx, position, _BATCH, webhook["types"])
    except CursorExpired:
        await store.move_position(ctx, webhook_id, position, await events.find_available(ctx, position))
        return True
    if new_position > position:
        await _store_deliveries(ctx, webhook_id, position, new_position, page["docs"])
    return page["hasMore"] or bool(page["docs"])


@transactional
async def _store_deliveries(
    ctx: Context, webhook_id: ObjectId, position: int, new_position: int, new: Sequence[Event]
) -> None:
    """Store deliveries and the position after them, unless another process has done so."""
    if await store.move_position(ctx, webhook_id, position, new_position):
        await store.deliveries.insert_many(ctx, [_delivery(webhook_id, event) for event in new])


def _delivery(webhook_id: ObjectId, event: Event) -> dict[str, object]:
    # What belongs to a client is erased with the client; that a client was deleted is still reported.
    client_id = None if event["type"] == "customer.deleted" else event["customerId"]
    return {**new_delivery(webhook_id, event["id"], event["seq"], event["type"], client_id), "isQueued": True}
