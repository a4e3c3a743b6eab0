"""The bulk actions on clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coaching_service.core.auth.access import CUSTOMERS, METRICS, PROGRAMS
from coaching_service.core.errors import invalid_field

# The fields of the form that are arguments of the operation, by the field of the action.
_ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "": {},
    "groupNames": {"groups": "groupNames"},
    "coachId": {"coachId": "coachId"},
    "programId": {"programId": "programId", "startDate": "startDate", "onConflict": "onConflict"},
    "metricsSetId": {"metricsSetId": "metricsSetId"},
    "text": {"text": "text"},
}


@dataclass(frozen=True)
class Action:
    """A bulk action: its labels, its operationId, the permission and the input it requires.

    `field`: the form field of its input, if any. `view_permission`: required to choose that input. `warning`: shown
    before data is deleted. `for_archived`: offered only for archived, or only for active, clients. `new_groups_label`:
    the label of the field for new groups; empty if only existing groups can be chosen. `page`: its own page.
    """

    title: str
    button: str
    operation: str
    permission: str = CUSTOMERS.EDIT
    field: str = ""
    view_permission: str = CUSTOMERS.VIEW
    warning: str = ""
    for_archived: bool | None = None
    new_groups_label: str = "New groups, one per line"
    page: str = ""

    def read_arguments(self, form: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the operation from the form. Raises InvalidFields for one that is empty."""
        arguments = _ARGUMENTS[self.field]
        for in_form in arguments.values():
            if not form[in_form]:
                raise invalid_field(in_form, "is required", code="REQUIRED")
        return {name: form[in_form] for name, in_form in arguments.items()}

    def missing_permission(self, permissions: frozenset[str]) -> str | None:
        """Return a permission that is required and not among `permissions`, or None."""
        required = (self.permission, self.view_permission)
        return next((permission for permission in required if permission not in permissions), None)


ACTIONS = {
    "groups-add": Action("Add to groups", "Add to groups", "bulkAddGroups", field="groupNames"),
    "groups-remove": Action(
        "Remove from groups", "Remove from groups", "bulkRemoveGroups", field="groupNames", new_groups_label=""
    ),
    "assign-trainer": Action("Assign a trainer", "Assign", "bulkAssignTrainer", field="coachId"),
    "assign-program": Action(
        "Assign a program", "Assign program", "bulkAssignProgram", field="programId", view_permission=PROGRAMS.VIEW
    ),
    "schedules": Action("Change the schedule", "Continue", "bulkAdjustSchedule", page="/app/customers/bulk/schedules"),
    "assign-metrics-set": Action(
        "Assign a metric set",
        "Assign metric set",
        "bulkAssignMetricsSet",
        METRICS.EDIT,
        field="metricsSetId",
        view_permission=METRICS.VIEW,
    ),
    "message": Action("Send a message", "Send message", "bulkSendMessage", field="text"),
    "archive": Action("Archive", "Archive", "bulkArchiveCustomers", for_archived=False),
    "unarchive": Action("Restore", "Restore", "bulkUnarchiveCustomers", for_archived=True),
    "delete": Action(
        "Delete permanently",
        "Delete permanently",
        "bulkDeleteCustomers",
        CUSTOMERS.DELETE,
        warning="Their calendars, logs, metrics, photos, plans, absences, messages, notes and records are erased. "
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
