"""The owner's team: who may do what, to whose clients, and for how long."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from coaching_service import features
from coaching_service.core.auth import Vault
from coaching_service.core.database.documents import now
from coaching_service.core.errors import Unavailable
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.worker import run_due
from coaching_service.lifecycle.customer_bulk import service as customer_bulk
from coaching_service.lifecycle.customer_bulk.service import Selection
from coaching_service.people import api_keys, team
from coaching_service.people.customers import derived_figures
from coaching_service.people.identities import service as identities
from coaching_service.people.sessions import service as sessions
from coaching_service.people.team import Coach
from coaching_service.settings import Settings
from tests.conftest import PASSWORD
from tests.people.test_sessions import mailed_token
from tests.support.client import UNKNOWN, CoachClient

ALL_AREAS = ["customers.view", "customers.create", "customers.edit", "customers.delete", "exercises.view"]


@pytest.fixture
async def eli(coach: CoachClient, password_hash: str) -> Coach:
    """An employee who sees only their own clients."""
    email = f"eli@{coach.ctx.company_id}.test"
    return await team.create(coach.ctx, "Eli", email, ALL_AREAS, "assigned", password_hash)


@pytest.fixture
async def as_eli(coach: CoachClient, eli: Coach) -> CoachClient:
    return coach.with_bearer((await sessions.create_session(coach.ctx, eli["_id"], "coach"))["accessToken"])


async def test_owner_adds_updates_and_removes_employees(interactive: CoachClient, anonymous: CoachClient) -> None:
    email = f"fay@{interactive.ctx.company_id}.test"
    body = {"name": "Fay", "email": email, "permissions": ["forms.view"], "customersScope": "assigned"}
    fay = (await interactive.post("/coach/employees", body)).ok(201)
    path = f"/coach/employees/{fay['_id']}"

    assert (fay["role"], fay["permissions"], fay["customersScope"]) == ("EMPLOYEE", ["forms.view"], "assigned")
    assert (await interactive.get("/coach/employees")).ok() == [fay]
    assert (await interactive.get(path)).ok() == fay
    assert (await interactive.patch(path, {"name": "Faye", "version": 0})).ok()["name"] == "Faye"
    set_to = {"permissions": ["metrics.view", "forms.view", "forms.view"], "customersScope": "all"}
    (await interactive.put(f"{path}/permissions", set_to | {"version": 0})).refused(409)
    changed = (await interactive.put(f"{path}/permissions", set_to | {"version": 1})).ok()
    assert (changed["permissions"], changed["customersScope"]) == (["forms.view", "metrics.view"], "all")
    (await interactive.post("/coach/employees", body)).refused(409)
    (await interactive.post("/coach/employees", body | {"permissions": ["made.up"]})).refused(400, "permissions")
    (await interactive.patch(path, {"name": "x", "version": 0})).refused(409)
    (await interactive.delete(path)).ok(204)
    (await interactive.get(path)).refused(404)
    (
        (await interactive.get(f"/coach/employees/{interactive.ctx.caller.id}")).refused(404),
        "the owner is not an employee",
    )


async def test_invitation_to_a_previous_address_is_invalid(
    interactive: CoachClient, anonymous: CoachClient, settings: Settings
) -> None:
    wrong, right = (f"{name}@{interactive.ctx.company_id}.test" for name in ("fya", "fay"))
    fay = (await interactive.post("/coach/employees", {"name": "Fay", "email": wrong})).ok(201)
    misdirected = await mailed_token(settings, wrong)
    path, password = f"/coach/employees/{fay['_id']}", {"password": PASSWORD}

    (await interactive.patch(path, {"name": "Faye", "email": wrong.upper()})).ok()
    assert await interactive.ctx.db["passwordResets"].count_documents({"subjectId": ObjectId(fay["_id"])}) == 1
    (await interactive.patch(path, {"email": right})).ok()

    (await anonymous.post("/auth/password/reset", {"token": misdirected} | password)).refused(401)
    (await anonymous.post("/auth/password/reset", {"token": await mailed_token(settings, right)} | password)).ok()
    (await anonymous.post("/auth/login", {"email": right} | password)).ok()


async def test_password_stays_after_a_change_of_address(
    interactive: CoachClient, anonymous: CoachClient, eli: Coach
) -> None:
    """A token that was requested for the previous address becomes invalid."""
    token = await identities.create_reset_token(interactive.ctx, eli["_id"], "coach")
    moved = f"moved.{eli['email']}"
    (await interactive.patch(f"/coach/employees/{eli['_id']}", {"email": moved})).ok()

    (await anonymous.post("/auth/password/reset", {"token": token, "password": "another long password"})).refused(401)
    assert await interactive.ctx.db["passwordResets"].count_documents({"subjectId": eli["_id"]}) == 0
    (await anonymous.post("/auth/login", {"email": moved, "password": PASSWORD})).ok()


async def test_changed_address_ends_the_employees_sessions(
    interactive: CoachClient, as_eli: CoachClient, eli: Coach
) -> None:
    path = f"/coach/employees/{eli['_id']}"
    (await interactive.patch(path, {"name": "Elias", "email": eli["email"].upper()})).ok()
    (await as_eli.get("/me")).ok()
    (await interactive.patch(path, {"email": f"new.{eli['email']}"})).ok()
    (await as_eli.get("/me")).refused(401)


@pytest.mark.parametrize("ending", ["removal", "permission", "scope"])
async def test_acting_as_a_client_ends_with_the_right_to(
    coach: CoachClient, interactive: CoachClient, as_eli: CoachClient, eli: Coach, ending: str
) -> None:
    """From the next request: an employee who is removed, may not change clients, or is not the trainer any more."""
    ana = await as_eli.create_customer()
    path = f"/coach/employees/{eli['_id']}"
    acting = coach.with_bearer((await as_eli.post(f"/coach/customers/{ana['_id']}/impersonate")).ok()["accessToken"])
    (await interactive.put(f"{path}/permissions", {"permissions": ["customers.view", "customers.edit"]})).ok()
    (await acting.get("/me")).ok()
    if ending == "removal":
        (await interactive.delete(path)).ok(204)
    elif ending == "permission":
        (await interactive.put(f"{path}/permissions", {"permissions": ["customers.view"]})).ok()
    else:
        (await interactive.patch(f"/coach/customers/{ana['_id']}", {"assignedTo": None})).ok()
    (await acting.get("/me")).refused(401)
    (await acting.patch("/customer/me", {"phone": "1"})).refused(401)


async def test_only_the_owner_manages_the_team(coach: CoachClient, as_eli: CoachClient) -> None:
    (await as_eli.get("/coach/employees")).refused(403, "owner")
    (await coach.get("/coach/employees")).refused(403, "session")


async def test_an_employee_sees_only_assigned_clients(coach: CoachClient, eli: Coach, as_eli: CoachClient) -> None:
    """Issue: a colleague's client is 403 by path and absent from lists and counts; another company's is 404."""
    mine = await coach.create_customer("Mine", groups=["A"], assignedTo=str(eli["_id"]))
    theirs = await coach.create_customer("Theirs", groups=["A", "B"], assignedTo=str(coach.ctx.caller.id))
    await coach.create_customer("Nobody's", groups=["B"])

    page = await as_eli.customers()
    assert ([c["_id"] for c in page["docs"]], page["totalDocs"]) == ([mine["_id"]], 1)
    assert await as_eli.names(contains="e") == ["Mine"]
    assert await as_eli.names(assignedTo=["none", str(coach.ctx.caller.id)]) == []
    assert await as_eli.names(groups=["A", "B"]) == ["Mine"]
    assert (await as_eli.get("/coach/customers/groups")).ok() == [{"name": "A", "count": 1}]
    (await as_eli.get(f"/coach/customers/{mine['_id']}")).ok()
    path = f"/coach/customers/{theirs['_id']}"
    for reply in (
        await as_eli.get(path),
        await as_eli.patch(path, {"name": "x"}),
        await as_eli.delete(path),
        await as_eli.put("/coach/customers/archive", {"id": theirs["_id"]}),
        await as_eli.get(f"{path}/wblock", startDate="2026-03-01", endDate="2026-03-02"),
        await as_eli.post(f"{path}/wblocks", {"name": "A", "date": "2026-03-02"}),
    ):
        reply.refused(403)
    (await as_eli.get(f"/coach/customers/{UNKNOWN}")).refused(404)


async def test_employee_is_trainer_of_created_clients(as_eli: CoachClient, eli: Coach) -> None:
    created = await as_eli.create_customer("New")
    assert created["customerRoleData"]["assignedTo"] == str(eli["_id"])
    assert await as_eli.names() == ["New"]


async def test_permissions_apply_from_the_next_request(
    interactive: CoachClient, as_eli: CoachClient, eli: Coach
) -> None:
    (await as_eli.get("/muscle-groups")).ok()
    body = {"permissions": ["customers.view"]}
    (await interactive.put(f"/coach/employees/{eli['_id']}/permissions", body)).ok()
    (await as_eli.get("/muscle-groups")).refused(403, "exercises.view")
    assert (await as_eli.get("/me")).ok()["permissions"] == ["customers.view"]


async def test_key_never_exceeds_permissions_of_its_coach(
    interactive: CoachClient, coach: CoachClient, as_eli: CoachClient, eli: Coach
) -> None:
    created = (await as_eli.post("/coach/api-keys", {"name": "Eli's"})).ok(201)
    backend = coach.with_key(created["key"])
    assert (await backend.get("/me")).ok()["permissions"] == sorted(ALL_AREAS)
    await coach.create_customer("Not Eli's")
    assert (await backend.customers())["totalDocs"] == 0

    await interactive.put(f"/coach/employees/{eli['_id']}/permissions", {"permissions": ["forms.view"]})
    assert (await backend.get("/me")).ok()["permissions"] == ["forms.view"]


async def test_removed_employee_loses_access_at_once(
    interactive: CoachClient, coach: CoachClient, anonymous: CoachClient, as_eli: CoachClient, eli: Coach
) -> None:
    key = (await as_eli.post("/coach/api-keys", {"name": "Eli's"})).ok(201)["key"]
    active = await coach.create_customer("Ana", assignedTo=str(eli["_id"]))
    archived = await coach.create_customer("Bo", assignedTo=str(eli["_id"]))
    await coach.put("/coach/customers/archive", {"id": archived["_id"]})

    (await interactive.delete(f"/coach/employees/{eli['_id']}")).ok(204)

    (await as_eli.get("/me")).refused(401)
    (await coach.with_key(key).get("/me")).refused(401)
    (await anonymous.post("/auth/login", {"email": eli["email"], "password": PASSWORD})).refused(401)
    assert await coach.ctx.db["apiKeys"].count_documents({"coachId": eli["_id"]}) == 0
    assert await coach.ctx.db["sessions"].count_documents({"subjectId": eli["_id"]}) == 0
    for client in (active, archived):
        read = (await coach.get(f"/coach/customers/{client['_id']}")).ok()
        assert read["customerRoleData"]["assignedTo"] is None
    assert await coach.names(assignedTo="none") == ["Ana"]


async def test_client_assigned_during_removal_of_the_coach_is_unassigned(
    interactive: CoachClient, coach: CoachClient, eli: Coach
) -> None:
    """A request that had seen the coach just before writes just after; with another coach's clients nothing happens."""
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    (await interactive.delete(f"/coach/employees/{eli['_id']}")).ok(204)
    for client, trainer in ((ana, eli["_id"]), (bo, coach.ctx.caller.id)):
        late = {"$set": {"customerRoleData.assignedTo": trainer}}
        await coach.ctx.db["customers"].update_one({"_id": ObjectId(client["_id"])}, late)

    steps = {derived_figures.UNASSIGN: features.STEPS[derived_figures.UNASSIGN]}
    await run_due(coach.ctx.services, steps, at=now() + timedelta(minutes=3))

    assert await coach.names(assignedTo="none") == ["Ana"]
    assert await coach.names(assignedTo=str(coach.ctx.caller.id)) == ["Bo"]


