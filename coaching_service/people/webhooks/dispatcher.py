"""The background task that sends deliveries: one process at a time, the holder of a lease.

A delivery is stored before its first attempt, and its result after each: when a process is killed between a response
and the record of it, the next process sends it again.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

import structlog

from coaching_service.core import fields as core_fields
from coaching_service.core.auth import SecretUnreadable, new_token
from coaching_service.core.changes import numbering
from coaching_service.core.database import across_companies
from coaching_service.core.database.connection import as_service_error, unreachable
from coaching_service.core.database.context import Context, Services, gather_reads, transactional
from coaching_service.core.database.documents import now
from coaching_service.core.errors import CursorExpired, NotFound
from coaching_service.core.events import EventType, Listener
from coaching_service.core.http.responses import to_json
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail
from coaching_service.core.jobs.mail import MailBody, NewMail
from coaching_service.core.metrics import read_backlog
from coaching_service.core.outbound import OutboundError
from coaching_service.core.slots import RequestSlots
from coaching_service.people import account, team
from coaching_service.people.changes import events
from coaching_service.people.changes.models import Event
from coaching_service.people.customers import service as customers
from coaching_service.people.webhooks import models
from coaching_service.people.webhooks import service as webhooks

# --- How many attempts run at the same time: limits for each webhook and in total, lower for slow receivers -----------


SLOW_SECONDS = 2.0
_TOTAL = 128


class AttemptSlots:
    """The attempts of one process. One that takes two seconds becomes a slow one, and leaves its slot to the others."""

    def __init__(self) -> None:
        self.fast, self.slow = RequestSlots(_TOTAL), RequestSlots(_TOTAL)


class Pace:
    """How a webhook responds: not known at first, quickly, or slowly, which is when an attempt takes two seconds."""

    def __init__(self, slots: AttemptSlots, company: Hashable) -> None:
        self._slots, self._company = slots, company
        self.is_slow = False
        self.is_known = False

    @asynccontextmanager
    async def attempting(self) -> AsyncIterator[None]:
        """Run an attempt when there is a slot for it, and measure it."""
        slots = self._slots.slow if self.is_slow else self._slots.fast
        await slots.acquire(self._company)
        loop = asyncio.get_running_loop()
        began = loop.time()

        def become_slow() -> None:
            nonlocal slots
            self.is_slow = self.is_known = True
            if slots is self._slots.fast:
                slots.release(self._company)
                slots = self._slots.slow
                slots.take_now(self._company)

        alarm = loop.call_later(SLOW_SECONDS, become_slow)
        try:
            yield
        finally:
            alarm.cancel()
            slots.release(self._company)
            self.is_slow, self.is_known = loop.time() - began >= SLOW_SECONDS, True


class Lane:
    """Attempts of one kind for one webhook: `limit` at a time, fewer while it is not known to respond quickly."""

    def __init__(self, pace: Pace, limit: int, cautious_limit: int) -> None:
        self._pace, self._limit, self._cautious_limit = pace, limit, cautious_limit
        self._running = 0
        self._has_left = asyncio.Event()

    async def enter(self) -> None:
        """Wait until another attempt may run, and count it."""
        while self._running >= (
            self._limit if self._pace.is_known and not self._pace.is_slow else self._cautious_limit
        ):
            self._has_left.clear()
            await self._has_left.wait()
        self._running += 1

    def leave(self) -> None:
        """Count an attempt that has ended."""
        self._running -= 1
        self._has_left.set()


# --- One attempt of a delivery: its body, its signatures, and what follows from the response --------------------------


DISABLE_AFTER = timedelta(days=3)
GONE = 410
_ASKS_TO_WAIT = (429, 503)
_MAIL_SUBJECT = "A webhook has been disabled"


@dataclass(frozen=True)
class Message:
    """A delivery with all that is needed to send it."""

    delivery: models.DueDelivery
    webhook: models.WebhookToSend
    body: bytes


@dataclass(frozen=True)
class Response:
    """What followed from sending a message: the status, or the failure.

    `error` is the code that the owner of the webhook sees, `cause` what the operator sees. `wait`: how many seconds the
    receiver asks to wait.
    """

    status: int | None
    error: str | None
    began: datetime
    duration_ms: int
    cause: str | None = None
    wait: float = 0.0

    @property
    def is_success(self) -> bool:
        """Whether the receiver has accepted the message."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def outcome(self) -> str:
        """How metrics count it: `succeeded`, `rejected` for another status, or the cause of the failure."""
        if (cause := self.cause or self.error) is not None:
            return cause.lower()
        return "succeeded" if self.is_success else "rejected"


