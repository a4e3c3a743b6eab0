"""What operators see of webhooks: the deliveries that wait."""

from __future__ import annotations

from coaching_service.core.database.context import Services
from coaching_service.core.metrics import read_backlog
from coaching_service.people.webhooks import store

MAX_COUNT = 10_000


async def read_metrics(services: Services) -> None:
    """Read the pending deliveries of the active webhooks of all companies, at most MAX_COUNT.

    They are not a number while the database does not respond.
    """
    metrics, pending = services.metrics, store.find_pending(services, MAX_COUNT)
    await read_backlog(pending, metrics.deliveries_pending, metrics.oldest_delivery_seconds, "webhook deliveries")
