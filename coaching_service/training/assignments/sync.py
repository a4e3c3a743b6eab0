"""Bringing the calendars of clients up to date with the programs that they are on."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal, NotRequired, TypedDict, cast, get_args

from marshmallow import fields

from coaching_service.core.database.context import Context, transactional
from coaching_service.core.database.worker_thread import on_worker_thread
from coaching_service.core.errors import NotFound
from coaching_service.core.fields import Default, Description, output_of, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, Date, Identifier, ListOf
from coaching_service.people.customers import bulk
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import NamedCustomer
from coaching_service.training import programs
from coaching_service.training.assignments import service
from coaching_service.training.assignments.service import StoredAssignment, find_week
from coaching_service.training.programs import ProgramName, ProgramPlan, date_blocks
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks import models as block_models
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.batches import Batch
from coaching_service.training.workouts.blocks.models import StoredBlock
from coaching_service.training.workouts.reports import blocks as block_reports

# --- What a program as it is now would change on the calendars of the clients who are on it ---------------------------


SyncState = Literal["same", "changed", "new", "removed", "customised", "done", "past"]
Syncable = Literal["changed", "new", "removed", "customised"]
SYNCABLE: tuple[Syncable, ...] = get_args(Syncable)
DEFAULT_INCLUDE: tuple[Syncable, ...] = ("changed", "new", "removed")
RunningStatus = Literal["current", "upcoming"]


_From = TypedDict(  # `from` is no name in Python
    "_From",
    {
        "from": NotRequired[
            Annotated[
                str | None,
                Date(),
                Description("Nothing before this date is changed. Default: the client's local date."),
            ]
        ]
    },
)


class ProgramSyncRequest(_From):
    """What to bring to the calendars of the clients who are on a program."""

    assignmentIds: NotRequired[
        Annotated[
            list[ObjectId],
            ListOf(Identifier(), minimum=1, maximum=500),
            Description("The assignments to bring up to date. Default: all current and upcoming ones."),
        ]
    ]
    include: Annotated[
        list[Syncable],
        ListOf(Choice(*SYNCABLE), minimum=1, maximum=len(SYNCABLE)),
        Default(lambda: list(DEFAULT_INCLUDE)),
        Description("The states to bring up to date. Default: `changed`, `new` and `removed`."),
    ]


class SyncCounts(TypedDict):
    """How many workouts were brought up to date."""

    changed: Annotated[int, Description("Workouts that have been replaced by what the program has now.")]
    created: Annotated[int, Description("Workouts that have been added to calendars.")]
    removed: Annotated[int, Description("Workouts that have been removed from calendars.")]


class SyncResult(SyncCounts):
    """What was done, or with `dryRun` would be."""

    kept: Annotated[int, Description("All other workouts of the assignments: they stay as they are.")]

    dryRun: Annotated[bool, Description("Whether nothing was written.")]
    changeId: Annotated[ObjectId | None, Description("The change to undo; null in a dry run, and without a change.")]


class SyncBlock(TypedDict):
    """A workout of a program for a client, and how it differs from the program."""

    date: Annotated[
        str,
        Date(),
        Description("The date that the program has for it now, shifted with the schedule; of a removed one, its own."),
    ]
    wblockId: Annotated[ObjectId | None, Description("The client's workout; null if there is none.")]
    state: Annotated[
        SyncState,
        Description(
            "`changed`: the program has moved on. `new`: the client does not have it. `removed`: the program no longer "
            "has it. `customised`: changed or deleted by hand on the calendar. `done`: something of it has been done. "
            "`past`: before the client's local date. `same`: nothing to do."
        ),
    ]
    name: Annotated[str, Description("The name in the program; of a removed, done or past workout, its own.")]


class AssignmentSync(TypedDict):
    """The workouts of an assignment, by date."""

    assignmentId: ObjectId
    customer: Annotated[NamedCustomer, Description("The client.")]
    blocks: Annotated[list[SyncBlock], fields.List(fields.Nested(output_of(SyncBlock)))]


class RunningAssignment(TypedDict):
    """A client who is on a program, and where: the week from 1 (0: not begun), of how many."""

    assignmentId: ObjectId
    customer: NamedCustomer
    startDate: str
    endDate: str
    status: RunningStatus
    week: int
    weeks: int


# --- How the copies of a program on a client's calendar differ from the program as it is now --------------------------


@dataclass(frozen=True)
class ProgramNow:
    """A program with its blocks, by day, and the summary of what is planned in each."""

    program: ProgramName
    blocks: list[StoredBlock]
    summaries: Mapping[ObjectId, str]


@dataclass(frozen=True)
class Comparison:
    """A block of a program (None: the program no longer has it) and its copy (None: the client has none).

    `program_date` is the date that the program has for it now, `date` the same with the shifts of the schedule, and
    `new_date` the one on which it would be: where a client has moved it, if the program has not.
    """

    state: SyncState
    source: StoredBlock | None
    copy: StoredBlock | None
    program_date: str
    date: str
    new_date: str

    @property
    def shifted_days(self) -> int:
        """By how many days shifts of the schedule have moved it."""
        return (date.fromisoformat(self.date) - date.fromisoformat(self.program_date)).days

    @property
    def name(self) -> str:
        """The name that the program has for it now, or of what no longer changes its own."""
        own = self.copy if self.source is None or self.state in ("done", "past") else None
        return (own or cast("StoredBlock", self.source or self.copy))["name"]


def compare(
    program: ProgramNow, assignment: StoredAssignment, copies: Sequence[StoredBlock], today: str
) -> list[Comparison]:
    """Return the blocks of an assignment compared with the program, by date; `today` is the client's local date."""
    dates = date_blocks(program.blocks, assignment["startDate"], find_weekdays(program, assignment, copies))
    copy_of = _match(program, copies)
    matched = {copy["_id"] for copy in copy_of.values()}
    known, shifts = taken_over(program, assignment), assignment.get("shifts", ())
    compared: list[Comparison] = []
    for source in program.blocks:
        if (day := dates.get(source["_id"])) is not None:
            shifted = day
            for shift in shifts:
                if shifted >= shift["first"]:
                    shifted = workouts.shift_date(shifted, shift["days"], "startDate")
            days = day, shifted, today
            compared.append(_compare_block(program, source, copy_of.get(source["_id"]), days, known))
        elif (copy := copy_of.get(source["_id"])) is not None:
            matched.discard(copy["_id"])  # it is a rest day now, which weekdays leave out
    for copy in (each for each in copies if each["_id"] not in matched):
        state: SyncState = "removed"
        if not workouts.has_nothing_done(copy):
            state = "done"
        elif str(copy["date"]) < today:
            state = "past"
        elif copy.get("programBlockId") is None or _is_customised(copy, workouts.summarize_plan(copy)):
            state = "customised"
        compared.append(Comparison(state, None, copy, *(str(copy["date"]),) * 3))
    return sorted(compared, key=lambda each: each.date)


