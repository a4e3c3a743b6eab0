"""Requests and responses of the operations on webhooks."""

from __future__ import annotations

from typing import Any

from marshmallow import fields

from coaching_service.core.events import EVENT_TYPES
from coaching_service.core.pagination import CursorQuery
from coaching_service.core.validation import Boolean, Choice, DateTime, Identifier, Input, ListOf, Output, Text
from coaching_service.people.webhooks.models import TEST_EVENT

MAX_URL = 2000
_URL = (
    "The address that receives the events: https, with the name of a public host, and the port 443, 8443 or one above "
    "1023. It is stored in its canonical form: in lower case, without the usual port."
)
_TYPES = "The types of events that are sent; empty for all, also those added later."
_NEW_TYPES = "The types of events that are sent; without it all, also those added later."
_DESCRIPTION = "What receives the events, for people."
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


class WebhookFields(Input):
    """The fields of a webhook; no types, where they are sent, are all."""

    url = Text(required=True, max_length=MAX_URL, metadata={"description": _URL, "format": "uri"})
    types = EventTypes(metadata={"description": _TYPES})
    description = WebhookDescription(load_default="", metadata={"description": _DESCRIPTION})
    isActive = Boolean(load_default=True, metadata={"description": f"{_IS_ACTIVE} Default: true."})


class NewWebhook(WebhookFields):
    """A webhook to create."""

    types = EventTypes(minimum=1, load_default=list, metadata={"description": _NEW_TYPES})


class DeliveryQuery(CursorQuery):
    """Which deliveries are listed."""

    status = Choice("pending", "succeeded", "failed", load_default=None, metadata={"description": _STATUS})


class Webhook(Output):
    """An address that receives the events of the company."""

    _id = Identifier()
    url = fields.String(metadata={"description": _URL})
    types = fields.List(fields.String(), metadata={"description": _TYPES})
    description = fields.String(metadata={"description": _DESCRIPTION})
    isActive = fields.Boolean(metadata={"description": _IS_ACTIVE})
    failingSince = DateTime(
        allow_none=True, metadata={"description": "Since when every delivery has failed; null if the last succeeded."}
    )
    disabledAt = DateTime(
        allow_none=True,
        metadata={"description": "When the service set `isActive` to false, after three days of failures; else null."},
    )
    previousSecretUntil = DateTime(
        allow_none=True,
        metadata={"description": "Until when messages are also signed with the secret before the last rotation."},
    )
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()


class WebhookWithSecret(Webhook):
    """A webhook whose secret has just been created."""

    secret = fields.String(metadata={"description": _SECRET})


class Delivery(Output):
    """One event for one webhook, with its last attempt."""

    _id = Identifier()
    webhookId = Identifier(metadata={"description": "The webhook."})
    eventId = fields.String(metadata={"description": "The `id` of the event."})
    seq = fields.Integer(metadata={"description": "The number of the event within the company; 0 for a test."})
    type = fields.String(metadata={"description": f"The type of the event; `{TEST_EVENT}` for a test."})
    customerId = Identifier(
        allow_none=True, metadata={"description": "The client the event is about, if any and not deleted by it."}
    )
    status = Choice("pending", "succeeded", "failed", metadata={"description": _STATUS})
    attempts = fields.Integer(metadata={"description": "How many attempts were made."})
    responseStatus = fields.Integer(
        allow_none=True, metadata={"description": "The status of the last response; null if there was none."}
    )
    error = fields.String(
        allow_none=True,
        metadata={"description": _ERROR},
    )
    durationMs = fields.Integer(
        allow_none=True, metadata={"description": "How long the last attempt took, in milliseconds."}
    )
    lastAttemptAt = DateTime(allow_none=True, metadata={"description": "When the last attempt began."})
    nextAttemptAt = DateTime(
        allow_none=True, metadata={"description": "When the next attempt is due; null if it is the first, or none is."}
    )
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()
