"""Schemas and fields of JSON input: JSON's own types, without conversions."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any, ClassVar, TypedDict
from unicodedata import category

from marshmallow import EXCLUDE, Schema, ValidationError, fields, missing
from marshmallow import validate as validators

from coaching_service.core.dates import FIRST_DATE, LAST_DATE, TIMEZONES, add_years
from coaching_service.core.errors import FieldError, InvalidFields
from coaching_service.core.ids import IDENTIFIER_PATTERN, ObjectId, parse_id
from coaching_service.core.text import DIRECTION_CONTROLS, without_separators

# --- Messages of validation errors, each with a stable code -----------------------------------------------------------


DEFAULT_CODE = "INVALID"


class Message(str):
    """The text of a validation error with its `code`, which marshmallow passes through unchanged.

    The text continues the name of the field: "must be a number".
    """

    code: str

    def __new__(cls, text: str, code: str) -> Message:
        """Create a message; `code` is UPPER_SNAKE."""
        message = super().__new__(cls, text)
        message.code = code
        return message

    def __deepcopy__(self, memo: dict[int, Any]) -> Message:
        """Return itself: messages are immutable, and schemas are copied."""
        return self

    def format(self, *args: object, **kwargs: object) -> Message:
        """Format like a string and keep the code: marshmallow formats every message."""
        return Message(super().format(*args, **kwargs), self.code)

    def at(self, field: str) -> FieldError:
        """Return the error of a field."""
        return {"field": field, "code": self.code, "message": str(self)}


REQUIRED = Message("is required", "REQUIRED")
NULL = Message("must not be null", "NULL")
UNKNOWN_FIELD = Message("is not a known field", "UNKNOWN_FIELD")
NOT_AN_OBJECT = Message("must be an object", "NOT_AN_OBJECT")
EMPTY = Message("should not be empty", "EMPTY")
BEFORE_START = Message("must not be before startDate", "BEFORE_START")


def invalid(text: str, code: str, field: str = "_schema") -> ValidationError:
    """Return the error to raise for an invalid value; in a schema's validator, `field` names the field."""
    return ValidationError(Message(text, code), field)


def field_errors(error: ValidationError) -> list[FieldError]:
    """Return every error of a validated object, with paths such as `exerciseSets.0.load`."""
    return list(_flatten(error.messages, ""))


def body_messages(error: ValidationError) -> list[str]:
    """Return one sentence per error, each naming its field (`exerciseSets.0.load must be a number`)."""
    return [sentence(each) for each in field_errors(error)]


def sentence(error: FieldError) -> str:
    """Return the error as a sentence that names its field."""
    return f"{error['field']} {error['message']}".strip()


def _flatten(messages: Any, path: str) -> Iterator[FieldError]:
    if isinstance(messages, dict):
        for key, inner in messages.items():
            yield from _flatten(inner, path if key == "_schema" else f"{path}.{key}".lstrip("."))
        return
    for message in messages:
        code = message.code if isinstance(message, Message) else DEFAULT_CODE
        yield {"field": path, "code": code, "message": str(message)}


