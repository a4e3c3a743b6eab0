"""A small version of the proof with a moved clock: both changes of the clocks, and processes that are killed."""

from __future__ import annotations

from pathlib import Path

from coaching_service.core.database.context import Context
from coaching_service.people import api_keys, team
from coaching_service.settings import Settings
from tests.notifications import moved_clock
from tests.support.databases import new_database
from tests.support.drill import database_of, require_whole
from tests.support.other_process import running


async def test_reminders_are_sent_once_and_in_time_by_processes_that_are_killed(
    settings: Settings, tmp_path: Path
) -> None:
    """The program has the limit of a minute; here a machine may be slow."""
    async with new_database(settings, "clock") as (own, services):
        result = await moved_clock.run(own, services, tmp_path, clients=12, days=11, kills=3, limit=1_800)
        company = await services.db["companies"].find_one({})
        assert company is not None
        owner = await team.get_owner(services, company["_id"])
        key = (await api_keys.create(Context(services).acting_as(owner), "Test"))["key"]
        async with running(own, key, tmp_path / "after") as process:
            await require_whole(process.base_url, key, **database_of(own))
    assert result.problems == []
    assert result.sent > 80
    assert result.silent > 10
