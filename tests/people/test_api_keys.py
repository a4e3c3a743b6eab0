"""API keys as credentials (contract 2)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from coaching_service.core import audit
from coaching_service.core.database.documents import now
from coaching_service.core.errors import Forbidden, InvalidApiKey
from coaching_service.core.ids import ObjectId
from coaching_service.people import api_keys, team
from coaching_service.people.api_keys import NewRestrictions
from tests.support.client import CoachClient, Reply
from tests.support.mcp_client import McpHttpClient
from tests.support.service_process import until
from tests.support.training import employee_key


async def test_without_a_credential(anonymous: CoachClient) -> None:
    """Contract 2: 401 with `{statusCode: 401, message: "Unauthorized"}`."""
    for path in ("/me", "/coach/customers", "/exercises/unified"):
        assert (await anonymous.get(path)).refused(401) == {"statusCode": 401, "message": "Unauthorized"}


async def test_with_an_invalid_key(anonymous: CoachClient) -> None:
    """Contract 2: 401 with `{message: "Invalid API key"}`."""
    for key in ("x", "cs_ak_" + "A" * 43, "é", "$ne"):
        reply = await anonymous.send("GET", "/me", headers={"X-API-Key": key})
        assert reply.refused(401) == {"message": "Invalid API key"}


async def test_bearer_takes_precedence_over_a_key(coach: CoachClient) -> None:
    """Contract 2: if an `Authorization` header is also sent, the bearer session takes precedence."""
    for bearer in ("Bearer nope", "Basic abc", "Bearer", ""):
        reply = await coach.send("GET", "/me", headers={"Authorization": bearer})
        assert reply.refused(401) == {"statusCode": 401, "message": "Unauthorized"}


async def test_key_acts_as_its_coach(coach: CoachClient) -> None:
    me = (await coach.get("/me")).ok()
    assert (me["_id"], me["role"], me["via"]) == (str(coach.ctx.caller.id), "OWNER", "apiKey")
    assert me["companyId"] == str(coach.ctx.company_id)
    assert "customers.edit" in me["permissions"]


async def test_key_is_stored_hashed_and_encrypted(coach: CoachClient) -> None:
    assert coach.key is not None
    [stored] = await coach.ctx.db["apiKeys"].find({"companyId": coach.ctx.company_id}).to_list(None)
    assert coach.key.startswith("cs_ak_")
    assert len(coach.key) == 6 + 43
    assert coach.key[6:] not in repr(stored)
    assert await api_keys.find_secret(coach.ctx, "Test") == coach.key


async def authenticate(coach: CoachClient) -> None:
    """Authenticate with the company's key in a new process, which has cached nothing."""
    assert coach.key is not None
    await api_keys.authenticate(replace(coach.ctx.services), coach.key)


async def test_a_key_without_its_document_or_coach_or_company_is_invalid(coach: CoachClient) -> None:
    for collection in ("apiKeys", "coaches", "companies"):
        removed = await coach.ctx.db[collection].find_one_and_delete({"companyId": coach.ctx.company_id})
        assert removed is not None
        with pytest.raises(InvalidApiKey):
            await authenticate(coach)
        await coach.ctx.db[collection].insert_one(removed)
        await authenticate(coach)


async def test_restrictions_narrow_a_key(coach: CoachClient, anonymous: CoachClient) -> None:
    async def with_key(restrictions: NewRestrictions, method: str = "GET", path: str = "/me") -> Reply:
        key = (await api_keys.create(coach.ctx, "Narrow", restrictions))["key"]
        return await anonymous.send(
            method, path, headers={"X-API-Key": key}, json={"name": "A"} if method == "POST" else None
        )

    read_only = (await with_key({"readOnly": True})).ok()
    assert "customers.view" in read_only["permissions"]
    assert "customers.edit" not in read_only["permissions"]
    (await with_key({"readOnly": True}, "POST", "/exercises")).refused(403)
    assert (await with_key({"permissions": ["forms.view", "made.up"]})).ok()["permissions"] == ["forms.view"]
    (await with_key({"permissions": ["forms.view"]}, "GET", "/muscle-groups")).refused(403, "exercises.view")
    (await with_key({"expiresAt": now() + timedelta(minutes=1)})).ok()


