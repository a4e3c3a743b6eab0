"""A company's export over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import owner
from coaching_service.core.database.context import Context
from coaching_service.core.http.downloads import Download
from coaching_service.core.http.routes import Routes
from coaching_service.integrations.company_export import service
from coaching_service.integrations.company_export.schemas import EXPORT_QUERY, ExportQuery

routes = Routes("/coach/export", tag="Export")


@routes.get(
    "",
    access=owner(),
    query=EXPORT_QUERY(),
    returns=bytes,
    media_types=("application/zip", "text/csv"),
    request_class="bulk",
)
async def export_company(ctx: Context, query: ExportQuery) -> Download:
    """Export the whole company.

    A streamed ZIP archive of the account, the libraries and every client, with all files and a manifest, but without
    passwords, keys and tokens; POST /coach/import reads it. With `format=csv&kind=workouts` a CSV file of every logged
    set, in the columns of Hevy's export; with `kind=customers` one of every client, archived ones too. POST
    /coach/import reads both. The formats are described in docs/export-format.md.
    """
    if query["format"] == "zip":
        return await service.export_archive(ctx)
    return await (service.export_customers(ctx) if query["kind"] == "customers" else service.export_workouts(ctx))
