"""Sending notifications to devices of coaches and clients: a job for each, and what follows from the response."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from email.utils import parseaddr
from hashlib import sha256
from typing import NotRequired, TypedDict
from urllib.parse import urlsplit

import orjson
import structlog

from coaching_service.core.auth import SecretUnreadable
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job, RunAgain, company_of
from coaching_service.core.outbound import OutboundError, OutboundResponse
from coaching_service.people.notifications import PushMessage, Recipient
from coaching_service.people.push import _encryption, keys, models, service
from coaching_service.people.push.models import PushTarget

SEND = "send_push"
CONNECTIONS = 64  # of this process, for all push services
_OF_ONE = 40
_OF_ONE_WITHOUT_RESPONSE = 2
_MAX_REMEMBERED = 1000
_RETRY_SECONDS = (5, 30, 120, 600)
_LIFETIME = timedelta(hours=2)
_TEST_LIFETIME = timedelta(minutes=10)
_MAX_BODY = 600  # characters: a message with its encryption has at most 4096 bytes
_MAX_TITLE = 120

log = structlog.get_logger("coaching_service.push")


class _Pace:
    """How many messages are sent to one push service, by host, at the same time: few while it does not respond.

    So a push service that hangs does not hold up the others.
    """

    def __init__(self) -> None:
        self._running: Counter[str] = Counter()
        self._without_response: set[str] = set()

    def enter(self, host: str) -> timedelta | None:
        """Take a place, and return None; without a free one return after which time to ask again."""
        is_slow = host in self._without_response
        if self._running[host] >= (_OF_ONE_WITHOUT_RESPONSE if is_slow else _OF_ONE):
            return timedelta(seconds=5 if is_slow else 0.2)
        self._running[host] += 1
        return None

    def leave(self, host: str, *, responded: bool) -> None:
        """Leave a place. `responded`: the push service has answered, with any status."""
        self._running[host] -= 1
        if not self._running[host]:
            del self._running[host]
        if responded:
            self._without_response.discard(host)
        elif len(self._without_response) < _MAX_REMEMBERED:
            self._without_response.add(host)


_pace = _Pace()


class PushContent(TypedDict):
    """What the service worker of a device receives."""

    title: str
    body: str
    path: str
    tag: str


class _Arguments(TypedDict):
    """The arguments of the job that sends a message to a device; `sealed` is the encrypted PushContent."""

    subscriptionId: ObjectId
    sealed: bytes
    topic: str
    until: datetime
    tries: NotRequired[int]


async def enqueue(ctx: Context, message: PushMessage) -> int:
    """Queue a message to every device of its recipient, in the caller's transaction, and return their number.

    It is not sent if the client it is about is erased before, nor when it is pointless or two hours late.
    """
    of_recipient = {"subjectId": message.recipient["_id"]}
    ids = [each["_id"] for each in await models.subscriptions.find(ctx, of_recipient, fields=("_id",))]
    if ctx.recorder is not None:
        ctx.recorder.sends = True
    await _enqueue(ctx, ids, message, _LIFETIME)
    return len(ids)


async def enqueue_test(ctx: Context) -> int:
    """Queue a message to the device of the caller's session, and return the number of messages: 0 without one."""
    listed = await models.list_of_subject(ctx, ctx.caller.id)
    ids = [each["_id"] for each in listed if each["sessionId"] == ctx.caller.credential_id]
    path = "/app/settings/notifications" if ctx.caller.is_coach else "/train/settings/notifications"
    text = "Notifications arrive on this device."
    recipient: Recipient = {"type": "coach" if ctx.caller.is_coach else "client", "_id": ctx.caller.id}
    about = None if ctx.caller.is_coach else ctx.caller.id
    message = PushMessage(recipient, about, f"test-{ObjectId()}", "It works", text, path)
    await _enqueue(ctx, ids, message, _TEST_LIFETIME)
    return len(ids)


async def _enqueue(ctx: Context, ids: list[ObjectId], message: PushMessage, lifetime: timedelta) -> None:
    until = now() + lifetime
    if message.valid_until is not None:
        until = min(until, message.valid_until)
    content: PushContent = {
        "title": _shorten(message.title, _MAX_TITLE),
        "body": _shorten(message.text, _MAX_BODY),
        "path": message.path,
        "tag": message.tag,
    }
    plain, jobs = orjson.dumps(content), dict[ObjectId, tuple[dict[str, object], ObjectId | None]]()
    for subscription_id in ids:
        identifier = ObjectId()
        arguments: _Arguments = {
            "subscriptionId": subscription_id,
            "sealed": ctx.services.vault.seal(plain, _binding(identifier)),
            "topic": sha256(message.tag.encode()).hexdigest()[:32],
            "until": until,
        }
        jobs[identifier] = (dict(arguments), message.customer_id)
    if jobs:
        await queue.enqueue_each(ctx, SEND, jobs)


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


