"""The figures of compliance and training that are stored with a client (contract 4), and their renewal."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from coaching_service.core.database.context import Context, in_transaction
from coaching_service.core.database.documents import now
from coaching_service.core.dates import next_midnight
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import derived_figures
from coaching_service.progress.attention import renewal
from coaching_service.progress.attention import service as attention
from tests.conftest import PASSWORD
from tests.support.client import MONDAY, SUNDAY, TUESDAY, CoachClient
from tests.support.compliance import schedule
from tests.support.figures import renew_figures
from tests.support.results import WARM_UP, WORK, clear_log, completed_sets, train
from tests.support.stored import stored_document
from tests.support.training import Json, add, block_with, client_path, exercise_of, log, move, path_of, task

RATES = ("complianceRate7d", "complianceRate30d", "complianceRate90d")
LONG_AGO = datetime(2000, 1, 1)  # noqa: DTZ001 - stored times are UTC without a time zone


async def read_rates(coach: CoachClient, customer: Json) -> Json:
    """The rates that GET of one client computes."""
    role: Json = (await coach.get(client_path(customer))).ok()["customerRoleData"]
    return {name: role[name] for name in (*RATES, "complianceDate")}


async def list_rates(coach: CoachClient, customer: Json) -> Json:
    """The stored rates, which the list returns."""
    listed = (await coach.customers())["docs"]
    role = next(each["customerRoleData"] for each in listed if each["_id"] == customer["_id"])
    return {name: role[name] for name in (*RATES, "complianceDate")}


async def set_stored(coach: CoachClient, customer: Json, **fields: Any) -> None:
    """Set stored fields of a client, as if time had passed."""
    await coach.ctx.db["customers"].update_one({"_id": ObjectId(customer["_id"])}, {"$set": fields})


def rates(coach: CoachClient, *values: float | None) -> Json:
    """These rates, as of the client's today if there are any."""
    date = str(coach.ctx.caller.today()) if any(value is not None for value in values) else None
    return {**dict(zip(RATES, values, strict=True)), "complianceDate": date}


async def test_rates_cover_7_30_and_90_days_up_to_today(coach: CoachClient) -> None:
    """By hand: 1 of 2 in 7 days, 3 of 4 in 30, 4 of 7 in 90; without the 91st day and tomorrow."""
    ana, today = await coach.create_customer(), coach.ctx.caller.today()
    assert await read_rates(coach, ana) == await list_rates(coach, ana) == rates(coach, None, None, None)
    ago = {0: "x", 6: "-", 7: "x", 29: "x", 30: "-", 60: "x", 89: "-", 90: "x", -1: "-"}
    for days, done in ago.items():
        await schedule(coach, ana, today - timedelta(days=days), done)
    assert await read_rates(coach, ana) == rates(coach, 50, 75, 57.1)


async def test_rate_is_null_without_a_workout_day(coach: CoachClient) -> None:
    ana, today = await coach.create_customer(), coach.ctx.caller.today()
    await schedule(coach, ana, today - timedelta(days=40), "x")
    await schedule(coach, ana, today, "R")
    assert await read_rates(coach, ana) == rates(coach, None, None, 100)


async def test_each_log_renews_the_stored_rates(coach: CoachClient) -> None:
    """Contract 4: the rates are stored and renewed within 10 seconds; GET of one client computes them."""
    ana, today = await coach.create_customer(), coach.ctx.caller.today()
    first, second = [await schedule(coach, ana, today - timedelta(days=days), "--") for days in (0, 1)]
    before = (await coach.get(client_path(ana))).ok()
    assert await read_rates(coach, ana) == rates(coach, 0, 0, 0)
    await renew_figures(coach.ctx)
    assert await list_rates(coach, ana) == rates(coach, 0, 0, 0)

    (await log(coach, first, first["items"][0])).ok()
    await renew_figures(coach.ctx)
    assert await list_rates(coach, ana) == rates(coach, 0, 0, 0)
    client = await coach.as_client(ana)
    own = f"/customer/wblocks/{first['_id']}/witems/{first['items'][1]['_id']}/log"
    (await client.put(own, {})).ok()
    await renew_figures(coach.ctx)
    assert await list_rates(coach, ana) == await read_rates(coach, ana) == rates(coach, 50, 50, 50)
    await clear_log(coach, first)
    await renew_figures(coach.ctx)
    assert await list_rates(coach, ana) == rates(coach, 0, 0, 0)

    (await coach.delete(path_of(second))).ok(204)
    (await log(coach, first, first["items"][0])).ok()
    (await coach.delete(path_of(first))).ok(204)
    assert await read_rates(coach, ana) == rates(coach, None, None, None)
    after = (await coach.get(client_path(ana))).ok()
    assert (after["version"], after["updatedAt"]) == (before["version"], before["updatedAt"]), "derived fields"


