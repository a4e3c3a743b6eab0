"""The check of sandboxes."""

from __future__ import annotations

from coaching_service.core.database.checks import check_of
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import reading_snapshot
from coaching_service.core.ids import ObjectId
from coaching_service.people.account.store import companies


async def _list_lost_sandboxes(services: Services) -> list[ObjectId]:
    """Return the sandboxes that are not the sandbox of an existing company."""
    stages: list[Document] = [
        {"$match": {"sandboxOf": {"$exists": True}}},
        {"$lookup": {"from": companies.name, "localField": "sandboxOf", "foreignField": "_id", "as": "owners"}},
        {"$match": {"$expr": {"$not": [{"$in": ["$_id", "$owners.sandboxId"]}]}}},
        {"$project": {"_id": 1}},
    ]
    async with reading_snapshot(services) as session:
        cursor = companies.across_companies(services).aggregate(stages, session=session)
        return [company["_id"] async for company in cursor]


CHECKS = (
    check_of(
        "sandboxes",
        "Sandboxes belong to a company",
        _list_lost_sandboxes,
        "Sandboxes that are not the sandbox of a company",  # they are not deleted with one
        "Erase each with admin companies erase and its identifier, if its company is not missing by mistake",
    ),
)
