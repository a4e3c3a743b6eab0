"""The first argument of every service function: the caller, and where the data is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from email.message import EmailMessage
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar, cast

from motor.motor_asyncio import AsyncIOMotorClientSession, AsyncIOMotorCollection, AsyncIOMotorDatabase
from opentelemetry.trace import Tracer

from coaching_service.core import slots as core_slots
from coaching_service.core.auth import Vault
from coaching_service.core.background import PendingCounts, PendingEntries
from coaching_service.core.cached_reads import CACHE_SECONDS, CachedReads, CacheWait, RecentValues
from coaching_service.core.database.backup.stores import Store
from coaching_service.core.database.monitor import DatabaseMonitor
from coaching_service.core.database.recording import ChangeRecorder, Interface
from coaching_service.core.database.worker_thread import WorkerThread
from coaching_service.core.events import CompanySignals, DomainEvent, EventBus
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import MediaWorker, StorageQuota, UploadLimits
from coaching_service.core.metrics import Metrics
from coaching_service.core.open_id import OpenIdProvider
from coaching_service.core.outbound import OutboundClient
from coaching_service.core.temporary_files import DiskSpace
from coaching_service.core.tracing import NO_TRACER

if TYPE_CHECKING:
    from coaching_service.core.auth import KeyHolder, Principal
    from coaching_service.core.mcp.tools import Tool
if TYPE_CHECKING:
    from types import TracebackType

T = TypeVar("T")
RECHECK_SECONDS = 1.0  # after which a request that is still answered is authenticated again
MAX_FILE_WRITES, _FILE_WRITES_OF_A_COMPANY = 4, 3
_SHARED_SECONDS = 60

Database = AsyncIOMotorDatabase[dict[str, Any]]
Collection = AsyncIOMotorCollection[dict[str, Any]]


class MailSender(Protocol):
    """Sends e-mail. `repeatable`: sending the same e-mail twice does no harm. `sender`: the address it comes from."""

    repeatable: ClassVar[bool]

    @property
    def sender(self) -> str:
        """The address, with a name or without: `us@example.com` or `Coaching <us@example.com>`."""

    async def send(self, mail: EmailMessage, before_data: Callable[[], Awaitable[None]] | None = None) -> None:
        """Send an e-mail. Raises MailRejected if it was certainly not accepted.

        Unless it is repeatable, `before_data` is called before it may be accepted.
        """


class ChangeLog(Protocol):
    """Stores what a transaction has changed."""

    async def write(self, ctx: Context) -> list[ObjectId]:
        """Store the changes that `ctx.recorder` has collected, in the transaction of `ctx`; returns their identifiers.

        An undo takes them: the identifiers of the changes, or the identifier of their batch.
        """


@dataclass(frozen=True, slots=True)
class Services:
    """What the process offers to every request, made once at start."""

    db: Database
    # Encrypts and signs with the master keys.
    vault: Vault
    # The subscribers of domain events.
    events: EventBus
    # The public address, without a trailing slash.
    base_url: str
    mail_sender: MailSender
    # Records what transactions change.
    change_log: ChangeLog
    # Companies may sign up by themselves.
    registration: bool = True
    # Of the embedded database.
    disk_space: DiskSpace = field(default_factory=DiskSpace)
    # How many invitations a company may send, after its first week.
    invitations_per_day: int = 2000
    # OAuth applications may identify themselves by the URL of a document.
    client_documents: bool = True
    # The size of files.
    upload_limits: UploadLimits = field(default_factory=UploadLimits)
    # The size of all files of a company.
    storage_quota: StorageQuota = field(default_factory=StorageQuota)
    # Rewrites uploaded pictures and PDF files.
    media_worker: MediaWorker = field(default_factory=MediaWorker)
    # Serialises requests that change the schedule of one owner (see RequestSlot).
    schedule_locks: core_slots.KeyedLocks = field(default_factory=core_slots.KeyedLocks)
    # Notifies the requests that wait for new changes.
    number_signals: CompanySignals = field(default_factory=CompanySignals)
    # Held while a password is verified; network addresses take turns.
    sign_in_slot: core_slots.RequestSlots = field(default_factory=lambda: core_slots.RequestSlots(1))
    # Notifies the background worker.
    job_available: asyncio.Event = field(default_factory=asyncio.Event)
    # How many files are written to GridFS at the same time.
    file_write_slots: core_slots.RequestSlots = field(
        default_factory=lambda: core_slots.RequestSlots(MAX_FILE_WRITES, alone=_FILE_WRITES_OF_A_COMPANY)
    )
    # How much other large work is done at the same time.
    work_slots: core_slots.WorkSlots = field(default_factory=core_slots.WorkSlots)
    # How long a request waits at most while the database does not respond.
    database_response_seconds: float = 2.0
    # Sends requests to addresses that users enter.
    outbound: OutboundClient = field(default_factory=OutboundClient)
    # Where users may sign in with an account of their organisation.
    open_id: OpenIdProvider | None = None
    # The delays after which a delivery is tried again.
    webhook_retry_seconds: tuple[float, ...] = ()
    # Counts in this process.
    metrics: Metrics = field(default_factory=Metrics, repr=False)
    # Measures pieces of work.
    tracer: Tracer = NO_TRACER
    # The stored counts that this process knows to be complete.
    complete_counts: set[str] = field(default_factory=set, init=False)
    # Exercises of the shared library as they were at most a minute ago: only a new version of the service changes them.
    # Any: the store of the library has the type, and the core does not import the library.
    shared_exercise_names: RecentValues[ObjectId, Any] = field(
        default_factory=lambda: RecentValues(_SHARED_SECONDS), init=False
    )
    # Counts the planned exercises until the counts are stored.
    exercise_uses: PendingCounts = field(default_factory=PendingCounts, init=False, repr=False)
    # Entries of the audit log that are not stored yet.
    # Any: the audit log has the type, which is built on this.
    pending_entries: PendingEntries[Any] = field(default_factory=PendingEntries, init=False, repr=False)
    # How many days entries of the audit log are kept.
    audit_days: int = 400
    # After how many months archived clients are erased; 0: never.
    archived_retention_months: int = 0
    # How long `key_holders` are used, and how long a transaction that changes what they are read from waits after its
    # commit.
    cache_seconds: float = CACHE_SECONDS
    # The backups and the list of erasures.
    backup_store: Store | None = None
    # The coaches of API keys, by the hash of the key.
    key_holders: CachedReads[str, KeyHolder] = field(init=False, repr=False)
    # The tools of the application, by name: those in the list of features.
    tools: dict[str, Tool] = field(default_factory=dict, repr=False)
    # Notices that the database is lost.
    monitor: DatabaseMonitor = field(init=False, repr=False)
    _collections: dict[str, Collection] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key_holders", CachedReads(self.cache_seconds))
        object.__setattr__(self, "monitor", DatabaseMonitor(self.db, self.database_response_seconds))

    def collection(self, name: str) -> Collection:
        """Return the driver's collection of that name, cached: creating one takes the driver some time.

        Raises Unavailable while the database is lost, so that nothing waits for it.
        """
        self.monitor.require()
        if (collection := self._collections.get(name)) is None:
            collection = self._collections[name] = self.db[name]
        return collection


@dataclass(slots=True)
class ClientsSeen:
    """The clients whose access an operation has checked; `in_list`: it has read those in the caller's scope."""

    ids: set[ObjectId] = field(default_factory=set)
    in_list: bool = False

    def add(self, customer_id: ObjectId | None) -> None:
        """Add a client, if there is one: what is read concerns this client."""
        if customer_id is not None:
            self.ids.add(customer_id)


