"""The queries of the form responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, validates_schema

from coaching_service.core.pagination import CursorQuery
from coaching_service.core.query import QueryBoolean
from coaching_service.core.validation import Date, Identifier, Input


class OpenRange(Input):
    """`from` and `to`, both included; either can be omitted."""

    class Meta(Input.Meta):
        include = {"from": Date()}

    to = Date()

    @validates_schema
    def in_order(self, data: Mapping[str, str], **_: Any) -> None:
        """The end is not before the start."""
        if "from" in data and "to" in data and data["to"] < data["from"]:
            raise ValidationError("must not be before from", "to")


class InboxQuery(OpenRange, CursorQuery):
    """Filters of the responses of all clients; they combine with AND."""

    reviewed = QueryBoolean(metadata={"description": "`true`: only reviewed ones; `false`: only the others."})
    formId = Identifier(metadata={"description": "Only responses to this form."})
    customerId = Identifier(metadata={"description": "Only responses of this client."})