async def test_schedule_changes_renew_the_stored_rates(coach: CoachClient) -> None:
    """Contract 4: the rates are stored and renewed within 10 seconds of any change of logs or schedule."""
    ana, today = await coach.create_customer(), coach.ctx.caller.today()
    yesterday, tomorrow = (str(today + timedelta(days=days)) for days in (-1, 1))

    async def require_rates(*expected: float | None) -> None:
        await renew_figures(coach.ctx)
        assert await list_rates(coach, ana) == await read_rates(coach, ana) == rates(coach, *expected)

    done = await schedule(coach, ana, today - timedelta(days=2), "x")
    missed = await schedule(coach, ana, yesterday, "-")
    await require_rates(50, 50, 50)
    (await coach.patch(path_of(missed), {"date": tomorrow})).ok()
    await require_rates(100, 100, 100)
    (await coach.patch(path_of(missed), {"date": yesterday})).ok()
    await require_rates(50, 50, 50)
    (await coach.patch(path_of(missed), {"isRest": True})).ok()
    await require_rates(100, 100, 100)
    (await coach.patch(path_of(missed), {"isRest": False})).ok()
    (await coach.delete(f"{path_of(missed)}/witems/{missed['items'][0]['_id']}")).ok(204)
    await require_rates(100, 100, 100)
    item = await add(coach, missed, task())
    await require_rates(50, 50, 50)
    (await move(coach, item, missed, done, 0)).ok()
    await require_rates(0, 0, 0)
    (await coach.delete(path_of(done))).ok(204)
    await require_rates(None, None, None)
    (await coach.post(f"{path_of(await schedule(coach, ana, tomorrow, '-'))}/copy", {"date": yesterday})).ok(201)
    await require_rates(0, 0, 0)
    (await coach.post(client_path(ana, "wblocks", "shift"), {"from": yesterday, "days": 3})).ok()
    await require_rates(None, None, None)


async def test_assigned_program_renews_the_stored_rates(coach: CoachClient) -> None:
    ana, yesterday = await coach.create_customer(), str(coach.ctx.caller.today() - timedelta(days=1))
    program = (await coach.post("/coach/programs", {"name": "Base"})).ok(201)
    block = (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "Legs", "day": 1})).ok(201)
    await add(coach, block, task())
    assignment = {"customerId": ana["_id"], "startDate": yesterday}
    (await coach.post(f"/coach/programs/{program['_id']}/assign", assignment)).ok(201)
    await renew_figures(coach.ctx)
    assert await list_rates(coach, ana) == await read_rates(coach, ana) == rates(coach, 0, 0, 0)


