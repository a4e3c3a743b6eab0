"""The webhooks of a company, which its owner manages."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import AsyncIterator, Iterable
from datetime import datetime, timedelta
from typing import cast

from coaching_service.core import audit
from coaching_service.core.auth.secrets import SecretUnreadable, Vault
from coaching_service.core.changes.numbering import batches
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import Conflict, NotFound, invalid_field
from coaching_service.core.ids import ObjectId
from coaching_service.core.outbound.client import OutboundError
from coaching_service.core.validation import Message
from coaching_service.people.account.models import CompanyResumed
from coaching_service.people.webhooks import store
from coaching_service.people.webhooks.models import NewWebhook, StoredSecret, Webhook, WebhookChange, WebhookWithSecret
from coaching_service.people.webhooks.store import webhooks

# --- Secrets and signatures of Standard Webhooks (https://www.standardwebhooks.com, symmetric signatures) -------------


_PREFIX = "whsec_"
_SECRET_BYTES = 32  # the specification wants 24 to 64


def new_secret() -> str:
    """Return a new secret: `whsec_` and 32 random bytes in base64."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def seal_secret(vault: Vault, webhook_id: ObjectId, secret: str) -> bytes:
    """Return the encrypted secret of a webhook."""
    return vault.seal(secret.encode(), _binding(webhook_id))


def open_secret(vault: Vault, webhook_id: ObjectId, sealed: bytes) -> str:
    """Return the secret of a webhook. Raises SecretUnreadable."""
    return vault.open(sealed, _binding(webhook_id)).decode()


def open_secrets(vault: Vault, webhook_id: ObjectId, stored: Iterable[StoredSecret], at: datetime) -> list[str]:
    """Return the secrets that are in use at a time, newest first. Raises SecretUnreadable."""
    in_use = (each for each in stored if each["expiresAt"] is None or each["expiresAt"] > at)
    return [open_secret(vault, webhook_id, each["sealed"]) for each in in_use]