async def test_coach_removed_during_a_bulk_change_gets_no_more_clients(coach: CoachClient, eli: Coach) -> None:
    clients = [ObjectId((await coach.create_customer(name))["_id"]) for name in ("Ana", "Bo")]
    operation = await customer_bulk.assign_trainer(coach.ctx, eli["_id"])

    async def change(client: ObjectId) -> customer_bulk.BulkResult:
        selection: Selection = {"ids": [client], "dryRun": False}
        return await customer_bulk.run_operation(coach.ctx, selection, operation, customer_bulk.Run())

    assert (await change(clients[0]))["ok"] == 1
    await team.delete_employee(coach.ctx, eli["_id"])
    failure = {"customerId": clients[1], "code": "NOT_FOUND", "message": "Coach not found"}
    assert await change(clients[1]) == {"requested": 1, "ok": 0, "failed": [failure]}
    assert await coach.names(assignedTo="none") == ["Ana", "Bo"]


async def test_key_without_its_master_key_is_reported(coach: CoachClient) -> None:
    created = await api_keys.create(coach.ctx, "Backend")
    lost = replace(coach.ctx.services, vault=Vault([bytes(range(32))]))
    assert sum((await api_keys.count_unreadable(lost)).values()) > 0, "which the log says at the start"
    with pytest.raises(Unavailable, match="master key"):
        await api_keys.reveal(replace(coach.ctx, services=lost), created["_id"])


