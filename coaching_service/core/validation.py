"""What comes in as JSON, judged: JSON's own types, nothing converted."""

from __future__ import annotations

import copy
import math
import re
from datetime import date
from typing import Any
from unicodedata import category
from zoneinfo import available_timezones

from marshmallow import EXCLUDE, Schema, ValidationError, fields, missing
from marshmallow import validate as checks

from coaching_service.core.ids import ObjectId, parse_id

NAME_LENGTH = 200
TEXT_LENGTH = 10_000
MAX_STRINGS = 50

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
TIMEZONES = frozenset(available_timezones() - {"Factory", "localtime", "posixrules"})  # which name no zone
# Separators, control and format characters, and marks without a letter; and letters and symbols drawn as nothing.
_INVISIBLE = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf", "Mn", "Me"})
_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_LINE = re.compile(r"[\n\r\t]")


def is_blank(text: str) -> bool:
    """Whether nothing of `text` is visible: it consists of spaces, format characters and blank letters."""
    return all(character in _BLANK_LETTERS or category(character) in _INVISIBLE for character in text)


class Input(Schema):
    """The base of what is read from a request: unknown fields are ignored."""

    class Meta:
        unknown = EXCLUDE


class Output(Schema):
    """The base of what is sent: describes it and is never dumped through. Every field is present, null when unset."""

    def on_bind_field(self, field_name: str, field_obj: fields.Field[Any]) -> None:
        """Present in every answer, unless the field's metadata says `optional`."""
        field_obj.required = not field_obj.metadata.get("optional", False)


class Text(fields.String):
    """A string, trimmed. `blank=False` refuses one that is empty after trimming; `longest` counts characters."""

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
            raise ValidationError("must be a string")
        text = value.strip() if self.trim else value
        if is_blank(text) and not self.allow_blank:
            raise ValidationError("should not be empty")
        if _CONTROL.search(text) or (self.max_length <= NAME_LENGTH and _LINE.search(text)):
            raise ValidationError("must not contain control characters")
        if len(text) > self.max_length:
            raise ValidationError(f"must not be longer than {self.max_length} characters")
        return text


class Email(Text):
    """An e-mail address, as typed, at most 254 characters."""

    _check = checks.Email(error="must be an e-mail address")

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=254, metadata={"format": "email"} | options.pop("metadata", {}), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        text = super()._deserialize(value, attr, data)
        if not text.isprintable() or ".." in text:
            raise ValidationError("must be an e-mail address")
        return self._check(text)


