"""Whether what is stored agrees with what was answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

from coaching_service import features
from coaching_service.core.database.checks import run_checks
from coaching_service.core.database.context import Services
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.company_import.service import IMPORT
from coaching_service.lifecycle.erasure import ERASE_CUSTOMER
from tests.reliability.torture.ledger import AT_MOST_ONCE, NEVER, ONCE, Ledger, Times
from tests.support.service_process import until

Json = dict[str, Any]
YEAR = {"startDate": "2026-01-01", "endDate": "2027-03-31"}
ITEMS_OF_MOVE = 3
_OUTCOMES = {
    ONCE: "answered, stored once",
    AT_MOST_ONCE: "not answered, stored at most once",
    NEVER: "answered that nothing was changed, not stored",
}
JOB_SECONDS = 1800.0  # for the jobs that are left after a long run


class Verification:
    """Reads the data over REST, and what no operation shows from the database. `blocks`: workouts of the program."""

    def __init__(self, http: aiohttp.ClientSession, services: Services, ledger: Ledger, blocks: int) -> None:
        self.http, self.services, self.ledger, self.blocks = http, services, ledger, blocks
        self.problems: list[str] = []
        self.checked: Counter[str] = Counter()
        self._calendars: dict[str, list[Json]] = {}

    async def run(self) -> None:
        """Check everything; `problems` has a line for each contradiction."""
        await self._wait_for_jobs()
        await self._check_notes()
        await self._check_moves()
        await self._check_logs()
        await self._check_groups()
        await self._check_messages()
        await self._check_assignments()
        await self._check_photos()
        await self._check_imports()
        await self._check_deleted()
        await self._check_consistency()

    async def _wait_for_jobs(self) -> None:
        """Wait until erasures and imports have ended and all changes are numbered."""
        database = self.services.db

        async def have_ended() -> bool:
            kinds = {"kind": {"$in": [ERASE_CUSTOMER, IMPORT]}}
            pending = await database["changes"].count_documents({"pending": {"$exists": True}})
            return pending == await database["jobs"].count_documents(kinds) == 0

        await until(have_ended, "erasures and imports have ended", JOB_SECONDS)

    # --- single clients ----------------------------------------------------------------------------------------------

    async def _check_notes(self) -> None:
        stored = Counter([text async for text in self._stored_texts("notes", "content")])
        for marker, times in self.ledger.notes.items():
            self._expect_times(stored[marker], times, "Notes", marker)

    async def _check_moves(self) -> None:
        for move in self.ledger.moves:
            items = {
                block["_id"]: [item["_id"] for item in block["items"]] for block in await self._blocks(move.client)
            }
            lists = [items.get(block, []) for block in move.blocks]
            places = [each.count(move.item) for each in lists]
            expected = [[1 - moved, moved] for moved in move.times]
            is_right = places in expected and sum(map(len, lists)) == ITEMS_OF_MOVE
            self._expect(is_right, "Items moved from one workout to another", f"{move.item} is {places} times in them")

    async def _check_logs(self) -> None:
        for log in self.ledger.logs:
            items = [item for block in await self._blocks(log.client) for item in block["items"]]
            sets = [each for item in items if item["_id"] == log.item for each in item["customerSets"] or []]
            stored = [each["reps"] for each in sets if each["isCompleted"]]
            self._expect(stored == [log.reps], "Sets logged", f"{log.item} has {stored}, not [{log.reps}]")

    async def _check_assignments(self) -> None:
        for assignment in self.ledger.assignments:
            blocks, remainder = divmod(len(await self._blocks(assignment.client)), self.blocks)
            self._expect(remainder == 0, "Programs assigned, complete", f"{assignment.client} has a part of it")
            self._expect_times(blocks, assignment.times, "Programs assigned", assignment.client)

    async def _check_photos(self) -> None:
        for photo in self.ledger.photos:
            path = f"/coach/customers/{photo.client}/progress-photos"
            records = (await self._get(path, pageSize=10, pageNum=1))["docs"]
            self._expect_times(len(records), photo.times, "Photos uploaded", photo.client)
            for record in records:
                async with self.http.get(_path_of(record["photos"]["frontUrl"])) as response:
                    is_right = response.status == 200 and bool(await response.read())
                    self._expect(is_right, "Files of photos readable", f"{photo.client}: {response.status}")

    # --- many clients ------------------------------------------------------------------------------------------------

    async def _check_groups(self) -> None:
        for group, clients in self.ledger.groups.items():
            members = await self._members(group)
            for client in clients:
                self._expect(client in members, "Clients added to groups", f"{client} is not in {group}")

    async def _check_messages(self) -> None:
        stored = Counter([text async for text in self._stored_texts("messages", "text", by="customerId")])
        for message in self.ledger.messages:
            times = {stored[f"{message.marker} {client}"] for client in message.clients}
            self._expect(len(times) == 1, "Messages to several clients, complete", f"only some have {message.marker}")
            for each in times:
                self._expect_times(each, message.times, "Messages to several clients", message.marker)

    async def _check_imports(self) -> None:
        stored = Counter([name async for name in self._stored_texts("customers", "name")])
        for imported in self.ledger.imports:
            for name in imported.names:
                self._expect_times(stored[name], ONCE, "Clients imported", name)

    async def _check_deleted(self) -> None:
        """Count what is left of deleted clients in each collection, files included."""
        identifiers = [ObjectId(client) for client in self.ledger.deleted_clients]
        for name in sorted(await self.services.db.list_collection_names()):
            if name == "changes":  # the deletion itself stays in the history
                continue
            left = await self.services.db[name].count_documents({"customerId": {"$in": identifiers}})
            self._expect(left == 0, "Collections without data of deleted clients", f"{name} has {left} documents")
        for client in self.ledger.deleted_clients:
            async with self.http.get(f"/coach/customers/{client}") as response:
                self._expect(response.status == 404, "Clients deleted", f"{client}: {response.status}")

    async def _check_consistency(self) -> None:
        """The checks of `coaching-service doctor`."""
        for result in await run_checks(self.services, features.CHECKS):
            self._expect(result.error is None, "Checks of `doctor`", f"{result.check.name}: {result.error}")
            self.problems += [
                f"doctor: {each.problem}: {each.count}, such as {each.example}" for each in result.problems
            ]

    # --- reading -----------------------------------------------------------------------------------------------------

    async def _get(self, path: str, **query: Any) -> Any:
        async with self.http.get(path, params=query) as response:
            assert response.status == 200, f"GET {path}: {response.status} {await response.text()}"
            return await response.json()

    async def _members(self, group: str) -> set[str]:
        members: set[str] = set()
        number = 1
        while number:
            query = {"archived": "false", "pageSize": 50, "pageNum": number, "groups": group}
            page = await self._get("/coach/customers", **query)
            members |= {each["_id"] for each in page["docs"]}
            number = page["nextPage"]
        return members

    async def _blocks(self, client: str) -> list[Json]:
        """The workouts of a client; those of clients with several operations are read once."""
        if client not in self._calendars:
            self._calendars[client] = await self._get(f"/coach/customers/{client}/wblock", **YEAR)
        return self._calendars[client]

    async def _stored_texts(self, collection: str, field: str, by: str | None = None) -> AsyncIterator[str]:
        """The markers in a field of all documents, each with the value of another field."""
        async for document in self.services.db[collection].find(
            {field: {"$regex": "marker-"}}, {field: 1, by or "_id": 1}
        ):
            yield f"{document[field]} {document[by]}" if by else document[field]

    # --- results -----------------------------------------------------------------------------------------------------

    def _expect_times(self, stored: int, times: Times, what: str, which: str) -> None:
        answered = _OUTCOMES[times]
        self._expect(stored in times, f"{what}, {answered}", f"{which}: stored {stored} times")

    def _expect(self, is_right: bool, what: str, problem: str) -> None:
        self.checked[what] += 1
        if not is_right:
            self.problems.append(f"{what}: {problem}")


def _path_of(url: str) -> str:
    return "/" + url.partition("://")[2].partition("/")[2]
