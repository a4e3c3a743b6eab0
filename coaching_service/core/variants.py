"""Objects whose `type` determines their schema: workout items and their sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, fields

from coaching_service.core.errors import InvalidFields
from coaching_service.core.validation_messages import NOT_AN_OBJECT, Message, field_errors


class DeferredChange:
    """A change that is validated once the type of the stored object is known."""

    def __init__(self, by_type: Mapping[str, Schema], data: Any) -> None:
        self._by_type, self._data = by_type, data

    def as_type(self, stored_type: str) -> dict[str, Any]:
        """Returns the change as the schema of `stored_type` loads it. Raises InvalidFields."""
        try:
            change: dict[str, Any] = self._by_type[stored_type].load(self._data)
        except ValidationError as error:
            raise InvalidFields(field_errors(error)) from None
        return change


class ChangeByStoredType:
    """The body of a PATCH of an object whose type is stored, not sent; it is validated when that type is known."""

    def __init__(self, by_type: Mapping[str, Schema]) -> None:
        self.by_type = by_type

    def load(self, data: Any) -> DeferredChange:
        """Returns the change, not validated yet."""
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

    def load(self, data: Any) -> dict[str, Any]:
        """Load a complete body, as a schema does. Raises ValidationError."""
        return self._deserialize(data, None, None)
