"""One change to many clients: in batches of one transaction each, each client is changed completely or not at all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, NamedTuple, NotRequired, TypedDict, cast

from marshmallow import RAISE, fields

from coaching_service.core import idempotency, validation
from coaching_service.core.auth import CUSTOMERS, FORMS, METRICS, require_permission
from coaching_service.core.database.context import Context, rehearse, transactional
from coaching_service.core.errors import ServiceError, Unavailable
from coaching_service.core.events import Accepted
from coaching_service.core.fields import Default, Description, Optional, Private, input_of, names_of, take
from coaching_service.core.idempotency import Claim, IdempotencyKeyReused
from coaching_service.core.ids import ObjectId, stable_id
from coaching_service.library import forms, message_templates, metric_sets
from coaching_service.library.message_templates import MAX_TEXT_LENGTH
from coaching_service.people import jobs, team
from coaching_service.people.customers import bulk
from coaching_service.people.customers.models import CustomerFilter
from coaching_service.progress import check_ins, reminders
from coaching_service.progress.check_ins import NewCheckIn
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.conversation.messages import CoachText
from coaching_service.progress.metrics import service as metrics
from coaching_service.progress.reminders import SkippedReminder
from coaching_service.training import group_programs, programs
from coaching_service.training.assignments import service as assignments
from coaching_service.training.assignments import sync
from coaching_service.training.schedule import service as effects
from coaching_service.training.schedule.models import OnConflict, ScheduleConflict, SkipReason, on_conflict
from coaching_service.training.schedule.service import Outcome
from coaching_service.training.workouts.reports import exercises as exercise_reports

# --- Requests and results of bulk operations --------------------------------------------------------------------------


_MAXIMUM = 20_000


class Strict(validation.Input):
    """The base of a request in which unknown fields are rejected."""

    class Meta:
        unknown = RAISE


class CustomerSelection(TypedDict):
    """Which clients: `ids`, or `filter` with optional `excludeIds`. `dryRun` writes nothing."""

    ids: NotRequired[Annotated[list[ObjectId], validation.ListOf(validation.Identifier(), maximum=_MAXIMUM)]]
    filter: NotRequired[Annotated[CustomerFilter, fields.Nested(input_of(CustomerFilter, Strict))]]
    excludeIds: NotRequired[Annotated[list[ObjectId], validation.ListOf(validation.Identifier(), maximum=_MAXIMUM)]]
    dryRun: Annotated[bool, Default(False)]


class Selection(CustomerSelection):
    """The clients of an operation on schedules: also everyone a program runs for."""

    assignedProgramId: NotRequired[
        Annotated[
            ObjectId,
            Description(
                "In place of `ids` and `filter`: the active clients for whom this program is current or upcoming."
            ),
        ]
    ]


class BulkGroupsChange(CustomerSelection):
    """Groups to add or to remove."""

    groups: Annotated[list[str], validation.StringList(allow_none=False)]


class BulkTrainerAssignment(CustomerSelection):
    """The coach to assign; null: none."""

    coachId: Annotated[ObjectId | None, validation.Identifier(required=True)]


class BulkProgramAssignment(CustomerSelection):
    """The program to assign, and the date of its first day."""

    programId: ObjectId
    startDate: Annotated[str, validation.CalendarDate()]
    weekdays: Annotated[
        list[int] | None,
        validation.ListOf(validation.Integer(minimum=1, maximum=7), minimum=1, maximum=7),
        Description("As in assigning a program to one client."),
    ]
    onConflict: Annotated[OnConflict, on_conflict()]


class BulkMetricsSetAssignment(CustomerSelection):
    """The metric set to assign."""

    metricsSetId: ObjectId


class BulkMessage(CustomerSelection, CoachText):
    """The message to send to each client."""


class BulkCheckIn(CustomerSelection, NewCheckIn):
    """The recurring check-in to add: one of a form, a metric set and a task, on a weekday or every few days."""


class BulkFormReminder(CustomerSelection):
    """The overdue forms to remind of; without `formId`, of any."""

    formId: NotRequired[Annotated[ObjectId | None, Description("Only clients with an overdue form of this one.")]]


class BulkFailure(TypedDict):
    """A client who was not changed, and why."""

    customerId: ObjectId
    code: Annotated[str, Description("NOT_FOUND, FORBIDDEN, CONFLICT or BAD_REQUEST.")]
    message: str


class SkippedWorkout(TypedDict):
    """A workout that was left alone, and why."""

    wblockId: ObjectId
    code: Annotated[
        SkipReason,
        Description(
            "`DONE`: work of it is done. `PARTLY_DONE`: work of some of its items is done, the others are changed. "
            "`DAY_TAKEN`: the day to which it would be copied has workouts."
        ),
    ]


class ClientChange(TypedDict):
    """What changed of a client's schedule, or in a dry run would."""

    customerId: ObjectId
    changed: Annotated[int, Description("The number of workouts that were changed, moved, added or removed.")]
    skipped: Annotated[list[SkippedWorkout], Description("The workouts that were left alone.")]
    moreSkipped: NotRequired[
        Annotated[
            int,
            Description(
                "The number of skipped workouts that are not listed, if any: all clients together list at most 100,000."
            ),
            Optional,
        ]
    ]


