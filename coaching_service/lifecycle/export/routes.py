"""A client's export over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import coach, customer
from coaching_service.core.auth.permissions import CUSTOMERS, FORMS, METRICS, NUTRITION
from coaching_service.core.database.context import Context
from coaching_service.core.http.downloads import Download
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.lifecycle.export import own, service

routes = Routes("/coach/customers/{customerId}/export", tag="Export")
own_routes = Routes("/customer/export", tag="The client's own")


@routes.get(
    "",
    access=coach(CUSTOMERS.VIEW, FORMS.VIEW, METRICS.VIEW, NUTRITION.VIEW),
    returns=bytes,
    media_types=("application/zip",),
    request_class="bulk",
)
async def export_customer(ctx: Context, customer_id: ObjectId) -> Download:
    """Export all data of a client.

    A streamed ZIP archive: every record as JSON lines, every file, and `manifest.json` with sizes and SHA-256
    checksums. It contains data of all areas, so it needs the permission to view each of them.
    """
    return await service.export(ctx, customer_id)


@own_routes.get("", access=customer(), returns=bytes, media_types=("application/zip",), request_class="bulk")
async def export_own_data(ctx: Context) -> Download:
    """Export my data.

    A streamed ZIP archive: the profile, workouts, logs, measurements, photos, plans, forms and messages as JSON lines,
    their files, and `manifest.json` with sizes and SHA-256 checksums. Hidden days and notes of coaches are left out.
    """
    return await own.export_own(ctx)