async def prepare(ctx: Context, delivery: models.DueDelivery) -> Message | None:
    """Return the message of a delivery; None, and delete it, if the webhook may not send it any more.

    Its client has been erased, or has declined the application since, or the coaches may see less.

    Raises NotFound if the webhook is deleted or not active.
    """
    webhook, event, is_client_there = await gather_reads(
        ctx,
        webhooks.find_to_send(ctx, delivery["webhookId"]),
        _load_event(ctx, delivery),
        _is_client_there(ctx, delivery),
    )
    if webhook is None or not webhook["isActive"]:
        raise NotFound("webhook")
    if event is not None:
        sent = await webhooks.list_sent(ctx, webhook, [cast("Event", event)])
        event = event if sent or webhooks.is_test(delivery) else None
    if event is not None and delivery["type"] == models.TEST_EVENT:
        event = {**event, "data": {"webhookId": webhooks.public_id(webhook)}}
    if event is None or not is_client_there:
        await webhooks.deliveries.delete(ctx, {"_id": delivery["_id"]})
        return None
    return Message(delivery, webhook, to_json(event))


async def send(ctx: Context, message: Message) -> Response:
    """Send a message once."""
    webhook, error, cause, status, wait = message.webhook, None, None, None, 0.0
    began, clock = now(), time.monotonic()
    try:
        vault, public_id = ctx.services.vault, webhooks.public_id(webhook)
        stored = [each for each in webhook["secrets"] if each["expiresAt"] is None or each["expiresAt"] > began]
        in_use = [webhooks.open_secret(vault, public_id, each["sealed"]) for each in stored]
        headers = webhooks.headers_of(f"msg_{message.delivery['_id']}", int(time.time()), message.body, in_use)
        response = await ctx.services.outbound.post(webhook["url"], message.body, headers)
        status, wait = response.status, response.wait_seconds if response.status in _ASKS_TO_WAIT else 0.0
    except SecretUnreadable as unreadable:
        log.warning("the secret of a webhook cannot be read", webhook=str(webhook["_id"]), reason=str(unreadable))
        error = "SECRET_UNREADABLE"
    except OutboundError as failure:
        error, cause = failure.public_code, failure.code
    return Response(status, error, began, round((time.monotonic() - clock) * 1000), cause, wait)


async def record(ctx: Context, message: Message, response: Response) -> datetime | None:
    """Record the result of an attempt; returns when the next one is due, if another follows: now if it was requested.

    Failures are followed: a webhook whose deliveries have all failed for three days is disabled, and at once when its
    receiver says that it is gone.
    """
    delivery, webhook = message.delivery, message.webhook
    result = _result(ctx, delivery, response)
    ctx.services.metrics.webhook_attempts.labels(response.outcome).inc()
    change = {"$set": dict(result), "$inc": {"attempts": 1}, "$unset": {"isQueued": ""}}
    where = {"_id": delivery["_id"], "nextAttemptAt": delivery["nextAttemptAt"]}
    if not await webhooks.deliveries.set_derived(ctx, where, change):  # another one was requested since it began
        change["$set"] = core_fields.take(models.AttemptResponse, result)
        await webhooks.deliveries.set_derived(ctx, {"_id": delivery["_id"]}, change)
        result["nextAttemptAt"] = now()
    if response.status == GONE:
        await _disable(ctx, webhook, None)
    elif not response.is_success and not webhooks.is_test(delivery):
        if webhook["failingSince"] is None:
            await webhooks.record_outcome(ctx, webhook, is_success=False)
        elif webhook["failingSince"] <= now() - DISABLE_AFTER:
            await _disable(ctx, webhook, now() - DISABLE_AFTER)
    return result["nextAttemptAt"]