@dataclass(frozen=True, slots=True)
class Context:
    """One request or piece of background work: its caller, its network address, and its transaction, if any.

    `thread` is the worker thread that the function runs on, if it does (see `on_worker_thread`).
    `is_disconnected` returns whether the caller has closed the connection, so that queued work can be skipped.
    `operation` is the operationId of the route, or the name of the tool, page or job; `interface` is set where it
    does not follow from the caller's credential: for assistants and background work. `author`: the client whose request
    the background work is, whom the change log names instead of the caller.
    `recorder` collects what the transaction changes. `change_ids` receives the identifiers of the changes once they
    are committed; `batch_id` groups the changes of several clients under one identifier. `cache_wait`: see CacheWait.
    `resolved`: what names, dates and groups of the call mean, for each attempt at its transaction (see Unprepared), and
    for the approval of its proposal.
    `load_caller` authenticates the request again and checks its access, where that can end while it is answered;
    `authenticated_at` is when it was authenticated, in seconds of the monotonic clock.
    `turn` returns a context in which a request that is held uses the database, in turn with other companies.
    `prefers_job`: the caller prefers a job to waiting for a bulk operation. `device` is what the program that
    sends the request says it is; `clients_seen` is what the audit log says
    that the caller was shown.
    """

    services: Services
    principal: Principal | None = None
    session: AsyncIOMotorClientSession | None = None
    thread: WorkerThread | None = None
    request_id: str = "-"
    network_address: str = "-"
    device: str = ""
    is_disconnected: Callable[[], bool] = bool  # bool() is False
    load_caller: Callable[[], Awaitable[Principal]] | None = None
    authenticated_at: float = field(default_factory=time.monotonic)
    turn: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    prefers_job: bool = False
    operation: str = ""
    interface: Interface | None = None
    author: Principal | None = None
    recorder: ChangeRecorder | None = None
    batch_id: ObjectId | None = None
    change_ids: list[ObjectId] = field(default_factory=list)
    cache_wait: CacheWait = field(default_factory=CacheWait)
    clients_seen: ClientsSeen = field(default_factory=ClientsSeen)
    # object: features have the types, and the core does not import them.
    resolved: dict[str, object] = field(default_factory=dict)

    @property
    def db(self) -> Database:
        """The database."""
        return self.services.db

    def collection(self, name: str) -> Collection:
        """Return the driver's collection of that name. Raises Unavailable while the database is lost."""
        collection = self.services.collection(name)
        return collection if self.thread is None else self.thread.collection(collection)

    @property
    def caller(self) -> Principal:
        """The authenticated caller. Raises RuntimeError in a public operation, which has none."""
        if self.principal is None:
            raise RuntimeError("this operation needs a principal")
        return self.principal

    @property
    def company_id(self) -> ObjectId:
        """The caller's company, with which every query begins."""
        return self.caller.company.id

    @property
    def slot_holder(self) -> Hashable:
        """Whose requests share slots: the caller's company, or the network address if the caller is not signed in."""
        return self.network_address if self.principal is None else self.principal.company.id

    @property
    def changes(self) -> ChangeRecorder:
        """What the transaction changes. Raises RuntimeError outside of a transaction."""
        if self.recorder is None:
            raise RuntimeError("changes are recorded in a transaction: make the function @transactional")
        return self.recorder

    @property
    def change_id(self) -> ObjectId | None:
        """What identifies the changes of the running transaction; None if it has changed nothing that is recorded."""
        return None if self.changes.is_empty else self.batch_id or self.changes.id

    async def resolve(self, key: str, find: Callable[[], Awaitable[T]]) -> T:
        """Return what a name, date or group of the call means: what it meant before, else what `find` returns."""
        if key not in self.resolved:
            self.resolved[key] = await find()
        return cast("T", self.resolved[key])

    def acting_as(self, principal: Principal) -> Context:
        """Return a copy of this context with `principal` as its caller."""
        if self.recorder is not None:
            self.recorder.author = principal
        return replace(self, principal=principal)

    async def with_current_caller(self) -> Context:
        """Return a copy of this context with the caller as they are now: for requests that have waited.

        Raises Unauthorized or Forbidden if the credential, or a permission that the operation needs, is gone.
        """
        return self if self.load_caller is None else replace(self, principal=await self.load_caller())

    async def after_waiting(self) -> Context:
        """Return a copy of this context with the caller as they are now, if the request has waited since it was
        authenticated.

        Raises what with_current_caller raises.
        """
        has_waited = time.monotonic() - self.authenticated_at >= RECHECK_SECONDS
        return await self.with_current_caller() if has_waited else self

    async def publish(self, event: DomainEvent) -> None:
        """Call the subscribers of a domain event in this context's transaction. Raises RuntimeError without one."""
        if self.session is None and not event.changes_nothing:
            raise RuntimeError(f"{type(event).__name__} is published outside of a transaction")
        await self.services.events.publish(self, event)


