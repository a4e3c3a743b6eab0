"""Bulk operations on clients over REST."""

from __future__ import annotations

from typing import Any

from coaching_service.kernel.auth.access import coach
from coaching_service.kernel.auth.permissions import CUSTOMERS, METRICS
from coaching_service.kernel.errors import NotFound
from coaching_service.kernel.rest.routes import Routes
from coaching_service.kernel.storage.context import Context
from coaching_service.lifecycle.customer_bulk import service
from coaching_service.lifecycle.customer_bulk.schemas import (
    BulkResult,
    GroupsChange,
    MetricsSetAssignment,
    ProgramAssignment,
    Selection,
    TrainerChange,
)

routes = Routes("/coach/customers/bulk", tag="Bulk")

_IDS = {"ids": ["66f0c0ffee0000000000abcd", "66f0c0ffee0000000000abce"]}
_FILTER = {"filter": {"archived": False, "groups": ["Morning"]}, "excludeIds": ["66f0c0ffee0000000000abcd"]}


@routes.post(
    "/archive",
    access=coach(CUSTOMERS.EDIT),
    status=200,
    body=Selection(),
    returns=BulkResult,
    lane="long",
    example=_IDS,
)
async def archive(ctx: Context, body: dict[str, Any]) -> dict[str, Any]:
    """Archive clients."""
    return await service.archive(ctx, body, archived=True)


@routes.post(
    "/unarchive",
    access=coach(CUSTOMERS.EDIT),
    status=200,
    body=Selection(),
    returns=BulkResult,
    lane="long",
    example=_IDS,
)
async def unarchive(ctx: Context, body: dict[str, Any]) -> dict[str, Any]:
    """Restore archived clients."""
    return await service.archive(ctx, body, archived=False)


@routes.post(
    "/groups-add",
    access=coach(CUSTOMERS.EDIT),
    status=200,
    body=GroupsChange(),
    returns=BulkResult,
    lane="long",
    example={**_FILTER, "groups": ["Spring"]},
)
async def add_groups(ctx: Context, body: dict[str, Any]) -> dict[str, Any]:
    """Put clients into groups."""
    return await service.add_groups(ctx, body, body["groups"])


@routes.post(
    "/groups-remove",
    access=coach(CUSTOMERS.EDIT),
    status=200,
    body=GroupsChange(),
    returns=BulkResult,
    lane="long",
    example={**_FILTER, "groups": ["Winter"]},
)
async def remove_groups(ctx: Context, body: dict[str, Any]) -> dict[str, Any]:
    """Take clients out of groups."""
    return await service.remove_groups(ctx, body, body["groups"])


@routes.post(
    "/assign-trainer",
    access=coach(CUSTOMERS.EDIT),
    status=200,
    body=TrainerChange(),
    returns=BulkResult,
    errors=(NotFound,),
    lane="long",
    example={**_IDS, "coachId": None},
)
async def assign_trainer(ctx: Context, body: dict[str, Any]) -> dict[str, Any]:
    """Assign clients to a coach.

    `coachId` null: to nobody.
    """
    return await service.assign_trainer(ctx, body, body["coachId"])


@routes.post(
    "/assign-program",
    access=coach(CUSTOMERS.EDIT),
    status=200,
    body=ProgramAssignment(),
    returns=BulkResult,
    errors=(NotFound,),
    lane="long",
    example={**_IDS, "programId": "66f0c0ffee0000000000abcd", "startDate": "2026-03-02"},
)
async def assign_program(ctx: Context, body: dict[str, Any]) -> dict[str, Any]:
    """Assign a program to clients.

    Each client gets every block of it or none.
    """
    return await service.assign_program(ctx, body, body["programId"], body["startDate"])


@routes.post(
    "/assign-metrics-set",
    access=coach(METRICS.EDIT),
    status=200,
    body=MetricsSetAssignment(),
    returns=BulkResult,
    errors=(NotFound,),
    lane="long",
    example={**_IDS, "metricsSetId": "66f0c0ffee0000000000abcd"},
)
async def assign_metrics_set(ctx: Context, body: dict[str, Any]) -> dict[str, Any]:
    """Assign a metric set to clients."""
    return await service.assign_metrics_set(ctx, body, body["metricsSetId"])


@routes.post(
    "/delete",
    access=coach(CUSTOMERS.DELETE),
    status=200,
    body=Selection(),
    returns=BulkResult,
    lane="long",
    example=_IDS,
)
async def delete(ctx: Context, body: dict[str, Any]) -> dict[str, Any]:
    """Erase clients.

    Gone at once for every reader; all that belongs to them is then removed in the background.
    """
    return await service.erase(ctx, body)
