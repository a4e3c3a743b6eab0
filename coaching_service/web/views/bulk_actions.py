"""The bulk actions on clients."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from coaching_service.core.auth.permissions import CUSTOMERS, METRICS, PROGRAMS
from coaching_service.core.database.context import Context
from coaching_service.lifecycle.customer_bulk import service as bulk
from coaching_service.lifecycle.customer_bulk.models import BulkResult, Selection
from coaching_service.lifecycle.customer_bulk.service import OnProgress

Run = Callable[[Context, Selection, dict[str, Any], OnProgress], Awaitable[BulkResult]]


@dataclass(frozen=True)
class Action:
    """A bulk action: its labels, the permission and the input it requires.

    `field`: the form field of its input, if any. `view_permission`: required to choose that input. `warning`: shown
    before data is deleted. `for_archived`: offered only for archived, or only for active, clients. `new_groups_label`:
    the label of the field for new groups; empty if only existing groups can be chosen.
    """

    title: str
    button: str
    run: Run
    permission: str = CUSTOMERS.EDIT
    field: str = ""
    view_permission: str = CUSTOMERS.VIEW
    warning: str = ""
    for_archived: bool | None = None
    new_groups_label: str = "New groups, one per line"

    def missing_permission(self, permissions: frozenset[str]) -> str | None:
        """Return a permission that is required and not among `permissions`, or None."""
        required = (self.permission, self.view_permission)
        return next((permission for permission in required if permission not in permissions), None)


async def _archive(ctx: Context, selection: Selection, _: dict[str, Any], on_progress: OnProgress) -> BulkResult:
    return await bulk.archive(ctx, selection, archived=True, run=bulk.Run(on_progress=on_progress))


async def _restore(ctx: Context, selection: Selection, _: dict[str, Any], on_progress: OnProgress) -> BulkResult:
    return await bulk.archive(ctx, selection, archived=False, run=bulk.Run(on_progress=on_progress))


async def _add_groups(ctx: Context, selection: Selection, form: dict[str, Any], on_progress: OnProgress) -> BulkResult:
    return await bulk.add_groups(ctx, selection, form["groupNames"], run=bulk.Run(on_progress=on_progress))


async def _remove_groups(
    ctx: Context, selection: Selection, form: dict[str, Any], on_progress: OnProgress
) -> BulkResult:
    return await bulk.remove_groups(ctx, selection, form["groupNames"], run=bulk.Run(on_progress=on_progress))


async def _assign_trainer(
    ctx: Context, selection: Selection, form: dict[str, Any], on_progress: OnProgress
) -> BulkResult:
    return await bulk.assign_trainer(ctx, selection, form["coachId"], run=bulk.Run(on_progress=on_progress))


async def _assign_program(
    ctx: Context, selection: Selection, form: dict[str, Any], on_progress: OnProgress
) -> BulkResult:
    program = form["programId"], form["startDate"], form["onConflict"]
    return await bulk.assign_program(ctx, selection, *program, run=bulk.Run(on_progress=on_progress))


async def _assign_metrics(
    ctx: Context, selection: Selection, form: dict[str, Any], on_progress: OnProgress
) -> BulkResult:
    return await bulk.assign_metrics_set(ctx, selection, form["metricsSetId"], run=bulk.Run(on_progress=on_progress))


async def _send_message(
    ctx: Context, selection: Selection, form: dict[str, Any], on_progress: OnProgress
) -> BulkResult:
    return await bulk.send_message(ctx, selection, form["text"], run=bulk.Run(on_progress=on_progress))


async def _delete(ctx: Context, selection: Selection, _: dict[str, Any], on_progress: OnProgress) -> BulkResult:
    return await bulk.erase(ctx, selection, run=bulk.Run(on_progress=on_progress))


ACTIONS = {
    "groups-add": Action("Add to groups", "Add to groups", _add_groups, field="groupNames"),
    "groups-remove": Action(
        "Remove from groups", "Remove from groups", _remove_groups, field="groupNames", new_groups_label=""
    ),
    "assign-trainer": Action("Assign a trainer", "Assign", _assign_trainer, field="coachId"),
    "assign-program": Action(
        "Assign a program", "Assign program", _assign_program, field="programId", view_permission=PROGRAMS.VIEW
    ),
    "assign-metrics-set": Action(
        "Assign a metric set",
        "Assign metric set",
        _assign_metrics,
        METRICS.EDIT,
        field="metricsSetId",
        view_permission=METRICS.VIEW,
    ),
    "message": Action("Send a message", "Send message", _send_message, field="text"),
    "archive": Action("Archive", "Archive", _archive, for_archived=False),
    "unarchive": Action("Restore", "Restore", _restore, for_archived=True),
    "delete": Action(
        "Delete permanently",
        "Delete permanently",
        _delete,
        CUSTOMERS.DELETE,
        warning="Their calendars, logs, metrics, photos, plans, messages, notes and records are erased. "
        "This cannot be undone.",
    ),
}


def list_actions(permissions: frozenset[str], *, archived: bool) -> list[tuple[str, str]]:
    """Return name and label of the actions for archived or active clients that `permissions` allow."""
    return [
        (name, f"{action.title}…")
        for name, action in ACTIONS.items()
        if action.missing_permission(permissions) is None and action.for_archived in (None, archived)
    ]
