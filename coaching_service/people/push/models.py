"""Push subscriptions and the keys that sign messages, as they are sent, stored and returned."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias, TypedDict

from cryptography.hazmat.primitives.asymmetric import ec
from marshmallow import fields

from coaching_service.core import fields as core_fields
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.declared import Index, NotExported, Stored, Unsharded
from coaching_service.core.database.documents import Documents, now, order_by
from coaching_service.core.field_schemas import input_of
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
        str,
        core_fields.Description(
            "The public VAPID key: the `applicationServerKey` of `pushManager.subscribe`, in base64url."
        ),
    ]


class BrowserKeys(TypedDict):
    """The keys of a subscription, for which messages are encrypted."""

    p256dh: Annotated[
        str, BrowserKey("p256dh"), core_fields.Description("The public key of the browser: P-256, in base64url.")
    ]
    auth: Annotated[
        str, BrowserKey("auth"), core_fields.Description("The secret of the subscription: 16 bytes, in base64url.")
    ]


class NewPushSubscription(TypedDict):
    """A push subscription, as `PushSubscription.toJSON()` of a browser has it."""

    endpoint: Annotated[
        str,
        Text(max_length=MAX_ENDPOINT),
        core_fields.Description(
            "The address of the push service of the browser: https, with the name of a public host."
        ),
    ]
    keys: Annotated[
        BrowserKeys,
        fields.Nested(input_of(BrowserKeys, name="PushKeysInput"), required=True),
        core_fields.Description("The keys of the browser."),
    ]
    userAgent: Annotated[
        str,
        Text(max_length=MAX_USER_AGENT, allow_blank=True),
        core_fields.Default(""),
        core_fields.Description("What the browser says of itself (`navigator.userAgent`), for the list of devices."),
    ]


class PushTarget(TypedDict):
    """Where messages to a device are sent, and the keys for which they are encrypted."""

    endpoint: str
    keys: BrowserKeys


class PushSubscription(TypedDict):
    """A device that receives notifications."""

    _id: ObjectId
    userAgent: Annotated[str, core_fields.Description("What the browser says of itself; empty if it was not sent.")]
    createdAt: datetime
    lastUsedAt: Annotated[
        datetime | None, core_fields.Description("When the push service last accepted a message; null: not yet.")
    ]


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

    subjectId: Annotated[ObjectId, core_fields.Private]
    kind: Annotated[SubjectKind, core_fields.Private]
    sessionId: Annotated[ObjectId, core_fields.Private]
    endpointHash: Annotated[str, core_fields.Private]
    sealed: Annotated[bytes, core_fields.Private]
    keyId: Annotated[ObjectId, core_fields.Private]
    expiresAt: Annotated[datetime, core_fields.Private]


class PushKey(TypedDict):
    """A VAPID key of the service: `publicKey` in base64url, `sealed` the encrypted private key. The newest one is used
    for new subscriptions.
    """

    _id: ObjectId
    publicKey: str
    sealed: bytes
    createdAt: datetime


# What changes if a device sends its subscription again.
RenewedFields: TypeAlias = core_fields.Part[
    StoredSubscription, Literal["userAgent", "sessionId", "sealed", "keyId", "expiresAt"]
]
# What the list of devices needs of a subscription, and what sending needs.
ListedSubscription: TypeAlias = core_fields.Part[
    StoredSubscription, Literal["_id", "userAgent", "createdAt", "lastUsedAt", "sessionId"]
]
SendingSubscription: TypeAlias = core_fields.Part[StoredSubscription, Literal["_id", "sealed", "keyId"]]


# --- Push subscriptions and VAPID keys in the database ----------------------------------------------------------------


_ORDER = ("-createdAt", "-_id")

subscriptions = Documents[StoredSubscription](
    "pushSubscriptions",
    (Index(("subjectId", *_ORDER)),),
    private=core_fields.private_of(StoredSubscription),
    client_field="subjectId",
    secret=True,
    global_indexes=(Index(("endpointHash",), unique=True), Index(("expiresAt",), expire_after=0)),
    cross_company_reason="a device has one subscription, of whoever signed in on it last",
    placement=Unsharded("the address of a device is unique among all companies"),
    transfer=NotExported("addresses of devices, which accept messages of this service alone"),
)
push_keys = Documents[PushKey](
    "pushKeys",
    private=(),
    global_indexes=(Index(("-createdAt",)),),
    cross_company_reason="browsers subscribe with the key of the service",
    placement=Unsharded("a few documents"),
    transfer=NotExported("keys of the service"),
)


# --- Subscriptions ---------------------------------------------------------------------------------------------------


async def list_of_subject(ctx: Context, subject_id: ObjectId) -> list[ListedSubscription]:
    """Return the devices of a coach or client, the newest first."""
    return await subscriptions.find(
        ctx, {"subjectId": subject_id}, sort=_ORDER, fields=("userAgent", "createdAt", "lastUsedAt", "sessionId")
    )


async def find_by_endpoint(ctx: Context, endpoint_hash: str) -> StoredSubscription | None:
    """Return the subscription of a device, of any company, or None."""
    where = {"endpointHash": endpoint_hash}
    stored: Any = await subscriptions.across_companies(ctx.services).find_one(where, session=ctx.session)
    return stored  # type: ignore[no-any-return]  # the driver's documents are untyped


async def find_to_send(
    services: Services, company_id: ObjectId, subscription_id: ObjectId
) -> SendingSubscription | None:
    """Return what sending to a device needs, or None if it has no subscription any more."""
    where = {"_id": subscription_id, "companyId": company_id, "expiresAt": {"$gt": now()}}
    found: Any = await subscriptions.across_companies(services).find_one(where, {"sealed": 1, "keyId": 1}, hint="_id_")
    return found  # type: ignore[no-any-return]  # the driver's documents are untyped


# --- Keys ------------------------------------------------------------------------------------------------------------


async def find_newest_key(services: Services) -> PushKey | None:
    """Return the key with which browsers subscribe, or None."""
    key: Any = await push_keys.across_companies(services).find_one({}, sort=order_by(("-createdAt",)))
    return key  # type: ignore[no-any-return]  # the driver's documents are untyped


async def create_key(services: Services, key: PushKey) -> None:
    """Store a key, unless one with its identifier exists."""
    new = {name: value for name, value in key.items() if name != "_id"}
    await push_keys.across_companies(services).update_one({"_id": key["_id"]}, {"$setOnInsert": new}, upsert=True)


async def list_keys(services: Services) -> list[PushKey]:
    """Return all keys, the newest first."""
    cursor: Any = push_keys.across_companies(services).find({}, sort=order_by(("-createdAt",)))
    keys: list[PushKey] = await cursor.to_list(None)
    return keys
