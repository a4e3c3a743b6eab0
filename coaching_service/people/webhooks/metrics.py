"""What operators see of webhooks: attempts by outcome, and the deliveries that wait."""

from __future__ import annotations

from math import nan

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from coaching_service.core.database.context import Services
from coaching_service.core.http.middleware import reading_in_time
from coaching_service.people.webhooks import store
from coaching_service.people.webhooks.models import PendingDeliveries

MAX_COUNT = 10_000
_UNKNOWN: PendingDeliveries = {"count": nan, "oldestSeconds": nan}


async def read_metrics(services: Services) -> list[Metric]:
    """Return the attempts of this process, and the pending deliveries of the active webhooks of all companies.

    The latter are not a number while the database does not respond.
    """
    attempts = CounterMetricFamily(
        "webhook_attempts", "Attempts of this process to deliver an event to a webhook.", labels=("outcome",)
    )
    counts = dict.fromkeys(("rejected", "succeeded"), 0) | services.webhook_attempts
    for outcome, number in sorted(counts.items()):
        attempts.add_metric((outcome,), number)
    pending = await reading_in_time(store.find_pending(services, MAX_COUNT), _UNKNOWN, "webhook deliveries")
    return [
        attempts,
        GaugeMetricFamily(
            "webhook_deliveries_pending",
            f"Deliveries of all companies that wait for an attempt, at most {MAX_COUNT:,}.",
            pending["count"],
        ),
        GaugeMetricFamily(
            "webhook_oldest_pending_seconds",
            "Age of the oldest delivery that waits for an attempt.",
            pending["oldestSeconds"],
        ),
    ]
