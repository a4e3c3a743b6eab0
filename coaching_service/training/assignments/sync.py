"""Bringing the calendars of clients up to date with the programs that they are on."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import cast

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import transactional
from coaching_service.core.database.worker_thread import on_worker_thread
from coaching_service.core.errors import NotFound
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import bulk
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import Customer, NamedCustomer
from coaching_service.training.assignments import store
from coaching_service.training.assignments._comparison import Comparison, ProgramNow, compare, taken_over
from coaching_service.training.assignments.models import StoredAssignment
from coaching_service.training.assignments.service import find_week
from coaching_service.training.assignments.sync_models import (
    DEFAULT_INCLUDE,
    AssignmentSync,
    RunningAssignment,
    Syncable,
)
from coaching_service.training.programs import service as programs
from coaching_service.training.programs.service import ProgramPlan
from coaching_service.training.workouts.blocks import batches as block_batches
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.batches import Batch
from coaching_service.training.workouts.blocks.models import BlockFields, BlockPlan, DayBlock, PlannedBlock, StoredBlock
from coaching_service.training.workouts.blocks.owners import ClientCalendar
from coaching_service.training.workouts.blocks.plans import plan_of
from coaching_service.training.workouts.blocks.program_copies import renew_items, summarize_copy
from coaching_service.training.workouts.reports import blocks as queries


@dataclass(frozen=True)
class SyncChoice:
    """What to bring up to date: workouts in these states, from a date on (None: the client's local date)."""

    include: Collection[Syncable] = DEFAULT_INCLUDE
    first: str | None = None


@dataclass(frozen=True)
class _Running:
    """A client's assignment that is current or upcoming on the client's local date `today`."""

    assignment: StoredAssignment
    customer: NamedCustomer
    today: str
    end: str


async def load_program(ctx: Context, program_id: ObjectId) -> ProgramNow:
    """Return a program as it is now. Raises NotFound."""
    program = await programs.require(ctx, program_id)
    return ProgramNow.of(program, await workouts.list_stored_blocks(ctx, ProgramPlan(program_id)))


@on_worker_thread
async def list_states(ctx: Context, program_id: ObjectId) -> list[AssignmentSync]:
    """Return every workout of the current and upcoming assignments of a program, compared with it, by client.

    Assignments of archived clients, and of clients that the caller does not see, are left out. Raises NotFound.
    """
    program = await load_program(ctx, program_id)
    running = await _list_running(ctx, program_id)
    copies = await _read_copies(ctx, program_id, [each.assignment for each in running])
    return [
        {
            "assignmentId": each.assignment["_id"],
            "customer": each.customer,
            "blocks": [
                {
                    "date": compared.date,
                    "wblockId": compared.copy["_id"] if compared.copy else None,
                    "state": compared.state,
                    "name": compared.name,
                }
                for compared in compare(program, each.assignment, copies[each.assignment["_id"]], each.today)
            ],
        }
        for each in running
    ]


async def list_running(ctx: Context, program_id: ObjectId) -> list[RunningAssignment]:
    """Return the clients who are on a program, or will be, and the week in which they are, by name.

    Clients whom the caller does not see, and archived ones, are left out.
    """
    return [_present(each) for each in await _list_running(ctx, program_id)]


def _present(running: _Running) -> RunningAssignment:
    start = running.assignment["startDate"]
    week, weeks = find_week(start, running.end, running.today)
    return {
        "assignmentId": running.assignment["_id"],
        "customer": running.customer,
        "startDate": start,
        "endDate": running.end,
        "status": "upcoming" if week == 0 else "current",
        "week": week,
        "weeks": weeks,
    }


async def select_clients(
    ctx: Context, program_id: ObjectId, assignment_ids: Sequence[ObjectId] | None
) -> dict[ObjectId, list[ObjectId]]:
    """Return the current and upcoming assignments of a program that the caller sees, by client.

    With `assignment_ids` only these. Raises NotFound for one of another program, and Forbidden for one whose client is
    outside the scope of the caller.
    """
    if assignment_ids is not None:
        where = {"programId": program_id, "_id": {"$in": list(assignment_ids)}}
        known = await store.assignments.find(ctx, where, hint=store.BY_PROGRAM)
        if len(known) < len(set(assignment_ids)):
            raise NotFound("program assignment")
        client_ids = list({assignment["customerId"] for assignment in known})
        accessible = await bulk.find_accessible(ctx, client_ids)
        for customer_id in client_ids:
            if not accessible.get(customer_id):
                await customers.get_visible(ctx, customer_id)  # raises why not
    by_client: defaultdict[ObjectId, list[ObjectId]] = defaultdict(list)
    for each in await _list_running(ctx, program_id):
        if assignment_ids is None or each.assignment["_id"] in assignment_ids:
            by_client[each.customer["_id"]].append(each.assignment["_id"])
    return by_client


async def list_running_clients(ctx: Context, program_id: ObjectId) -> list[ObjectId]:
    """Return the active clients in the caller's scope for whom a program is current or upcoming, by identifier.

    Raises NotFound for the program.
    """
    await programs.require(ctx, program_id)
    return sorted(await select_clients(ctx, program_id, None))


async def _list_running(ctx: Context, program_id: ObjectId) -> list[_Running]:
    where = {"programId": program_id, "endedDate": None}
    not_ended = await store.assignments.find(ctx, where, sort=("customerId", "_id"), hint=store.BY_PROGRAM)
    clients = await bulk.load_active(ctx, list({assignment["customerId"] for assignment in not_ended}))
    seen = [assignment for assignment in not_ended if assignment["customerId"] in clients]
    last_dates = await queries.find_last_assigned(ctx, program_id, [assignment["_id"] for assignment in seen])
    running = [
        _running(ctx, assignment, clients[assignment["customerId"]], last_dates.get(assignment["_id"]))
        for assignment in seen
    ]
    order = list(clients)
    current = [each for each in running if each.end >= each.today]
    return sorted(current, key=lambda each: (order.index(each.customer["_id"]), each.assignment["startDate"]))


def _running(ctx: Context, assignment: StoredAssignment, client: Customer, last: str | None) -> _Running:
    customer: NamedCustomer = {"_id": client["_id"], "name": customers.full_name(client)}
    end = max(assignment["startDate"], last or assignment["endDate"])
    return _Running(assignment, customer, str(ctx.caller.today(client["timezone"])), end)


async def _read_copies(
    ctx: Context, program_id: ObjectId, assignments: Sequence[StoredAssignment]
) -> defaultdict[ObjectId, list[StoredBlock]]:
    """Return the blocks of assignments of a program, by assignment."""
    by_assignment: defaultdict[ObjectId, list[StoredBlock]] = defaultdict(list)
    if assignments:
        for copy in await queries.find_assigned(ctx, program_id, [each["_id"] for each in assignments]):
            by_assignment[cast("ObjectId", copy["assignmentId"])].append(copy)
    return by_assignment


@transactional
async def sync_client(
    ctx: Context,
    program: ProgramNow,
    customer_id: ObjectId,
    assignment_ids: Sequence[ObjectId],
    choice: SyncChoice,
    *,
    dry_run: bool = False,
) -> Counter[str]:
    """Bring assignments of a program up to date on the calendar of a client whose access has been checked.

    Returns how many workouts were changed, created, removed and left as they are. With `dry_run` nothing is written.
    """
    today = str(await customers.get_local_date(ctx, customer_id))
    assignments = [await store.find_one(ctx, customer_id, each) for each in assignment_ids]
    running = [each for each in assignments if each is not None and each["endedDate"] is None]
    copies = await _read_copies(ctx, program.program["_id"], running)
    counts: Counter[str] = Counter()
    for assignment in running:
        own = copies[assignment["_id"]]
        compared = compare(program, assignment, own, today)
        first = max(today, choice.first or today)
        chosen = [each for each in compared if each.state in choice.include and each.is_from(first)]
        batch = _plan(assignment, chosen)
        counts.update(
            changed=len(batch.rewritten),
            created=len(batch.created),
            removed=len(batch.removed),
            unchanged=len(compared) - len(chosen),
        )
        if chosen and not dry_run:
            await block_batches.write(ctx, ClientCalendar(customer_id), batch, cast("list[DayBlock]", own))
            await _store_result(ctx, program, assignment, own, chosen)
    return counts


def _plan(assignment: StoredAssignment, chosen: Sequence[Comparison]) -> Batch:
    """Return what brings the chosen workouts up to date."""
    created: list[BlockPlan] = []
    rewritten: list[tuple[StoredBlock, BlockFields]] = []
    removed: list[ObjectId] = []
    for each in chosen:
        if each.source is None:
            removed.append(cast("StoredBlock", each.copy)["_id"])
        elif each.copy is None:
            created.append(_plan_copy(assignment, each.source, each))
        else:
            rewritten.append((each.copy, _rewrite(each.source, each.copy, each)))
    return Batch(created=created, rewritten=rewritten, removed=removed, is_copy=True)


def _plan_copy(assignment: StoredAssignment, source: StoredBlock, compared: Comparison) -> BlockPlan:
    return {
        **plan_of(source, source["items"]),
        **programs.copy_of(source),
        "shiftedDays": compared.shifted_days,
        "date": compared.date,
        "day": source["day"],
        "programId": source["programId"],
        "assignmentId": assignment["_id"],
    }


def _rewrite(source: StoredBlock, copy: StoredBlock, compared: Comparison) -> BlockFields:
    """Return the fields of a copy that is brought up to date; a client's move stays if the program has not moved."""
    items = renew_items(copy["items"], source["items"])
    fields = {**take(PlannedBlock, source), **programs.copy_of(source), "items": items}
    if copy.get("plannedDate") is not None and compared.new_date == compared.date:
        fields["plannedDate"] = None
    summary = summarize_copy({**source, "date": compared.program_date})
    day = {"day": source["day"], "date": compared.new_date, "shiftedDays": compared.shifted_days}
    return cast("BlockFields", {**fields, **day, "programCopy": summary})


async def _store_result(
    ctx: Context,
    program: ProgramNow,
    assignment: StoredAssignment,
    copies: Sequence[StoredBlock],
    chosen: Sequence[Comparison],
) -> None:
    """Store with an assignment which blocks of the program it has taken over, and its last date, if they differ."""
    gone = {each.copy["_id"] for each in chosen if each.source is None and each.copy is not None}
    gone_sources = {copy["programBlockId"] for copy in copies if copy["_id"] in gone and copy.get("programBlockId")}
    added = {each.source["_id"] for each in chosen if each.source is not None}
    block_ids = sorted((taken_over(program, assignment) | added) - gone_sources)
    moved = {each.copy["_id"]: each.new_date for each in chosen if each.source is not None and each.copy is not None}
    dates = [moved.get(copy["_id"], str(copy["date"])) for copy in copies if copy["_id"] not in gone]
    dates += [each.new_date for each in chosen if each.copy is None]
    end_date = max([assignment["startDate"], *dates])
    if block_ids != sorted(assignment.get("programBlockIds") or []) or end_date != assignment["endDate"]:
        await store.set_fields(ctx, assignment, {"programBlockIds": block_ids, "endDate": end_date})