class SkippedCustomer(TypedDict):
    """A client who was not reminded, and why."""

    customerId: ObjectId
    code: Annotated[
        SkippedReminder,
        Description(
            "`NOTHING_OVERDUE`: the client has no such form, is archived, or does not train today (see availability). "
            "`REMINDED_TODAY`: the client has been reminded of forms on this day already, in the client's time zone."
        ),
    ]


class BulkResult(TypedDict):
    """The result: inspect `failed` even though the status is 200."""

    requested: Annotated[int, Description("Distinct clients requested.")]
    ok: Annotated[int, Description("Clients changed, or who would be changed in a dry run.")]
    failed: list[BulkFailure]
    results: NotRequired[  # of operations on schedules
        Annotated[list[ClientChange], Private, Description("What changed of each client who is counted in `ok`.")]
    ]
    skipped: NotRequired[  # of reminders
        Annotated[list[SkippedCustomer], Private, Description("Who was not reminded, and why.")]
    ]


class CustomerConflict(TypedDict):
    """A block that a client had on a day to which the program is assigned."""

    customerId: ObjectId
    date: Annotated[str, validation.Date()]
    wblockId: ObjectId
    name: str


class BulkAssignmentResult(BulkResult):
    """The result of assigning a program to many clients."""

    conflicts: NotRequired[
        Annotated[
            list[CustomerConflict],
            Description("In a dry run, if any: the blocks on the days of the program, of at most 1,000 clients."),
            Optional,
        ]
    ]


BATCH = 500
# Assigning a program writes many blocks for each client, so it takes one client at a time.
_PROGRAM_BATCH = 1
# Sending a message writes to several documents of each client, which are locked until all of the batch are written.
_MESSAGE_BATCH = 20
_REMINDER_BATCH = 100
_MAX_CONFLICTING = 1_000

Apply = Callable[[Context, list[ObjectId]], Awaitable[object]]
# Changes a client, or in a dry run decides the same; returns what changes.
Report = Callable[[Context, ObjectId, bool], Awaitable[ClientChange]]
# Returns the clients to whom the change cannot be applied, each with the reason.
FindInvalid = Callable[[Context, list[ObjectId]], Awaitable[dict[ObjectId, str]]]
# Returns the clients who are left alone, each with the code that says why.
FindSkipped = Callable[[Context, list[ObjectId]], Awaitable[dict[ObjectId, SkippedReminder]]]


@dataclass(frozen=True)
class Run:
    """One request for an operation.

    Clients who were changed under the same `claim` are counted as changed and not changed again. `is_job`: it is
    repeated later when the service is busy, so then no client has failed; nor has one with a `claim`, or while none is
    changed: who asked repeats it, and no client is changed twice. `total` is the number of all clients of a job that
    changes these.
    """

    claim: Claim | None = None
    is_job: bool = False
    total: int = 0


