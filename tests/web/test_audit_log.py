"""The audit log: who did what, who has read the data of whom, and what clients see of it."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import zipfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

import pytest

from coaching_service.core import audit
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job
from coaching_service.lifecycle import erasure
from coaching_service.people import audit_log
from tests.conftest import PASSWORD, NewCompany
from tests.core.test_uploads import form
from tests.support.client import UNKNOWN, CoachClient
from tests.support.declared_world import small_picture
from tests.support.visitor import Visitor


async def entries_of(coach: CoachClient, **query: Any) -> list[dict[str, Any]]:
    await audit_log.store_pending(coach.ctx.services)
    owner = await coach.interactive()
    listed: list[dict[str, Any]] = (await owner.get("/coach/audit", **query)).ok()["docs"]
    return listed


def test_every_action_is_documented() -> None:
    documented = (Path(audit.__file__).parents[2] / "docs/audit-log.md").read_text()
    assert [each for each in get_args(audit.AuditAction) if f"| `{each}` |" not in documented] == []


async def test_reads_of_an_hour_are_one_entry_with_a_count(coach: CoachClient) -> None:
    ana, bo = [await coach.create_customer(name) for name in ("Ana", "Bo")]
    path = f"/coach/customers/{ana['_id']}"
    for _ in range(3):
        (await coach.get(f"{path}/notes")).ok()
    (await coach.get(path)).ok()
    (await coach.get(f"/coach/customers/{bo['_id']}")).ok()
    for archived in ("false", "true"):
        (await coach.get("/coach/customers", archived=archived, pageSize=10, pageNum=1)).ok()
    (await coach.get(f"/coach/customers/{UNKNOWN}")).refused(404)
    (await coach.get("/coach/form-requests", customerId=UNKNOWN, limit=5)).ok()
    entries = [each for each in await entries_of(coach) if each["action"].endswith(".read")]
    me = coach.ctx.caller
    assert {(each["action"], each["target"]["kind"], each["customerId"], each["count"]) for each in entries} == {
        ("client.read", "notes", ana["_id"], 3),
        ("client.read", "customer", ana["_id"], 1),
        ("client.read", "customer", bo["_id"], 1),
        ("list.read", "customers", None, 2),
    }
    [notes] = [each for each in entries if each["target"]["kind"] == "notes"]
    names = ("_id", "at", "actor", "via", "action", "count", "customerId", "target", "address", "requestId")
    assert set(notes) == {*names}
    assert notes["actor"] == {"type": "key", "_id": str(me.id), "name": me.name}
    assert notes["target"] == {"kind": "notes", "_id": ana["_id"], "name": "Ana"}
    assert (notes["via"], notes["address"]) == ("apiKey", "127.0.0.1")
    (await coach.get(f"{path}/notes")).ok()
    again = await entries_of(coach, customerId=ana["_id"], action="client.read")
    assert {each["target"]["kind"]: each["count"] for each in again} == {"notes": 4, "customer": 1}


async def test_a_change_is_no_read_but_its_preview_and_an_empty_change_are(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    path = f"/coach/customers/{ana['_id']}"
    (await coach.post(f"{path}/notes", {"content": "Secret"})).ok(201)
    assert await entries_of(coach, action="client.read") == []
    (await coach.patch(path, {})).ok()
    [entry] = await entries_of(coach, action="client.read")
    assert entry["target"]["kind"] == "customer"


async def test_filters_and_cursor(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    for kind in ("notes", "messages", "availability", "check-ins"):
        (await coach.get(f"/coach/customers/{ana['_id']}/{kind}", limit=5)).ok()
    owner = await coach.interactive()
    everything = await entries_of(coach, limit=100)
    walked, after = [], None
    while True:
        page = (await owner.get("/coach/audit", limit=1, **({"after": after} if after else {}))).ok()
        walked += page["docs"]
        if (after := page["nextCursor"]) is None:
            break
    assert [each["_id"] for each in walked] == [each["_id"] for each in everything]
    times = [each["at"] for each in everything]
    assert times == sorted(times, reverse=True)
    assert await entries_of(coach, to="2026-01-01T00:00:00.000Z") == []
    assert len(await entries_of(coach, **{"from": times[-1]}, limit=100)) == len(everything)
    assert await entries_of(coach, actorId=UNKNOWN) == await entries_of(coach, customerId=UNKNOWN) == []
    (await owner.get("/coach/audit", action="client.seen")).refused(400)
    (await owner.get("/coach/audit", limit=101)).refused(400)
    assert (await coach.get("/coach/audit")).refused(403)["code"] == "SESSION_REQUIRED"


async def test_sensitive_actions_are_recorded_without_values(coach: CoachClient) -> None:
    owner = await coach.interactive()
    ana = await coach.create_customer("Ana")
    path = f"/coach/customers/{ana['_id']}"
    key = (await owner.post("/coach/api-keys", {"name": "Website"})).ok(201)
    (await owner.get(f"/coach/api-keys/{key['_id']}/reveal")).ok()
    (await owner.delete(f"/coach/api-keys/{key['_id']}")).ok(204)
    hired = {"name": "Eli", "email": f"eli{ObjectId()}@example.com", "permissions": [], "customersScope": "all"}
    employee = (await owner.post("/coach/employees", hired)).ok(201)
    rights = {"permissions": ["customers.view"], "customersScope": "assigned"}
    (await owner.put(f"/coach/employees/{employee['_id']}/permissions", rights)).ok()
    (await owner.patch(f"/coach/employees/{employee['_id']}", {"name": "Eli B"})).ok()
    (await owner.delete(f"/coach/employees/{employee['_id']}")).ok(204)
    (await owner.patch("/coach/account", {"companyName": "Zanzibar Gym"})).ok()
    for archived in (True, False):
        (await coach.put(f"/coach/customers/{'archive' if archived else 'unarchive'}", {"id": ana["_id"]})).ok()
    (await owner.post(f"{path}/impersonate")).ok()
    (await coach.get(f"{path}/export")).ok()
    entries = await entries_of(coach, limit=100)
    done = [(each["action"], each["target"]["name"]) for each in entries if each["target"]["kind"] != "customers"]
    assert done[::-1] == [
        ("key.created", "Website"),
        ("key.revealed", "Website"),
        ("key.deleted", "Website"),
        ("employee.created", "Eli"),
        ("permissions.changed", "Eli"),
        ("employee.removed", "Eli B"),
        ("account.changed", "companyName"),
        ("client.archived", "Ana"),
        ("client.unarchived", "Ana"),
        ("client.impersonated", "Ana"),
        ("client.exported", "Ana"),
    ]
    assert "Zanzibar" not in json.dumps(entries)
    assert key["key"] not in json.dumps(entries)


async def test_sign_ins_have_address_and_program_and_failures_are_those_of_known_accounts(
    coach: CoachClient, visitor: Visitor
) -> None:
    address = str(coach.ctx.caller.email)
    for password, status in (("not the password", 401), (PASSWORD, 200)):
        credentials = {"email": address, "password": password}
        (await coach.post("/auth/login", credentials, headers={"User-Agent": "Programme/1"})).ok(status)
    (await visitor.sign_in(address, PASSWORD)).ok()
    (await coach.post("/auth/login", {"email": "nobody@example.com", "password": PASSWORD})).refused(401)
    entries = [each for each in await entries_of(coach) if each["action"].startswith("sign_in.")]
    assert [each["action"] for each in entries] == ["sign_in.succeeded", "sign_in.succeeded", "sign_in.failed"]
    name = coach.ctx.caller.name
    assert {(each["actor"]["type"], each["actor"]["name"], each["address"]) for each in entries} == {
        ("coach", name, "127.0.0.1")
    }
    stored = await coach.ctx.db["audit"].find({"companyId": coach.ctx.company_id, "action": "sign_in.failed"}).to_list()
    assert [each["device"] for each in stored] == ["Programme/1"]


async def test_opening_a_link_to_a_file_is_a_read_by_whom_it_was_made_for(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    photo = form(small_picture(), "profilePhotoFile", "ana.png")
    changed = (await coach.send("PUT", f"/coach/customers/{ana['_id']}/profile-photo", data=photo)).ok()
    stranger = coach.with_bearer("")
    stranger.checks = False

    async def open_link(url: str) -> int:
        return (await stranger.send("GET", urlsplit(url)._replace(scheme="", netloc="").geturl())).status

    url = changed["profilePhotoUrl"]
    for _ in range(2):
        assert await open_link(url) == 200
    assert await open_link(url.replace(str(coach.ctx.caller.id), UNKNOWN)) == 403
    own = await coach.as_client(ana)
    assert await open_link((await own.get("/customer/me")).ok()["profilePhotoUrl"]) == 200
    [entry] = [each for each in await entries_of(coach) if each["target"]["kind"] == "file"]
    assert (entry["action"], entry["customerId"], entry["count"]) == ("client.read", ana["_id"], 2)
    assert entry["actor"] == {"type": "key", "_id": str(coach.ctx.caller.id), "name": coach.ctx.caller.name}


async def test_clients_see_who_has_looked_and_changed_by_day(coach: CoachClient, new_company: NewCompany) -> None:
    ana = await coach.create_customer("Ana", timezone="Pacific/Kiritimati")
    bo = await coach.create_customer("Bo")
    path = f"/coach/customers/{ana['_id']}"
    owner = await coach.interactive()
    for _ in range(2):
        (await owner.get(f"{path}/notes")).ok()
    (await coach.post(f"{path}/notes", {"content": "New"})).ok(201)
    (await owner.get(f"/coach/customers/{bo['_id']}")).ok()
    client = await coach.as_client(ana)
    (await client.get("/customer/me")).ok()
    (await client.patch("/customer/me", {"phone": "1"})).ok()
    acting = coach.with_bearer((await owner.post(f"{path}/impersonate")).ok()["accessToken"])
    (await acting.get("/customer/wblock", startDate="2026-03-02", endDate="2026-03-08")).ok()
    await audit_log.store_pending(coach.ctx.services)
    name = coach.ctx.caller.name
    seen = (await client.get("/customer/access")).ok()
    at_home = str(coach.ctx.caller.today("Pacific/Kiritimati"))
    assert seen == [
        {"date": at_home, "actor": {"type": "key", "name": name}, "reads": 0, "changes": 2},
        {"date": at_home, "actor": {"type": "coach", "name": name}, "reads": 3, "changes": 0},
    ]
    assert (await coach.get("/customer/access")).refused(403)["code"] == "CLIENT_SESSION"
    other = await new_company()
    assert await entries_of(other, customerId=ana["_id"]) == []


async def test_erasing_a_client_leaves_only_that_it_was_done(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    path = f"/coach/customers/{ana['_id']}"
    (await coach.get(f"{path}/notes")).ok()
    await audit_log.store_pending(coach.ctx.services)
    (await coach.get(path)).ok()
    (await coach.delete(path)).ok(204)
    arguments = {"companyId": coach.ctx.company_id, "customerId": ObjectId(ana["_id"])}
    result = await erasure.erase_customer(coach.ctx.services, Job(ObjectId(), arguments, 1))
    while result is not None and not result.after:
        result = await erasure.erase_customer(coach.ctx.services, Job(ObjectId(), arguments, 1))
    entries = await entries_of(coach)
    assert [(each["action"], each["customerId"], each["target"]) for each in entries] == [
        ("client.erased", None, {"kind": "client", "_id": ana["_id"], "name": None})
    ]


async def test_the_log_is_in_the_export_of_the_company_and_an_import_leaves_it_out(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    (await coach.get(f"/coach/customers/{ana['_id']}")).ok()
    await audit_log.store_pending(coach.ctx.services)
    raw = (await coach.get("/coach/export")).raw
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        exported = [json.loads(line) for line in archive.read("audit.jsonl").splitlines()]
    assert [each["action"] for each in exported] == ["company.exported", "client.read"]
    assert exported[1]["customerId"] == ana["_id"]


async def test_entries_are_kept_for_the_time_of_the_setting(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    (await coach.get(f"/coach/customers/{ana['_id']}")).ok()
    await audit_log.store_pending(coach.ctx.services)
    [entry] = await coach.ctx.db["audit"].find({"companyId": coach.ctx.company_id}).to_list()
    assert abs(entry["until"] - now() - timedelta(days=400)) < timedelta(minutes=1)


async def test_what_cannot_be_stored_is_kept_for_the_next_time(
    coach: CoachClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = await coach.create_customer("Ana")
    (await coach.get(f"/coach/customers/{ana['_id']}")).ok()

    async def fail(*_: object) -> None:
        raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(audit, "store_entries", fail)
        with pytest.raises(OSError):
            await audit_log.store_pending(coach.ctx.services)
        (await coach.get(f"/coach/customers/{ana['_id']}")).ok()
    [entry] = await entries_of(coach, action="client.read")
    assert entry["count"] == 2


async def test_who_stores_what_is_left_waits_for_what_is_being_stored(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    (await coach.get(f"/coach/customers/{ana['_id']}")).ok()
    services = coach.ctx.services
    first = asyncio.create_task(audit_log.store_pending(services))
    await asyncio.sleep(0)
    await audit_log.store_pending(services)
    assert await coach.ctx.db["audit"].count_documents({"customerId": ObjectId(ana["_id"])}) == 1
    await first


async def test_the_page_shows_filters_and_a_table(owner_page: Visitor, coach: CoachClient) -> None:
    for name in ("Bo;=Bo", "\uff1dCai", "=Ana"):
        client = await coach.create_customer(name)
        (await coach.get(f"/coach/customers/{client['_id']}/notes")).ok()
        await audit_log.store_pending(coach.ctx.services)
    page = (await owner_page.get("/app/settings/audit-log")).ok()
    page.says("Audit log", "Read the data of a client", "notes", "=Ana", coach.ctx.caller.name)
    (await owner_page.get("/app/settings/audit-log?action=key.created")).ok().says("No entries")
    table = (await owner_page.get("/app/settings/audit-log/audit-log.csv?action=client.read")).ok()
    row, *others = csv.DictReader(io.StringIO(table.html))
    assert [each["target"] for each in others] == ["'\uff1dCai", "Bo;'=Bo"]
    assert (row["action"], row["kind"], row["target"], row["count"]) == ("client.read", "notes", "'=Ana", "1")
    assert datetime.fromisoformat(row["at"])
