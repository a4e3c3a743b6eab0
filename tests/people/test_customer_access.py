"""Access of clients: invitation, first access, impersonation, passwords set by their coach."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from coaching_service.core.database.documents import now
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.service import load_principal
from coaching_service.settings import Settings
from tests.conftest import PASSWORD
from tests.people.test_sessions import mailed_token
from tests.support.client import CoachClient
from tests.support.service_process import until

pytestmark = pytest.mark.usefixtures("no_failed_sign_ins")


def unique(coach: CoachClient, name: str = "ana") -> str:
    return f"{name}@{coach.ctx.company_id}.test"


async def first_access(anonymous: CoachClient, customer: dict[str, Any], **fields: Any) -> Any:
    body = {"token": customer["firstAccessToken"], "password": PASSWORD, **fields}
    return await anonymous.post("/auth/first-access", body)


async def sign_in(anonymous: CoachClient, email: str, password: str = PASSWORD) -> Any:
    return await anonymous.post("/auth/login", {"email": email, "password": password})


async def test_first_access_token_sets_the_password_and_signs_in(coach: CoachClient, anonymous: CoachClient) -> None:
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


async def test_first_sign_in_remains_the_first(coach: CoachClient, anonymous: CoachClient) -> None:
    """A later one changes only the time of the latest action."""
    ana = await coach.create_customer("Ana", email=unique(coach), sendInvitation=False)
    (await first_access(anonymous, ana)).ok()
    at = now() - timedelta(days=40)
    long_ago = {"customerRoleData.firstLoginDate": at, "lastActivityDate": at}
    await coach.ctx.db["customers"].update_one({"_id": ObjectId(ana["_id"])}, {"$set": long_ago})
    (await sign_in(anonymous, unique(coach))).ok()
    read = (await coach.get(f"/coach/customers/{ana['_id']}")).ok()
    assert read["customerRoleData"]["firstLoginDate"] == f"{at.isoformat(timespec='milliseconds')}Z"
    assert read["lastActivityDate"] > read["customerRoleData"]["firstLoginDate"]


async def test_email_is_required_if_missing_or_taken(
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


async def test_client_session_cannot_use_coach_operations(coach: CoachClient) -> None:
    ana = await coach.create_customer()
    client = await coach.as_client(ana)
    for path in (
        "/coach/customers?archived=false&pageSize=1&pageNum=1",
        f"/coach/customers/{ana['_id']}",
        "/exercises/unified?pageSize=1&pageNum=1",
    ):
        (await client.get(path)).refused(403, "coaches")


async def test_archived_client_cannot_sign_in(coach: CoachClient, anonymous: CoachClient) -> None:
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


async def test_archived_client_is_not_invited(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", email=unique(coach), sendInvitation=False)
    await coach.put("/coach/customers/archive", {"id": ana["_id"]})
    (await coach.post(f"/coach/customers/{ana['_id']}/invitation")).refused(409, "archived")


async def test_deleted_client_is_signed_out_and_frees_the_address(coach: CoachClient, anonymous: CoachClient) -> None:
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
    """Contract 2: impersonating a client, or changing a client's password, needs an interactive session."""

    async def test_impersonation_is_limited_and_audited(self, coach: CoachClient, interactive: CoachClient) -> None:
        ana = await coach.create_customer()
        path = f"/coach/customers/{ana['_id']}/impersonate"

        given = (await interactive.post(path)).ok()

        assert (given["tokenType"], given["expiresIn"]) == ("Bearer", 900)
        me = (await coach.with_bearer(given["accessToken"]).get("/me")).ok()
        assert (me["_id"], me["role"]) == (ana["_id"], "CUSTOMER")
        where = {"companyId": coach.ctx.company_id, "action": "client.impersonated"}
        [record] = await coach.ctx.db["audit"].find(where).to_list(None)
        assert (record["action"], str(record["customerId"])) == ("client.impersonated", ana["_id"])
        assert record["actor"]["_id"] == coach.ctx.caller.id
        [session] = (
            await coach.ctx.db["sessions"].find({"kind": "customer", "subjectId": record["customerId"]}).to_list(None)
        )
        assert session["impersonatedBy"] == coach.ctx.caller.id
        (await coach.post(path)).refused(403)
        await coach.put("/coach/customers/archive", {"id": ana["_id"]})
        (await interactive.post(path)).refused(409)

    async def test_password_set_by_the_coach_ends_client_sessions(
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

    async def test_coach_sets_the_first_password_of_a_client(
        self, coach: CoachClient, interactive: CoachClient, anonymous: CoachClient
    ) -> None:
        ana = await coach.create_customer("Ana", email=unique(coach), sendInvitation=False)
        cy = await coach.create_customer("Cy")
        (await interactive.put(f"/coach/customers/{ana['_id']}/password", {"password": PASSWORD})).ok()
        (await sign_in(anonymous, unique(coach))).ok()
        (await interactive.put(f"/coach/customers/{cy['_id']}/password", {"password": PASSWORD})).refused(400, "email")


async def _logged_block(coach: CoachClient, customer: dict[str, Any]) -> str:
    """Schedule a workout for the client today, log it as the coach, and return its identifier."""
    path = f"/coach/customers/{customer['_id']}/wblocks"
    block = (await coach.post(path, {"name": "Run", "date": str(coach.ctx.caller.today())})).ok(201)
    (await coach.put(f"{path}/{block['_id']}/log", {"durationMinutes": 20, "sessionRpe": 4})).ok()
    return str(block["_id"])


class TestUnconfirmedEmail:
    """Contract 2: an address that no mailed token has confirmed signs in, but is released to a user who confirms it."""

    async def test_a_sign_up_displaces_nobody(
        self, coach: CoachClient, interactive: CoachClient, anonymous: CoachClient
    ) -> None:
        email = unique(coach)
        ana = await coach.create_customer("Ana", email=email, sendInvitation=False)
        (await interactive.put(f"/coach/customers/{ana['_id']}/password", {"password": PASSWORD})).ok()
        client = anonymous.with_bearer((await sign_in(anonymous, email)).ok()["accessToken"])

        body = {"companyName": "Ana's Gym", "name": "Ana", "email": email.upper(), "password": "another long password"}
        assert (await anonymous.post("/auth/register", body)).refused(409)["code"] == "EMAIL_TAKEN"

        assert (await client.get("/me")).ok()["emailConfirmed"] is False
        (await sign_in(anonymous, email)).ok()

    async def test_mailed_token_claims_an_address_and_a_returned_one_does_not(
        self, coach: CoachClient, other_company: CoachClient, anonymous: CoachClient, settings: Settings
    ) -> None:
        email = unique(coach)
        squatter = await other_company.create_customer("Squatter", email=email, sendInvitation=False)
        session = anonymous.with_bearer((await first_access(anonymous, squatter)).ok()["accessToken"])
        ana = await coach.create_customer("Ana", email=email)

        (await first_access(anonymous, ana)).refused(409), "the token that the coach received proves nothing"
        body = {"token": await mailed_token(settings, email), "password": "another long password"}
        client = anonymous.with_bearer((await anonymous.post("/auth/first-access", body)).ok()["accessToken"])

        assert (await client.get("/me")).ok()["_id"] == ana["_id"]
        (await session.get("/me")).refused(401)
        (await sign_in(anonymous, email)).refused(401)
        (await sign_in(anonymous, email, "another long password")).ok()

    async def test_mailed_token_of_another_address_does_not_confirm(
        self, coach: CoachClient, other_company: CoachClient, anonymous: CoachClient, settings: Settings
    ) -> None:
        wanted = unique(coach, "wanted")
        holder = await other_company.create_customer("Holder", email=wanted, sendInvitation=False)
        (await first_access(anonymous, holder)).ok()
        own = unique(coach, "own")
        await coach.create_customer("Ana", email=own)
        body = {"token": await mailed_token(settings, own), "password": PASSWORD, "email": wanted}
        (await anonymous.post("/auth/first-access", body)).refused(409)

    async def test_password_reset_confirms_an_address(
        self, coach: CoachClient, anonymous: CoachClient, settings: Settings
    ) -> None:
        email = unique(coach)
        ana = await coach.create_customer("Ana", email=email, sendInvitation=False)
        (await first_access(anonymous, ana)).ok()
        await anonymous.post("/auth/password/forgot", {"email": email})
        reset = {"token": await mailed_token(settings, email), "password": "another long password"}
        (await anonymous.post("/auth/password/reset", reset)).ok()

        body = {"companyName": "Gym", "name": "Zoe", "email": email, "password": PASSWORD}
        (await anonymous.post("/auth/register", body)).refused(409)


class TestLastActivity:
    """Contract 4: the time of the client's own latest action."""

    async def test_actions_of_a_coach_do_not_change_it(self, coach: CoachClient, interactive: CoachClient) -> None:
        ana = await coach.create_customer("Ana")
        path = f"/coach/customers/{ana['_id']}"
        token = (await interactive.post(f"{path}/impersonate")).ok()["accessToken"]
        impersonated = coach.with_bearer(token)
        block = await _logged_block(coach, ana)
        assert (await coach.get(path)).ok()["lastActivityDate"] is None

        body = {"durationMinutes": 30, "sessionRpe": 5}
        (await impersonated.put(f"/customer/wblocks/{block}/log", body)).ok()
        assert (await coach.get(path)).ok()["lastActivityDate"] is None

        client = await coach.as_client(ana)
        (await client.put(f"/customer/wblocks/{block}/log", body)).ok()
        assert (await coach.get(path)).ok()["lastActivityDate"] is not None


async def test_client_cannot_access_another_client(coach: CoachClient) -> None:
    client, other = [(await coach.create_customer(name))["_id"] for name in ("Ana", "Bo")]
    principal = await load_principal(coach.ctx.services, coach.ctx.company_id, ObjectId(client))
    assert principal is not None
    client_ctx = coach.ctx.acting_as(principal)

    assert (await customers.get_visible(client_ctx, ObjectId(client)))["_id"] == ObjectId(client)
    with pytest.raises(NotFound):
        await customers.get_visible(client_ctx, ObjectId(other))
