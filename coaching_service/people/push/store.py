"""Push subscriptions and VAPID keys in the database."""

from __future__ import annotations

from typing import Any

from coaching_service.core.database.collections import Unsharded, order_by
from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Documents, now
from coaching_service.core.database.portable import NotExported
from coaching_service.core.fields import private_of
from coaching_service.core.ids import ObjectId
from coaching_service.people.push.models import ListedSubscription, PushKey, SendingSubscription, StoredSubscription

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
push_keys = Documents[PushKey](
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


async def find_by_endpoint(ctx: Context, endpoint_hash: str) -> StoredSubscription | None:
    """Return the subscription of a device, of any company, or None."""
    where = {"endpointHash": endpoint_hash}
    stored: Any = await subscriptions.across_companies(ctx.services).find_one(where, session=ctx.session)
    return stored  # type: ignore[no-any-return]  # the driver's documents are untyped


async def find_to_send(
    services: Services, company_id: ObjectId, subscription_id: ObjectId
) -> SendingSubscription | None:
    """Return what sending to a device needs, or None if it has no subscription any more."""
    where = {"_id": subscription_id, "companyId": company_id, "expiresAt": {"$gt": now()}}
    found: Any = await subscriptions.across_companies(services).find_one(where, {"sealed": 1, "keyId": 1}, hint="_id_")
    return found  # type: ignore[no-any-return]  # the driver's documents are untyped


# --- keys ------------------------------------------------------------------------------------------------------------


async def find_newest_key(services: Services) -> PushKey | None:
    """Return the key with which browsers subscribe, or None."""
    key: Any = await push_keys.across_companies(services).find_one({}, sort=order_by(("-createdAt",)))
    return key  # type: ignore[no-any-return]  # the driver's documents are untyped


async def create_key(services: Services, key: PushKey) -> None:
    """Store a key, unless one with its identifier exists."""
    new = {name: value for name, value in key.items() if name != "_id"}
    await push_keys.across_companies(services).update_one({"_id": key["_id"]}, {"$setOnInsert": new}, upsert=True)


async def list_keys(services: Services) -> list[PushKey]:
    """Return all keys, the newest first."""
    cursor: Any = push_keys.across_companies(services).find({}, sort=order_by(("-createdAt",)))
    keys: list[PushKey] = await cursor.to_list(None)
    return keys
