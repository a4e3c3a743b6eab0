"""Bulk operations on clients over REST."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from marshmallow import Schema, ValidationError, validates_schema

from coaching_service.core.auth import CUSTOMERS, FORMS, MESSAGES_SCOPES, METRICS, coach, within
from coaching_service.core.database.context import Context
from coaching_service.core.errors import NotFound
from coaching_service.core.events import Accepted
from coaching_service.core.field_schemas import input_of, output_of
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


def _of_schedules(name: str, change: type[Schema], description: str) -> Schema:
    return input_of(service.Selection, _SelectedSchedules, change, name=name, description=description)()


SELECTION = input_of(service.CustomerSelection, _Selected)()
GROUPS_CHANGE = input_of(service.BulkGroupsChange, _SomeGroups)()
TRAINER_ASSIGNMENT = input_of(service.BulkTrainerAssignment, _Selected)()
PROGRAM_ASSIGNMENT = input_of(service.BulkProgramAssignment, _Selected)()
METRICS_SET_ASSIGNMENT = input_of(service.BulkMetricsSetAssignment, _Selected)()
MESSAGE = input_of(service.BulkMessage, _Selected, OneText)()
CHECK_IN = input_of(service.BulkCheckIn, _Selected, NEW_CHECK_IN)()
FORM_REMINDER = input_of(service.BulkFormReminder, _Selected)()
SCHEDULE_ADJUSTMENT = _of_schedules(
    "BulkScheduleAdjustment",
    schedule_models.SCHEDULE_ADJUSTMENT,
    "The clients, the days of their calendars, and how the items change.",
)
EXERCISE_REPLACEMENT = _of_schedules(
    "BulkExerciseReplacement",
    schedule_models.EXERCISE_REPLACEMENT,
    "The clients, the exercise to replace, the one that takes its place, and the days.",
)
SCHEDULE_CLEARING = _of_schedules(
    "BulkScheduleClearing", schedule_models.SCHEDULE_CLEARING, "The clients, and the days of their calendars to clear."
)
SCHEDULE_SHIFT = _of_schedules(
    "BulkScheduleShift",
    WORKOUT_BLOCK_SHIFT,
    "The clients, the first date of the blocks to shift, and the number of days.",
)
SCHEDULE_COPY = _of_schedules(
    "BulkScheduleCopy",
    schedule_models.SCHEDULE_COPY,
    "The clients, the days of their calendars to copy, and the date on which the first copy begins.",
)
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

Result = service.BulkResult | Accepted
_bulk = partial(routes.post, status=200, returns=service.BulkResult, request_class="bulk", resumable=True)
# An operation on the schedules of clients.
_schedule = partial(_bulk, access=coach(CUSTOMERS.EDIT), returns=SCHEDULE_RESULT, errors=(NotFound,))
_IDS = {"ids": ["66f0c0ffee0000000000abcd", "66f0c0ffee0000000000abce"]}
_FILTER = {"filter": {"archived": False, "groups": ["Morning"]}, "excludeIds": ["66f0c0ffee0000000000abcd"]}
_PROGRAM = {"assignedProgramId": "66f0c0ffee0000000000abcd"}
_WEEK = {"startDate": "2026-03-02", "endDate": "2026-03-08"}
_PROGRESSION = {"load": {"add": 2.5}}


@_bulk("/archive", access=coach(CUSTOMERS.EDIT), body=SELECTION, example=_IDS)
async def bulk_archive_customers(ctx: Context, body: service.CustomerSelection, claim: Claim | None) -> Result:
    """Archive clients."""
    return await service.execute(ctx, body, claim)


@_bulk("/unarchive", access=coach(CUSTOMERS.EDIT), body=SELECTION, example=_IDS)
async def bulk_unarchive_customers(ctx: Context, body: service.CustomerSelection, claim: Claim | None) -> Result:
    """Restore archived clients."""
    return await service.execute(ctx, body, claim)


@_bulk("/groups-add", access=coach(CUSTOMERS.EDIT), body=GROUPS_CHANGE, example={**_FILTER, "groups": ["Spring"]})
async def bulk_add_groups(ctx: Context, body: service.BulkGroupsChange, claim: Claim | None) -> Result:
    """Add clients to groups."""
    return await service.execute(ctx, body, claim)


@_bulk(
    "/groups-remove",
    access=coach(CUSTOMERS.EDIT),
    body=GROUPS_CHANGE,
    example={**_FILTER, "groups": ["Winter"]},
)
async def bulk_remove_groups(ctx: Context, body: service.BulkGroupsChange, claim: Claim | None) -> Result:
    """Remove clients from groups."""
    return await service.execute(ctx, body, claim)


@_bulk(
    "/assign-trainer",
    access=coach(CUSTOMERS.EDIT),
    body=TRAINER_ASSIGNMENT,
    errors=(NotFound,),
    example={**_IDS, "coachId": None},
)
async def bulk_assign_trainer(ctx: Context, body: service.BulkTrainerAssignment, claim: Claim | None) -> Result:
    """Assign clients to a coach.

    `coachId` null leaves them without a trainer.
    """
    return await service.execute(ctx, body, claim)


@_bulk(
    "/assign-program",
    access=coach(CUSTOMERS.EDIT),
    locks="program",
    body=PROGRAM_ASSIGNMENT,
    returns=service.BulkAssignmentResult,
    errors=(NotFound,),
    example={**_IDS, "programId": "66f0c0ffee0000000000abcd", "startDate": "2026-03-02"},
)
async def bulk_assign_program(ctx: Context, body: service.BulkProgramAssignment, claim: Claim | None) -> Result:
    """Assign a program to clients.

    Each client gets all of its blocks or none.
    """
    return await service.execute(ctx, body, claim)


@_bulk(
    "/assign-metrics-set",
    access=coach(METRICS.EDIT),
    body=METRICS_SET_ASSIGNMENT,
    errors=(NotFound,),
    example={**_IDS, "metricsSetId": "66f0c0ffee0000000000abcd"},
)
async def bulk_assign_metrics_set(ctx: Context, body: service.BulkMetricsSetAssignment, claim: Claim | None) -> Result:
    """Assign a metric set to clients."""
    return await service.execute(ctx, body, claim)


@_bulk(
    "/message",
    access=within(MESSAGES_SCOPES, coach(CUSTOMERS.EDIT)),
    body=MESSAGE,
    errors=(NotFound,),
    example={**_IDS, "text": "The gym is closed on Monday."},
)
async def bulk_send_message(ctx: Context, body: service.BulkMessage, claim: Claim | None) -> Result:
    """Send a message to clients.

    Each client gets it in a conversation of their own, at once or at `deliverAt`.
    """
    return await service.execute(ctx, body, claim)


@_bulk(
    "/check-in-create",
    access=coach(CUSTOMERS.EDIT),
    body=CHECK_IN,
    errors=(NotFound,),
    example={**_IDS, "formId": "66f0c0ffee0000000000abcd", "weekday": 7, "startDate": "2026-03-02"},
)
async def bulk_create_check_ins(ctx: Context, body: service.BulkCheckIn, claim: Claim | None) -> Result:
    """Add a recurring check-in to clients.

    As for one client: it is scheduled four weeks ahead from each client's today on.
    """
    return await service.execute(ctx, body, claim)


@_bulk(
    "/form-remind",
    access=coach(CUSTOMERS.EDIT, FORMS.VIEW),
    body=FORM_REMINDER,
    returns=REMINDER_RESULT,
    errors=(NotFound,),
    example=_IDS,
)
async def bulk_remind_of_forms(ctx: Context, body: service.BulkFormReminder, claim: Claim | None) -> Result:
    """Remind clients of forms that they have not answered.

    Each client with an overdue form, once a day in the client's time zone, by the channels on which the client wants
    check-ins, and not in the client's quiet hours. `skipped` says who was not reminded.
    """
    return await service.execute(ctx, body, claim)


@_schedule(
    "/schedule-adjust",
    body=SCHEDULE_ADJUSTMENT,
    example={**_PROGRAM, **_WEEK, "progression": _PROGRESSION},
)
async def bulk_adjust_schedule(ctx: Context, body: service.Selection, claim: Claim | None) -> Result:
    """Change loads and repetitions on the calendars of clients.

    As on the calendar of one client: only items with nothing done change. `results` has the number of workouts changed
    of each client, and those left alone.
    """
    return await service.execute(ctx, body, claim)


@_schedule(
    "/schedule-replace-exercise",
    body=EXERCISE_REPLACEMENT,
    example={
        **_PROGRAM,
        "exerciseId": "66f0c0ffee0000000000abcd",
        "withExerciseId": "66f0c0ffee0000000000abce",
        "startDate": "2026-03-02",
    },
)
async def bulk_replace_scheduled_exercise(ctx: Context, body: service.Selection, claim: Claim | None) -> Result:
    """Replace an exercise on the calendars of clients.

    In items and circuits with nothing done; their sets stay.
    """
    return await service.execute(ctx, body, claim)


@_schedule("/schedule-clear", body=SCHEDULE_CLEARING, example={**_FILTER, **_WEEK, "dryRun": True}, deletes=True)
async def bulk_clear_schedule(ctx: Context, body: service.Selection, claim: Claim | None) -> Result:
    """Remove the workouts with nothing done from days of the calendars of clients."""
    return await service.execute(ctx, body, claim)


@_schedule("/schedule-shift", body=SCHEDULE_SHIFT, example={**_IDS, "from": "2026-03-02", "days": 7})
async def bulk_shift_schedule(ctx: Context, body: service.Selection, claim: Claim | None) -> Result:
    """Shift the workouts of clients.

    Every workout from that date on with nothing done moves by that number of days, back if it is negative.
    """
    return await service.execute(ctx, body, claim)


@_schedule("/schedule-copy", body=SCHEDULE_COPY, example={**_IDS, **_WEEK, "targetDate": "2026-03-09"})
async def bulk_copy_schedule(ctx: Context, body: service.Selection, claim: Claim | None) -> Result:
    """Copy days of the calendars of clients, each client's days to the same client."""
    return await service.execute(ctx, body, claim)


@_bulk("/delete", access=coach(CUSTOMERS.DELETE), body=SELECTION, example=_IDS, deletes=True)
async def bulk_delete_customers(ctx: Context, body: service.CustomerSelection, claim: Claim | None) -> Result:
    """Erase clients.

    The clients are deleted at once; the rest of their data is then erased in the background.
    """
    return await service.execute(ctx, body, claim)
