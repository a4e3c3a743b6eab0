"""All companies, for the operator of the service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from coaching_service.core.database.context import Services
from coaching_service.core.ids import ObjectId
from coaching_service.people.account import store
from coaching_service.people.account.models import Account


def iterate(services: Services, *, batch: int) -> AsyncIterator[list[Account]]:
    """Yield all companies but sandboxes, with their private fields, oldest first, in lists of at most `batch`."""
    return store.iterate(services, batch=batch)


async def find(services: Services, company_id: ObjectId) -> Account | None:
    """Return a company with its private fields, or None."""
    return await store.find(services, company_id)


async def find_existing(services: Services, company_ids: Sequence[ObjectId]) -> list[ObjectId]:
    """Return which of the companies have not been deleted."""
    return await store.find_existing(services, company_ids)
