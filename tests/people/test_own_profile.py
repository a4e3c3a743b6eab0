"""A client's own profile: GET and PATCH /customer/me."""

from __future__ import annotations

from tests.support.client import CoachClient


async def test_client_reads_and_changes_the_own_profile(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", surname="Flores", phone="1")
    client = await coach.as_client(ana)
    profile = (await client.get("/customer/me")).ok()
    assert (profile["_id"], profile["surname"], profile["phone"], profile["version"]) == (ana["_id"], "Flores", "1", 0)

    change = {"phone": None, "birthday": "1990-01-31", "timezone": "Europe/Madrid", "version": 0}
    changed = (await client.patch("/customer/me", change)).ok()

    assert (changed["phone"], changed["birthday"], changed["timezone"]) == (None, "1990-01-31", "Europe/Madrid")
    assert changed == (await client.get("/customer/me")).ok()
    (await client.patch("/customer/me", {"phone": "2", "version": 0})).refused(409)
    seen = (await coach.get(f"/coach/customers/{ana['_id']}")).ok()
    assert (seen["birthday"], seen["version"]) == ("1990-01-31", 1)
    assert seen["lastActivityDate"] is not None
    assert "notifications" not in seen


async def test_choosing_notifications_is_an_action_of_the_client(coach: CoachClient, interactive: CoachClient) -> None:
    """Also with PATCH /me; not of a coach in the client's place."""
    ana, change = await coach.create_customer("Ana"), {"notifications": {"messages": False}}
    path = f"/coach/customers/{ana['_id']}"
    acting = coach.with_bearer((await interactive.post(f"{path}/impersonate")).ok()["accessToken"])
    for caller, is_client in ((acting, False), (await coach.as_client(ana), True)):
        (await caller.patch("/me", change)).ok()
        assert ((await coach.get(path)).ok()["lastActivityDate"] is not None) is is_client


async def test_a_coach_in_the_clients_place_cannot_ask_for_erasure(
    coach: CoachClient, interactive: CoachClient
) -> None:
    ana = await coach.create_customer("Ana")
    token = (await interactive.post(f"/coach/customers/{ana['_id']}/impersonate")).ok()["accessToken"]
    (await coach.with_bearer(token).post("/customer/me/erasure-request")).refused(403)
    assert "erasureRequestedAt" not in str((await coach.get(f"/coach/customers/{ana['_id']}")).ok())


async def test_client_prefers_a_language(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    client = await coach.as_client(ana)
    assert (await client.get("/customer/me")).ok()["language"] is None
    for language in ("es", "pt-BR", "zh-Hant-TW", "es-419", None):
        assert (await client.patch("/customer/me", {"language": language})).ok()["language"] == language
    for wrong in ("", "Spanish", "ES", "e", "es_MX", {"$ne": "es"}):
        (await client.patch("/customer/me", {"language": wrong})).refused(400, "language")
    assert "language" not in (await coach.get(f"/coach/customers/{ana['_id']}")).ok()


async def test_client_cannot_change_what_the_coach_decides(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", groups=["Morning"])
    client = await coach.as_client(ana)
    (await client.patch("/customer/me", {"name": "x", "groups": [], "email": "x@example.com", "role": "OWNER"})).ok()
    seen = (await coach.get(f"/coach/customers/{ana['_id']}")).ok()
    assert (seen["name"], seen["email"], seen["customerRoleData"]["groups"]) == ("Ana", None, ["Morning"])
    for body in ({"birthday": "2026-02-30"}, {"timezone": "Mars"}, {"phone": "x" * 51}):
        (await client.patch("/customer/me", body)).refused(400)
