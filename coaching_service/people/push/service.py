"""The devices on which coaches and clients receive notifications."""

from __future__ import annotations

from datetime import timedelta

import orjson

from coaching_service.core import audit
from coaching_service.core.auth import Vault, token_hash
from coaching_service.core.database.across_companies import Sealed
from coaching_service.core.database.context import Context, transactional
from coaching_service.core.database.documents import now
from coaching_service.core.errors import Forbidden, NotFound, Unauthorized, invalid_field
from coaching_service.core.external_identity import Upserted
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId
from coaching_service.core.outbound import OutboundError
from coaching_service.people.identities.models import SubjectKind
from coaching_service.people.push import keys, models
from coaching_service.people.sessions import service as sessions
from coaching_service.people.sessions.models import SessionsEnded

MAX_DEVICES = 20
# After which a subscription ends that its browser has not sent again. A coach's session ends after hours without use,
# and the digest of the next morning is still to arrive.
LIFETIMES = {"customer": timedelta(days=90), "coach": timedelta(days=30)}
_SEALED = Sealed(models.subscriptions, "push subscription")

iterate_unreadable, rotate_master_key = _SEALED.iterate_unreadable, _SEALED.rotate_master_key


async def list_own(ctx: Context) -> list[models.PushSubscription]:
    """Return the devices on which the caller receives notifications, the newest first."""
    stored = await models.list_of_subject(ctx, ctx.caller.id)
    return [take(models.PushSubscription, each) for each in stored]


async def list_own_devices(ctx: Context) -> list[models.OwnDevice]:
    """Return the devices of the caller, the newest first; `isCurrent`: the one of this session."""
    stored = await models.list_of_subject(ctx, ctx.caller.id)
    return [
        {
            "_id": each["_id"],
            "userAgent": each["userAgent"],
            "createdAt": each["createdAt"],
            "isCurrent": each["sessionId"] == ctx.caller.credential_id,
        }
        for each in stored
    ]


async def has_own_device(ctx: Context) -> bool:
    """Return whether the session of this request receives notifications."""
    return any(each["isCurrent"] for each in await list_own_devices(ctx))


async def subscribe(ctx: Context, subscription: models.NewPushSubscription) -> Upserted:
    """Store the subscription of a device until the caller's session ends; the same endpoint again replaces it.

    Raises InvalidFields for an address to which nothing is sent; Forbidden for a coach who impersonates a client.
    """
    if ctx.caller.impersonated_by is not None:
        raise Forbidden("An impersonation session cannot receive notifications", code="IMPERSONATED")
    try:
        ctx.services.outbound.canonical_url(subscription["endpoint"])
    except OutboundError:
        message = "must be an https address of a public push service"
        raise invalid_field("endpoint", message, code="INVALID_PUSH_ENDPOINT") from None
    key = await keys.ensure(ctx.services)
    return await _store(ctx, subscription, key["_id"])


@transactional
async def _store(ctx: Context, subscription: models.NewPushSubscription, key_id: ObjectId) -> Upserted:
    if not await sessions.hold_session(ctx, ctx.caller.credential_id):
        raise Unauthorized()
    endpoint_hash = token_hash(subscription["endpoint"])
    kind: SubjectKind = "coach" if ctx.caller.is_coach else "customer"
    previous = await models.find_by_endpoint(ctx, endpoint_hash)
    is_own = previous is not None and previous["subjectId"] == ctx.caller.id
    subscription_id = previous["_id"] if previous is not None and is_own else ObjectId()
    target: models.PushTarget = {"endpoint": subscription["endpoint"], "keys": subscription["keys"]}
    fields: models.RenewedFields = {
        "userAgent": subscription["userAgent"],
        "sessionId": ctx.caller.credential_id,
        "sealed": _SEALED.seal(ctx.services.vault, subscription_id, orjson.dumps(target)),
        "keyId": key_id,
        "expiresAt": now() + LIFETIMES[kind],
    }
    where = {"_id": subscription_id}
    if is_own and (renewed := await models.subscriptions.update(ctx, where, {"$set": fields})) is not None:
        return Upserted(take(models.PushSubscription, renewed), created=False)
    # The one that the device had may be of another company.
    of_device = {"endpointHash": endpoint_hash}
    await models.subscriptions.across_companies(ctx.services).delete_many(of_device, session=ctx.session)
    owner = {"subjectId": ctx.caller.id, "kind": kind, **of_device}
    stored = await models.subscriptions.insert(ctx, {"_id": subscription_id, **fields, **owner, "lastUsedAt": None})
    surplus = (await models.list_of_subject(ctx, ctx.caller.id))[MAX_DEVICES:]
    if surplus:
        await models.subscriptions.delete_many(ctx, {"_id": {"$in": [each["_id"] for each in surplus]}})
    await audit.record(ctx, "push_subscription.created", subscription_id, customer_id=audit.own_client(ctx.caller))
    return Upserted(take(models.PushSubscription, stored), created=True)


@transactional
async def unsubscribe(ctx: Context, subscription_id: ObjectId) -> None:
    """End the notifications on one device of the caller. Raises NotFound if the caller has no such device."""
    if not await models.subscriptions.delete_many(ctx, {"_id": subscription_id, "subjectId": ctx.caller.id}):
        raise NotFound("push subscription")
    await audit.record(ctx, "push_subscription.deleted", subscription_id, customer_id=audit.own_client(ctx.caller))


async def end_with_sessions(ctx: Context, event: SessionsEnded) -> None:
    """End the notifications on the devices whose sessions have ended, in the same transaction."""
    where = event.filter("sessionId")
    await models.subscriptions.across_companies(ctx.services).delete_many(where, session=ctx.session)


def open_target(vault: Vault, subscription: models.SendingSubscription) -> models.PushTarget:
    """Return where messages to a device are sent. Raises SecretUnreadable."""
    target: models.PushTarget = orjson.loads(_SEALED.open(vault, subscription))
    return target
