"""The query of the compliance of all clients."""

from __future__ import annotations

from datetime import date
from typing import Any

from marshmallow import validates_schema

from coaching_service.core.field_schemas import query_of
from coaching_service.core.validation import Input
from coaching_service.core.validation_messages import invalid
from coaching_service.progress.compliance.models import MAX_LIST_DAYS, ComplianceListQuery


class _EitherPeriodOrRange(Input):
    @validates_schema(skip_on_field_errors=True)
    def validate_period(self, data: ComplianceListQuery, **_: Any) -> None:
        """Raise ValidationError unless there is either a period, or a range of at most 92 days without its filters."""
        if "period" in data:
            for name in {"from", "to"} & data.keys():
                raise invalid("must not be combined with period", "NOT_ALLOWED", name)
            return
        for name in ("from", "to"):
            if name not in data:
                both_missing = "from" not in data and "to" not in data
                raise (
                    invalid("is required, or from and to", "REQUIRED", "period")
                    if both_missing
                    else invalid("is required", "REQUIRED", name)
                )
        if data.get("sort") == "percentage":
            raise invalid("must be name with from and to", "NOT_ALLOWED", "sort")
        days = (date.fromisoformat(data["to"]) - date.fromisoformat(data["from"])).days + 1
        if days < 1:
            raise invalid("must not be before from", "BEFORE_START", "to")
        if days > MAX_LIST_DAYS:
            raise invalid(f"must be at most {MAX_LIST_DAYS} days with from", "RANGE_TOO_LONG", "to")


COMPLIANCE_LIST_QUERY = query_of(ComplianceListQuery, _EitherPeriodOrRange)
