"""Recurring check-ins as they are sent, stored and returned."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, NotRequired, TypedDict

from marshmallow import fields, validates_schema

from coaching_service.core.database.models import Returned, Stored
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Description, Private
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import CalendarDate, Date, Input, Integer, Text, invalid
from coaching_service.training.workouts.items.models import NewTaskFields, TaskFields

_WEEKDAY = "The weekday, from 1 (Monday) to 7 (Sunday)"
_EVERY = "The number of days from one check-in to the next; the first one is on `startDate`"


class Recurrence(TypedDict):
    """When a check-in takes place, from `startDate` to `until`, both included: on a weekday, or every few days."""

    weekday: Annotated[
        int | None,
        Integer(minimum=1, maximum=7),
        Description(
            request=f"{_WEEKDAY}.",
            response=f"{_WEEKDAY}; null with `everyDays`.",
            argument="Every week on this day, 1 Monday to 7 Sunday.",
        ),
    ]
    everyDays: Annotated[
        int | None,
        Integer(minimum=1, maximum=366),
        Description(
            request=f"{_EVERY}.", response=f"{_EVERY}; null with `weekday`.", argument="Instead: every so many days."
        ),
    ]
    startDate: Annotated[
        str,
        CalendarDate(),
        Description("The first date on which it can take place.", argument="First day. Default: the client's today."),
    ]
    until: Annotated[
        str | None,
        Date(),
        Description(
            request="The last date on which it can take place. Default: no end.",
            response="The last date on which it can take place; null without an end.",
            argument="Last day. Default: no end.",
        ),
    ]


class _Content(TypedDict):
    formId: Annotated[
        ObjectId | None,
        Description(request="The form to answer.", response="The form to answer; null for other check-ins."),
    ]
    metricsSetId: Annotated[
        ObjectId | None,
        Description(request="The metrics to record.", response="The metrics to record; null for other check-ins."),
    ]
    taskFields: Annotated[
        TaskFields | None,
        fields.Nested(NewTaskFields),
        Description(request="A task, such as a daily habit.", response="The task; null for other check-ins."),
    ]


class NewCheckIn(_Content, Recurrence):
    """The content of a recurring check-in: one of a form, a metric set and a task.

    Either on a weekday, or every few days.
    """


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


NEW_CHECK_IN = input_of(NewCheckIn, _Choices)


class _Named(TypedDict):
    customerId: ObjectId
    name: Annotated[str, Text(), Description("The name of the form or metric set, or the title of the task.")]


class CheckIn(_Named, _Content, Recurrence, Returned):
    """A recurring check-in of a client."""


class CheckInContent(_Named, _Content, Recurrence):
    """A check-in of a client, named as its form, metric set or task when it was last scheduled.

    `scheduledUntil` is the last date for which blocks have been scheduled (None: none yet), and `dueAt` the
    time (UTC) at which the next date has to be scheduled (None: there is none).
    """

    scheduledUntil: Annotated[str | None, Date(), Private]
    dueAt: Annotated[datetime | None, Private]


class NewCheckInDocument(CheckInContent):
    """A check-in to store, without the fields that the database package adds."""

    _id: ObjectId


class StoredCheckIn(CheckInContent, Stored):
    """A stored check-in; `absentDates` (missing for none) are its dates without a block because of an absence."""

    absentDates: NotRequired[Annotated[list[str], Private]]


class DueCheckIn(TypedDict):
    """A check-in of any company that has to be scheduled."""

    _id: ObjectId
    companyId: ObjectId
    customerId: ObjectId