@dataclass(frozen=True)
class Operation:
    """How clients are changed: `apply` to batches of `batch_size` or BATCH, without those that `find_invalid` names.

    Nor is it applied to those of `find_skipped`, who have not failed. The claims of an operation that `erases` clients
    remain when they are gone. `preview` is called in a dry run, and writes nothing; with `rehearses` it is `apply`,
    which is rolled back. `report` takes the place of both: it is called for each client, and returns what changes.
    `conflicts` is what a dry run has found on the days of a program, by client, as a transaction may be repeated.
    """

    apply: Apply | None = None
    find_invalid: FindInvalid | None = None
    batch_size: int | None = None
    erases: bool = False
    preview: Apply | None = None
    rehearses: bool = False
    find_skipped: FindSkipped | None = None
    report: Report | None = None
    conflicts: dict[ObjectId, list[ScheduleConflict]] = field(default_factory=dict)


# --- Operations ------------------------------------------------------------------------------------------------------


async def list_selected(ctx: Context, selection: Selection) -> list[ObjectId]:
    """Return the identifiers of the clients that a selection matches now, ascending."""
    return sorted([customer_id async for ids in _iterate_selected(ctx, selection) for customer_id in ids])


async def archive(_: Context, *, archived: bool) -> Operation:
    """Return how clients are archived or restored."""
    return Operation(lambda tx, ids: bulk.set_archived(tx, ids, archived=archived))


async def add_groups(ctx: Context, groups: list[str]) -> Operation:
    """Return how clients are added to groups; a client who would be in too many groups fails."""
    return Operation(
        lambda tx, ids: bulk.add_groups(tx, ids, groups),
        lambda tx, ids: bulk.find_over_group_limit(tx, ids, groups),
        batch_size=await _group_batch(ctx, groups),
    )


async def remove_groups(ctx: Context, groups: list[str]) -> Operation:
    """Return how clients are removed from groups."""
    return Operation(lambda tx, ids: bulk.remove_groups(tx, ids, groups), batch_size=await _group_batch(ctx, groups))


async def _group_batch(ctx: Context, groups: list[str]) -> int | None:
    """Return how many clients join or leave groups in one transaction, if the groups have a program."""
    return _PROGRAM_BATCH if await group_programs.find_named(ctx, groups) else None


async def assign_trainer(ctx: Context, coach_id: ObjectId | None) -> Operation:
    """Return how clients are assigned to a coach; None leaves them without a trainer. Raises NotFound for the coach."""

    async def require_coach(ctx: Context) -> None:
        if coach_id is not None:
            await team.require_coach(ctx, coach_id)

    async def assign(ctx: Context, ids: list[ObjectId]) -> None:
        await require_coach(ctx)  # in each transaction: the coach may be removed meanwhile
        await bulk.assign_trainer(ctx, ids, coach_id)

    await require_coach(ctx)
    return Operation(assign)


async def assign_program(
    ctx: Context,
    program_id: ObjectId,
    start: str,
    on_conflict: OnConflict,
    weekdays: Collection[int] | None = None,
) -> Operation:
    """Return how a program is assigned to clients from the date `start` on. Raises what programs.get_dated raises.

    A dry run finds the blocks that are on its days (`conflicts`).
    """
    plan = await programs.get_dated(ctx, program_id, start, weekdays)

    async def assign(ctx: Context, ids: list[ObjectId]) -> None:
        for customer_id in ids:
            await assignments.add_to_calendar(ctx, plan, customer_id, on_conflict=on_conflict)

    async def preview(ctx: Context, ids: list[ObjectId]) -> None:
        for customer_id in ids:
            result = await assignments.add_to_calendar(ctx, plan, customer_id, on_conflict=on_conflict, dry_run=True)
            if result["conflicts"] and len(operation.conflicts) < _MAX_CONFLICTING:
                operation.conflicts[customer_id] = result["conflicts"]

    operation = Operation(assign, batch_size=_PROGRAM_BATCH, preview=preview)
    return operation


async def assign_metrics_set(ctx: Context, set_id: ObjectId) -> Operation:
    """Return how a metric set is assigned to clients. Raises NotFound if there is no such set."""
    await metric_sets.get(ctx, set_id)
    return Operation(lambda tx, ids: metrics.assign_many(tx, ids, set_id))


