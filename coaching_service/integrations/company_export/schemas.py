"""The query of a company's export."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from marshmallow import validates_schema

from coaching_service.core.field_schemas import query_of
from coaching_service.core.fields import Default, Description
from coaching_service.core.validation import Input
from coaching_service.core.validation_messages import invalid


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


EXPORT_QUERY = query_of(ExportQuery, _KindOfTable)