async def test_last_trained_date_is_that_of_the_latest_session(coach: CoachClient) -> None:
    """Contract 4: `lastTrainedDate` (date of the latest session with completed work)."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()

    async def require_date(expected: str | None) -> None:
        await renew_figures(coach.ctx)
        [listed] = (await coach.customers())["docs"]
        read = (await coach.get(client_path(ana))).ok()
        dates = [client["customerRoleData"]["lastTrainedDate"] for client in (listed, read)]
        assert dates == [expected, expected]

    await block_with(coach, ana, exercise_of(squat), date=SUNDAY)
    await require_date(None)
    first = await train(coach, ana, squat, (8, 60), date=MONDAY)
    await require_date(MONDAY)
    second = await train(coach, ana, squat, (12, 20), date=TUESDAY, plan=(WARM_UP, WORK))
    await require_date(MONDAY)
    (await log(coach, second, second["items"][0], customerSets=completed_sets((12, 20), (8, 60)))).ok()
    await require_date(TUESDAY)
    (await coach.patch(path_of(second), {"date": "2026-03-05"})).ok()
    await require_date("2026-03-05")
    only_warm_up = {"exerciseSets": [WARM_UP, WARM_UP]}
    (await coach.patch(f"{path_of(second)}/witems/{second['items'][0]['_id']}", only_warm_up)).ok()
    await require_date(MONDAY)
    (await coach.delete(path_of(first))).ok(204)
    await require_date(None)


async def test_session_of_a_later_day_was_trained_when_it_was_logged(coach: CoachClient) -> None:
    """Contract 11: `lastTrainedDate` is never after the client's today."""
    ana, squat = await coach.create_customer(timezone="Pacific/Kiritimati"), await coach.create_exercise()
    today = coach.ctx.caller.today("Pacific/Kiritimati")

    async def require_date(expected: str) -> None:
        await renew_figures(coach.ctx)
        [listed] = (await coach.customers())["docs"]
        read = (await coach.get(client_path(ana))).ok()
        assert [each["customerRoleData"]["lastTrainedDate"] for each in (listed, read)] == [expected, expected]

    await train(coach, ana, squat, (8, 60), date=MONDAY)
    later = await block_with(coach, ana, exercise_of(squat), date=str(today + timedelta(days=3)))
    await require_date(MONDAY)
    client = await coach.as_client(ana)
    for number in (1, 2):  # the item is not completed
        done = {"index": number, "reps": 8, "load": 60, "isCompleted": True}
        path = f"/customer/wblocks/{later['_id']}/witems/{later['items'][0]['_id']}/sets"
        (await client.put(path, done)).ok()
    await require_date(str(today))
    (await log(coach, later, later["items"][0], customerSets=completed_sets((8, 60)))).ok()
    await require_date(str(today))
    two_days_ago = {"$set": {"items.$[].completedAt": now() - timedelta(days=2)}}
    await coach.ctx.db["workoutBlocks"].update_one({"_id": ObjectId(later["_id"])}, two_days_ago)
    await coach.ctx.db["customers"].update_one({"_id": ObjectId(ana["_id"])}, {"$set": {"figuresChangedAt": now()}})
    await require_date(str(today - timedelta(days=2)))


