"""Webhooks and their deliveries as they are stored and returned."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NotRequired, TypeAlias, TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.events import EventType
from coaching_service.core.fields import Part
from coaching_service.core.ids import ObjectId

DeliveryStatus = Literal["pending", "succeeded", "failed"]
TEST_EVENT = "webhook.test"


class StoredSecret(TypedDict):
    """An encrypted secret; after a rotation the previous one is used until `expiresAt` (UTC)."""

    sealed: bytes
    expiresAt: datetime | None


class Webhook(Stored):
    """An address that receives events.

    `types` empty: all. `failingSince`: all deliveries have failed since then. `disabledAt`: when the service set
    `isActive` to False because of that. `previousSecretUntil`: until when the secret before the last rotation is used.
    Private: `secrets`, newest first; `position`, the number of the last event for which a delivery was stored, if it
    needs one; `slot`, from 0, unique in the company; `requested` counts the deliveries that users have requested.
    """

    url: str
    description: str
    types: list[EventType]
    isActive: bool
    failingSince: datetime | None
    disabledAt: datetime | None
    previousSecretUntil: datetime | None
    secrets: NotRequired[list[StoredSecret]]
    position: NotRequired[int]
    slot: NotRequired[int]
    requested: NotRequired[int]


class WebhookWithSecret(Webhook):
    """A webhook whose secret has just been created."""

    secret: str


class NewWebhook(TypedDict):
    """A webhook to create."""

    url: str
    types: list[EventType]
    description: str
    isActive: bool


class WebhookChange(TypedDict, total=False):
    """The fields of a webhook that change; `version` is the one the change is based on."""

    url: str
    types: list[EventType]
    description: str
    isActive: bool
    version: int


class ActiveWebhook(TypedDict):
    """What the process that delivers needs of every active webhook."""

    _id: ObjectId
    companyId: ObjectId
    requested: int


class Delivery(Stored):
    """One event for one webhook, with its last attempt.

    `error` is the code of a failure without a response; `durationMs` milliseconds. Private: `isQueued`, there only
    while the first attempt waits for its turn; `retries`, how many of the delays between attempts have been used.
    """

    webhookId: ObjectId
    eventId: str
    seq: int
    type: str
    customerId: ObjectId | None
    status: DeliveryStatus
    attempts: int
    responseStatus: int | None
    error: str | None
    durationMs: int | None
    lastAttemptAt: datetime | None
    nextAttemptAt: datetime | None
    isQueued: NotRequired[bool]
    retries: NotRequired[int]


class AttemptResult(TypedDict):
    """What one attempt changes of a delivery."""

    status: DeliveryStatus
    responseStatus: int | None
    error: str | None
    durationMs: int
    lastAttemptAt: datetime
    nextAttemptAt: datetime | None
    retries: int


# Which events a webhook receives, and the position of the last one.
WebhookSubscription: TypeAlias = Part[Webhook, Literal["_id", "position", "types", "isActive"]]

# What an attempt to send needs of a webhook, and of a delivery.
WebhookSecrets: TypeAlias = Part[Webhook, Literal["_id", "url", "isActive", "secrets", "failingSince"]]
DueDelivery: TypeAlias = Part[
    Delivery, Literal["_id", "webhookId", "eventId", "seq", "type", "customerId", "createdAt", "retries"]
]
