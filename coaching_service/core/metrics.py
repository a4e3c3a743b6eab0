"""The Prometheus metrics of one process: each name is declared here, and each label has few values."""

from __future__ import annotations

import asyncio
import platform
import shutil
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, TypeVar, get_args

import prometheus_client as prometheus
import structlog

from coaching_service import __version__

if TYPE_CHECKING:
    from coaching_service.core.database.context import Services

# Returns nothing: it sets gauges to what it reads, before each response of /metrics.
Reading = Callable[["Services"], Awaitable[None]]
T = TypeVar("T")

# Few, so that each route takes less than 1.5 kB.
_REQUEST_BUCKETS = (0.01, 0.05, 0.25, 1, 5)
_TOOL_BUCKETS = (0.05, 0.25, 1, 5)
_COMMAND_BUCKETS = (0.001, 0.005, 0.025, 0.1, 0.5, 2)
_WAIT_BUCKETS = (0.005, 0.025, 0.1, 0.5, 1, 2.5)
_JOB_BUCKETS = (0.01, 0.1, 0.5, 2, 10, 60)
_READING_SECONDS = 1.0

SIGN_IN_FAILURES = ("unknown_address", "wrong_password", "wrong_code", "no_access", "too_many_failures")
UPLOAD_OUTCOMES = ("stored", "rejected")
WEBHOOK_OUTCOMES = ("succeeded", "rejected")  # the others are the reasons why there was no response
PUSH_OUTCOMES = ("accepted", "gone", "delayed", "rejected")  # the others are the reasons why there was no response
# unknown: an attempt was interrupted after the mail was handed over, and is not repeated.
MailOutcome = Literal["sent", "delayed", "failed", "unknown"]
DATABASE_COMMANDS = (
    *("find", "getMore", "aggregate", "count", "distinct"),
    *("insert", "update", "delete", "findAndModify"),
    *("commitTransaction", "abortTransaction", "other"),
)

log = structlog.get_logger("coaching_service")


class Backlog(TypedDict):
    """How much work waits, and for how many seconds the first of it has."""

    count: float
    oldestSeconds: float


NO_BACKLOG: Backlog = {"count": 0, "oldestSeconds": 0}
UNKNOWN_BACKLOG: Backlog = {"count": nan, "oldestSeconds": nan}


@dataclass(frozen=True)
class QueueMetrics:
    """The requests that wait for one kind of slot: how many now, how long each has waited, and those sent away."""

    waiting: prometheus.Gauge
    seconds: prometheus.Histogram
    full: prometheus.Counter
    timed_out: prometheus.Counter


