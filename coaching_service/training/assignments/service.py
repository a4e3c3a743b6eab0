"""Assigning programs to clients, the programs of a client, and ending them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict, cast

from marshmallow import fields

from coaching_service.core import validation
from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.changes.models import NamedDocument
from coaching_service.core.changes.undo import DocumentsMoved, RestorationPlanned
from coaching_service.core.database import declared
from coaching_service.core.database.context import Context, transactional
from coaching_service.core.database.declared import Index
from coaching_service.core.database.documents import Documents
from coaching_service.core.errors import require_found
from coaching_service.core.events import EventValue
from coaching_service.core.fields import Default, Description, Partial, input_of, output_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Date, DryRun, ListOf
from coaching_service.people.activity import service as activity
from coaching_service.people.customers import derived_figures
from coaching_service.people.customers import service as customers
from coaching_service.training import programs
from coaching_service.training.programs import DatedProgram
from coaching_service.training.schedule.models import OnConflict, ScheduleConflict, on_conflict
from coaching_service.training.schedule.service import find_conflicts, resolve_conflicts
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks.batches import Batch
from coaching_service.training.workouts.blocks.models import BlockPlan, ScheduleShifted
from coaching_service.training.workouts.blocks.service import ClientCalendar, has_nothing_done
from coaching_service.training.workouts.reports import blocks as block_reports

# --- Assignments of programs as they are stored and returned ----------------------------------------------------------


Status = Literal["current", "ended", "upcoming"]


class Shift(TypedDict):
    """What was planned from a date on has been moved by a number of days, negative for earlier.

    `first` is a date as the shifts before have moved it.
    """

    first: Annotated[str, Date()]
    days: int


class AssignmentContent(TypedDict):
    """A program assigned to a client; the blocks are stored by training/workouts and name it (`assignmentId`).

    `programName` is the name at that time. `startDate` is the date of day 1, `endDate` of the last block when it
    was assigned. `endedDate` is the client's local date on which a coach ended it; None until then. `programBlockIds`
    are the blocks of the program that were taken over; one that the client no longer has was deleted, and does not come
    back. `groupName` is the group that the client joined to get the program. `shifts` of the schedule have moved its
    blocks, in order; absent without one. The three before it are absent in older ones.
    """

    customerId: ObjectId
    programId: ObjectId
    programName: Annotated[str, validation.Text()]
    startDate: Annotated[str, validation.CalendarDate()]
    endDate: Annotated[str, validation.CalendarDate()]
    endedDate: Annotated[str | None, Date()]
    weekdays: NotRequired[Annotated[list[int] | None, ListOf(validation.Integer(minimum=1, maximum=7), maximum=7)]]
    programBlockIds: NotRequired[list[ObjectId]]
    groupName: NotRequired[Annotated[str | None, validation.Text(max_length=100)]]
    shifts: NotRequired[list[Shift]]


class StoredAssignment(AssignmentContent, declared.Stored):
    """A stored assignment."""


# The fields of a stored assignment to set.
AssignmentFields: TypeAlias = Partial[AssignmentContent]


class ProgramAssignment(validation.DryRunField):
    """The client that a program is assigned to, and the dates."""

    customerId: ObjectId
    startDate: Annotated[str, validation.CalendarDate(), Description(argument="Date of day 1, YYYY-MM-DD.")]
    weekdays: NotRequired[
        Annotated[
            list[int],
            ListOf(validation.Integer(minimum=1, maximum=7), minimum=1, maximum=7),
            Description(
                request="Weekdays from 1 (Monday) to 7 (Sunday): the days with work go onto the next dates of these "
                "weekdays, in order, and rest days are left out. Default: day 1 on `startDate`, day 8 a week later.",
                argument="1 Monday to 7: days with work go onto the next such dates, rest days are left out.",
            ),
        ]
    ]
    onConflict: Annotated[OnConflict, on_conflict()]


class AssignmentConflict(TypedDict):
    """A block that was on the calendar before."""

    date: Annotated[str, Date()]
    wblockId: ObjectId
    name: str


class ProgramAssignmentResult(TypedDict):
    """What was added to the calendar, or with `dryRun` would be."""

    blocks: Annotated[int, Description("The number of blocks that were added.")]
    assignmentId: Annotated[ObjectId | None, Description("The identifier of the assignment; null in a dry run.")]
    dates: Annotated[list[str], ListOf(Date()), Description("The date of each block that was added, in order.")]
    conflicts: Annotated[
        list[ScheduleConflict],
        fields.List(fields.Nested(output_of(AssignmentConflict))),
        Description(
            "The blocks that were on the days to which the program is assigned; with `replace`, on every day from the "
            "start to the last block."
        ),
    ]
    dryRun: Annotated[bool, Description("Whether nothing was written.")]
    changeId: Annotated[ObjectId | None, Description("The change to undo; null in a dry run.")]


class ClientProgram(TypedDict):
    """A program that was assigned to a client."""

    _id: Annotated[ObjectId, Description("The identifier of the assignment.")]
    programId: ObjectId
    name: Annotated[str, Description("The name of the program when it was assigned.")]
    startDate: Annotated[str, Date(), Description("The date of day 1.")]
    endDate: Annotated[
        str, Date(), Description("The date of its last block, or on which it was ended, if that is before.")
    ]
    blocks: Annotated[int, Description("The number of its blocks that are on the calendar.")]
    completedBlocks: Annotated[int, Description("The number of them that are completed.")]
    status: Annotated[Status, Description("Where it is, on the client's local date.")]


class ProgramProgress(ClientProgram):
    """A program of a client with its week from 1, of how many; 0 before it begins."""

    week: int
    weeks: int


class ProgramEnd(TypedDict):
    """Whether to remove the workouts that are still to come."""

    removeUpcoming: Annotated[
        bool,
        Default(False),
        Description("Remove its blocks with nothing done, from the client's local date on."),
    ]


class ProgramEndResult(TypedDict):
    """How many blocks were removed."""

    removed: Annotated[int, Description("The number of blocks that were removed.")]


# --- Assignments of programs in the database --------------------------------------------------------------------------


def _event(action: declared.Action, known: Mapping[str, Any], paths: Collection[str]) -> declared.EventData | None:
    """Return the event of a program's end; an undo of the end assigns it again, without new workouts."""
    if action == "changed" and "endedDate" not in paths:
        return None
    data: dict[str, EventValue] = {"programId": known["programId"], "assignmentId": known["_id"]}
    if action == "deleted" or known["endedDate"] is not None:
        return {"type": "program.ended", "data": data}
    return {"type": "program.assigned", "data": {**data, "startDate": known["startDate"], "blocks": 0}}