def _compare_block(
    program: ProgramNow,
    source: StoredBlock,
    copy: StoredBlock | None,
    days: tuple[str, str, str],
    known: Collection[ObjectId],
) -> Comparison:
    """Compare a block; `days` are the date that the program has for it, the same with shifts, and the client's."""
    plan = program.summaries[source["_id"]]
    program_date, day, today = days
    if copy is None:
        state: SyncState = "past" if day < today else "customised" if source["_id"] in known else "new"
        return Comparison(state, source, copy, program_date, day, day)
    is_moved, current = workouts.find_program_date(copy) != program_date, workouts.summarize_plan(copy)
    new_date = day if is_moved else str(copy["date"])
    day = day if is_moved else str(copy.get("plannedDate") or copy["date"])
    if not workouts.has_nothing_done(copy):
        state = "done"
    elif str(copy["date"]) < today:
        state = "past"
    elif not is_moved and current == plan:
        state = "same"
    elif _is_customised(copy, current):
        state = "customised"
    else:
        state = "past" if new_date < today else "changed"
    return Comparison(state, source, copy, program_date, day, new_date)


def _is_customised(copy: StoredBlock, plan: str) -> bool:
    """Return whether a copy was changed since it was made; `plan` is the summary of what is planned in it.

    Of a copy that is older than the summaries, this is certain only while it has never been changed.
    """
    if (summary := copy.get("programCopy")) is None:
        return copy["version"] > 0
    return summary != workouts.summarize_copy(copy, plan)


def taken_over(program: ProgramNow, assignment: StoredAssignment) -> set[ObjectId]:
    """Return the blocks of a program that an assignment has taken over.

    Of an assignment that is older than this list, those that the program had then.
    """
    if (ids := assignment.get("programBlockIds")) is not None:
        return set(ids)
    return {block["_id"] for block in program.blocks if block["createdAt"] <= assignment["createdAt"]}