NAME_LENGTH = 200
TEXT_LENGTH = 10_000
MAX_STRINGS = 50

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
# Separators, control and format characters, and marks without a letter; and letters without a visible glyph.
_INVISIBLE = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf", "Mn", "Me"})
_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
_TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):[0-5]\d", re.ASCII)
_CLOCK = re.compile(r"(?:(\d{1,2}):)?(\d{1,4}):([0-5]\d(?:[.,]\d{1,3})?)", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_LINE_BREAK = re.compile(r"[\n\r\t]")
_DEFAULTS = fields.Field.default_error_messages


def is_blank(text: str) -> bool:
    """Return whether `text` has no visible character: only spaces, format characters and blank letters."""
    return all(character in _BLANK_LETTERS or category(character) in _INVISIBLE for character in text)


class Input(Schema):
    """The base of request schemas: unknown fields are ignored."""

    class Meta:
        unknown = EXCLUDE

    error_messages = {"unknown": UNKNOWN_FIELD, "type": NOT_AN_OBJECT}

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """Replace marshmallow's default messages with messages that have a code."""
        field: Any = field_obj
        while isinstance(field, fields.Field):
            for key, message in (("required", REQUIRED), ("null", NULL)):
                if field.error_messages[key] == _DEFAULTS[key]:
                    field.error_messages[key] = message
            field = getattr(field, "inner", None)


class Output(Schema):
    """The base of response schemas, which describe responses and are never dumped through.

    Every field is present in every response, null when unset, unless its metadata has `optional`.
    """

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """Mark the field as always present."""
        field_obj.required = not field_obj.metadata.get("optional", False)


def in_range(minimum: float | None, maximum: float | None) -> list[validators.Range]:
    """Validators of a number from `minimum` to `maximum`, both included; None for no limit."""
    checks = []
    if minimum is not None:
        checks.append(validators.Range(min=minimum, error=Message("must not be less than {min}", "TOO_SMALL")))
    if maximum is not None:
        checks.append(validators.Range(max=maximum, error=Message("must not be greater than {max}", "TOO_LARGE")))
    return checks


class Text(fields.String):
    """A string, trimmed unless `trim` is False.

    `max_length`: characters. `allow_blank`: accept a string that is empty after trimming. Line breaks are accepted
    only in long texts (`max_length` above 200), and so are characters that change the direction of writing; untrimmed
    texts, such as passwords, may have the latter. Other separators of lines are spaces in short texts.
    """

    default_error_messages = {
        "invalid": Message("must be a string", "NOT_A_STRING"),
        "control": Message("must not contain control characters", "CONTROL_CHARACTERS"),
        "long": Message("must not be longer than {max_length} characters", "TOO_LONG"),
    }

    def __init__(
        self, *, max_length: int = NAME_LENGTH, allow_blank: bool = False, trim: bool = True, **options: Any
    ) -> None:
        self.allow_blank, self.trim, self.max_length = allow_blank, trim, max_length
        options["metadata"] = (
            {"maxLength": max_length} | ({} if allow_blank else {"minLength": 1}) | options.get("metadata", {})
        )
        super().__init__(**options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        if not isinstance(value, str):
            raise self.make_error("invalid")
        is_name = self.max_length <= NAME_LENGTH
        text = value.strip() if self.trim else value
        if is_blank(text) and not self.allow_blank:
            raise ValidationError(EMPTY)
        if _CONTROL.search(text) or (is_name and _LINE_BREAK.search(text)):
            raise self.make_error("control")
        if is_name and self.trim and DIRECTION_CONTROLS.search(text):
            raise self.make_error("control")
        if is_name and self.trim:
            text = without_separators(text)
        if len(text) > self.max_length:
            raise self.make_error("long", max_length=self.max_length)
        return text


class Email(Text):
    """An e-mail address, as typed, at most 254 characters."""

    _MESSAGE = Message("must be an e-mail address", "INVALID_EMAIL")
    _validator = validators.Email(error=_MESSAGE)

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=254, metadata={"format": "idn-email"} | options.pop("metadata", {}), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        text = super()._deserialize(value, attr, data)
        if not text.isprintable() or ".." in text:
            raise ValidationError(self._MESSAGE)
        return self._validator(text)


class Number(fields.Float):
    """A finite JSON number from `minimum` to `maximum`, both included; a negative zero is read as zero."""

    default_error_messages = {"invalid": Message("must be a number", "NOT_A_NUMBER")}

    def __init__(self, *, minimum: float | None = None, maximum: float = 1e12, **options: Any) -> None:
        self.minimum, self.maximum = minimum, maximum
        limits = {"maximum": maximum} | ({} if minimum is None else {"minimum": minimum})  # apispec would write 1.0
        metadata = limits | options.pop("metadata", {})
        super().__init__(validate=in_range(minimum, maximum), metadata=metadata, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> float:
        # marshmallow's Float also accepts numeric strings and has no strict mode.
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self.make_error("invalid")
        return abs(value) if value == 0 else value  # no negative zero, which texts would show as -0


class Seconds(Number):
    """A number of seconds; people type it as such, or as `27:00` (see read_clock)."""


def read_clock(text: str) -> float | None:
    """Return the seconds of a time such as `0:45`, `27:00` or `1:05:00`, None for another text."""
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        return None
    hours, minutes, seconds = match[1] or 0, int(match[2]), float(match[3].replace(",", "."))
    return int(hours) * 3600 + minutes * 60 + seconds if not match[1] or minutes < 60 else None


class Integer(fields.Integer):
    """A JSON integer (6, not 6.0 and not "6") from `minimum` to `maximum`, both included."""

    default_error_messages = {"invalid": Message("must be an integer", "NOT_AN_INTEGER")}

    def __init__(self, *, minimum: int | None = None, maximum: int = 1_000_000, **options: Any) -> None:
        self.minimum, self.maximum = minimum, maximum
        super().__init__(strict=True, validate=in_range(minimum, maximum), **options)


class Boolean(fields.Boolean):
    """A JSON boolean; marshmallow's own also accepts 1 and "yes"."""

    default_error_messages = {"invalid": Message("must be a boolean", "NOT_A_BOOLEAN")}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> bool:
        if not isinstance(value, bool):
            raise self.make_error("invalid")
        return value


class Switches(fields.Nested):
    """An object that has only booleans; one boolean stands for all of them."""

    def _deserialize(self, value: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(value, bool):
            return dict.fromkeys(self.schema.fields, value)
        return super()._deserialize(value, *arguments, **options)


class Date(fields.String):
    """An existing date, written exactly `YYYY-MM-DD`, within the bounds of its kind; it remains a string.

    Each subclass is a kind of date, with bounds of its own. marshmallow's Date accepts 20260302.
    """

    first: ClassVar[str] = str(FIRST_DATE)
    last: ClassVar[str] = str(LAST_DATE)
    default_error_messages = {
        "invalid": Message("must be a date in the form YYYY-MM-DD", "INVALID_DATE"),
        "nonexistent": Message("must be a date that exists", "INVALID_DATE"),
        "range": Message("must be from {first} to {last}", "DATE_OUT_OF_RANGE"),
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(metadata={"format": "date", "example": "2026-03-02"} | options.pop("metadata", {}), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        if not isinstance(value, str) or not _DATE.fullmatch(value):
            raise self.make_error("invalid")
        try:
            date.fromisoformat(value)
        except ValueError:
            raise self.make_error("nonexistent") from None
        first, last = self.bounds()
        if not first <= value <= last:
            raise self.make_error("range", first=first, last=last)
        return value

    @classmethod
    def bounds(cls) -> tuple[str, str]:
        """Return the first and the last day."""
        return cls.first, cls.last


class SearchedDate(Date):
    """The end of a range in a query, or a day to look for: it is stored nowhere, so it may be any date."""

    first, last = str(date.min), str(date.max)


class CalendarDate(Date):
    """A day of a calendar or of a log: until `years` from today."""

    first = "1950-01-01"
    years: ClassVar[int] = 10

    @classmethod
    def bounds(cls) -> tuple[str, str]:
        """Return the first and the last day."""
        return cls.first, str(add_years(datetime.now(UTC).date(), cls.years))


class AbsenceDate(CalendarDate):
    """A day of a period in which a client cannot train as planned."""

    years = 5


class TimeOfDay(Text):
    """A time of day, written exactly `HH:MM`; it remains a string."""

    def __init__(self, **options: Any) -> None:
        super().__init__(metadata={"example": "17:30"} | options.pop("metadata", {}), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        text = super()._deserialize(value, attr, data)
        if not _TIME_OF_DAY.fullmatch(text):
            raise ValidationError("must be a time of day in the form HH:MM")
        return text


class Identifier(fields.String):
    """24 hexadecimal characters, loaded as an ObjectId."""

    default_error_messages = {"invalid": Message("must be an identifier of 24 hexadecimal characters", "INVALID_ID")}

    def __init__(self, **options: Any) -> None:
        metadata = {"pattern": IDENTIFIER_PATTERN, "example": "66f0c0ffee0000000000abcd"}
        super().__init__(metadata=metadata | options.pop("metadata", {}), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> ObjectId:  # type: ignore[override]  # a string on the wire, an ObjectId in the service
        if (identifier := parse_id(value)) is None:
            raise self.make_error("invalid")
        return identifier


class Timezone(Text):
    """The IANA name of a time zone, e.g. `Europe/Madrid`."""

    default_error_messages = {
        "timezone": Message("must be the IANA name of a time zone, such as Europe/Madrid", "INVALID_TIMEZONE")
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(metadata={"example": "Europe/Madrid"} | options.pop("metadata", {}), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        text = super()._deserialize(value, attr, data)
        if text not in TIMEZONES:
            raise self.make_error("timezone")
        return text


class Link(Text):
    """An http or https URL, at most 2,000 characters."""

    _validator = validators.URL(
        schemes={"http", "https"}, require_tld=False, error=Message("must be an http or https address", "INVALID_URL")
    )

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=2000, metadata={"format": "uri"} | options.pop("metadata", {}), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        return self._validator(super()._deserialize(value, attr, data))


class DateTime(fields.String):
    """A stored time in a response: ISO 8601, UTC, milliseconds, `Z`."""

    def __init__(self, **options: Any) -> None:
        metadata = {"format": "date-time", "example": "2026-03-02T08:30:00.000Z"}
        super().__init__(metadata=metadata | options.pop("metadata", {}), **options)


class Choice(Text):
    """One of several fixed strings."""

    def __init__(self, *choices: str, **options: Any) -> None:
        self.choices = choices
        error = Message(f"must be one of: {', '.join(choices)}", "INVALID_CHOICE")
        super().__init__(validate=validators.OneOf(choices, error=error), **options)


class ListOf(fields.List[Any]):
    """A JSON array of `minimum` to `maximum` entries; null, where allowed, loads as an empty list."""

    default_error_messages = {
        "invalid": Message("must be an array", "NOT_AN_ARRAY"),
        "few": EMPTY,
        "many": Message("must not hold more than {maximum} entries", "TOO_MANY"),
    }

    def __init__(self, inner: Any, *, minimum: int = 0, maximum: int = 100, **options: Any) -> None:
        self.minimum, self.maximum = minimum, maximum
        metadata = {"maxItems": maximum} | ({"minItems": minimum} if minimum else {})
        super().__init__(inner, metadata=metadata | options.pop("metadata", {}), **options)

    def deserialize(self, value: Any, attr: str | None = None, data: Any = None, **kwargs: Any) -> list[Any]:
        """Load the entries; null is an empty list where it is allowed."""
        if value is None and self.allow_none:
            return []
        entries: list[Any] = super().deserialize(value, attr, data, **kwargs)
        return entries

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        # Checked before the entries are loaded, which a Length validator would not do: a long list costs nothing.
        if not isinstance(value, list):
            raise self.make_error("invalid")
        if len(value) < self.minimum:
            raise self.make_error("few")
        if len(value) > self.maximum:
            raise self.make_error("many", maximum=self.maximum)
        return self._load_entries(value, attr=attr, data=data, **kwargs)

    def _load_entries(self, value: list[Any], **kwargs: Any) -> list[Any]:
        return super()._deserialize(value, **kwargs)


class StringList(ListOf):
    """An array of short strings (tags, groups), trimmed and without duplicates; null is an empty list."""

    def __init__(self, *, max_length: int = 100, maximum: int = MAX_STRINGS, **options: Any) -> None:
        super().__init__(Text(max_length=max_length), maximum=maximum, **{"allow_none": True} | options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        return list(dict.fromkeys(super()._deserialize(value, attr, data, **kwargs)))


class DryRun(Input):
    """Whether only to report what an operation would do."""

    dryRun = Boolean(load_default=False)


class DryRunField(TypedDict):
    """The field of DryRun, for handlers that receive it."""

    dryRun: bool


class Version(Integer):
    """The `version` a change was based on."""

    def __init__(self, **options: Any) -> None:
        metadata = {"description": "The version this change is based on: 409 if the record has moved on since."}
        super().__init__(minimum=0, maximum=2**31, metadata=metadata, **options)


def patch_of(*schemas: type[Schema], name: str) -> Schema:
    """Return the schema of a PATCH body: every field of `schemas`, none required, and `version`."""
    # marshmallow's own `partial` would also apply to nested objects, which are replaced as a whole.
    optional: dict[str, Any] = {"version": Version()}
    for schema in schemas:
        for field_name, declared in schema._declared_fields.items():
            field = copy.deepcopy(declared)
            field.required, field.load_default = False, missing
            optional[field_name] = field
    patch_schema: type[Schema] = type(name, schemas, optional)
    return patch_schema()


def upsert_of(schema: type[Schema], *, name: str) -> Schema:
    """Return the schema of a PUT body that creates a record or changes one: every field of `schema`, none required.

    `complete_upsert` adds what only a new record needs.
    """
    optional = patch_of(schema, DryRun, name=name)
    type(optional).__doc__ = "The record to create, or the fields of the existing one to change."
    return type(optional)(exclude=("externalId",))


def complete_upsert(schema: Schema, sent: Mapping[str, Any]) -> Any:
    """Return the body of a new record: what was sent, with the defaults of `schema` for what was not.

    Raises InvalidFields if a required field is missing.
    """
    complete = {name: value for name, value in sent.items() if name != "version"}
    absent = {name: field for name, field in schema.fields.items() if name not in sent}
    if errors := [REQUIRED.at(name) for name, field in absent.items() if field.required]:
        raise InvalidFields(errors)
    for name, field in absent.items():
        if field.load_default is not missing:
            complete[name] = field.load_default() if callable(field.load_default) else field.load_default
    return complete
