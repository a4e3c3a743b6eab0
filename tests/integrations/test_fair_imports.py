"""A large import and those of other companies: they take turns, it can be cancelled, and it says how far it is."""

from __future__ import annotations

import pytest

from coaching_service.integrations.company_import import service as company_import
from coaching_service.integrations.history_import import _planning
from tests.conftest import NewCompany
from tests.integrations.test_imports_that_end_early import read, run_now
from tests.support.client import CoachClient
from tests.support.service_process import until
from tests.support.transfer import import_file, send

HEADINGS = "Date,Workout,Exercise,Reps,Weight (kg)\n"


def years(rows: int) -> bytes:
    """A table of sessions with twenty sets each."""
    days = (f"{2000 + each // 7000}-{each // 560 % 12 + 1:02}-{each // 20 % 28 + 1:02}" for each in range(rows))
    return (
        HEADINGS + "".join(f"{day},Full body,Squat,{number % 9 + 1},100\n" for number, day in enumerate(days))
    ).encode()


async def test_a_large_import_lets_others_pass_and_ends_when_it_is_cancelled(
    coach: CoachClient, new_company: NewCompany, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_planning, "STEP_SECONDS", 0.05)
    monkeypatch.setattr(company_import, "_LARGE_BYTES", 10_000)
    ana, other = await coach.create_customer("Ana"), await new_company()
    bo = await other.create_customer("Bo")
    large = (await send(coach, years(60_000), name="years.csv", customerId=ana["_id"], dry_run=True)).ok(202)

    async def is_being_read() -> bool:
        job = await read(coach, large)
        return job["status"] == "running" and 0 < job["done"] <= job["total"]

    await until(is_being_read, "the progress of the reading is shown")
    small = await import_file(other, years(1), name="one.csv", customerId=bo["_id"])
    assert (small["status"], small["result"]["imported"]) == ("done", 1)
    first = await read(coach, large)
    assert first["status"] == "running"
    assert first["result"] is None, "it has not been read yet"

    (await coach.post(f"/coach/jobs/{large['_id']}/cancel")).ok()

    async def is_forgotten() -> bool:
        await run_now(coach, large)
        return not company_import._open

    await until(is_forgotten, "the file is closed")
    assert (await read(coach, large))["status"] == "cancelled"


async def test_a_company_imports_one_large_file_at_a_time(coach: CoachClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(company_import, "_LARGE_BYTES", 10)
    monkeypatch.setattr(company_import, "_MAX_LARGE", 0)
    ana = await coach.create_customer("Ana")
    job = (await send(coach, years(3), name="few.csv", customerId=ana["_id"])).ok(202)
    assert (await run_now(coach, job))["status"] == "queued"
    monkeypatch.setattr(company_import, "_MAX_LARGE", 1)

    async def is_done() -> bool:
        return (await run_now(coach, job))["status"] == "done"

    await until(is_done, "its turn comes")