async def send(services: Services, job: Job) -> RunAgain | None:
    """Send a message to a device.

    An attempt that was interrupted is repeated: the device shows the message of the same tag once.
    """
    arguments, company_id = _read(job), company_of(job)
    if arguments["until"] <= now():
        return None
    subscription = await models.find_to_send(services, company_id, arguments["subscriptionId"])
    if subscription is None:
        return None
    try:
        target = service.open_target(services.vault, subscription)
        private_key = await keys.load_private_key(services, subscription["keyId"])
        content = services.vault.open(arguments["sealed"], _binding(job.id))
    except SecretUnreadable as unreadable:
        log.warning("a push message cannot be read", job=str(job.id), reason=str(unreadable))
        return None
    if private_key is None:  # replaced so long ago that no browser uses it
        await _remove_gone(services, company_id, subscription["_id"])
        return None
    host = urlsplit(target["endpoint"]).netloc
    if (wait := _pace.enter(host)) is not None:
        return RunAgain(wait)
    response: OutboundResponse | None = None
    try:
        response = await _post(services, target, content, private_key, arguments)
    finally:
        _pace.leave(host, responded=response is not None)
    return await _follow(services, company_id, arguments, response)


def _read(job: Job) -> _Arguments:
    return {
        "subscriptionId": job.arguments["subscriptionId"],
        "sealed": bytes(job.arguments["sealed"]),
        "topic": job.arguments["topic"],
        "until": job.arguments["until"],
        "tries": job.arguments.get("tries", 0),
    }


async def _post(
    services: Services, target: PushTarget, content: bytes, private_key: bytes, arguments: _Arguments
) -> OutboundResponse | None:
    """Send a message once; returns None without a response."""
    headers = {
        "Authorization": _encryption.authorization_of(target["endpoint"], private_key, _contact_of(services)),
        "Content-Encoding": "aes128gcm",
        "Content-Type": "application/octet-stream",
        "TTL": str(max(0, int((arguments["until"] - now()).total_seconds()))),
        "Topic": arguments["topic"],
        "Urgency": "high",
    }
    try:
        return await services.outbound.post(target["endpoint"], _encryption.encrypt(content, target["keys"]), headers)
    except OutboundError as failure:
        services.metrics.push_messages.labels(failure.code.lower()).inc()
        return None


async def _follow(
    services: Services, company_id: ObjectId, arguments: _Arguments, response: OutboundResponse | None
) -> RunAgain | None:
    """Return whether to send a message again, after a response or without one."""
    subscription_id = arguments["subscriptionId"]
    if response is None:
        return _try_again(arguments, timedelta(0))
    status = response.status
    services.metrics.push_messages.labels(_outcome_of(status)).inc()
    if 200 <= status < 300:
        where = {"_id": subscription_id, "companyId": company_id}
        used = {"$set": {"lastUsedAt": now()}}
        await models.subscriptions.across_companies(services).update_one(where, used, hint="_id_")
        return None
    if status in (404, 410):
        await _remove_gone(services, company_id, subscription_id)
        return None
    if status == 429 or status >= 500:
        return _try_again(arguments, timedelta(seconds=response.wait_seconds))
    log.warning("a push service rejected a message", status=status)
    return None


async def _remove_gone(services: Services, company_id: ObjectId, subscription_id: ObjectId) -> None:
    """Delete a subscription that its push service does not know any more."""
    where = {"_id": subscription_id, "companyId": company_id}
    await models.subscriptions.across_companies(services).delete_one(where, hint="_id_")


def _outcome_of(status: int) -> str:
    if 200 <= status < 300:
        return "accepted"
    if status in (404, 410):
        return "gone"
    return "delayed" if status == 429 or status >= 500 else "rejected"


def _try_again(arguments: _Arguments, wait: timedelta) -> RunAgain | None:
    """Return the next attempt, after `wait` and a pause that grows; None if the message is over by then."""
    tries = arguments.get("tries", 0)
    pause = timedelta(seconds=_RETRY_SECONDS[min(tries, len(_RETRY_SECONDS) - 1)])
    after = wait or pause
    return None if now() + after >= arguments["until"] else RunAgain(after, {"tries": tries + 1})


def _contact_of(services: Services) -> str:
    """Return the address by which a push service can reach the operator."""
    if services.base_url.startswith("https://"):
        return services.base_url
    return f"mailto:{parseaddr(services.mail_sender.sender)[1]}"


def _binding(identifier: ObjectId) -> str:
    return f"push message:{identifier}"