# --- What a request that uses the database holds: the lock of the schedule that it changes, then a slot ---------------


# What has a schedule; an operation that changes it declares which in `locks`. Its identifier is `customerId` and so on.
Schedule = Literal["customer", "program", "template"]


def schedule_key(ctx: Context, owner: Schedule | None, *arguments: Mapping[str, Any]) -> Hashable | None:
    """Return the key of the lock for the schedule that a write changes; clients lock their own, whatever they write.

    `owner`: what the operation declares in `locks`. None if it declares nothing, or the `arguments` do not name one.
    """
    if ctx.principal is None:
        return None
    if not ctx.caller.is_coach:
        return ctx.company_id, ctx.caller.id
    names = () if owner is None else (f"{owner}_id", f"{owner}Id")
    identifiers = (named[name] for named in arguments for name in names if named.get(name))
    identifier = next(identifiers, None)
    return None if identifier is None else (ctx.company_id, identifier)


class RequestSlot(AbstractAsyncContextManager[None]):
    """Holds one of `slots` for the caller of `ctx`, who has waited for `waited` seconds before.

    `schedule`: the key of the schedule that the request changes; the requests of this process that change it run one
    after another, and wait for their turn without a slot. This is the only place that acquires a lock of a schedule.

    A request that has changed what processes cache waits at the end, without the slot (see CacheWait). This is a class
    because a generator would cost each request more time. Raises Unavailable if the queue is full or the wait too long.
    """

    __slots__ = ("_company", "_ctx", "_lock", "_slots", "_waited")

    def __init__(
        self, slots: core_slots.RequestSlots, ctx: Context, waited: float = 0.0, *, schedule: Hashable | None = None
    ) -> None:
        self._ctx, self._slots, self._company, self._waited = ctx, slots, ctx.slot_holder, waited
        self._lock = None if schedule is None else ctx.services.schedule_locks.lock_of(schedule)

    async def __aenter__(self) -> None:
        """Wait for the lock and the slot."""
        if self._lock is None:
            await self._slots.acquire(self._company, self._waited)
        else:
            await self._acquire_both(self._lock)
        self._ctx.cache_wait.is_deferred = True

    async def _acquire_both(self, lock: asyncio.Lock) -> None:
        core_slots.require_no_transaction()
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._slots.remaining_seconds(self._waited)):
                await lock.acquire()
        except TimeoutError:
            raise core_slots.overloaded() from None
        try:
            await self._slots.acquire(self._company, self._waited + time.monotonic() - started)
        except BaseException:
            lock.release()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Release the slot and the lock, and wait unless the request is cancelled."""
        self._slots.release(self._company)
        if self._lock is not None:
            self._lock.release()
        if kind is None or not issubclass(kind, asyncio.CancelledError):
            await self._ctx.cache_wait.end()
