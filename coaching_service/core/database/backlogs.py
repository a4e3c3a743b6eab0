"""How much work waits in a collection, and for how long, for the metrics."""

from __future__ import annotations

from typing import Any

from coaching_service.core.database.context import Collection
from coaching_service.core.database.documents import Document
from coaching_service.core.metrics import NO_BACKLOG, Backlog


async def count_backlog(
    collection: Collection, where: Document, since: str, limit: int, *, hint: str, order: str | None = None
) -> Backlog:
    """Count the documents that satisfy `where`, at most `limit`, in `order` [by the time `since`] from the first on.

    `hint` is an index by which they are found; it should have the field `since`, so that no document is read.
    """
    waited: Document = {"$divide": [{"$subtract": ["$$NOW", "$since"]}, 1000]}
    stages: list[Document] = [
        {"$match": where},
        {"$sort": {order or since: 1}},
        {"$limit": limit},
        {"$group": {"_id": None, "count": {"$sum": 1}, "since": {"$min": f"${since}"}}},
        {"$project": {"_id": 0, "count": 1, "oldestSeconds": {"$max": [0, waited]}}},
    ]
    cursor: Any = collection.aggregate(stages, hint=hint)
    counted: list[Backlog] = await cursor.to_list(1)
    return counted[0] if counted else NO_BACKLOG
