"""Recurring check-ins as they are sent, stored and returned."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from coaching_service.core.database.models import Stored
from coaching_service.core.ids import ObjectId
from coaching_service.training.workouts.items.models import TaskFields


class Recurrence(TypedDict):
    """When a check-in takes place, from `startDate` to `until` (None: without end), both included.

    Either on a `weekday` (1 Monday to 7 Sunday), or every `everyDays` days, the first time on `startDate`.
    """

    weekday: int | None
    everyDays: int | None
    startDate: str
    until: str | None


class CheckInInput(Recurrence):
    """A check-in as a coach sends it: one of a form, a metric set and a task."""

    formId: ObjectId | None
    metricsSetId: ObjectId | None
    taskFields: TaskFields | None


class CheckInContent(CheckInInput):
    """A check-in of a client; `name` is the name of the form, metric set or task when it was last scheduled.

    Private: `scheduledUntil` is the last date for which blocks have been scheduled (None: none yet), and `dueAt` the
    time (UTC) at which the next date has to be scheduled (None: there is none).
    """

    customerId: ObjectId
    name: str
    scheduledUntil: str | None
    dueAt: datetime | None


class NewCheckInDocument(CheckInContent):
    """A check-in to store, without the fields that the database package adds."""

    _id: ObjectId


class StoredCheckIn(CheckInContent, Stored):
    """A stored check-in."""


class CheckIn(CheckInInput):
    """A check-in as it is returned."""

    _id: ObjectId
    customerId: ObjectId
    name: str
    createdAt: datetime
    updatedAt: datetime
    version: int


class DueCheckIn(TypedDict):
    """A check-in of any company that has to be scheduled."""

    _id: ObjectId
    companyId: ObjectId
    customerId: ObjectId
