"""A client's export over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS, FORMS, METRICS, NUTRITION
from coaching_service.core.database.context import Context
from coaching_service.core.http.downloads import Download
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.lifecycle.export import service

routes = Routes("/coach/customers/{customerId}/export", tag="Export")


@routes.get(
    "",
    access=coach(CUSTOMERS.VIEW, FORMS.VIEW, METRICS.VIEW, NUTRITION.VIEW),
    returns=bytes,
    media_types=("application/zip",),
    request_class="bulk",
)
async def export_customer(ctx: Context, customer_id: ObjectId) -> Download:
    """Export everything of a client's.

    A ZIP, streamed: every record as JSON lines, every file, and `manifest.json` with sizes and SHA-256 checksums.
    It holds all there is, so it takes leave to view all of it.
    """
    return await service.export(ctx, customer_id)
