"""What operators see of deliveries: metrics and logs."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.people.webhooks import service
from tests.support.client import CoachClient
from tests.support.webhook_deliveries import settled, subscribe
from tests.support.webhooks import Receiver


async def test_metrics_show_attempts_by_outcome_and_what_is_pending(coach: CoachClient, receiver: Receiver) -> None:
    before = await figures(coach)
    receiver.respond = lambda _message, earlier: 200 if earlier else 500
    webhook = await subscribe(coach, receiver)
    await coach.create_customer()
    await settled(coach, webhook, "succeeded")
    after = await figures(coach)
    for outcome in ("rejected", "succeeded"):
        name = f'webhook_attempts_total{{outcome="{outcome}"}}'
        assert after[name] > before[name], outcome
    assert (after["webhook_deliveries_pending"], after["webhook_oldest_pending_seconds"]) == (0, 0)

    waiting = service.new_delivery(ObjectId(webhook["_id"]), f"{ObjectId()}.0", 7, "customer.created", None)
    in_an_hour, minutes_ago = now() + timedelta(hours=1), now() - timedelta(minutes=2)
    stored = waiting | {"companyId": coach.ctx.company_id, "createdAt": minutes_ago, "nextAttemptAt": in_an_hour}
    stored.pop("isQueued", None)
    await coach.ctx.db["webhookDeliveries"].insert_one(dict(stored))
    pending = await figures(coach)
    assert pending["webhook_deliveries_pending"] == 1
    assert 120 <= pending["webhook_oldest_pending_seconds"] < 1000
    (await coach.patch(f"/coach/webhooks/{webhook['_id']}", {"isActive": False})).ok()
    assert (await figures(coach))["webhook_deliveries_pending"] == 0, "nothing is sent to a webhook that is not active"


async def figures(coach: CoachClient) -> dict[str, float]:
    """The metrics, by name and labels."""
    coach.checks = False
    lines = (await coach.get("/metrics")).raw.decode().splitlines()
    coach.checks = True
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


async def test_logs_have_neither_addresses_nor_secrets(
    coach: CoachClient, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    receiver.respond = lambda _message, _before: 500
    receiver.url += "?token=Zanzibar"
    webhook = await subscribe(coach, receiver)
    await coach.create_customer("Secretname")
    await settled(coach, webhook, "failed")
    stored = await coach.ctx.services.db["webhookDeliveries"].find_one({"webhookId": ObjectId(webhook["_id"])})
    output = capsys.readouterr()
    for text in (output.out, output.err, json.dumps(stored, default=str)):
        assert "Zanzibar" not in text
        assert "Secretname" not in text
        assert webhook["secret"].removeprefix("whsec_") not in text