def _result(ctx: Context, delivery: models.DueDelivery, response: Response) -> models.AttemptResult:
    may_repeat = not webhooks.is_test(delivery) and response.status != GONE
    delays = ctx.services.webhook_retry_seconds if may_repeat else ()
    retries = delivery["retries"]
    result: models.AttemptResult = {
        "status": "succeeded" if response.is_success else "failed",
        "responseStatus": response.status,
        "error": response.error,
        "durationMs": response.duration_ms,
        "lastAttemptAt": response.began,
        "nextAttemptAt": None,
        "retries": retries,
    }
    if not response.is_success and retries < len(delays):
        most = delays[min(retries + 1, len(delays) - 1)]  # a receiver delays no more than by a step
        next_at = now() + timedelta(seconds=max(delays[retries], min(response.wait, most)))
        result |= {"status": "pending", "nextAttemptAt": next_at, "retries": retries + 1}
    return result


async def _load_event(ctx: Context, delivery: models.DueDelivery) -> Mapping[str, object] | None:
    """Return the event as `GET /coach/events` returns it; None if it is gone."""
    if not webhooks.is_test(delivery):
        return await events.find_event(ctx, delivery["eventId"])
    if delivery["type"] == models.TEST_EVENT:
        return {
            "id": delivery["eventId"],
            "seq": delivery["seq"],
            "changeId": None,
            "type": models.TEST_EVENT,
            "createdAt": delivery["createdAt"],
            "companyId": ctx.company_id,
            "customerId": None,
            "actor": {"type": "coach", "_id": ctx.caller.id, "keyId": None, "applicationId": None},
            "data": {},
        }
    sample = events.sample_of(cast("EventType", delivery["type"]))
    made = {"id": delivery["eventId"], "createdAt": delivery["createdAt"], "companyId": ctx.company_id}
    return {**sample, "seq": delivery["seq"], **made}


async def _is_client_there(ctx: Context, delivery: models.DueDelivery) -> bool:
    client_id = delivery["customerId"]
    return client_id is None or await customers.exists(ctx.services, ctx.company_id, client_id)


@transactional
async def _disable(ctx: Context, failing: models.WebhookToSend, failing_since: datetime | None) -> None:
    """Disable a webhook, and queue a mail to the owner, unless it belongs to an application.

    `failing_since`: unless a delivery has succeeded since that time; None: its receiver says that it is gone.
    """
    webhook = await webhooks.disable(ctx, failing, failing_since)
    if webhook is None or ctx.caller.email is None or "clientId" in failing:
        return
    name = f"{webhook['description']} ({webhook['url']})" if webhook["description"] else webhook["url"]
    body: MailBody = {
        "company": ctx.caller.company.name,
        "name": ctx.caller.name,
        "paragraphs": [
            f"The receiver of this webhook says that it is gone (status 410), so it has been disabled: {name}"
            if failing_since is None
            else f"Every delivery to this webhook has failed for three days, so it has been disabled: {name}",
            "Once it works again, activate it in the settings.",
        ],
        "button": "Open the webhook",
        "link": f"{ctx.services.base_url}/app/settings/webhooks/{webhook['_id']}",
        "notes": ["Events that happen in the meantime are not sent; they can be read with GET /coach/events."],
        "reason": f"You receive this mail because you are the owner of {ctx.caller.company.name}.",
        "settings": None,
    }
    await mail.enqueue_mail(ctx, NewMail(ctx.caller.email, _MAIL_SUBJECT, body))


# --- Endpoint ---------------------------------------------------------------------------------------------------------
# Sending the deliveries of one webhook, which it stores first: first attempts in the order of events, others apart.


_BATCH = 100
_CHECK_SECONDS = 30.0  # between two looks at the database if nothing is signalled
_OVERLAP_SECONDS = 0.25  # after which the next first attempt no longer waits for the response to the one before
_OWNER_SECONDS = 5.0


