"""The webhooks of a company, which its owner manages."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import AsyncIterator, Collection, Iterable
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal, NotRequired, TypeAlias, TypedDict, cast

from marshmallow import fields

from coaching_service.core import audit
from coaching_service.core import fields as core_fields
from coaching_service.core.auth import SecretUnreadable, Vault
from coaching_service.core.changes.numbering import batches
from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Documents, Filter, now
from coaching_service.core.database.field_changes import Stored
from coaching_service.core.database.portable import NotExported
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import Conflict, NotFound, invalid_field
from coaching_service.core.events import EVENT_TYPES, EventType
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import CursorPage, ListPart, PartQuery
from coaching_service.core.metrics import Backlog
from coaching_service.core.outbound import OutboundError
from coaching_service.core.validation import Choice, ListOf, Message, Text
from coaching_service.people.account.service import CompanyResumed

# --- Webhooks and their deliveries as they are sent, stored and returned ----------------------------------------------


DeliveryStatus = Literal["pending", "succeeded", "failed"]
TEST_EVENT = "webhook.test"
MAX_URL = 2000
_URL = (
    "The address that receives the events: https, with the name of a public host, and the port 443, 8443 or one above "
    "1023. It is stored in its canonical form: in lower case, without the usual port."
)
_IS_ACTIVE = "Whether events are sent. Events while it is false are not sent later."
_SECRET = "The secret that verifies the signature: `whsec_` and base64. It is not shown again."  # noqa: S105 - no secret
_ERROR = (
    "Why the last attempt had no response: `CONNECTION_FAILED` (an unknown host, a closed port, a private address or a "
    "certificate that is not trusted: the service does not say which), `TIMED_OUT`, `RESPONSE_INVALID`, "
    "`SECRET_UNREADABLE`, or a code of the field `url`, such as `PORT_NOT_ALLOWED`, if nothing is sent to the address "
    "any more; null if it had one."
)
_STATUS = "`pending`: an attempt is due or scheduled; `succeeded`; `failed`: all attempts have failed."


class EventTypes(ListOf):
    """Types of events, without duplicates; null is an empty list."""

    def __init__(self, **options: Any) -> None:
        super().__init__(Choice(*EVENT_TYPES), **{"allow_none": True} | options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        return list(dict.fromkeys(super()._deserialize(value, attr, data, **kwargs)))


class WebhookDescription(Text):
    """The description of a webhook; null is an empty text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_blank": True, "allow_none": True} | options)

    def deserialize(self, value: Any, attr: str | None = None, data: Any = None, **kwargs: Any) -> Any:
        """Load the text."""
        return "" if value is None else super().deserialize(value, attr, data, **kwargs)


class StoredSecret(TypedDict):
    """An encrypted secret; after a rotation the previous one is used until `expiresAt` (UTC)."""

    sealed: bytes
    expiresAt: datetime | None


class WebhookFields(TypedDict):
    """The fields of a webhook; no types, where they are sent, are all."""

    url: Annotated[
        str,
        Text(max_length=MAX_URL, metadata={"description": _URL, "format": "uri"}),
        core_fields.Description(response=_URL),
    ]
    types: Annotated[
        list[EventType],
        EventTypes(),
        fields.List(fields.String()),
        core_fields.Default(list),
        core_fields.Description("The types of events that are sent; empty for all, also those added later."),
    ]
    description: Annotated[
        str,
        WebhookDescription(),
        core_fields.Default(""),
        core_fields.Description("What receives the events, for people."),
    ]
    isActive: Annotated[
        bool, core_fields.Default(True), core_fields.Description(_IS_ACTIVE, request=f"{_IS_ACTIVE} Default: true.")
    ]


class NewWebhook(WebhookFields):
    """A webhook to create."""


WebhookChange: TypeAlias = core_fields.Change[WebhookFields]


