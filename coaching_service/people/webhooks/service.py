"""The webhooks of a company, and of the applications that it allows."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, cast

from coaching_service.core import audit
from coaching_service.core import fields as core_fields
from coaching_service.core.auth import (
    CUSTOMERS,
    WEBHOOKS,
    WEBHOOKS_SCOPE,
    SecretUnreadable,
    Vault,
    coach,
    require_permission,
)
from coaching_service.core.changes import numbering
from coaching_service.core.changes.models import StoredEvent
from coaching_service.core.database.context import Collection as StoredCollection
from coaching_service.core.database.context import Context, Services, transactional, version_conflict
from coaching_service.core.database.declared import Index, NotExported, Unsharded
from coaching_service.core.database.documents import Document, Documents, Filter, now, with_version
from coaching_service.core.errors import Conflict, Forbidden, NotFound, invalid_field
from coaching_service.core.events import EVENT_TYPES, OWNER_EVENTS, EventType
from coaching_service.core.fields import input_of, output_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import CursorPage, ListPart
from coaching_service.core.metrics import Backlog
from coaching_service.core.outbound import OutboundError
from coaching_service.core.validation import Message, patch_of
from coaching_service.people import assistants
from coaching_service.people.account import CompanyResumed
from coaching_service.people.assistants import ApplicationAllowed
from coaching_service.people.changes import models as change_models
from coaching_service.people.changes.models import Event
from coaching_service.people.webhooks import models

# --- Webhooks and deliveries in the database --------------------------------------------------------------------------


RETENTION_SECONDS = 30 * 24 * 3600
_REASON = "one process sends the deliveries of all companies"
_TO_ATTEMPT: Final = ("webhookId", "eventId", "seq", "type", "customerId", "createdAt", "nextAttemptAt", "retries")
_OF_WHOLE: Final = ("url", "types", "isActive", "secrets", "failingSince")
_TO_SEND: Final = (*_OF_WHOLE, "position", "clientId", "sharedId", "isOfOwner")

_COUNTED_AT_ONCE = 1_000

_PENDING = Index(("createdAt", "webhookId"), partial_filter=(("status", "pending"),))

webhooks = Documents[models.Webhook](
    "webhooks",
    (Index(("createdAt", "_id")), Index(("slot",), unique=True)),
    private=core_fields.private_of(models.Webhook),
    global_indexes=(
        Index(("isActive",)),
        Index(("sharedId",), partial_filter=(("sharedId", {"$exists": True}),)),
    ),
    cross_company_reason=_REASON,
    transfer=NotExported("secrets, and addresses that expect the events of this company"),
)
_BY_APPLICATION = Index(("clientId", "createdAt"))
# The webhooks of applications for all companies; `webhooks` has a part of each, in every company that allows it.
shared_webhooks = Documents[models.Webhook](
    "applicationWebhooks",
    private=core_fields.private_of(models.Webhook),
    global_indexes=(_BY_APPLICATION, Index(("slot",), unique=True)),
    cross_company_reason="an application has them for all companies that allow it",
    placement=Unsharded("few applications have any, and each for many companies"),
    transfer=NotExported("secrets, and addresses of applications"),
)
deliveries = Documents[models.Delivery](
    "webhookDeliveries",
    (
        Index(("webhookId", "-createdAt", "-_id")),
        Index(("webhookId", "status", "-createdAt", "-_id")),
        Index(("webhookId", "seq"), partial_filter=(("isQueued", {"$exists": True}),)),
        Index(("webhookId", "nextAttemptAt")),
        Index(("customerId",)),
    ),
    private=core_fields.private_of(models.Delivery),
    global_indexes=(_PENDING,),
    client_field="customerId",
    secret=True,
    expire=("createdAt", RETENTION_SECONDS),
    cross_company_reason=_REASON,
    transfer=NotExported("deliveries of webhooks"),
)
LIST_ORDER = ("-createdAt", "-_id")


# --- Webhooks --------------------------------------------------------------------------------------------------------


async def find_to_send(ctx: Context, webhook_id: ObjectId) -> models.WebhookToSend | None:
    """Return what storing and sending deliveries needs of a webhook, or None."""
    webhook = await webhooks.find_one(ctx, {"_id": webhook_id}, _TO_SEND)
    if webhook is None or (shared_id := webhook.get("sharedId")) is None:
        return webhook
    shared = await _shared(ctx).find_one({"_id": shared_id}, dict.fromkeys(_OF_WHOLE, 1), session=ctx.session)
    return None if shared is None else cast("models.WebhookToSend", {**webhook, **shared, "_id": webhook["_id"]})


def public_id(webhook: models.WebhookToSend) -> ObjectId:
    """Return the identifier under which a webhook is known: of a part, the identifier of the whole."""
    return webhook.get("sharedId") or webhook["_id"]


async def move_position(ctx: Context, webhook_id: ObjectId, position: int | None, new_position: int) -> bool:
    """Move the position of an active webhook; returns False if it is not at `position` (None: none) any more."""
    where = {"_id": webhook_id, "position": position, "isActive": True}
    return await webhooks.set_derived(ctx, where, {"$set": {"position": new_position}}) == 1


async def disable(ctx: Context, webhook: models.WebhookToSend, failing_since: datetime | None) -> models.Webhook | None:
    """Disable an active webhook, if it has been failing since that time or longer (None: in any case); else None."""
    failing = {} if failing_since is None else {"failingSince": {"$lte": failing_since}}
    where = {"_id": public_id(webhook), "isActive": True, **failing}
    change = {"$set": {"isActive": False, "disabledAt": now()}}
    if "sharedId" not in webhook:
        return await webhooks.update(ctx, where, change)
    return await _update_shared(ctx, where, change)


async def record_outcome(ctx: Context, webhook: models.WebhookToSend, *, is_success: bool) -> None:
    """Record that a delivery has succeeded, or since when every one has failed."""
    where = {"_id": public_id(webhook), "failingSince": {"$ne": None} if is_success else None}
    change = {"$set": {"failingSince": None if is_success else now()}}
    if "sharedId" in webhook:
        await _shared(ctx).update_one(where, change)
    else:
        await webhooks.set_derived(ctx, where, change)


async def list_active(services: Services) -> list[models.ActiveWebhook]:
    """Return the active webhooks of all companies."""
    fields = {"companyId": 1, "requested": 1, "sharedId": 1}
    cursor: Any = webhooks.across_companies(services).find({"isActive": True}, fields, hint="isActive")
    active: list[models.ActiveWebhook] = await cursor.to_list(None)
    return active


async def find_pending(services: Services, limit: int) -> Backlog:
    """Count the pending deliveries of the active webhooks of all companies, at most `limit`, and find the oldest.

    Only webhooks that have pending deliveries are read, and pending deliveries of others until `limit` is reached.
    """
    fields, is_active = {"webhookId": 1, "createdAt": 1}, dict[ObjectId, bool]()
    cursor: Any = deliveries.across_companies(services).find({"status": "pending"}, fields, hint=_PENDING.name)
    cursor = cursor.sort("createdAt", 1).batch_size(_COUNTED_AT_ONCE)
    count, oldest = 0, None
    while count < limit and (batch := await cursor.to_list(_COUNTED_AT_ONCE)):
        if unknown := {each["webhookId"] for each in batch} - is_active.keys():
            known: Any = webhooks.across_companies(services).find({"_id": {"$in": list(unknown)}}, {"isActive": 1})
            is_active |= dict.fromkeys(unknown, False) | {each["_id"]: each["isActive"] async for each in known}
        found = [each["createdAt"] for each in batch if is_active[each["webhookId"]]]
        count, oldest = count + len(found), oldest or next(iter(found), None)
    await cursor.close()
    seconds = 0.0 if oldest is None else max(0.0, (now() - oldest).total_seconds())
    return {"count": min(count, limit), "oldestSeconds": seconds}


# --- Deliveries ------------------------------------------------------------------------------------------------------


async def list_queued(ctx: Context, webhook_id: ObjectId, after: int, limit: int) -> list[models.DueDelivery]:
    """Return what an attempt needs of deliveries that wait for their first one, in the order of the events.

    Only deliveries of events with a number greater than `after`.
    """
    where = {"webhookId": webhook_id, "isQueued": True, "seq": {"$gt": after}}
    return await deliveries.find(ctx, where, sort=("seq",), limit=limit, fields=_TO_ATTEMPT)


async def list_due(
    ctx: Context, webhook_id: ObjectId, at: datetime, limit: int, *, without: Collection[ObjectId]
) -> list[models.DueDelivery]:
    """Return what an attempt needs of due deliveries, except `without`, the longest due first."""
    where = {"webhookId": webhook_id, "nextAttemptAt": {"$lte": at}, "_id": {"$nin": list(without)}}
    return await deliveries.find(ctx, where, sort=("nextAttemptAt",), limit=limit, fields=_TO_ATTEMPT)


async def find_next_due(ctx: Context, webhook_id: ObjectId, at: datetime) -> datetime | None:
    """Return when the first attempt after `at` is due; None if there is none."""
    where = {"webhookId": webhook_id, "nextAttemptAt": {"$gt": at}}
    following = await deliveries.find(ctx, where, sort=("nextAttemptAt",), limit=1, fields=("nextAttemptAt",))
    return following[0]["nextAttemptAt"] if following else None


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


def headers_of(message_id: str, timestamp: int, body: bytes, in_use: Iterable[str]) -> dict[str, str]:
    """Return the headers of a message with a signature for each secret; `timestamp` is in seconds since 1970."""
    signed, keys = f"{message_id}.{timestamp}.".encode() + body, [secret.removeprefix(_PREFIX) for secret in in_use]
    signatures = [hmac.new(base64.b64decode(key), signed, hashlib.sha256) for key in keys]
    return {
        "Content-Type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{base64.b64encode(each.digest()).decode()}" for each in signatures),
    }


def _binding(webhook_id: ObjectId) -> str:
    return f"webhook:{webhook_id}"


MAX_WEBHOOKS = 20
ROTATION = timedelta(hours=24)
_URL_MESSAGES = {
    message.code: message
    for message in (
        Message("must be an absolute address with a possible host name, without spaces and fragment", "URL_INVALID"),
        Message(
            "must begin with https:// (for development, the operator allows http:// by WEBHOOKS_ALLOW_HTTP)",
            "URL_NOT_HTTPS",
        ),
        Message("must not contain a user name or password", "URL_WITH_CREDENTIALS"),
        Message(
            "must have the name of a public host, not a network address or localhost (for development, the operator "
            "allows them by WEBHOOKS_ALLOW_PRIVATE)",
            "ADDRESS_NOT_ALLOWED",
        ),
        Message("must have the port 443 or 8443, or one above 1023", "PORT_NOT_ALLOWED"),
    )
}


async def _update(
    ctx: Context, webhook: models.Webhook, change: Document, *, version: int | None = None
) -> models.Webhook:
    """Change a webhook of the caller, and return it. Raises NotFound, Conflict if it has changed since `version`."""
    where = {"_id": webhook["_id"], **_own(ctx)}
    if webhook["allCompanies"]:
        updated = await _update_shared(ctx, where | ({} if version is None else {"version": version}), change)
        if updated is None and version is not None:
            raise version_conflict()
    else:
        updated = await webhooks.update(ctx, where, change, version=version)
    if updated is None:
        raise NotFound("webhook")
    return _complete(updated)


async def forget_failures(ctx: Context, _: CompanyResumed) -> None:
    """Do not count the time of a suspension as one in which deliveries failed: webhooks would be disabled for it."""
    await webhooks.set_derived(ctx, {"failingSince": {"$ne": None}}, {"$set": {"failingSince": None}})


def _own(ctx: Context) -> Filter:
    """Return the condition of the webhooks that the caller manages: of the company, or of the application."""
    return {"clientId": ctx.caller.oauth_client_id}


def _complete(webhook: models.Webhook) -> models.Webhook:
    """Return a webhook as interfaces return it: older ones lack a field."""
    return {**webhook, "allCompanies": webhook.get("allCompanies", False)}


def _require_visible(ctx: Context, types: Collection[EventType]) -> None:
    """Raise Forbidden unless the caller may see the events of some types (none: of all) of every client.

    What only the owner may see is left out of the webhooks of others, and what an application may not see of its own.
    """
    if ctx.caller.oauth_client_id is not None:
        if hidden := next((each for each in types if each in OWNER_EVENTS), None):
            raise Forbidden(f"Applications never see events of the type {hidden}", code="OWNER_ONLY")
        return
    if ctx.caller.customers_scope != "all":
        message = "A webhook sends the events of all clients: you need the scope of all clients"
        raise Forbidden(message, code="CUSTOMER_OUT_OF_SCOPE")
    for event_type in types or EVENT_TYPES:
        if event_type in OWNER_EVENTS:
            if types and not ctx.caller.is_unrestricted_owner:
                raise Forbidden(f"Only the owner may see events of the type {event_type}", code="OWNER_ONLY")
            continue
        require_permission(ctx.caller, CUSTOMERS.VIEW)
        for area in change_models.areas_of_type(event_type):
            require_permission(ctx.caller, area.VIEW)


def _canonical_url(ctx: Context, url: str) -> str:
    """Return the form of a URL that is stored. Raises InvalidFields for one to which nothing is sent."""
    try:
        return ctx.services.outbound.canonical_url(url)
    except OutboundError as problem:
        raise invalid_field("url", _URL_MESSAGES[problem.code], code=problem.code) from None


def _new_stored_secret(ctx: Context, webhook_id: ObjectId, secret: str) -> models.StoredSecret:
    return {"sealed": seal_secret(ctx.services.vault, webhook_id, secret), "expiresAt": None}


def _with_secret(webhook: models.Webhook, secret: str) -> models.WebhookWithSecret:
    return cast("models.WebhookWithSecret", {**webhook, "secret": secret})


async def list_sealed(services: Services) -> list[tuple[Documents[models.Webhook], models.Webhook]]:
    """Return the encrypted secrets of all webhooks, each with the collection that it is in."""
    collections = [webhooks, shared_webhooks]
    found: Any = [(each, each.across_companies(services).find({}, {"secrets": 1})) for each in collections]
    return [(collection, webhook) for collection, cursor in found for webhook in await cursor.to_list(None)]


async def iterate_unreadable(services: Services) -> AsyncIterator[ObjectId]:
    """Iterate over the webhooks with a secret that no master key opens."""
    for _, webhook in await list_sealed(services):
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
    for collection, webhook in await list_sealed(services):
        stored, webhook_id = webhook["secrets"], webhook["_id"]
        if all(vault.is_current(each["sealed"]) for each in stored):
            yield False
            continue
        opened = [(open_secret(vault, webhook_id, each["sealed"]), each["expiresAt"]) for each in stored]
        sealed = [
            {"sealed": seal_secret(vault, webhook_id, secret), "expiresAt": expires_at} for secret, expires_at in opened
        ]
        unchanged = {"_id": webhook_id, "secrets": stored}
        await collection.across_companies(services).update_one(unchanged, {"$set": {"secrets": sealed}})
        yield True


# --- The deliveries of a webhook: their list, and requested repetitions -----------------------------------------------


def is_test(delivery: models.DueDelivery) -> bool:
    """Return whether a delivery is a test: its event is not of the log."""
    return delivery["seq"] == 0


def new_delivery(
    webhook_id: ObjectId, event_id: str, number: int, event_type: str, customer_id: ObjectId | None
) -> dict[str, object]:
    """Return the fields of a delivery that has not been attempted."""
    return {
        "webhookId": webhook_id,
        "eventId": event_id,
        "seq": number,
        "type": event_type,
        "customerId": customer_id,
        "status": "pending",
        "attempts": 0,
        "responseStatus": None,
        "error": None,
        "durationMs": None,
        "lastAttemptAt": None,
        "nextAttemptAt": None,
        "retries": 0,
    }


async def _require_active(ctx: Context, webhook_id: ObjectId) -> ObjectId:
    """Return the identifier in the company of a webhook that is active. Raises NotFound, Conflict."""
    webhook = await get_webhook(ctx, webhook_id)
    if not webhook["isActive"]:
        raise Conflict("The webhook is not active; activate it first", code="WEBHOOK_INACTIVE")
    return await _find_in_company(ctx, webhook_id)


async def _find_in_company(ctx: Context, webhook_id: ObjectId) -> ObjectId:
    """Return the identifier that a webhook has in the company: of one for all companies, the identifier of its part.

    Raises NotFound.
    """
    either = {"$or": [{"_id": webhook_id, "sharedId": None}, {"slot": str(webhook_id)}]}
    if (webhook := await webhooks.find_one(ctx, _own(ctx) | either, ("_id",))) is None:
        raise NotFound("webhook")
    return webhook["_id"]


# --- Webhooks of applications -----------------------------------------------------------------------------------------
# One for all companies has a part in each: the number of the last event that was sent, and the deliveries. A part, and
# a webhook of an application in one company, ends with the last consent of the company.


def _shared(ctx: Context) -> StoredCollection:
    return shared_webhooks.across_companies(ctx.services)


async def _list_shared(ctx: Context, client_id: str) -> list[models.Webhook]:
    cursor: Any = _shared(ctx).find({"clientId": client_id}, shared_webhooks.projection(None), session=ctx.session)
    found: list[models.Webhook] = await cursor.to_list(None)
    return found


async def _update_shared(ctx: Context, where: Filter, change: Document) -> models.Webhook | None:
    """Change a webhook for all companies, and whether its parts are active; returns it, or None."""
    updated: Any = await _shared(ctx).find_one_and_update(
        where,
        with_version(change),
        projection=shared_webhooks.projection(None),
        return_document=True,
        session=ctx.session,
    )
    if updated is not None and "isActive" in change["$set"]:
        parts, is_active = {"sharedId": updated["_id"]}, {"$set": {"isActive": updated["isActive"]}}
        await webhooks.across_companies(ctx.services).update_many(parts, is_active, session=ctx.session)
    return cast("models.Webhook | None", updated)


async def join_companies(ctx: Context, shared: models.Webhook) -> None:
    """Store the missing parts of a webhook for all companies: in those that allow its application webhooks."""
    parts = webhooks.across_companies(ctx.services)
    allowing = await assistants.list_companies(ctx, shared["clientId"], WEBHOOKS_SCOPE)
    cursor: Any = parts.find({"sharedId": shared["_id"]}, {"companyId": 1}, session=ctx.session)
    missing = allowing - {part["companyId"] async for part in cursor}
    numbers = await numbering.find_last_numbers(ctx.services, missing)
    if new := [_new_part(shared["clientId"], shared, each, numbers.get(each, 0)) for each in missing]:
        await parts.insert_many(new, session=ctx.session)


async def join_all(services: Services) -> None:
    """Store the missing parts of all webhooks of applications, of consents that were given as these were created."""
    found: Any = shared_webhooks.across_companies(services).find({}, {"clientId": 1, "isActive": 1})
    async for shared in found.hint(_BY_APPLICATION.name):
        await join_companies(Context(services), shared)


def _new_part(client_id: str, shared: models.Webhook, company_id: ObjectId, position: int) -> Document:
    at = now()
    return {
        "_id": ObjectId(),
        "companyId": company_id,
        "clientId": client_id,
        "sharedId": shared["_id"],
        "slot": str(shared["_id"]),
        "isActive": shared["isActive"],
        "secrets": [],
        "position": position,
        "requested": 0,
        "createdAt": at,
        "updatedAt": at,
        "version": 0,
    }


async def join_company(ctx: Context, event: ApplicationAllowed) -> None:
    """Begin to send the events of a company that allows an application webhooks, in the transaction of the consent.

    If no other consent lasts, what had been waiting for an earlier one is dropped.
    """
    if not await assistants.has_consent(ctx, event.client_id, WEBHOOKS_SCOPE, without=event.grant_id):
        await _drop(ctx, event.client_id)
    if WEBHOOKS_SCOPE in event.scopes:
        own = await webhooks.find(ctx, {"clientId": event.client_id}, fields=("sharedId",))
        present = {each.get("sharedId") for each in own}
        position = await numbering.find_last_number(ctx)
        shared = await _list_shared(ctx, event.client_id)
        await webhooks.insert_many(
            ctx,
            [
                _new_part(event.client_id, each, ctx.company_id, position)
                for each in shared
                if each["_id"] not in present
            ],
        )


@transactional
async def end_without_consent(ctx: Context, client_id: str) -> None:
    """Delete the webhooks of an application in the company, and what waits, if no consent for them lasts."""
    if not await assistants.has_consent(ctx, client_id, WEBHOOKS_SCOPE):
        await _drop(ctx, client_id)


async def _drop(ctx: Context, client_id: str) -> None:
    for webhook in await webhooks.find(ctx, {"clientId": client_id}, fields=("_id",)):
        await deliveries.delete_many(ctx, {"webhookId": webhook["_id"], "status": "pending"})
        await webhooks.delete(ctx, {"_id": webhook["_id"]})


async def delete_of_application(services: Services, client_id: str) -> None:
    """Delete the webhooks of an application that is deleted, in all companies."""
    for collection in (shared_webhooks, webhooks):
        await collection.across_companies(services).delete_many({"clientId": client_id})


async def list_sent(ctx: Context, webhook: models.WebhookToSend, events: Sequence[Event]) -> list[Event]:
    """Return which of the events of a company are sent to a webhook: the one place that decides.

    Those of an application are what GET /coach/events returns it now, for one of the coaches who allow it. Raises
    NotFound, and ends the webhook, if none of them does any more.
    """
    if (client_id := webhook.get("clientId")) is None:
        hidden = () if webhook.get("isOfOwner", True) else OWNER_EVENTS
        return [event for event in events if event["type"] not in hidden]
    coaches = await assistants.list_principals(ctx, client_id, WEBHOOKS_SCOPE)
    if not coaches:
        await end_without_consent(ctx, client_id)
        raise NotFound("webhook")
    views = [
        await change_models.load_visibility(replace(ctx, principal=coach, interface=None))
        for coach in coaches
        if {CUSTOMERS.VIEW, WEBHOOKS} <= coach.permissions
    ]
    return [
        event for event in events if any(change_models.allows_event(view, cast("StoredEvent", event)) for view in views)
    ]


# --- Webhooks over REST -----------------------------------------------------------------------------------------------


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
    found = await webhooks.find(ctx, _own(ctx) | {"sharedId": None}, sort=("createdAt", "_id"))
    if ctx.caller.oauth_client_id is not None:
        found += await _list_shared(ctx, ctx.caller.oauth_client_id)
    return [_complete(each) for each in sorted(found, key=lambda each: (each["createdAt"], each["_id"]))]


@routes.post("", access=_ACCESS, returns=_WITH_SECRET, errors=(Conflict,), example=_EXAMPLE)
@transactional
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
    # Raises InvalidFields for an address to which nothing is sent, and unless an application calls for all companies;
    # Conflict if the company, or an application in it, has 20 webhooks, or the application one for all companies;
    # Forbidden if the caller may not see what it would send.
    client_id, for_all = ctx.caller.oauth_client_id, body.get("allCompanies", False)
    if for_all and client_id is None:
        message = "is only for applications: a key, or a session, is of one company"
        raise invalid_field("allCompanies", message, code="ONLY_APPLICATIONS")
    _require_visible(ctx, body["types"])
    existing = [each for each in await list_webhooks(ctx) if each["allCompanies"] == for_all]
    if len(existing) >= (1 if for_all else MAX_WEBHOOKS):
        message = (
            "A company, or an application in it, has at most 20 webhooks, and an application one for all companies; "
            "change or delete one"
        )
        raise Conflict(message, code="TOO_MANY_WEBHOOKS")
    url, webhook_id, secret = _canonical_url(ctx, body["url"]), ObjectId(), new_secret()
    # A free slot: of two that are created at once, one fails.
    if for_all:
        cursor: Any = _shared(ctx).find(_own(ctx), {"slot": 1}, session=ctx.session)
        used = {each["slot"] async for each in cursor}
    else:
        used = {each["slot"] for each in await webhooks.find(ctx, _own(ctx), fields=("slot",))}
    slots = (number if client_id is None else f"{client_id} {number}" for number in range(MAX_WEBHOOKS))
    new: dict[str, object] = {
        "_id": webhook_id,
        **body,
        "url": url,
        "allCompanies": for_all,
        "failingSince": None,
        "disabledAt": None,
        "previousSecretUntil": None,
        "secrets": [_new_stored_secret(ctx, webhook_id, secret)],
        "slot": next(slot for slot in slots if slot not in used),
        **({} if client_id is None else {"clientId": client_id}),
    }
    if for_all:
        at = now()
        stored = {**new, "createdAt": at, "updatedAt": at, "version": 0}
        await _shared(ctx).insert_one(stored, session=ctx.session)
        await join_companies(ctx, cast("models.Webhook", stored))
        webhook = shared_webhooks.without_private(stored)
    else:
        position = await numbering.find_last_number(ctx)
        of_company = {"position": position, "requested": 0, "isOfOwner": ctx.caller.is_unrestricted_owner}
        webhook = await webhooks.insert(ctx, new | of_company)
    await audit.record(ctx, "webhook.created", webhook_id)
    return _with_secret(webhook, secret)


@routes.get("/{webhookId}", access=_ACCESS)
async def get_webhook(ctx: Context, webhook_id: ObjectId) -> models.Webhook:
    """Read a webhook."""
    where = {"_id": webhook_id, **_own(ctx)}
    webhook: Any = await webhooks.find_one(ctx, where | {"sharedId": None})
    if webhook is None and ctx.caller.oauth_client_id is not None:
        webhook = await _shared(ctx).find_one(where, shared_webhooks.projection(None), session=ctx.session)
    if webhook is None:
        raise NotFound("webhook")
    return _complete(webhook)


@routes.patch(
    "/{webhookId}",
    access=_ACCESS,
    body=patch_of(input_of(models.WebhookFields), name="WebhookChange"),
    example={"description": "Our new CRM", "version": 0},
)
@transactional
async def update_webhook(ctx: Context, webhook_id: ObjectId, body: models.WebhookChange) -> models.Webhook:
    """Change a webhook.

    One that becomes active again receives the events from then on.
    """
    # Deliveries that had failed before are tried again. Raises NotFound, InvalidFields for an address to which nothing
    # is sent, Conflict if it has changed since `version`, Forbidden if the caller may not see what it sends.
    change = {**body, "url": _canonical_url(ctx, body["url"])} if "url" in body else body
    webhook = await get_webhook(ctx, webhook_id)
    _require_visible(ctx, change.get("types", webhook["types"]))
    fields: dict[str, object] = {name: value for name, value in change.items() if name != "version"}
    becomes_active = bool(change.get("isActive")) and not webhook["isActive"]
    if becomes_active:
        fields |= {"disabledAt": None, "failingSince": None}
        if not webhook["allCompanies"]:
            fields["position"] = await numbering.find_last_number(ctx)
    elif change.get("url", webhook["url"]) != webhook["url"]:
        fields["failingSince"] = None
    if change.get("url", webhook["url"]) != webhook["url"] and not ctx.caller.is_unrestricted_owner:
        fields["isOfOwner"] = False
    updated = await _update(ctx, webhook, {"$set": fields}, version=change.get("version"))
    if becomes_active and webhook["allCompanies"]:  # its parts continue with the events from now on
        parts = webhooks.across_companies(ctx.services)
        cursor: Any = parts.find({"sharedId": webhook_id}, {"companyId": 1}, session=ctx.session)
        of_company = {part["companyId"]: part["_id"] async for part in cursor}
        numbers = await numbering.find_last_numbers(ctx.services, of_company)
        for company_id, part_id in of_company.items():
            position = {"$set": {"position": numbers.get(company_id, 0)}}
            await parts.update_one({"companyId": company_id, "_id": part_id}, position, session=ctx.session)
    await audit.record(ctx, "webhook.changed", webhook_id)
    return updated


@routes.delete("/{webhookId}", access=_ACCESS)
@transactional
async def delete_webhook(ctx: Context, webhook_id: ObjectId) -> None:
    """Delete a webhook."""  # its deliveries expire
    webhook = await get_webhook(ctx, webhook_id)
    if webhook["allCompanies"]:
        await _shared(ctx).delete_one({"_id": webhook_id}, session=ctx.session)
        await webhooks.across_companies(ctx.services).delete_many({"sharedId": webhook_id}, session=ctx.session)
    else:
        await webhooks.delete(ctx, {"_id": webhook_id})
    await audit.record(ctx, "webhook.deleted", webhook_id)


@routes.post(
    "/{webhookId}/test",
    access=_ACCESS,
    errors=(Conflict,),
    body_optional=True,
    example={"type": "workout.completed"},
)
@transactional
async def send_webhook_test(ctx: Context, webhook_id: ObjectId, body: models.WebhookTest) -> models.Delivery:
    """Send a test event once: of the type `webhook.test`, or a sample of the `type`.

    A sample is sent whatever types the webhook wants. The response is the delivery before its attempt: read it again
    for the result.
    """
    # Raises NotFound, Conflict if the webhook is not active.
    own_id, delivery_id = await _require_active(ctx, webhook_id), ObjectId()
    delivery = new_delivery(own_id, f"{delivery_id}.0", 0, body.get("type") or models.TEST_EVENT, None)
    stored = await deliveries.insert(ctx, {**delivery, "_id": delivery_id, "nextAttemptAt": now()})
    # The process that delivers looks for requested deliveries when their number has changed.
    await webhooks.set_derived(ctx, {"_id": own_id}, {"$inc": {"requested": 1}})
    return {**stored, "webhookId": webhook_id}


@routes.post("/{webhookId}/rotate-secret", access=_ACCESS, status=200, returns=_WITH_SECRET)
@transactional
async def rotate_webhook_secret(ctx: Context, webhook_id: ObjectId) -> models.WebhookWithSecret:
    """Replace the secret of a webhook.

    For 24 hours messages have two signatures, with the new and the previous secret.
    """
    webhook = await get_webhook(ctx, webhook_id)
    previous: Any = (
        await _shared(ctx).find_one({"_id": webhook_id}, {"secrets": 1}, session=ctx.session)
        if webhook["allCompanies"]
        else await webhooks.find_one(ctx, {"_id": webhook_id}, ("secrets",))
    )
    if previous is None:
        raise NotFound("webhook")
    secret, until = new_secret(), now() + ROTATION
    previous_secret: models.StoredSecret = {"sealed": previous["secrets"][0]["sealed"], "expiresAt": until}
    secrets = [_new_stored_secret(ctx, webhook_id, secret), previous_secret]
    rotated = await _update(ctx, webhook, {"$set": {"secrets": secrets, "previousSecretUntil": until}})
    await audit.record(ctx, "webhook.secret_rotated", webhook_id)
    return _with_secret(rotated, secret)


@routes.get("/{webhookId}/deliveries", access=_ACCESS)
async def list_webhook_deliveries(
    ctx: Context, webhook_id: ObjectId, query: models.DeliveryQuery
) -> CursorPage[models.Delivery]:
    """List the deliveries of a webhook of the last 30 days, newest first.

    Of one for all companies, those of the company of the token.
    """
    # Raises NotFound, InvalidFields for a cursor of another list.
    limit, status, own_id = query["limit"], query["status"], await _find_in_company(ctx, webhook_id)
    filters = {"webhookId": own_id, "status": status}
    list_part = ListPart(ctx, "webhookDeliveries", filters, LIST_ORDER, size=limit, after=query["after"])
    where: Filter = {"webhookId": own_id} | ({} if status is None else {"status": status})
    page = await deliveries.find(ctx, where | list_part.condition(), sort=LIST_ORDER, limit=limit + 1)
    return list_part.by_cursor(page, lambda entry: {**entry, "webhookId": webhook_id})


@routes.post("/{webhookId}/deliveries/{deliveryId}/redeliver", access=_ACCESS, status=200, errors=(Conflict,))
@transactional
async def redeliver_webhook_event(ctx: Context, webhook_id: ObjectId, delivery_id: ObjectId) -> models.Delivery:
    """Send a delivery again, with the same `webhook-id`.

    The response is the delivery before the new attempt.
    """
    # Raises NotFound, Conflict if the webhook is not active.
    own_id = await _require_active(ctx, webhook_id)
    where = {"_id": delivery_id, "webhookId": own_id}
    due = {"status": "pending", "nextAttemptAt": now(), "retries": 0}
    await deliveries.set_derived(ctx, where, {"$set": due, "$unset": {"isQueued": ""}})
    if (delivery := await deliveries.find_one(ctx, where)) is None:
        raise NotFound("delivery")
    await webhooks.set_derived(ctx, {"_id": own_id}, {"$inc": {"requested": 1}})
    return {**delivery, "webhookId": webhook_id}
