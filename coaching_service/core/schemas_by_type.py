"""Objects whose `type` determines their schema: workout items and their sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from marshmallow import Schema, ValidationError, fields

from coaching_service.core.errors import FieldError, InvalidFields
from coaching_service.core.validation_messages import NOT_AN_OBJECT, UNKNOWN_FIELD, Message, field_errors


class DeferredChange:
    """A change that is validated once the type of the stored object is known.

    `is_strict`: fields that the type does not have are errors.
    """

    def __init__(self, by_type: Mapping[str, Schema], data: Any) -> None:
        self._by_type, self._data = by_type, data
        self.is_strict = False

    def sent(self, name: str) -> Any:
        """Return the value of a field as it was sent, not validated; None if it was not sent."""
        return self._data.get(name) if isinstance(self._data, Mapping) else None

    def as_type(self, stored_type: str) -> dict[str, Any]:
        """Return the change as the schema of `stored_type` loads it. Raises InvalidFields."""
        try:
            change: dict[str, Any] = self._by_type[stored_type].load(self._data)
        except ValidationError as error:
            raise InvalidFields(field_errors(error)) from None
        if self.is_strict and (unknown := list(find_unknown_fields(self._by_type[stored_type], self._data))):
            raise InvalidFields(unknown)
        return change


class ChangeByStoredType:
    """The body of a PATCH of an object whose type is stored, not sent; it is validated when that type is known."""

    def __init__(self, by_type: Mapping[str, Schema]) -> None:
        self.by_type = by_type

    def load(self, data: Any) -> DeferredChange:
        """Return the change, not validated yet."""
        return DeferredChange(self.by_type, data)


class Variant(fields.Field[dict[str, Any]]):
    """An object loaded by the schema that its `type` names; a `oneOf` with a discriminator in the OpenAPI document."""

    def __init__(self, by_type: Mapping[str, type[Schema]], **options: Any) -> None:
        self.by_type = {name: schema() for name, schema in by_type.items()}
        super().__init__(**options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValidationError(NOT_AN_OBJECT)
        type_name = value.get("type")
        schema = self.by_type.get(type_name) if isinstance(type_name, str) else None
        if schema is None:
            message = Message(f"must be one of: {', '.join(self.by_type)}", "INVALID_CHOICE")
            raise ValidationError({"type": [message]})
        loaded: dict[str, Any] = schema.load(value)
        return {"type": type_name, **loaded}

    def fields_of(self, data: Mapping[str, object]) -> dict[str, fields.Field[Any]] | None:
        """Return the fields of the type that `data` names, `type` included; None for an unknown type."""
        type_name = data.get("type")
        schema = self.by_type.get(type_name) if isinstance(type_name, str) else None
        return None if schema is None else {"type": fields.String(), **schema.fields}

    def load(self, data: Any) -> dict[str, Any]:
        """Load a complete body, as a schema does. Raises ValidationError."""
        return self._deserialize(data, None, None)


def find_unknown_fields(
    schema: Schema | Variant | fields.Field[Any], data: Any, path: str = ""
) -> Iterator[FieldError]:
    """Yield an error for each field of `data`, nested ones included, that `schema` does not have.

    `path` is the path of `data`. What has another type than the schema's is left to validation.
    """
    if isinstance(schema, fields.List) and isinstance(data, list):
        for index, entry in enumerate(data):
            yield from find_unknown_fields(schema.inner, entry, _join(path, index))
    elif isinstance(schema, fields.Nested):
        yield from find_unknown_fields(schema.schema, data, path)
    elif isinstance(schema, Variant | Schema) and isinstance(data, dict):
        known = schema.fields_of(data) if isinstance(schema, Variant) else schema.fields
        if known is None:
            return
        for name, value in data.items():
            if name in known:
                yield from find_unknown_fields(known[name], value, _join(path, name))
            else:
                yield {"field": _join(path, name), "code": UNKNOWN_FIELD.code, "message": str(UNKNOWN_FIELD)}


def _join(path: str, name: object) -> str:
    return f"{path}.{name}".lstrip(".")