async def send_message(ctx: Context, message: Mapping[str, Any]) -> Operation:
    """Return how a message is sent to clients: its `text`, or with the first name of each in place of `{firstName}`.

    The names are filled in for a template, and if `fillsNames` is true. Raises NotFound for the template.
    """
    text, template_id = message.get("text", ""), message.get("templateId")
    if template_id is not None:
        text = (await message_templates.get(ctx, template_id))["text"]
    fills_names = template_id is not None or message.get("fillsNames", False)

    async def fill_in(tx: Context, ids: list[ObjectId]) -> dict[ObjectId, str]:
        return await conversation.fill_in(tx, text, ids) if fills_names else dict.fromkeys(ids, text)

    async def send(tx: Context, ids: list[ObjectId]) -> None:
        await conversation.send_to_each(tx, await fill_in(tx, ids), deliver_at=message.get("deliverAt"))

    async def find_too_long(tx: Context, ids: list[ObjectId]) -> dict[ObjectId, str]:
        filled = await fill_in(tx, ids)
        return {each: f"text {conversation.TOO_LONG}" for each in ids if len(filled[each]) > MAX_TEXT_LENGTH}

    return Operation(send, find_too_long, batch_size=_MESSAGE_BATCH)


async def create_check_in(ctx: Context, new: NewCheckIn) -> Operation:
    """Return how a recurring check-in is added to clients. Raises NotFound for an unknown form or metric set."""
    await check_ins.load_item(ctx, new)

    async def create(tx: Context, ids: list[ObjectId]) -> None:
        for customer_id in ids:
            await check_ins.create(tx, customer_id, new)

    return Operation(create, batch_size=_BATCH, rehearses=True)


async def remind_of_forms(ctx: Context, form_id: ObjectId | None) -> Operation:
    """Return how clients with overdue forms are reminded of them, once a day. Raises NotFound for the form."""
    if form_id is not None:
        await forms.get(ctx, form_id)
    return Operation(
        lambda tx, ids: reminders.remind_of_forms(tx, ids, form_id),
        find_skipped=lambda tx, ids: reminders.find_not_reminded(tx, ids, form_id),
        batch_size=_REMINDER_BATCH,
    )


async def erase(_: Context) -> Operation:
    """Return how clients are deleted, and the erasure of the rest of their data is queued."""
    return Operation(bulk.erase, erases=True)


# --- Batches ---------------------------------------------------------------------------------------------------------


async def run_operation(ctx: Context, selection: Selection, operation: Operation, run: Run) -> BulkResult:
    """Change the selected clients in one batch, which one undo takes back.

    The result has `results` if the operation reports, and `conflicts` if it has found some.
    """
    response: BulkAssignmentResult = {"requested": 0, "ok": 0, "failed": []}
    if operation.report is not None:
        response["results"] = []
    if operation.find_skipped is not None:
        response["skipped"] = []
    batch_id = ObjectId() if run.claim is None else stable_id(str(run.claim.id), "batch")
    ctx = replace(ctx, batch_id=batch_id)
    async for ids in _iterate_selected(ctx, selection):
        response["requested"] += len(ids)
        size = operation.batch_size or BATCH
        for start in range(0, len(ids), size):
            batch, began = ids[start : start + size], time.monotonic()
            await _run_batch(ctx, batch, operation, run, response, dry_run=selection["dryRun"])
            if run.is_job and operation.report is not None:
                await asyncio.sleep(time.monotonic() - began)  # half of the time is left to others
    if response["ok"] and not ctx.change_ids and run.claim is not None and not selection["dryRun"]:
        ctx.change_ids.append(batch_id)  # of an earlier request with this claim
    if operation.conflicts:
        response["conflicts"] = [
            cast("CustomerConflict", {"customerId": customer_id, **conflict})
            for customer_id, of_client in operation.conflicts.items()
            for conflict in of_client
        ]
    return response


