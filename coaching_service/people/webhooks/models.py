"""Webhooks and their deliveries as they are sent, stored and returned."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict

from marshmallow import fields

from coaching_service.core import fields as core_fields
from coaching_service.core.database.declared import Stored
from coaching_service.core.events import EVENT_TYPES, EventType
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import PartQuery
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


class ForAllCompanies(TypedDict):
    """Whether a webhook is of an application, in all companies."""

    allCompanies: Annotated[
        bool,
        core_fields.Default(False),
        core_fields.Description(
            "Whether it receives the events of all companies that have allowed its application the scope `webhooks`, "
            "also those to come; each event has its `companyId`. Only for applications."
        ),
    ]


class NewWebhook(WebhookFields, ForAllCompanies):
    """A webhook to create."""


WebhookChange: TypeAlias = core_fields.Change[WebhookFields]


class Webhook(WebhookFields, ForAllCompanies, Stored):
    """An address that receives events: of the company, or of the companies of an application."""

    failingSince: Annotated[
        datetime | None, core_fields.Description("Since when every delivery has failed; null if the last succeeded.")
    ]
    disabledAt: Annotated[
        datetime | None,
        core_fields.Description(
            "When the service set `isActive` to false: after three days of failures, or because the receiver responded "
            "410; else null."
        ),
    ]
    previousSecretUntil: Annotated[
        datetime | None,
        core_fields.Description("Until when messages are also signed with the secret before the last rotation."),
    ]
    secrets: NotRequired[Annotated[list[StoredSecret], core_fields.Private]]  # newest first
    # The number of the last event for which a delivery was stored, if it needs one.
    position: NotRequired[Annotated[int, core_fields.Private]]
    # Unique in the company: from 0; of an application with its identifier, and `sharedId` where there is one.
    slot: NotRequired[Annotated[int | str, core_fields.Private]]
    requested: NotRequired[Annotated[int, core_fields.Private]]  # how many deliveries users have requested
    # Whether it gets what only the owner may see; missing in older ones, which the owner has made.
    isOfOwner: NotRequired[Annotated[bool, core_fields.Private]]
    # Only of an application: its identifier in OAuth, and of its part in one company the webhook for all companies,
    # which has the address and the secrets.
    clientId: NotRequired[Annotated[str, core_fields.Private]]
    sharedId: NotRequired[Annotated[ObjectId, core_fields.Private]]


class WebhookWithSecret(Webhook):
    """A webhook whose secret has just been created."""

    secret: Annotated[str, core_fields.Description(_SECRET)]


class WebhookTest(TypedDict):
    """Which event to send."""

    type: NotRequired[
        Annotated[EventType, core_fields.Description("The type of the sample. Default: an event `webhook.test`.")]
    ]


class DeliveryQuery(PartQuery):
    """Which deliveries are listed."""

    status: Annotated[DeliveryStatus | None, core_fields.Description(_STATUS)]


class Delivery(Stored):
    """One event for one webhook, with its last attempt."""

    webhookId: Annotated[ObjectId, core_fields.Description("The webhook.")]
    eventId: Annotated[str, core_fields.Description("The `id` of the event.")]
    seq: Annotated[int, core_fields.Description("The number of the event within the company; 0 for a test.")]
    type: Annotated[
        str, core_fields.Description(f"The type of the event; of a test `{TEST_EVENT}`, or the one that was asked for.")
    ]
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
ActiveWebhook: TypeAlias = core_fields.Part[Webhook, Literal["_id", "companyId", "requested", "sharedId"]]
# What storing and sending its deliveries needs of a webhook, and what an attempt needs of a delivery.
WebhookToSend: TypeAlias = core_fields.Part[
    Webhook,
    Literal[
        "_id", "url", "types", "isActive", "secrets", "failingSince", "position", "clientId", "sharedId", "isOfOwner"
    ],
]
DueDelivery: TypeAlias = core_fields.Part[
    Delivery,
    Literal["_id", "webhookId", "eventId", "seq", "type", "customerId", "createdAt", "nextAttemptAt", "retries"],
]
