"""Bulk operations on clients over REST."""

from __future__ import annotations

from functools import partial

from coaching_service.core.accepted import Accepted
from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS, METRICS
from coaching_service.core.database.context import Context
from coaching_service.core.errors import NotFound
from coaching_service.core.http.routes import Routes
from coaching_service.core.idempotency import Claim
from coaching_service.lifecycle.customer_bulk import jobs, models
from coaching_service.lifecycle.customer_bulk.schemas import (
    BulkAssignmentResult,
    BulkGroupsChange,
    BulkMessage,
    BulkMetricsSetAssignment,
    BulkProgramAssignment,
    BulkResult,
    BulkTrainerAssignment,
    CustomerSelection,
)

routes = Routes("/coach/customers/bulk", tag="Bulk")

Result = models.BulkResult | Accepted
_bulk = partial(routes.post, status=200, returns=BulkResult, request_class="bulk", resumable=True)
_IDS = {"ids": ["66f0c0ffee0000000000abcd", "66f0c0ffee0000000000abce"]}
_FILTER = {"filter": {"archived": False, "groups": ["Morning"]}, "excludeIds": ["66f0c0ffee0000000000abcd"]}


@_bulk("/archive", access=coach(CUSTOMERS.EDIT), body=CustomerSelection(), example=_IDS)
async def bulk_archive_customers(ctx: Context, body: models.Selection, claim: Claim | None) -> Result:
    """Archive clients."""
    return await jobs.execute(ctx, body, claim)


@_bulk("/unarchive", access=coach(CUSTOMERS.EDIT), body=CustomerSelection(), example=_IDS)
async def bulk_unarchive_customers(ctx: Context, body: models.Selection, claim: Claim | None) -> Result:
    """Restore archived clients."""
    return await jobs.execute(ctx, body, claim)


@_bulk("/groups-add", access=coach(CUSTOMERS.EDIT), body=BulkGroupsChange(), example={**_FILTER, "groups": ["Spring"]})
async def bulk_add_groups(ctx: Context, body: models.GroupsChange, claim: Claim | None) -> Result:
    """Add clients to groups."""
    return await jobs.execute(ctx, body, claim)


@_bulk(
    "/groups-remove", access=coach(CUSTOMERS.EDIT), body=BulkGroupsChange(), example={**_FILTER, "groups": ["Winter"]}
)
async def bulk_remove_groups(ctx: Context, body: models.GroupsChange, claim: Claim | None) -> Result:
    """Remove clients from groups."""
    return await jobs.execute(ctx, body, claim)


@_bulk(
    "/assign-trainer",
    access=coach(CUSTOMERS.EDIT),
    body=BulkTrainerAssignment(),
    errors=(NotFound,),
    example={**_IDS, "coachId": None},
)
async def bulk_assign_trainer(ctx: Context, body: models.TrainerChange, claim: Claim | None) -> Result:
    """Assign clients to a coach.

    `coachId` null leaves them without a trainer.
    """
    return await jobs.execute(ctx, body, claim)


@routes.post(
    "/assign-program",
    access=coach(CUSTOMERS.EDIT),
    status=200,
    body=BulkProgramAssignment(),
    returns=BulkAssignmentResult,
    request_class="bulk",
    resumable=True,
    errors=(NotFound,),
    example={**_IDS, "programId": "66f0c0ffee0000000000abcd", "startDate": "2026-03-02"},
)
async def bulk_assign_program(ctx: Context, body: models.ProgramAssignment, claim: Claim | None) -> Result:
    """Assign a program to clients.

    Each client gets all of its blocks or none.
    """
    return await jobs.execute(ctx, body, claim)


@_bulk(
    "/assign-metrics-set",
    access=coach(METRICS.EDIT),
    body=BulkMetricsSetAssignment(),
    errors=(NotFound,),
    example={**_IDS, "metricsSetId": "66f0c0ffee0000000000abcd"},
)
async def bulk_assign_metrics_set(ctx: Context, body: models.MetricsSetAssignment, claim: Claim | None) -> Result:
    """Assign a metric set to clients."""
    return await jobs.execute(ctx, body, claim)


@_bulk(
    "/message",
    access=coach(CUSTOMERS.EDIT),
    body=BulkMessage(),
    example={**_IDS, "text": "The gym is closed on Monday."},
)
async def bulk_send_message(ctx: Context, body: models.BulkMessage, claim: Claim | None) -> Result:
    """Send a message to clients.

    Each client gets it in a conversation of their own.
    """
    return await jobs.execute(ctx, body, claim)


@_bulk("/delete", access=coach(CUSTOMERS.DELETE), body=CustomerSelection(), example=_IDS)
async def bulk_delete_customers(ctx: Context, body: models.Selection, claim: Claim | None) -> Result:
    """Erase clients.

    The clients are deleted at once; the rest of their data is then erased in the background.
    """
    return await jobs.execute(ctx, body, claim)
