"""Coaches in the database."""

from __future__ import annotations

from typing import Any

from coaching_service.core.database.collections import Unsharded
from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import Document, Documents, Filter
from coaching_service.core.database.portable import NotExported
from coaching_service.core.database.worker_thread import aggregate_all
from coaching_service.core.fields import private_of
from coaching_service.people.team.models import Coach, CoachWithCompany

coaches = Documents[Coach](
    "coaches",
    (Index(("_id",)), Index(("role", "createdAt"))),
    private=private_of(Coach),
    cross_company_reason="a session or the command line knows a coach before it knows the company",
    is_cached=True,
    placement=Unsharded("joined to keys, sessions and grants, on the shard of these"),
    transfer=NotExported("exported as coaches.jsonl; an import finds coaches by their e-mail address"),
)


async def find_with_company(services: Services, where: Filter) -> CoachWithCompany | None:
    """Return the coach of `where` with the `company`, in one round trip; None if either is deleted."""
    stages: list[Document] = [
        {"$match": where},
        {"$lookup": {"from": "companies", "localField": "companyId", "foreignField": "_id", "as": "company"}},
        {"$unwind": "$company"},
    ]
    result: list[Any] = await aggregate_all(coaches.across_companies(services), stages)
    return result[0] if result else None
