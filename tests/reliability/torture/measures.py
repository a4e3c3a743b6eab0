"""Times computed from the ledger, in seconds: pauses of writes, failures, and what /readyz said meanwhile."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import groupby, pairwise

from tests.reliability.torture.ledger import Exchange, Fault, Ledger, Readiness


class Measures:
    """The measures of one ledger, which does not change any more."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.nodes = sorted({each.node for each in ledger.exchanges})
        self._successes = {
            node: sorted(each.ended for each in ledger.exchanges if each.is_successful_write and each.node == node)
            for node in self.nodes
        }
        self._all_successes = sorted(moment for each in self._successes.values() for moment in each)

    def recovery(self, fault: Fault) -> float | None:
        """The longest pause of successful writes after a fault, of any process that was not killed.

        None if no write succeeded any more. If all were killed: the pause of the service as a whole.
        """
        survivors = [node for node in self.nodes if node not in fault.killed]
        of_each = [self._successes[node] for node in survivors] or [self._all_successes]
        pauses = [
            _longest_pause(moments, fault.lifted if fault.outage else fault.began, fault.over) for moments in of_each
        ]
        return None if None in pauses else max(pause for pause in pauses if pause is not None)

    def writes_during(self, fault: Fault) -> list[Exchange]:
        """The writes that were begun and succeeded during an outage."""
        return [
            each
            for each in self._ledger.exchanges
            if each.is_successful_write and fault.began < each.began and each.ended < fault.lifted
        ]

    def slowest(self, *, failed: bool) -> Exchange | None:
        """The longest request that failed, or the longest of the others: they succeeded, or their process was killed."""
        chosen = (each for each in self._ledger.exchanges if each.is_failure == failed)
        return max(chosen, default=None, key=self.waited)

    def waited(self, exchange: Exchange) -> float:
        """How long a request took; if it failed, since the last fault before its end began, or since it was sent."""
        fault = self.fault_at(exchange.ended)
        began = max(exchange.began, fault.began) if exchange.is_failure and fault else exchange.began
        return exchange.ended - began

    def fault_at(self, moment: float) -> Fault | None:
        """The last fault before a moment."""
        return next((fault for fault in reversed(self._ledger.faults) if fault.began <= moment), None)

    def longest_readiness_check(self) -> float:
        """The longest time /readyz took."""
        return max((each.ended - each.began for each in self._ledger.readiness), default=0.0)

    def longest_wrongly_ready(self) -> float:
        """The longest time a process said at each check that it was ready, and no write to it succeeded."""
        return max((self._wrongly_ready(node, run) for node, run in self._runs(is_ready=True)), default=0.0)

    def longest_wrongly_unready(self) -> float:
        """The longest time a process said at each check that it was not ready, and writes to it succeeded."""
        return max((self._wrongly_unready(node, run) for node, run in self._runs(is_ready=False)), default=0.0)

    def ready_during(self, fault: Fault, after: float) -> int:
        """How often a process said during an outage, so long after it began, that it was ready."""
        return sum(
            each.is_ready and fault.began + after < each.began and each.ended < fault.lifted
            for each in self._ledger.readiness
        )

    def _runs(self, *, is_ready: bool) -> Iterable[tuple[int, list[Readiness]]]:
        """The successive checks of a process with the same outcome."""
        for node in self.nodes:
            checks = sorted((each for each in self._ledger.readiness if each.node == node), key=lambda each: each.began)
            for outcome, run in groupby(checks, lambda each: each.is_ready):
                if outcome == is_ready:
                    yield node, list(run)

    def _wrongly_ready(self, node: int, run: list[Readiness]) -> float:
        successes, longest = self._successes[node], 0.0
        for check in run:
            before = bisect_right(successes, check.began)
            last = successes[before - 1] if before else run[0].began
            longest = max(longest, check.began - max(last, run[0].began))
        return longest

    def _wrongly_unready(self, node: int, run: list[Readiness]) -> float:
        successes = self._successes[node]
        first = bisect_left(successes, run[0].ended)
        return max(0.0, run[-1].began - successes[first]) if first < len(successes) else 0.0


def _longest_pause(successes: list[float], begin: float, end: float) -> float | None:
    """The longest time without a success from `begin` to `end`; None if there is none at all."""
    within = successes[bisect_left(successes, begin) : bisect_right(successes, end)]
    return max(later - earlier for earlier, later in pairwise([begin, *within, end])) if within else None
