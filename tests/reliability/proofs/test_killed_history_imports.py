"""An import of history whose process is killed again and again stores what an uninterrupted one does, once."""

from __future__ import annotations

import random
from typing import Any

import pytest

from coaching_service import features
from coaching_service.integrations.company_import import service as company_import
from tests.support.client import CoachClient
from tests.support.database_proxy import Moment
from tests.support.job_worker import worker
from tests.support.own_application import OwnApplication
from tests.support.transfer import ended, import_file, send

KILLS = 5
ROWS = "\n".join(
    ["Client,Date,Workout,Exercise,Reps,Weight (kg)"]
    + [
        f"{client},2024-{day % 12 + 1:02}-{day % 28 + 1:02},Session {day},{exercise},5,{40 + day % 60}"
        for client in ("Ana", "Bo")
        for day in range(250)
        for exercise in ("Squat", "Flurbing")
    ]
)


async def test_history_that_is_killed_five_times_is_imported_once(
    application: OwnApplication, coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    customers = [await coach.create_customer(name) for name in ("Ana", "Bo")]
    step = features.STEPS[company_import.IMPORT]
    monkeypatch.delitem(features.STEPS, company_import.IMPORT)  # this process does not continue the import
    job = (await send(coach, ROWS.encode(), name="sets.csv")).ok(202)
    seed = random.randrange(10_000)
    print(f"seed {seed}")  # shown when the test fails
    chance = random.Random(seed)

    async with worker(application.settings, company_import.IMPORT) as process:
        for _ in range(KILLS):
            moment = Moment("commitTransaction", None, count=1, done=chance.random() < 0.5)
            await process.kill_at(coach, moment)
    monkeypatch.setitem(features.STEPS, company_import.IMPORT, step)
    job = await ended(coach, job)

    assert (job["status"], job["errors"], job["done"]) == ("done", [], 1000)
    assert job["result"]["created"] == {"customers": 0, "sessions": 500, "sets": 1000, "exercises": 1}
    for customer in customers:
        assert await count_sets(coach, customer) == 500
    again = await import_file(coach, ROWS.encode(), name="sets.csv")
    assert again["result"]["created"]["sessions"] == 0


async def count_sets(coach: CoachClient, customer: dict[str, Any]) -> int:
    path = f"/coach/customers/{customer['_id']}/wblock"
    blocks = (await coach.get(path, startDate="2024-01-01", endDate="2024-12-31")).ok()
    return sum(len(item["customerSets"]) for block in blocks for item in block["items"])
