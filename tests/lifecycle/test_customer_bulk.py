"""One change to many clients at once (contract 4)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from coaching_service.core.ids import ObjectId
from coaching_service.people import team
from coaching_service.people.sessions import service as sessions
from tests.support.client import UNKNOWN, CoachClient
from tests.support.service_process import until

OPERATIONS: dict[str, dict[str, Any]] = {
    "archive": {},
    "unarchive": {},
    "groups-add": {"groups": ["New"]},
    "groups-remove": {"groups": ["A"]},
    "assign-trainer": {"coachId": None},
    "assign-program": {"programId": UNKNOWN, "startDate": "2026-03-02"},
    "assign-metrics-set": {"metricsSetId": UNKNOWN},
    "delete": {},
}
each_operation = pytest.mark.parametrize("operation", OPERATIONS)


async def bulk(coach: CoachClient, operation: str, **body: Any) -> Any:
    return await coach.post(f"/coach/customers/bulk/{operation}", body)


async def ids(coach: CoachClient, *names: str, **fields: Any) -> list[str]:
    return [(await coach.create_customer(name, **fields))["_id"] for name in names]


async def own(coach: CoachClient, operation: str) -> dict[str, Any]:
    """The operation's own fields, with identifiers of this company."""
    fields = dict(OPERATIONS[operation])
    if "programId" in fields:
        program = (await coach.post("/coach/programs", {"name": "P"})).ok(201)
        await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "D", "day": 3})
        fields["programId"] = program["_id"]
    if "metricsSetId" in fields:
        unit = (await coach.get("/metrics-units")).ok()[0]["_id"]
        metrics = {"name": "M", "metrics": [{"name": "W", "metricUnitId": unit}]}
        fields["metricsSetId"] = (await coach.post("/coach/metrics-sets", metrics)).ok(201)["_id"]
    return fields


async def all_ids(coach: CoachClient) -> list[Any]:
    """All that a bulk operation could change."""
    matches: list[Any] = []
    for archived in ("false", "true"):
        page = await coach.customers(archived=archived)
        matches.append(page)
        for customer in page["docs"]:
            matches.append(await coach.calendar(customer))
            matches.append((await coach.get(f"/coach/customers/{customer['_id']}/metrics-sets")).ok())
    return matches


@each_operation
async def test_identifiers_that_are_not_ours_fail_and_the_others_succeed(
    coach: CoachClient, other_company: CoachClient, operation: str
) -> None:
    """Contract 4: `requested` and `ok` are counts of distinct clients; unknown or another company's are in `failed`."""
    ana, bo = await ids(coach, "Ana", "Bo", groups=["A"])
    [theirs] = await ids(other_company, "Theirs")

    wanted = [ana, UNKNOWN, bo, theirs, ana]
    result = (await bulk(coach, operation, ids=wanted, **await own(coach, operation))).ok()

    assert (result["requested"], result["ok"]) == (4, 2)
    assert {(f["customerId"], f["code"]) for f in result["failed"]} == {(UNKNOWN, "NOT_FOUND"), (theirs, "NOT_FOUND")}
    assert await other_company.names() == ["Theirs"]


@each_operation
async def test_dry_run_returns_the_same_and_writes_nothing(coach: CoachClient, operation: str) -> None:
    wanted = await ids(coach, "Ana", "Bo", groups=["A"])
    fields = await own(coach, operation)
    before = await all_ids(coach)

    dry = (await bulk(coach, operation, ids=[*wanted, UNKNOWN], dryRun=True, **fields)).ok()

    assert await all_ids(coach) == before
    assert (await bulk(coach, operation, ids=[*wanted, UNKNOWN], **fields)).ok() == dry
    assert (await all_ids(coach) != before) or operation in ("unarchive", "assign-trainer")


