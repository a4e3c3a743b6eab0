"""The faults, one after another, with time to recover in between."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import cycle

from tests.reliability.deployment import Node
from tests.reliability.torture.database import Members
from tests.reliability.torture.ledger import Fault, Ledger

CALM_SECONDS = 8.0
# Longer than an election takes with the default of MongoDB, and shorter than two.
LONG_SECONDS, SHORT_SECONDS = 16.0, 8.0
# The longest pause of writes after each fault, in seconds. RECOVERED: the most that any fault may cause. A frozen secondary
# pauses them while another one replicates from it, until that one chooses another source.
KILLED_PRIMARY, STEPPED_DOWN, FROZEN_PRIMARY, MAJORITY_LEFT = 12.0, 2.0, 15.0, 3.0
RECOVERED = 15.0
# How long the last fault takes at most, with the time to recover.
LONGEST_SECONDS = 40.0


class Faults:
    """Causes the faults in turn until a moment of the monotonic clock."""

    def __init__(self, members: Members, nodes: list[Node], ledger: Ledger) -> None:
        self.members, self.nodes, self.ledger = members, nodes, ledger
        self.kinds: list[tuple[Fault, Callable[[Fault], Awaitable[None]]]] = [
            (Fault("primary killed (kill -9)", KILLED_PRIMARY), self._kill_primary),
            (Fault("primary stepped down", STEPPED_DOWN), self._step_down),
            (Fault("secondary cut off from the network", MAJORITY_LEFT), self._cut_secondary),
            (Fault("primary frozen (SIGSTOP)", FROZEN_PRIMARY), self._freeze_primary),
            (Fault("no majority: both secondaries frozen", RECOVERED, outage=True), self._freeze_secondaries),
            (Fault("process of the service killed (kill -9)", MAJORITY_LEFT), self._kill_service),
            (Fault("secondary frozen (SIGSTOP)", RECOVERED), self._freeze_secondary),
            (Fault("primary and both processes killed (kill -9)", RECOVERED), self._kill_primary_and_services),
            (Fault("primary cut off from the network", FROZEN_PRIMARY), self._cut_primary),
            (Fault("no majority: both secondaries cut off", RECOVERED, outage=True), self._cut_secondaries),
            (Fault("database frozen (SIGSTOP)", RECOVERED, outage=True), self._freeze_all),
            (Fault("database killed (kill -9)", RECOVERED, outage=True), self._kill_all),
        ]

    async def run(self, until: float, report: Callable[[str], None], only: Sequence[str] = ()) -> None:
        """Cause each fault in turn; with `only`, those whose name has one of these texts. Raises ValueError if none has."""
        kinds = [each for each in self.kinds if not only or any(text in each[0].name for text in only)]
        if not kinds:
            raise ValueError(f"no fault is named {' or '.join(only)}")
        for kind, cause in cycle(kinds):
            if time.monotonic() >= until:
                break
            fault = Fault(kind.name, kind.limit_seconds, kind.outage)
            report(fault.name)
            await cause(fault)
            await asyncio.sleep(CALM_SECONDS)
            fault.over = time.monotonic()

    def _begin(self, fault: Fault) -> None:
        """Record that the fault begins now, when its target is known."""
        fault.began = fault.lifted = time.monotonic()
        self.ledger.faults.append(fault)

    async def _kill_primary(self, fault: Fault) -> None:
        port = await self.members.find_primary()
        self._begin(fault)
        self.members.kill(port)
        await asyncio.sleep(LONG_SECONDS)
        self.members.start(port)

    async def _step_down(self, fault: Fault) -> None:
        port = await self.members.find_primary()
        self._begin(fault)
        await asyncio.to_thread(self.members.step_down, port)

    async def _freeze_primary(self, fault: Fault) -> None:
        await self._freeze(fault, LONG_SECONDS, await self.members.find_primary())

    async def _freeze_secondary(self, fault: Fault) -> None:
        await self._freeze(fault, SHORT_SECONDS, (await self.members.find_secondaries())[0])

    async def _freeze_secondaries(self, fault: Fault) -> None:
        await self._freeze(fault, LONG_SECONDS, *await self.members.find_secondaries())

    async def _freeze_all(self, fault: Fault) -> None:
        await self._freeze(fault, SHORT_SECONDS, *self.members.members)

    async def _freeze(self, fault: Fault, seconds: float, *ports: int) -> None:
        self._begin(fault)
        self.members.freeze(*ports)
        await self._release_after(fault, seconds)

    async def _cut_primary(self, fault: Fault) -> None:
        await self._cut(fault, LONG_SECONDS, await self.members.find_primary())

    async def _cut_secondary(self, fault: Fault) -> None:
        await self._cut(fault, SHORT_SECONDS, (await self.members.find_secondaries())[0])

    async def _cut_secondaries(self, fault: Fault) -> None:
        await self._cut(fault, LONG_SECONDS, *await self.members.find_secondaries())

    async def _cut(self, fault: Fault, seconds: float, *ports: int) -> None:
        self._begin(fault)
        self.members.cut_off(*ports)
        await self._release_after(fault, seconds)

    async def _release_after(self, fault: Fault, seconds: float) -> None:
        await asyncio.sleep(seconds)
        fault.lifted = time.monotonic()
        self.members.release()
        await self.members.find_primary()

    async def _kill_all(self, fault: Fault) -> None:
        ports = list(self.members.members)
        self._begin(fault)
        self.members.kill(*ports)
        await asyncio.sleep(SHORT_SECONDS)
        self.members.start(*ports)
        await self.members.all_respond()
        fault.lifted = time.monotonic()
        await self.members.find_primary()

    async def _kill_service(self, fault: Fault) -> None:
        self._begin(fault)
        await self._restart(fault, 0)

    async def _kill_primary_and_services(self, fault: Fault) -> None:
        port = await self.members.find_primary()
        self._begin(fault)
        self.members.kill(port)
        restarted = asyncio.create_task(self._restart(fault, *range(len(self.nodes))))
        self.members.start(port)
        await restarted

    async def _restart(self, fault: Fault, *numbers: int) -> None:
        """Kill processes of the service, and start them again as a supervisor would."""
        fault.killed = numbers
        for number in numbers:
            await self.nodes[number].end(signal.SIGKILL)
        await asyncio.gather(*(self.nodes[number].start() for number in numbers))
