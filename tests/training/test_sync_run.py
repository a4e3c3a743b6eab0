"""Nothing done, past or customised changes by a sync that does not include it, whatever was edited before."""

from __future__ import annotations

import os

from tests.support.client import CoachClient
from tests.support.sampled import MORE
from tests.training.sync_run import EDITS, SEED, run


async def test_random_edits_with_syncs_between_them(coach: CoachClient) -> None:
    counts = await run(
        coach, int(os.environ.get(EDITS, str(75 * MORE if MORE > 1 else 36))), int(os.environ.get(SEED, "11"))
    )
    print(f"\n{dict(counts)}")
    assert counts["syncs"] and counts["undone"] and counts["workouts changed, added or removed"]