SELECTIONS: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "either ids or filter"),
    ({"ids": [UNKNOWN], "filter": {"archived": False}}, "either ids or filter"),
    ({"filter": {}}, "filter.archived"),
    ({"filter": {"archived": "false"}}, "filter.archived"),
    ({"filter": {"archived": False, "colour": "red"}}, "filter.colour"),
    ({"filter": {"archived": False, "groups": "A"}}, "filter.groups"),
    ({"filter": {"archived": False, "groups": None}}, "filter.groups"),
    ({"filter": {"archived": False, "assignedTo": None}}, "filter.assignedTo"),
    ({"filter": {"archived": False, "assignedTo": ["me"]}}, "filter.assignedTo.0"),
    ({"ids": [UNKNOWN], "excludeIds": [UNKNOWN]}, "excludeIds"),
    ({"ids": [UNKNOWN], "unknown": 1}, "unknown"),
    ({"ids": ["x"]}, "ids.0"),
    ({"ids": UNKNOWN}, "ids"),
    ({"ids": [UNKNOWN], "dryRun": "yes"}, "dryRun"),
)


async def test_selection_is_validated(coach: CoachClient) -> None:
    """Contract 4: a selection needs either `ids` or `filter`; `filter` must specify `archived`; `excludeIds` may
    accompany `filter` only; unknown fields in bulk requests are rejected."""
    for operation, fields in OPERATIONS.items():
        for selection, word in SELECTIONS:
            (await bulk(coach, operation, **fields, **selection)).refused(400, word)


@pytest.mark.parametrize(
    ("operation", "fields", "word"),
    [
        ("groups-add", {}, "groups"),
        ("groups-add", {"groups": []}, "groups"),
        ("assign-trainer", {}, "coachId"),
        ("assign-program", {"programId": UNKNOWN}, "startDate"),
        ("assign-program", {"startDate": "2026-03-02"}, "programId"),
        ("assign-metrics-set", {"metricsSetId": "x"}, "metricsSetId"),
        ("archive", {"groups": ["A"]}, "groups"),
    ],
)
async def test_fields_of_an_operation_are_required_and_others_rejected(
    coach: CoachClient, operation: str, fields: dict[str, Any], word: str
) -> None:
    (await bulk(coach, operation, ids=[UNKNOWN], **fields)).refused(400, word)


@pytest.mark.parametrize("operation", ["assign-trainer", "assign-program", "assign-metrics-set"])
async def test_unknown_references_are_not_found(coach: CoachClient, operation: str) -> None:
    fields = OPERATIONS[operation] | ({"coachId": UNKNOWN} if operation == "assign-trainer" else {})
    (await bulk(coach, operation, ids=[UNKNOWN], **fields)).refused(404)


async def test_a_filter_selects_as_the_list_does(coach: CoachClient) -> None:
    me = str(coach.ctx.caller.id)
    await ids(coach, "Ana", groups=["A"], assignedTo=me)
    await ids(coach, "Anabel", groups=["B"])
    [cy] = await ids(coach, "Cy", groups=["A", "B"])

    async def requested(**fields: Any) -> int:
        done = (await bulk(coach, "archive", filter={"archived": False, **fields}, dryRun=True)).ok()
        return int(done["requested"])

    assert await requested() == 3
    assert await requested(contains="ANA") == 2
    assert await requested(contains="\\d") == 0
    assert await requested(groups=["A", "B"]) == 3
    assert await requested(groups=["A"], contains="cy") == 1
    assert await requested(assignedTo=[me]) == 1
    assert await requested(assignedTo=["none"]) == 2
    assert await requested(assignedTo=[me, "none"]) == 3
    done = (await bulk(coach, "archive", filter={"archived": False}, excludeIds=[cy, UNKNOWN])).ok()
    assert (done["requested"], done["ok"], done["failed"]) == (2, 2, [])
    assert (await coach.names(), await coach.names(archived="true")) == (["Cy"], ["Ana", "Anabel"])


async def test_archiving_updates_counts_and_no_other_clients(coach: CoachClient) -> None:
    ana, bo = await ids(coach, "Ana", "Bo")
    await coach.put("/coach/customers/archive", {"id": ana})
    before = (await coach.get(f"/coach/customers/{ana}")).ok()

    assert (await bulk(coach, "archive", ids=[ana, bo])).ok()["ok"] == 2

    assert (await coach.get(f"/coach/customers/{ana}")).ok() == before
    assert (await coach.get(f"/coach/customers/{bo}")).ok()["version"] == 1
    assert ((await coach.customers())["totalDocs"], (await coach.customers(archived="true"))["totalDocs"]) == (0, 2)
    assert (await bulk(coach, "unarchive", ids=[ana, bo])).ok()["ok"] == 2
    assert (await coach.customers())["totalDocs"] == 2


