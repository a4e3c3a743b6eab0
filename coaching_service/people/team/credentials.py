"""What API keys and grants of assistants have in common: they are read with their coach, and note their last use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from coaching_service.core.database import outcome
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import Document, Documents, Filter, now
from coaching_service.core.database.worker_thread import aggregate_all

_LAST_USED_PRECISION = timedelta(minutes=1)


async def find_with_coach(
    credentials: Documents[Any], services: Services, where: Filter, *, without: Sequence[str]
) -> Any:
    """Return the credential of `where`, without some fields, its `coach` and `company`, in one round trip.

    None if the credential, the coach or the company is deleted.
    """
    stages: list[Document] = [
        {"$match": where},
        {"$project": dict.fromkeys(without, 0)},
        {"$lookup": {"from": "coaches", "localField": "coachId", "foreignField": "_id", "as": "coach"}},
        {"$lookup": {"from": "companies", "localField": "companyId", "foreignField": "_id", "as": "company"}},
        {"$unwind": "$coach"},
        {"$unwind": "$company"},
    ]
    result: list[Any] = await aggregate_all(credentials.across_companies(services), stages)
    return result[0] if result else None


async def set_last_used(credentials: Documents[Any], services: Services, credential: Mapping[str, Any]) -> None:
    """Record that a credential was used, at most once a minute."""
    at, last = now(), credential["lastUsedAt"]
    if last is None or at - last >= _LAST_USED_PRECISION:
        unchanged = {"_id": credential["_id"], "lastUsedAt": last}
        with outcome.incidental():
            await credentials.across_companies(services).update_one(unchanged, {"$set": {"lastUsedAt": at}})