def find_weekdays(program: ProgramNow, assignment: StoredAssignment, copies: Sequence[StoredBlock]) -> list[int] | None:
    """Return the weekdays that a program was assigned to; None for all days.

    For an assignment that is older than this field, those on which most of its blocks have the dates that they have.
    """
    if "weekdays" in assignment or not copies:
        return assignment.get("weekdays")
    start = assignment["startDate"]
    untouched = [copy for copy in copies if copy["version"] == 0] or copies
    used = sorted({date.fromisoformat(workouts.find_program_date(copy)).isoweekday() for copy in untouched})
    choices: list[list[int] | None] = [None, used]

    def count_right(weekdays: list[int] | None) -> int:
        dates = date_blocks(program.blocks, start, weekdays)
        by_day = {block["day"]: dates[block["_id"]] for block in program.blocks if block["_id"] in dates}
        return sum(by_day.get(copy["day"]) == workouts.find_program_date(copy) for copy in copies)

    return max(choices, key=count_right)


def _match(program: ProgramNow, copies: Sequence[StoredBlock]) -> dict[ObjectId, StoredBlock]:
    """Return the copy of each block of a program that has one, by identifier of the block.

    Copies that are older than their reference to the program's block belong to a block of the same day: with the same
    plan or, if it has as many blocks as copies, in order.
    """
    linked = {copy.get("programBlockId"): copy for copy in copies}
    matched = {block["_id"]: linked[block["_id"]] for block in program.blocks if block["_id"] in linked}
    if not (older := [copy for copy in copies if copy.get("programBlockId") is None]):
        return matched
    sources = _by_day(block for block in program.blocks if block["_id"] not in matched)
    for day, of_day in _by_day(older).items():
        left = sources.get(day, [])
        remaining = Counter(program.summaries[source["_id"]] for source in left)
        rest: list[StoredBlock] = []
        for copy in of_day:
            summary = workouts.summarize_plan(copy)
            if remaining[summary] > 0:
                remaining[summary] -= 1
                source = next(each for each in left if program.summaries[each["_id"]] == summary)
                left.remove(source)
                matched[source["_id"]] = copy
            else:
                rest.append(copy)
        if len(rest) == len(left):
            matched |= {source["_id"]: copy for source, copy in zip(left, rest, strict=True)}
    return matched


def _by_day(blocks: Iterable[StoredBlock]) -> defaultdict[int | None, list[StoredBlock]]:
    by_day: defaultdict[int | None, list[StoredBlock]] = defaultdict(list)
    for block in blocks:
        by_day[block["day"]].append(block)
    return by_day


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
    blocks = await workouts.list_stored_blocks(ctx, ProgramPlan(program_id))
    return ProgramNow(program, blocks, {block["_id"]: workouts.summarize_plan(block) for block in blocks})


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
    listed: list[RunningAssignment] = []
    for each in await _list_running(ctx, program_id):
        start = each.assignment["startDate"]
        week, weeks = find_week(start, each.end, each.today)
        listed.append(
            {
                "assignmentId": each.assignment["_id"],
                "customer": each.customer,
                "startDate": start,
                "endDate": each.end,
                "status": "upcoming" if week == 0 else "current",
                "week": week,
                "weeks": weeks,
            }
        )
    return listed


async def select_clients(
    ctx: Context, program_id: ObjectId, assignment_ids: Sequence[ObjectId] | None
) -> dict[ObjectId, list[ObjectId]]:
    """Return the current and upcoming assignments of a program that the caller sees, by client.

    With `assignment_ids` only these. Raises NotFound for one of another program, and Forbidden for one whose client is
    outside the scope of the caller.
    """
    if assignment_ids is not None:
        where = {"programId": program_id, "_id": {"$in": list(assignment_ids)}}
        known = await service._assignments.find(ctx, where, hint=service.BY_PROGRAM)
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
    not_ended = await service._assignments.find(ctx, where, sort=("customerId", "_id"), hint=service.BY_PROGRAM)
    clients = await bulk.load_active(ctx, list({assignment["customerId"] for assignment in not_ended}))
    seen = [assignment for assignment in not_ended if assignment["customerId"] in clients]
    last_dates = await block_reports.find_last_assigned(ctx, program_id, [assignment["_id"] for assignment in seen])
    running: list[_Running] = []
    for assignment in seen:
        client = clients[assignment["customerId"]]
        end = max(assignment["startDate"], last_dates.get(assignment["_id"]) or assignment["endDate"])
        customer: NamedCustomer = {"_id": client["_id"], "name": customers.full_name(client)}
        running.append(_Running(assignment, customer, str(ctx.caller.today(client["timezone"])), end))
    order = list(clients)
    current = [each for each in running if each.end >= each.today]
    return sorted(current, key=lambda each: (order.index(each.customer["_id"]), each.assignment["startDate"]))


