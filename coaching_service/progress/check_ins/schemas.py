"""Requests and responses of the recurring check-ins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import fields, validates_schema

from coaching_service.core.validation import Date, DateTime, Identifier, Input, Integer, Output
from coaching_service.core.validation_messages import invalid
from coaching_service.training.workouts.items.models import NewTaskFields
from coaching_service.training.workouts.items.responses import TaskFields

_CONTENT = ("formId", "metricsSetId", "taskFields")
_RHYTHM = ("weekday", "everyDays")
_WEEKDAY = "The weekday, from 1 (Monday) to 7 (Sunday)"
_EVERY = "The number of days from one check-in to the next; the first one is on `startDate`"


class NewCheckIn(Input):
    """The content of a recurring check-in: one of a form, a metric set and a task.

    Either on a weekday, or every few days.
    """

    formId = Identifier(allow_none=True, load_default=None, metadata={"description": "The form to answer."})
    metricsSetId = Identifier(allow_none=True, load_default=None, metadata={"description": "The metrics to record."})
    taskFields = fields.Nested(
        NewTaskFields, allow_none=True, load_default=None, metadata={"description": "A task, such as a daily habit."}
    )
    weekday = Integer(
        minimum=1, maximum=7, allow_none=True, load_default=None, metadata={"description": f"{_WEEKDAY}."}
    )
    everyDays = Integer(
        minimum=1, maximum=366, allow_none=True, load_default=None, metadata={"description": f"{_EVERY}."}
    )
    startDate = Date(required=True, metadata={"description": "The first date on which it can take place."})
    until = Date(
        allow_none=True,
        load_default=None,
        metadata={"description": "The last date on which it can take place. Default: no end."},
    )

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


class CheckIn(Output):
    """A recurring check-in of a client."""

    _id = Identifier()
    customerId = Identifier()
    name = fields.String(metadata={"description": "The name of the form or metric set, or the title of the task."})
    formId = Identifier(allow_none=True, metadata={"description": "The form to answer; null for other check-ins."})
    metricsSetId = Identifier(
        allow_none=True, metadata={"description": "The metrics to record; null for other check-ins."}
    )
    taskFields = fields.Nested(
        TaskFields, allow_none=True, metadata={"description": "The task; null for other check-ins."}
    )
    weekday = fields.Integer(allow_none=True, metadata={"description": f"{_WEEKDAY}; null with `everyDays`."})
    everyDays = fields.Integer(allow_none=True, metadata={"description": f"{_EVERY}; null with `weekday`."})
    startDate = Date(metadata={"description": "The first date on which it can take place."})
    until = Date(
        allow_none=True, metadata={"description": "The last date on which it can take place; null without an end."}
    )
    createdAt = DateTime()
    updatedAt = DateTime()
    version = fields.Integer()