_assignments = Documents[StoredAssignment](
    "programAssignments",
    (Index(("customerId", "-startDate", "-_id")), Index(("programId", "endedDate", "customerId"))),
    client_field="customerId",
    history=declared.History("program_assignment", _event, ("programId", "startDate", "endedDate")),
    transfer=declared.Portable(
        StoredAssignment,
        declared.TRAINING,
        references={"customerId": "customers"},
    ),
)
BY_PROGRAM = _assignments.index_name("programId", "endedDate", "customerId")
BY_CLIENT = _assignments.index_name("customerId", "-startDate", "-_id")
routes = Routes("/coach/customers/{customerId}/programs", tag="Programs", locks="customer")
program_routes = Routes("/coach/programs/{programId}", tag="Programs", locks="customer")


async def find_all(ctx: Context, customer_id: ObjectId) -> list[StoredAssignment]:
    """Return a client's assignments, latest start first."""
    return await _assignments.find(ctx, {"customerId": customer_id}, sort=("-startDate", "-_id"))


async def list_last_days(ctx: Context, customer_ids: Sequence[ObjectId]) -> list[tuple[ObjectId, str]]:
    """Return the clients with programs that no coach has ended, each with the last day of a program.

    Access is not checked.
    """
    where = {"customerId": {"$in": list(customer_ids)}, "endedDate": None}
    found = await _assignments.find(ctx, where, fields=("customerId", "endDate", "shifts"), hint=BY_CLIENT)
    last_days: list[tuple[ObjectId, str]] = []
    for each in found:
        day = each["endDate"]
        for shift in each.get("shifts", ()):
            if day >= shift["first"]:
                day = str(date.fromordinal(max(1, date.fromisoformat(day).toordinal() + shift["days"])))
        last_days.append((each["customerId"], day))
    return last_days


