"""Push subscriptions and the keys that sign messages, as they are sent, stored and returned."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias, TypedDict

from cryptography.hazmat.primitives.asymmetric import ec
from marshmallow import fields

from coaching_service.core.database.models import Stored
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Default, Description, Part, Private
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Message, Text
from coaching_service.people.identities.models import SubjectKind

MAX_ENDPOINT, MAX_USER_AGENT, _MAX_KEY = 2000, 1000, 100
_AUTH_BYTES = 16


def decode_base64url(text: str) -> bytes:
    """Return the bytes of base64url, with or without padding. Raises ValueError."""
    unpadded = text.rstrip("=").encode()
    return base64.b64decode(unpadded + b"=" * (-len(unpadded) % 4), altchars=b"-_", validate=True)


class BrowserKey(Text):
    """A key of a push subscription in base64url: a point of P-256 (`p256dh`) or 16 bytes (`auth`)."""

    default_error_messages = {"key": Message("must be a key of a push subscription, in base64url", "INVALID_PUSH_KEY")}

    def __init__(self, kind: Literal["p256dh", "auth"], **options: Any) -> None:
        self.kind = kind
        super().__init__(max_length=_MAX_KEY, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        text = super()._deserialize(value, attr, data)
        try:
            decoded = decode_base64url(text)
            if self.kind == "p256dh":
                ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), decoded)
        except ValueError:
            raise self.make_error("key") from None
        if self.kind == "auth" and len(decoded) != _AUTH_BYTES:
            raise self.make_error("key")
        return text


class PublicPushKey(TypedDict):
    """The key with which browsers subscribe."""

    key: Annotated[
        str, Description("The public VAPID key: the `applicationServerKey` of `pushManager.subscribe`, in base64url.")
    ]


class BrowserKeys(TypedDict):
    """The keys of a subscription, for which messages are encrypted."""

    p256dh: Annotated[str, BrowserKey("p256dh"), Description("The public key of the browser: P-256, in base64url.")]
    auth: Annotated[str, BrowserKey("auth"), Description("The secret of the subscription: 16 bytes, in base64url.")]


class NewPushSubscription(TypedDict):
    """A push subscription, as `PushSubscription.toJSON()` of a browser has it."""

    endpoint: Annotated[
        str,
        Text(max_length=MAX_ENDPOINT),
        Description("The address of the push service of the browser: https, with the name of a public host."),
    ]
    keys: Annotated[
        BrowserKeys,
        fields.Nested(input_of(BrowserKeys, name="PushKeysInput"), required=True),
        Description("The keys of the browser."),
    ]
    userAgent: Annotated[
        str,
        Text(max_length=MAX_USER_AGENT, allow_blank=True),
        Default(""),
        Description("What the browser says of itself (`navigator.userAgent`), for the list of devices."),
    ]


class PushTarget(TypedDict):
    """Where messages to a device are sent, and the keys for which they are encrypted."""

    endpoint: str
    keys: BrowserKeys


class PushSubscription(TypedDict):
    """A device that receives notifications."""

    _id: ObjectId
    userAgent: Annotated[str, Description("What the browser says of itself; empty if it was not sent.")]
    createdAt: datetime
    lastUsedAt: Annotated[datetime | None, Description("When the push service last accepted a message; null: not yet.")]


class OwnDevice(TypedDict):
    """A device of a user as its pages show it; `isCurrent`: it belongs to the session of the request."""

    _id: ObjectId
    userAgent: str
    createdAt: datetime
    isCurrent: bool


class StoredSubscription(PushSubscription, Stored):
    """A device that receives notifications of a coach or client, until the session ends that subscribed.

    `sealed` is the encrypted PushTarget, `keyId` the VAPID key that the browser subscribed with. After `expiresAt` it
    is deleted unless the browser has sent it again.
    """

    subjectId: Annotated[ObjectId, Private]
    kind: Annotated[SubjectKind, Private]
    sessionId: Annotated[ObjectId, Private]
    endpointHash: Annotated[str, Private]
    sealed: Annotated[bytes, Private]
    keyId: Annotated[ObjectId, Private]
    expiresAt: Annotated[datetime, Private]


class PushKey(TypedDict):
    """A VAPID key of the service: `publicKey` in base64url, `sealed` the encrypted private key. The newest one is used
    for new subscriptions.
    """

    _id: ObjectId
    publicKey: str
    sealed: bytes
    createdAt: datetime


# What changes if a device sends its subscription again.
RenewedFields: TypeAlias = Part[StoredSubscription, Literal["userAgent", "sessionId", "sealed", "keyId", "expiresAt"]]
# What the list of devices needs of a subscription, and what sending needs.
ListedSubscription: TypeAlias = Part[
    StoredSubscription, Literal["_id", "userAgent", "createdAt", "lastUsedAt", "sessionId"]
]
SendingSubscription: TypeAlias = Part[StoredSubscription, Literal["_id", "sealed", "keyId"]]
