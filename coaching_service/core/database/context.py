"""The first argument of every service function: the caller, where the data is, and the transaction."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Iterator, Mapping
from collections.abc import Collection as AnyCollection
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from email.message import EmailMessage
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Literal, ParamSpec, Protocol, TypeVar, cast

from motor.motor_asyncio import AsyncIOMotorClientSession, AsyncIOMotorCollection, AsyncIOMotorDatabase
from opentelemetry.trace import Span, Tracer
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure, PyMongoError

from coaching_service.core import slots as core_slots
from coaching_service.core.auth import Vault
from coaching_service.core.background import PendingCounts, PendingEntries
from coaching_service.core.budgets import metered
from coaching_service.core.cached_reads import CACHE_SECONDS, CachedReads, CacheWait, RecentValues
from coaching_service.core.database.connection import DatabaseMonitor, is_late, is_unavailable, is_unsent, unreachable
from coaching_service.core.database.recording import ChangeRecorder, Interface, interface_of
from coaching_service.core.database.worker_thread import ThreadSession, WorkerThread
from coaching_service.core.errors import Conflict, ExternalIdTaken, Unavailable
from coaching_service.core.events import CompanySignals, DomainEvent, EventBus
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import MediaWorker, StorageQuota, UploadLimits
from coaching_service.core.metrics import Metrics
from coaching_service.core.open_id import OpenIdProvider
from coaching_service.core.outbound import OutboundClient
from coaching_service.core.temporary_files import DiskSpace
from coaching_service.core.tracing import NO_TRACER, measure

if TYPE_CHECKING:
    from types import TracebackType

    from coaching_service.core.auth import KeyHolder, Principal
    from coaching_service.core.database.documents import Documents
    from coaching_service.core.mcp import Tool
    from coaching_service.installation.backup.stores import Store

P = ParamSpec("P")
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
    # Stores what a transaction has changed, in it; returns the identifiers of the changes, or of their batch.
    change_log: Callable[[Context], Awaitable[list[ObjectId]]]
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
    pending_entries: PendingEntries = field(default_factory=PendingEntries, init=False, repr=False)
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
            core_slots.require_no_transaction()
            started = time.monotonic()
            try:
                async with asyncio.timeout(self._slots.remaining_seconds(self._waited)):
                    await self._lock.acquire()
            except TimeoutError:
                raise core_slots.overloaded() from None
            try:
                await self._slots.acquire(self._company, self._waited + time.monotonic() - started)
            except BaseException:
                self._lock.release()
                raise
        self._ctx.cache_wait.is_deferred = True

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Release the slot and the lock, and wait unless the request is cancelled."""
        self._slots.release(self._company)
        if self._lock is not None:
            self._lock.release()
        if kind is None or not issubclass(kind, asyncio.CancelledError):
            await self._ctx.cache_wait.end()


# --- Transactions: a function that runs in one, independent reads in or outside of one, and reads at one moment -------


PATIENCE_SECONDS = 20.0
_BACKOFF_SECONDS = 0.005
_MAX_BACKOFF_SECONDS = 0.1
_ABORT_SECONDS = 0.5
_TRANSIENT = "TransientTransactionError"
_COMMIT_UNKNOWN = "UnknownTransactionCommitResult"
_random = random.SystemRandom()  # apart from the generator that tests seed
_endings: set[asyncio.Task[None]] = set()  # the event loop has only weak references to its tasks


class Unprepared(Exception):
    """Ends a transaction that needs what `prepare` computes: it is called outside of it, then the transaction repeated.

    It is for what takes long and depends on no write of the transaction. `prepare` stores its result in the context.
    """

    def __init__(self, prepare: Callable[[Context], Awaitable[None]]) -> None:
        super().__init__("computed before the transaction")
        self.prepare = prepare