def headers_of(message_id: str, timestamp: int, body: bytes, in_use: Iterable[str]) -> dict[str, str]:
    """Return the headers of a message with a signature for each secret; `timestamp` is in seconds since 1970."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(_sign(secret, signed) for secret in in_use),
    }


def _sign(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def _binding(webhook_id: ObjectId) -> str:
    return f"webhook:{webhook_id}"


MAX_WEBHOOKS = 20
ROTATION = timedelta(hours=24)
_URL_MESSAGES = {
    message.code: message
    for message in (
        Message("must be an absolute address with a possible host name, without spaces and fragment", "URL_INVALID"),
        Message("must begin with https://", "URL_NOT_HTTPS"),
        Message("must not contain a user name or password", "URL_WITH_CREDENTIALS"),
        Message("must have the name of a public host, not a network address or localhost", "ADDRESS_NOT_ALLOWED"),
        Message("must have the port 443 or 8443, or one above 1023", "PORT_NOT_ALLOWED"),
    )
}


async def list_webhooks(ctx: Context) -> list[Webhook]:
    """Return the webhooks of the company, oldest first."""
    return await webhooks.find(ctx, {}, sort=("createdAt", "_id"))


async def get(ctx: Context, webhook_id: ObjectId) -> Webhook:
    """Return a webhook. Raises NotFound."""
    if (webhook := await webhooks.find_one(ctx, {"_id": webhook_id})) is None:
        raise NotFound("webhook")
    return webhook


@transactional
async def create(ctx: Context, details: NewWebhook) -> WebhookWithSecret:
    """Create a webhook for the events from now on, and return it with its secret.

    Raises InvalidFields for an address to which nothing is sent, Conflict if the company has 20 webhooks.
    """
    details = {**details, "url": _canonical_url(ctx, details["url"])}
    free = set(range(MAX_WEBHOOKS)) - {each["slot"] for each in await webhooks.find(ctx, {}, fields=("slot",))}
    if not free:
        raise Conflict("A company has at most 20 webhooks; delete one first", code="TOO_MANY_WEBHOOKS")
    webhook_id, secret = ObjectId(), new_secret()
    webhook = await webhooks.insert(
        ctx,
        {
            "_id": webhook_id,
            **details,
            "failingSince": None,
            "disabledAt": None,
            "previousSecretUntil": None,
            "secrets": [_new_stored_secret(ctx, webhook_id, secret)],
            "position": await batches.find_last_number(ctx),
            "slot": min(free),
            "requested": 0,
        },
    )
    await audit.record(ctx, "webhook.created", webhookId=webhook_id)
    return _with_secret(webhook, secret)


@transactional
async def update(ctx: Context, webhook_id: ObjectId, change: WebhookChange) -> Webhook:
    """Change a webhook and return it.

    One that becomes active receives the events from then on; deliveries that had failed before are tried again. Raises
    NotFound, InvalidFields for an address to which nothing is sent, Conflict if it has changed since `version`.
    """
    if "url" in change:
        change = {**change, "url": _canonical_url(ctx, change["url"])}
    webhook = await get(ctx, webhook_id)
    fields: dict[str, object] = {name: value for name, value in change.items() if name != "version"}
    if change.get("isActive") and not webhook["isActive"]:
        fields |= {"disabledAt": None, "failingSince": None, "position": await batches.find_last_number(ctx)}
    elif change.get("url", webhook["url"]) != webhook["url"]:
        fields["failingSince"] = None
    updated = await webhooks.update(ctx, {"_id": webhook_id}, {"$set": fields}, version=change.get("version"))
    if updated is None:
        raise NotFound("webhook")
    await audit.record(ctx, "webhook.changed", webhookId=webhook_id)
    return updated


async def forget_failures(ctx: Context, _: CompanyResumed) -> None:
    """Do not count the time of a suspension as one in which deliveries failed: webhooks would be disabled for it."""
    await webhooks.set_derived(ctx, {"failingSince": {"$ne": None}}, {"$set": {"failingSince": None}})


@transactional
async def rotate_secret(ctx: Context, webhook_id: ObjectId) -> WebhookWithSecret:
    """Create a new secret of a webhook, and return it; the previous one also signs for 24 hours. Raises NotFound."""
    previous = await store.find_with_secrets(ctx, webhook_id)
    if previous is None:
        raise NotFound("webhook")
    secret, until = new_secret(), now() + ROTATION
    previous_secret: StoredSecret = {**previous["secrets"][0], "expiresAt": until}
    secrets = [_new_stored_secret(ctx, webhook_id, secret), previous_secret]
    fields = {"secrets": secrets, "previousSecretUntil": until}
    webhook = await webhooks.update(ctx, {"_id": webhook_id}, {"$set": fields})
    if webhook is None:
        raise NotFound("webhook")
    await audit.record(ctx, "webhook.secretRotated", webhookId=webhook_id)
    return _with_secret(webhook, secret)


@transactional
async def delete(ctx: Context, webhook_id: ObjectId) -> None:
    """Delete a webhook: nothing is sent to it any more. Its deliveries expire. Raises NotFound."""
    if await webhooks.delete(ctx, {"_id": webhook_id}) is None:
        raise NotFound("webhook")
    await audit.record(ctx, "webhook.deleted", webhookId=webhook_id)


def _canonical_url(ctx: Context, url: str) -> str:
    """Return the form of a URL that is stored. Raises InvalidFields for one to which nothing is sent."""
    try:
        return ctx.services.outbound.canonical_url(url)
    except OutboundError as problem:
        raise invalid_field("url", _URL_MESSAGES[problem.code], code=problem.code) from None


def _new_stored_secret(ctx: Context, webhook_id: ObjectId, secret: str) -> StoredSecret:
    return {"sealed": seal_secret(ctx.services.vault, webhook_id, secret), "expiresAt": None}


def _with_secret(webhook: Webhook, secret: str) -> WebhookWithSecret:
    return cast("WebhookWithSecret", {**webhook, "secret": secret})


async def iterate_unreadable(services: Services) -> AsyncIterator[ObjectId]:
    """Iterate over the webhooks with a secret that no master key opens."""
    for webhook in await store.list_sealed(services):
        try:
            for each in webhook["secrets"]:
                open_secret(services.vault, webhook["_id"], each["sealed"])
        except SecretUnreadable:
            yield webhook["_id"]


async def rotate_master_key(services: Services) -> AsyncIterator[bool]:
    """Encrypt every secret with the newest master key; yields for each webhook whether it changed.

    It can be interrupted and run again: secrets are read with every master key meanwhile.
    """
    vault = services.vault
    for webhook in await store.list_sealed(services):
        stored, webhook_id = webhook["secrets"], webhook["_id"]
        if all(vault.is_current(each["sealed"]) for each in stored):
            yield False
            continue
        opened = [(open_secret(vault, webhook_id, each["sealed"]), each["expiresAt"]) for each in stored]
        sealed = [
            {"sealed": seal_secret(vault, webhook_id, secret), "expiresAt": expires_at} for secret, expires_at in opened
        ]
        unchanged = {"_id": webhook_id, "secrets": stored}
        await webhooks.across_companies(services).update_one(unchanged, {"$set": {"secrets": sealed}})
        yield True
