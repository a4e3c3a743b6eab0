"""Whether what is stored agrees with what was answered."""

from __future__ import annotations

from collections import Counter
from typing import Any

import aiohttp

from coaching_service import features
from coaching_service.core.database.checks import run_checks
from coaching_service.core.database.context import Services
from coaching_service.core.ids import ObjectId
from tests.reliability.torture.ledger import Ledger
from tests.support.service_process import until

Json = dict[str, Any]
YEAR = {"startDate": "2026-01-01", "endDate": "2027-03-31"}


class Verification:
    """Reads the data over REST, and what no operation shows from the database."""

    def __init__(self, http: aiohttp.ClientSession, services: Services, ledger: Ledger) -> None:
        self.http, self.services, self.ledger = http, services, ledger
        self.problems: list[str] = []
        self.checked: Counter[str] = Counter()
        self._calendars: dict[str, dict[str, Json]] = {}

    async def run(self) -> None:
        """Check everything; `problems` has a line for each contradiction."""
        await self._check_notes()
        await self._check_moves()
        await self._check_logs()
        await self._check_groups()
        await self._check_assignments()
        await self._check_photos()
        await self._check_deleted()
        await self._check_consistency()

    async def _get(self, path: str, **query: Any) -> Any:
        async with self.http.get(path, params=query) as response:
            assert response.status == 200, f"GET {path}: {response.status} {await response.text()}"
            return await response.json()

    async def _find_block(self, place: str) -> Json | None:
        """The block at "client date block"."""
        client, _, block = place.split()
        if client not in self._calendars:
            blocks = await self._get(f"/coach/customers/{client}/wblock", **YEAR)
            self._calendars[client] = {each["_id"]: each for each in blocks}
        return self._calendars[client].get(block)

    async def _check_notes(self) -> None:
        stored: Counter[str] = Counter()
        async for note in self.services.db["notes"].find({"content": {"$regex": "marker-"}}, {"content": 1}):
            stored[note["content"].removeprefix("<p>").removesuffix("</p>")] += 1
        for marker in self.ledger.once:
            self._expect(stored[marker] == 1, "notes answered, stored once", f"{marker}: {stored[marker]} times")
        for marker in self.ledger.at_most_once:
            self._expect(stored[marker] <= 1, "notes not answered, stored at most once", f"{marker} twice")

    async def _check_moves(self) -> None:
        for item, places in self.ledger.moved_items.items():
            blocks = [await self._find_block(place) for place in places]
            lists = [[each["_id"] for each in block["items"]] if block else [] for block in blocks]
            number = sum(items.count(item) for items in lists)
            total = sum(len(items) for items in lists)
            self._expect((number, total) == (1, 3), "items moved, in one workout", f"item {item}: {number} of {total}")

    async def _check_logs(self) -> None:
        for place, reps in self.ledger.logged_items.items():
            client, day, item = place.split()
            if client not in self._calendars:
                await self._find_block(place)
            items = {each["_id"]: each for block in self._calendars[client].values() for each in block["items"]}
            sets = items.get(item, {}).get("customerSets") or []
            stored = [each["reps"] for each in sets if each["isCompleted"]]
            self._expect(stored == [reps], "sets logged, stored", f"item {item} on {day}: {stored} instead of {reps}")

    async def _check_groups(self) -> None:
        for group, clients in self.ledger.bulk_groups.items():
            query = {"archived": "false", "pageSize": 50, "pageNum": 1, "groups": group}
            members = {each["_id"] for each in (await self._get("/coach/customers", **query))["docs"]}
            for client in clients:
                self._expect(client in members, "clients added to groups", f"{client} is not in {group}")

    async def _check_assignments(self) -> None:
        for client, answer in self.ledger.assignments.items():
            blocks = await self._get(f"/coach/customers/{client}/wblock", **YEAR)
            dates = sorted(block["date"] for block in blocks)
            self._expect(dates == sorted(answer["dates"]), "programs assigned, complete", f"{client}: {dates}")

    async def _check_photos(self) -> None:
        for client, photo in self.ledger.photos.items():
            path = f"/coach/customers/{client}/progress-photos"
            docs = (await self._get(path, pageSize=10, pageNum=1))["docs"]
            self._expect([each["_id"] for each in docs] == [photo], "photos uploaded, stored once", f"{client}: {docs}")
            for each in docs:
                async with self.http.get(each["photos"]["frontUrl"]) as response:
                    size = len(await response.read())
                    self._expect(response.status == 200 and size > 0, "files readable", f"{client}: {response.status}")

    async def _check_deleted(self) -> None:
        """Wait for the erasures, which are jobs, and count what is left of deleted clients in each collection."""
        jobs = self.services.db["jobs"]

        async def is_erased() -> bool:
            return await jobs.count_documents({"kind": {"$regex": "eras"}}) == 0

        await until(is_erased, "deleted clients are erased", 300.0)
        identifiers = [ObjectId(client) for client in self.ledger.deleted_clients]
        for name in await self.services.db.list_collection_names():
            if name == "changes":  # the deletion itself stays in the history
                continue
            left = await self.services.db[name].count_documents({"customerId": {"$in": identifiers}})
            self._expect(left == 0, "collections without data of deleted clients", f"{name}: {left} documents")
        for client in self.ledger.deleted_clients:
            async with self.http.get(f"/coach/customers/{client}") as response:
                self._expect(response.status == 404, "clients deleted", f"{client}: {response.status}")

    async def _check_consistency(self) -> None:
        """The checks of `coaching-service doctor`."""
        results = await run_checks(
            self.services, features.CHECKS, repairing=False, deleting_files=False, report=lambda _: None
        )
        for result in results:
            self._expect(result.error is None, "checks of doctor", f"{result.check.name}: {result.error}")
            for finding in result.problems:
                self.problems.append(f"doctor: {finding.problem}: {finding.count}")

    def _expect(self, is_right: bool, what: str, problem: str) -> None:
        self.checked[what] += 1
        if not is_right:
            self.problems.append(f"{what}: {problem}")