async def test_expired_key_is_rejected(coach: CoachClient, anonymous: CoachClient) -> None:
    key = await api_keys.create(coach.ctx, "Narrow", {"expiresAt": now() + timedelta(minutes=1)})
    expired = {"restrictions.expiresAt": now() - timedelta(seconds=1)}
    await coach.ctx.db["apiKeys"].update_one({"_id": key["_id"]}, {"$set": expired})
    (await anonymous.send("GET", "/me", headers={"X-API-Key": key["key"]})).refused(401)
    suspension = {"suspension": {"at": now(), "reason": "not paid"}}
    await coach.ctx.db["companies"].update_one({"_id": coach.ctx.company_id}, {"$set": suspension})
    (await anonymous.send("GET", "/me", headers={"X-API-Key": key["key"]})).refused(401)
    stored = await coach.ctx.db["apiKeys"].find_one({"_id": key["_id"]})
    assert stored is not None
    assert stored["lastUsedAt"] is None


async def test_expiry_in_the_past_is_invalid(interactive: CoachClient) -> None:
    body = {"name": "Old", "restrictions": {"expiresAt": "2020-01-01T00:00:00Z"}}
    (await interactive.post("/coach/api-keys", body)).refused(400, "restrictions.expiresAt")


async def test_null_permissions_do_not_restrict_a_key(interactive: CoachClient, anonymous: CoachClient) -> None:
    """An empty list restricts to nothing; null does not restrict."""
    permissions = {}
    for name, allowed in (("null", None), ("empty", [])):
        body = {"name": name, "restrictions": {"permissions": allowed}}
        created = (await interactive.post("/coach/api-keys", body)).ok(201)
        assert created["restrictions"]["permissions"] == allowed
        me = (await anonymous.send("GET", "/me", headers={"X-API-Key": created["key"]})).ok()
        permissions[name] = me["permissions"]
    assert permissions["empty"] == []
    assert "customers.edit" in permissions["null"]


async def test_last_use_of_a_key_is_stored_once_a_minute(coach: CoachClient) -> None:
    async def last_used() -> object:
        await authenticate(coach)
        [stored] = await coach.ctx.db["apiKeys"].find({"companyId": coach.ctx.company_id}).to_list(None)
        return stored["lastUsedAt"]

    first = await last_used()
    assert first is not None
    assert await last_used() == first
    await coach.ctx.db["apiKeys"].update_many({}, {"$set": {"lastUsedAt": now() - timedelta(minutes=2)}})
    assert await last_used() >= first  # type: ignore[operator]


