"""Which notifications a user gets: PATCH /me, and PATCH /customer/me for clients."""

from __future__ import annotations

import pytest

from coaching_service.core.ids import ObjectId
from tests.support.client import CoachClient
from tests.support.training import Json, employee_key

ON, OFF = {"mail": True, "push": True}, {"mail": False, "push": False}
KINDS = ("messages", "reminders", "workouts", "checkIns", "digest", "proposals")
DEFAULTS = dict.fromkeys(KINDS, ON) | {
    "showDetails": False,
    "workoutTime": None,
    "digestHour": 7,
    "quietFrom": None,
    "quietTo": None,
}


@pytest.fixture(params=["owner", "client", "client, PATCH /customer/me"])
async def user(request: pytest.FixtureRequest, coach: CoachClient) -> tuple[CoachClient, str]:
    """A signed-in user and the path of their settings."""
    if request.param == "owner":
        return await coach.interactive(), "/me"
    client = await coach.as_client(await coach.create_customer("Ana"))
    return client, "/customer/me" if "/customer" in request.param else "/me"


async def test_settings_that_are_left_out_stay(user: tuple[CoachClient, str]) -> None:
    session, path = user

    async def change(settings: Json) -> Json:
        changed: Json = (await session.patch(path, {"notifications": settings})).ok()["notifications"]
        assert (await session.get(path)).ok()["notifications"] == (await session.get("/me")).ok()["notifications"]
        return changed

    assert (await session.get(path)).ok()["notifications"] == DEFAULTS
    expected = DEFAULTS | {"messages": OFF, "quietFrom": "22:00", "quietTo": "07:00", "showDetails": True}
    assert await change({"messages": False, "quietFrom": "22:00", "quietTo": "07:00", "showDetails": True}) == expected
    expected |= {"messages": {"mail": True, "push": False}, "digest": {"mail": False, "push": True}, "quietTo": None}
    assert (
        await change({"messages": {"mail": True}, "digest": {"mail": False, "push": True}, "quietTo": None}) == expected
    )
    expected |= {"workoutTime": "06:45", "digestHour": 0, "checkIns": OFF}
    assert await change({"workoutTime": "06:45", "digestHour": 0, "checkIns": OFF}) == expected
    assert await change({"checkIns": True}) == expected | {"checkIns": ON}


INVALID: list[tuple[Json | None, str]] = [
    (None, "notifications"),
    ({"messages": "no"}, "notifications.messages"),
    ({"reminders": None}, "notifications.reminders"),
    ({"digest": {"mail": 1}}, "notifications.digest.mail"),
    ({"workoutTime": "7:00"}, "notifications.workoutTime"),
    ({"quietFrom": "24:00"}, "notifications.quietFrom"),
    ({"digestHour": 24}, "notifications.digestHour"),
    ({"digestHour": None}, "notifications.digestHour"),
    ({"showDetails": None}, "notifications.showDetails"),
]


async def test_settings_are_validated(user: tuple[CoachClient, str]) -> None:
    session, path = user
    for sent, field in INVALID:
        (await session.patch(path, {"notifications": sent})).refused(400, field)
        assert (await session.get("/me")).ok()["notifications"] == DEFAULTS


async def test_each_coach_has_settings_of_their_own(coach: CoachClient) -> None:
    employee = coach.with_key(await employee_key(coach, "customers.view"))
    (await employee.patch("/me", {"notifications": {"digestHour": 9}})).ok()
    assert (await coach.get("/me")).ok()["notifications"] == DEFAULTS
    assert (await employee.get("/me")).ok()["notifications"] == DEFAULTS | {"digestHour": 9}
    assert "notifications" not in str((await (await coach.interactive()).get("/coach/employees")).ok())


async def test_key_that_only_reads_changes_no_settings(coach: CoachClient) -> None:
    owner = await coach.interactive()
    key = (await owner.post("/coach/api-keys", {"name": "Reader", "restrictions": {"readOnly": True}})).ok(201)["key"]
    (await coach.with_key(key).patch("/me", {"notifications": {"digest": False}})).refused(403)
    assert (await coach.get("/me")).ok()["notifications"] == DEFAULTS


async def test_settings_of_earlier_versions_have_a_boolean_for_messages(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    of_ana = {"companyId": coach.ctx.company_id, "_id": ObjectId(ana["_id"])}
    await coach.ctx.db["customers"].update_one(of_ana, {"$set": {"notifications": {"messages": False}}})
    client = await coach.as_client(ana)
    assert (await client.get("/customer/me")).ok()["notifications"] == DEFAULTS | {"messages": OFF}
    changed = (await client.patch("/customer/me", {"notifications": {"reminders": False}})).ok()
    assert changed["notifications"] == DEFAULTS | {"messages": OFF, "reminders": OFF}
