"""Notifications that are due, as they are stored, and what is sent."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias, TypedDict, cast, get_args
from urllib.parse import urlencode

import structlog

from coaching_service.core.background import running_in_background
from coaching_service.core.database.across_companies import count_backlog
from coaching_service.core.database.connection import as_service_error
from coaching_service.core.database.context import Context, Services, transactional
from coaching_service.core.database.declared import Index, NotExported
from coaching_service.core.database.documents import Document, Documents, now
from coaching_service.core.database.recording import LoggedEvent
from coaching_service.core.dates import at_local_time, zone_of
from coaching_service.core.errors import NotFound, Unavailable, require_found
from coaching_service.core.events import EventValue
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.jobs import mail
from coaching_service.core.jobs.mail import MailBody, NewMail
from coaching_service.core.jobs.worker import for_each_alone
from coaching_service.core.metrics import Backlog, read_backlog
from coaching_service.core.validation import Text
from coaching_service.people import notification_settings, team
from coaching_service.people.customers import service as customers
from coaching_service.people.identities import service as identities
from coaching_service.people.notification_settings import Channel, Kind, NotificationSettings


class Recipient(TypedDict):
    """Who receives a notification."""

    type: Literal["client", "coach"]
    _id: ObjectId


class Subject(TypedDict, total=False):
    """What a notification is about, for the feature that writes it: identifiers, a local date and a time of day."""

    date: str
    time: str
    wblockId: ObjectId
    witemId: ObjectId
    formId: ObjectId | None
    assistantId: ObjectId
    mediaId: ObjectId


class Notification(TypedDict):
    """A notification that is due, or has been.

    `key` is unique within the company. `channels` are the ways it may be sent, if the recipient wants them.
    `customerId` is the client it is about, if any. It is due at `dueAt`, and pointless from `validUntil` on; all times
    are UTC. `sendAt` is the time it is due, the end of the quiet hours, or the end of the lease of the process that
    sends it; None once it has an `outcome`. `sentAt` is when it was sent last. `requests` counts how often it was made
    due again while it was pending.
    """

    _id: ObjectId
    companyId: ObjectId
    key: str
    kind: Kind
    channels: list[Channel]
    recipient: Recipient
    customerId: ObjectId | None
    subject: Subject
    dueAt: datetime
    validUntil: datetime | None
    sendAt: datetime | None
    outcome: Literal["sent", "dropped"] | None
    sentAt: datetime | None
    requests: int
    createdAt: datetime


class MailsOffLink(TypedDict):
    """The token of the link that turns a kind of mails off."""

    token: Annotated[str, Text(max_length=500), Default("")]


@dataclass(frozen=True)
class DueNotification:
    """A notification to make due at `due_at` (UTC), once for each `key`.

    With `interval`, the same key is due again after it has been sent, but not before the interval is over.
    """

    key: str
    kind: Kind
    recipient: Recipient
    due_at: datetime
    customer_id: ObjectId | None = None
    subject: Subject = field(default_factory=Subject)
    channels: Sequence[Channel] = ("mail", "push")
    valid_until: datetime | None = None
    interval: timedelta | None = None


@dataclass(frozen=True)
class Message:
    """What is sent: `path` is the page it leads to.

    A mail has `subject`, `paragraphs`, `button`, `notes` and `reason`: a sentence that states why the person receives
    it. On devices `title` and `text` are shown, which name neither people nor workouts; `details` in place of `text`
    if the recipient wants it. `event` is the data of the event `reminder.sent`, for reminders of clients.
    """

    subject: str
    paragraphs: list[str]
    button: str
    path: str
    reason: str
    title: str
    text: str
    details: str | None = None
    notes: list[str] = field(default_factory=list)
    event: Mapping[str, EventValue] | None = None


@dataclass(frozen=True)
class PushMessage:
    """What is shown on the devices of a recipient; a newer one with the same `tag` replaces it.

    `customer_id` is the client it is about, if any. `path` is the page that it opens. It is pointless from
    `valid_until` (UTC) on.
    """

    recipient: Recipient
    customer_id: ObjectId | None
    tag: str
    title: str
    text: str
    path: str
    valid_until: datetime | None = None


# Returns what to send of a notification that is due, or the other time at which it is due, or None if there is nothing
# to send any more: it is logged, read, deleted or hidden. Called in the transaction that sends it, as the owner of the
# company.
Source: TypeAlias = Callable[[Context, Notification], Awaitable[Message | datetime | None]]
Sources: TypeAlias = Mapping[Kind, Source]
# Queues what is shown on devices, in the caller's transaction, and returns the number of devices.
PushQueue: TypeAlias = Callable[[Context, PushMessage], Awaitable[int]]


# --- Due notifications in the database --------------------------------------------------------------------------------


_CANDIDATES = 50
_random = random.SystemRandom()
_STORED_SECONDS = 14 * 86_400  # after it was due: a key must not be due again

notifications = Documents[Notification](
    "notifications",
    (Index(("key",), unique=True), Index(("customerId",))),
    client_field="customerId",
    secret=True,
    expire=("dueAt", _STORED_SECONDS),
    global_indexes=(Index(("sendAt",)),),
    cross_company_reason="processes claim the notifications of all companies that are due",
    transfer=NotExported("follows from the calendar, messages and proposals"),
)
DUE_INDEX = "sendAt"


async def add(ctx: Context, due: Sequence[DueNotification], *, creates: bool) -> None:
    """Store notifications that are due, in one round trip. What is pending under the same key is due at the new time.

    What has been sent or dropped stays, unless it has an interval. With `creates` false only what is pending changes.
    """
    await notifications.set_derived_each(ctx, [({"key": each.key}, _upsert(each)) for each in due], upsert=creates)


def _upsert(due: DueNotification) -> list[Document]:
    """Return the stages that store a new notification, or make a stored one due at another time."""
    fields = {
        "kind": due.kind,
        "channels": list(due.channels),
        "recipient": due.recipient,
        "customerId": due.customer_id,
        "subject": due.subject,
        "validUntil": due.valid_until,
        "outcome": None,
    }
    values: Document = {name: {"$literal": value} for name, value in fields.items()}
    is_pending = {"$ne": [{"$ifNull": ["$sendAt", None]}, None]}
    changes: Document
    due_at: object
    if due.interval is None:
        changes, due_at = {"$and": [is_pending, {"$ne": ["$dueAt", due.due_at]}]}, due.due_at
    else:
        earliest = {"$add": ["$sentAt", round(due.interval.total_seconds() * 1000)]}
        changes, due_at = {"$not": [is_pending]}, {"$max": [due.due_at, earliest]}
    created: Document = {"_id": ObjectId(), "dueAt": due.due_at, "sendAt": due.due_at, "sentAt": None, "requests": 0}
    created["createdAt"] = now()
    branches: list[Document] = [
        {
            "case": {"$eq": [{"$type": "$dueAt"}, "missing"]},
            "then": {"$mergeObjects": ["$$ROOT", values, created]},
        },
        {"case": changes, "then": {"$mergeObjects": ["$$ROOT", values, {"dueAt": due_at, "sendAt": due_at}]}},
    ]
    if due.interval is not None:
        # A write, so that this transaction and one that is sending the notification do not pass each other by.
        requests = {"requests": {"$add": [{"$ifNull": ["$requests", 0]}, 1]}}
        branches.append({"case": True, "then": {"$mergeObjects": ["$$ROOT", requests]}})
    return [{"$replaceWith": {"$switch": {"branches": branches, "default": "$$ROOT"}}}]


async def claim(services: Services, at: datetime, lease: timedelta) -> Notification | None:
    """Claim one of the notifications of any company that have been due longest at `at`, for the time of the lease."""
    collection = notifications.across_companies(services)
    due = (
        await collection.find({"sendAt": {"$lte": at}}, limit=_CANDIDATES, hint=DUE_INDEX)
        .sort("sendAt", 1)
        .to_list(None)
    )
    _random.shuffle(due)  # so that processes do not all try to claim the same one
    for candidate in due:
        unclaimed = {name: candidate[name] for name in ("companyId", "_id", "sendAt")}
        claimed: Any = await collection.find_one_and_update(
            unclaimed, {"$set": {"sendAt": at + lease}}, return_document=True
        )
        if claimed is not None:
            notification: Notification = claimed
            return notification
    return None


async def postpone(ctx: Context, claimed: Notification, until: datetime, *, due_at: datetime | None = None) -> None:
    """Send a notification no earlier than `until`; `due_at`: it is due at another time."""
    change = {"sendAt": until} | ({} if due_at is None else {"dueAt": due_at})
    await notifications.set_derived(ctx, {"_id": claimed["_id"]}, {"$set": change})


# --- The background task of every process that sends what is due ------------------------------------------------------
# A process claims a notification for a few seconds. Whether it is sent, the mail and what is shown on devices are
# stored in one transaction: a process that is killed leaves it to the next one, and nothing is sent twice. It is sent
# neither in the quiet hours of its recipient nor when it is too late.


MAX_LATENESS = timedelta(hours=2)
# What has no time of its own is sent as long as it is unread or undecided.
_UNTIMED: tuple[Kind, ...] = ("messages", "proposals")


def find_end_of_quiet(moment: datetime, settings: NotificationSettings, timezone: str) -> datetime | None:
    """Return when the quiet hours end in which `moment` (UTC) is, or None if it is in none."""
    begin, end = settings["quietFrom"], settings["quietTo"]
    if begin is None or end is None or begin == end:
        return None
    local = moment.replace(tzinfo=UTC).astimezone(zone_of(timezone))
    clock, day = f"{local:%H:%M}", local.date()
    is_after_begin, is_before_end = clock >= begin, clock < end
    is_over_night = begin > end
    if not (is_after_begin or is_before_end if is_over_night else is_after_begin and is_before_end):
        return None
    ends_at = at_local_time(day + timedelta(days=1) if is_over_night and is_after_begin else day, end, timezone)
    return ends_at if ends_at > moment else None  # the clocks were set back after the end


def find_time(
    kind: Kind,
    due_at: datetime,
    valid_until: datetime | None,
    at: datetime,
    settings: NotificationSettings,
    timezone: str,
) -> datetime | None:
    """Return when a notification that is due is sent: now (`at`), or at the end of the quiet hours.

    None: not at all, because it is more than two hours late, or pointless by then.
    """
    planned = find_end_of_quiet(due_at, settings, timezone) or due_at
    if kind not in _UNTIMED and at - planned > MAX_LATENESS:
        return None
    moment = max(planned, at)
    moment = find_end_of_quiet(moment, settings, timezone) or moment
    return None if valid_until is not None and moment >= valid_until else moment


# --- Turning off one kind of mail by the link that each of these mails has, without signing in ------------------------


def make_link(ctx: Context, recipient: Recipient, kind: Kind, settings_path: str) -> str:
    """Return the address of the page, below the settings, where the recipient turns off a kind of mail."""
    target = f"{ctx.company_id}.{recipient['type']}.{recipient['_id']}.{kind}"
    token = f"{target}.{ctx.services.vault.sign(_signed(target))}"
    return f"{ctx.services.base_url}{settings_path}/off?{urlencode({'token': token})}"


def find_kind(services: Services, token: str) -> Kind | None:
    """Return the kind of mail that a token turns off; None if it is not valid."""
    return target[2] if (target := _read(services, token)) is not None else None


async def turn_off(ctx: Context, token: str) -> None:
    """Turn off the mails of the kind, for the recipient whom the token was mailed to.

    Raises NotFound if the token is not valid, or the recipient is deleted.
    """
    if (target := _read(ctx.services, token)) is None:
        raise NotFound("mail")
    company_id, recipient, kind = target
    if recipient["type"] == "coach":
        owner_ctx = ctx.acting_as(await team.get_owner(ctx.services, company_id))
        principal = await team.load_principal(owner_ctx, recipient["_id"])
    else:
        client = await customers.load_principal(ctx.services, company_id, recipient["_id"], is_author=True)
        principal = require_found(client, "mail")
    await _turn_off(ctx.acting_as(principal), kind)


@transactional
async def _turn_off(ctx: Context, kind: Kind) -> None:
    change: object = {kind: {"mail": False}}
    if ctx.caller.is_coach:
        await team.set_notifications(ctx, cast("NotificationSettings", change))
    else:
        await customers.update_own(ctx, {"notifications": cast("NotificationSettings", change)})


def _read(services: Services, token: str) -> tuple[ObjectId, Recipient, Kind] | None:
    target, _, signature = token.rpartition(".")
    if not services.vault.verify_signature(_signed(target), signature):
        return None
    company, recipient_type, recipient, kind = target.split(".")
    company_id, recipient_id = parse_id(company), parse_id(recipient)
    if company_id is None or recipient_id is None or kind not in get_args(Kind):
        return None
    return company_id, cast("Recipient", {"type": recipient_type, "_id": recipient_id}), cast("Kind", kind)


def _signed(target: str) -> str:
    return f"turn mails off:{target}"


OPERATION = "send_reminder"
# What a killed process has claimed is claimed again in time: each is sent within a minute.
LEASE = timedelta(seconds=20)
_POLL_SECONDS = 1.0
_AT_ONCE = 4
_SUSPENDED_PAUSE = timedelta(minutes=5)
_MAX_COUNT = 10_000
_FIELDS = (*customers.SCOPE_FIELDS, "name", "email", "timezone", "notifications", "customerRoleData.isArchived")
COMPANY = "company"  # what the name of the company is called in links and cookies
_CLIENT_SETTINGS, _COACH_SETTINGS = "/train/settings/notifications", "/app/settings/notifications"
log = structlog.get_logger("coaching_service.notifications")


@dataclass(frozen=True)
class _Addressee:
    """A recipient with what sending needs; `settings_path` is the page with the settings."""

    name: str
    email: str | None
    timezone: str
    settings: NotificationSettings
    settings_path: str


def sending(
    services: Services, sources: Sources, push: PushQueue, *, start: asyncio.Event | None = None
) -> AbstractAsyncContextManager[None]:
    """Send what is due in the background while the context is open; with `start`, not before that event."""
    return running_in_background(partial(_run, services, sources, push), start=start)


async def _run(services: Services, sources: Sources, push: PushQueue) -> None:
    """Work until cancelled; one looks for what is due, and several send it."""

    async def send_all() -> None:
        while await _try_next(services, sources, push):
            pass

    while True:
        if await _try_next(services, sources, push):
            async with asyncio.TaskGroup() as tasks:
                for _ in range(_AT_ONCE):
                    tasks.create_task(send_all())
        await asyncio.sleep(_POLL_SECONDS)


async def _try_next(services: Services, sources: Sources, push: PushQueue) -> bool:
    try:
        return await send_next(services, sources, push)
    except Exception as error:
        known = error if isinstance(error, Unavailable) else as_service_error(error)
        if isinstance(known, Unavailable):
            log.warning("notifications wait", reason=known.message)
        else:
            log.exception("notification not sent, it is tried again")
        return False


async def send_next(services: Services, sources: Sources, push: PushQueue) -> bool:
    """Send the notification that has been due longest, unless it is pointless; returns whether there was one.

    One that fails waits, as `for_each_alone` says. Raises Unavailable: it is tried again after the lease.
    """
    claimed = await claim(services, now(), LEASE)
    if claimed is None:
        return False

    async def send(_: Sequence[ObjectId]) -> None:
        try:
            owner = await team.get_owner(services, claimed["companyId"])
        except NotFound:  # the company is being erased
            return
        ctx = Context(services, owner, operation=OPERATION, interface="system")
        if owner.company.is_suspended:
            await postpone(ctx, claimed, now() + _SUSPENDED_PAUSE)
        else:
            await _send(ctx, claimed, sources, push)

    failed = await for_each_alone(services, "notifications", claimed["companyId"], [claimed["_id"]], send)
    for wait in failed.values():
        own = {name: claimed[name] for name in ("companyId", "_id", "sendAt")}
        await notifications.across_companies(services).update_one(own, {"$set": {"sendAt": now() + wait}})
    return True


@transactional
async def _send(ctx: Context, claimed: Notification, sources: Sources, push: PushQueue) -> None:
    still_claimed = {"_id": claimed["_id"], "sendAt": claimed["sendAt"]}
    notification = await notifications.find_one(ctx, still_claimed)
    if notification is None:
        return
    kind, at = notification["kind"], now()
    addressee = await _find_addressee(ctx, notification["recipient"])
    wanted = [] if addressee is None else notification_settings.find_channels(addressee.settings, kind)
    channels = [channel for channel in wanted if channel in notification["channels"]]
    if addressee is None or not channels:
        await _end(ctx, notification, {"outcome": "dropped"})
        return
    moment = find_time(
        kind, notification["dueAt"], notification["validUntil"], at, addressee.settings, addressee.timezone
    )
    if moment is not None and moment > at:
        await postpone(ctx, notification, moment)
        return
    message = None if moment is None else await sources[kind](ctx, notification)
    if isinstance(message, datetime):
        await postpone(ctx, notification, message, due_at=message)
    elif message is None or not await _queue(ctx, notification, addressee, channels, message, push):
        await _end(ctx, notification, {"outcome": "dropped"})
    else:
        if message.event is not None:
            event = LoggedEvent("reminder.sent", notification["customerId"], {"kind": kind, **message.event})
            ctx.changes.events.append(event)
        await _end(ctx, notification, {"outcome": "sent", "sentAt": at})


async def _end(ctx: Context, notification: Notification, fields: Document) -> None:
    change = {"$set": {"sendAt": None, **fields}}
    await notifications.set_derived(ctx, {"_id": notification["_id"]}, change)


async def _find_addressee(ctx: Context, recipient: Recipient) -> _Addressee | None:
    """Return who receives a notification; None for an archived client, and for who has been deleted."""
    try:
        if recipient["type"] == "coach":
            coach = await team.require_coach(ctx, recipient["_id"])
            settings = await team.get_notifications(ctx, recipient["_id"])
            return _Addressee(coach["name"], coach["email"], ctx.caller.company.timezone, settings, _COACH_SETTINGS)
        customer = await customers.get_visible(ctx, recipient["_id"], _FIELDS)
    except NotFound:
        return None
    if customer["customerRoleData"]["isArchived"]:
        return None
    return _Addressee(
        customer["name"],
        # The address by which the client signs in.
        await identities.get_email(ctx, recipient["_id"]) or customer["email"],
        customer["timezone"] or ctx.caller.company.timezone,
        customers.get_notifications(customer),
        _CLIENT_SETTINGS,
    )


async def _queue(
    ctx: Context,
    notification: Notification,
    addressee: _Addressee,
    channels: Sequence[str],
    message: Message,
    push: PushQueue,
) -> int:
    """Queue the mail and what is shown on devices; returns their number: 0 without an address and a device."""
    number = 0
    if "mail" in channels and addressee.email is not None and not ctx.caller.company.holds_mail:
        body: MailBody = {
            "company": ctx.caller.company.name,
            "name": addressee.name,
            "paragraphs": message.paragraphs,
            "button": message.button,
            "link": ctx.services.base_url + _name_company(ctx, notification["recipient"], message.path),
            "notes": message.notes,
            "reason": message.reason,
            "settings": f"{ctx.services.base_url}{addressee.settings_path}",
            "unsubscribe": make_link(ctx, notification["recipient"], notification["kind"], addressee.settings_path),
        }
        await mail.enqueue_mail(ctx, NewMail(addressee.email, message.subject, body, notification["customerId"]))
        number += 1
    if "push" in channels:
        shows_details = addressee.settings["showDetails"] and message.details is not None
        pushed = PushMessage(
            recipient=notification["recipient"],
            customer_id=notification["customerId"],
            tag=notification["key"],
            title=message.title,
            text=message.details or message.text if shows_details else message.text,
            path=message.path,
            valid_until=notification["validUntil"],
        )
        number += await push(ctx, pushed)
    return number


def _name_company(ctx: Context, recipient: Recipient, path: str) -> str:
    """Return the path of a page of a client with the name of the company, which a device without a session shows."""
    if recipient["type"] != "client":
        return path
    address, mark, part = path.partition("#")
    sealed = urlencode({COMPANY: ctx.services.vault.seal_value(COMPANY, ctx.caller.company.name)})
    return f"{address}{'&' if '?' in address else '?'}{sealed}{mark}{part}"


async def read_metrics(services: Services) -> None:
    """Read the notifications that are due; they are not a number while the database does not respond."""

    async def count_due() -> Backlog:
        collection = notifications.across_companies(services)  # which fails while the database does not respond
        return await count_backlog(collection, {"sendAt": {"$lte": now()}}, "sendAt", _MAX_COUNT, hint=DUE_INDEX)

    metrics = services.metrics
    await read_backlog(count_due(), metrics.notifications_due, metrics.oldest_notification_seconds, "notifications")


# --- Making notifications due, and withdrawing them: what other features call -----------------------------------------


async def make_due(ctx: Context, due: Sequence[DueNotification]) -> None:
    """Store notifications to send at their time, in the caller's transaction if there is one.

    A key is sent once: calling this again changes nothing but the time of what has not been sent yet. What is sent is
    computed at that time by the source of its kind (`features.NOTIFICATIONS`).
    """
    if ctx.recorder is not None and any(each.recipient["type"] == "client" for each in due):
        ctx.recorder.sends = True
    if due:
        await add(ctx, due, creates=True)


async def find_known(ctx: Context, keys: Sequence[str]) -> set[str]:
    """Return which of some keys have been made due in the last two weeks, whatever became of them."""
    return {each["key"] for each in await notifications.find(ctx, {"key": {"$in": list(keys)}}, fields=("key",))}


async def correct(ctx: Context, due: Sequence[DueNotification]) -> None:
    """Set the time of notifications that are pending; what is not stored is not made due."""
    if due:
        await add(ctx, due, creates=False)


@transactional
async def withdraw(ctx: Context, keys: Sequence[str]) -> None:
    """Do not send the notifications with these keys that have not been sent yet."""
    where = {"key": {"$in": list(keys)}, "outcome": None}
    await notifications.set_derived(ctx, where, {"$set": {"sendAt": None, "outcome": "dropped"}})
