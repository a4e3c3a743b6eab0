"""Every paginated list is walked by cursor while others insert, delete and rename (contract 14, walking)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any

import pytest
from marshmallow import Schema

from coaching_service import features
from coaching_service.core.http.routes import routes_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import AfterCursor
from coaching_service.progress.nutrition_plans import plans
from coaching_service.progress.progress_photos import photos
from tests.support.client import CoachClient, Reply
from tests.support.results import train
from tests.support.sampled import some
from tests.support.training import Json, client_path

WORDS = ("alpha", "bravo", "Charlie", "délta", "echo", "Foxtrot")
Add = Callable[[Random], Awaitable[str]]
Change = Callable[[str], Awaitable[None]]


@dataclass
class WalkedList:
    """A list under test: where it is, how its entries are added, removed and renamed, and how one is identified."""

    path: str
    query: Json
    add: Add
    remove: Change
    rename: Change | None = None
    identify: Callable[[Json], str] = lambda entry: str(entry["_id"])


def name_of(random: Random) -> str:
    return f"{random.choice(WORDS)} {random.choice(WORDS)} squat"


async def list_of_customers(coach: CoachClient, **filters: str) -> WalkedList:
    async def add(random: Random) -> str:
        return str((await coach.create_customer(name_of(random), groups=["Morning"], email="ana@example.com"))["_id"])

    async def rename(identifier: str) -> None:
        (await coach.patch(f"/coach/customers/{identifier}", {"name": "renamed squat"})).ok()

    query = {"archived": "false", **filters}
    return WalkedList("/coach/customers", query, add, deleting(coach, "/coach/customers"), rename)


async def list_of_exercises(coach: CoachClient, path: str, **filters: str) -> WalkedList:
    async def add(random: Random) -> str:
        return str((await coach.create_exercise(name_of(random), type="mobility"))["_id"])

    async def rename(identifier: str) -> None:
        (await coach.patch(f"/exercises/{identifier}", {"name": "renamed squat"})).ok()

    return WalkedList(path, filters, add, deleting(coach, "/exercises"), rename)


async def list_of_programs(coach: CoachClient, **filters: str) -> WalkedList:
    async def add(random: Random) -> str:
        return str((await coach.post("/coach/programs", {"name": name_of(random)})).ok(201)["_id"])

    async def rename(identifier: str) -> None:
        (await coach.patch(f"/coach/programs/{identifier}", {"name": "renamed squat"})).ok()

    return WalkedList(
        "/coach/programs", {"archived": "false", **filters}, add, deleting(coach, "/coach/programs"), rename
    )


async def list_of_plans(coach: CoachClient) -> WalkedList:
    ana = await coach.create_customer()
    customer_id = ObjectId(ana["_id"])

    numbers = count(1)

    async def add(_: Random) -> str:
        file: Json = {"fileName": "plan.pdf", "contentType": "application/pdf", "size": 1, "thumbnailId": None}
        plan: Any = {"customerId": customer_id, "number": next(numbers), "fileId": ObjectId(), **file}
        return str((await plans.insert(coach.ctx, plan))["_id"])

    async def remove(identifier: str) -> None:
        await plans.delete(coach.ctx, {"customerId": customer_id, "_id": ObjectId(identifier)})

    return WalkedList(client_path(ana, "plan-versions"), {}, add, remove)


async def list_of_photos(coach: CoachClient) -> WalkedList:
    ana = await coach.create_customer()
    customer_id = ObjectId(ana["_id"])
    days = iter(Random(0).sample(range(1, 365), 364))

    async def add(_: Random) -> str:
        day = next(days)
        date = f"2025-{day // 31 + 1:02}-{day % 31 + 1:02}"  # not all exist, which the store does not mind
        return str((await photos.upsert(coach.ctx, {"customerId": customer_id, "date": date}, {}))["_id"])

    async def remove(identifier: str) -> None:
        await photos.delete(coach.ctx, {"customerId": customer_id, "_id": ObjectId(identifier)})

    return WalkedList(client_path(ana, "progress-photos"), {}, add, remove)


async def list_of_activity(coach: CoachClient) -> WalkedList:
    ana = await coach.create_customer()
    notes = client_path(ana, "notes")

    async def add(_: Random) -> str:
        return str((await coach.post(notes, {"content": "Slept well"})).ok(201)["_id"])

    return WalkedList(
        client_path(ana, "activity-feed"),
        {},
        add,
        deleting(coach, notes),
        identify=lambda event: str(event["data"]["noteId"]),
    )


async def list_of_sessions(coach: CoachClient) -> WalkedList:
    ana, squat = await coach.create_customer(), await coach.create_exercise()

    async def add(random: Random) -> str:
        block = await train(coach, ana, squat, (5, 100), date=f"2026-03-{random.randint(1, 28):02}")
        return str(block["_id"])

    path = client_path(ana, "exercise", squat["_id"], "history")
    return WalkedList(
        path, {}, add, deleting(coach, client_path(ana, "wblocks")), identify=lambda each: each["wblockId"]
    )


async def list_of_done_exercises(coach: CoachClient) -> WalkedList:
    ana = await coach.create_customer()
    block_of: dict[str, str] = {}

    async def add(random: Random) -> str:
        exercise = await coach.create_exercise(name_of(random))
        block = await train(coach, ana, exercise, (5, 100), date=f"2026-03-{random.randint(1, 28):02}")
        block_of[exercise["_id"]] = block["_id"]
        return str(exercise["_id"])

    async def remove(identifier: str) -> None:
        (await coach.delete(client_path(ana, "wblocks", block_of[identifier]))).ok(204)

    async def do_again(identifier: str) -> None:
        await train(coach, ana, {"_id": identifier}, (5, 100), date="2026-04-01")

    return WalkedList(
        client_path(ana, "exercises"), {}, add, remove, do_again, identify=lambda done: str(done["exercise"]["_id"])
    )


def deleting(coach: CoachClient, path: str) -> Change:
    async def remove(identifier: str) -> None:
        (await coach.delete(f"{path}/{identifier}")).ok(204)

    return remove


LISTS: dict[str, Callable[[CoachClient], Awaitable[WalkedList]]] = {
    "customers": list_of_customers,
    "customers found": lambda coach: list_of_customers(coach, contains="squat"),
    "customers of an address in a group": lambda coach: list_of_customers(
        coach, email="ana@example.com", groups="Morning"
    ),
    "customers by creation": lambda coach: list_of_customers(coach, sort="createdAt"),
    "customers by training": lambda coach: list_of_customers(coach, sort="lastTrainedDate"),
    "customers by last change": lambda coach: list_of_customers(coach, sort="updatedAt"),
    "own exercises": lambda coach: list_of_exercises(coach, "/exercises"),
    "own exercises found": lambda coach: list_of_exercises(coach, "/exercises", keywords="squat"),
    "all exercises of a type": lambda coach: list_of_exercises(coach, "/exercises/unified", type="mobility"),
    "programs": list_of_programs,
    "programs found": lambda coach: list_of_programs(coach, keywords="squat"),
    "plan versions": list_of_plans,
    "progress photos": list_of_photos,
    "activity": list_of_activity,
    "exercise history": list_of_sessions,
    "done exercises": list_of_done_exercises,
}
# One list for each operation.
LISTS_OF_OPERATIONS = (
    *("customers", "own exercises found", "all exercises of a type", "programs", "plan versions"),
    *("progress photos", "activity", "exercise history", "done exercises"),
)
POSITION = ("page", "pagingCounter", "prevPage", "nextPage")


async def get_part(coach: CoachClient, walked: WalkedList, size: int, after: str | None = None, **more: Any) -> Reply:
    names = ("limit", "page") if walked.path.endswith("activity-feed") else ("pageSize", "pageNum")
    cursor = {} if after is None else {"after": after}
    return await coach.get(walked.path, **walked.query, **dict(zip(names, (size, 1), strict=True)), **cursor, **more)


async def read_part(coach: CoachClient, walked: WalkedList, size: int, after: str | None = None, **more: Any) -> Json:
    part: Json = (await get_part(coach, walked, size, after, **more)).ok()
    return part


async def require_reading_by_identifiers(coach: CoachClient, walked: WalkedList, name: str) -> None:
    """Require that a list with at least four entries returns those whose identifiers are given, also in parts."""
    every = await read_part(coach, walked, 50)
    field = "wblockId" if name == "exercise history" else "_id"
    ids = [str((each["exercise"] if name == "done exercises" else each)[field]) for each in every["docs"]]
    asked = [ids[2], ids[0], str(ObjectId())]

    for spelled in (asked, [*asked, asked[0]]):
        part = await read_part(coach, walked, 50, ids=spelled)
        assert [walked.identify(each) for each in part["docs"]] == [
            walked.identify(each) for each in every["docs"] if each in (every["docs"][0], every["docs"][2])
        ]
        assert part["totalDocs"] == 2
    first = await read_part(coach, walked, 1, ids=asked)
    rest = await read_part(coach, walked, 50, first["nextCursor"], ids=asked)
    assert sorted(walked.identify(each) for each in first["docs"] + rest["docs"]) == sorted(
        walked.identify(each) for each in part["docs"]
    )
    unknown = await read_part(coach, walked, 50, ids=[str(ObjectId()) for _ in range(50)])
    assert (unknown["docs"], unknown["totalDocs"]) == ([], 0)
    for wrong, code in (([ids[0]] * 51, "TOO_MANY"), (f"{ids[0]},{ids[2]}", "INVALID_ID"), ("", "INVALID_ID")):
        refused = (await get_part(coach, walked, 50, ids=wrong)).refused(400, "ids")
        assert refused["errors"][0]["code"] == code
    other_ids = await get_part(coach, walked, 50, first["nextCursor"], ids=ids[0])
    assert other_ids.refused(400)["errors"][0]["code"] == "INVALID_CURSOR"


@pytest.mark.parametrize("turn", some([1, 2], 1))
@pytest.mark.parametrize("name", LISTS)
async def test_a_walk_meets_every_lasting_entry_exactly_once(coach: CoachClient, name: str, turn: int) -> None:
    """Afterwards, one list of each operation is read by identifiers."""
    walked, random = await LISTS[name](coach), Random(f"{turn} {name}")
    added = [await walked.add(random) for _ in range(6)]
    lasting, removing, size = set(added[:4]), added[4:], random.randint(1, 2)

    async def write() -> None:
        """Insert an entry and remove one."""
        removing.append(await walked.add(random))
        await walked.remove(removing.pop(random.randrange(len(removing))))

    met: list[str] = []
    part, writing = await read_part(coach, walked, size), 3
    while True:
        met += [walked.identify(entry) for entry in part["docs"]]
        if part["nextCursor"] is None:
            break
        concurrently = write() if writing else asyncio.sleep(0)
        writing = max(0, writing - 1)
        part, _ = await asyncio.gather(read_part(coach, walked, size, part["nextCursor"]), concurrently)
        assert [part[each] for each in POSITION] == [None] * 4
        assert part["hasPrevPage"]
        assert part["hasNextPage"] == (part["nextCursor"] is not None)

    assert {each: met.count(each) for each in lasting} == dict.fromkeys(lasting, 1)
    assert len(met) == len(set(met))
    if name in LISTS_OF_OPERATIONS and turn == 1:
        await require_reading_by_identifiers(coach, walked, name)


@pytest.mark.parametrize("name", ["own exercises found", "done exercises"])
async def test_a_walk_in_order_of_relevance_bears_changes_of_the_order(coach: CoachClient, name: str) -> None:
    walked, random = await LISTS[name](coach), Random(1)
    added = [await walked.add(random) for _ in range(4)]
    assert walked.rename is not None
    part = await read_part(coach, walked, 1)
    met = [walked.identify(entry) for entry in part["docs"]]
    while part["nextCursor"]:
        await walked.rename(random.choice(added))
        part = await read_part(coach, walked, 1, part["nextCursor"])
        met += [walked.identify(entry) for entry in part["docs"]]

    assert sorted(met) == sorted(added)


async def test_a_renamed_entry_hides_and_repeats_no_other(coach: CoachClient) -> None:
    """An entry whose sort field changes during the walk may be returned twice or not at all, at its old and new places."""
    for name in ("customers", "programs", "own exercises"):
        walked, random = await LISTS[name](coach), Random(1)
        added = [await walked.add(random) for _ in range(6)]
        assert walked.rename is not None
        part = await read_part(coach, walked, 2)
        met = [walked.identify(entry) for entry in part["docs"]]
        await walked.rename(met[0])
        while part["nextCursor"]:
            part = await read_part(coach, walked, 2, part["nextCursor"])
            met += [walked.identify(entry) for entry in part["docs"]]
        assert {each: met.count(each) for each in added if each != met[0]} == dict.fromkeys(set(added) - {met[0]}, 1)


async def test_identifiers_of_another_company_are_left_out(coach: CoachClient, other_company: CoachClient) -> None:
    ana, bo = await coach.create_customer("Ana"), await other_company.create_customer("Bo")
    clients = await coach.customers(ids=[ana["_id"], bo["_id"]])
    assert [each["_id"] for each in clients["docs"]] == [ana["_id"]]
    by_address = await coach.customers(ids=ana["_id"], email="other@example.com")
    assert by_address["docs"] == []


async def test_a_cursor_belongs_to_its_list_filters_and_company(coach: CoachClient, other_company: CoachClient) -> None:
    for name in ("Ana", "Bo", "Cy"):
        await coach.create_customer(name, groups=["Morning"])
    page = {"archived": "false", "pageSize": 1, "pageNum": 1}
    cursor = (await coach.get("/coach/customers", **page)).ok()["nextCursor"]

    refused = [
        await coach.get("/coach/customers", **page, after=cursor, groups="Morning"),
        await coach.get("/coach/customers", **page, after=cursor, contains="a"),
        await coach.get("/coach/customers", **{**page, "archived": "true"}, after=cursor),
        await coach.get("/coach/programs", **page, after=cursor),
        await other_company.get("/coach/customers", **page, after=cursor),
        await coach.get("/coach/customers", **page, after=cursor + "x"),
        await coach.get("/coach/customers", **page, after=""),
    ]
    assert [reply.refused(400)["errors"][0]["code"] for reply in refused] == ["INVALID_CURSOR"] * 7
    second = await coach.get("/coach/customers", **{**page, "pageNum": 2}, after=cursor)
    assert second.refused(400, "pageNum")["errors"][0]["code"] == "NOT_WITH_AFTER"
    larger = (await coach.get("/coach/customers", **{**page, "pageSize": 5}, after=cursor)).ok()
    assert [each["name"] for each in larger["docs"]] == ["Bo", "Cy"]
    assert (larger["totalDocs"], larger["nextCursor"]) == (3, None)


async def test_pages_by_number_keep_their_position_and_show_no_sort_fields(coach: CoachClient) -> None:
    for name in ("Ana", "Bo"):
        await coach.create_customer(name)
    first = (await coach.get("/coach/customers", archived="false", pageSize=1, pageNum=1)).ok()

    assert [first[each] for each in POSITION] == [1, 1, None, 2]
    assert not first["docs"][0].keys() & {"sortName", "sortSurname"}


def test_every_paginated_list_is_walked() -> None:
    """A list that is added to the service belongs into LISTS."""
    walked = [route for route in routes_of(features.ROUTES) if isinstance(route.query, AfterCursor)]
    described = [route.path for route in routes_of(features.ROUTES) if "pagingCounter" in fields_of(route.returns)]

    assert [route.path for route in walked] == described
    assert len({route.path for route in walked}) == 12


def fields_of(schema: Any) -> Any:
    return schema().fields if isinstance(schema, type) and issubclass(schema, Schema) else {}