async def find_one(ctx: Context, customer_id: ObjectId, assignment_id: ObjectId) -> StoredAssignment | None:
    """Return a client's assignment, or None."""
    return await _assignments.find_one(ctx, {"customerId": customer_id, "_id": assignment_id})


async def set_fields(ctx: Context, assignment: StoredAssignment, fields: AssignmentFields) -> None:
    """Set fields of an assignment. Raises Conflict if it has changed since it was read."""
    where = {"customerId": assignment["customerId"], "_id": assignment["_id"]}
    await _assignments.update(ctx, where, {"$set": fields}, version=assignment["version"])


async def assign(
    ctx: Context,
    program_id: ObjectId,
    customer_id: ObjectId,
    start: str,
    *,
    weekdays: Collection[int] | None = None,
    on_conflict: OnConflict = "add",
    dry_run: bool = False,
) -> ProgramAssignmentResult:
    """Copy a program to the calendar of a client: all or nothing.

    Day 1 is on the date `start`; with `weekdays` (1 Monday to 7 Sunday) the days with work go onto the next dates of
    these weekdays, in order, and rest days are left out. With `dry_run` nothing is written. Raises NotFound for the
    program or the client, Forbidden, and InvalidFields if a date would leave the calendar.
    """
    await ClientCalendar(customer_id).require_access(ctx)
    dated = await programs.get_dated(ctx, program_id, start, weekdays)
    return await add_to_calendar(ctx, dated, customer_id, on_conflict=on_conflict, dry_run=dry_run)


@transactional
async def add_to_calendar(
    ctx: Context,
    dated: DatedProgram,
    customer_id: ObjectId,
    *,
    on_conflict: OnConflict = "add",
    dry_run: bool = False,
    first: str | None = None,
    group: str | None = None,
) -> ProgramAssignmentResult:
    """Add a program with dates to the calendar of a client whose access has been checked: all or nothing.

    What is before the date `first` is left out. `group`: the group that the client has joined to get it.
    """
    owner = ClientCalendar(customer_id)
    await owner.require_open(ctx)
    taken_over = [each["programBlockId"] for each in dated.blocks if each.get("programBlockId") is not None]
    if first is not None:
        dated = replace(dated, blocks=[block for block in dated.blocks if str(block["date"]) >= first])
    dates = sorted({str(block["date"]) for block in dated.blocks})
    target = {"$in": dates} if on_conflict != "replace" else {"$gte": dated.start, "$lte": max([dated.start, *dates])}
    days = await batches.read_days(ctx, owner, target)
    batch = resolve_conflicts(owner, dated.blocks, days, on_conflict)
    created_dates = [str(block["date"]) for block in batch.created]
    assignment_id = None
    if not dry_run:
        end_date = max([dated.start, *created_dates])
        content: AssignmentContent = {
            "customerId": customer_id,
            "programId": dated.program["_id"],
            "programName": dated.program["name"],
            "startDate": dated.start,
            "endDate": end_date,
            "endedDate": None,
            "weekdays": dated.weekdays,
            "programBlockIds": cast("list[ObjectId]", taken_over),
            "groupName": group,
        }
        assignment_id = ObjectId()
        await _assignments.insert(ctx, {"_id": assignment_id, **content})
        await derived_figures.mark_due(ctx, [customer_id])
        await activity.record_event(
            *(ctx, "program_assigned", customer_id, assignment_id),
            programId=content["programId"],
            programName=content["programName"],
            startDate=content["startDate"],
            blocks=len(created_dates),
        )
        plans: list[BlockPlan] = [{**block, "assignmentId": assignment_id} for block in batch.created]
        await batches.write(ctx, owner, Batch(created=plans, removed=batch.removed), days)
    else:
        await batches.apply(ctx, owner, batch, days, dry_run=True)  # which refuses what is too much for a day
    return {
        "blocks": len(created_dates),
        "assignmentId": assignment_id,
        "dates": created_dates,
        "conflicts": find_conflicts(owner, dated.blocks, days, on_conflict),
        "dryRun": dry_run,
        "changeId": None if dry_run else ctx.change_id,
    }


