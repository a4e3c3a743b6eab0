"""Webhooks of a company: who manages them, their addresses, secrets and limits (contract, section 14)."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from coaching_service.core.auth import Vault, new_master_key, parse_master_key
from coaching_service.core.database.context import Services
from coaching_service.core.events import EVENT_TYPES
from coaching_service.people import api_keys
from coaching_service.people.api_keys import NewRestrictions
from coaching_service.people.webhooks import service as webhooks
from tests.support.client import UNKNOWN, CoachClient
from tests.support.training import employee_key

Json = dict[str, Any]
URL = "https://hooks.invalid/coaching?token=abc"


async def create(coach: CoachClient, **fields: Any) -> Json:
    """A new webhook."""
    created: Json = (await coach.post("/coach/webhooks", {"url": URL, **fields})).ok(201)
    return created


async def test_webhook_is_created_with_a_secret_that_is_not_shown_again(coach: CoachClient) -> None:
    created = await create(coach, types=["workout.completed", "workout.completed"], description="Our CRM")
    secret = created.pop("secret")
    assert secret.startswith("whsec_")
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
    assert created["types"] == ["workout.completed"]
    assert (created["url"], created["description"], created["isActive"]) == (URL, "Our CRM", True)
    assert (await coach.get(f"/coach/webhooks/{created['_id']}")).ok() == created
    assert (await coach.get("/coach/webhooks")).ok() == [created]
    stored = await coach.ctx.db["webhooks"].find_one({"url": URL, "companyId": coach.ctx.company_id})
    assert secret.removeprefix("whsec_") not in repr(stored)


async def test_defaults(coach: CoachClient) -> None:
    created = await create(coach)
    assert (created["types"], created["description"], created["isActive"]) == ([], "", True)
    assert (created["failingSince"], created["disabledAt"], created["previousSecretUntil"]) == (None, None, None)
    no_types: tuple[list[str] | None, ...] = (None, [])
    for types in no_types:
        created = await create(coach, types=types)
        assert created["types"] == []
        for same in (created["types"], None):
            changed = (await coach.patch(f"/coach/webhooks/{created['_id']}", {"types": same})).ok()
            assert (changed["types"], changed["isActive"]) == ([], True)


async def test_address_is_stored_in_its_canonical_form(coach: CoachClient) -> None:
    created = await create(coach, url="HTTPS://Exämple.COM:443/\u00fc")
    assert created["url"] == "https://xn--exmple-cua.com/%C3%BC"
    changed = (await coach.patch(f"/coach/webhooks/{created['_id']}", {"url": "https://Hooks.Example.com.:8443"})).ok()
    assert changed["url"] == "https://hooks.example.com:8443/"


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://example.com/", "URL_NOT_HTTPS"),
        ("example.com", "URL_INVALID"),
        ("https://", "URL_INVALID"),
        ("https://user:secret@example.com/", "URL_WITH_CREDENTIALS"),
        ("https://127.0.0.1/", "ADDRESS_NOT_ALLOWED"),
        ("https://93.184.216.34/", "ADDRESS_NOT_ALLOWED"),
        ("https://[::1]/", "ADDRESS_NOT_ALLOWED"),
        ("https://[2606:4700:4700::1111]/", "ADDRESS_NOT_ALLOWED"),
        ("https://2130706433/", "ADDRESS_NOT_ALLOWED"),
        ("https://127.1/", "ADDRESS_NOT_ALLOWED"),
        ("https://localhost/", "ADDRESS_NOT_ALLOWED"),
        ("https://LOCALHOST.:8443/", "ADDRESS_NOT_ALLOWED"),
        ("https://intranet/", "ADDRESS_NOT_ALLOWED"),
        ("https://example.com:25/", "PORT_NOT_ALLOWED"),
        ("https://example.com/#top", "URL_INVALID"),
        ("https://exa..mple.com/", "URL_INVALID"),
    ],
)
async def test_addresses_that_are_refused(coach: CoachClient, url: str, code: str) -> None:
    created = await create(coach)
    for reply in (
        await coach.post("/coach/webhooks", {"url": url}),
        await coach.patch(f"/coach/webhooks/{created['_id']}", {"url": url}),
    ):
        [error] = reply.refused(400)["errors"]
        assert (error["field"], error["code"]) == ("url", code)
    assert len((await coach.get("/coach/webhooks")).ok()) == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"url": None},
        {"url": ""},
        {"url": 1},
        {"url": "https://example.com/" + "a" * 2000},
        {"url": URL, "types": ["workout.eaten"]},
        {"url": URL, "types": "workout.completed"},
        {"url": URL, "isActive": "yes"},
        {"url": URL, "description": {"$gt": ""}},
    ],
)
async def test_invalid_webhooks_are_refused(coach: CoachClient, body: Json) -> None:
    (await coach.post("/coach/webhooks", body)).refused(400)
    assert (await coach.get("/coach/webhooks")).ok() == []


async def test_only_the_owner_manages_webhooks(coach: CoachClient, interactive: CoachClient) -> None:
    created = await create(interactive)
    path = f"/coach/webhooks/{created['_id']}"
    (await coach.get(path)).ok()
    employee = coach.with_key(await employee_key(coach, "customers.view", "customers.edit", scope="all"))
    narrow: list[NewRestrictions] = [{"readOnly": True}, {"permissions": ["customers.view"]}]
    restricted = [coach.with_key((await api_keys.create(coach.ctx, "Restricted", each))["key"]) for each in narrow]
    for caller in (employee, *restricted):
        (await caller.get("/coach/webhooks")).refused(403)
        (await caller.get(path)).refused(403)
        (await caller.get(f"{path}/deliveries")).refused(403)
        (await caller.post("/coach/webhooks", {"url": URL})).refused(403)
        (await caller.post(f"{path}/rotate-secret")).refused(403)
        (await caller.post(f"{path}/test")).refused(403)
        (await caller.delete(path)).refused(403)


async def test_the_permission_webhooks_needs_no_owner(coach: CoachClient) -> None:
    """A key or an employee with it manages webhooks, of what the caller may see; the team is for the owner only."""
    every = [f"{area}.view" for area in ("customers", "exercises", "programs", "forms", "metrics", "nutrition")]
    employee = coach.with_key(await employee_key(coach, "webhooks", *every, scope="all"))
    narrow: NewRestrictions = {"permissions": ["customers.view", "webhooks"]}
    key = coach.with_key((await api_keys.create(coach.ctx, "For n8n", narrow))["key"])
    assigned = coach.with_key(await employee_key(coach, "webhooks", *every))
    created = (await employee.post("/coach/webhooks", {"url": URL})).ok(201)
    path = f"/coach/webhooks/{created['_id']}"
    (await key.post("/coach/webhooks", {"url": URL, "types": ["workout.completed", "message.created"]})).ok(201)
    assert (await key.post("/coach/webhooks", {"url": URL})).refused(403)["permission"].endswith(".view")
    refused = (await key.post("/coach/webhooks", {"url": URL, "types": ["form.submitted"]})).refused(403)
    assert refused["permission"] == "forms.view"
    (await key.patch(path, {"description": "Mine"})).refused(403)
    for caller in (employee, key):
        team = {"url": URL, "types": ["employee.created"]}
        assert (await caller.post("/coach/webhooks", team)).refused(403)["code"] == "OWNER_ONLY"
    assert (await assigned.post("/coach/webhooks", {"url": URL})).refused(403)["code"] == "CUSTOMER_OUT_OF_SCOPE"
    (await employee.patch(path, {"types": ["note.created"]})).ok()
    (await employee.post(f"{path}/test", {"type": "note.created"})).ok(201)
    assert len((await coach.get("/coach/webhooks")).ok()) == 2
    (await employee.delete(path)).ok(204)


async def test_refusals_name_the_setting_of_development(coach: CoachClient) -> None:
    (await coach.post("/coach/webhooks", {"url": "http://example.com/"})).refused(400, "WEBHOOKS_ALLOW_HTTP")
    (await coach.post("/coach/webhooks", {"url": "https://localhost/"})).refused(400, "WEBHOOKS_ALLOW_PRIVATE")


async def test_samples_have_every_type_and_no_record(coach: CoachClient) -> None:
    samples = (await coach.get("/coach/events/samples")).ok()
    assert [each["type"] for each in samples] == list(EVENT_TYPES)
    two = (await coach.get("/coach/events/samples", types=["key.created", "note.updated"])).ok()
    assert [set(each["data"]) for each in two] == [{"keyId"}, {"noteId", "fields"}]
    (await coach.get("/coach/events/samples", types="workout.eaten")).refused(400, "types")
    (await coach.with_key(await employee_key(coach, "forms.view")).get("/coach/events/samples")).refused(403)


async def test_webhooks_of_another_company_are_unknown(coach: CoachClient, other_company: CoachClient) -> None:
    created = await create(coach)
    delivery = (await coach.post(f"/coach/webhooks/{created['_id']}/test")).ok(201)
    assert (await other_company.get("/coach/webhooks")).ok() == []
    (await other_company.get(f"/coach/webhooks/{created['_id']}")).refused(404)
    (await other_company.get(f"/coach/webhooks/{created['_id']}/deliveries")).refused(404)
    own = await create(other_company)
    path = f"/coach/webhooks/{own['_id']}/deliveries"
    (await other_company.post(f"{path}/{delivery['_id']}/redeliver")).refused(404)
    (await other_company.post(f"{path}/{UNKNOWN}/redeliver")).refused(404)


async def test_webhook_is_changed(coach: CoachClient) -> None:
    created = await create(coach, types=["note.created"])
    path = f"/coach/webhooks/{created['_id']}"
    changed = (await coach.patch(path, {"url": "https://other.invalid/", "types": [], "version": 0})).ok()
    assert (changed["url"], changed["types"], changed["version"]) == ("https://other.invalid/", [], 1)
    (await coach.patch(path, {"description": "Late", "version": 0})).refused(409)
    (await coach.patch(path, {"description": "Our CRM"})).ok()
    assert (await coach.patch(path, {"description": None})).ok()["description"] == ""
    (await coach.patch(path, {"isActive": False})).ok()
    assert (await coach.post(f"{path}/test")).refused(409)["code"] == "WEBHOOK_INACTIVE"
    assert (await coach.patch(path, {"isActive": True})).ok()["isActive"] is True
    (await coach.delete(path)).ok(204)
    (await coach.get(path)).refused(404)


async def test_previous_secret_is_kept_for_a_day(coach: CoachClient) -> None:
    created = await create(coach)
    rotated = (await coach.post(f"/coach/webhooks/{created['_id']}/rotate-secret")).ok()
    assert rotated["secret"] != created["secret"]
    assert rotated["previousSecretUntil"] > rotated["updatedAt"]
    again = (await coach.post(f"/coach/webhooks/{created['_id']}/rotate-secret")).ok()
    stored = await coach.ctx.db["webhooks"].find_one({"companyId": coach.ctx.company_id})
    assert stored is not None
    opened = [
        webhooks.open_secret(coach.ctx.services.vault, stored["_id"], each["sealed"]) for each in stored["secrets"]
    ]
    assert opened == [again["secret"], rotated["secret"]]
    assert [each["expiresAt"] is None for each in stored["secrets"]] == [True, False]


async def test_a_company_has_at_most_20_webhooks(coach: CoachClient) -> None:
    """Also when they are created at the same time."""
    replies = await asyncio.gather(*(coach.post("/coach/webhooks", {"url": URL}) for _ in range(24)))
    assert sorted(reply.status for reply in replies) == [201] * 20 + [409] * 4
    assert {reply.json.get("code") for reply in replies if reply.status == 409} == {"TOO_MANY_WEBHOOKS"}
    first, *_ = (await coach.get("/coach/webhooks")).ok()
    (await coach.delete(f"/coach/webhooks/{first['_id']}")).ok(204)
    await create(coach)


async def test_repeated_creation_returns_the_same_secret(coach: CoachClient) -> None:
    first, second = [
        await coach.post("/coach/webhooks", {"url": URL}, headers={"Idempotency-Key": "once"}) for _ in range(2)
    ]
    assert first.ok(201)["secret"] == second.ok(201)["secret"]
    assert len((await coach.get("/coach/webhooks")).ok()) == 1


async def test_secrets_are_encrypted_again_with_a_new_master_key(coach: CoachClient, services: Services) -> None:
    created = await create(coach)
    (await coach.post(f"/coach/webhooks/{created['_id']}/rotate-secret")).ok()
    stored = await services.db["webhooks"].find_one({"companyId": coach.ctx.company_id})
    assert stored is not None
    before = [webhooks.open_secret(services.vault, stored["_id"], each["sealed"]) for each in stored["secrets"]]
    old, new = parse_master_key(new_master_key()), parse_master_key(new_master_key())
    old_vault = Vault([old])
    sealed = [
        {**each, "sealed": webhooks.seal_secret(old_vault, stored["_id"], secret)}
        for each, secret in zip(stored["secrets"], before, strict=True)
    ]
    own = await _rotate(services, Vault([new, old]), {**stored, "secrets": sealed})
    assert own is not None
    assert [webhooks.open_secret(Vault([new]), own["_id"], each["sealed"]) for each in own["secrets"]] == before


async def _rotate(services: Services, vault: Vault, webhook: Json) -> Json | None:
    """Rotate the master key of a database that has only this webhook; returns the webhook afterwards."""
    db = services.db.client[f"{services.db.name}_rotation"]
    await db["webhooks"].insert_one(webhook)
    own = Services(db, vault, services.events, services.base_url, services.mail_sender, services.change_log)
    assert [changed async for changed in webhooks.rotate_master_key(own)] == [True]
    assert [changed async for changed in webhooks.rotate_master_key(own)] == [False]
    rotated: Json | None = await db["webhooks"].find_one({"_id": webhook["_id"]})
    own.monitor.close()
    own.media_worker.close()
    await services.db.client.drop_database(db.name)
    return rotated
