"""One attempt of a delivery: its body, its signatures, and what follows from the response."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import structlog

from coaching_service.core.auth.secrets import SecretUnreadable
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import NotFound
from coaching_service.core.http.responses import to_json
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail
from coaching_service.core.outbound.client import OutboundError
from coaching_service.people.changes import events
from coaching_service.people.customers import service as customers
from coaching_service.people.webhooks import signatures, store
from coaching_service.people.webhooks.models import TEST_EVENT, AttemptResult, Delivery, Webhook

DISABLE_AFTER = timedelta(days=3)
_MAIL_SUBJECT = "A webhook has been disabled"

log = structlog.get_logger("coaching_service.webhooks")


async def attempt(ctx: Context, delivery: Delivery) -> datetime | None:
    """Send a delivery once, and record the result; returns when the next attempt is due, if another follows.

    A delivery whose client has been erased is deleted. Raises NotFound if the webhook is deleted or not active.
    """
    webhook = await store.find_with_secrets(ctx, delivery["webhookId"])
    if webhook is None or not webhook["isActive"]:
        raise NotFound("webhook")
    body = await _load_body(ctx, delivery)
    if body is None:
        await store.delete_delivery(ctx, delivery["_id"])
        return None
    began, clock = now(), time.monotonic()
    status, error = await _send(ctx, webhook, delivery, body)
    duration = round((time.monotonic() - clock) * 1000)
    is_success = status is not None and 200 <= status < 300
    result = _result(ctx, delivery, status, error, is_success=is_success)
    await store.record_attempt(ctx, delivery["_id"], {**result, "durationMs": duration, "lastAttemptAt": began})
    await _follow_failures(ctx, webhook, delivery, is_success=is_success)
    return result["nextAttemptAt"]


async def _load_body(ctx: Context, delivery: Delivery) -> bytes | None:
    """The event as `GET /coach/events` returns it; None if it is gone, or its client is."""
    if delivery["type"] == TEST_EVENT:
        return to_json(_test_event(ctx, delivery))
    event = await events.find_event(ctx, delivery["eventId"])
    if event is None:
        return None
    client_id = delivery["customerId"]
    if client_id is not None and not await customers.exists(ctx.services, ctx.company_id, client_id):
        return None
    return to_json(event)


def _test_event(ctx: Context, delivery: Delivery) -> dict[str, object]:
    return {
        "id": delivery["eventId"],
        "seq": delivery["seq"],
        "type": TEST_EVENT,
        "createdAt": delivery["createdAt"],
        "customerId": None,
        "actor": {"type": "coach", "_id": ctx.caller.id},
        "data": {"webhookId": delivery["webhookId"]},
    }


async def _send(ctx: Context, webhook: Webhook, delivery: Delivery, body: bytes) -> tuple[int | None, str | None]:
    """Send a message; returns the status of the response, or the code of the failure."""
    vault = ctx.services.vault
    try:
        in_use = signatures.open_secrets(vault, webhook["_id"], webhook["secrets"], now())
        headers = signatures.headers_of(f"msg_{delivery['_id']}", int(time.time()), body, in_use)
        response = await ctx.services.outbound.post(webhook["url"], body, headers)
    except SecretUnreadable as unreadable:
        log.warning("the secret of a webhook cannot be read", webhook=str(webhook["_id"]), reason=str(unreadable))
        return None, "SECRET_UNREADABLE"
    except OutboundError as failure:
        return None, failure.code
    return response.status, None


def _result(
    ctx: Context, delivery: Delivery, status: int | None, error: str | None, *, is_success: bool
) -> AttemptResult:
    delays = () if delivery["type"] == TEST_EVENT else ctx.services.webhook_retry_seconds
    retries = delivery["retries"]
    result: AttemptResult = {
        "status": "succeeded" if is_success else "failed",
        "responseStatus": status,
        "error": error,
        "durationMs": 0,
        "lastAttemptAt": now(),
        "nextAttemptAt": None,
        "retries": retries,
    }
    if not is_success and retries < len(delays):
        next_at = now() + timedelta(seconds=delays[retries])
        result |= {"status": "pending", "nextAttemptAt": next_at, "retries": retries + 1}
    return result


async def _follow_failures(ctx: Context, webhook: Webhook, delivery: Delivery, *, is_success: bool) -> None:
    """Record since when all deliveries fail, and disable the webhook after three days. A failed test does not count."""
    failing_since = webhook["failingSince"]
    if is_success:
        await store.set_working(ctx, webhook["_id"])
    elif delivery["type"] != TEST_EVENT:
        if failing_since is None:
            await store.set_failing(ctx, webhook["_id"], now())
        elif failing_since <= now() - DISABLE_AFTER:
            await _disable(ctx, webhook["_id"])


@transactional
async def _disable(ctx: Context, webhook_id: ObjectId) -> None:
    """Disable a webhook, and queue a mail to the owner, unless a delivery has succeeded meanwhile."""
    webhook = await store.disable(ctx, webhook_id, now() - DISABLE_AFTER)
    if webhook is None or ctx.caller.email is None:
        return
    name = f"{webhook['description']} ({webhook['url']})" if webhook["description"] else webhook["url"]
    text = (
        f"Hello {ctx.caller.name},\n\nEvery delivery to this webhook has failed for three days, so it has been "
        f"disabled:\n\n{name}\n\nOnce it works again, activate it in the settings:\n\n"
        f"{ctx.services.base_url}/app/settings/webhooks/{webhook_id}\n\n"
        "Events of the meantime are not sent; they can be read with GET /coach/events.\n"
    )
    await mail.enqueue_mail(ctx, ctx.caller.email, _MAIL_SUBJECT, text)
