"""What can be done with many clients at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from coaching_service.core.auth.permissions import CUSTOMERS, METRICS, PROGRAMS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.lifecycle.customer_bulk import service as bulk
from coaching_service.lifecycle.customer_bulk.service import OnProgress

Run = Callable[[Context, Document, dict[str, Any], OnProgress], Awaitable[Document]]


@dataclass(frozen=True)
class Action:
    """Something that can be done with many clients: what it is called, what it needs, and who may.

    `sees` is what a coach must also be allowed to see, to choose from it; `of_archived` of which list it is offered;
    `new_names` asks for groups that nobody is in yet, or is empty.
    """

    title: str
    button: str
    run: Run
    permission: str = CUSTOMERS.EDIT
    needs: str = ""
    sees: str = CUSTOMERS.VIEW
    loses: str = ""
    of_archived: bool | None = None
    new_names: str = "New ones, one a line"

    def missing(self, permissions: frozenset[str]) -> str | None:
        """A permission that is needed and is not among these, or None."""
        return next((each for each in (self.permission, self.sees) if each not in permissions), None)


async def _archive(ctx: Context, chosen: Document, _: dict[str, Any], told: OnProgress) -> Document:
    return await bulk.archive(ctx, chosen, archived=True, on_progress=told)


async def _restore(ctx: Context, chosen: Document, _: dict[str, Any], told: OnProgress) -> Document:
    return await bulk.archive(ctx, chosen, archived=False, on_progress=told)


async def _add_groups(ctx: Context, chosen: Document, form: dict[str, Any], told: OnProgress) -> Document:
    return await bulk.add_groups(ctx, chosen, form["groupNames"], on_progress=told)


async def _remove_groups(ctx: Context, chosen: Document, form: dict[str, Any], told: OnProgress) -> Document:
    return await bulk.remove_groups(ctx, chosen, form["groupNames"], on_progress=told)


async def _assign_trainer(ctx: Context, chosen: Document, form: dict[str, Any], told: OnProgress) -> Document:
    return await bulk.assign_trainer(ctx, chosen, form["coachId"], on_progress=told)


async def _assign_program(ctx: Context, chosen: Document, form: dict[str, Any], told: OnProgress) -> Document:
    return await bulk.assign_program(ctx, chosen, form["programId"], form["startDate"], on_progress=told)


async def _assign_metrics(ctx: Context, chosen: Document, form: dict[str, Any], told: OnProgress) -> Document:
    return await bulk.assign_metrics_set(ctx, chosen, form["metricsSetId"], on_progress=told)


async def _erase(ctx: Context, chosen: Document, _: dict[str, Any], told: OnProgress) -> Document:
    return await bulk.erase(ctx, chosen, on_progress=told)


ACTIONS = {
    "groups-add": Action("Add to groups", "Add to the groups", _add_groups, needs="groupNames"),
    "groups-remove": Action(
        "Remove from groups", "Remove from the groups", _remove_groups, needs="groupNames", new_names=""
    ),
    "assign-trainer": Action("Assign a trainer", "Assign", _assign_trainer, needs="coachId"),
    "assign-program": Action(
        "Assign a program", "Assign the program", _assign_program, needs="programId", sees=PROGRAMS.VIEW
    ),
    "assign-metrics-set": Action(
        "Assign a metric set", "Assign the set", _assign_metrics, METRICS.EDIT, needs="metricsSetId", sees=METRICS.VIEW
    ),
    "archive": Action("Archive", "Archive them", _archive, of_archived=False),
    "unarchive": Action("Restore", "Restore them", _restore, of_archived=True),
    "delete": Action(
        "Delete for good",
        "Delete them for good",
        _erase,
        CUSTOMERS.DELETE,
        loses="Their calendars, logs, metrics, photos, plans, notes and records are erased. This cannot be undone.",
    ),
}


def offered(permissions: frozenset[str], *, archived: bool) -> list[tuple[str, str]]:
    """What a coach with these permissions may do with the archived, or the active, clients: name and title."""
    return [
        (name, f"{action.title}…")
        for name, action in ACTIONS.items()
        if action.missing(permissions) is None and action.of_archived in (None, archived)
    ]
