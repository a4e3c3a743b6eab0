"""Objects whose `type` decides their shape: workout items and their sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, fields

from coaching_service.core.errors import BadRequest
from coaching_service.core.validation_messages import body_messages


class DeferredChange:
    """A change whose shape depends on the type of what is stored."""

    def __init__(self, by_type: Mapping[str, Schema], data: Any) -> None:
        self._by_type, self._data = by_type, data

    def as_type(self, kind: str) -> dict[str, Any]:
        """The change as the schema of the stored `kind` reads it. Raises BadRequest with one sentence a wrong field."""
        try:
            change: dict[str, Any] = self._by_type[kind].load(self._data)
        except ValidationError as error:
            raise BadRequest(body_messages(error)) from None
        return change


class ChangeByStoredType:
    """The body of a PATCH of something whose type is stored, not sent: judged when that type is known."""

    def __init__(self, by_type: Mapping[str, Schema]) -> None:
        self.by_type = by_type

    def load(self, data: Any) -> DeferredChange:
        """The change, still to be judged."""
        return DeferredChange(self.by_type, data)


class Variant(fields.Field[dict[str, Any]]):
    """An object read by the schema that its `type` names; in the OpenAPI document a `oneOf` told apart by `type`."""

    def __init__(self, by_type: Mapping[str, type[Schema]], **options: Any) -> None:
        self.by_type = {word: schema() for word, schema in by_type.items()}
        super().__init__(**options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValidationError("must be an object")
        kind = value.get("type")
        schema = self.by_type.get(kind) if isinstance(kind, str) else None
        if schema is None:
            raise ValidationError({"type": [f"must be one of: {', '.join(self.by_type)}"]})
        loaded: dict[str, Any] = schema.load(value)
        return {"type": kind, **loaded}

    def load(self, data: Any) -> dict[str, Any]:
        """Read a whole body, as a schema does. Raises ValidationError."""
        return self._deserialize(data, None, None)
