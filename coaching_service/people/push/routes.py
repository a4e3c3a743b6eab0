"""Push subscriptions over REST: of a coach, and of a client."""

from __future__ import annotations

from coaching_service.core.auth import anyone, customer, session_only
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Forbidden
from coaching_service.core.external_identity import Upserted
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.people.push import keys, service
from coaching_service.people.push.models import NewPushSubscription, PublicPushKey, PushSubscription

_PATHS = {"subscriptionId": "The identifier of the subscription."}
key_routes = Routes("/push-public-key", tag="Notifications")
routes = Routes("/push-subscriptions", tag="Notifications", path_descriptions=_PATHS)
own_routes = Routes("/customer/push-subscriptions", tag="Notifications", path_descriptions=_PATHS)
_EXAMPLE = {
    "endpoint": "https://push.example.com/send/4b1d0c",
    "keys": {
        "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "auth": "BTBZMqHH6r4Tts7J_aSIgg",
    },
    "userAgent": "Mozilla/5.0 (Linux; Android 16) Chrome/141.0",
}


@key_routes.get("", access=anyone())
async def get_push_public_key(ctx: Context) -> PublicPushKey:
    """Read the key with which browsers subscribe to notifications.

    After it has been replaced, a browser that subscribed with another one subscribes again.
    """
    return await keys.get_public_key(ctx.services)


@routes.get("", access=session_only())
async def list_push_subscriptions(ctx: Context) -> list[PushSubscription]:
    """List the devices on which I receive notifications, the newest first."""
    return await service.list_own(ctx)


@routes.post(
    "",
    access=session_only(),
    refuses_key=True,
    returns=PushSubscription,
    errors=(Forbidden,),
    example=_EXAMPLE,
)
async def create_push_subscription(ctx: Context, body: NewPushSubscription) -> Upserted:
    """Receive notifications on a device.

    201 if the device is new; the same `endpoint` again replaces what is stored: 200. It ends when the session of this
    request is ended, and 30 days after the device sent it last. Of more than 20 devices the oldest end.
    """
    return await service.subscribe(ctx, body)


@routes.delete("/{subscriptionId}", access=session_only())
async def delete_push_subscription(ctx: Context, subscription_id: ObjectId) -> None:
    """Receive no more notifications on a device."""
    await service.unsubscribe(ctx, subscription_id)


@own_routes.get("", access=customer())
async def list_own_push_subscriptions(ctx: Context) -> list[PushSubscription]:
    """List the devices on which I receive notifications, the newest first."""
    return await service.list_own(ctx)


@own_routes.post(
    "",
    access=customer(),
    refuses_key=True,
    returns=PushSubscription,
    errors=(Forbidden,),
    example={**_EXAMPLE, "endpoint": "https://push.example.com/send/7c02ab"},
)
async def create_own_push_subscription(ctx: Context, body: NewPushSubscription) -> Upserted:
    """Receive notifications on a device.

    201 if the device is new; the same `endpoint` again replaces what is stored: 200. It ends when the session of this
    request is ended, and 90 days after the device sent it last. Of more than 20 devices the oldest end. Not in an
    impersonation session.
    """
    return await service.subscribe(ctx, body)


@own_routes.delete("/{subscriptionId}", access=customer())
async def delete_own_push_subscription(ctx: Context, subscription_id: ObjectId) -> None:
    """Receive no more notifications on a device."""
    await service.unsubscribe(ctx, subscription_id)
