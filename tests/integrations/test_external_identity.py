"""External identifiers and metadata of clients, workout blocks, exercises and programs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.client import MONDAY, TUESDAY, CoachClient

PAGE = {"pageSize": 50, "pageNum": 1}
METADATA = {"plan": "gold", "$where": "1", "a.b": "x", "$set": "{}", "empty": ""}


@dataclass(frozen=True)
class Kind:
    """One kind of record: the paths of its collection and of its list, and what they need."""

    name: str
    path: str
    listed: str
    query: dict[str, Any]
    body: dict[str, Any]

    def of(self, customer: dict[str, Any], program: dict[str, Any]) -> Kind:
        """The same with the identifiers of a client and a program in the paths."""
        path, listed = (
            each.replace("{customer}", customer["_id"]).replace("{program}", program["_id"])
            for each in (self.path, self.listed)
        )
        return Kind(self.name, path, listed, self.query, self.body)

    async def find(self, coach: CoachClient, external_id: str) -> list[dict[str, Any]]:
        """The records that the list returns for an external identifier."""
        answer = (await coach.get(self.listed, **self.query, externalId=external_id)).ok()
        records: list[dict[str, Any]] = answer["docs"] if isinstance(answer, dict) else answer
        return records


_CUSTOMERS, _PROGRAMS = "/coach/customers", "/coach/programs"
_WEEK = {"startDate": MONDAY, "endDate": MONDAY}
KINDS = [
    Kind("customer", _CUSTOMERS, _CUSTOMERS, {"archived": "false", **PAGE}, {"name": "Ana"}),
    Kind("exercise", "/exercises", "/exercises", PAGE, {"name": "Squat"}),
    Kind("program", _PROGRAMS, _PROGRAMS, {"archived": "false", **PAGE}, {"name": "Base"}),
    Kind(
        "block",
        f"{_CUSTOMERS}/{{customer}}/wblocks",
        f"{_CUSTOMERS}/{{customer}}/wblock",
        _WEEK,
        {"name": "Legs", "date": MONDAY},
    ),
    Kind(
        "program block",
        f"{_PROGRAMS}/{{program}}/wblocks",
        f"{_PROGRAMS}/{{program}}/wblock",
        {"startDay": 1, "endDay": 7},
        {"name": "Legs", "day": 1},
    ),
]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
async def kind(request: pytest.FixtureRequest, coach: CoachClient) -> Kind:
    """Each kind of record, with the paths of a client and a program of the company."""
    customer = await coach.create_customer("Owner")
    program = (await coach.post("/coach/programs", {"name": "Owner"})).ok(201)
    declared: Kind = request.param
    return declared.of(customer, program)


async def test_identity_is_stored_changed_and_listed(coach: CoachClient, kind: Kind) -> None:
    plain = (await coach.post(kind.path, kind.body)).ok(201)
    assert (plain["externalId"], plain["metadata"]) == (None, {})
    identity = {"externalId": "crm:1.a_b@c-D", "metadata": METADATA}
    created = (await coach.post(kind.path, kind.body | identity)).ok(201)
    assert (created["externalId"], created["metadata"]) == ("crm:1.a_b@c-D", METADATA)
    [listed] = await kind.find(coach, "crm:1.a_b@c-D")
    assert (listed["_id"], listed["metadata"]) == (created["_id"], METADATA)
    assert await kind.find(coach, "crm:1") == []

    path = f"{kind.path}/{created['_id']}"
    changed = (await coach.patch(path, {"metadata": {"plan": "silver"}})).ok()
    assert (changed["externalId"], changed["metadata"]) == ("crm:1.a_b@c-D", {"plan": "silver"})
    cleared = (await coach.patch(path, {"externalId": None, "metadata": None})).ok()
    assert (cleared["externalId"], cleared["metadata"]) == (None, {})
    assert await kind.find(coach, "crm:1.a_b@c-D") == []


async def test_an_external_identifier_is_unique_in_the_company_and_kind(
    coach: CoachClient, other_company: CoachClient, kind: Kind
) -> None:
    first = (await coach.post(kind.path, kind.body | {"externalId": "x"})).ok(201)
    assert (await coach.post(kind.path, kind.body | {"externalId": "x"})).refused(409)["code"] == "EXTERNAL_ID_TAKEN"
    second = (await coach.post(kind.path, kind.body)).ok(201)
    path = f"{kind.path}/{second['_id']}"
    assert (await coach.patch(path, {"externalId": "x"})).refused(409)["code"] == "EXTERNAL_ID_TAKEN"
    (await coach.patch(f"{kind.path}/{first['_id']}", {"externalId": "x"})).ok()

    (await coach.delete(f"{kind.path}/{first['_id']}")).ok(204)
    (await coach.patch(path, {"externalId": "x"})).ok()

    if kind.name in ("customer", "exercise", "program"):
        assert await kind.find(other_company, "x") == []
        (await other_company.post(kind.path, kind.body | {"externalId": "x"})).ok(201)


async def test_malformed_identities_are_refused(coach: CoachClient, kind: Kind) -> None:
    for external_id in ("", "a b", "a\n", "é", "x" * 201, 1, {"$gt": ""}):
        errors = (await coach.post(kind.path, kind.body | {"externalId": external_id})).refused(400)["errors"]
        assert [error["field"] for error in errors] == ["externalId"]
    for metadata, field in (
        ([], "metadata"),
        ({str(number): "x" for number in range(21)}, "metadata"),
        ({"k" * 41: "x"}, f"metadata.{'k' * 41}"),
        ({"": "x"}, "metadata."),
        ({"k": "x" * 501}, "metadata.k"),
        ({"k": 1}, "metadata.k"),
        ({"k": None}, "metadata.k"),
        ({"k": {"$gt": ""}}, "metadata.k"),
        ({"k\x00": "x"}, "metadata.k\x00"),
    ):
        errors = (await coach.post(kind.path, kind.body | {"metadata": metadata})).refused(400)["errors"]
        assert [error["field"] for error in errors] == [field]
        if metadata == {"k": None}:
            assert (errors[0]["message"], errors[0]["code"]) == ("must not be null", "NULL")
    (await coach.get(kind.listed, **kind.query, externalId="")).refused(400)
    full = {f"{number:040}": "x" * 500 for number in range(20)}
    assert (await coach.post(kind.path, kind.body | {"metadata": full})).ok(201)["metadata"] == full


async def test_copies_have_no_external_identity(coach: CoachClient) -> None:
    customer = await coach.create_customer()
    path = f"/coach/customers/{customer['_id']}"
    identity = {"externalId": "b", "metadata": {"k": "v"}}
    block = (await coach.post(f"{path}/wblocks", {"name": "Legs", "date": MONDAY, **identity})).ok(201)

    copy = (await coach.post(f"{path}/wblocks/{block['_id']}/copy", {"date": TUESDAY})).ok(201)
    body = {"startDate": MONDAY, "endDate": MONDAY, "targetDate": "2026-03-09"}
    [week] = (await coach.post(f"{path}/schedule/copy", body)).ok(201)["created"]
    for each in (copy, week):
        assert (each["externalId"], each["metadata"]) == (None, {})


async def test_a_deletion_is_undone_only_while_the_identifier_is_free(coach: CoachClient, kind: Kind) -> None:
    first = (await coach.post(kind.path, kind.body | {"externalId": "x", "metadata": {"k": "v"}})).ok(201)
    change = (await coach.delete(f"{kind.path}/{first['_id']}")).headers["X-Change-Id"]
    if kind.name == "customer":
        assert (await coach.post(f"/coach/changes/{change}/undo")).refused(409)["code"] == "NOT_UNDOABLE"
        return
    second = (await coach.post(kind.path, kind.body | {"externalId": "x"})).ok(201)
    assert (await coach.post(f"/coach/changes/{change}/undo")).refused(409)["code"] == "EXTERNAL_ID_TAKEN"
    (await coach.patch(f"{kind.path}/{second['_id']}", {"externalId": None})).ok()
    (await coach.post(f"/coach/changes/{change}/undo")).ok(200)
    [restored] = await kind.find(coach, "x")
    assert (restored["_id"], restored["metadata"]) == (first["_id"], {"k": "v"})


async def test_concurrent_creations_with_one_identifier_create_one(coach: CoachClient, kind: Kind) -> None:
    replies = await asyncio.gather(*(coach.post(kind.path, kind.body | {"externalId": "x"}) for _ in range(5)))
    assert sorted(reply.status for reply in replies) == [201, 409, 409, 409, 409]
    assert {reply.json["code"] for reply in replies if reply.status == 409} == {"EXTERNAL_ID_TAKEN"}


async def test_a_dry_run_meets_an_identifier_that_is_taken(coach: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await coach.create_customer("Bo")
    block = {"name": "Legs", "date": MONDAY, "externalId": "x"}
    paths = [f"/coach/customers/{customer['_id']}/wblocks" for customer in (ana, bo)]
    (await coach.post(paths[0], {**block, "dryRun": True})).ok(200)
    first = (await coach.post(paths[0], block)).ok(201)
    for body in (block, {**block, "dryRun": True}):
        for path in paths:
            refused = (await coach.post(path, body)).refused(409)
            assert (refused["code"], refused["_id"]) == ("EXTERNAL_ID_TAKEN", first["_id"])
    for extra in ({}, {"dryRun": True}):
        twice = {"blocks": [{**block, "externalId": "y"}] * 2, **extra}
        assert (await coach.post(f"{paths[0]}/batch", twice)).refused(409)["code"] == "EXTERNAL_ID_TAKEN"