class Endpoint:
    """The deliveries of one active webhook, sent by this process as long as it has the lease."""

    def __init__(self, services: Services, company_id: ObjectId, webhook_id: ObjectId, slots: AttemptSlots) -> None:
        self._services, self._company_id, self._webhook_id = services, company_id, webhook_id
        self._pace = Pace(slots, company_id)
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
        """Work until cancelled or failed: then the dispatcher starts it again, after a defect not at once."""
        try:
            async with (
                self._services.number_signals.listen(self._company_id) as listener,
                asyncio.TaskGroup() as tasks,
            ):
                tasks.create_task(self._send_new(tasks, listener))
                tasks.create_task(self._send_due(tasks))
        except* NotFound:  # the webhook is no longer active, or the company is deleted
            pass
        except* Exception as errors:  # noqa: BLE001 - the others go on
            if not _log_failure(errors.exceptions[0]):
                await asyncio.sleep(_DEFECT_SECONDS)

    async def _load_context(self) -> Context:
        """Return the context of the owner, who sees all events, loaded again every few seconds."""
        clock = asyncio.get_running_loop().time()
        if self._owner is None or clock - self._owner_loaded > _OWNER_SECONDS:
            owner = await team.get_owner(self._services, self._company_id)
            self._owner = Context(self._services, owner, operation="webhooks", interface="system")
            self._owner_loaded = clock
        return self._owner

    async def _send_new(self, tasks: asyncio.TaskGroup, listener: Listener) -> None:
        after = -1
        while True:
            listener.event.clear()
            ctx = await self._load_context()
            queued = await webhooks.list_queued(ctx, self._webhook_id, after, _BATCH)
            for delivery in queued:
                after = delivery["seq"]
                await self._start(tasks, self._first, delivery)
            if not queued and not await _plan_deliveries(ctx, self._webhook_id):
                with suppress(TimeoutError):
                    async with asyncio.timeout(_CHECK_SECONDS):
                        await listener.event.wait()

    async def _send_due(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            self._due_changed.clear()
            self._next_due = None
            ctx, at = await self._load_context(), now()
            due = await webhooks.list_due(ctx, self._webhook_id, at, _BATCH, without=self._running_further)
            for delivery in due:
                self._running_further.add(delivery["_id"])
                await self._start(tasks, self._further, delivery)
            if not due:
                check_at = at + timedelta(seconds=_CHECK_SECONDS)
                self._next_due = min(await webhooks.find_next_due(ctx, self._webhook_id, at) or check_at, check_at)
                with suppress(TimeoutError):
                    async with asyncio.timeout((self._next_due - now()).total_seconds()):
                        await self._due_changed.wait()

    async def _start(self, tasks: asyncio.TaskGroup, lane: Lane, delivery: models.DueDelivery) -> None:
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
            # The database is not asked after each success, unless others may fail.
            if not response.is_success:
                self._may_be_failing = True
            elif self._may_be_failing or "sharedId" in message.webhook:
                self._may_be_failing = False
                await webhooks.record_outcome(ctx, message.webhook, is_success=True)
        finally:
            self._leave(lane, message.delivery)
        if next_attempt is not None and (self._next_due is None or next_attempt < self._next_due):
            self._due_changed.set()

    def _leave(self, lane: Lane, delivery: models.DueDelivery) -> None:
        lane.leave()
        self._running_further.discard(delivery["_id"])


async def _plan_deliveries(ctx: Context, webhook_id: ObjectId) -> bool:
    """Store the deliveries of the next events of an active webhook; returns whether there may be more events.

    There is one for each event of a type that it wants, in the order of the numbers. Events that are older than 30 days
    are left out. A position ahead of the log, or one that is missing, becomes its end.
    """
    webhook = await webhooks.find_to_send(ctx, webhook_id)
    if webhook is None or not webhook["isActive"]:
        return False
    if (position := webhook.get("position")) is None:
        await webhooks.move_position(ctx, webhook_id, None, await numbering.find_last_number(ctx))
        return True
    try:
        page, new_position = await events.read_events(ctx, position, _BATCH, webhook["types"])
    except CursorExpired:
        await webhooks.move_position(ctx, webhook_id, position, await events.find_available(ctx, position))
        return True
    if new_position > position:
        sent = await webhooks.list_sent(ctx, webhook, page["docs"])
        await _store_deliveries(ctx, webhook_id, position, new_position, sent)
    return page["hasMore"] or bool(page["docs"])


@transactional
async def _store_deliveries(
    ctx: Context, webhook_id: ObjectId, position: int, new_position: int, new: Sequence[Event]
) -> None:
    """Store deliveries and the position after them, unless another process has done so."""
    if await webhooks.move_position(ctx, webhook_id, position, new_position):
        # What belongs to a client is erased with the client; that a client was deleted is still reported.
        clients = [None if event["type"] == "customer.deleted" else event["customerId"] for event in new]
        stored = [
            webhooks.new_delivery(webhook_id, event["id"], event["seq"], event["type"], client) | {"isQueued": True}
            for event, client in zip(new, clients, strict=True)
        ]
        await webhooks.deliveries.insert_many(ctx, stored)


_LEASE_NAME = "webhooks"
_RENEW_SECONDS = 3.0
_RETRY_SECONDS = 1.0
_RELEASE_SECONDS = 1.0
_DEFECT_SECONDS = 30.0
_LIST_SECONDS = 1.0  # between two looks at which webhooks there are
_LISTS_A_CHECK = 30  # of these looks, one is also at which companies allow an application
_MAX_COUNT = 10_000  # of pending deliveries that metrics report

log = structlog.get_logger("coaching_service.webhooks")


class Dispatcher:
    """Sends the deliveries of all companies while it holds the lease."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._holder = new_token()
        self._slots = AttemptSlots()
        self._endpoints: dict[ObjectId, tuple[Endpoint, asyncio.Task[None]]] = {}
        self._requested: dict[ObjectId, int] = {}
        self._is_failing = False

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            while True:
                try:
                    if await across_companies.acquire(self._services, _LEASE_NAME, self._holder):
                        await self._deliver()
                except* across_companies.LeaseLost:
                    log.info("another process sends webhooks")
                except* Exception as errors:  # noqa: BLE001 - the dispatcher has to survive the loss of the database
                    if not self._is_failing:  # only the first until webhooks are sent again
                        self._is_failing = True
                        _log_failure(errors.exceptions[0])
                await asyncio.sleep(_RETRY_SECONDS)
        finally:
            with suppress(Exception):
                async with asyncio.timeout(_RELEASE_SECONDS):
                    await across_companies.release(self._services, _LEASE_NAME, self._holder)

    async def _deliver(self) -> None:
        self._endpoints.clear()
        self._requested.clear()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._renew_lease())
            for number in itertools.count():
                if number % _LISTS_A_CHECK == 0:
                    await webhooks.join_all(self._services)
                # Begin with webhooks that have become active, end with inactive ones, and notify the others. Those of
                # suspended companies pause: deliveries and the position in the change log stay as they are.
                suspended = await account.list_suspended(self._services)
                active = {
                    webhook["_id"]: webhook
                    for webhook in await webhooks.list_active(self._services)
                    if webhook["companyId"] not in suspended
                }
                for webhook_id, (endpoint, task) in list(self._endpoints.items()):
                    if webhook_id not in active or task.done():
                        task.cancel()
                        del self._endpoints[webhook_id]
                    elif active[webhook_id]["requested"] != self._requested[webhook_id]:
                        endpoint.look_again()
                for webhook_id, webhook in active.items():
                    if webhook_id not in self._endpoints:
                        endpoint = Endpoint(self._services, webhook["companyId"], webhook_id, self._slots)
                        self._endpoints[webhook_id] = endpoint, tasks.create_task(endpoint.run())
                    self._requested[webhook_id] = webhook["requested"]
                self._is_failing = False
                await asyncio.sleep(_LIST_SECONDS)

    async def _renew_lease(self) -> None:
        """Renew the lease; raises LeaseLost, or Unavailable before it expires, which cancels all attempts."""
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            try:
                async with asyncio.timeout(across_companies.LEASE.total_seconds() - 2 * _RENEW_SECONDS):
                    is_holder = await across_companies.acquire(self._services, _LEASE_NAME, self._holder)
            except TimeoutError:
                raise unreachable() from None
            if not is_holder:
                raise across_companies.LeaseLost


def _log_failure(error: BaseException) -> bool:
    """Log why nothing is sent; returns whether the reason is known, and passes."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    known = as_service_error(error) if isinstance(error, Exception) else None
    if known is None:
        log.error("webhooks are not sent", exc_info=error)
    else:
        log.warning("webhooks are not sent at the moment", reason=known.message)
    return known is not None


async def read_metrics(services: Services) -> None:
    """Read the pending deliveries of the active webhooks of all companies, at most 10,000.

    They are not a number while the database does not respond.
    """
    metrics, pending = services.metrics, webhooks.find_pending(services, _MAX_COUNT)
    await read_backlog(pending, metrics.deliveries_pending, metrics.oldest_delivery_seconds, "webhook deliveries")
