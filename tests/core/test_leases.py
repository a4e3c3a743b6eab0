"""Leases: one process at a time does a work."""

from __future__ import annotations

from datetime import timedelta

from coaching_service.core.database import across_companies
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from tests.support.service_process import until


async def test_a_lease_has_one_holder_until_it_is_released_or_expires(services: Services) -> None:
    work = f"test {ObjectId()}"

    async def is_taken(holder: str) -> bool:
        return await across_companies.acquire(services, work, holder)

    await until(lambda: is_taken("first"), "the lease is taken")
    assert not await is_taken("second")
    assert await is_taken("first"), "its holder renews it"
    assert not await is_taken("second")

    await across_companies.release(services, work, "second")
    assert not await is_taken("second"), "only its holder releases it"
    await across_companies.release(services, work, "first")
    assert await is_taken("second")

    expired = {"$set": {"expiresAt": now() - timedelta(seconds=1)}}
    await services.db["leases"].update_one({"_id": work}, expired)
    assert await is_taken("first")
    assert not await is_taken("second")