class TestKeys:
    """Contract 2: API keys, in a session only."""

    async def test_key_is_created_listed_revealed_and_revoked(
        self, interactive: CoachClient, coach: CoachClient
    ) -> None:
        created = (await interactive.post("/coach/api-keys", {"name": "Backend"})).ok(201)
        key, listed = created.pop("key"), (await interactive.get("/coach/api-keys")).ok()

        assert key.startswith("cs_ak_")
        assert (created["prefix"], created["lastFour"]) == ("cs_ak_", key[-4:])
        assert created in listed
        assert "key" not in listed[0]
        assert (await interactive.get(f"/coach/api-keys/{created['_id']}/reveal")).ok() == {"key": key}
        (await coach.with_key(key).get("/me")).ok()

        (await interactive.delete(f"/coach/api-keys/{created['_id']}")).ok(204)

        assert (await coach.with_key(key).get("/me")).refused(401) == {"message": "Invalid API key"}
        (await interactive.get(f"/coach/api-keys/{created['_id']}/reveal")).refused(404)
        where = {"companyId": coach.ctx.company_id, "target._id": ObjectId(created["_id"])}
        actions = await coach.ctx.db["audit"].find(where).to_list(None)
        assert [record["action"] for record in actions] == ["key.created", "key.revealed", "key.deleted"]

    async def test_coach_lists_own_keys_and_owner_all_keys(
        self, interactive: CoachClient, coach: CoachClient, as_eli: CoachClient
    ) -> None:
        theirs = (await interactive.get("/coach/api-keys")).ok()[0]["_id"]
        created = (await as_eli.post("/coach/api-keys", {"name": "Eli's"})).ok(201)

        assert [k["name"] for k in (await as_eli.get("/coach/api-keys")).ok()] == ["Eli's"]
        assert {k["name"] for k in (await interactive.get("/coach/api-keys")).ok()} == {"Test", "Eli's"}
        (await as_eli.get(f"/coach/api-keys/{theirs}/reveal")).refused(404)
        (await as_eli.delete(f"/coach/api-keys/{theirs}")).refused(404)
        (await interactive.delete(f"/coach/api-keys/{created['_id']}")).ok(204)

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({}, "name"),
            ({"name": "A", "restrictions": {"readOnly": "yes"}}, "restrictions.readOnly"),
            ({"name": "A", "restrictions": {"permissions": ["customers.fly"]}}, "restrictions.permissions.0"),
            ({"name": "A", "restrictions": {"expiresAt": "tomorrow"}}, "restrictions.expiresAt"),
            ({"name": "A", "restrictions": {"expiresAt": 5}}, "restrictions.expiresAt"),
        ],
    )
    async def test_invalid_key_request_names_the_field(
        self, interactive: CoachClient, body: dict[str, Any], field: str
    ) -> None:
        error = (await interactive.post("/coach/api-keys", body)).refused(400)
        assert [message for message in error["message"] if message.startswith(field)]

    async def test_restrictions_are_stored_as_sent(self, interactive: CoachClient) -> None:
        sent = {"readOnly": True, "permissions": ["forms.view"], "expiresAt": "2030-01-01T01:00:00+01:00"}
        created = (await interactive.post("/coach/api-keys", {"name": "A", "restrictions": sent})).ok(201)
        assert created["restrictions"] == sent | {
            "expiresAt": "2030-01-01T00:00:00.000Z",
            "outreach": False,
            "confirmInChat": False,
            "mcpOnly": False,
        }

    async def test_restricted_key_of_the_owner_has_no_owner_access(self, coach: CoachClient) -> None:
        key = (await api_keys.create(coach.ctx, "Narrow", {"permissions": ["customers.view"]}))["key"]
        (await coach.with_key(key).patch("/coach/account", {"companyName": "Mine"})).refused(403)
        (await coach.patch("/coach/account", {"companyName": "Ours"})).ok()
