"""The rules of new recurring check-ins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import validates_schema

from coaching_service.core.field_schemas import input_of
from coaching_service.core.validation import Input
from coaching_service.core.validation_messages import invalid
from coaching_service.progress.check_ins import models

_CONTENT = ("formId", "metricsSetId", "taskFields")
_RHYTHM = ("weekday", "everyDays")


class _Choices(Input):
    @validates_schema(skip_on_field_errors=True)
    def validate_choices(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError unless there is one content and one rhythm, and the end is not before the start."""
        for names in (_CONTENT, _RHYTHM):
            given = [name for name in names if data[name] is not None]
            if not given:
                raise invalid(f"is required, or {' or '.join(names[1:])}", "REQUIRED", names[0])
            if len(given) > 1:
                raise invalid(f"must not be combined with {given[0]}", "NOT_ALLOWED", given[1])
        if data["until"] is not None and data["until"] < data["startDate"]:
            raise invalid("must not be before startDate", "BEFORE_START", "until")


NEW_CHECK_IN = input_of(models.NewCheckIn, _Choices)
