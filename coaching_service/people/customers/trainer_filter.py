"""The filter `assignedTo` of clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coaching_service.core.errors import invalid_field
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.validation import Identifier

NO_TRAINER = "none"


class TrainerOrNone(Identifier):
    """A coach's identifier, or `none`: clients without a trainer."""

    def __init__(self, **options: Any) -> None:
        super().__init__(metadata={"pattern": f"^([0-9a-fA-F]{{24}}|{NO_TRAINER})$"}, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        return None if value == NO_TRAINER else super()._deserialize(value, attr, data, **kwargs)


def parse_trainers(values: Sequence[str] | None) -> list[ObjectId | None] | None:
    """Return the trainers that `values` name; `none` is None: no trainer. Raises InvalidFields for anything else."""
    if values is None:
        return None
    return [None if value == NO_TRAINER else _parse(value) for value in values]


def _parse(value: str) -> ObjectId:
    if (identifier := parse_id(value)) is None:
        message = "must be an identifier of 24 hexadecimal characters, or none"
        raise invalid_field("assignedTo", message, code="INVALID_ID")
    return identifier
