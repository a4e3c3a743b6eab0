"""The queries of the form responses."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError, validates_schema

from coaching_service.core.field_schemas import query_of
from coaching_service.core.validation import Input
from coaching_service.progress.form_responses import models


class _InOrder(Input):
    @validates_schema
    def in_order(self, data: models.OpenRange, **_: Any) -> None:
        """The end is not before the start."""
        if "from" in data and "to" in data and data["to"] < data["from"]:
            raise ValidationError("must not be before from", "to")


OPEN_RANGE = query_of(models.OpenRange, _InOrder)
INBOX_QUERY = query_of(models.InboxQuery, _InOrder)