class Webhook(WebhookFields, Stored):
    """An address that receives the events of the company."""

    failingSince: Annotated[
        datetime | None, core_fields.Description("Since when every delivery has failed; null if the last succeeded.")
    ]
    disabledAt: Annotated[
        datetime | None,
        core_fields.Description("When the service set `isActive` to false, after three days of failures; else null."),
    ]
    previousSecretUntil: Annotated[
        datetime | None,
        core_fields.Description("Until when messages are also signed with the secret before the last rotation."),
    ]
    secrets: NotRequired[Annotated[list[StoredSecret], core_fields.Private]]  # newest first
    # The number of the last event for which a delivery was stored, if it needs one.
    position: NotRequired[Annotated[int, core_fields.Private]]
    slot: NotRequired[Annotated[int, core_fields.Private]]  # from 0, unique in the company
    requested: NotRequired[Annotated[int, core_fields.Private]]  # how many deliveries users have requested


class WebhookWithSecret(Webhook):
    """A webhook whose secret has just been created."""

    secret: Annotated[str, core_fields.Description(_SECRET)]


class DeliveryQuery(PartQuery):
    """Which deliveries are listed."""

    status: Annotated[DeliveryStatus | None, core_fields.Description(_STATUS)]


class Delivery(Stored):
    """One event for one webhook, with its last attempt."""

    webhookId: Annotated[ObjectId, core_fields.Description("The webhook.")]
    eventId: Annotated[str, core_fields.Description("The `id` of the event.")]
    seq: Annotated[int, core_fields.Description("The number of the event within the company; 0 for a test.")]
    type: Annotated[str, core_fields.Description(f"The type of the event; `{TEST_EVENT}` for a test.")]
    customerId: Annotated[
        ObjectId | None, core_fields.Description("The client the event is about, if any and not deleted by it.")
    ]
    status: Annotated[DeliveryStatus, core_fields.Description(_STATUS)]
    attempts: Annotated[int, core_fields.Description("How many attempts were made.")]
    responseStatus: Annotated[
        int | None, core_fields.Description("The status of the last response; null if there was none.")
    ]
    error: Annotated[str | None, core_fields.Description(_ERROR)]
    durationMs: Annotated[int | None, core_fields.Description("How long the last attempt took, in milliseconds.")]
    lastAttemptAt: Annotated[datetime | None, core_fields.Description("When the last attempt began.")]
    nextAttemptAt: Annotated[
        datetime | None, core_fields.Description("When the next attempt is due; null if it is the first, or none is.")
    ]
    isQueued: NotRequired[Annotated[bool, core_fields.Private]]  # only while the first attempt waits for its turn
    retries: NotRequired[Annotated[int, core_fields.Private]]  # how many of the delays between attempts have been used


class AttemptResponse(TypedDict):
    """When an attempt began, and what followed."""

    responseStatus: int | None
    error: str | None
    durationMs: int
    lastAttemptAt: datetime


class AttemptResult(AttemptResponse):
    """What one attempt changes of a delivery."""

    status: DeliveryStatus
    nextAttemptAt: datetime | None
    retries: int


# What the process that delivers needs of every active webhook.
ActiveWebhook: TypeAlias = core_fields.Part[Webhook, Literal["_id", "companyId", "requested"]]
# What an attempt to send needs of a webhook, and of a delivery.
WebhookSecrets: TypeAlias = core_fields.Part[Webhook, Literal["_id", "url", "isActive", "secrets", "failingSince"]]
DueDelivery: TypeAlias = core_fields.Part[
    Delivery,
    Literal["_id", "webhookId", "eventId", "seq", "type", "customerId", "createdAt", "nextAttemptAt", "retries"],
]


# --- Webhooks and deliveries in the database --------------------------------------------------------------------------


RETENTION_SECONDS = 30 * 24 * 3600
_REASON = "one process sends the deliveries of all companies"
_TO_ATTEMPT: Final = ("webhookId", "eventId", "seq", "type", "customerId", "createdAt", "nextAttemptAt", "retries")
_WITH_SECRETS: Final = ("url", "isActive", "secrets", "failingSince")