async def test_groups_are_added_and_removed(coach: CoachClient) -> None:
    ana, bo = await ids(coach, "Ana", "Bo", groups=["A", "B"])
    await bulk(coach, "groups-add", ids=[ana], groups=["C", "A", "C"])
    await bulk(coach, "groups-remove", ids=[ana, bo], groups=["B", "Z"])
    groups = {c["name"]: c["customerRoleData"]["groups"] for c in (await coach.customers())["docs"]}
    assert groups == {"Ana": ["A", "C"], "Bo": ["A"]}


@pytest.mark.parametrize("dry", [True, False])
async def test_group_limit_of_a_client_is_enforced(coach: CoachClient, dry: bool) -> None:
    """The result of a bulk change can be read and sent back."""
    [ana], [bo] = await ids(coach, "Ana", groups=[str(n) for n in range(49)]), await ids(coach, "Bo")

    created = await bulk(coach, "groups-add", ids=[ana, bo], groups=["48", "49", "50"], dryRun=dry)
    created = created.ok()

    assert (created["requested"], created["ok"]) == (2, 1)
    [failed] = created["failed"]
    assert (failed["customerId"], failed["code"]) == (ana, "BAD_REQUEST")
    assert "50" in failed["message"]
    counts = {c["name"]: len(c["customerRoleData"]["groups"]) for c in (await coach.customers())["docs"]}
    assert counts == {"Ana": 49, "Bo": 0 if dry else 3}


async def test_program_and_metric_set_are_assigned_to_every_client(coach: CoachClient) -> None:
    wanted = await ids(coach, "Ana", "Bo")
    await bulk(coach, "assign-program", ids=wanted, **await own(coach, "assign-program"))
    await bulk(coach, "assign-metrics-set", ids=wanted, **await own(coach, "assign-metrics-set"))
    for customer in (await coach.customers())["docs"]:
        [block] = await coach.calendar(customer)
        assert (block["date"], block["day"]) == ("2026-03-04", 3)
        assert len((await coach.get(f"/coach/customers/{customer['_id']}/metrics-sets")).ok()) == 1
        assert customer["customerRoleData"]["lastWorkoutDate"] == "2026-03-04"


async def blocks_of(coach: CoachClient, *wanted: str) -> list[int]:
    """How many blocks each client has."""
    dates = {"startDate": "2020-01-01", "endDate": "2030-12-31"}
    return [len((await coach.get(f"/coach/customers/{each}/wblock", **dates)).ok()) for each in wanted]


async def test_repeated_assignment_with_the_same_key_assigns_once(coach: CoachClient) -> None:
    """Contract 1: `Idempotency-Key` on POSTs that create coaching data; also when the first was cut off midway."""
    ana, bo, cy = await ids(coach, "Ana", "Bo", "Cy")
    path, key = "/coach/customers/bulk/assign-program", {"Idempotency-Key": "k"}
    body = {"ids": [ana, bo, cy], **await own(coach, "assign-program")}
    (await coach.post(path, body, headers={"Idempotency-Key": "a b"})).refused(400, "Idempotency-Key")

    replies = await asyncio.gather(*(coach.post(path, body, headers=key) for _ in range(6)))

    assert {reply.status for reply in replies} <= {200, 409}
    assert {reply.json["ok"] for reply in replies if reply.status == 200} == {3}
    assert await blocks_of(coach, ana, bo, cy) == [1, 1, 1]
    again = await coach.post(path, body, headers=key)
    assert again.headers["Idempotent-Replayed"] == "true"
    (await coach.post(path, body | {"startDate": "2026-05-01"}, headers=key)).refused(409, "another body")

    replays = coach.ctx.db["replays"]
    await replays.delete_one({"companyId": coach.ctx.company_id, "about": None})
    await replays.delete_one({"companyId": coach.ctx.company_id, "about": ObjectId(cy)})
    (await coach.post(path, body | {"startDate": "2026-05-01"}, headers=key)).refused(409, "another body")
    resumed = await coach.post(path, body, headers=key)
    assert "Idempotent-Replayed" not in resumed.headers
    assert resumed.ok() == {"requested": 3, "ok": 3, "failed": []}
    assert await blocks_of(coach, ana, bo, cy) == [1, 1, 2], "as if it had been cut off before Cy"
    assert (await coach.post(path, body)).ok()["ok"] == 3
    assert await blocks_of(coach, ana, bo, cy) == [2, 2, 3], "without the key it is a new request"


