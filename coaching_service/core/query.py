"""Fields of the query string, with the conversions of the specification (section 8), and of multipart forms."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Annotated, Any, TypedDict

import orjson
from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core import validation
from coaching_service.core.dates import FIRST_DATE, LAST_DATE

MAX_SAFE_INTEGER = 2**53 - 1
# Messages that the specification fixes: the response states nothing else, not even the parameter.
NUMERIC_STRING = validation.Message("Validation failed (numeric string is expected)", "NUMERIC_STRING")
BOOLEAN_STRING = validation.Message("Validation failed (boolean string is expected)", "BOOLEAN_STRING")
_NUMERIC = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)


class QueryInteger(fields.Integer):
    """An integer query parameter; `1e0` and `2e1` are integers, `1.5` and `1_0` are not."""

    default_error_messages = {"required": NUMERIC_STRING}

    def __init__(self, *, minimum: int = 1, maximum: int = MAX_SAFE_INTEGER, **options: Any) -> None:
        self.minimum, self.maximum = minimum, maximum
        limits = {"minimum": minimum} | ({"maximum": maximum} if maximum != MAX_SAFE_INTEGER else {})
        super().__init__(metadata=limits | options.pop("metadata", {}), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> int:
        if not _NUMERIC.fullmatch(value):
            raise self.make_error("required")
        try:
            number = Decimal(value)
            is_integral = number == number.to_integral_value()
        except ArithmeticError:  # the exponent is out of range
            raise self.make_error("required") from None
        if not is_integral:
            raise self.make_error("required")
        for validate in validation.in_range(self.minimum, self.maximum):  # before int(), which is slow for 1e999999
            validate(number)
        return int(number)


class QueryBoolean(fields.Boolean):
    """A boolean query parameter: `true` is true, any other text is false, an empty one is an error."""

    default_error_messages = {"required": BOOLEAN_STRING}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> bool:
        if not value:
            raise self.make_error("required")
        return bool(value == "true")


class QueryIdentifiers(validation.ListOf):
    """Identifiers in a query: the parameter is repeated; a comma is part of a value, so it is an error."""

    def __init__(self, *, maximum: int, **options: Any) -> None:
        super().__init__(validation.Identifier(), maximum=maximum, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        return list(dict.fromkeys(super()._deserialize(value, attr, data, **kwargs)))


class FieldNames(fields.String):
    """Names of fields in a query, separated by commas: those of `known` that the response has, besides `_id`."""

    def __init__(self, known: Iterable[str]) -> None:
        self.known = frozenset(known)
        metadata = {
            "description": "The fields of the response, or of each entry of a list, separated by commas; `_id` is "
            "always among them. Default: all.",
            "example": "name,updatedAt",
        }
        super().__init__(metadata=metadata)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> list[str]:  # type: ignore[override]  # text on the wire, a list in the service
        names = list(dict.fromkeys(["_id", *value.split(",")]))
        if unknown := [name for name in names if name not in self.known]:
            raise validation.invalid(f"has the unknown name {unknown[0][:100]!r}", "UNKNOWN_FIELD")
        return names


class Period(TypedDict):
    """From `startDate` to `endDate`, both included."""

    startDate: Annotated[str, validation.Date()]
    endDate: Annotated[str, validation.Date()]


class DateRange(validation.Input):
    """`startDate` and `endDate`, both included; the end must not be before the start."""

    startDate = validation.Date(required=True)
    endDate = validation.Date(required=True)

    @validates_schema
    def validate_order(self, data: Mapping[str, str], **_: Any) -> None:
        """Raises ValidationError if the end is before the start."""
        if data["endDate"] < data["startDate"]:
            raise validation.invalid("must not be before startDate", "BEFORE_START", "endDate")


class SearchedRange(DateRange):
    """`startDate` and `endDate` of a query, both included; the end must not be before the start."""

    startDate = validation.SearchedDate(required=True)
    endDate = validation.SearchedDate(required=True)


_FIRST_TIME, _LAST_TIME = datetime.combine(FIRST_DATE, time.min), datetime.combine(LAST_DATE, time.max)


class QueryTime(fields.String):
    """A time in a query parameter or body: ISO 8601, UTC unless it names an offset; loaded as stored times are.

    Stored values are compared with it, so it may be any time; one beyond all that are stored is loaded as the next to
    these.
    """

    default_error_messages = {
        "invalid": validation.Message("must be a time such as 2026-03-02T08:30:00Z", "INVALID_TIME")
    }

    def __init__(self, **options: Any) -> None:
        metadata = {"format": "date-time", "example": "2026-03-02T08:30:00Z"}
        super().__init__(metadata=metadata | options.pop("metadata", {}), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> datetime:  # type: ignore[override]  # text on the wire, a time in the service
        try:
            moment = datetime.fromisoformat(value)
            utc = (moment if moment.tzinfo is None else moment.astimezone(UTC)).replace(tzinfo=None)
            return min(max(utc, _FIRST_TIME), _LAST_TIME)
        except (TypeError, ValueError, OverflowError):  # in bodies, and arguments of tools, it may be of any type
            raise self.make_error("invalid") from None


class LoggedTime(QueryTime):
    """When something was done: on a day of a log. One in the future counts as now."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> datetime:  # type: ignore[override]  # as of QueryTime
        done_at = super()._deserialize(value, attr, data, **options)
        if str(done_at.date()) < validation.CalendarDate.first:
            raise ValidationError(
                validation.Message(f"must not be before {validation.CalendarDate.first}", "DATE_OUT_OF_RANGE")
            )
        return done_at


# --- Text fields of multipart forms ----------------------------------------------------------------------------------

_MAX_ENTRIES, _MAX_BYTES = 5_000, 1_000_000


class FormInteger(QueryInteger):
    """An integer in a text field of a multipart body."""

    default_error_messages = {"required": validation.Message("must be an integer", "NOT_AN_INTEGER")}


class FormVersion(FormInteger):
    """The `version` a change was based on, as a text field of a multipart body."""

    def __init__(self, **options: Any) -> None:
        metadata = {"description": "The version this change is based on: 409 if the record has moved on since."}
        super().__init__(minimum=0, maximum=2**31, metadata=metadata, **options)


class FormBoolean(fields.Boolean):
    """A boolean in a text field of a multipart form: `true` or `false`, and nothing else."""

    default_error_messages = {"invalid": validation.Message("must be true or false", validation.DEFAULT_CODE)}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> bool:
        if value not in ("true", "false"):
            raise self.make_error("invalid")
        return bool(value == "true")


class FormObject(fields.String):
    """A JSON object of strings in a text field of a multipart form; a dictionary in Python, empty without text."""

    default_error_messages = {
        "invalid": validation.Message("must be a JSON object of strings", validation.DEFAULT_CODE)
    }

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> Any:
        try:
            read = orjson.loads(value or "{}") if len(value or "") <= _MAX_BYTES else None
        except orjson.JSONDecodeError:
            raise self.make_error("invalid") from None
        if not isinstance(read, dict) or len(read) > _MAX_ENTRIES:
            raise self.make_error("invalid")
        if not all(isinstance(each, str) for each in read.values()):
            raise self.make_error("invalid")
        return read