async def _run_batch(
    ctx: Context, ids: list[ObjectId], operation: Operation, run: Run, response: BulkResult, *, dry_run: bool
) -> None:
    """Apply the change to a batch in one transaction, and add what happened to each client to the result."""
    try:
        if dry_run and operation.rehearses:
            outcome = await rehearse(ctx, lambda tx: _apply(tx, ids, operation, None, dry_run=False))
        else:
            outcome = await _apply(ctx, ids, operation, None if dry_run else run.claim, dry_run=dry_run)
    except IdempotencyKeyReused:
        raise
    except ServiceError as error:
        if isinstance(error, Unavailable) and (run.is_job or run.claim is not None or not response["ok"]):
            raise
        outcome = _Outcome(dict.fromkeys(ids, (error.reason.upper().replace(" ", "_"), str(error))), {}, {})
    if "results" in response:
        response["results"] += [outcome.reports[customer_id] for customer_id in ids if customer_id in outcome.reports]
    for customer_id in ids:
        if customer_id in outcome.failures:
            code, message = outcome.failures[customer_id]
            response["failed"].append({"customerId": customer_id, "code": code, "message": message})
        elif (reason := outcome.skipped.get(customer_id)) is not None:
            response["skipped"].append({"customerId": customer_id, "code": reason})
        else:
            response["ok"] += 1


class _Outcome(NamedTuple):
    """What became of a batch: who failed, with code and message, who was skipped, and what changed of the others."""

    failures: dict[ObjectId, tuple[str, str]]
    skipped: dict[ObjectId, SkippedReminder]
    reports: dict[ObjectId, ClientChange]


@transactional
async def _apply(
    ctx: Context, ids: Sequence[ObjectId], operation: Operation, claim: Claim | None, *, dry_run: bool
) -> _Outcome:
    """Apply the change to the clients `ids` where possible.

    Access is checked in the transaction of the change, so that every client who is counted has been changed.
    """
    done = {} if claim is None else await idempotency.find_done_steps(ctx, claim, ids)
    remaining = [customer_id for customer_id in ids if customer_id not in done]
    accessible = await bulk.find_accessible(ctx, remaining)
    allowed = [customer_id for customer_id in remaining if accessible.get(customer_id)]
    invalid = {} if operation.find_invalid is None else await operation.find_invalid(ctx, allowed)
    valid = [customer_id for customer_id in allowed if customer_id not in invalid]
    skipped = {} if operation.find_skipped is None else await operation.find_skipped(ctx, valid)
    valid = [customer_id for customer_id in valid if customer_id not in skipped]
    if claim is not None:
        await idempotency.claim_steps(ctx, claim, valid, lambda each: None if operation.erases else each)
    apply = operation.preview if dry_run else operation.apply
    if valid and apply is not None:
        await apply(ctx, valid)
    reports = {each: cast("ClientChange", result) for each, result in done.items() if result is not None}
    if operation.report is not None:
        for customer_id in valid:
            reports[customer_id] = await operation.report(ctx, customer_id, dry_run)
            if claim is not None:
                await idempotency.set_step_result(ctx, claim, customer_id, reports[customer_id])
    failures = {customer_id: ("BAD_REQUEST", message) for customer_id, message in invalid.items()}
    for customer_id in remaining:
        if customer_id not in accessible:
            failures[customer_id] = ("NOT_FOUND", "Customer not found")
        elif not accessible[customer_id]:
            failures[customer_id] = await bulk.explain_denial(ctx, customer_id)
    return _Outcome(failures, skipped, reports)


async def _iterate_selected(ctx: Context, selection: Selection) -> AsyncIterator[list[ObjectId]]:
    """Yield the selected identifiers, each once, in batches; others than `ids` are only clients in the coach's scope.

    Raises NotFound for a program that the company does not have.
    """
    excluded = set(selection.get("excludeIds", ()))
    if "filter" not in selection:
        requested = list(dict.fromkeys(selection.get("ids", ())))
        if (program_id := selection.get("assignedProgramId")) is not None:
            requested = await sync.list_running_clients(ctx, program_id)
        requested = [customer_id for customer_id in requested if customer_id not in excluded]
        for start in range(0, len(requested), BATCH):
            yield requested[start : start + BATCH]
        return
    async for ids in bulk.iterate_matching(ctx, selection["filter"], BATCH):
        yield [customer_id for customer_id in ids if customer_id not in excluded]


# --- Operations on the schedules of many clients: each client in a transaction of its own -----------------------------