_COUNTED_AT_ONCE = 1_000

_PENDING = Index(("createdAt", "webhookId"), partial_filter=(("status", "pending"),))

webhooks = Documents[Webhook](
    "webhooks",
    (Index(("createdAt", "_id")), Index(("slot",), unique=True)),
    private=core_fields.private_of(Webhook),
    global_indexes=(Index(("isActive",)),),
    cross_company_reason=_REASON,
    transfer=NotExported("secrets, and addresses that expect the events of this company"),
)
deliveries = Documents[Delivery](
    "webhookDeliveries",
    (
        Index(("webhookId", "-createdAt", "-_id")),
        Index(("webhookId", "status", "-createdAt", "-_id")),
        Index(("webhookId", "seq"), partial_filter=(("isQueued", {"$exists": True}),)),
        Index(("webhookId", "nextAttemptAt")),
        Index(("customerId",)),
    ),
    private=core_fields.private_of(Delivery),
    global_indexes=(_PENDING,),
    client_field="customerId",
    secret=True,
    expire=("createdAt", RETENTION_SECONDS),
    cross_company_reason=_REASON,
    transfer=NotExported("deliveries of webhooks"),
)
LIST_ORDER = ("-createdAt", "-_id")


# --- Webhooks --------------------------------------------------------------------------------------------------------


async def find_with_secrets(ctx: Context, webhook_id: ObjectId) -> WebhookSecrets | None:
    """Return what an attempt needs of a webhook, or None."""
    return await webhooks.find_one(ctx, {"_id": webhook_id}, _WITH_SECRETS)


async def move_position(ctx: Context, webhook_id: ObjectId, position: int | None, new_position: int) -> bool:
    """Move the position of an active webhook; returns False if it is not at `position` (None: none) any more."""
    where = {"_id": webhook_id, "position": position, "isActive": True}
    return await webhooks.set_derived(ctx, where, {"$set": {"position": new_position}}) == 1


async def count_request(ctx: Context, webhook_id: ObjectId) -> None:
    """Count a delivery that a user has requested: the process that delivers looks for it."""
    await webhooks.set_derived(ctx, {"_id": webhook_id}, {"$inc": {"requested": 1}})


async def disable(ctx: Context, webhook_id: ObjectId, failing_since: datetime) -> Webhook | None:
    """Disable an active webhook that has been failing since that time or longer; None if it has not."""
    where = {"_id": webhook_id, "isActive": True, "failingSince": {"$lte": failing_since}}
    return await webhooks.update(ctx, where, {"$set": {"isActive": False, "disabledAt": now()}})


async def list_active(services: Services) -> list[ActiveWebhook]:
    """Return the active webhooks of all companies."""
    fields = {"companyId": 1, "requested": 1}
    cursor: Any = webhooks.across_companies(services).find({"isActive": True}, fields, hint="isActive")
    active: list[ActiveWebhook] = await cursor.to_list(None)
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


async def list_queued(ctx: Context, webhook_id: ObjectId, after: int, limit: int) -> list[DueDelivery]:
    """Return what an attempt needs of deliveries that wait for their first one, in the order of the events.

    Only deliveries of events with a number greater than `after`.
    """
    where = {"webhookId": webhook_id, "isQueued": True, "seq": {"$gt": after}}
    return await deliveries.find(ctx, where, sort=("seq",), limit=limit, fields=_TO_ATTEMPT)


async def list_due(
    ctx: Context, webhook_id: ObjectId, at: datetime, limit: int, *, without: Collection[ObjectId]
) -> list[DueDelivery]:
    """Return what an attempt needs of due deliveries, except `without`, the longest due first."""
    where = {"webhookId": webhook_id, "nextAttemptAt": {"$lte": at}, "_id": {"$nin": list(without)}}
    return await deliveries.find(ctx, where, sort=("nextAttemptAt",), limit=limit, fields=_TO_ATTEMPT)


