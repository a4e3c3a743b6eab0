"""Settings: webhooks and their deliveries."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, NotRequired

from coaching_service.core.auth.access import owner
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.events import EVENT_TYPES
from coaching_service.core.field_schemas import input_of, query_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Version
from coaching_service.people.webhooks import deliveries
from coaching_service.people.webhooks import service as webhooks
from coaching_service.people.webhooks.models import DeliveryQuery, NewWebhook, WebhookFields
from coaching_service.web.page_queries import list_url
from coaching_service.web.pages import ConfirmedAction, Pages, Redirect, Render

pages = Pages("/app/settings/webhooks")
_PATH = "/app/settings/webhooks"
_PAGE_SIZE = 20
_STATUSES = (("", "All"), ("succeeded", "Succeeded"), ("pending", "Pending"), ("failed", "Failed"))
# Why an attempt had no response, in words.
_REASONS = {
    "ADDRESS_NOT_ALLOWED": "The address is not public",
    "PORT_NOT_ALLOWED": "The port is not allowed",
    "URL_INVALID": "The address is not valid",
    "CONNECTION_FAILED": "No trusted connection",
    "TIMED_OUT": "No response in 15 seconds",
    "RESPONSE_INVALID": "Invalid response",
    "SECRET_UNREADABLE": "The secret cannot be read",
}


class _WebhookForm(WebhookFields):
    version: NotRequired[Annotated[int, Version()]]


@pages.get("", access=owner(), template="settings/webhooks.html")
async def webhooks_page(ctx: Context) -> dict[str, Any]:
    """The webhooks of the company, with a form to create one."""
    listed = await webhooks.list_webhooks(ctx)
    return {
        "webhooks": listed,
        "event_types": EVENT_TYPES,
        "is_full": len(listed) >= webhooks.MAX_WEBHOOKS,
        "max_webhooks": webhooks.MAX_WEBHOOKS,
        "created": None,
    }


@pages.post("", access=owner(), form=input_of(NewWebhook)(exclude=("isActive",)), on=webhooks_page)
async def create_webhook(ctx: Context, form: NewWebhook) -> Render:
    """Create a webhook and show its secret."""
    created = await webhooks.create(ctx, {**form, "isActive": True})
    repeat_notice = "The webhook has already been created. Its secret is not shown again; you can rotate it."
    return Render({"created": created}, repeat_notice)


@pages.get("/{webhookId}", access=owner(), query=query_of(DeliveryQuery)(), template="settings/webhook.html")
async def webhook_page(ctx: Context, webhook_id: ObjectId, query: DeliveryQuery) -> dict[str, Any]:
    """A webhook and its deliveries."""
    webhook, page = await gather_reads(
        ctx,
        webhooks.get(ctx, webhook_id),
        deliveries.list_deliveries(
            ctx, webhook_id, limit=_PAGE_SIZE, after=query.get("after"), status=query.get("status")
        ),
    )
    here = f"{_PATH}/{webhook_id}"
    status = query.get("status")
    return {
        "webhook": webhook,
        "version": webhook["version"],
        "event_types": EVENT_TYPES,
        "page": page,
        "reasons": _REASONS,
        "statuses": _STATUSES,
        "status": status,
        "is_first_part": not query.get("after"),
        "next_url": list_url(here, {"status": status, "after": page["nextCursor"]})() if page["hasMore"] else None,
        "new_secret": None,
        "now": now(),
    }


@pages.post("/{webhookId}", access=owner(), on=webhook_page)
async def update_webhook(ctx: Context, webhook_id: ObjectId, form: _WebhookForm) -> Redirect:
    """Change a webhook."""
    await webhooks.update(ctx, webhook_id, {**form})
    return Redirect(f"{_PATH}/{webhook_id}", "Changes saved.")


@pages.post("/{webhookId}/test", access=owner(), on=webhook_page)
async def send_webhook_test(ctx: Context, webhook_id: ObjectId) -> Redirect:
    """Send a test event."""
    await deliveries.send_test(ctx, webhook_id)
    return Redirect(f"{_PATH}/{webhook_id}", "The test event is being sent. Reload the page to see the result.")


@pages.post("/{webhookId}/rotate-secret", access=owner(), on=webhook_page)
async def rotate_webhook_secret(ctx: Context, webhook_id: ObjectId) -> Render:
    """Replace the secret and show the new one."""
    rotated = await webhooks.rotate_secret(ctx, webhook_id)
    return Render({"new_secret": rotated["secret"]}, "The secret has already been rotated. It is not shown again.")


@pages.post("/{webhookId}/deliveries/{deliveryId}/redeliver", access=owner(), on=webhook_page)
async def redeliver_webhook_event(ctx: Context, webhook_id: ObjectId, delivery_id: ObjectId) -> Redirect:
    """Send a delivery again."""
    await deliveries.redeliver(ctx, webhook_id, delivery_id)
    return Redirect(f"{_PATH}/{webhook_id}", "The event is being sent again. Reload the page to see the result.")


@pages.confirm("/{webhookId}/delete", access=owner(), template="settings/delete_webhook.html", deletes=True)
async def delete_webhook(ctx: Context, webhook_id: ObjectId) -> ConfirmedAction:
    """Delete a webhook."""
    webhook = await webhooks.get(ctx, webhook_id)
    done = Redirect(_PATH, "Webhook deleted. Nothing is sent to it any more.")
    return ConfirmedAction({"webhook": webhook}, partial(webhooks.delete, ctx, webhook_id), done)
