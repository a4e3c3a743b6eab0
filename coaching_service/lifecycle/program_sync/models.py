"""The result of bringing clients up to date with a program."""

from __future__ import annotations

from typing import Annotated

from coaching_service.core.fields import Description
from coaching_service.lifecycle.customer_bulk.models import BulkFailure
from coaching_service.training.assignments.sync_models import SyncResult


class ProgramSyncResult(SyncResult):
    """How many workouts were brought up to date, or with `dryRun` would be."""

    failed: Annotated[list[BulkFailure], Description("The clients whose calendars were not changed at all, and why.")]