async def find_next_due(ctx: Context, webhook_id: ObjectId, at: datetime) -> datetime | None:
    """Return when the first attempt after `at` is due; None if there is none."""
    where = {"webhookId": webhook_id, "nextAttemptAt": {"$gt": at}}
    following = await deliveries.find(ctx, where, sort=("nextAttemptAt",), limit=1, fields=("nextAttemptAt",))
    return following[0]["nextAttemptAt"] if following else None


async def record_attempt(ctx: Context, delivery: DueDelivery, result: AttemptResult) -> bool:
    """Record an attempt; returns False if another one has been requested since it began, which is due then."""
    change = {"$set": dict(result), "$inc": {"attempts": 1}, "$unset": {"isQueued": ""}}
    where = {"_id": delivery["_id"], "nextAttemptAt": delivery["nextAttemptAt"]}
    if await deliveries.set_derived(ctx, where, change):
        return True
    change["$set"] = core_fields.take(AttemptResponse, result)
    await deliveries.set_derived(ctx, {"_id": delivery["_id"]}, change)
    return False


# --- Rotation of master keys -----------------------------------------------------------------------------------------


async def list_sealed(services: Services) -> list[Webhook]:
    """Return the encrypted secrets of all webhooks."""
    cursor: Any = webhooks.across_companies(services).find({}, {"secrets": 1})
    sealed: list[Webhook] = await cursor.to_list(None)
    return sealed


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
    previous = await find_with_secrets(ctx, webhook_id)
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
    for webhook in await list_sealed(services):
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
    for webhook in await list_sealed(services):
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


# --- The deliveries of a webhook: their list, and requested repetitions -----------------------------------------------


async def list_deliveries(
    ctx: Context, webhook_id: ObjectId, *, limit: int, after: str | None = None, status: DeliveryStatus | None = None
) -> CursorPage[Delivery]:
    """Return at most `limit` deliveries of a webhook, newest first, after a cursor; with `status`, only those.

    Raises NotFound, InvalidFields for a cursor of another list.
    """
    await get(ctx, webhook_id)
    filters = {"webhookId": webhook_id, "status": status}
    list_part = ListPart(ctx, "webhookDeliveries", filters, LIST_ORDER, size=limit, after=after)
    where: Filter = {"webhookId": webhook_id} | ({} if status is None else {"status": status})
    page = await deliveries.find(ctx, where | list_part.condition(), sort=LIST_ORDER, limit=limit + 1)
    return list_part.by_cursor(page, lambda entry: entry)


@transactional
async def send_test(ctx: Context, webhook_id: ObjectId) -> Delivery:
    """Queue a test event for a webhook, and return its delivery. Raises NotFound, Conflict if it is not active."""
    await _require_active(ctx, webhook_id)
    delivery_id = ObjectId()
    delivery = new_delivery(webhook_id, f"{delivery_id}.0", 0, TEST_EVENT, None)
    stored = await deliveries.insert(ctx, {**delivery, "_id": delivery_id, "nextAttemptAt": now()})
    await count_request(ctx, webhook_id)
    return stored


@transactional
async def redeliver(ctx: Context, webhook_id: ObjectId, delivery_id: ObjectId) -> Delivery:
    """Queue another attempt of a delivery, with the same `webhook-id`, and return it.

    Raises NotFound, Conflict if the webhook is not active.
    """
    await _require_active(ctx, webhook_id)
    where = {"_id": delivery_id, "webhookId": webhook_id}
    due = {"status": "pending", "nextAttemptAt": now(), "retries": 0}
    await deliveries.set_derived(ctx, where, {"$set": due, "$unset": {"isQueued": ""}})
    if (delivery := await deliveries.find_one(ctx, where)) is None:
        raise NotFound("delivery")
    await count_request(ctx, webhook_id)
    return delivery


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


async def _require_active(ctx: Context, webhook_id: ObjectId) -> None:
    webhook = await get(ctx, webhook_id)
    if not webhook["isActive"]:
        raise Conflict("The webhook is not active; activate it first", code="WEBHOOK_INACTIVE")
