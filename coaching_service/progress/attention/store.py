"""Dismissed reasons in the database."""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import RECORDS, Portable
from coaching_service.core.database.recording import History
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers.models import ReasonType
from coaching_service.progress.attention.models import DismissalFields, StoredDismissal

dismissals = Documents[StoredDismissal](
    "attentionDismissals",
    (Index(("customerId", "reason"), unique=True),),
    client_field="customerId",
    history=History("attention_dismissal"),
    transfer=Portable(StoredDismissal, RECORDS, references={"customerId": "customers"}),
)


async def find_of_clients(ctx: Context, customer_ids: Sequence[ObjectId]) -> list[StoredDismissal]:
    """Return the dismissals of clients."""
    return await dismissals.find(ctx, {"customerId": {"$in": list(customer_ids)}})


async def set_dismissal(ctx: Context, customer_id: ObjectId, reason: ReasonType, fields: DismissalFields) -> None:
    """Store until when a reason of a client is dismissed, replacing an earlier dismissal."""
    await dismissals.upsert(ctx, {"customerId": customer_id, "reason": reason}, fields)
