"""A small version of the proof with a moved clock: both changes of the clocks, and processes that are killed."""

from __future__ import annotations

from pathlib import Path

from coaching_service.settings import Settings
from tests.notifications import moved_clock
from tests.support.databases import new_database


async def test_reminders_are_sent_once_and_in_time_by_processes_that_are_killed(
    settings: Settings, tmp_path: Path
) -> None:
    """The program has the limit of a minute; here a machine may be slow."""
    async with new_database(settings, "clock") as (own, services):
        result = await moved_clock.run(own, services, tmp_path, clients=12, days=11, kills=3, limit=1_800)
    assert result.problems == []
    assert result.sent > 80
    assert result.silent > 10
