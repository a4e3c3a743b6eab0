"""The query of a company's export."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import validates_schema

from coaching_service.core.validation import Choice, Input
from coaching_service.core.validation_messages import invalid


class ExportQuery(Input):
    """What to export."""

    format = Choice("zip", "csv", load_default="zip", metadata={"description": "`zip`: everything. Default: `zip`."})
    kind = Choice(
        "workouts", "customers", metadata={"description": "What the CSV file contains: required with `format=csv`."}
    )

    @validates_schema
    def validate_kind(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require `kind` with `format=csv`."""
        if data["format"] == "csv" and "kind" not in data:
            raise invalid("is required with format=csv", "REQUIRED", "kind")
