"""API keys: made, found and re-read. A key acts as the coach who made it, narrowed by its own restrictions."""

from __future__ import annotations

from dataclasses import replace

from coaching_service.kernel.auth.permissions import READ_PERMISSIONS
from coaching_service.kernel.auth.principal import Principal
from coaching_service.kernel.auth.secrets import API_KEY_PREFIX, new_api_key
from coaching_service.kernel.errors import InvalidApiKey
from coaching_service.kernel.storage.context import Context, Services
from coaching_service.kernel.storage.documents import Document, now
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.people.account import service as account
from coaching_service.people.api_keys import store
from coaching_service.people.team import service as team

UNRESTRICTED = {"readOnly": False, "permissions": None, "expiresAt": None}


async def create(ctx: Context, name: str, restrictions: Document | None = None) -> Document:
    """A new key of the coach asking; the answer holds the secret `key`."""
    secret, identifier = new_api_key(), ObjectId()
    vault = ctx.services.vault
    stored = await store.add(
        ctx,
        {
            "_id": identifier,
            "coachId": ctx.who.id,
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


async def secret_of(ctx: Context, name: str) -> str | None:
    """The secret of the asking coach's key called `name`, or None when there is none."""
    if (key := await store.named(ctx, ctx.who.id, name)) is None:
        return None
    return ctx.services.vault.open(key["sealed"], _binding(key["_id"])).decode()


async def principal_of(services: Services, secret: str) -> Principal:
    """Whom a key acts as. Raises InvalidApiKey when it is unknown, deleted or expired."""
    key = await store.resolve(services, services.vault.keyed_hashes(secret))
    if key is None:
        raise InvalidApiKey()
    restrictions = key["restrictions"]
    if restrictions["expiresAt"] is not None and restrictions["expiresAt"] <= now():
        raise InvalidApiKey()
    await store.touch(services, key)
    coach = team.as_principal(key["coach"], account.as_company(key["company"]), "apiKey", key["_id"])
    permissions = coach.permissions
    if restrictions["permissions"] is not None:
        permissions &= frozenset(restrictions["permissions"])
    if restrictions["readOnly"]:
        permissions &= READ_PERMISSIONS
    return replace(coach, permissions=permissions, read_only=restrictions["readOnly"])


def _binding(identifier: ObjectId) -> str:
    return f"apiKey:{identifier}"
