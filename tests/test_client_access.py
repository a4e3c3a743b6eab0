"""How clients get in: invitation, first access, impersonation, passwords set by their coach."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client import CoachClient
from tests.conftest import PASSWORD
from tests.reliability.service import until


def unique(coach: CoachClient, name: str = "ana") -> str:
    return f"{name}@{coach.ctx.company_id}.test"


async def first_access(anonymous: CoachClient, customer: dict[str, Any], **fields: Any) -> Any:
    body = {"token": customer["firstAccessToken"], "password": PASSWORD, **fields}
    return await anonymous.post("/auth/first-access", body)


async def sign_in(anonymous: CoachClient, email: str, password: str = PASSWORD) -> Any:
    return await anonymous.post("/auth/login", {"email": email, "password": password})


@pytest.fixture(autouse=True)
async def nobody_has_failed_yet(coach: CoachClient) -> None:
    """All tests come from one network address."""
    await coach.ctx.db["rateCounters"].delete_many({})


async def test_a_client_gets_in_by_the_token_of_their_creation(coach: CoachClient, anonymous: CoachClient) -> None:
    ana = await coach.create_customer("Ana", email=unique(coach), sendInvitation=False)

    tokens = (await first_access(anonymous, ana)).ok()

    me = (await anonymous.with_bearer(tokens["accessToken"]).get("/me")).ok()
    assert (me["_id"], me["role"], me["permissions"], me["via"]) == (ana["_id"], "CUSTOMER", [], "session")
    (await sign_in(anonymous, unique(coach))).ok()
    read = (await coach.get(f"/coach/customers/{ana['_id']}")).ok()
    assert read["customerRoleData"]["firstLoginDate"] is not None
    assert read["lastActivityDate"] is not None
    assert (read["version"], read["updatedAt"]) == (0, ana["updatedAt"]), "getting in changes nothing a coach wrote"
    (await first_access(anonymous, ana)).refused(401), "a token is good once"
    (await anonymous.post("/auth/first-access", {"token": "made-up", "password": PASSWORD})).refused(401)


async def test_an_address_is_needed_where_there_is_none_or_it_is_taken(
    coach: CoachClient, other_company: CoachClient, anonymous: CoachClient
) -> None:
    shared = unique(coach, "family")
    ana = await coach.create_customer("Ana", email=shared, sendInvitation=False)
    bo = await other_company.create_customer("Bo", email=shared, sendInvitation=False)
    cy = await coach.create_customer("Cy")

    (await first_access(anonymous, ana)).ok()
    (await first_access(anonymous, bo)).refused(409)
    (await first_access(anonymous, bo, email=unique(coach, "bo"))).ok()
    (await first_access(anonymous, cy)).refused(400, "email")
    (await first_access(anonymous, cy, email=unique(coach, "cy"))).ok()

    emails = {c["name"]: c["email"] for c in (await coach.customers())["docs"]}
    assert emails == {"Ana": shared, "Cy": unique(coach, "cy")}, "a client without an address now has one"
    assert (await other_company.customers())["docs"][0]["email"] == shared


async def test_a_client_s_session_opens_no_coach_s_door(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    client = await coach.as_client(ana)
    for path in (
        "/coach/customers?archived=false&pageSize=1&pageNum=1",
        f"/coach/customers/{ana['_id']}",
        "/exercises/unified?pageSize=1&pageNum=1",
    ):
        (await client.get(path)).refused(403, "coaches")


async def test_an_archived_client_is_out(coach: CoachClient, anonymous: CoachClient) -> None:
    ana = await coach.create_customer("Ana", email=unique(coach), sendInvitation=False)
    tokens = (await first_access(anonymous, ana)).ok()
    client = anonymous.with_bearer(tokens["accessToken"])
    await coach.put("/coach/customers/archive", {"id": ana["_id"]})

    (await client.get("/me")).refused(401)
    (await sign_in(anonymous, unique(coach))).refused(401)
    (await anonymous.post("/auth/refresh", {"refreshToken": tokens["refreshToken"]})).refused(401)

    await coach.put("/coach/customers/unarchive", {"id": ana["_id"]})
    (await sign_in(anonymous, unique(coach))).ok()
    (await anonymous.post("/auth/refresh", {"refreshToken": tokens["refreshToken"]})).ok()


async def test_an_archived_client_is_not_invited(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", email=unique(coach), sendInvitation=False)
    await coach.put("/coach/customers/archive", {"id": ana["_id"]})
    (await coach.post(f"/coach/customers/{ana['_id']}/invitation")).refused(409, "archived")


async def test_an_erased_client_is_out_and_the_address_is_free(coach: CoachClient, anonymous: CoachClient) -> None:
    ana = await coach.create_customer("Ana", email=unique(coach), sendInvitation=False)
    client = anonymous.with_bearer((await first_access(anonymous, ana)).ok()["accessToken"])

    (await coach.delete(f"/coach/customers/{ana['_id']}")).ok(204)

    (await client.get("/me")).refused(401)
    (await sign_in(anonymous, unique(coach))).refused(401)

    async def free() -> bool:
        again = await coach.create_customer("Ana", email=unique(coach), sendInvitation=False)
        return (await first_access(anonymous, again)).status == 200

    await until(free, "the address is free")


class TestImpersonation:
    """Specification 5: impersonating a client, or changing a client's password, needs an interactive session."""

    async def test_a_coach_acts_as_a_client_for_a_while(self, coach: CoachClient, interactive: CoachClient) -> None:
        ana = await coach.create_customer()
        path = f"/coach/customers/{ana['_id']}/impersonate"

        given = (await interactive.post(path)).ok()

        assert (given["tokenType"], given["expiresIn"]) == ("Bearer", 900)
        me = (await coach.with_bearer(given["accessToken"]).get("/me")).ok()
        assert (me["_id"], me["role"]) == (ana["_id"], "CUSTOMER")
        [record] = await coach.ctx.db["audit"].find({"companyId": coach.ctx.company_id}).to_list(None)
        assert (record["action"], str(record["about"])) == ("customer.impersonated", ana["_id"])
        assert record["actorId"] == coach.ctx.caller.id
        [session] = (
            await coach.ctx.db["sessions"].find({"kind": "customer", "subjectId": record["about"]}).to_list(None)
        )
        assert session["impersonatedBy"] == coach.ctx.caller.id
        (await coach.post(path)).refused(403)
        await coach.put("/coach/customers/archive", {"id": ana["_id"]})
        (await interactive.post(path)).refused(409)

    async def test_a_password_set_by_the_coach_ends_the_client_s_sessions(
        self, coach: CoachClient, interactive: CoachClient, anonymous: CoachClient
    ) -> None:
        ana = await coach.create_customer("Ana", email=unique(coach), sendInvitation=False)
        client = anonymous.with_bearer((await first_access(anonymous, ana)).ok()["accessToken"])
        path = f"/coach/customers/{ana['_id']}/password"

        (await interactive.put(path, {"password": "too short"})).refused(400, "password")
        (await interactive.put(path, {"password": "a new long password"})).ok()

        (await client.get("/me")).refused(401)
        (await sign_in(anonymous, unique(coach))).refused(401)
        (await sign_in(anonymous, unique(coach), "a new long password")).ok()
        (await coach.put(path, {"password": PASSWORD})).refused(403)

    async def test_a_client_who_has_never_been_in_may_be_given_a_password(
        self, coach: CoachClient, interactive: CoachClient, anonymous: CoachClient
    ) -> None:
        ana = await coach.create_customer("Ana", email=unique(coach), sendInvitation=False)
        cy = await coach.create_customer("Cy")
        (await interactive.put(f"/coach/customers/{ana['_id']}/password", {"password": PASSWORD})).ok()
        (await sign_in(anonymous, unique(coach))).ok()
        (await interactive.put(f"/coach/customers/{cy['_id']}/password", {"password": PASSWORD})).refused(400, "email")
