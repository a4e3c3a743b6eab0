"""A company's export over REST."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from marshmallow import validates_schema

from coaching_service.core.auth.access import owner
from coaching_service.core.database.context import Context
from coaching_service.core.field_schemas import query_of
from coaching_service.core.fields import Default, Description
from coaching_service.core.http.responses import Download
from coaching_service.core.http.routes import Routes
from coaching_service.core.validation import Input, invalid
from coaching_service.integrations.company_export import service


class ExportQuery(TypedDict):
    """What to export."""

    format: Annotated[Literal["zip", "csv"], Default("zip"), Description("`zip`: everything. Default: `zip`.")]
    kind: NotRequired[
        Annotated[
            Literal["workouts", "customers"],
            Description("What the CSV file contains: required with `format=csv`."),
        ]
    ]


class _KindOfTable(Input):
    @validates_schema
    def validate_kind(self, data: ExportQuery, **_: Any) -> None:
        """Require `kind` with `format=csv`."""
        if data["format"] == "csv" and "kind" not in data:
            raise invalid("is required with format=csv", "REQUIRED", "kind")


routes = Routes("/coach/export", tag="Export")


@routes.get(
    "",
    access=owner(),
    query=query_of(ExportQuery, _KindOfTable)(),
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
    return await service.export(ctx, "archive" if query["format"] == "zip" else query["kind"])
