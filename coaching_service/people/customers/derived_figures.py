"""The derived figures kept with clients for the lists, and until when they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, now
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers.store import ARCHIVED, customers


async def store_figures(
    ctx: Context, figures: Mapping[ObjectId, Mapping[str, object]], until: Mapping[ObjectId, datetime]
) -> None:
    """Keep derived fields of customerRoleData, and until when they hold, by client."""
    changes = [
        (
            {"_id": client},
            {"$set": {**{f"customerRoleData.{name}": v for name, v in of.items()}, "figuresUntil": until[client]}},
        )
        for client, of in figures.items()
    ]
    await customers.set_derived_each(ctx, changes)


async def list_due(services: Services, limit: int) -> list[Document]:
    """`_id, companyId, timezone` of at most `limit` active clients of any company whose figures no longer hold."""
    found = customers.across_companies(services).find(
        {ARCHIVED: False, "figuresUntil": {"$lte": now()}}, {"companyId": 1, "timezone": 1}, limit=limit
    )
    return await found.sort("figuresUntil", 1).to_list(None)


async def postpone(services: Services, company_id: ObjectId, ids: Sequence[ObjectId], after: timedelta) -> None:
    """Leave the figures of a company's clients as they are for a while, so that others have their turn."""
    these = {"companyId": company_id, "_id": {"$in": list(ids)}}
    await customers.across_companies(services).update_many(these, {"$set": {"figuresUntil": now() + after}})
