"""Notifications on the devices of coaches and clients: their subscriptions, the keys of the service, and sending."""

from __future__ import annotations

import base64
import os
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from email.utils import parseaddr
from hashlib import sha256
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict, cast
from urllib.parse import urlsplit

import jwt
import orjson
import structlog
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
)
from marshmallow import fields

from coaching_service.core import audit
from coaching_service.core import fields as core_fields
from coaching_service.core.auth import SecretUnreadable, Vault, anyone, customer, session_only, token_hash
from coaching_service.core.database.across_companies import Sealed
from coaching_service.core.database.checks import Check, CountRead, Finding
from coaching_service.core.database.context import Context, Services, transactional
from coaching_service.core.database.declared import Index, NotExported, Stored, Unsharded
from coaching_service.core.database.documents import Document, Documents, now, order_by
from coaching_service.core.errors import Forbidden, NotFound, Unauthorized, invalid_field
from coaching_service.core.external_identity import Upserted
from coaching_service.core.fields import input_of, take
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job, RunAgain, company_of
from coaching_service.core.outbound import OutboundError, OutboundResponse
from coaching_service.core.validation import Message, Text
from coaching_service.people.identities.models import SubjectKind
from coaching_service.people.notifications import PushMessage, Recipient
from coaching_service.people.sessions import service as sessions
from coaching_service.people.sessions.models import SessionsEnded

# --- Push subscriptions and the keys that sign messages, as they are sent, stored and returned ------------------------


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


class OwnDevice(PushSubscription):
    """A device of a user as its pages show it; `isCurrent`: it belongs to the session of the request."""

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


async def list_of_subject(ctx: Context, subject_id: ObjectId) -> list[ListedSubscription]:
    """Return the devices of a coach or client, the newest first."""
    return await subscriptions.find(
        ctx, {"subjectId": subject_id}, sort=_ORDER, fields=("userAgent", "createdAt", "lastUsedAt", "sessionId")
    )


async def find_newest_key(services: Services) -> PushKey | None:
    """Return the key with which browsers subscribe, or None."""
    key: Any = await push_keys.across_companies(services).find_one({}, sort=order_by(("-createdAt",)))
    return key  # type: ignore[no-any-return]  # the driver's documents are untyped


async def create_key(services: Services, key: PushKey) -> None:
    """Store a key, unless one with its identifier exists."""
    new = {name: value for name, value in key.items() if name != "_id"}
    await push_keys.across_companies(services).update_one({"_id": key["_id"]}, {"$setOnInsert": new}, upsert=True)


# --- Messages of Web Push: encrypted for one browser (RFC 8291), and signed by this service (VAPID, RFC 8292) ---------


_RECORD_SIZE = 4096  # all push services take a message of one record of this size
_SALT_BYTES, _KEY_BYTES, _NONCE_BYTES, _SECRET_BYTES = 16, 16, 12, 32
_LAST_RECORD = b"\x02"
_TOKEN_SECONDS = 12 * 3600  # at most 24 hours are allowed


def new_private_key() -> bytes:
    """Return a new private key of VAPID (P-256), as PKCS #8."""
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())


def encrypt(content: bytes, keys: BrowserKeys) -> bytes:
    """Return a message for one browser, with `Content-Encoding: aes128gcm`."""
    return encrypt_with(content, keys, ec.generate_private_key(ec.SECP256R1()), os.urandom(_SALT_BYTES))


def encrypt_with(content: bytes, keys: BrowserKeys, sender: ec.EllipticCurvePrivateKey, salt: bytes) -> bytes:
    """Return `encrypt` with a key pair and a salt that are used for one message only."""
    receiver_point, sender_point = decode_base64url(keys["p256dh"]), _point_of(sender.public_key())
    receiver = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), receiver_point)
    shared = sender.exchange(ec.ECDH(), receiver)
    info = b"WebPush: info\x00" + receiver_point + sender_point
    secret = _derive(shared, decode_base64url(keys["auth"]), info, _SECRET_BYTES)
    key = _derive(secret, salt, b"Content-Encoding: aes128gcm\x00", _KEY_BYTES)
    nonce = _derive(secret, salt, b"Content-Encoding: nonce\x00", _NONCE_BYTES)
    header = salt + struct.pack("!LB", _RECORD_SIZE, len(sender_point)) + sender_point
    return header + AESGCM(key).encrypt(nonce, content + _LAST_RECORD, None)


