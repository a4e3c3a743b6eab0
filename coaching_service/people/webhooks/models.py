"""Webhooks and their deliveries as they are sent, stored and returned."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict

from marshmallow import fields

from coaching_service.core.database.models import Stored
from coaching_service.core.events import EVENT_TYPES, EventType
from coaching_service.core.fields import Change, Default, Description, Part, Private
from coaching_service.core.ids import ObjectId
from coaching_service.core.pagination import PartQuery
from coaching_service.core.validation import Choice, ListOf, Text

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
        Description(response=_URL),
    ]
    types: Annotated[
        list[EventType],
        EventTypes(),
        fields.List(fields.String()),
        Default(list),
        Description("The types of events that are sent; empty for all, also those added later."),
    ]
    description: Annotated[str, WebhookDescription(), Default(""), Description("What receives the events, for people.")]
    isActive: Annotated[bool, Default(True), Description(_IS_ACTIVE, request=f"{_IS_ACTIVE} Default: true.")]


class NewWebhook(WebhookFields):
    """A webhook to create."""


WebhookChange: TypeAlias = Change[WebhookFields]


class Webhook(WebhookFields, Stored):
    """An address that receives the events of the company."""

    failingSince: Annotated[
        datetime | None, Description("Since when every delivery has failed; null if the last succeeded.")
    ]
    disabledAt: Annotated[
        datetime | None,
        Description("When the service set `isActive` to false, after three days of failures; else null."),
    ]
    previousSecretUntil: Annotated[
        datetime | None,
        Description("Until when messages are also signed with the secret before the last rotation."),
    ]
    secrets: NotRequired[Annotated[list[StoredSecret], Private]]  # newest first
    # The number of the last event for which a delivery was stored, if it needs one.
    position: NotRequired[Annotated[int, Private]]
    slot: NotRequired[Annotated[int, Private]]  # from 0, unique in the company
    requested: NotRequired[Annotated[int, Private]]  # how many deliveries users have requested


class WebhookWithSecret(Webhook):
    """A webhook whose secret has just been created."""

    secret: Annotated[str, Description(_SECRET)]


class DeliveryQuery(PartQuery):
    """Which deliveries are listed."""

    status: Annotated[DeliveryStatus | None, Description(_STATUS)]


class Delivery(Stored):
    """One event for one webhook, with its last attempt."""

    webhookId: Annotated[ObjectId, Description("The webhook.")]
    eventId: Annotated[str, Description("The `id` of the event.")]
    seq: Annotated[int, Description("The number of the event within the company; 0 for a test.")]
    type: Annotated[str, Description(f"The type of the event; `{TEST_EVENT}` for a test.")]
    customerId: Annotated[ObjectId | None, Description("The client the event is about, if any and not deleted by it.")]
    status: Annotated[DeliveryStatus, Description(_STATUS)]
    attempts: Annotated[int, Description("How many attempts were made.")]
    responseStatus: Annotated[int | None, Description("The status of the last response; null if there was none.")]
    error: Annotated[str | None, Description(_ERROR)]
    durationMs: Annotated[int | None, Description("How long the last attempt took, in milliseconds.")]
    lastAttemptAt: Annotated[datetime | None, Description("When the last attempt began.")]
    nextAttemptAt: Annotated[
        datetime | None, Description("When the next attempt is due; null if it is the first, or none is.")
    ]
    isQueued: NotRequired[Annotated[bool, Private]]  # only while the first attempt waits for its turn
    retries: NotRequired[Annotated[int, Private]]  # how many of the delays between attempts have been used


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
ActiveWebhook: TypeAlias = Part[Webhook, Literal["_id", "companyId", "requested"]]
# What an attempt to send needs of a webhook, and of a delivery.
WebhookSecrets: TypeAlias = Part[Webhook, Literal["_id", "url", "isActive", "secrets", "failingSince"]]
DueDelivery: TypeAlias = Part[
    Delivery,
    Literal["_id", "webhookId", "eventId", "seq", "type", "customerId", "createdAt", "nextAttemptAt", "retries"],
]