@routes.get("", access=coach(CUSTOMERS.VIEW), operation_id="listCustomerPrograms")
async def list_programs(ctx: Context, customer_id: ObjectId) -> list[ClientProgram]:
    """List the programs assigned to a client, latest start first."""
    return await _list(ctx, customer_id, str(await customers.get_local_date(ctx, customer_id)))


async def _list(ctx: Context, customer_id: ObjectId, today: str) -> list[ClientProgram]:
    assignments = await find_all(ctx, customer_id)
    program_ids = {assignment["programId"] for assignment in assignments}
    counts = await block_reports.count_assigned_blocks(ctx, customer_id, list(program_ids)) if program_ids else []
    by_assignment = {count["_id"]: count for count in counts}
    listed: list[ClientProgram] = []
    for assignment in assignments:
        start, end, ended = assignment["startDate"], assignment["endDate"], assignment["endedDate"]
        if (blocks := by_assignment.get(assignment["_id"])) is not None:  # which coaches may have moved
            start, end = min(start, blocks["firstDate"]), blocks["lastDate"]
        status: Status = "upcoming" if start > today else "current"
        if ended is not None:
            status, end = "ended", min(end, max(start, ended))
        elif end < today:
            status = "ended"
        listed.append(
            {
                "_id": assignment["_id"],
                "programId": assignment["programId"],
                "name": assignment["programName"],
                "startDate": start,
                "endDate": end,
                "blocks": blocks["blocks"] if blocks else 0,
                "completedBlocks": blocks["completedBlocks"] if blocks else 0,
                "status": status,
            }
        )
    return listed


@routes.post(
    "/{assignmentId}/end",
    access=coach(CUSTOMERS.EDIT),
    status=200,
    body_optional=True,
    example={"removeUpcoming": True},
    operation_id="endCustomerProgram",
)
@transactional
async def end(ctx: Context, customer_id: ObjectId, assignment_id: ObjectId, body: ProgramEnd) -> ProgramEndResult:
    """End a program of a client.

    Its completed blocks stay on the calendar, the others too unless `removeUpcoming`. Repeating is harmless.
    """
    today = str(await customers.get_local_date(ctx, customer_id))
    assignment = require_found(await find_one(ctx, customer_id, assignment_id), "program assignment")
    return {"removed": await _end(ctx, assignment, today, remove_upcoming=body["removeUpcoming"])}


async def _end(ctx: Context, assignment: StoredAssignment, today: str, *, remove_upcoming: bool) -> int:
    customer_id, assignment_id = assignment["customerId"], assignment["_id"]
    if assignment["endedDate"] is None:
        await set_fields(ctx, assignment, {"endedDate": today})
        await derived_figures.mark_due(ctx, [customer_id])
    if not remove_upcoming:
        return 0
    owner = ClientCalendar(customer_id)
    program_id = assignment["programId"]
    upcoming = await batches.read_assigned_days(ctx, owner, program_id, assignment_id, {"$gte": today})
    removed = [block["_id"] for block in upcoming if has_nothing_done(block)]
    await batches.write(ctx, owner, Batch(removed=removed), [])
    return len(removed)


async def is_running(ctx: Context, customer_id: ObjectId, program_id: ObjectId, today: str) -> bool:
    """Return whether a program is current or upcoming for a client on a date. Access is not checked."""
    listed = await _list(ctx, customer_id, today)
    return any(each["programId"] == program_id and each["status"] != "ended" for each in listed)


async def end_of_groups(
    ctx: Context, customer_id: ObjectId, groups: Collection[str], today: str, others: Mapping[ObjectId, str]
) -> None:
    """End the programs that a client has got by joining groups, and remove what is upcoming. Access is not checked.

    Programs that the client has through `others`, groups by program, go on as theirs.
    """
    for assignment in await find_all(ctx, customer_id):
        if assignment.get("groupName") not in groups or assignment["endedDate"] is not None:
            continue
        if (group := others.get(assignment["programId"])) is not None:
            await set_fields(ctx, assignment, {"groupName": group})
        else:
            await _end(ctx, assignment, today, remove_upcoming=True)