def authorization_of(endpoint: str, private_key: bytes, contact: str) -> str:
    """Return the header `Authorization` with which the service identifies itself to a push service.

    `contact` is a `mailto:` or `https:` address of the operator.
    """
    url = urlsplit(endpoint)
    claims = {"aud": f"{url.scheme}://{url.netloc}", "exp": int(time.time()) + _TOKEN_SECONDS, "sub": contact}
    key = _load_key(private_key)
    return f"vapid t={jwt.encode(claims, key, algorithm='ES256')}, k={_encode(_point_of(key.public_key()))}"


def _load_key(private_key: bytes) -> ec.EllipticCurvePrivateKey:
    key = load_der_private_key(private_key, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("a key of VAPID is one of P-256")
    return key


def _derive(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(secret)


def _point_of(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


# --- The VAPID keys of the service: the newest is the one with which browsers subscribe -------------------------------


# A subscription is sent again, with the new key, whenever its browser opens a page; without that it ends earlier.
_STORED_FOR = timedelta(days=100)
_FIRST = stable_id("push-key", "first")
_SEALED_KEYS = Sealed(push_keys, "push key")

iterate_unreadable_keys = _SEALED_KEYS.iterate_unreadable


async def ensure_key(services: Services) -> PushKey:
    """Return the newest key; the first one is made now, if there is none."""
    if (key := await find_newest_key(services)) is None:
        await create_key(services, _new_key(services.vault, _FIRST))
        key = await find_newest_key(services)
    if key is None:
        raise RuntimeError("the key of Web Push was not stored")
    return key


async def rotate_key(services: Services) -> str:
    """Make a new key, and return its public part.

    Messages to devices that subscribed before are signed with their key, until they open a page and subscribe again.
    """
    await ensure_key(services)
    replaced_before = now() - _STORED_FOR
    cursor: Any = push_keys.across_companies(services).find({}, sort=order_by(("-createdAt",)))
    keys: list[PushKey] = await cursor.to_list(None)
    key = _new_key(services.vault, ObjectId())
    await create_key(services, key)
    replaced = [newer["createdAt"] for newer in keys if newer["createdAt"] < replaced_before]
    if replaced:  # the keys before the newest of them have been replaced for that long
        await push_keys.across_companies(services).delete_many({"createdAt": {"$lt": max(replaced)}})
    return key["publicKey"]


def _new_key(vault: Vault, key_id: ObjectId) -> PushKey:
    private_key = new_private_key()
    return {
        "_id": key_id,
        "publicKey": _encode(_point_of(_load_key(private_key).public_key())),
        "sealed": _SEALED_KEYS.seal(vault, key_id, private_key),
        "createdAt": now(),
    }


async def _describe_newest(services: Services, _: CountRead) -> AsyncIterator[Finding]:
    key = await find_newest_key(services)
    if key is None:
        problem, advice = "The key is made when the service starts", "Start the service"
        yield Finding(problem, 1, None, advice, is_notice=True)
        return
    problem = f"Browsers subscribe with the key of {key['createdAt']:%Y-%m-%d %H:%M} UTC"
    advice = "Replace it with: coaching-service admin push rotate-key"
    yield Finding(problem, 1, key["publicKey"], advice, is_notice=True, identifiers=(key["publicKey"],))


CHECKS = (Check("push-key", "The key of Web Push", _describe_newest),)


# --- The devices on which coaches and clients receive notifications ---------------------------------------------------


MAX_DEVICES = 20
# After which a subscription ends that its browser has not sent again. A coach's session ends after hours without use,
# and the digest of the next morning is still to arrive.
LIFETIMES = {"customer": timedelta(days=90), "coach": timedelta(days=30)}
_SEALED = Sealed(subscriptions, "push subscription")

iterate_unreadable = _SEALED.iterate_unreadable


async def rotate_master_key(services: Services) -> AsyncIterator[bool]:
    """Encrypt every key and address with the newest master key; yields for each whether it changed."""
    for sealed in (_SEALED_KEYS, _SEALED):
        async for has_changed in sealed.rotate_master_key(services):
            yield has_changed


async def list_own_devices(ctx: Context) -> list[OwnDevice]:
    """Return the devices of the caller, the newest first; `isCurrent`: the one of this session."""
    stored = await list_of_subject(ctx, ctx.caller.id)
    own = ctx.caller.credential_id
    return [{**take(PushSubscription, each), "isCurrent": each["sessionId"] == own} for each in stored]


@transactional
async def _store(ctx: Context, subscription: NewPushSubscription, key_id: ObjectId) -> Upserted:
    if not await sessions.hold_session(ctx, ctx.caller.credential_id):
        raise Unauthorized()
    endpoint_hash = token_hash(subscription["endpoint"])
    kind: SubjectKind = "coach" if ctx.caller.is_coach else "customer"
    of_device, of_all = {"endpointHash": endpoint_hash}, subscriptions.across_companies(ctx.services)
    previous: Any = await of_all.find_one(of_device, session=ctx.session)
    is_own = previous is not None and previous["subjectId"] == ctx.caller.id
    subscription_id = previous["_id"] if previous is not None and is_own else ObjectId()
    target: PushTarget = {"endpoint": subscription["endpoint"], "keys": subscription["keys"]}
    fields: Document = {
        "userAgent": subscription["userAgent"],
        "sessionId": ctx.caller.credential_id,
        "sealed": _SEALED.seal(ctx.services.vault, subscription_id, orjson.dumps(target)),
        "keyId": key_id,
        "expiresAt": now() + LIFETIMES[kind],
    }
    where = {"_id": subscription_id}
    if is_own and (renewed := await subscriptions.update(ctx, where, {"$set": fields})) is not None:
        return Upserted(take(PushSubscription, renewed), created=False)
    # The one that the device had may be of another company.
    await of_all.delete_many(of_device, session=ctx.session)
    owner = {"subjectId": ctx.caller.id, "kind": kind, **of_device}
    stored = await subscriptions.insert(ctx, {"_id": subscription_id, **fields, **owner, "lastUsedAt": None})
    surplus = (await list_of_subject(ctx, ctx.caller.id))[MAX_DEVICES:]
    if surplus:
        await subscriptions.delete_many(ctx, {"_id": {"$in": [each["_id"] for each in surplus]}})
    await audit.record(ctx, "push_subscription.created", subscription_id, customer_id=audit.own_client(ctx.caller))
    return Upserted(take(PushSubscription, stored), created=True)


async def end_with_sessions(ctx: Context, event: SessionsEnded) -> None:
    """End the notifications on the devices whose sessions have ended, in the same transaction."""
    where = event.filter("sessionId")
    await subscriptions.across_companies(ctx.services).delete_many(where, session=ctx.session)


def open_target(vault: Vault, subscription: SendingSubscription) -> PushTarget:
    """Return where messages to a device are sent. Raises SecretUnreadable."""
    target: PushTarget = orjson.loads(_SEALED.open(vault, subscription))
    return target


# --- Sending notifications to devices of coaches and clients: a job for each, and what follows from the response ------


SEND = "send_push"
CONNECTIONS = 64  # of this process, for all push services
_OF_ONE = 40
_OF_ONE_WITHOUT_RESPONSE = 2
_MAX_REMEMBERED = 1000
_RETRY_SECONDS = (5, 30, 120, 600)
_LIFETIME = timedelta(hours=2)
_TEST_LIFETIME = timedelta(minutes=10)
_MAX_BODY = 600  # characters: a message with its encryption has at most 4096 bytes
_MAX_TITLE = 120

log = structlog.get_logger("coaching_service.push")


class _Pace:
    """How many messages are sent to one push service, by host, at the same time: few while it does not respond.

    So a push service that hangs does not hold up the others.
    """

    def __init__(self) -> None:
        self._running: Counter[str] = Counter()
        self._without_response: set[str] = set()

    def enter(self, host: str) -> timedelta | None:
        """Take a place, and return None; without a free one return after which time to ask again."""
        is_slow = host in self._without_response
        if self._running[host] >= (_OF_ONE_WITHOUT_RESPONSE if is_slow else _OF_ONE):
            return timedelta(seconds=5 if is_slow else 0.2)
        self._running[host] += 1
        return None

    def leave(self, host: str, *, responded: bool) -> None:
        """Leave a place. `responded`: the push service has answered, with any status."""
        self._running[host] -= 1
        if not self._running[host]:
            del self._running[host]
        if responded:
            self._without_response.discard(host)
        elif len(self._without_response) < _MAX_REMEMBERED:
            self._without_response.add(host)


_pace = _Pace()


class _Arguments(TypedDict):
    """The arguments of the job that sends a message to a device; `sealed` is the encrypted PushContent."""

    subscriptionId: ObjectId
    sealed: bytes
    topic: str
    until: datetime
    tries: NotRequired[int]


async def enqueue(ctx: Context, message: PushMessage) -> int:
    """Queue a message to every device of its recipient, in the caller's transaction, and return their number.

    It is not sent if the client it is about is erased before, nor when it is pointless or two hours late.
    """
    of_recipient = {"subjectId": message.recipient["_id"]}
    ids = [each["_id"] for each in await subscriptions.find(ctx, of_recipient, fields=("_id",))]
    if ctx.recorder is not None:
        ctx.recorder.sends = True
    await _enqueue(ctx, ids, message, _LIFETIME)
    return len(ids)


async def enqueue_test(ctx: Context) -> int:
    """Queue a message to the device of the caller's session, and return the number of messages: 0 without one."""
    listed = await list_of_subject(ctx, ctx.caller.id)
    ids = [each["_id"] for each in listed if each["sessionId"] == ctx.caller.credential_id]
    path = "/app/settings/notifications" if ctx.caller.is_coach else "/train/settings/notifications"
    text = "Notifications arrive on this device."
    recipient: Recipient = {"type": "coach" if ctx.caller.is_coach else "client", "_id": ctx.caller.id}
    about = None if ctx.caller.is_coach else ctx.caller.id
    message = PushMessage(recipient, about, f"test-{ObjectId()}", "It works", text, path)
    await _enqueue(ctx, ids, message, _TEST_LIFETIME)
    return len(ids)


async def _enqueue(ctx: Context, ids: list[ObjectId], message: PushMessage, lifetime: timedelta) -> None:
    until = now() + lifetime
    if message.valid_until is not None:
        until = min(until, message.valid_until)
    content = {
        "title": _shorten(message.title, _MAX_TITLE),
        "body": _shorten(message.text, _MAX_BODY),
        "path": message.path,
        "tag": message.tag,
    }
    plain, jobs = orjson.dumps(content), dict[ObjectId, tuple[dict[str, object], ObjectId | None]]()
    for subscription_id in ids:
        identifier = ObjectId()
        arguments: _Arguments = {
            "subscriptionId": subscription_id,
            "sealed": ctx.services.vault.seal(plain, _message_binding(identifier)),
            "topic": sha256(message.tag.encode()).hexdigest()[:32],
            "until": until,
        }
        jobs[identifier] = (dict(arguments), message.customer_id)
    if jobs:
        await queue.enqueue_each(ctx, SEND, jobs)


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


async def send(services: Services, job: Job) -> RunAgain | None:
    """Send a message to a device.

    An attempt that was interrupted is repeated: the device shows the message of the same tag once.
    """
    arguments, company_id = cast("_Arguments", job.arguments), company_of(job)
    if arguments["until"] <= now():
        return None
    where = {"_id": arguments["subscriptionId"], "companyId": company_id, "expiresAt": {"$gt": now()}}
    sent: Any = subscriptions.across_companies(services)
    subscription: SendingSubscription | None = await sent.find_one(where, {"sealed": 1, "keyId": 1}, hint="_id_")
    if subscription is None:
        return None
    try:
        target = open_target(services.vault, subscription)
        key = await push_keys.across_companies(services).find_one({"_id": subscription["keyId"]})
        private_key = None if key is None else _SEALED_KEYS.open(services.vault, key)
        content = services.vault.open(arguments["sealed"], _message_binding(job.id))
    except SecretUnreadable as unreadable:
        log.warning("a push message cannot be read", job=str(job.id), reason=str(unreadable))
        return None
    if private_key is None:  # replaced so long ago that no browser uses it
        await _remove_gone(services, company_id, subscription["_id"])
        return None
    host = urlsplit(target["endpoint"]).netloc
    if (wait := _pace.enter(host)) is not None:
        return RunAgain(wait)
    response: OutboundResponse | None = None
    try:
        response = await _post(services, target, content, private_key, arguments)
    finally:
        _pace.leave(host, responded=response is not None)
    if response is None:
        return _try_again(arguments, timedelta(0))
    status = response.status
    is_accepted, is_gone, is_delayed = 200 <= status < 300, status in (404, 410), status == 429 or status >= 500
    outcome = "accepted" if is_accepted else "gone" if is_gone else "delayed" if is_delayed else "rejected"
    services.metrics.push_messages.labels(outcome).inc()
    if is_accepted:
        own = {"_id": subscription["_id"], "companyId": company_id}
        await sent.update_one(own, {"$set": {"lastUsedAt": now()}}, hint="_id_")
    elif is_gone:
        await _remove_gone(services, company_id, subscription["_id"])
    elif is_delayed:
        return _try_again(arguments, timedelta(seconds=response.wait_seconds))
    else:
        log.warning("a push service rejected a message", status=status)
    return None


async def _post(
    services: Services, target: PushTarget, content: bytes, private_key: bytes, arguments: _Arguments
) -> OutboundResponse | None:
    """Send a message once; returns None without a response."""
    is_public = services.base_url.startswith("https://")  # an address at which a push service reaches the operator
    contact = services.base_url if is_public else f"mailto:{parseaddr(services.mail_sender.sender)[1]}"
    headers = {
        "Authorization": authorization_of(target["endpoint"], private_key, contact),
        "Content-Encoding": "aes128gcm",
        "Content-Type": "application/octet-stream",
        "TTL": str(max(0, int((arguments["until"] - now()).total_seconds()))),
        "Topic": arguments["topic"],
        "Urgency": "high",
    }
    try:
        return await services.outbound.post(target["endpoint"], encrypt(content, target["keys"]), headers)
    except OutboundError as failure:
        services.metrics.push_messages.labels(failure.code.lower()).inc()
        return None


async def _remove_gone(services: Services, company_id: ObjectId, subscription_id: ObjectId) -> None:
    where = {"_id": subscription_id, "companyId": company_id}
    await subscriptions.across_companies(services).delete_one(where, hint="_id_")


def _try_again(arguments: _Arguments, wait: timedelta) -> RunAgain | None:
    """Return the next attempt, after `wait` and a pause that grows; None if the message is over by then."""
    tries = arguments.get("tries", 0)
    pause = timedelta(seconds=_RETRY_SECONDS[min(tries, len(_RETRY_SECONDS) - 1)])
    after = wait or pause
    return None if now() + after >= arguments["until"] else RunAgain(after, {"tries": tries + 1})


def _message_binding(identifier: ObjectId) -> str:
    return f"push message:{identifier}"


# --- Push subscriptions over REST: of a coach, and of a client --------------------------------------------------------


_PATHS = {"subscriptionId": "The identifier of the subscription."}
key_routes = Routes("/push-public-key", tag="Notifications")
routes = Routes("/push-subscriptions", tag="Notifications", path_descriptions=_PATHS)
own_routes = Routes("/customer/push-subscriptions", tag="Notifications", path_descriptions=_PATHS)
_EXAMPLE = {
    "endpoint": "https://push.example.com/send/4b1d0c",
    "keys": {
        "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "auth": "BTBZMqHH6r4Tts7J_aSIgg",
    },
    "userAgent": "Mozilla/5.0 (Linux; Android 16) Chrome/141.0",
}


@key_routes.get("", access=anyone())
async def get_push_public_key(ctx: Context) -> PublicPushKey:
    """Read the key with which browsers subscribe to notifications.

    After it has been replaced, a browser that subscribed with another one subscribes again.
    """
    return {"key": (await ensure_key(ctx.services))["publicKey"]}


@routes.get("", access=session_only())
async def list_push_subscriptions(ctx: Context) -> list[PushSubscription]:
    """List the devices on which I receive notifications, the newest first."""
    stored = await list_of_subject(ctx, ctx.caller.id)
    return [take(PushSubscription, each) for each in stored]


@routes.post(
    "",
    access=session_only(),
    refuses_key=True,
    returns=PushSubscription,
    errors=(Forbidden,),
    example=_EXAMPLE,
)
async def create_push_subscription(ctx: Context, body: NewPushSubscription) -> Upserted:
    """Receive notifications on a device.

    201 if the device is new; the same `endpoint` again replaces what is stored: 200. It ends when the session of this
    request is ended, and 30 days after the device sent it last. Of more than 20 devices the oldest end.
    """
    # Raises InvalidFields for an address to which nothing is sent; Forbidden for a coach who impersonates a client.
    if ctx.caller.impersonated_by is not None:
        raise Forbidden("An impersonation session cannot receive notifications", code="IMPERSONATED")
    try:
        ctx.services.outbound.canonical_url(body["endpoint"])
    except OutboundError:
        message = "must be an https address of a public push service"
        raise invalid_field("endpoint", message, code="INVALID_PUSH_ENDPOINT") from None
    key = await ensure_key(ctx.services)
    return await _store(ctx, body, key["_id"])


@routes.delete("/{subscriptionId}", access=session_only())
@transactional
async def delete_push_subscription(ctx: Context, subscription_id: ObjectId) -> None:
    """Receive no more notifications on a device."""
    if not await subscriptions.delete_many(ctx, {"_id": subscription_id, "subjectId": ctx.caller.id}):
        raise NotFound("push subscription")
    await audit.record(ctx, "push_subscription.deleted", subscription_id, customer_id=audit.own_client(ctx.caller))


@own_routes.get("", access=customer())
async def list_own_push_subscriptions(ctx: Context) -> list[PushSubscription]:
    """List the devices on which I receive notifications, the newest first."""
    return await list_push_subscriptions(ctx)


@own_routes.post(
    "",
    access=customer(),
    refuses_key=True,
    returns=PushSubscription,
    errors=(Forbidden,),
    example={**_EXAMPLE, "endpoint": "https://push.example.com/send/7c02ab"},
)
async def create_own_push_subscription(ctx: Context, body: NewPushSubscription) -> Upserted:
    """Receive notifications on a device.

    201 if the device is new; the same `endpoint` again replaces what is stored: 200. It ends when the session of this
    request is ended, and 90 days after the device sent it last. Of more than 20 devices the oldest end. Not in an
    impersonation session.
    """
    return await create_push_subscription(ctx, body)


@own_routes.delete("/{subscriptionId}", access=customer())
async def delete_own_push_subscription(ctx: Context, subscription_id: ObjectId) -> None:
    """Receive no more notifications on a device."""
    await delete_push_subscription(ctx, subscription_id)
