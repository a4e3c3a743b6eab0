"""Webhooks over REST: the owner, by session or unrestricted key."""

from __future__ import annotations

from coaching_service.core.auth import owner
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict
from coaching_service.core.field_schemas import input_of, output_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import CursorPage
from coaching_service.core.validation import patch_of
from coaching_service.people.webhooks import service

_PATHS = {"webhookId": "The identifier of the webhook.", "deliveryId": "The identifier of the delivery."}
routes = Routes("/coach/webhooks", tag="Webhooks", path_descriptions=_PATHS)
_WITH_SECRET = output_of(service.WebhookWithSecret, output_of(service.Webhook))
_EXAMPLE = {
    "url": "https://crm.example.com/hooks/coaching",
    "types": ["workout.completed", "form.submitted"],
    "description": "Our CRM",
}


@routes.get("", access=owner())
async def list_webhooks(ctx: Context) -> list[service.Webhook]:
    """List the webhooks of the company, oldest first."""
    return await service.list_webhooks(ctx)


@routes.post("", access=owner(), returns=_WITH_SECRET, errors=(Conflict,), example=_EXAMPLE)
async def create_webhook(ctx: Context, body: service.NewWebhook) -> service.WebhookWithSecret:
    """Create a webhook.

    It receives the events from now on, each as `GET /coach/events` returns it, signed as Standard Webhooks describes
    it with the `secret` of this response. A company has at most 20.
    """
    return await service.create(ctx, body)


@routes.get("/{webhookId}", access=owner())
async def get_webhook(ctx: Context, webhook_id: ObjectId) -> service.Webhook:
    """Read a webhook."""
    return await service.get(ctx, webhook_id)


@routes.patch(
    "/{webhookId}",
    access=owner(),
    body=patch_of(input_of(service.WebhookFields), name="WebhookChange"),
    example={"description": "Our new CRM", "version": 0},
)
async def update_webhook(ctx: Context, webhook_id: ObjectId, body: service.WebhookChange) -> service.Webhook:
    """Change a webhook.

    One that becomes active again receives the events from then on.
    """
    return await service.update(ctx, webhook_id, body)


@routes.delete("/{webhookId}", access=owner())
async def delete_webhook(ctx: Context, webhook_id: ObjectId) -> None:
    """Delete a webhook."""
    await service.delete(ctx, webhook_id)


@routes.post("/{webhookId}/test", access=owner(), errors=(Conflict,))
async def send_webhook_test(ctx: Context, webhook_id: ObjectId) -> service.Delivery:
    """Send a test event of the type `webhook.test`, once.

    The response is the delivery before its attempt: read it again for the result.
    """
    return await service.send_test(ctx, webhook_id)


@routes.post("/{webhookId}/rotate-secret", access=owner(), status=200, returns=_WITH_SECRET)
async def rotate_webhook_secret(ctx: Context, webhook_id: ObjectId) -> service.WebhookWithSecret:
    """Replace the secret of a webhook.

    For 24 hours messages have two signatures, with the new and the previous secret.
    """
    return await service.rotate_secret(ctx, webhook_id)


@routes.get("/{webhookId}/deliveries", access=owner())
async def list_webhook_deliveries(
    ctx: Context, webhook_id: ObjectId, query: service.DeliveryQuery
) -> CursorPage[service.Delivery]:
    """List the deliveries of a webhook of the last 30 days, newest first."""
    return await service.list_deliveries(
        ctx, webhook_id, limit=query["limit"], after=query["after"], status=query["status"]
    )


@routes.post("/{webhookId}/deliveries/{deliveryId}/redeliver", access=owner(), status=200, errors=(Conflict,))
async def redeliver_webhook_event(ctx: Context, webhook_id: ObjectId, delivery_id: ObjectId) -> service.Delivery:
    """Send a delivery again, with the same `webhook-id`.

    The response is the delivery before the new attempt.
    """
    return await service.redeliver(ctx, webhook_id, delivery_id)