def transactional(
    function: Callable[Concatenate[Context, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Context, P], Coroutine[Any, Any, T]]:
    """Run `function` in one transaction, or inside the transaction its context is already in.

    The function is called again when the transaction collides with another one: it must have no effect outside the
    database. Raises Unavailable when it still collides after 20 seconds, or the database does not respond.
    """

    @wraps(function)
    async def in_its_transaction(ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await in_transaction(ctx, lambda tx: function(tx, *args, **kwargs))

    return in_its_transaction


async def in_transaction(
    ctx: Context, work: Callable[[Context], Awaitable[T]], *, patience: float = PATIENCE_SECONDS
) -> T:
    """Call `work` in one transaction, or inside the one `ctx` is already in, and return its result.

    `work` is called again when the transaction fails for a transient reason, such as a write conflict, and the commit
    is repeated when its outcome is unknown: Motor's own `with_transaction` commits outside its retry loop, so it does
    neither for a commit. What `work` has changed is checked (see History) and stored in the change log before the
    commit. If it has changed documents that processes cache, it returns or raises when none of them uses what it read
    before (see CacheWait). It is also called again after what it was missing is prepared (see Unprepared).
    Nothing is repeated after `patience` seconds, or once the database is lost (see DatabaseMonitor): then raises
    Unavailable, or the driver's error when the outcome of the commit is still unknown.
    """
    if ctx.session is not None:
        return await work(ctx)
    deadline = time.monotonic() + patience
    attempts: list[ChangeRecorder] = []
    try:
        measuring = measure(ctx.services.tracer, "transaction", attributes={"coaching.operation": ctx.operation})
        with core_slots.within_transaction(), measuring as span:
            return await _repeat(ctx, work, deadline, span, attempts)
    except asyncio.CancelledError:
        attempts.clear()  # there is no response that would have to wait
        raise
    finally:
        ctx.resolved.clear()
        # Also after an error, such as NotFound: a transaction that has deleted the document may still be waiting
        if any(each.changes_cached for each in attempts):
            await wait_for_caches(ctx)


class _Rehearsed(Exception):
    """Ends the transaction of a rehearsal."""


async def rehearse(ctx: Context, work: Callable[[Context], Awaitable[T]]) -> T:
    """Call `work` in a transaction that is rolled back, and return its result."""
    results: list[T] = []

    async def work_and_end(tx: Context) -> None:
        results.append(await work(tx))
        await tx.changes.check(tx)
        raise _Rehearsed

    with suppress(_Rehearsed):
        await in_transaction(ctx, work_and_end)
    return results[-1]


async def _repeat(
    ctx: Context,
    work: Callable[[Context], Awaitable[T]],
    deadline: float,
    span: Span,
    attempts: list[ChangeRecorder],
) -> T:
    """Call `work` in a transaction until it commits, or may not be repeated; `attempts` receives what each changed."""
    monitor = ctx.services.monitor
    attempt = 0

    def may_continue() -> bool:
        return time.monotonic() <= deadline and not monitor.is_lost

    monitor.require()
    while True:
        try:
            async with _session(ctx) as session:
                session.start_transaction()
                attempts.append(ChangeRecorder())
                tx = replace(ctx, session=session, recorder=attempts[-1])
                result = await work(tx)
                await tx.changes.check(tx)
                change_ids = [] if tx.changes.is_empty else await ctx.services.change_log(tx)
                await _commit(ctx, session, may_continue)
                ctx.change_ids.extend(change_ids)
                for follow in tx.changes.after_commit:
                    follow()
                return result
        except Unprepared as unprepared:
            await unprepared.prepare(ctx)
            continue
        except PyMongoError as error:
            if not (error.has_error_label(_TRANSIENT) or is_unsent(error)):
                raise
            if not may_continue():
                monitor.require()
                if is_unavailable(error) and not is_late(error):
                    raise unreachable() from error
                raise Unavailable("The service is busy; nothing was changed, try again") from error
        attempt += 1
        span.set_attribute("coaching.retries", attempt)
        await _pause(ctx, _random.random() * min(attempt * _BACKOFF_SECONDS, _MAX_BACKOFF_SECONDS))


@asynccontextmanager
async def _session(ctx: Context) -> AsyncIterator[AsyncIOMotorClientSession]:
    """A session whose transaction is aborted unless it is committed.

    A caller that is cancelled, as by DatabaseMonitor, does not wait for the abort.
    """
    if ctx.thread is not None:
        with ctx.db.client.delegate.start_session() as own:
            yield cast("AsyncIOMotorClientSession", ThreadSession(own))
        return
    session = await ctx.db.client.start_session()
    try:
        yield session
    except asyncio.CancelledError:
        ending = asyncio.create_task(_end(session, None))
        _endings.add(ending)
        ending.add_done_callback(_endings.discard)
        raise
    except BaseException:
        await _end(session, _ABORT_SECONDS)
        raise
    else:
        await _end(session, _ABORT_SECONDS)


async def wait_for_caches(ctx: Context) -> None:
    """Wait until no process uses what it has cached before, or let the request wait at its end (see CacheWait)."""
    seconds = CacheWait.seconds(ctx.services.cache_seconds)
    if ctx.cache_wait.is_deferred:
        ctx.cache_wait.defer(seconds)
    else:
        await _pause(ctx, seconds)


async def _pause(ctx: Context, seconds: float) -> None:
    if ctx.thread is None:
        await asyncio.sleep(seconds)
    else:
        ctx.thread.pause(seconds)


async def _commit(ctx: Context, session: AsyncIOMotorClientSession, may_continue: Callable[[], bool]) -> None:
    """Commit, again while the outcome is unknown: a commit that is repeated takes effect once."""
    unknown: PyMongoError | None = None
    while True:
        try:
            await session.commit_transaction()
        except PyMongoError as error:
            if is_unsent(error):
                if not may_continue():
                    raise unknown or error from None
                await _pause(ctx, _BACKOFF_SECONDS)
                continue
            if not error.has_error_label(_COMMIT_UNKNOWN) or not may_continue():
                raise
            unknown = error
        else:
            return


async def _end(session: AsyncIOMotorClientSession, seconds: float | None) -> None:
    """Abort an open transaction and end the session. Waits at most `seconds`; None: as long as the driver tries.

    It runs in a thread, and continues there when the wait is over: used as a context manager, the session would abort
    the transaction on the event loop.
    The server aborts an abandoned transaction by itself after a minute.
    """
    with suppress(PyMongoError, TimeoutError):
        async with asyncio.timeout(seconds):
            await session.end_session()


async def gather_reads(ctx: Context, *reads: Awaitable[Any]) -> list[Any]:
    """Return the results of independent `reads`, in their order.

    They run at the same time, or one after another on a worker thread and inside a transaction, which take one
    operation at a time. Of several failures the first in order is raised.
    """
    if ctx.session is None and ctx.thread is None:
        results = await asyncio.gather(*map(metered, reads), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return results
    results = []
    pending = list(reads)
    try:
        while pending:
            results.append(await pending.pop(0))
    finally:
        for unread in pending:
            if asyncio.iscoroutine(unread):
                unread.close()
    return results


@asynccontextmanager
async def reading_snapshot(services: Services) -> AsyncIterator[AsyncIOMotorClientSession]:
    """A session whose finds and aggregations all read the state at the moment of the first one, of any collection.

    MongoDB stores what such reads need for five minutes (`minSnapshotHistoryWindowInSeconds`); later ones fail.
    """
    session = await services.db.client.start_session(snapshot=True)
    try:
        yield session
    finally:
        await session.end_session()


# --- Errors of writes that other documents, or other writes, prevent --------------------------------------------------


_DUPLICATE_KEY = 11000


class DocumentExists(Conflict):
    """A document with the same identifier, or the same unique fields, exists."""

    default_code = "ALREADY_EXISTS"

    def __init__(self, field: str | None = None) -> None:
        """Create the error; `field` is `_id` or `externalId` if that is what they have in common."""
        super().__init__("Such a record exists already")
        self.field = field

    @classmethod
    def of_fields(cls, fields: AnyCollection[str]) -> DocumentExists:
        """Return the error for the fields of the unique index that prevents a write."""
        return cls(next((name for name in ("_id", "externalId") if name in fields), None))


class AlreadyClaimed(Exception):
    """The identifier exists, or is being stored by a transaction that is still running."""


def is_duplicate(error: OperationFailure) -> bool:
    """Return whether a write failed because a document with the same unique fields exists."""
    failed = (error.details or {}).get("writeErrors") or [{"code": error.code}]
    return any(each["code"] == _DUPLICATE_KEY for each in failed)


def version_conflict() -> Conflict:
    """Return the error for a change that is based on an older version."""
    message = "The record has been changed since; read it again and retry"
    return Conflict(message, code="VERSION_CONFLICT")


@contextmanager
def conflict_if_taken(error: Conflict) -> Iterator[None]:
    """Raise this error for a write that another document with the same unique fields prevents."""
    try:
        yield
    except DuplicateKeyError:
        raise error from None


@asynccontextmanager
async def external_id_conflict(ctx: Context, collection: Documents[Any]) -> AsyncIterator[None]:
    """Raise ExternalIdTaken for a write that another document with the same external identifier prevents."""
    try:
        yield
    except (DuplicateKeyError, BulkWriteError) as error:
        details = error.details or {}
        keys = [each.get("keyValue", {}) for each in (details, *details.get("writeErrors", ()))]
        if (external_id := next((str(key["externalId"]) for key in keys if "externalId" in key), None)) is None:
            raise
        where = collection.read_filter(ctx, {"externalId": external_id})
        holder = await ctx.collection(collection.name).find_one(where, {"_id": 1})  # the transaction is over
        raise external_id_taken(ctx, None if holder is None else holder["_id"]) from None


def external_id_taken(ctx: Context, holder: ObjectId | None) -> ExternalIdTaken:
    """Return the error for an external identifier that another record has.

    It does not name that record to assistants and applications where any client has turned them off: the record may
    be that client's.
    """
    is_named = interface_of(ctx) not in ("assistant", "application") or not ctx.caller.company.has_declined
    return ExternalIdTaken(holder if is_named else None)


@contextmanager
def taken_place(kind: str) -> Iterator[None]:
    """Raise Conflict for a write that restores a document of a kind, if another has the same unique fields by now."""
    try:
        yield
    except BulkWriteError as error:
        if not is_duplicate(error):
            raise
        message = f"Another {kind} has taken the place of the one to restore, so that this cannot be undone"
        raise Conflict(message, code="VERSION_CONFLICT") from None
