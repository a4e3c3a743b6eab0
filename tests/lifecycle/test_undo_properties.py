"""Any sequence of operations that can be undone, undone in reverse, restores every stored document."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support.client import CoachClient
from tests.support.sampled import MORE
from tests.support.undoable_operations import OPERATIONS, Company

EXAMPLES = 3 * MORE if MORE > 1 else 2
MAX_OPERATIONS = 25
OFTEN = [*6 * ["log_item"], "add_item", "change_block", "change_program", "change_schedule", "move_item", "shift"]

sequences = st.lists(
    st.tuples(st.sampled_from([*sorted(OPERATIONS), *OFTEN]), st.integers(0, 2**20)),
    min_size=8,
    max_size=MAX_OPERATIONS,
)


class Restoring:
    """Carries out sequences of operations and undoes them, in one company while that leaves it as it was."""

    def __init__(self, coach: CoachClient) -> None:
        self.coach, self.company = coach, Company(coach)

    async def check(self, sequence: list[tuple[str, int]]) -> None:
        """Assert that the state before each operation is there again after its undo."""
        changes: list[tuple[str, str, dict[str, Any]]] = []
        state = await self.company.state()
        for name, seed in sequence:
            reply = await OPERATIONS[name](self.company, random.Random(seed))
            assert reply is None or reply.status < 500 or reply.json["code"] == "METRICS_SET_MISSING", (name, reply.raw)
            if reply is not None and "X-Change-Id" in reply.headers:
                changes.append((name, reply.headers["X-Change-Id"], state))
                state = await self.company.state()
        for name, change_id, before in reversed(changes):
            result = (await self.coach.post(f"/coach/changes/{change_id}/undo")).ok()
            assert result["failed"] == [], name
            assert differences(before, await self.company.state()) == {}, name


def differences(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The documents that differ, before and after, by collection."""
    return {
        name: {
            key: (before[name].get(key), after[name].get(key))
            for key in {*before[name], *after[name]}
            if before[name].get(key) != after[name].get(key)
        }
        for name in before
        if before[name] != after[name]
    }


async def test_operations_undone_in_reverse_restore_every_document(new_company: Any) -> None:
    """Two sequences are tried, in the proofs thirty."""
    loop = asyncio.get_running_loop()
    used: list[Restoring] = []

    async def check(sequence: list[tuple[str, int]]) -> None:
        if not used:
            coach = await new_company()
            await Company.create(coach)
            used.append(Restoring(coach))
        restoring = used.pop()
        await restoring.check(sequence)
        used.append(restoring)  # only if all is as it was

    # Shrinking a failure would found a company for each attempt, and take minutes.
    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
    @given(sequences)
    def run(sequence: list[tuple[str, int]]) -> None:
        asyncio.run_coroutine_threadsafe(check(sequence), loop).result(120)

    await asyncio.to_thread(run)
