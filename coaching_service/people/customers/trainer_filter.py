"""The query parameter `assignedTo` of lists of clients."""

from __future__ import annotations

from collections.abc import Sequence

from coaching_service.core.errors import invalid_field
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.people.customers.schemas import NO_TRAINER


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
