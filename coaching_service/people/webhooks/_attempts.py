"""One attempt of a delivery: its body, its signatures, and what follows from the response."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from coaching_service.core.auth.secrets import SecretUnreadable
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.database.transactions import gather_reads, transactional
from coaching_service.core.errors import NotFound
from coaching_service.core.http.responses import to_json
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail
from coaching_service.core.jobs.mail import NewMail
from coaching_service.core.jobs.mail_body import MailBody
from coaching_service.core.outbound.errors import OutboundError
from coaching_service.people.changes import events
from coaching_service.people.customers import service as customers
from coaching_service.people.webhooks import _signatures, store
from coaching_service.people.webhooks.models import TEST_EVENT, AttemptResult, DueDelivery, WebhookSecrets

DISABLE_AFTER = timedelta(days=3)
_MAIL_SUBJECT = "A webhook has been disabled"

log = structlog.get_logger("coaching_service.webhooks")


@dataclass(frozen=True)
class Message:
    """A delivery with all that is needed to send it."""

    delivery: DueDelivery
    webhook: WebhookSecrets
    body: bytes


@dataclass(frozen=True)
class Response:
    """What followed from sending a message: the status, or the failure.

    `error` is the code that the owner of the webhook sees, `cause` what the operator sees.
    """

    status: int | None
    error: str | None
    began: datetime
    duration_ms: int
    cause: str | None = None

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


async def prepare(ctx: Context, delivery: DueDelivery) -> Message | None:
    """Return the message of a delivery; None if its client has been erased: then the delivery is deleted.

    Raises NotFound if the webhook is deleted or not active.
    """
    webhook, event, is_client_there = await gather_reads(
        ctx,
        store.find_with_secrets(ctx, delivery["webhookId"]),
        _load_event(ctx, delivery),
        _is_client_there(ctx, delivery),
    )
    if webhook is None or not webhook["isActive"]:
        raise NotFound("webhook")
    if event is None or not is_client_there:
        await store.deliveries.delete(ctx, {"_id": delivery["_id"]})
        return None
    return Message(delivery, webhook, to_json(event))


async def send(ctx: Context, message: Message) -> Response:
    """Send a message once."""
    began, clock = now(), time.monotonic()
    status, error, cause = await _post(ctx, message)
    return Response(status, error, began, round((time.monotonic() - clock) * 1000), cause)


async def record(ctx: Context, message: Message, response: Response) -> datetime | None:
    """Record the result of an attempt; returns when the next one is due, if another follows: now if it was requested.

    Failures are followed: a webhook whose deliveries have all failed for three days is disabled.
    """
    delivery, webhook = message.delivery, message.webhook
    result = _result(ctx, delivery, response)
    ctx.services.metrics.webhook_attempts.labels(response.outcome).inc()
    if not await store.record_attempt(ctx, delivery, result):
        result["nextAttemptAt"] = now()
    if not response.is_success and delivery["type"] != TEST_EVENT:
        if webhook["failingSince"] is None:
            unless_failing = {"_id": webhook["_id"], "failingSince": None}
            await store.webhooks.set_derived(ctx, unless_failing, {"$set": {"failingSince": now()}})
        elif webhook["failingSince"] <= now() - DISABLE_AFTER:
            await _disable(ctx, webhook["_id"])
    return result["nextAttemptAt"]


async def _load_event(ctx: Context, delivery: DueDelivery) -> Mapping[str, object] | None:
    """Return the event as `GET /coach/events` returns it; None if it is gone."""
    if delivery["type"] == TEST_EVENT:
        return _test_event(ctx, delivery)
    return await events.find_event(ctx, delivery["eventId"])


async def _is_client_there(ctx: Context, delivery: DueDelivery) -> bool:
    """Return whether the client of an event, if any, has not been deleted."""
    client_id = delivery["customerId"]
    return client_id is None or await customers.exists(ctx.services, ctx.company_id, client_id)


def _test_event(ctx: Context, delivery: DueDelivery) -> dict[str, object]:
    return {
        "id": delivery["eventId"],
        "seq": delivery["seq"],
        "changeId": None,
        "type": TEST_EVENT,
        "createdAt": delivery["createdAt"],
        "customerId": None,
        "actor": {"type": "coach", "_id": ctx.caller.id, "keyId": None, "applicationId": None},
        "data": {"webhookId": delivery["webhookId"]},
    }


async def _post(ctx: Context, message: Message) -> tuple[int | None, str | None, str | None]:
    """Send a message; returns the status of the response, or the code of the failure and its cause."""
    webhook = message.webhook
    vault = ctx.services.vault
    try:
        in_use = _signatures.open_secrets(vault, webhook["_id"], webhook["secrets"], now())
        headers = _signatures.headers_of(f"msg_{message.delivery['_id']}", int(time.time()), message.body, in_use)
        response = await ctx.services.outbound.post(webhook["url"], message.body, headers)
    except SecretUnreadable as unreadable:
        log.warning("the secret of a webhook cannot be read", webhook=str(webhook["_id"]), reason=str(unreadable))
        return None, "SECRET_UNREADABLE", None
    except OutboundError as failure:
        return None, failure.public_code, failure.code
    return response.status, None, None


def _result(ctx: Context, delivery: DueDelivery, response: Response) -> AttemptResult:
    delays = () if delivery["type"] == TEST_EVENT else ctx.services.webhook_retry_seconds
    retries = delivery["retries"]
    result: AttemptResult = {
        "status": "succeeded" if response.is_success else "failed",
        "responseStatus": response.status,
        "error": response.error,
        "durationMs": response.duration_ms,
        "lastAttemptAt": response.began,
        "nextAttemptAt": None,
        "retries": retries,
    }
    if not response.is_success and retries < len(delays):
        next_at = now() + timedelta(seconds=delays[retries])
        result |= {"status": "pending", "nextAttemptAt": next_at, "retries": retries + 1}
    return result


@transactional
async def _disable(ctx: Context, webhook_id: ObjectId) -> None:
    """Disable a webhook, and queue a mail to the owner, unless a delivery has succeeded meanwhile."""
    webhook = await store.disable(ctx, webhook_id, now() - DISABLE_AFTER)
    if webhook is None or ctx.caller.email is None:
        return
    name = f"{webhook['description']} ({webhook['url']})" if webhook["description"] else webhook["url"]
    body: MailBody = {
        "company": ctx.caller.company.name,
        "name": ctx.caller.name,
        "paragraphs": [
            f"Every delivery to this webhook has failed for three days, so it has been disabled: {name}",
            "Once it works again, activate it in the settings.",
        ],
        "button": "Open the webhook",
        "link": f"{ctx.services.base_url}/app/settings/webhooks/{webhook_id}",
        "notes": ["Events that happen in the meantime are not sent; they can be read with GET /coach/events."],
        "reason": f"You receive this mail because you are the owner of {ctx.caller.company.name}.",
        "settings": None,
    }
    await mail.enqueue_mail(ctx, NewMail(ctx.caller.email, _MAIL_SUBJECT, body))
