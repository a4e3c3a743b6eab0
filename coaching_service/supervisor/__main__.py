"""The program of the supervisor, which `coaching-service serve` continues as: see `replace_process`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import structlog

from coaching_service import logs
from coaching_service.supervisor.supervisor import Plan, Supervisor, read_plan

log = structlog.get_logger("coaching_service.supervisor")


def main() -> None:
    """Run the plan in the first argument."""
    plan = read_plan(sys.argv[1])
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
    from coaching_service.core.database.embedded import DatabaseUnavailable, running_mongod

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