class Metrics:
    """The metrics of one process. `declared` has the labels of each by its name.

    `add_others` adds the metrics of the other workers to a response of /metrics; None without a supervisor.
    """

    add_others: Callable[[str], Awaitable[str]] | None = None

    def __init__(self) -> None:
        prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no types for it
        self.registry = prometheus.CollectorRegistry()
        self.declared: dict[str, tuple[str, ...]] = {}
        # Of the process.
        prometheus.ProcessCollector(registry=self.registry)
        for name in ("cpu_seconds_total", "resident_memory_bytes", "virtual_memory_bytes", "start_time_seconds"):
            self.declared[f"process_{name}"] = ()
        self.declared |= {"process_open_fds": (), "process_max_fds": ()}
        build = {"version": __version__, "python": platform.python_version()}
        self._gauge("workers_running", "Processes that answer requests on the port.").set(1)
        self._counter("worker_failures_total", "Workers that ended by themselves and were replaced.")
        prometheus.Info("coaching_service_build", "The release that runs.", registry=self.registry).info(build)
        self.declared["coaching_service_build_info"] = tuple(build)

        self._free = self._gauge("disk_free_bytes", "Free space of the disk with this folder.", "folder")
        self._size = self._gauge("disk_size_bytes", "Size of the disk with this folder.", "folder")

        # Of requests.
        self.requests = self._counter("http_requests_total", "Requests answered.", "method", "route", "status")
        self.request_seconds = self._histogram(
            "http_request_duration_seconds", "Time to answer.", _REQUEST_BUCKETS, "method", "route"
        )
        self.requests_in_flight = self._gauge(
            "http_requests_in_flight", "Requests that are being answered, those that wait for events included."
        )
        self.rate_limited = self._counter(
            "rate_limited_requests_total", "Requests answered 429, by the limit that they exceeded.", "limit"
        )
        self.tool_calls = self._counter(
            "mcp_tool_calls_total", "Tool calls answered.", "tool", "application", "outcome"
        )
        self.tool_seconds = self._histogram(
            "mcp_tool_call_duration_seconds", "Time to carry out a tool call.", _TOOL_BUCKETS, "tool"
        )
        self.sign_in_failures = self._counter("sign_in_failures_total", "Sign-ins rejected.", "reason")
        _start_at_zero(self.sign_in_failures, SIGN_IN_FAILURES)
        self._queue_waiting = self._gauge("request_queue_waiting", "Requests that wait for a slot.", "queue")
        self._queue_seconds = self._histogram(
            "request_queue_duration_seconds", "Time that requests waited for a slot.", _WAIT_BUCKETS, "queue"
        )
        self._queue_rejected = self._counter(
            "request_queue_rejected_total", "Requests that got no slot, and 503.", "queue", "reason"
        )

        # Of the database.
        self.connections_in_use = self._gauge(
            "database_connections_in_use", "Connections to the database that carry out an operation."
        )
        self.connections_open = self._gauge("database_connections_open", "Connections to the database.")
        self.connections_waiting = self._gauge(
            "database_connections_waiting", "Operations that wait for a connection to the database."
        )
        self.command_seconds = self._histogram(
            "database_command_duration_seconds", "Time of a command of the database.", _COMMAND_BUCKETS, "command"
        )

        self._declare_background_work()

    def _declare_background_work(self) -> None:
        self.jobs_pending = self._gauge("jobs_pending", "Jobs of all companies that are due.", "kind")
        self.oldest_job_seconds = self._gauge(
            "jobs_oldest_pending_seconds", "Time since the oldest of them has been due.", "kind"
        )
        self.job_seconds = self._histogram("job_run_duration_seconds", "Time of a step of a job.", _JOB_BUCKETS, "kind")
        self.job_runs = self._counter("job_runs_total", "Steps of jobs that this process ran.", "kind", "outcome")
        self.mails = self._counter("mail_total", "Attempts of this process to send a mail.", "outcome")
        _start_at_zero(self.mails, get_args(MailOutcome))
        self.oldest_mail_seconds = self._gauge(
            "mail_oldest_seconds", "Age of the oldest mail of all companies that is due, or that was tried in vain."
        )
        self.changes_pending = self._gauge("change_log_pending", "Changes of all companies that have no number yet.")
        self.oldest_change_seconds = self._gauge(
            "change_log_oldest_pending_seconds", "Age of the oldest of them: how far the numbering is behind."
        )
        self.figures_due = self._gauge(
            "figures_due", "Clients of all companies whose stored figures have to be computed again.", "lane"
        )
        self.oldest_figures_seconds = self._gauge(
            "figures_oldest_due_seconds", "Time since the first of them has been due.", "lane"
        )
        self.check_ins_due = self._gauge("check_ins_due", "Check-ins of all companies that have to be scheduled.")
        self.oldest_check_in_seconds = self._gauge(
            "check_ins_oldest_due_seconds", "Time since the first of them has been due."
        )
        self.notifications_due = self._gauge("notifications_due", "Notifications of all companies that are due.")
        self.oldest_notification_seconds = self._gauge(
            "notifications_oldest_due_seconds", "Time since the first of them has been due."
        )
        self.work_failing = self._gauge(
            "work_failing", "Clients, coaches and records of all companies whose work in the background fails.", "kind"
        )
        self.webhook_attempts = self._counter(
            "webhook_attempts_total", "Attempts of this process to deliver an event to a webhook.", "outcome"
        )
        _start_at_zero(self.webhook_attempts, WEBHOOK_OUTCOMES)
        self.push_messages = self._counter(
            "push_messages_total", "Attempts of this process to send a notification to a device.", "outcome"
        )
        _start_at_zero(self.push_messages, PUSH_OUTCOMES)
        self.deliveries_pending = self._gauge(
            "webhook_deliveries_pending", "Deliveries of all companies that wait for an attempt."
        )
        self.oldest_delivery_seconds = self._gauge(
            "webhook_oldest_pending_seconds", "Age of the oldest delivery that waits for an attempt."
        )
        self.uploads = self._counter("file_uploads_total", "Files that were uploaded to this process.", "outcome")
        _start_at_zero(self.uploads, UPLOAD_OUTCOMES)
        self.upload_bytes = self._counter("file_upload_bytes_total", "Bytes of files that this process stored.")
        self.backup_age = self._gauge(
            "backup_age_seconds", "Time since the moment that the last recorded backup shows; infinite without one."
        )
        self.verify_age = self._gauge(
            "verify_age_seconds", "Time since all backups were last found complete; infinite without a verification."
        )
        self.erasures_pending = self._gauge(
            "erasures_pending", "Erasures of all companies that are not listed in BACKUP_STORE yet."
        )
        self.stored_bytes = self._gauge("files_stored_bytes", "Bytes of the files of all companies.")

    def watch_disk(self, folder: Literal["data", "temporary"], path: Path) -> None:
        """Report the space of the disk with this folder; not a number while the folder does not exist."""

        def read(name: Literal["free", "total"]) -> float:
            try:
                return float(getattr(shutil.disk_usage(path), name))
            except OSError:
                return nan

        self._free.labels(folder).set_function(partial(read, "free"))
        self._size.labels(folder).set_function(partial(read, "total"))

    def report(self) -> str:
        """Return the metrics of this process in the text format."""
        return prometheus.generate_latest(self.registry).decode()

    def queue(self, name: Literal["database", "bulk", "sign_in"]) -> QueueMetrics:
        """Return the metrics of the requests that wait for one kind of slot."""
        return QueueMetrics(
            self._queue_waiting.labels(name),
            self._queue_seconds.labels(name),
            self._queue_rejected.labels(name, "full"),
            self._queue_rejected.labels(name, "timed_out"),
        )

    def _counter(self, name: str, help_text: str, *labels: str) -> prometheus.Counter:
        self.declared[name] = labels
        return prometheus.Counter(name, help_text, labels, registry=self.registry)

    def _gauge(self, name: str, help_text: str, *labels: str) -> prometheus.Gauge:
        self.declared[name] = labels
        return prometheus.Gauge(name, help_text, labels, registry=self.registry)

    def _histogram(self, name: str, help_text: str, buckets: Sequence[float], *labels: str) -> prometheus.Histogram:
        self.declared[name] = labels
        return prometheus.Histogram(name, help_text, labels, buckets=buckets, registry=self.registry)


def _start_at_zero(counter: prometheus.Counter, values: Sequence[str]) -> None:
    """Make the series of these values exist before the first event, so that increases are complete."""
    for value in values:
        counter.labels(value)


async def reading_in_time(reading: Awaitable[T], otherwise: T, what: str) -> T:
    """Return what is read from the database for a metric, or `otherwise` if that fails or takes over a second."""
    try:
        async with asyncio.timeout(_READING_SECONDS):
            return await reading
    except Exception as error:  # noqa: BLE001 - the other metrics are needed most while the database fails
        log.warning("a metric cannot be read", metric=what, reason=type(error).__name__)
        return otherwise


async def read_backlog(
    reading: Awaitable[Backlog], count: prometheus.Gauge, seconds: prometheus.Gauge, what: str
) -> None:
    """Set two gauges to a backlog that is read from the database, as `reading_in_time` does."""
    backlog = await reading_in_time(reading, UNKNOWN_BACKLOG, what)
    count.set(backlog["count"])
    seconds.set(backlog["oldestSeconds"])
