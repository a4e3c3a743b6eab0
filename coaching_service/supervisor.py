"""Keeps a number of workers running, replaces them one after another, and adds up their metrics.

Worker and supervisor are connected by a socket that the worker inherits, with a JSON object a line. The first line is
for the worker and has its instructions. Then the worker sends `ready` once, and `metrics` when it is asked for them
with `report`, and when it ends. With `total` it asks for the metrics of all workers, and gets `total`. `retire` lets it
end. If the connection ends, the supervisor has ended.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from itertools import count
from math import inf, isnan
from pathlib import Path
from typing import Any, Literal, NoReturn

import structlog

from coaching_service import logs
from coaching_service.core.background import running_in_background
from coaching_service.core.errors import Unavailable

MAX_MESSAGE_BYTES = 1 << 25  # metrics of a worker are less than 1 MB
_RETIRE_SECONDS = 30.0
_TOTAL_SECONDS = 5.0
Message = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """The workers to run, and what they need.

    `listening` and `metrics_listening` are the numbers of inherited sockets. With `is_embedded` the supervisor runs the
    embedded database. `host`, `port` and `data_dir` replace settings of the environment. Secrets are not part of it:
    workers read them from the environment or the data folder.
    """

    workers: int
    listening: int
    metrics_listening: int | None
    host: str
    port: int
    data_dir: str
    is_embedded: bool
    with_demo: bool
    shutdown_seconds: int
    log_format: str
    log_level: str

    def let_inherit(self, inheritable: bool) -> None:
        """Let children inherit the sockets, or end that."""
        for number in (self.listening, self.metrics_listening):
            if number is not None:
                os.set_inheritable(number, inheritable)


@dataclass(frozen=True)
class Instructions:
    """What a worker needs to start besides the plan.

    `worker` is its number, from 1. With `prepares` it prepares the database; with `listens_at_once` it responds, with
    503, before it is ready. `embedded` is the address of the supervisor's database.
    """

    plan: Plan
    worker: int
    prepares: bool
    listens_at_once: bool
    embedded: str | None


def retire_seconds(shutdown_seconds: float) -> float:
    """Return how long a worker that is replaced answers requests on its open connections, before it stops as usual."""
    return max(_RETIRE_SECONDS, shutdown_seconds)


def _send(writer: asyncio.StreamWriter | None, message: Message) -> None:
    if writer is not None and not writer.is_closing():
        writer.write(json.dumps(message).encode() + b"\n")


class SupervisorConnection:
    """The connection of this worker with its supervisor."""

    def __init__(self, descriptor: int) -> None:
        """Receive the instructions on the socket with this number. Raises ConnectionError."""
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)
        line = self._socket.makefile("rb", buffering=0).readline()  # without a buffer, which would take more than it
        if not line.endswith(b"\n"):
            raise ConnectionError("the supervisor has ended")
        received = json.loads(line)
        self.instructions = Instructions(Plan(**received.pop("plan")), **received)
        self._writer: asyncio.StreamWriter | None = None
        self._numbers = count(1)
        self._asked: dict[int, asyncio.Future[str]] = {}

    @asynccontextmanager
    async def following(
        self, report: Callable[[], str], retire: Callable[[], None], lose: Callable[[], None]
    ) -> AsyncIterator[None]:
        """Follow the supervisor while the context is open.

        `report` returns the metrics of this process, which are also sent at the end. `retire` is called when the
        process has to end although the service goes on, `lose` when the supervisor has ended.
        """
        reader, self._writer = await asyncio.open_unix_connection(sock=self._socket, limit=MAX_MESSAGE_BYTES)

        async def follow() -> None:
            with suppress(ConnectionError):
                async for line in reader:
                    message = json.loads(line)
                    if message["kind"] == "retire":
                        retire()
                    elif message["kind"] == "report":
                        _send(self._writer, {"kind": "metrics", "text": report()})
                    elif (asked := self._asked.pop(message["number"], None)) is not None and not asked.done():
                        asked.set_result(message["text"])
            lose()

        try:
            async with running_in_background(follow):
                yield
        finally:
            _send(self._writer, {"kind": "metrics", "text": report()})
            with suppress(ConnectionError):
                await self._writer.drain()
            self._writer.close()

    def report_ready(self) -> None:
        """Tell the supervisor that this worker responds to requests."""
        _send(self._writer, {"kind": "ready"})

    async def add_others(self, text: str) -> str:
        """Return the metrics `text` of this process with the metrics of all others. Raises Unavailable."""
        number = next(self._numbers)
        total: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._asked[number] = total
        try:
            _send(self._writer, {"kind": "total", "number": number, "text": text})
            async with asyncio.timeout(_TOTAL_SECONDS):
                return await total
        except TimeoutError:
            raise Unavailable("The supervisor does not respond") from None
        finally:
            self._asked.pop(number, None)


# --- The metrics of all workers ---------------------------------------------------------------------------------------


Rule = Literal["sum", "largest", "smallest", "own"]

# What a gauge of several workers is; counters and histograms are added. `own`: of the worker that answers, for
# what is the same in all of them.
GAUGES: dict[str, Rule] = {
    "backup_age_seconds": "own",
    "change_log_oldest_pending_seconds": "own",
    "change_log_pending": "own",
    "check_ins_due": "own",
    "check_ins_oldest_due_seconds": "own",
    "coaching_service_build_info": "largest",
    "database_connections_in_use": "sum",
    "database_connections_open": "sum",
    "database_connections_waiting": "sum",
    "disk_free_bytes": "own",
    "disk_size_bytes": "own",
    "erasures_pending": "own",
    "figures_due": "own",
    "figures_oldest_due_seconds": "own",
    "files_stored_bytes": "own",
    "http_requests_in_flight": "sum",
    "jobs_oldest_pending_seconds": "own",
    "jobs_pending": "own",
    "mail_oldest_seconds": "own",
    "notifications_due": "own",
    "notifications_oldest_due_seconds": "own",
    "process_max_fds": "smallest",
    "process_open_fds": "largest",
    "process_resident_memory_bytes": "sum",
    "process_start_time_seconds": "smallest",
    "process_virtual_memory_bytes": "sum",
    "request_queue_waiting": "sum",
    "verify_age_seconds": "own",
    "webhook_deliveries_pending": "own",
    "webhook_oldest_pending_seconds": "own",
    "work_failing": "own",
    "workers_running": "largest",
}
_COMBINE: dict[Rule, Callable[[float, float], float]] = {
    "sum": lambda first, second: first + second,
    "largest": max,
    "smallest": min,
    "own": lambda first, _: first,
}


@dataclass
class _Family:
    """A metric with its series; `lines` are its comments."""

    name: str
    kind: str = ""
    lines: list[str] = field(default_factory=list)
    series: dict[str, float] = field(default_factory=dict)


def add_up(own: str, others: Iterable[str]) -> str:
    """Return the metrics `own` with the metrics of other workers, each in the text format."""
    families = _parse(own)
    for text in others:
        for name, family in _parse(text).items():
            total = families.setdefault(name, family)
            if total is not family:
                combine = _COMBINE[GAUGES.get(name, "own") if family.kind == "gauge" else "sum"]
                for series, value in family.series.items():
                    total.series[series] = combine(total.series[series], value) if series in total.series else value
    return _format(families.values())


def totals_of(texts: Iterable[str]) -> str:
    """Return the sums of what only grows: what remains of workers that have ended."""
    families = _parse(add_up("", texts))
    return _format(family for family in families.values() if family.kind != "gauge")


def _parse(text: str) -> dict[str, _Family]:
    families: dict[str, _Family] = {}
    family = _Family("")
    for line in text.splitlines():
        if line.startswith("# "):
            _, word, name, rest = line.split(" ", 3)
            if name != family.name:
                family = families[name] = _Family(name)
            family.lines.append(line)
            if word == "TYPE":
                family.kind = rest
        elif line:
            series, _, value = line.rpartition(" ")
            family.series[series] = float(value)
    return families


def _format(families: Iterable[_Family]) -> str:
    lines: list[str] = []
    for family in families:
        lines += family.lines
        for series, value in family.series.items():
            text = {inf: "+Inf", -inf: "-Inf"}.get(value, repr(value))
            lines.append(f"{series} {'NaN' if isnan(value) else text}")
    return "\n".join([*lines, ""])


# --- One worker process, as the supervisor sees it --------------------------------------------------------------------


_REPORT_SECONDS = 1.0


class Worker:
    """A process that serves requests.

    `metrics` as it reported them last. `is_expected_to_end` once it has been asked to end. `has_decided` is set
    when it serves requests or has ended.
    """

    def __init__(self, instructions: Instructions, owner: Supervisor) -> None:
        """Start the process. Raises OSError."""
        self.number = instructions.worker
        self.metrics = ""
        self.is_expected_to_end = False
        self.ready_at: float | None = None
        self.has_decided = asyncio.Event()
        self.has_ended = asyncio.Event()
        self._owner = owner
        self._has_reported = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None
        self._totals: set[asyncio.Task[None]] = set()
        own, its = socket.socketpair()
        plan = instructions.plan
        sockets = [number for number in (plan.listening, plan.metrics_listening) if number is not None]
        with its:
            own.sendall(json.dumps(asdict(instructions)).encode() + b"\n")
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-m", "coaching_service", "serve", "--worker-socket", str(its.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=(its.fileno(), *sockets),
                process_group=0,  # Ctrl-C in the terminal must only reach the supervisor
            )
        self._following = asyncio.create_task(self._follow(own))
        loop = asyncio.get_running_loop()

        def wait() -> None:
            self._process.wait()
            with suppress(RuntimeError):  # the supervisor has ended meanwhile
                loop.call_soon_threadsafe(self._report_end)

        threading.Thread(target=wait, daemon=True).start()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def exit_code(self) -> int:
        """The exit code once it has ended; the negative number of the signal that has ended it."""
        return self._process.returncode

    def describe_end(self) -> str:
        """Return why the process has ended."""
        code = self._process.returncode
        if code >= 0:
            return f"exit code {code}"
        with suppress(ValueError):
            return f"signal {signal.Signals(-code).name}"
        return f"signal {-code}"

    async def becomes_ready(self) -> bool:
        """Wait until the worker serves requests or has ended; returns whether it serves them."""
        await self.has_decided.wait()
        return self.ready_at is not None and not self.has_ended.is_set()

    def retire(self) -> None:
        """Let the process end once it has answered its requests; others have to serve new connections."""
        self.is_expected_to_end = True
        _send(self._writer, {"kind": "retire"})

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Let the process end as on SIGTERM, or by another signal."""
        self.is_expected_to_end = True
        if self._process.poll() is None:
            self._process.send_signal(number)

    async def ends_within(self, seconds: float) -> bool:
        """Wait until the process has ended; returns whether it has."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.has_ended.wait()
        return self.has_ended.is_set()

    async def report(self) -> str:
        """Return the metrics of the process: the last ones if it does not respond."""
        if self.ready_at is None or self.has_ended.is_set():
            return self.metrics
        self._has_reported.clear()
        _send(self._writer, {"kind": "report"})
        with suppress(TimeoutError):
            async with asyncio.timeout(_REPORT_SECONDS):
                await self._has_reported.wait()
        return self.metrics

    def _report_end(self) -> None:
        async def report() -> None:
            await asyncio.wait((self._following,), timeout=_REPORT_SECONDS)  # for its last metrics
            self.has_ended.set()
            self.has_decided.set()
            self._has_reported.set()
            self._owner.on_end(self)

        self._ending = asyncio.create_task(report())

    async def _follow(self, own: socket.socket) -> None:
        """Read what the process sends, until it closes the connection."""
        reader, self._writer = await asyncio.open_unix_connection(sock=own, limit=MAX_MESSAGE_BYTES)

        async def answer(number: int, text: str) -> None:
            _send(self._writer, {"kind": "total", "number": number, "text": await self._owner.total(self, text)})

        with suppress(ConnectionError):
            async for line in reader:
                message = json.loads(line)
                if message["kind"] == "ready":
                    self.ready_at = time.monotonic()
                    self.has_decided.set()
                    continue
                self.metrics = message["text"]
                if message["kind"] == "metrics":
                    self._has_reported.set()
                else:
                    _run_task(answer(message["number"], message["text"]), self._totals)
        self._writer.close()


def _run_task(work: Coroutine[None, None, None], tasks: set[asyncio.Task[None]]) -> None:
    """Run a task that is among `tasks` until it ends."""
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)


_FORCED_END_SECONDS = 2.5  # after SHUTDOWN_SECONDS; a worker ends by itself after 2
_LOST_DATABASE_SECONDS = 2.0
_PAUSES = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)  # before a worker that ends again and again is started the next time
_STABLE_SECONDS = 60.0

log = structlog.get_logger("coaching_service.supervisor")


class Supervisor:
    """Runs the workers of a plan, on the embedded database with this address if there is one."""

    def __init__(self, plan: Plan, embedded: str | None, is_database_lost: Callable[[], bool] = bool) -> None:
        """`is_database_lost` returns whether the embedded database has ended by itself; bool() is False."""
        self._plan, self._embedded, self._is_database_lost = plan, embedded, is_database_lost
        self._current: dict[int, Worker] = {}
        self._all: set[Worker] = set()
        self._locks: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._failures: defaultdict[int, int] = defaultdict(int)
        self._stop = asyncio.Event()
        self._reload = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._reporting = asyncio.Lock()
        self._ended_metrics = ""
        self._failure_count = 0
        self._started_at = time.time()

    async def run(self, *, reloads: bool) -> int:
        """Run until SIGTERM or SIGINT, and return the exit code; with `reloads`, SIGHUP replaces the workers."""
        loop = asyncio.get_running_loop()
        for stop_signal in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(stop_signal, self._stop.set)
        loop.add_signal_handler(signal.SIGHUP, self._reload.set if reloads else self._stop.set)
        first = self._current[1] = self._start(1, prepares=True, listens_at_once=True)
        stopping = asyncio.create_task(self._stop.wait())
        starting = asyncio.create_task(first.becomes_ready())
        await asyncio.wait((stopping, starting), return_when=asyncio.FIRST_COMPLETED)
        if not stopping.done() and not starting.result():
            if first.exit_code < 0:  # otherwise it has said why
                log.error("the service does not start: its first worker has ended", reason=first.describe_end())
            return max(1, first.exit_code)
        if not stopping.done():
            log.info("a worker is ready", worker=1, pid=first.pid)
            for number in range(2, self._plan.workers + 1):
                _run_task(self._fill(number, 0.0), self._tasks)
            _run_task(self._replace_on_request(), self._tasks)
            await stopping
        await self._stop_all()
        return 0

    def on_end(self, worker: Worker) -> None:
        """Replace a worker that has ended by itself, after a pause if that happens repeatedly."""
        self._all.discard(worker)
        self._ended_metrics = totals_of([self._ended_metrics, worker.metrics])
        # Without the one that prepares the database, the service does not start.
        is_initial = worker.number == 1 and len(self._current) == 1 and worker.ready_at is None
        is_current = self._current.get(worker.number) is worker and not is_initial
        if worker.is_expected_to_end or self._stop.is_set() or not is_current:
            return
        self._failure_count += 1
        number = worker.number
        if worker.ready_at is not None and time.monotonic() - worker.ready_at > _STABLE_SECONDS:
            self._failures[number] = 0
        pause = _PAUSES[min(self._failures[number], len(_PAUSES) - 1)]
        self._failures[number] += 1
        log.error(
            "a worker has ended by itself and is replaced",
            worker=number,
            pid=worker.pid,
            reason=worker.describe_end(),
            pause_seconds=pause,
        )
        _run_task(self._fill(number, pause), self._tasks)

    async def total(self, asking: Worker, text: str) -> str:
        """Return the metrics of all workers; `text` has the metrics of the worker that asks."""
        async with self._reporting:
            ended = self._ended_metrics  # without those that end meanwhile, and are among the others
            others = await asyncio.gather(*(each.report() for each in self._all if each is not asking))
            running = sum(each.ready_at is not None for each in self._all)
            own = (
                f"# TYPE workers_running gauge\nworkers_running {running}\n"
                f"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds {self._started_at}\n"
                f"# TYPE worker_failures_total counter\nworker_failures_total {self._failure_count}\n"
            )
            return add_up(text, [*others, ended, own])

    def _start(self, number: int, *, prepares: bool = False, listens_at_once: bool = False) -> Worker:
        worker = Worker(Instructions(self._plan, number, prepares, listens_at_once, self._embedded), self)
        self._all.add(worker)
        return worker

    async def _fill(self, number: int, pause: float) -> None:
        """Start the worker of this number after a pause, unless it runs by then."""
        await asyncio.sleep(pause)
        async with self._locks[number]:
            running = self._current.get(number)
            if (running is not None and not running.has_ended.is_set()) or self._stop.is_set():
                return
            try:
                worker = self._current[number] = self._start(number)
            except OSError as error:
                log.error("a worker cannot be started", worker=number, reason=error.strerror)  # noqa: TRY400
                _run_task(self._fill(number, _PAUSES[-1]), self._tasks)
                return
            if await worker.becomes_ready():
                log.info("a worker is ready", worker=number, pid=worker.pid)

    async def _replace_on_request(self) -> None:
        while True:
            await self._reload.wait()
            self._reload.clear()
            log.info("the workers are replaced")
            for number in range(1, self._plan.workers + 1):
                if not await self._replace(number, prepares=number == 1):
                    break
            else:
                log.info("the workers have been replaced")

    async def _replace(self, number: int, *, prepares: bool) -> bool:
        """Replace a worker once its successor serves requests; returns whether there is one."""
        async with self._locks[number]:
            old, new = self._current.get(number), self._start(number, prepares=prepares)
            if not await new.becomes_ready():
                if not self._stop.is_set():
                    log.error("the workers are not replaced: a new one has ended", reason=new.describe_end())
                return False
            self._current[number] = new
            log.info("a worker is ready", worker=number, pid=new.pid)
            if old is not None and not old.has_ended.is_set():
                old.retire()
                shutdown = self._plan.shutdown_seconds
                if not await old.ends_within(retire_seconds(shutdown) + shutdown + _FORCED_END_SECONDS):
                    old.stop(signal.SIGKILL)
                    await old.has_ended.wait()
            return True

    async def _stop_all(self) -> None:
        for task in self._tasks:
            task.cancel()
        for worker in self._all:
            worker.stop()
        usual = self._plan.shutdown_seconds + _FORCED_END_SECONDS
        limit = _LOST_DATABASE_SECONDS if self._is_database_lost() else usual
        await asyncio.gather(*(worker.ends_within(limit) for worker in self._all))
        for worker in list(self._all):
            log.error("stopping took too long; killing the worker", worker=worker.number)
            worker.stop(signal.SIGKILL)
            await worker.has_ended.wait()


# --- The program of the supervisor ------------------------------------------------------------------------------------


def replace_process(plan: Plan) -> NoReturn:
    """Continue this process as the supervisor: it needs a third of the memory without the modules of the service."""
    plan.let_inherit(inheritable=True)
    sys.stdout.flush()
    sys.stderr.flush()
    command = [sys.executable, "-m", "coaching_service.supervisor", json.dumps(asdict(plan))]
    os.execv(sys.executable, command)  # noqa: S606 - our own program


def main() -> None:
    """Run the plan in the first argument, whose sockets children do not inherit any more."""
    plan = Plan(**json.loads(sys.argv[1]))
    plan.let_inherit(inheritable=False)
    logs.configure(plan.log_format, plan.log_level)
    code = _run_on_embedded(plan) if plan.is_embedded else asyncio.run(_run(plan, None))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


async def _run(plan: Plan, embedded: str | None, is_database_lost: Callable[[], bool] = bool) -> int:
    # Closing the terminal sends SIGHUP, and then the service has to end.
    reloads = sys.stdin is None or not sys.stdin.isatty()
    return await Supervisor(plan, embedded, is_database_lost).run(reloads=reloads)


def _run_on_embedded(plan: Plan) -> int:
    # The driver is only imported here: with another database the supervisor does not need it.
    from coaching_service.installation.embedded import DatabaseUnavailable, running_mongod

    is_lost = threading.Event()

    def on_end(reason: str) -> None:
        log.error("the embedded database has ended by itself", reason=reason)
        is_lost.set()
        os.kill(os.getpid(), signal.SIGTERM)

    try:
        with running_mongod(Path(plan.data_dir), on_end=on_end) as uri:
            return asyncio.run(_run(plan, uri, is_lost.is_set))
    except DatabaseUnavailable as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1


if __name__ == "__main__":
    main()
