"""Bulk operations on clients over REST."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, validates_schema

from coaching_service.core.auth import CUSTOMERS, FORMS, MESSAGES_SCOPES, METRICS, Access, coach, within
from coaching_service.core.database.context import Context
from coaching_service.core.errors import NotFound
from coaching_service.core.events import Accepted
from coaching_service.core.fields import input_of, output_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.idempotency import Claim
from coaching_service.lifecycle.customer_bulk import service
from coaching_service.progress.check_ins import NEW_CHECK_IN
from coaching_service.progress.conversation.messages import OneText
from coaching_service.training.schedule import models as schedule_models
from coaching_service.training.workouts.blocks.models import WORKOUT_BLOCK_SHIFT

# --- The schemas of requests and responses of the bulk operations -----------------------------------------------------


class _Selected(service.Strict):
    @validates_schema
    def one_or_the_other(self, data: service.CustomerSelection, **_: Any) -> None:
        """Either `ids` or `filter`; `excludeIds` only with `filter`."""
        if ("ids" in data) == ("filter" in data):
            raise ValidationError("needs either ids or filter", "selection")
        if "excludeIds" in data and "ids" in data:
            raise ValidationError("may accompany filter only", "excludeIds")


class _SomeGroups(_Selected):
    @validates_schema
    def some_groups(self, data: Mapping[str, Any], **_: Any) -> None:
        """At least one group."""
        if not data.get("groups"):
            raise ValidationError("should not be empty", "groups")


class _SelectedSchedules(service.Strict):
    @validates_schema
    def one_or_the_other(self, data: service.Selection, **_: Any) -> None:
        """One of `ids`, `filter` and `assignedProgramId`; `excludeIds` not with `ids`."""
        if sum(name in data for name in ("ids", "filter", "assignedProgramId")) != 1:
            raise ValidationError("needs either ids or filter, or assignedProgramId", "selection")
        if "excludeIds" in data and "ids" in data:
            raise ValidationError("may accompany filter or assignedProgramId only", "excludeIds")


SCHEDULE_RESULT = output_of(
    service.BulkResult,
    name="BulkScheduleResult",
    description="The result of an operation on the schedules of many clients.",
    with_private=("results",),
)
REMINDER_RESULT = output_of(
    service.BulkResult,
    name="BulkReminderResult",
    description="The result of reminding clients: `ok` counts those who are reminded.",
    with_private=("skipped",),
)

routes = Routes("/coach/customers/bulk", tag="Bulk")

_IDS = {"ids": ["66f0c0ffee0000000000abcd", "66f0c0ffee0000000000abce"]}
_FILTER = {"filter": {"archived": False, "groups": ["Morning"]}, "excludeIds": ["66f0c0ffee0000000000abcd"]}
_PROGRAM = {"assignedProgramId": "66f0c0ffee0000000000abcd"}
_WEEK = {"startDate": "2026-03-02", "endDate": "2026-03-08"}


def _declare(
    path: str,
    operation_id: str,
    about: str,
    body: Schema,
    *,
    access: Access = coach(CUSTOMERS.EDIT),  # noqa: B008 - a frozen declaration
    returns: Any = service.BulkResult,
    **options: Any,
) -> None:
    """Declare an operation; `about` is its text in the API document."""

    async def run(ctx: Context, body: service.CustomerSelection, claim: Claim | None) -> service.BulkResult | Accepted:
        return await service.execute(ctx, body, claim)

    run.__doc__ = about
    routes.post(
        path,
        access=access,
        status=200,
        body=body,
        returns=returns,
        request_class="bulk",
        resumable=True,
        operation_id=operation_id,
        **options,
    )(run)


def _declare_of_schedules(
    path: str, operation_id: str, about: str, change: type[Schema], body_name: str, body_about: str, **options: Any
) -> None:
    """Declare an operation on the schedules of clients; `body_name` and `body_about` are of the schema of its body."""
    body = input_of(service.Selection, _SelectedSchedules, change, name=body_name, description=body_about)()
    _declare(path, operation_id, about, body, returns=SCHEDULE_RESULT, errors=(NotFound,), **options)


_selection = input_of(service.CustomerSelection, _Selected)()
_declare("/archive", "bulkArchiveCustomers", "Archive clients.", _selection, example=_IDS)
_declare("/unarchive", "bulkUnarchiveCustomers", "Restore archived clients.", _selection, example=_IDS)
_groups = input_of(service.BulkGroupsChange, _SomeGroups)()
_declare("/groups-add", "bulkAddGroups", "Add clients to groups.", _groups, example={**_FILTER, "groups": ["Spring"]})
_declare(
    "/groups-remove",
    "bulkRemoveGroups",
    "Remove clients from groups.",
    _groups,
    example={**_FILTER, "groups": ["Winter"]},
)
_declare(
    "/assign-trainer",
    "bulkAssignTrainer",
    "Assign clients to a coach.\n\n`coachId` null leaves them without a trainer.",
    input_of(service.BulkTrainerAssignment, _Selected)(),
    errors=(NotFound,),
    example={**_IDS, "coachId": None},
)
_declare(
    "/assign-program",
    "bulkAssignProgram",
    "Assign a program to clients.\n\nEach client gets all of its blocks or none.",
    input_of(service.BulkProgramAssignment, _Selected)(),
    locks="program",
    returns=service.BulkAssignmentResult,
    errors=(NotFound,),
    example={**_IDS, "programId": "66f0c0ffee0000000000abcd", "startDate": "2026-03-02"},
)
_declare(
    "/assign-metrics-set",
    "bulkAssignMetricsSet",
    "Assign a metric set to clients.",
    input_of(service.BulkMetricsSetAssignment, _Selected)(),
    access=coach(METRICS.EDIT),
    errors=(NotFound,),
    example={**_IDS, "metricsSetId": "66f0c0ffee0000000000abcd"},
)
_declare(
    "/message",
    "bulkSendMessage",
    "Send a message to clients.\n\nEach client gets it in a conversation of their own, at once or at `deliverAt`.",
    input_of(service.BulkMessage, _Selected, OneText)(),
    access=within(MESSAGES_SCOPES, coach(CUSTOMERS.EDIT)),
    errors=(NotFound,),
    example={**_IDS, "text": "The gym is closed on Monday."},
)
_declare(
    "/check-in-create",
    "bulkCreateCheckIns",
    "Add a recurring check-in to clients.\n\n"
    "As for one client: it is scheduled four weeks ahead from each client's today on.",
    input_of(service.BulkCheckIn, _Selected, NEW_CHECK_IN)(),
    errors=(NotFound,),
    example={**_IDS, "formId": "66f0c0ffee0000000000abcd", "weekday": 7, "startDate": "2026-03-02"},
)
_declare(
    "/form-remind",
    "bulkRemindOfForms",
    "Remind clients of forms that they have not answered.\n\n"
    "Each client with an overdue form, once a day in the client's time zone, by the channels on which the client "
    "wants\ncheck-ins, and not in the client's quiet hours. `skipped` says who was not reminded.",
    input_of(service.BulkFormReminder, _Selected)(),
    access=coach(CUSTOMERS.EDIT, FORMS.VIEW),
    returns=REMINDER_RESULT,
    errors=(NotFound,),
    example=_IDS,
)
_declare_of_schedules(
    "/schedule-adjust",
    "bulkAdjustSchedule",
    "Change loads and repetitions on the calendars of clients.\n\n"
    "As on the calendar of one client: only items with nothing done change. `results` has the number of workouts "
    "changed\nof each client, and those left alone.",
    schedule_models.SCHEDULE_ADJUSTMENT,
    "BulkScheduleAdjustment",
    "The clients, the days of their calendars, and how the items change.",
    example={**_PROGRAM, **_WEEK, "progression": {"load": {"add": 2.5}}},
)
_declare_of_schedules(
    "/schedule-replace-exercise",
    "bulkReplaceScheduledExercise",
    "Replace an exercise on the calendars of clients.\n\nIn items and circuits with nothing done; their sets stay.",
    schedule_models.EXERCISE_REPLACEMENT,
    "BulkExerciseReplacement",
    "The clients, the exercise to replace, the one that takes its place, and the days.",
    example={
        **_PROGRAM,
        "exerciseId": "66f0c0ffee0000000000abcd",
        "withExerciseId": "66f0c0ffee0000000000abce",
        "startDate": "2026-03-02",
    },
)
_declare_of_schedules(
    "/schedule-clear",
    "bulkClearSchedule",
    "Remove the workouts with nothing done from days of the calendars of clients.",
    schedule_models.SCHEDULE_CLEARING,
    "BulkScheduleClearing",
    "The clients, and the days of their calendars to clear.",
    example={**_FILTER, **_WEEK, "dryRun": True},
    deletes=True,
)
_declare_of_schedules(
    "/schedule-shift",
    "bulkShiftSchedule",
    "Shift the workouts of clients.\n\n"
    "Every workout from that date on with nothing done moves by that number of days, back if it is negative.",
    WORKOUT_BLOCK_SHIFT,
    "BulkScheduleShift",
    "The clients, the first date of the blocks to shift, and the number of days.",
    example={**_IDS, "from": "2026-03-02", "days": 7},
)
_declare_of_schedules(
    "/schedule-copy",
    "bulkCopySchedule",
    "Copy days of the calendars of clients, each client's days to the same client.",
    schedule_models.SCHEDULE_COPY,
    "BulkScheduleCopy",
    "The clients, the days of their calendars to copy, and the date on which the first copy begins.",
    example={**_IDS, **_WEEK, "targetDate": "2026-03-09"},
)
_declare(
    "/delete",
    "bulkDeleteCustomers",
    "Erase clients.\n\nThe clients are deleted at once; the rest of their data is then erased in the background.",
    _selection,
    access=coach(CUSTOMERS.DELETE),
    example=_IDS,
    deletes=True,
)
