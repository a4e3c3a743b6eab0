"""Which fields and which records a list returns: `fields`, `metadata[KEY]` and `sort`."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from coaching_service.core.ids import ObjectId
from tests.contract.test_queries import assert_efficient, profiling
from tests.support.client import MONDAY, SUNDAY, CoachClient
from tests.support.training import Json, client_path, employee_key

PAGE = {"pageSize": 50, "pageNum": 1}


async def records(coach: CoachClient) -> dict[str, tuple[Json, Json]]:
    """The path of each list with these parameters: its query, and a record with metadata that it has."""
    known = {"metadata": {"plan": "gold", "site": "$where"}}
    ana = await coach.create_customer("Ana", **known)
    squat = await coach.create_exercise("Squat", **known)
    program = (await coach.post("/coach/programs", {"name": "Base", **known})).ok(201)
    path = client_path(ana, "wblock")
    block = (await coach.post(f"{path}s", {"name": "Legs", "date": MONDAY, **known})).ok(201)
    day = (await coach.post(f"/coach/programs/{program['_id']}/wblocks", {"name": "A", "day": 1, **known})).ok(201)
    return {
        "/coach/customers": ({"archived": "false", **PAGE}, ana),
        "/exercises": (PAGE, squat),
        "/exercises/unified": ({"type": "my", **PAGE}, squat),
        "/coach/programs": ({"archived": "false", **PAGE}, program),
        path: ({"startDate": MONDAY, "endDate": SUNDAY}, block),
        f"/coach/programs/{program['_id']}/wblock": ({"startDay": 1, "endDay": 7}, day),
    }


def read_path(path: str, record: Json) -> str:
    return f"{path.removesuffix('/unified').replace('/wblock', '/wblocks')}/{record['_id']}"


async def test_lists_and_reads_return_the_fields_that_are_named(coach: CoachClient) -> None:
    for path, (query, record) in (await records(coach)).items():
        reply = (await coach.get(path, **query, fields="name,metadata")).ok()
        docs = reply if isinstance(reply, list) else reply["docs"]
        assert record["_id"] in {each["_id"] for each in docs}, path
        assert {frozenset(each) for each in docs} == {frozenset({"_id", "name", "metadata"})}, path
        address = read_path(path, record)
        whole = await coach.get(address)
        assert (await coach.get(address, fields="version,name")).ok() == {
            name: whole.json[name] for name in ("_id", "version", "name")
        }
        assert (await coach.get(address, fields="version")).headers["ETag"] == whole.headers["ETag"]
        for unknown in ("", "name,", "nmae", "name,companyId,firstAccessHash", "items.0", "$where", "_id, name"):
            for target, parameters in ((path, query), (address, {})):
                refused = (await coach.get(target, **parameters, fields=unknown)).refused(400, "fields")
                assert refused["errors"][0]["code"] == "UNKNOWN_FIELD"
        (await coach.get(address, fields=["name", "version"])).refused(400)


async def test_records_are_found_by_metadata(coach: CoachClient, other_company: CoachClient) -> None:
    await other_company.create_customer("Other", metadata={"plan": "gold"})
    for path, (query, record) in (await records(coach)).items():

        async def find(sent: Mapping[str, str], path: str = path, query: Json = query) -> list[str]:
            reply = (await coach.get(path, **query, **sent)).ok()
            return [each["_id"] for each in (reply if isinstance(reply, list) else reply["docs"])]

        assert await find({"metadata[plan]": "gold"}) == [record["_id"]], path
        assert await find({"metadata[plan]": "gold", "metadata[site]": "$where"}) == [record["_id"]]
        for other in ({"metadata[plan]": "$where"}, {"metadata[plan]": "Gold"}, {"metadata[site]": ""}):
            assert await find(other) == [], path
        assert await find({"metadata[$ne]": "gold"}) == await find({"metadata[plan.value]": "gold"}) == []
        assert await find({"metadata[plan]": '{"$gt": ""}'}) == []
        assert await find({"metadata[plan]": "gold", "metadata[site]": "x"}) == []
        for name in (
            "metadata",
            "metadata[]",
            "metadata[plan",
            "metadataplan",
            "metadata[a][b]",
            "metadata[plan][$gt]",
        ):
            (await coach.get(path, **query, **{name: "gold"})).refused(400)
        (await coach.get(path, **query, **{"metadata[plan]": ["gold", "silver"]})).refused(400, "only once")
        (await coach.get(path, **query, **{f"metadata[{'k' * 41}]": "x"})).refused(400)
        strict = {"Prefer": "handling=strict"}
        parameters = {**query, "metadata[plan]": "gold"}
        (await coach.send("GET", path, params=parameters, headers=strict)).ok()


async def test_clients_by_metadata_are_walked_and_found_by_an_index(coach: CoachClient) -> None:
    for number in range(7):
        plan = {"plan": "gold" if number % 2 else "silver", "n": str(number)}
        await coach.create_customer(f"Client {number}", metadata=plan)
    async with profiling(coach) as commands:
        first = await coach.customers(pageSize=2, **{"metadata[plan]": "gold"})
        assert_efficient(await commands())
    assert ([each["name"] for each in first["docs"]], first["totalDocs"]) == (["Client 1", "Client 3"], 3)
    rest = await coach.customers(pageSize=2, after=first["nextCursor"], **{"metadata[plan]": "gold"})
    assert ([each["name"] for each in rest["docs"]], rest["nextCursor"]) == (["Client 5"], None)
    path = "/coach/customers"
    other = {"archived": "false", **PAGE, "after": first["nextCursor"], "metadata[plan]": "silver"}
    (await coach.get(path, **other)).refused(400, "after")
    found = await coach.names(contains="client", **{"metadata[n]": "4"})
    assert found == ["Client 4"]
    mine = coach.with_key(await employee_key(coach, "customers.view"))
    assert await mine.names(**{"metadata[plan]": "gold"}) == []


@pytest.mark.parametrize("contains", ["", "client"])
async def test_clients_are_sorted_and_walked_in_each_order(coach: CoachClient, contains: str) -> None:
    names = ["Client e", "Client b", "Client d", "Client a", "Client c"]
    clients = {name: await coach.create_customer(name) for name in names}
    for name, date in (("Client d", "2026-03-04"), ("Client b", "2026-03-02"), ("Client e", "2026-03-02")):
        figure = {"$set": {"customerRoleData.lastTrainedDate": date}}
        await coach.ctx.db["customers"].update_one({"_id": ObjectId(clients[name]["_id"])}, figure)
    orders = {
        "name": sorted(names),
        "createdAt": names,
        "lastTrainedDate": ["Client a", "Client c", "Client b", "Client e", "Client d"],
    }
    for sort, expected in orders.items():
        assert await coach.names(sort=sort, contains=contains) == expected, sort
        pages = [await coach.names(sort=sort, contains=contains, pageSize=2, pageNum=page) for page in (1, 2, 3, 4)]
        assert [name for page in pages for name in page] == expected, sort
        walked: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            page = await coach.customers(sort=sort, contains=contains, pageSize=2, **cursor)
            walked += [each["name"] for each in page["docs"]]
            if page["nextCursor"] is None:
                break
            cursor = {"after": page["nextCursor"]}
        assert walked == expected, sort
        async with profiling(coach) as commands:
            await coach.customers(sort=sort, contains=contains, pageSize=2)
            assert_efficient(await commands())
    (await coach.get("/coach/customers", archived="false", **PAGE, sort="phone")).refused(400, "sort")
    (await coach.get("/coach/programs", archived="false", **PAGE, sort="createdAt")).refused(400, "sort")