async def test_rates_are_renewed_once_a_local_day(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", timezone="Pacific/Kiritimati")
    bo = await coach.create_customer("Bo", timezone="Pacific/Pago_Pago")
    archived = await coach.create_customer("Cy")
    for client in (ana, bo, archived):
        await schedule(coach, client, coach.ctx.caller.today(client["timezone"]) - timedelta(days=1), "-")
    (await coach.put("/coach/customers/archive", {"id": archived["_id"]})).ok()
    for client in (ana, bo, archived):
        await set_stored(coach, client, figuresUntil=LONG_AGO)

    await renew_figures(coach.ctx)

    for client in (ana, bo):
        today = coach.ctx.caller.today(client["timezone"])
        assert await list_rates(coach, client) == {**dict.fromkeys(RATES, 0), "complianceDate": str(today)}
        stored = await stored_document(coach.ctx.db["customers"], {"_id": ObjectId(client["_id"])})
        assert stored is not None
        first = next_midnight(today, client["timezone"])
        assert first <= stored["figuresUntil"] < first + timedelta(hours=3), "in the first hours of the next day"
    stored = await stored_document(coach.ctx.db["customers"], {"_id": ObjectId(archived["_id"])})
    assert stored is not None
    assert stored["figuresUntil"] == LONG_AGO, "archived clients are not renewed"

    await set_stored(coach, ana, **{"customerRoleData.complianceRate7d": 12.5})
    await renew_figures(coach.ctx)
    assert (await list_rates(coach, ana))["complianceRate7d"] == 12.5, "once a day is enough"
    await set_stored(coach, ana, figuresUntil=now())
    await renew_figures(coach.ctx)
    assert (await list_rates(coach, ana))["complianceRate7d"] == 0


async def test_a_change_of_figures_that_are_due_is_counted_but_keeps_their_time(coach: CoachClient) -> None:
    where, customers = {"_id": ObjectId((await coach.create_customer("Ana"))["_id"])}, coach.ctx.db["customers"]

    async def mark_of_a_change(changed: datetime) -> tuple[datetime, int]:
        async def change(tx: Context) -> Any:
            new = {"figuresChangedAt": changed, "scheduleChanges": 5}
            await customers.update_one(where, {"$set": new}, session=tx.session)
            await derived_figures.mark_due(tx, [where["_id"]])
            return await customers.find_one(where, session=tx.session)

        stored = await in_transaction(coach.ctx, change)
        return stored["figuresChangedAt"], stored["scheduleChanges"]

    assert await mark_of_a_change(LONG_AGO) == (LONG_AGO, 6)
    later, changes = await mark_of_a_change(now() + timedelta(hours=1))
    assert (later <= now(), changes) == (True, 6)


async def test_company_being_erased_does_not_delay_others(coach: CoachClient, other_company: CoachClient) -> None:
    for company in (other_company, coach):
        ana = await company.create_customer()
        await schedule(company, ana, company.ctx.caller.today() - timedelta(days=1), "-")
        await set_stored(company, ana, figuresUntil=LONG_AGO)
    owner = await other_company.interactive()
    (await owner.send("DELETE", "/coach/account", json={"password": PASSWORD})).ok(204)
    await renew_figures(coach.ctx)
    assert await list_rates(coach, ana) == rates(coach, 0, 0, 0)


async def test_failed_renewal_is_retried_later_and_delays_no_others(
    coach: CoachClient, other_company: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the clients whose renewal fails fill a whole batch, in both lanes."""
    broken = [await other_company.create_customer(name) for name in ("Bo", "Cy", "Di")]
    for client in broken:
        await set_stored(other_company, client, timezone=["damaged"], figuresUntil=LONG_AGO)
    await set_stored(other_company, broken[0], figuresChangedAt=LONG_AGO)
    ana = await coach.create_customer()
    await schedule(coach, ana, coach.ctx.caller.today() - timedelta(days=1), "-")
    await set_stored(coach, ana, figuresUntil=LONG_AGO + timedelta(days=1))
    monkeypatch.setattr(renewal, "_BATCH", 2)

    for company in (other_company, coach):
        await renew_figures(company.ctx)

    assert await list_rates(coach, ana) == rates(coach, 0, 0, 0)
    for client in broken:
        stored = await stored_document(coach.ctx.db["customers"], {"_id": ObjectId(client["_id"])})
        assert now() < stored["figuresUntil"] <= now() + timedelta(hours=1)
    stored = await stored_document(coach.ctx.db["customers"], {"_id": ObjectId(broken[0]["_id"])})
    assert now() < stored["figuresChangedAt"] <= now() + timedelta(hours=1)


async def test_renewal_does_not_overwrite_the_figures_of_a_concurrent_log(coach: CoachClient) -> None:
    ana, today = await coach.create_customer(), coach.ctx.caller.today()
    blocks = [await schedule(coach, ana, today - timedelta(days=days), "-") for days in range(5)]
    for block in blocks:
        logging = asyncio.ensure_future(log(coach, block, block["items"][0]))
        while not logging.done():
            await set_stored(coach, ana, figuresUntil=LONG_AGO)
            await renew_figures(coach.ctx)
        await renew_figures(coach.ctx)
        assert await list_rates(coach, ana) == await read_rates(coach, ana)
    assert await read_rates(coach, ana) == rates(coach, 100, 100, 100)


async def test_figures_of_a_client_who_has_been_marked_since_they_were_read_are_not_stored(coach: CoachClient) -> None:
    """Of two clients, only of the one who has changed."""
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    await renew_figures(coach.ctx)
    before = await list_rates(coach, bo)
    for client in (ana, bo):
        await set_stored(coach, client, figuresChangedAt=LONG_AGO)
    due = await derived_figures.list_due(coach.ctx.services, coach.ctx.company_id, "changes", None, 10)
    marks = {client["_id"]: derived_figures.mark_of(client) for client in due}
    assert len(marks) == 2
    await derived_figures.mark_due(coach.ctx, [ObjectId(bo["_id"])])
    figures = {key: {"complianceRate7d": 70} for key in marks}
    await derived_figures.store_figures(
        coach.ctx, figures, dict.fromkeys(marks, now() + timedelta(days=1)), marks=marks
    )
    assert (await list_rates(coach, ana))["complianceRate7d"] == 70
    assert await list_rates(coach, bo) == before
    stored = await stored_document(coach.ctx.db["customers"], {"_id": ObjectId(bo["_id"])})
    assert "figuresChangedAt" in stored, "the client stays due"


async def test_client_who_changes_during_the_renewal_stays_due(coach: CoachClient) -> None:
    """Also if the times of two changes are the same millisecond."""
    ana, today = await coach.create_customer(), coach.ctx.caller.today()
    await renew_figures(coach.ctx)
    await set_stored(coach, ana, figuresUntil=LONG_AGO)
    due: Any = await stored_document(coach.ctx.db["customers"], {"_id": ObjectId(ana["_id"])})
    await schedule(coach, ana, today - timedelta(days=1), "-")
    await set_stored(coach, ana, figuresUntil=LONG_AGO)
    await attention.renew_due(coach.ctx, [due])
    assert await list_rates(coach, ana) == rates(coach, None, None, None)
    await renew_figures(coach.ctx)
    assert await list_rates(coach, ana) == rates(coach, 0, 0, 0)