async def rename_group(ctx: Context, customer_ids: Sequence[ObjectId], group: str, name: str) -> None:
    """Let clients have the programs of a group by its new name, in the caller's transaction."""
    where = {"customerId": {"$in": list(customer_ids)}, "groupName": group}
    await _assignments.update_many(ctx, where, {"$set": {"groupName": name}})


async def find_last_dates(ctx: Context, customer_ids: Sequence[ObjectId]) -> dict[ObjectId, str]:
    """Return, by client, the last date of the programs that are assigned and have not been ended by a coach.

    It is the date of the last block that is left of them, as coaches may have moved or removed blocks.
    """
    where = {"customerId": {"$in": list(customer_ids)}, "endedDate": None}
    group = {"_id": "$customerId", "endDate": {"$max": "$endDate"}, "assignments": {"$push": "$_id"}}
    stages = {"$group": group}, block_reports.last_assigned_block_stage(ctx)
    ends: list[Any] = await _assignments.aggregate(ctx, where, *stages, hint=BY_CLIENT)
    return {end["_id"]: end["lastBlock"][0]["date"] if end["lastBlock"] else end["endDate"] for end in ends}


def describe_progress(program: ClientProgram, today: date) -> ProgramProgress:
    """Return a program of a client with the week in which it is."""
    week, weeks = find_week(program["startDate"], program["endDate"], str(today))
    return {**program, "week": week, "weeks": weeks}


def find_week(start: str, end: str, today: str) -> tuple[int, int]:
    """Return the week of a program on a date, from 1 (0: not begun), and the number of its weeks."""
    first, last, now = (date.fromisoformat(day) for day in (start, end, today))
    return max(0, (now - first).days // 7 + 1), (last - first).days // 7 + 1


# --- Reactions of assigned programs: the schedule of a client is shifted, and an undo restores workouts ---------------


async def record_shift(ctx: Context, event: ScheduleShifted) -> None:
    """Store with assignments that their workouts have been shifted."""
    for assignment in await find_all(ctx, event.customer_id):
        if assignment["_id"] in event.assignment_ids:
            shifts: list[Shift] = [*assignment.get("shifts", ()), {"first": event.first, "days": event.days}]
            await set_fields(ctx, assignment, {"shifts": shifts})


async def require_single_copies(ctx: Context, event: RestorationPlanned) -> None:
    """Raise Conflict if a deleted workout is to be restored whose place a sync has given to another."""
    workouts = [each for each in event.documents if each.kind == "workout"]
    removed = {each.before["_id"] for each in workouts if each.before is not None and each.after is None}
    restored = [each.after for each in workouts if each.before is None and each.after is not None]
    sources = {(each.get("assignmentId"), each.get("programBlockId")) for each in restored}
    copies = [each for each in restored if each.get("assignmentId") and each.get("programBlockId")]
    taken: list[NamedDocument] = [
        {"kind": "workout", "_id": found["_id"]}
        for program_id in {each["programId"] for each in copies}
        for found in await block_reports.find_assigned(
            ctx, program_id, sorted({each["assignmentId"] for each in copies if each["programId"] == program_id})
        )
        if (found["assignmentId"], found.get("programBlockId")) in sources and found["_id"] not in removed
    ]
    if taken:
        raise DocumentsMoved(taken)


# --- REST -------------------------------------------------------------------------------------------------------------


@program_routes.post(
    "/assign",
    access=coach(CUSTOMERS.EDIT),
    body=input_of(ProgramAssignment, DryRun)(),
    example={"customerId": "66f0c0ffee0000000000abcd", "startDate": "2026-03-02"},
)
async def assign_program(ctx: Context, program_id: ObjectId, body: ProgramAssignment) -> ProgramAssignmentResult:
    """Assign a program to a client.

    Every block is copied to the calendar, day 1 on `startDate` or the days with work on `weekdays`: all or none. The
    copies have `programId`, `assignmentId` and `day`.
    """
    return await assign(
        ctx,
        program_id,
        body["customerId"],
        body["startDate"],
        weekdays=body.get("weekdays"),
        on_conflict=body["onConflict"],
        dry_run=body["dryRun"],
    )
