"""The query string, judged by the specification's conversions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core.validation import Date, Input, within

MAX_SAFE_INTEGER = 2**53 - 1
_NUMERIC = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)


class QueryInteger(fields.Integer):
    """An integer query parameter; `1e0` and `2e1` are integers, `1.5` and `1_0` are not."""

    default_error_messages = {"required": "Validation failed (numeric string is expected)"}

    def __init__(self, *, minimum: int = 1, maximum: int = MAX_SAFE_INTEGER, **options: Any) -> None:
        self.minimum, self.maximum = minimum, maximum
        limits = {"minimum": minimum} | ({"maximum": maximum} if maximum != MAX_SAFE_INTEGER else {})
        super().__init__(metadata=limits | options.pop("metadata", {}), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> int:
        if not _NUMERIC.fullmatch(value):
            raise self.make_error("required")
        try:
            number = Decimal(value)
            whole = number == number.to_integral_value()
        except ArithmeticError:  # an exponent beyond all reckoning
            raise self.make_error("required") from None
        if not whole:
            raise self.make_error("required")
        return int(within(number, self.minimum, self.maximum))


class QueryBoolean(fields.Boolean):
    """A boolean query parameter: `true` is true, any other text is false, nothing is an error."""

    default_error_messages = {"required": "Validation failed (boolean string is expected)"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> bool:
        if not value:
            raise self.make_error("required")
        return bool(value == "true")


class DateRange(Input):
    """`startDate` and `endDate`, both included; an end before its start is refused."""

    startDate = Date(required=True)
    endDate = Date(required=True)

    @validates_schema
    def in_order(self, data: Mapping[str, str], **_: Any) -> None:
        """The end is not before the start."""
        if data["endDate"] < data["startDate"]:
            raise ValidationError("must not be before startDate", "endDate")