_BATCH = 1
# The skipped workouts that the result of one operation lists, so that a job remains small enough to be stored.
_MAX_LISTED = 100_000


async def change(
    ctx: Context, selection: Selection, operation: effects.Operation, fields: Mapping[str, Any], run: Run
) -> BulkResult:
    """Do an operation on the schedule of each client, and return what changed of each.

    Raises NotFound for an exercise or program that the company does not have.
    """
    await effects.check(ctx, operation, fields)
    ids = await list_selected(ctx, selection) if "ids" not in selection else selection["ids"]
    listed = _MAX_LISTED // max(len(ids), run.total, 1)

    async def report(tx: Context, customer_id: ObjectId, dry_run: bool) -> ClientChange:
        effect = await effects.apply(tx, operation, customer_id, fields, dry_run=dry_run)
        return _summarize(customer_id, effect, listed)

    selected: Selection = {"ids": ids, "dryRun": selection["dryRun"]}
    return await run_operation(ctx, selected, Operation(report=report, batch_size=_BATCH), run)


async def preview(
    ctx: Context, ids: list[ObjectId], operation: effects.Operation, fields: Mapping[str, Any]
) -> tuple[dict[ObjectId, Outcome[Any]], list[BulkFailure]]:
    """Return what an operation would do, by client, and who could not be changed; it writes nothing.

    Raises as `change`.
    """
    await effects.check(ctx, operation, fields)
    by_client: dict[ObjectId, Outcome[Any]] = {}  # by client, as a transaction may be repeated

    async def report(tx: Context, customer_id: ObjectId, dry_run: bool) -> ClientChange:
        by_client[customer_id] = await effects.apply(tx, operation, customer_id, fields, dry_run=dry_run)
        return _summarize(customer_id, by_client[customer_id], 0)

    selected: Selection = {"ids": ids, "dryRun": True}
    result = await run_operation(ctx, selected, Operation(report=report, batch_size=_BATCH), Run())
    return by_client, result["failed"]


async def list_planned_for(ctx: Context, exercise_id: ObjectId) -> list[ObjectId]:
    """Return the active clients in the coach's scope on whose calendars an exercise is, from today on."""
    today = str(ctx.caller.today())
    return [
        customer_id
        async for ids in bulk.iterate_matching(ctx, {"archived": False}, BATCH)
        for customer_id in await exercise_reports.find_planned_for(ctx, ids, exercise_id, today)
    ]


def _summarize(customer_id: ObjectId, outcome: Outcome[Any], listed: int) -> ClientChange:
    skipped: list[SkippedWorkout] = [
        {"wblockId": block["wblockId"], "code": block["code"]} for block in outcome.skipped
    ]
    summary: ClientChange = {"customerId": customer_id, "changed": len(outcome.affected), "skipped": skipped[:listed]}
    return {**summary, "moreSkipped": len(skipped) - listed} if len(skipped) > listed else summary


# --- Bulk operations by their names: run in the request, or by a job --------------------------------------------------


_AT_ONCE = 200
_SCHEDULES_AT_ONCE = 20
_LOOKS, _PAUSE_SECONDS = 20, 0.1

# The operations on schedules, by the operationId.
_SCHEDULES: dict[str, effects.Operation] = {
    "bulkAdjustSchedule": "adjust",
    "bulkReplaceScheduledExercise": "replace-exercise",
    "bulkClearSchedule": "clear",
    "bulkShiftSchedule": "shift",
    "bulkCopySchedule": "copy",
}
# The others. The arguments are the fields of the request without the selection.
_OPERATIONS: dict[str, Callable[[Context, Mapping[str, Any]], Awaitable[Operation]]] = {
    "bulkArchiveCustomers": lambda ctx, _: archive(ctx, archived=True),
    "bulkUnarchiveCustomers": lambda ctx, _: archive(ctx, archived=False),
    "bulkAddGroups": lambda ctx, given: add_groups(ctx, given["groups"]),
    "bulkRemoveGroups": lambda ctx, given: remove_groups(ctx, given["groups"]),
    "bulkAssignTrainer": lambda ctx, given: assign_trainer(ctx, given["coachId"]),
    "bulkAssignProgram": lambda ctx, given: assign_program(
        ctx, given["programId"], given["startDate"], given["onConflict"], given.get("weekdays")
    ),
    "bulkAssignMetricsSet": lambda ctx, given: assign_metrics_set(ctx, given["metricsSetId"]),
    "bulkSendMessage": send_message,
    "bulkCreateCheckIns": lambda ctx, given: create_check_in(ctx, take(NewCheckIn, given)),
    "bulkRemindOfForms": lambda ctx, given: remind_of_forms(ctx, given.get("formId")),
    "bulkDeleteCustomers": lambda ctx, _: erase(ctx),
}

