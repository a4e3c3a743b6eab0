"""What operators see of webhooks: the deliveries that wait."""

from __future__ import annotations

from math import nan

from coaching_service.core.database.context import Services
from coaching_service.core.metrics import reading_in_time
from coaching_service.people.webhooks import store
from coaching_service.people.webhooks.models import PendingDeliveries

MAX_COUNT = 10_000
_UNKNOWN: PendingDeliveries = {"count": nan, "oldestSeconds": nan}


async def read_metrics(services: Services) -> None:
    """Read the pending deliveries of the active webhooks of all companies, at most MAX_COUNT.

    They are not a number while the database does not respond.
    """
    pending = await reading_in_time(store.find_pending(services, MAX_COUNT), _UNKNOWN, "webhook deliveries")
    services.metrics.deliveries_pending.set(pending["count"])
    services.metrics.oldest_delivery_seconds.set(pending["oldestSeconds"])