async def _read_copies(
    ctx: Context, program_id: ObjectId, assignments: Sequence[StoredAssignment]
) -> defaultdict[ObjectId, list[StoredBlock]]:
    """Return the blocks of assignments of a program, by assignment."""
    by_assignment: defaultdict[ObjectId, list[StoredBlock]] = defaultdict(list)
    if assignments:
        for copy in await block_reports.find_assigned(ctx, program_id, [each["_id"] for each in assignments]):
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
    assignments = [await service.find_one(ctx, customer_id, each) for each in assignment_ids]
    running = [each for each in assignments if each is not None and each["endedDate"] is None]
    copies = await _read_copies(ctx, program.program["_id"], running)
    counts: Counter[str] = Counter()
    for assignment in running:
        own = copies[assignment["_id"]]
        compared = compare(program, assignment, own, today)
        first = max(today, choice.first or today)
        of_states = [each for each in compared if each.state in choice.include]
        from_first = [each for each in of_states if each.copy is None or str(each.copy["date"]) >= first]
        chosen = [each for each in from_first if each.new_date >= first]
        created: list[block_models.BlockPlan] = []
        rewritten: list[tuple[StoredBlock, block_models.BlockFields]] = []
        removed: list[ObjectId] = []
        for each in chosen:
            if each.source is None:
                removed.append(cast("StoredBlock", each.copy)["_id"])
            elif each.copy is not None:
                rewritten.append((each.copy, _rewrite(each.source, each.copy, each)))
            else:
                created.append(
                    {
                        **block_models.plan_of(each.source, each.source["items"]),
                        **programs.copy_of(each.source),
                        "shiftedDays": each.shifted_days,
                        "date": each.date,
                        "day": each.source["day"],
                        "programId": each.source["programId"],
                        "assignmentId": assignment["_id"],
                    }
                )
        counts.update(changed=len(rewritten), created=len(created), removed=len(removed))
        counts["unchanged"] += len(compared) - len(chosen)
        if chosen and not dry_run:
            batch = Batch(created=created, rewritten=rewritten, removed=removed, is_copy=True)
            days = cast("list[block_models.DayBlock]", own)
            await batches.write(ctx, workouts.ClientCalendar(customer_id), batch, days)
            # Which blocks of the program the assignment has taken over, and its last date, if they differ.
            gone = {each.copy["_id"] for each in chosen if each.source is None and each.copy is not None}
            gone_sources = {
                copy["programBlockId"] for copy in own if copy["_id"] in gone and copy.get("programBlockId")
            }
            added = {each.source["_id"] for each in chosen if each.source is not None}
            block_ids = sorted((taken_over(program, assignment) | added) - gone_sources)
            moved = {copy["_id"]: str(new["date"]) for copy, new in rewritten}
            dates = [moved.get(copy["_id"], str(copy["date"])) for copy in own if copy["_id"] not in gone]
            dates += [each.new_date for each in chosen if each.copy is None]
            end_date = max([assignment["startDate"], *dates])
            if block_ids != sorted(assignment.get("programBlockIds") or []) or end_date != assignment["endDate"]:
                await service.set_fields(ctx, assignment, {"programBlockIds": block_ids, "endDate": end_date})
    return counts


def _rewrite(source: StoredBlock, copy: StoredBlock, compared: Comparison) -> block_models.BlockFields:
    """Return the fields of a copy that is brought up to date; a client's move stays if the program has not moved."""
    items = workouts.renew_items(copy["items"], source["items"])
    fields = {**take(block_models.PlannedBlock, source), **programs.copy_of(source), "items": items}
    if copy.get("plannedDate") is not None and compared.new_date == compared.date:
        fields["plannedDate"] = None
    summary = workouts.summarize_copy({**source, "date": compared.program_date})
    day = {"day": source["day"], "date": compared.new_date, "shiftedDays": compared.shifted_days}
    return cast("block_models.BlockFields", {**fields, **day, "programCopy": summary})
