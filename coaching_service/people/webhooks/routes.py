"""Webhooks over REST."""

from __future__ import annotations

from coaching_service.core.auth import WEBHOOKS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict
from coaching_service.core.field_schemas import input_of, output_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import CursorPage
from coaching_service.core.validation import patch_of
from coaching_service.people.webhooks import models, service

_ACCESS = coach(WEBHOOKS)
_PATHS = {"webhookId": "The identifier of the webhook.", "deliveryId": "The identifier of the delivery."}
routes = Routes("/coach/webhooks", tag="Webhooks", path_descriptions=_PATHS)
_WITH_SECRET = output_of(models.WebhookWithSecret, output_of(models.Webhook))
_EXAMPLE = {
    "url": "https://crm.example.com/hooks/coaching",
    "types": ["workout.completed", "form.submitted"],
    "description": "Our CRM",
}


@routes.get("", access=_ACCESS)
async def list_webhooks(ctx: Context) -> list[models.Webhook]:
    """List the webhooks, oldest first.

    Those of the company; for an application, its own in the company and those for all companies.
    """
    return await service.list_webhooks(ctx)


@routes.post("", access=_ACCESS, returns=_WITH_SECRET, errors=(Conflict,), example=_EXAMPLE)
async def create_webhook(ctx: Context, body: models.NewWebhook) -> models.WebhookWithSecret:
    """Create a webhook.

    It receives the events from now on, each as `GET /coach/events` returns it, signed as Standard Webhooks describes
    it with the `secret` of this response. A company has at most 20. It needs the permission `webhooks`, the scope of
    all clients, and the permissions to view what it sends; what only the owner may see is sent to webhooks of the
    owner.

    An application with the scope `webhooks` has webhooks of its own, at most 20 in a company. With `allCompanies` (400
    for keys and sessions) it has one, with one address and secret, for the events of all companies that have allowed it
    `webhooks`, each with its `companyId`; every token of the application lists and changes it. An application receives
    what its scopes and the coach who allowed it may see. Access that ends, revoked or expired, ends the webhooks in
    that company.
    """
    return await service.create(ctx, body)


@routes.get("/{webhookId}", access=_ACCESS)
async def get_webhook(ctx: Context, webhook_id: ObjectId) -> models.Webhook:
    """Read a webhook."""
    return await service.get(ctx, webhook_id)


@routes.patch(
    "/{webhookId}",
    access=_ACCESS,
    body=patch_of(input_of(models.WebhookFields), name="WebhookChange"),
    example={"description": "Our new CRM", "version": 0},
)
async def update_webhook(ctx: Context, webhook_id: ObjectId, body: models.WebhookChange) -> models.Webhook:
    """Change a webhook.

    One that becomes active again receives the events from then on.
    """
    return await service.update(ctx, webhook_id, body)


@routes.delete("/{webhookId}", access=_ACCESS)
async def delete_webhook(ctx: Context, webhook_id: ObjectId) -> None:
    """Delete a webhook."""
    await service.delete(ctx, webhook_id)


@routes.post(
    "/{webhookId}/test",
    access=_ACCESS,
    errors=(Conflict,),
    body_optional=True,
    example={"type": "workout.completed"},
)
async def send_webhook_test(ctx: Context, webhook_id: ObjectId, body: models.WebhookTest) -> models.Delivery:
    """Send a test event once: of the type `webhook.test`, or a sample of the `type`.

    A sample is sent whatever types the webhook wants. The response is the delivery before its attempt: read it again
    for the result.
    """
    return await service.send_test(ctx, webhook_id, body.get("type"))


@routes.post("/{webhookId}/rotate-secret", access=_ACCESS, status=200, returns=_WITH_SECRET)
async def rotate_webhook_secret(ctx: Context, webhook_id: ObjectId) -> models.WebhookWithSecret:
    """Replace the secret of a webhook.

    For 24 hours messages have two signatures, with the new and the previous secret.
    """
    return await service.rotate_secret(ctx, webhook_id)


@routes.get("/{webhookId}/deliveries", access=_ACCESS)
async def list_webhook_deliveries(
    ctx: Context, webhook_id: ObjectId, query: models.DeliveryQuery
) -> CursorPage[models.Delivery]:
    """List the deliveries of a webhook of the last 30 days, newest first.

    Of one for all companies, those of the company of the token.
    """
    return await service.list_deliveries(
        ctx, webhook_id, limit=query["limit"], after=query["after"], status=query["status"]
    )


@routes.post("/{webhookId}/deliveries/{deliveryId}/redeliver", access=_ACCESS, status=200, errors=(Conflict,))
async def redeliver_webhook_event(ctx: Context, webhook_id: ObjectId, delivery_id: ObjectId) -> models.Delivery:
    """Send a delivery again, with the same `webhook-id`.

    The response is the delivery before the new attempt.
    """
    return await service.redeliver(ctx, webhook_id, delivery_id)
