"""Programs that keep a copy with updatedSince: after an import, while others write, and the time to read from."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from coaching_service.core.database.context import Context, in_transaction
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service as customers
from tests.support.client import CoachClient
from tests.support.training import (
    Json,
    block_with,
    client_path,
    exercise_of,
    task,
)
from tests.support.transfer import export, import_file, make_zip
from tests.support.updated_since import ACTIVE, PAGE, WEEK, World

LISTS: dict[str, Json] = {
    "/coach/customers": ACTIVE,
    "/coach/programs": ACTIVE,
    "/exercises": PAGE,
    "/coach/forms": {},
    "/coach/metrics-sets": {},
    "/coach/workout-templates": {},
}


async def test_all_that_is_imported_appears(coach: CoachClient, other_company: CoachClient) -> None:
    unit = (await coach.get("/metrics-units")).ok()[0]["_id"]
    ana, squat = await coach.create_customer("Ana"), await coach.create_exercise()
    await block_with(coach, ana, exercise_of(squat))
    for path, fields in (
        ("/coach/programs", {}),
        ("/coach/forms", {"questions": [{"label": "Well?"}]}),
        ("/coach/metrics-sets", {"metrics": [{"name": "Weight", "metricUnitId": unit}]}),
        ("/coach/workout-templates", {"items": [task()]}),
    ):
        (await coach.post(path, {"name": "One", **fields})).ok(201)
    await World(coach).age()
    world = World(other_company)
    since = {path: await world.as_of(path, query) for path, query in LISTS.items()}

    assert (await import_file(other_company, make_zip(await export(coach))))["status"] == "done"
    await import_file(other_company, b"name\nEli\n", name="clients.csv")

    counts = {path: len(await world.read(path, since[path], query)) for path, query in LISTS.items()}
    assert counts == {**dict.fromkeys(LISTS, 1), "/coach/customers": 2}
    [imported] = (await other_company.customers(contains="Ana"))["docs"]
    assert len(await world.read(client_path(imported, "wblock"), since["/exercises"], WEEK)) == 1


class Mirror:
    """A copy of the clients of a company, as a program keeps one."""

    def __init__(self, coach: CoachClient) -> None:
        self.coach, self.clients, self.since, self.cursor = coach, dict[str, Json](), "1970-01-01T00:00:00Z", ""

    async def synchronize(self) -> None:
        """Read what has changed, then what has been deleted."""
        since = ""
        for archived in ("false", "true"):
            query: Json = {"archived": archived, "sort": "updatedAt", "pageSize": 3, "pageNum": 1}
            reply = await self.coach.get("/coach/customers", **query, updatedSince=self.since)
            since = since or reply.headers["X-As-Of"]
            while True:
                self.clients |= {each["_id"]: each for each in reply.ok()["docs"]}
                if (cursor := reply.json["nextCursor"]) is None:
                    break
                reply = await self.coach.get("/coach/customers", **query, updatedSince=self.since, after=cursor)
        self.since = since


async def test_a_copy_misses_nothing_that_others_write_meanwhile(coach: CoachClient) -> None:
    """Also not what is written before a reading and committed only after it."""
    world = World(coach)
    clients = [await coach.create_customer(f"Client {number}") for number in range(8)]
    mirror = Mirror(coach)
    await mirror.synchronize()
    written, committing = asyncio.Event(), asyncio.Event()

    async def write_slowly(tx: Context) -> None:
        await customers.update(tx, ObjectId(clients[0]["_id"]), {"phone": "late"})
        written.set()
        await committing.wait()

    async def write(number: int) -> None:
        for turn in range(12):
            client = clients[1 + (number + turn) % 7]
            if turn % 4 == 3:
                action = "archive" if turn % 8 == 3 else "unarchive"
                (await coach.put(f"/coach/customers/{action}", {"id": client["_id"]})).ok()
            elif turn % 4 == 1:
                ids = [each["_id"] for each in clients[1:5]]
                body = {"ids": ids, "groups": [f"Group {number} {turn}"]}
                (await coach.post("/coach/customers/bulk/groups-add", body)).ok()
            elif turn == 2:
                clients.append(await coach.create_customer(f"New {number}"))
            else:
                (await coach.patch(client_path(client), {"phone": f"{number} {turn}"})).ok()

    await world.age()
    late = asyncio.create_task(in_transaction(coach.ctx, write_slowly))
    await written.wait()
    writers = asyncio.gather(*(write(number) for number in range(3)))
    while not writers.done():
        await mirror.synchronize()
    await writers
    await mirror.synchronize()
    assert mirror.clients[clients[0]["_id"]]["phone"] is None
    committing.set()
    await late
    await mirror.synchronize()

    stored = [*(await coach.customers())["docs"], *(await coach.customers(archived="true"))["docs"]]
    assert len(stored) == len(clients)
    assert {each["_id"]: each["version"] for each in stored} == {
        key: each["version"] for key, each in mirror.clients.items()
    }
    assert mirror.clients[clients[0]["_id"]]["phone"] == "late"


async def test_the_time_for_the_next_reading_is_90_seconds_ago(coach: CoachClient) -> None:
    before = datetime.now(UTC)
    header = await World(coach).as_of("/coach/forms", {})
    assert len(header) == len("2026-03-02T08:30:00.000Z")
    ago = before - datetime.fromisoformat(header)
    assert timedelta(seconds=80) < ago <= timedelta(seconds=90, milliseconds=1)
    for path, query in (*LISTS.items(), ("/exercises/unified", PAGE)):
        assert "X-As-Of" in (await coach.get(path, **query)).headers
        (await coach.get(path, **query, updatedSince="yesterday")).refused(400, "updatedSince")
        if "pageSize" in query:
            (await coach.get(path, **query, sort="position")).refused(400, "sort")
    assert "X-As-Of" not in (await coach.get("/coach/account")).headers
