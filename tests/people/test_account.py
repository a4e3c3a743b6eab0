"""The company: its name, time zone and unit, and its deletion."""

from __future__ import annotations

from typing import Any

import pytest

from coaching_service.core.database.context import Context
from coaching_service.people import account
from coaching_service.people.account import Account
from tests.conftest import PASSWORD
from tests.support.client import CoachClient
from tests.support.service_process import until
from tests.support.training import block_with, exercise_of


async def test_owner_reads_and_updates_the_company(coach: CoachClient) -> None:
    account = (await coach.get("/coach/account")).ok()
    assert (account["_id"], account["timezone"], account["loadUnit"]) == (str(coach.ctx.company_id), "UTC", "kg")

    changed = (await coach.patch("/coach/account", {"timezone": "Asia/Tokyo", "version": 0})).ok()

    assert (changed["timezone"], changed["companyName"]) == ("Asia/Tokyo", account["companyName"])
    (await coach.patch("/coach/account", {"companyName": "x", "version": 0})).refused(409)
    (await coach.patch("/coach/account", {"version": 0})).refused(409)
    assert (await coach.patch("/coach/account", {})).ok() == changed


async def test_the_owner_decides_whether_clients_may_import(coach: CoachClient) -> None:
    assert (await coach.get("/coach/account")).ok()["clientsMayImport"] is True
    assert (await coach.patch("/coach/account", {"clientsMayImport": False})).ok()["clientsMayImport"] is False
    assert (await coach.patch("/coach/account", {"timezone": "Asia/Tokyo"})).ok()["clientsMayImport"] is False
    (await coach.patch("/coach/account", {"clientsMayImport": "no"})).refused(400, "clientsMayImport")


@pytest.mark.parametrize(
    ("body", "field"),
    [({"timezone": "Moon"}, "timezone"), ({"loadUnit": "stone"}, "loadUnit"), ({"companyName": " "}, "companyName")],
)
async def test_bad_fields_are_named(coach: CoachClient, body: dict[str, Any], field: str) -> None:
    (await coach.patch("/coach/account", body)).refused(400, field)


async def test_load_unit_is_fixed_once_a_load_is_stored(coach: CoachClient) -> None:
    """Contract 2: `loadUnit` 409 once any load is stored."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    block = await coach.schedule(ana)
    items = f"/coach/customers/{ana['_id']}/wblocks/{block['_id']}/witems"
    item: dict[str, Any] = {"type": "EXERCISE", "exerciseId": squat["_id"], "exerciseSets": [{"type": "reps"}]}
    (await coach.post(items, item)).ok(201)
    assert (await coach.patch("/coach/account", {"loadUnit": "lb"})).ok()["loadUnit"] == "lb", "no load yet"

    item["exerciseSets"] = [{"type": "reps_load", "load": 100}]
    created = (await coach.post(items, item)).ok(201)

    assert created["exerciseSets"][0]["variables"][0]["unit"] == "lb"
    (await coach.patch("/coach/account", {"loadUnit": "kg"})).refused(409, "loadUnit")
    (await coach.patch("/coach/account", {"loadUnit": "lb", "companyName": "Same unit"})).ok()


async def test_erased_company_is_locked_and_all_data_removed(
    coach: CoachClient, other_company: CoachClient, interactive: CoachClient, anonymous: CoachClient
) -> None:
    ana = await coach.create_customer("Ana", email="ana@example.com")
    await coach.schedule(ana)
    client = await coach.as_client(ana)
    stored = await other_company.create_customer("Kept")
    email = coach.ctx.caller.email

    (await interactive.send("DELETE", "/coach/account", json={"password": "not the password"})).refused(403)
    (await coach.get("/me")).ok()
    (await interactive.send("DELETE", "/coach/account", json={"password": PASSWORD})).ok(204)

    for other_user in (coach, interactive, client):
        (await other_user.get("/me")).refused(401)
    (await anonymous.post("/auth/login", {"email": email, "password": PASSWORD})).refused(401)

    async def left() -> list[str]:
        db = coach.ctx.db
        names = [name for name in await db.list_collection_names() if not name.startswith("system.")]
        of_theirs = {"companyId": coach.ctx.company_id, "kind": {"$ne": "erase_company"}}
        return [name for name in names if await db[name].count_documents(of_theirs)]

    async def nothing_left() -> bool:
        return await left() == []

    await until(nothing_left, "the company is erased")
    assert (await other_company.customers())["docs"][0]["_id"] == stored["_id"]


async def test_unit_that_changes_meanwhile_is_not_changed_back(
    coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change to the unit that the company had at first: since then loads are stored in another one."""
    ana, squat = await coach.create_customer(), await coach.create_exercise()
    find_own, is_first = account.find_own, True

    async def find_then_change(ctx: Context) -> Account | None:
        nonlocal is_first
        account = await find_own(ctx)
        if is_first:
            is_first = False
            (await coach.patch("/coach/account", {"loadUnit": "lb"})).ok()
            await block_with(coach, ana, exercise_of(squat))
        return account

    monkeypatch.setattr(account, "find_own", find_then_change)
    assert (await coach.patch("/coach/account", {"loadUnit": "kg"})).refused(409)["code"] == "LOAD_UNIT_LOCKED"
    assert (await coach.get("/coach/account")).ok()["loadUnit"] == "lb"