async def test_a_key_is_not_deleted_without_an_entry_in_the_audit_log(
    coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    key_id = (await api_keys.create(coach.ctx, "Backend"))["_id"]
    with monkeypatch.context() as patch:
        patch.setattr(audit, "record", fail)
        with pytest.raises(RuntimeError):
            await api_keys.delete_api_key(coach.ctx, key_id)
    assert await api_keys.find_name(coach.ctx, key_id) == "Backend"
    await api_keys.delete_api_key(coach.ctx, key_id)
    assert (
        await coach.ctx.db["audit"].count_documents(
            {"companyId": coach.ctx.company_id, "target._id": key_id, "action": "key.deleted"}
        )
        == 1
    )


async def fail(*_: object, **__: object) -> None:
    raise RuntimeError("no entry")


async def test_unknown_restrictions_are_refused(coach: CoachClient) -> None:
    session = await coach.interactive()
    before = (await session.get("/coach/api-keys")).ok()
    unknown: list[dict[str, object]] = [{"readonly": True}, {"readOnly": True, "mcponly": True}, {"permission": []}]
    for restrictions in unknown:
        refused = (await session.post("/coach/api-keys", {"name": "Typo", "restrictions": restrictions})).refused(400)
        assert [each["code"] for each in refused["errors"]] == ["UNKNOWN_FIELD"], refused
    assert (await session.get("/coach/api-keys")).ok() == before


async def test_a_key_for_an_assistant_is_good_at_mcp_only(coach: CoachClient, public_server: TestServer) -> None:
    session = await coach.interactive()
    made = (await session.post("/coach/api-keys", {"name": "A", "restrictions": {"mcpOnly": True}})).ok(201)
    assert made["restrictions"]["mcpOnly"] is True
    for path in ("/coach/customers", "/me", "/coach/events"):
        for headers in ({"X-API-Key": made["key"]}, {"Authorization": f"Bearer {made['key']}"}):
            assert (await coach.send("GET", path, headers=headers)).refused(403)["code"] == "KEY_MCP_ONLY"
    async with McpHttpClient(public_server, {"X-API-Key": made["key"]}) as mcp:
        assert not (await mcp.call("list_customers")).get("isError")


async def test_key_that_acts_as_the_company_survives_its_maker_and_acts_in_its_own_name(
    coach: CoachClient, interactive: CoachClient
) -> None:
    """Permissions of its own, the scope of all clients, and the key as the actor."""
    ana = await coach.create_customer("Ana")
    body = {"name": "Sync", "actsAs": "company", "permissions": ["customers.view", "customers.edit", "customers.view"]}
    created = (await interactive.post("/coach/api-keys", body)).ok(201)
    assert (created["actsAs"], created["customersScope"], created["coachId"]) == ("company", "all", None)
    assert created["permissions"] == ["customers.edit", "customers.view"]
    shown = {name: value for name, value in created.items() if name != "key"}
    own, of_company = (await interactive.get("/coach/api-keys")).ok()
    assert of_company == shown and (own["actsAs"], own["permissions"], own["customersScope"]) == ("coach", None, None)
    sync = coach.with_key(created["key"])
    me = (await sync.get("/me")).ok()
    assert (me["_id"], me["name"], me["email"], me["role"]) == (created["_id"], "Sync", None, "KEY")
    assert (me["permissions"], me["via"]) == (["customers.edit", "customers.view"], "apiKey")
    note = (await sync.post(f"/coach/customers/{ana['_id']}/notes", {"content": "Hello"})).ok(201)
    assert note["author"] == {"_id": created["_id"], "name": "Sync"}
    message = (await sync.post(f"/coach/customers/{ana['_id']}/messages", {"text": "Hello"})).ok(201)
    assert message["author"] == {"type": "key", "_id": created["_id"], "name": "Sync"}
    reply = await sync.post("/coach/customers/bulk/archive", {"ids": [ana["_id"]]}, headers={"Prefer": "respond-async"})
    assert reply.status in (200, 202)

    async def logged() -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = (await coach.get("/coach/events", types="customer.archived")).ok()["docs"]
        return events

    [event] = await until(logged, "the work of the key goes on without a coach")
    assert event["actor"] == {"type": "key", "_id": created["_id"], "keyId": created["_id"], "applicationId": None}
    assert (await sync.post("/coach/customers", {"name": "Bo"})).refused(403)["permission"] == "customers.create"
    assert (await sync.get("/coach/export")).refused(403)["code"] == "OWNER_ONLY"
    (await sync.patch("/me", {"notifications": {"messages": False}})).refused(403, "has no notification settings")

    employee = coach.with_key(await employee_key(coach, "customers.view"))
    (await employee.get("/me")).ok()
    eli = ObjectId((await employee.get("/me")).ok()["_id"])
    as_employee = replace(coach.ctx, principal=await team.load_principal(coach.ctx, eli))
    with pytest.raises(Forbidden):
        await api_keys.create(as_employee, "Mine", acts_as="company", permissions=["customers.view"])
    await team.delete_employee(coach.ctx, eli)
    (await sync.get("/me")).ok()
    for wrong, field in (
        ({"actsAs": "company"}, "permissions"),
        ({"permissions": ["customers.view"]}, "permissions"),
        ({"actsAs": "robot"}, "actsAs"),
        ({"actsAs": "company", "permissions": [], "customersScope": "assigned"}, "customersScope"),
    ):
        [error] = (await interactive.post("/coach/api-keys", {"name": "Wrong", **wrong})).refused(400)["errors"]
        assert error["field"] == field
    (await interactive.delete(f"/coach/api-keys/{created['_id']}")).ok(204)
    (await sync.get("/me")).refused(401)
