"""Figures stored with clients for the lists: until when they are valid, and which are due to be computed again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from coaching_service.core.database.context import Context, Services
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import store
from coaching_service.people.customers.models import Customer


async def store_figures(
    ctx: Context, figures: Mapping[ObjectId, Mapping[str, object]], valid_until: Mapping[ObjectId, datetime]
) -> None:
    """Store figures (fields of customerRoleData) of clients, and until when they are valid (UTC), by client."""
    await store.set_figures(ctx, figures, valid_until)


async def mark_due(ctx: Context, customer_ids: Sequence[ObjectId]) -> None:
    """Mark the figures of clients as no longer valid, in the caller's transaction."""
    await store.mark_figures_due(ctx, customer_ids)


async def list_due(services: Services, limit: int) -> list[Customer]:
    """Return at most `limit` active clients of any company whose figures are no longer valid, longest due first.

    Each has only `_id`, `companyId` and `timezone`.
    """
    return await store.list_with_due_figures(services, limit)


async def postpone(services: Services, company_id: ObjectId, ids: Sequence[ObjectId], delay: timedelta) -> None:
    """Leave the figures of a company's clients as they are for a while, so that others are computed first."""
    await store.postpone_figures(services, company_id, ids, delay)
