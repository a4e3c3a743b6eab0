"""Keeps a number of workers running, replaces them one after another, and adds up their metrics."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine

import structlog

from coaching_service.core.exposition import add_up, totals_of
from coaching_service.core.worker_connection import Instructions, retire_seconds
from coaching_service.supervisor.plan import Plan
from coaching_service.supervisor.worker import Worker

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
                self._run_task(self._fill(number, 0.0))
            self._run_task(self._replace_on_request())
            await stopping
        await self._stop_all()
        return 0

    def on_end(self, worker: Worker) -> None:
        """Replace a worker that has ended by itself, after a pause if that happens repeatedly."""
        self._all.discard(worker)
        self._ended_metrics = totals_of([self._ended_metrics, worker.metrics])
        is_current = self._current.get(worker.number) is worker and not self._is_initial(worker)
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
        self._run_task(self._fill(number, pause))

    async def total(self, asking: Worker, text: str) -> str:
        """Return the metrics of all workers; `text` has the metrics of the worker that asks."""
        async with self._reporting:
            ended = self._ended_metrics  # without those that end meanwhile, and are among the others
            others = await asyncio.gather(*(each.report() for each in self._all if each is not asking))
            return add_up(text, [*others, ended, self._own_metrics()])

    def _is_initial(self, worker: Worker) -> bool:
        """Return whether this worker prepares the database: without it, the service does not start."""
        return worker.number == 1 and len(self._current) == 1 and worker.ready_at is None

    def _own_metrics(self) -> str:
        running = sum(each.ready_at is not None for each in self._all)
        return (
            f"# TYPE workers_running gauge\nworkers_running {running}\n"
            f"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds {self._started_at}\n"
            f"# TYPE worker_failures_total counter\nworker_failures_total {self._failure_count}\n"
        )

    def _start(self, number: int, *, prepares: bool = False, listens_at_once: bool = False) -> Worker:
        plan = self._plan
        instructions = Instructions(
            number,
            plan.listening,
            plan.metrics_listening,
            prepares,
            listens_at_once,
            plan.with_demo and listens_at_once,
            self._embedded,
            plan.host,
            plan.port,
            plan.data_dir,
        )
        worker = Worker(instructions, self)
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
                self._run_task(self._fill(number, _PAUSES[-1]))
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
        limit = (
            _LOST_DATABASE_SECONDS if self._is_database_lost() else self._plan.shutdown_seconds + _FORCED_END_SECONDS
        )
        await asyncio.gather(*(worker.ends_within(limit) for worker in self._all))
        for worker in list(self._all):
            log.error("stopping took too long; killing the worker", worker=worker.number)
            worker.stop(signal.SIGKILL)
            await worker.has_ended.wait()

    def _run_task(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