class Number(fields.Float):
    """A finite JSON number between `least` and `most`, both allowed."""

    def __init__(self, *, minimum: float | None = None, maximum: float = 1e12, **options: Any) -> None:
        self.minimum, self.maximum = minimum, maximum
        limits = {"maximum": maximum} | ({} if minimum is None else {"minimum": minimum})
        super().__init__(metadata=limits | options.pop("metadata", {}), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValidationError("must be a number")
        number: float = within(value, self.minimum, self.maximum)
        return number


class Integer(fields.Integer):
    """A JSON integer (6, not 6.0 and not "6") between `least` and `most`, both allowed."""

    def __init__(self, *, minimum: int | None = None, maximum: int = 1_000_000, **options: Any) -> None:
        self.minimum, self.maximum = minimum, maximum
        limits = {"maximum": maximum} | ({} if minimum is None else {"minimum": minimum})
        super().__init__(metadata=limits | options.pop("metadata", {}), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValidationError("must be an integer")
        return int(within(value, self.minimum, self.maximum))


class Boolean(fields.Boolean):
    """A JSON boolean, nothing that merely looks like one."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> bool:
        if not isinstance(value, bool):
            raise ValidationError("must be a boolean")
        return value


class Date(fields.String):
    """A date written exactly `YYYY-MM-DD` that exists; it stays the text it is."""

    def __init__(self, **options: Any) -> None:
        super().__init__(metadata={"format": "date", "example": "2026-03-02"} | options.pop("metadata", {}), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        if isinstance(value, str) and _DAY.fullmatch(value):
            try:
                date.fromisoformat(value)
            except ValueError:
                raise ValidationError("must be a date that exists") from None
            return value
        raise ValidationError("must be a date in the form YYYY-MM-DD")


class Identifier(fields.String):
    """24 hexadecimal characters, read as an ObjectId."""

    def __init__(self, **options: Any) -> None:
        about = {"pattern": "^[0-9a-fA-F]{24}$", "example": "66f0c0ffee0000000000abcd"}
        super().__init__(metadata=about | options.pop("metadata", {}), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> ObjectId:  # type: ignore[override]  # the wire form is a string, ours is not
        if (identifier := parse_id(value)) is None:
            raise ValidationError("must be an identifier of 24 hexadecimal characters")
        return identifier


class Timezone(Text):
    """The IANA name of a time zone, e.g. `Europe/Madrid`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(metadata={"example": "Europe/Madrid"} | options.pop("metadata", {}), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        text = super()._deserialize(value, attr, data)
        if text not in TIMEZONES:
            raise ValidationError("must be the IANA name of a time zone, such as Europe/Madrid")
        return text


class Link(Text):
    """An http or https address, at most 2,000 characters."""

    _check = checks.URL(schemes={"http", "https"}, require_tld=False, error="must be an http or https address")

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=2000, metadata={"format": "uri"} | options.pop("metadata", {}), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> str:
        return self._check(super()._deserialize(value, attr, data))


class DateTime(fields.String):
    """A stored time in an answer: ISO 8601, UTC, milliseconds, `Z`."""

    def __init__(self, **options: Any) -> None:
        about = {"format": "date-time", "example": "2026-03-02T08:30:00.000Z"}
        super().__init__(metadata=about | options.pop("metadata", {}), **options)


class Choice(Text):
    """One of a few words."""

    def __init__(self, *choices: str, **options: Any) -> None:
        self.choices = choices
        super().__init__(validate=checks.OneOf(choices, error=f"must be one of: {', '.join(choices)}"), **options)


class ListOf(fields.List[Any]):
    """A JSON array of at most `most` members; where null is allowed it means none."""

    def __init__(self, inner: Any, *, minimum: int = 0, maximum: int = 100, **options: Any) -> None:
        self.minimum, self.maximum = minimum, maximum
        about = {"maxItems": maximum} | ({"minItems": minimum} if minimum else {})
        super().__init__(inner, metadata=about | options.pop("metadata", {}), **options)

    def deserialize(self, value: Any, attr: str | None = None, data: Any = None, **kwargs: Any) -> list[Any]:
        """The members; null clears them."""
        members: list[Any] = (
            [] if value is None and self.allow_none else super().deserialize(value, attr, data, **kwargs)
        )
        return members

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        if not isinstance(value, list):
            raise ValidationError("must be an array")
        if len(value) < self.minimum:
            raise ValidationError("should not be empty")
        if len(value) > self.maximum:
            raise ValidationError(f"must not hold more than {self.maximum} entries")
        return super()._deserialize(value, attr, data, **kwargs)


class StringList(ListOf):
    """An array of short strings (tags, groups), trimmed, each kept once; null is none."""

    def __init__(self, *, max_length: int = 100, maximum: int = MAX_STRINGS, **options: Any) -> None:
        super().__init__(Text(max_length=max_length), maximum=maximum, **{"allow_none": True} | options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        return list(dict.fromkeys(super()._deserialize(value, attr, data, **kwargs)))


class Version(Integer):
    """The `version` a change was based on."""

    def __init__(self, **options: Any) -> None:
        about = {"description": "The version this change is based on: 409 if the record has moved on since."}
        super().__init__(minimum=0, maximum=2**31, metadata=about, **options)


def patch_of(*schemas: type[Schema], name: str) -> Schema:
    """The schema of a PATCH body: every field of `schemas`, none required, and `version`."""
    # marshmallow's own `partial` would reach into nested objects, which are replaced whole and so must be whole.
    optional: dict[str, Any] = {"version": Version()}
    for schema in schemas:
        for field_name, declared in schema._declared_fields.items():
            field = copy.deepcopy(declared)
            field.required, field.load_default = False, missing
            optional[field_name] = field
    built: type[Schema] = type(name, schemas, optional)
    return built()


def within(value: Any, minimum: Any, maximum: Any) -> Any:
    """`value`, when it is between `least` (None: no bound) and `most`. Raises ValidationError."""
    if minimum is not None and value < minimum:
        raise ValidationError(f"must not be less than {minimum}")
    if value > maximum:
        raise ValidationError(f"must not be greater than {maximum}")
    return value
