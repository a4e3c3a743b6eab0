"""The faults, one after another, with time to recover in between."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable

from tests.reliability.deployment import Node
from tests.reliability.torture.database import Members
from tests.reliability.torture.ledger import Fault, Ledger

CALM_SECONDS = 12.0
FROZEN_SECONDS = 15.0
# The longest time without a successful write after each fault (issue and docs/promises.md), in seconds.
KILLED_PRIMARY, STEPPED_DOWN, FROZEN_PRIMARY, NOTHING_LOST, RESTARTED = 12.0, 2.0, 15.0, 3.0, 12.0


class Faults:
    """Causes the faults in turn until a moment of the monotonic clock."""

    def __init__(self, members: Members, nodes: list[Node], ledger: Ledger) -> None:
        self.members, self.nodes, self.ledger = members, nodes, ledger

    async def run(self, until: float, report: Callable[[str], None]) -> None:
        """Cause each fault in turn."""
        kinds: list[tuple[str, float, Callable[[], Awaitable[None]]]] = [
            ("kill -9 of the primary", KILLED_PRIMARY, self._kill_primary),
            ("step-down of the primary", STEPPED_DOWN, self._step_down),
            ("frozen primary", FROZEN_PRIMARY, self._freeze_primary),
            ("frozen secondary", NOTHING_LOST, self._freeze_secondary),
            ("kill -9 of a process of the service", NOTHING_LOST, self._kill_service),
            ("kill -9 of the primary and of both processes", RESTARTED, self._kill_everything),
        ]
        number = 0
        while time.monotonic() < until:
            name, limit, cause = kinds[number % len(kinds)]
            report(name)
            self.ledger.faults.append(Fault(name, time.monotonic(), limit))
            await cause()
            await asyncio.sleep(CALM_SECONDS)
            number += 1

    async def _kill_primary(self) -> None:
        port = await asyncio.to_thread(self.members.primary)
        self._begin()
        await asyncio.to_thread(self.members.kill, port)
        await asyncio.sleep(FROZEN_SECONDS)
        self.members.start(port)

    async def _step_down(self) -> None:
        self._begin()
        await asyncio.to_thread(self.members.step_down)

    async def _freeze_primary(self) -> None:
        await self._freeze(await asyncio.to_thread(self.members.primary))

    async def _freeze_secondary(self) -> None:
        await self._freeze(await asyncio.to_thread(self.members.secondary))

    async def _freeze(self, port: int) -> None:
        self._begin()
        self.members.freeze(port)
        await asyncio.sleep(FROZEN_SECONDS)
        await asyncio.to_thread(self.members.thaw)

    async def _kill_service(self) -> None:
        self._begin()
        await self.nodes[0].end(signal.SIGKILL)
        await self.nodes[0].start()

    async def _kill_everything(self) -> None:
        port = await asyncio.to_thread(self.members.primary)
        self._begin()
        await asyncio.to_thread(self.members.kill, port)
        await asyncio.gather(*(node.end(signal.SIGKILL) for node in self.nodes))
        self.members.start(port)
        await asyncio.gather(*(node.start() for node in self.nodes))

    def _begin(self) -> None:
        """Record that the fault begins now, after its target is known."""
        last = self.ledger.faults.pop()
        self.ledger.faults.append(Fault(last.name, time.monotonic(), last.limit_seconds))
