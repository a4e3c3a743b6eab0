"""Lists of what has changed since a time, of a company whose records were changed long ago."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from coaching_service.core.ids import ObjectId
from tests.support.client import MONDAY, SUNDAY, CoachClient, Reply
from tests.support.training import Json

COLLECTIONS = (
    *("customers", "workoutBlocks", "programs", "exercises", "exerciseOverrides"),
    *("forms", "metricSets", "workoutTemplates"),
)
HOUR = 3_600_000
PAGE = {"pageSize": 50, "pageNum": 1}
WEEK = {"startDate": MONDAY, "endDate": SUNDAY}
ACTIVE = {"archived": "false", **PAGE}
Write = Callable[[], Awaitable[Any]]
# A write, and the records that it makes appear: those with these identifiers, or None for the one in the response.
Row = tuple[Write, set[str] | None]


class World:
    """A company whose records, and those that it shares, were changed long ago."""

    def __init__(self, coach: CoachClient) -> None:
        self.coach = coach

    async def age(self, company_id: ObjectId | None = None) -> None:
        """Make all changes so far an hour older than they are."""
        earlier = [{"$set": {"updatedAt": {"$subtract": ["$updatedAt", HOUR]}}}]
        for name in COLLECTIONS:
            where = {"companyId": company_id or self.coach.ctx.company_id}
            await self.coach.ctx.db[name].update_many(where, earlier)

    async def as_of(self, path: str, query: Json) -> str:
        """The time that a reading of a list returns for the next one."""
        return str((await self.coach.get(path, **query)).headers["X-As-Of"])

    async def read(self, path: str, since: str, query: Json) -> list[str]:
        """The identifiers in all parts of a list of what has changed since a time."""
        matches: list[str] = []
        reply = await self.coach.get(path, **query, updatedSince=since)
        while not isinstance(reply.json, list):
            matches += [record["_id"] for record in reply.ok()["docs"]]
            if (cursor := reply.json["nextCursor"]) is None:
                return matches
            reply = await self.coach.get(path, **query, updatedSince=since, after=cursor)
        return [record["_id"] for record in reply.ok()]

    async def check(self, path: str, query: Json, rows: dict[str, Row]) -> None:
        """Assert that each write makes exactly its records appear in a list since an earlier `X-As-Of`.

        Those of the first one, and of each with several records, also in the order of changes and in pages of one.
        """
        for number, (name, (write, expected)) in enumerate(rows.items()):
            await self.age()
            since = await self.as_of(path, query)
            assert await self.read(path, since, query) == [], name
            reply = await write()
            assert not isinstance(reply, Reply) or reply.status < 300, (name, reply.raw)
            identifiers = {reply.json["_id"]} if expected is None else expected
            is_paged = "pageSize" in query and (number == 0 or len(identifiers) > 1)
            for options in ({}, {"sort": "updatedAt"}, {"pageSize": 1}) if is_paged else ({},):
                matches = await self.read(path, since, {**query, **options})
                assert (set(matches), len(matches)) == (identifiers, len(identifiers)), (name, options)

    def undoing(self, write: Write) -> Write:
        """Write, let the change become old, and undo it."""

        async def write_and_undo() -> Reply:
            reply = await write()
            assert reply.status < 300, reply.raw
            await self.age()
            return await self.coach.undo(reply)

        return write_and_undo