async def test_deleted_clients_and_their_data_are_removed(coach: CoachClient) -> None:
    ana, bo = [await coach.create_customer(name) for name in ("Ana", "Bo")]
    for customer in (ana, bo):
        await coach.schedule(customer)
    remaining = await coach.create_customer("Kept")
    await coach.schedule(remaining)

    assert (await bulk(coach, "delete", ids=[ana["_id"], bo["_id"]])).ok()["ok"] == 2

    assert await coach.names() == ["Kept"]
    assert (await coach.customers())["totalDocs"] == 1

    async def only_the_kept() -> bool:
        blocks = await coach.ctx.db["workoutBlocks"].find({"companyId": coach.ctx.company_id}).to_list(None)
        return [str(block["customerId"]) for block in blocks] == [remaining["_id"]]

    await until(only_the_kept, "their blocks are gone")


async def test_employee_cannot_change_clients_of_colleagues(coach: CoachClient, password_hash: str) -> None:
    """Contract 1: client of one's own company outside an employee's scope: `failed` in bulk."""
    email = f"eli@{coach.ctx.company_id}.test"
    eli = await team.create(coach.ctx, "Eli", email, ["customers.edit"], "assigned", password_hash)
    [mine] = await ids(coach, "Mine", assignedTo=str(eli["_id"]))
    [theirs] = await ids(coach, "Theirs")
    as_eli = coach.with_bearer((await sessions.create_session(coach.ctx, eli["_id"], "coach"))["accessToken"])

    result = (await bulk(as_eli, "archive", ids=[mine, theirs])).ok()

    assert (result["requested"], result["ok"]) == (2, 1)
    assert [(f["customerId"], f["code"]) for f in result["failed"]] == [(theirs, "FORBIDDEN")]
    assert await coach.names() == ["Theirs"]
    assert (await bulk(as_eli, "unarchive", filter={"archived": True})).ok()["requested"] == 1
    (await bulk(as_eli, "delete", ids=[mine])).refused(403, "customers.delete")


async def test_concurrent_bulk_requests_count_only_changed_clients(coach: CoachClient) -> None:
    """Contract 4: each client is changed completely or not at all; counts stay right whatever the order of the calls."""
    wanted = await ids(coach, *(f"Client {number}" for number in range(30)))
    fields = await own(coach, "assign-metrics-set")
    calls = [bulk(coach, "assign-metrics-set", ids=wanted, **fields) for _ in range(4)]
    calls += [bulk(coach, operation, ids=wanted) for operation in ("archive", "unarchive", "archive")]
    assert [reply.ok()["ok"] for reply in await asyncio.gather(*calls)] == [30] * 7
    totals = [(await coach.customers(archived=archived))["totalDocs"] for archived in ("true", "false")]
    assert sorted(totals) == [0, 30]
    assert len((await coach.get(f"/coach/customers/{wanted[0]}/metrics-sets")).ok()) == 1

    erased = [reply.ok() for reply in await asyncio.gather(*(bulk(coach, "delete", ids=wanted) for _ in range(3)))]

    assert sum(result["ok"] for result in erased) == 30
    assert {failure["code"] for result in erased for failure in result["failed"]} == {"NOT_FOUND"}
    assert [(await coach.customers(archived=archived))["totalDocs"] for archived in ("true", "false")] == [0, 0]
