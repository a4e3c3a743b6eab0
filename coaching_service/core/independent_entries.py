"""Batches whose entries are validated one by one: an invalid entry does not refuse the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marshmallow import Schema, ValidationError, fields

from coaching_service.core.errors import FieldError
from coaching_service.core.validation import Identifier, ListOf, Output, field_errors


@dataclass(frozen=True)
class InvalidEntry:
    """An entry of a batch that is not valid: its errors by field, relative to the entry."""

    errors: Sequence[FieldError]


class IndependentEntries(ListOf):
    """A JSON array of 1 to `maximum` objects, each loaded by `schema`, or as an InvalidEntry."""

    def __init__(self, schema: type[Schema], *, maximum: int, **options: Any) -> None:
        super().__init__(fields.Nested(schema), minimum=1, maximum=maximum, **options)

    def _load_entries(self, value: list[Any], **_: Any) -> list[Any]:
        return [self._load_entry(entry) for entry in value]

    def _load_entry(self, value: Any) -> Mapping[str, Any] | InvalidEntry:
        try:
            entry: Mapping[str, Any] = self.inner.deserialize(value)
        except ValidationError as error:
            return InvalidEntry(field_errors(error))
        return entry


class EntryError(Output):
    """What is wrong with an entry of a batch."""

    field = fields.String(metadata={"description": "The field, relative to the entry; empty for the entry itself."})
    code = fields.String(metadata={"description": "A stable code, such as `REQUIRED`."})
    message = fields.String(metadata={"description": "What is wrong, for people; it follows the name of the field."})
    _id = Identifier(
        metadata={"description": "With `EXTERNAL_ID_TAKEN`: the record that has the identifier.", "optional": True}
    )
