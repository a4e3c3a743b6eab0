"""API keys: made, found and re-read. A key acts as the coach who made it, narrowed by its own restrictions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

from coaching_service.core import audit
from coaching_service.core.auth.permissions import READ_PERMISSIONS
from coaching_service.core.auth.principal import Principal
from coaching_service.core.auth.secrets import API_KEY_PREFIX, SecretUnreadable, new_api_key
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, now
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import InvalidApiKey, NotFound, Unavailable
from coaching_service.core.ids import ObjectId
from coaching_service.people.account import service as account
from coaching_service.people.api_keys import store
from coaching_service.people.customers import service as customers
from coaching_service.people.team import service as team
from coaching_service.people.team.events import CoachRemoved

UNRESTRICTED = {"readOnly": False, "permissions": None, "expiresAt": None}


async def create(ctx: Context, name: str, restrictions: Document | None = None) -> Document:
    """A new key of the coach asking; the answer holds the secret `key`."""
    secret, identifier = new_api_key(), ObjectId()
    vault = ctx.services.vault
    stored = await store.add(
        ctx,
        {
            "_id": identifier,
            "coachId": ctx.caller.id,
            "name": name,
            "prefix": API_KEY_PREFIX,
            "lastFour": secret[-4:],
            "restrictions": UNRESTRICTED | (restrictions or {}),
            "lastUsedAt": None,
            "hash": vault.keyed_hash(secret),
            "sealed": vault.seal(secret.encode(), _binding(identifier)),
        },
    )
    return {**stored, "key": secret}


async def list_keys(ctx: Context) -> list[Document]:
    """The keys of the coach asking; the owner's are all of the company's."""
    return await store.everything(ctx, _reach(ctx))


async def reveal(ctx: Context, key_id: ObjectId) -> str:
    """A key's secret; that it was read is recorded.

    Raises NotFound, also for a colleague's key, and Unavailable when its master key is not among the settings.
    """
    if (key := await store.one(ctx, _reach(ctx) | {"_id": key_id}, ("sealed",))) is None:
        raise NotFound("API key")
    try:
        secret = ctx.services.vault.open(key["sealed"], _binding(key_id)).decode()
    except SecretUnreadable:
        raise Unavailable("This key cannot be read at present: the operator has to put its master key back") from None
    await audit.record(ctx, "apiKey.revealed", keyId=key_id)
    return secret


async def revoke(ctx: Context, key_id: ObjectId) -> None:
    """End a key: it fails on its very next request. Raises NotFound, also for a colleague's key."""

    async def revoked(tx: Context) -> None:
        if not await store.remove(tx, _reach(tx) | {"_id": key_id}):
            raise NotFound("API key")
        await audit.record(tx, "apiKey.revoked", keyId=key_id)

    await in_transaction(ctx, revoked)


async def delete_all_of_coach(ctx: Context, coach_id: ObjectId) -> None:
    """End every key of a coach, in the caller's transaction."""
    await store.remove_all(ctx, coach_id)


async def count_unreadable(services: Services) -> int:
    """How many keys are sealed under a master key that this process does not have."""
    return sum([1 async for key in store.every_sealed(services) if not services.vault.has_key_for(key["sealed"])])


async def rotate_master_key(services: Services) -> AsyncIterator[bool]:
    """Seal and hash every key anew under the newest master key, one at a time; gives for each whether it changed.

    It may be interrupted and run again: a key is found under every master key meanwhile.
    """
    vault = services.vault
    async for key in store.every_sealed(services):
        if vault.is_current(key["sealed"]):
            yield False
            continue
        secret = vault.open(key["sealed"], _binding(key["_id"])).decode()
        sealed = vault.seal(secret.encode(), _binding(key["_id"]))
        await store.reseal(services, key, sealed, vault.keyed_hash(secret))
        yield True


def _reach(ctx: Context) -> Document:
    return {} if ctx.caller.role == "OWNER" else {"coachId": ctx.caller.id}


async def find_secret(ctx: Context, name: str) -> str | None:
    """The secret of the asking coach's key called `name`, or None when there is none."""
    if (key := await store.named(ctx, ctx.caller.id, name)) is None:
        return None
    return ctx.services.vault.open(key["sealed"], _binding(key["_id"])).decode()


async def authenticate(services: Services, secret: str, client_id: ObjectId | None = None) -> Principal:
    """Whom a key acts as; `client_id` names the client whom the request is about, if any, to be looked up with it.

    Raises InvalidApiKey when the key is unknown, deleted or expired.
    """
    beside = [customers.visible_customer_stage(client_id)] if client_id else []
    key = await store.resolve(services, services.vault.keyed_hashes(secret), *beside)
    if key is None:
        raise InvalidApiKey()
    restrictions = key["restrictions"]
    if restrictions["expiresAt"] is not None and restrictions["expiresAt"] <= now():
        raise InvalidApiKey()
    await store.touch(services, key)
    coach = team.to_principal(key["coach"], account.to_company(key["company"]), "apiKey", key["_id"])
    permissions = coach.permissions
    if restrictions["permissions"] is not None:
        permissions &= frozenset(restrictions["permissions"])
    if restrictions["readOnly"]:
        permissions &= READ_PERMISSIONS
    restricted = restrictions["readOnly"] or restrictions["permissions"] is not None
    return replace(
        coach,
        permissions=permissions,
        read_only=restrictions["readOnly"],
        restricted=restricted,
        client=next(iter(key.get("client", ())), None),
    )


def _binding(identifier: ObjectId) -> str:
    return f"apiKey:{identifier}"


async def delete_keys_of_coach(ctx: Context, event: CoachRemoved) -> None:
    """Delete every API key of a removed coach."""
    await delete_all_of_coach(ctx, event.coach_id)
