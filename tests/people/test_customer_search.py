"""The list of clients by `contains` in a large company: what it reads depends on the hits, not on the size of the company.

The profiler of the database reports what each query examined; nothing is timed. One test, so that one worker makes the
company. SEARCH_SCALE is how many clients it has (3500, and 5000 in the proofs).
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import registry
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import Page
from coaching_service.core.text import normalize
from coaching_service.installation.indexes import ensure_indexes
from coaching_service.people import team
from coaching_service.people.customers import batch
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import CustomerDetails, CustomerProfile, NewCustomerDocument
from coaching_service.seeding import seed_clients
from tests.support.databases import profile_of
from tests.support.sampled import MORE, some

SCALE = int(os.environ.get("SEARCH_SCALE", "5000" if MORE > 1 else "3500"))
SIZE = 50
LAST_PAGE = -1
ORDER = [("sortName", 1), ("sortSurname", 1), ("_id", 1)]
# 1,500 clients at the end of the list, all in one group and with one trainer; and a handful who are rare.
LATE, LATE_GROUP, LATE_TRAINER = 1_500, "Latecomers", ObjectId()
RARE = 7


@dataclass
class Company:
    """A large company, and the results of plain scans of it."""

    ctx: Context
    known: dict[str, list[ObjectId]] = field(default_factory=dict)

    async def right(
        self,
        term: str,
        archived: bool = False,
        groups: list[str] | None = None,
        trainers: list[ObjectId | None] | None = None,
    ) -> list[ObjectId]:
        """The clients that contain a term, in the order of the list, found without the index of suffixes."""
        where: dict[str, Any] = {
            "customerRoleData.isArchived": archived,
            "search": {"$regex": re.escape(normalize(term))},
        }
        if groups:
            where["customerRoleData.groups"] = {"$in": groups}
        if trainers:
            where["customerRoleData.assignedTo"] = {"$in": trainers}
        if (key := str(where)) not in self.known:
            matches = self.ctx.db["customers"].find(where, {"_id": 1}, sort=ORDER)
            self.known[key] = [client["_id"] for client in await matches.to_list(None)]
        return self.known[key]

    async def profiled(self, **query: Any) -> tuple[Page[CustomerProfile], list[dict[str, Any]]]:
        """A page of clients, and the profile of each query."""
        db = self.ctx.db
        await db["system.profile"].drop()
        await db.command("profile", 2)
        try:
            page = await customers.list_customers(self.ctx, size=SIZE, **query)
        finally:
            await db.command("profile", 0)
        entries = await profile_of(db).find({"ns": f"{db.name}.customers"}).to_list(None)
        return page, [entry for entry in entries if "planSummary" in entry]


@pytest.fixture(scope="module")
async def big(services: Services) -> AsyncIterator[Company]:
    """Many clients in a separate database, which is dropped at the end."""
    db = services.db.client.get_database(f"{services.db.name}_scale", codec_options=services.db.codec_options)
    await db.client.drop_database(db.name)
    neighbours = replace(services, db=db)
    owner = await team.create_company(Context(neighbours), "Large", "Olga Owner", "owner@large.test", "no hash")
    ctx = Context(neighbours).acting_as(owner)
    await seed_clients(neighbours, ctx, SCALE - LATE - RARE)
    await batch.add_many(ctx, [_client(f"Zzz{number}", [LATE_GROUP], LATE_TRAINER) for number in range(LATE)])
    await batch.add_many(ctx, [_client(f"Qwxyzabcd{number}", ["Morning"], None) for number in range(RARE)])
    # Last, because then it is many times as fast.
    await ensure_indexes(db, {name: registry[name].indexes for name in ("customers", "customerTotals")})
    yield Company(ctx)
    await db.client.drop_database(db.name)


def _client(name: str, groups: list[str], trainer: ObjectId | None) -> NewCustomerDocument:
    details: CustomerDetails = {"name": name, "email": f"{name}@example.net", "groups": groups, "assignedTo": trainer}
    return batch.build_document(details, f"token of {name}")


async def check(company: Company, term: str, page: int, archived: bool = False, **filters: Any) -> None:
    """The page is right, and no query of it examined more than 1,001 keys and four times the clients with the term."""
    hits, right = len(await company.right(term, archived)), await company.right(term, archived, **filters)
    number = max(1, -(-len(right) // SIZE)) if page == LAST_PAGE else page
    matches, entries = await company.profiled(contains=term, page=number, archived=archived, **filters)
    assert matches["totalDocs"] == len(right)
    assert [client["_id"] for client in matches["docs"]] == right[(number - 1) * SIZE : number * SIZE]
    assert entries, "the profile saw nothing"
    for entry in entries:
        examined = max(entry["keysExamined"], entry["docsExamined"])
        assert examined <= 1_001 + 4 * hits, f"{examined} for {hits} hits: {entry['planSummary']} {entry['command']}"


ALONE = {
    "all hits sort last": "zzz",
    "many hits, spread, two characters": "an",
    "all hits sort last, two characters": "zz",
    "nearly everybody, longer than 8 characters": "example.com",
    "a surname": "okonkwo",
    "a surname, written otherwise": "GARCÍA",
    "name and surname, longer than 8 characters": "ana flores",
    "rare": "qwx",
    "rare, longer than 8 characters": "qwxyzabcd3",
    "absent, though its first 8 characters are not": "wxyzabcd9",
    "absent": "nobody is called so",
    "absent, two characters": "qj",
    "everybody, one letter": "e",
}
FILTERS: dict[str, dict[str, Any]] = {
    "archived": {"archived": True},
    "archived in a group": {"archived": True, "groups": ["Strength"]},
    "a group": {"groups": ["Morning"]},
    "groups": {"groups": ["Evening", "Online", "Rehab"]},
    "an empty group": {"groups": ["None is in it"]},
    "no trainer": {"trainers": [None]},
    "the last ones' group": {"groups": [LATE_GROUP]},
    "the last ones' trainer": {"trainers": [LATE_TRAINER]},
    "their trainer or none": {"trainers": [LATE_TRAINER, None]},
    "their group and trainer": {"groups": [LATE_GROUP], "trainers": [LATE_TRAINER]},
}
CASES: list[tuple[str, str, dict[str, Any]]] = [(name, term, {}) for name, term in ALONE.items()]
CASES += [(f"{term}, {name}", term, given) for term in ("zzz", "an") for name, given in some([*FILTERS.items()], 4)]


async def test_examined_documents_depend_on_matches(big: Company, subtests: pytest.Subtests) -> None:
    pages = (1, 8, LAST_PAGE) if MORE > 1 else (1, LAST_PAGE)
    for name, term, filters in CASES:
        for page in (1, LAST_PAGE) if filters else pages:
            with subtests.test(name, page=page):
                await check(big, term, page, **filters)
