"""The result of bringing clients up to date with a program."""

from __future__ import annotations

from typing import Annotated

from marshmallow import fields

from coaching_service.core.fields import Description
from coaching_service.lifecycle.customer_bulk.models import Failure
from coaching_service.lifecycle.customer_bulk.schemas import BulkFailure
from coaching_service.training.assignments.sync_models import SyncResult


class ProgramSyncResult(SyncResult):
    """How many workouts were brought up to date, or with `dryRun` would be."""

    failed: Annotated[
        list[Failure],
        fields.List(fields.Nested(BulkFailure)),
        Description("The clients whose calendars were not changed at all, and why."),
    ]
