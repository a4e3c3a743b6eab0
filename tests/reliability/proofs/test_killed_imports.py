"""An import whose process is killed again and again stores what an uninterrupted one does."""

from __future__ import annotations

import random

import pytest

from coaching_service import features
from coaching_service.integrations.company_import import service as company_import
from tests.integrations.test_round_trip import names_of_shared, prepared
from tests.support.archive_graph import find_bijection, graph_of
from tests.support.client import CoachClient
from tests.support.database_proxy import Moment
from tests.support.job_worker import worker
from tests.support.own_application import OwnApplication
from tests.support.portable_company import make_company
from tests.support.transfer import ended, export, import_file, make_zip, send

KILLS = 5


async def test_import_that_is_killed_five_times_equals_an_uninterrupted_one(
    application: OwnApplication, coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_company(coach)
    archive = make_zip(await export(coach))
    calm, killed = await application.new_coach(), await application.new_coach()
    expected = await import_file(calm, archive)
    step = features.STEPS[company_import.IMPORT]
    monkeypatch.delitem(features.STEPS, company_import.IMPORT)  # this process does not continue the import
    job = (await send(killed, archive)).ok(202)
    seed = random.randrange(10_000)
    print(f"seed {seed}")  # shown when the test fails
    chance = random.Random(seed)

    async with worker(application.settings, company_import.IMPORT) as process:
        for _ in range(KILLS):
            command, collection = chance.choice([("commitTransaction", None), ("insert", "fs.chunks")])
            moment = Moment(command, collection, count=chance.randint(1, 7), done=chance.random() < 0.5)
            await process.kill_at(killed, moment)
    monkeypatch.setitem(features.STEPS, company_import.IMPORT, step)
    job = await ended(killed, job)

    for name in ("status", "done", "total", "result", "errors"):
        assert job[name] == expected[name], name
    shared = await names_of_shared(coach)
    first, second = prepared(await export(calm)), prepared(await export(killed))
    find_bijection(graph_of(first, shared), graph_of(second, shared))
    assert (await killed.customers())["totalDocs"] == 2
    assert (await count_files(killed), await count_files(calm)) == (62, 62)
    for each in (calm, killed):
        await each.close()


async def count_files(coach: CoachClient) -> int:
    """The number of the files of records, thumbnails included; a job deletes those that were not attached."""
    attached = {"companyId": coach.ctx.company_id, "pending": {"$ne": True}}
    count: int = await coach.ctx.db["fs.files"].count_documents(attached)
    return count
