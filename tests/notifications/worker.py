"""A process that plans and sends reminders at the time that a file says; the program that starts it kills it."""

from __future__ import annotations

import asyncio
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import time_machine

from coaching_service import features, runtime
from coaching_service.installation.abandoned import aborting_abandoned_transactions
from coaching_service.people import notifications
from coaching_service.settings import Settings
from tests.support.figures import renew_all_figures


def _read(clock: Path) -> str:
    return clock.read_text()


async def work(settings: Settings, clock: Path) -> None:
    """Work until killed."""
    moved: float | None = None
    traveller: time_machine.travel | None = None
    async with runtime.open_services(settings) as services, aborting_abandoned_transactions(services):
        while True:
            # The time that the clock stands at, and the real time at which it began to run from there.
            target, since = map(float, _read(clock).split())
            if target != moved:
                if traveller is not None:
                    traveller.stop()
                moved = target
                traveller = time_machine.travel(datetime.fromtimestamp(target + time.time() - since, UTC), tick=True)
                traveller.start()
            await renew_all_figures(services)
            while await notifications.send_next(services, features.NOTIFICATIONS, features.queue_push):
                pass
            await asyncio.sleep(0.01)  # then look again


if __name__ == "__main__":
    uri, database, key, folder, clock_file = sys.argv[1:]
    asyncio.run(
        work(
            Settings(mongodb_uri=uri, mongodb_database=database, secret_keys=(key,), data_dir=Path(folder)),
            Path(clock_file),
        )
    )
