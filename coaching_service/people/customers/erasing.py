"""What follows when clients are erased."""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core import idempotency
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue

ERASE = "erase_customer"


async def follow(ctx: Context, customer_ids: Sequence[ObjectId]) -> None:
    """In the transaction that removes clients: kept answers about them go too, the removal of the rest is queued."""
    await idempotency.forget(ctx, customer_ids)
    arguments = [{"companyId": ctx.company_id, "customerId": customer_id} for customer_id in customer_ids]
    await queue.enqueue_many(ctx, ERASE, arguments)
