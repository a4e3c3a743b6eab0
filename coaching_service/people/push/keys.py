"""The VAPID keys of the service: the newest is the one with which browsers subscribe."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

from coaching_service.core.auth import Vault
from coaching_service.core.database.across_companies import Sealed
from coaching_service.core.database.checks import Check, CountRead, Finding
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.people.push import _encryption, models
from coaching_service.people.push.models import PublicPushKey, PushKey

# A subscription is sent again, with the new key, whenever its browser opens a page; without that it ends earlier.
_STORED_FOR = timedelta(days=100)
_FIRST = stable_id("push-key", "first")
_SEALED = Sealed(models.push_keys, "push key")

iterate_unreadable, rotate_master_key = _SEALED.iterate_unreadable, _SEALED.rotate_master_key


async def ensure(services: Services) -> PushKey:
    """Return the newest key; the first one is made now, if there is none."""
    if (key := await models.find_newest_key(services)) is None:
        await models.create_key(services, _new_key(services.vault, _FIRST))
        key = await models.find_newest_key(services)
    if key is None:
        raise RuntimeError("the key of Web Push was not stored")
    return key


async def get_public_key(services: Services) -> PublicPushKey:
    """Return the public key with which browsers subscribe."""
    return {"key": (await ensure(services))["publicKey"]}


async def rotate(services: Services) -> str:
    """Make a new key, and return its public part.

    Messages to devices that subscribed before are signed with their key, until they open a page and subscribe again.
    """
    await ensure(services)
    replaced_before = now() - _STORED_FOR
    keys = await models.list_keys(services)
    key = _new_key(services.vault, ObjectId())
    await models.create_key(services, key)
    replaced = [newer["createdAt"] for newer in keys if newer["createdAt"] < replaced_before]
    if replaced:  # the keys before the newest of them have been replaced for that long
        await models.push_keys.across_companies(services).delete_many({"createdAt": {"$lt": max(replaced)}})
    return key["publicKey"]


async def load_private_key(services: Services, key_id: ObjectId) -> bytes | None:
    """Return a private key, or None if it has been deleted. Raises SecretUnreadable."""
    key = await models.push_keys.across_companies(services).find_one({"_id": key_id})
    return None if key is None else _SEALED.open(services.vault, key)


def _new_key(vault: Vault, key_id: ObjectId) -> PushKey:
    private_key = _encryption.new_private_key()
    return {
        "_id": key_id,
        "publicKey": _encryption.public_key_of(private_key),
        "sealed": _SEALED.seal(vault, key_id, private_key),
        "createdAt": now(),
    }


async def _describe_newest(services: Services, _: CountRead) -> AsyncIterator[Finding]:
    key = await models.find_newest_key(services)
    if key is None:
        problem, advice = "The key is made when the service starts", "Start the service"
        yield Finding(problem, 1, None, advice, is_notice=True)
        return
    problem = f"Browsers subscribe with the key of {key['createdAt']:%Y-%m-%d %H:%M} UTC"
    advice = "Replace it with: coaching-service admin push rotate-key"
    yield Finding(problem, 1, key["publicKey"], advice, is_notice=True, identifiers=(key["publicKey"],))


CHECKS = (Check("push-key", "The key of Web Push", _describe_newest),)