# What the caller needs of the time when a step runs; other operations need CUSTOMERS.EDIT.
_PERMISSIONS: Mapping[str, tuple[str, ...]] = {
    "bulkDeleteCustomers": (CUSTOMERS.DELETE,),
    "bulkAssignMetricsSet": (METRICS.EDIT,),
    "bulkRemindOfForms": (CUSTOMERS.EDIT, FORMS.VIEW),
}


async def execute(ctx: Context, body: CustomerSelection, claim: Claim | None) -> BulkResult | Accepted:
    """Run the operation `ctx.operation` on the selection in `body`, or queue a job that does.

    A job does it for more than 500 clients, or if the caller prefers one; a dry run never is a job. Raises what the
    operation raises before it changes a client.
    """
    selection = take(Selection, body)
    arguments = {name: value for name, value in body.items() if name not in names_of(Selection)}
    if not selection["dryRun"]:
        ids = await list_selected(ctx, selection)
        if jobs.is_job(ctx, len(ids)):
            return await begin(ctx, ids, arguments, claim)
    return await run_named(ctx, ctx.operation, selection, arguments, Run(claim))


async def run_named(
    ctx: Context, operation: str, selection: Selection, arguments: Mapping[str, Any], run: Run
) -> BulkResult:
    """Run the operation with this operationId."""
    if (of_schedules := _SCHEDULES.get(operation)) is not None:
        return await change(ctx, selection, of_schedules, arguments, run)
    return await run_operation(ctx, selection, await _OPERATIONS[operation](ctx, arguments), run)


async def begin(ctx: Context, ids: list[ObjectId], arguments: Mapping[str, Any], claim: Claim | None) -> Accepted:
    """Queue a job that runs the operation `ctx.operation` on clients. Raises what it raises for no client."""
    await run_named(ctx, ctx.operation, {"ids": [], "dryRun": True}, arguments, Run())
    needed = permissions_of(ctx.operation)
    return await jobs.begin_batch(ctx, "bulk", list(dict.fromkeys(ids)), arguments, claim, permissions=needed)


async def begin_and_wait(
    ctx: Context, ids: list[ObjectId], arguments: Mapping[str, Any], claim: Claim | None
) -> Accepted:
    """Queue a job as `begin`, and return it once it has ended, but within two seconds."""
    accepted = await begin(ctx, ids, arguments, claim)
    for _ in range(_LOOKS):
        if not jobs.is_unfinished(await jobs.get(ctx, accepted.job_id)):
            break
        await asyncio.sleep(_PAUSE_SECONDS)
    return accepted


def permissions_of(operation: str) -> tuple[str, ...]:
    """Return the permissions that an operation needs."""
    return _PERMISSIONS.get(operation, (CUSTOMERS.EDIT,))


async def _process(ctx: Context, job: jobs.StoredJob, ids: list[ObjectId], claim: Claim) -> jobs.Outcome:
    for permission in permissions_of(ctx.operation):
        require_permission(ctx.caller, permission)
    selection: Selection = {"ids": ids, "dryRun": False}
    run = Run(claim, is_job=True, total=job["total"])
    result = await run_named(ctx, ctx.operation, selection, job["work"]["arguments"], run)
    return jobs.Outcome(result["ok"], result["failed"], result.get("results"), result.get("skipped"))


STEP = jobs.kind_of_step("bulk")
run_step = jobs.step_of(_process, _AT_ONCE, slow=dict.fromkeys(_SCHEDULES, _SCHEDULES_AT_ONCE))
