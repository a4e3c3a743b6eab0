"""Push subscriptions and VAPID keys in the database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any

from coaching_service.core.database.collections import order_by
from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Documents, Filter, now
from coaching_service.core.database.portable import NotExported
from coaching_service.core.database.sharding import Unsharded
from coaching_service.core.fields import private_of
from coaching_service.core.ids import ObjectId
from coaching_service.people.push.models import (
    ListedSubscription,
    NewSubscription,
    PushKey,
    RenewedFields,
    SendingSubscription,
    StoredSubscription,
)
from coaching_service.people.sessions.events import SessionsEnded

_ORDER = ("-createdAt", "-_id")

subscriptions = Documents[StoredSubscription](
    "pushSubscriptions",
    (Index(("subjectId", *_ORDER)),),
    private=private_of(StoredSubscription),
    client_field="subjectId",
    secret=True,
    global_indexes=(Index(("endpointHash",), unique=True), Index(("expiresAt",), expire_after=0)),
    cross_company_reason="a device has one subscription, of whoever signed in on it last",
    placement=Unsharded("the address of a device is unique among all companies"),
    transfer=NotExported("addresses of devices, which accept messages of this service alone"),
)
_keys = Documents[PushKey](
    "pushKeys",
    private=(),
    global_indexes=(Index(("-createdAt",)),),
    cross_company_reason="browsers subscribe with the key of the service",
    placement=Unsharded("a few documents"),
    transfer=NotExported("keys of the service"),
)


# --- subscriptions ---------------------------------------------------------------------------------------------------


async def list_of_subject(ctx: Context, subject_id: ObjectId) -> list[ListedSubscription]:
    """Return the devices of a coach or client, the newest first."""
    return await subscriptions.find(
        ctx, {"subjectId": subject_id}, sort=_ORDER, fields=("userAgent", "createdAt", "lastUsedAt", "sessionId")
    )


async def list_ids(ctx: Context, subject_id: ObjectId) -> list[ObjectId]:
    """Return the identifiers of the devices of a coach or client."""
    return [each["_id"] for each in await subscriptions.find(ctx, {"subjectId": subject_id}, fields=("_id",))]


async def find_by_endpoint(ctx: Context, endpoint_hash: str) -> StoredSubscription | None:
    """Return the subscription of a device, of any company, or None."""
    stored: Any = await subscriptions.across_companies(ctx.services).find_one(
        {"endpointHash": endpoint_hash}, session=ctx.session
    )
    subscription: StoredSubscription | None = stored
    return subscription


async def replace_device(ctx: Context, subscription: NewSubscription) -> StoredSubscription:
    """Store the subscription of a device instead of the one that it had, which may be of another company."""
    where = {"endpointHash": subscription["endpointHash"]}
    await subscriptions.across_companies(ctx.services).delete_many(where, session=ctx.session)
    return await subscriptions.insert(ctx, subscription)


async def renew(ctx: Context, subscription_id: ObjectId, fields: RenewedFields) -> StoredSubscription | None:
    """Change a subscription that a device has sent again."""
    return await subscriptions.update(ctx, {"_id": subscription_id}, {"$set": fields})


async def delete(ctx: Context, where: Filter) -> int:
    """Delete the subscriptions of `where`; returns how many there were."""
    return await subscriptions.delete_many(ctx, where)


async def delete_many(ctx: Context, ids: Sequence[ObjectId]) -> None:
    """Delete subscriptions by their identifiers."""
    await subscriptions.delete_many(ctx, {"_id": {"$in": list(ids)}})


async def delete_of_sessions(ctx: Context, ended: SessionsEnded) -> None:
    """Delete the subscriptions of sessions of a coach or client of any company."""
    where = ended.filter("sessionId")
    await subscriptions.across_companies(ctx.services).delete_many(where, session=ctx.session)


async def find_to_send(
    services: Services, company_id: ObjectId, subscription_id: ObjectId
) -> SendingSubscription | None:
    """Return what sending to a device needs, or None if it has no subscription any more."""
    where = {"_id": subscription_id, "companyId": company_id, "expiresAt": {"$gt": now()}}
    found: Any = await subscriptions.across_companies(services).find_one(where, {"sealed": 1, "keyId": 1}, hint="_id_")
    subscription: SendingSubscription | None = found
    return subscription


async def set_used(services: Services, company_id: ObjectId, subscription_id: ObjectId, at: datetime) -> None:
    """Store when a push service accepted a message for a device."""
    where = {"_id": subscription_id, "companyId": company_id}
    await subscriptions.across_companies(services).update_one(where, {"$set": {"lastUsedAt": at}}, hint="_id_")


async def remove_gone(services: Services, company_id: ObjectId, subscription_id: ObjectId) -> None:
    """Delete a subscription that its push service does not know any more."""
    where = {"_id": subscription_id, "companyId": company_id}
    await subscriptions.across_companies(services).delete_one(where, hint="_id_")


# --- keys ------------------------------------------------------------------------------------------------------------


async def find_newest_key(services: Services) -> PushKey | None:
    """Return the key with which browsers subscribe, or None."""
    newest: Any = await _keys.across_companies(services).find_one({}, sort=order_by(("-createdAt",)))
    key: PushKey | None = newest
    return key


async def find_key(services: Services, key_id: ObjectId) -> PushKey | None:
    """Return a key, or None."""
    found: Any = await _keys.across_companies(services).find_one({"_id": key_id})
    key: PushKey | None = found
    return key


async def create_key(services: Services, key: PushKey) -> None:
    """Store a key, unless one with its identifier exists."""
    new = {name: value for name, value in key.items() if name != "_id"}
    await _keys.across_companies(services).update_one({"_id": key["_id"]}, {"$setOnInsert": new}, upsert=True)


async def delete_keys_before(services: Services, at: datetime) -> int:
    """Delete the keys that were created before a time; returns how many."""
    return (await _keys.across_companies(services).delete_many({"createdAt": {"$lt": at}})).deleted_count


# --- rotation of master keys -----------------------------------------------------------------------------------------


async def iterate_sealed_subscriptions(services: Services) -> AsyncIterator[StoredSubscription]:
    """Yield the encrypted targets of all subscriptions."""
    cursor: Any = subscriptions.across_companies(services).find({}, {"sealed": 1}, batch_size=200)
    async for each in cursor:
        yield each


async def list_keys(services: Services) -> list[PushKey]:
    """Return all keys, the newest first."""
    cursor: Any = _keys.across_companies(services).find({}, sort=order_by(("-createdAt",)))
    keys: list[PushKey] = await cursor.to_list(None)
    return keys


async def reseal_subscription(services: Services, stored: StoredSubscription, sealed: bytes) -> None:
    """Replace the encrypted target of a subscription, unless it has changed since it was read."""
    unchanged = {"_id": stored["_id"], "sealed": stored["sealed"]}
    await subscriptions.across_companies(services).update_one(unchanged, {"$set": {"sealed": sealed}})


async def reseal_key(services: Services, key_id: ObjectId, sealed: bytes) -> None:
    """Replace an encrypted private key."""
    await _keys.across_companies(services).update_one({"_id": key_id}, {"$set": {"sealed": sealed}})
