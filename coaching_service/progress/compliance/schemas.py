"""The query of the compliance of all clients."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from marshmallow import validate as validators
from marshmallow import validates_schema

from coaching_service.core.pagination import CursorQuery
from coaching_service.core.query import QueryInteger
from coaching_service.core.validation import Choice, Date
from coaching_service.core.validation_messages import Message, invalid

MAX_LIST_DAYS = 92
_NOT_A_PERIOD = Message("must be one of: 7, 30, 90", "INVALID_CHOICE")


class ComplianceListQuery(CursorQuery):
    """Either `period`, on request with `sort`; or `from` and `to`; with `below` on request."""

    class Meta(CursorQuery.Meta):
        include = {
            "from": Date(metadata={"description": "The first date, with `to` and without `period`."}),
            "to": Date(
                metadata={"description": f"The last date, included; at most {MAX_LIST_DAYS} days with the first one."}
            ),
        }

    period = QueryInteger(
        validate=validators.OneOf((7, 30, 90), error=_NOT_A_PERIOD),
        metadata={
            "description": "The stored rates of the last 7, 30 or 90 days up to each client's today; required without "
            "`from` and `to`.",
            "enum": [7, 30, 90],
        },
    )
    below = QueryInteger(
        minimum=0,
        maximum=100,
        metadata={"description": "Only clients whose percentage is below this one."},
    )
    sort = Choice(
        "percentage",
        "name",
        metadata={
            "description": "The order: `percentage`, lowest first and null last, the default with `period`; or `name`, "
            "the only one with `from` and `to`."
        },
    )

    @validates_schema(skip_on_field_errors=True)
    def validate_period(self, data: Mapping[str, Any], **_: Any) -> None:
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
