"""How many deliveries wait, for the metrics: those of webhooks that are disabled do not, however many there are."""

from __future__ import annotations

from datetime import timedelta

import pytest
from bson import ObjectId

from coaching_service.core.database.documents import now
from coaching_service.people.webhooks import service
from tests.support.client import CoachClient


async def test_deliveries_of_disabled_webhooks_do_not_wait(coach: CoachClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_COUNTED_AT_ONCE", 2)
    services, at = coach.ctx.services, now()
    others = (await service.find_pending(services, 100))["count"]
    active, disabled = ObjectId(), ObjectId()
    company = {"companyId": coach.ctx.company_id}
    await services.db["webhooks"].insert_many(
        [
            {"_id": active, "isActive": True, "slot": 100, "position": 0, **company},
            {"_id": disabled, "isActive": False, "slot": 101, "position": 0, **company},
        ]
    )
    waits = [(disabled, 500), (disabled, 400), (disabled, 300), (active, 200), (disabled, 100), (active, 50)]
    await services.db["webhookDeliveries"].insert_many(
        [
            {"webhookId": webhook, "status": "pending", "createdAt": at - timedelta(seconds=seconds), **company}
            for webhook, seconds in waits
        ]
    )
    pending = await service.find_pending(services, 100)
    assert pending["count"] == others + 2
    assert 200 <= pending["oldestSeconds"] < 300
    assert (await service.find_pending(services, 1))["count"] == 1
    await services.db["webhooks"].delete_many({"_id": {"$in": [active, disabled]}})
    await services.db["webhookDeliveries"].delete_many({"webhookId": {"$in": [active, disabled]}})
