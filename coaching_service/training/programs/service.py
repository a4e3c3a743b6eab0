"""Training programs: workout blocks by day, which can be assigned to clients."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import date
from typing import cast

from coaching_service.core.auth.access import PROGRAMS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import NotFound
from coaching_service.core.external_identity import Upserted, find_differences, present_identity, stored_fields, upsert
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import ALL_ENTRIES, ListPart, ListSelection
from coaching_service.core.pagination import Page
from coaching_service.core.text import normalize
from coaching_service.core.validation import NAME_LENGTH
from coaching_service.training.programs import store
from coaching_service.training.programs.models import (
    DatedProgram,
    Program,
    ProgramChange,
    ProgramDeleted,
    ProgramFields,
    ProgramInput,
    ProgramName,
    StoredProgram,
)
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import BlockPlan, ProgramCopy, StoredBlock, plan_of
from coaching_service.training.workouts.blocks.owners import ClientCalendar, ScheduleOwner

_COPY = " (copy)"


@dataclass(frozen=True)
class ProgramPlan(ScheduleOwner):
    """The schedule of a program, by day."""

    program_id: ObjectId

    @property
    def block_filter(self) -> Filter:
        """The filter that finds the program's own blocks, not those assigned from it."""
        return {"programId": self.program_id, "customerId": None}

    async def require_access(self, ctx: Context) -> None:
        """Raise NotFound if the company has no such program."""
        await require(ctx, self.program_id)

    async def after_schedule_change(self, ctx: Context, *, added_until: str | None = None) -> None:
        """Make transactions that change the schedule of one program run one after another."""
        change = {"$inc": {"scheduleChanges": 1}}
        if not await store.programs.set_derived(ctx, {"_id": self.program_id}, change):
            raise NotFound("program")


async def list_page(
    ctx: Context,
    *,
    archived: bool,
    page: int,
    size: int,
    keywords: str = "",
    external_id: str | None = None,
    selection: ListSelection = ALL_ENTRIES,
    after: str | None = None,
) -> Page[Program]:
    """Return one page of programs, sorted by name, or those after a cursor.

    `external_id` is the identifier in another system.
    """
    keywords = normalize(keywords)
    filters = {"archived": archived, "keywords": keywords, "externalId": external_id, **selection.for_cursor()}
    order = selection.order(store.ORDER)
    list_part = ListPart(
        ctx, "programs", filters, order, page=page, size=size, after=after, private=store.PRIVATE_ORDER
    )
    where = {"isArchived": archived, **selection.filter()}
    if external_id is not None:
        where["externalId"] = external_id
    stored, total = await store.find_page(ctx, where, list_part, keywords=keywords)
    docs, cursor = list_part.take_page(stored)
    return list_part.numbered(await _present(ctx, docs), total, cursor)


list_ids_after = store.programs.list_ids_after


async def require(ctx: Context, program_id: ObjectId) -> ProgramName:
    """Return the name of a program. Raises NotFound."""
    if (program := await store.programs.find_one(ctx, {"_id": program_id}, ("name",))) is None:
        raise NotFound("program")
    return program


async def get_names(ctx: Context, ids: Sequence[ObjectId]) -> dict[ObjectId, str]:
    """Return the names of the company's programs among `ids`."""
    named = await store.programs.find(ctx, {"_id": {"$in": list(ids)}}, fields=("name",), hint=store.BY_ID)
    return {program["_id"]: program["name"] for program in named}


async def get(ctx: Context, program_id: ObjectId) -> Program:
    """Return a program. Raises NotFound."""
    return await _present_one(ctx, await store.programs.find_one(ctx, {"_id": program_id}))


async def create(ctx: Context, program: ProgramInput) -> Program:
    """Create a program without blocks."""
    new = {**stored_fields(program), **store.search_fields(program), "isArchived": False}
    stored = await store.programs.insert(ctx, new)
    return {**stored, **present_identity(stored), "numberOfDaysWithWorkouts": 0}


@transactional
async def duplicate(ctx: Context, program_id: ObjectId) -> Program:
    """Create a copy of a program with all its blocks. Raises NotFound."""
    source = await get(ctx, program_id)
    name = f"{source['name'][: NAME_LENGTH - len(_COPY)]}{_COPY}"
    details: ProgramInput = {"name": name, "description": source["description"], "tags": source["tags"]}
    copy = await create(ctx, details)
    blocks = await workouts.list_stored_blocks(ctx, ProgramPlan(program_id))
    plans: list[BlockPlan] = [{**plan_of(block, block["items"]), "day": block["day"]} for block in blocks]
    await batches.write(ctx, ProgramPlan(copy["_id"]), batches.Batch(created=plans), [])
    return await get(ctx, copy["_id"])


async def update(
    ctx: Context, program_id: ObjectId, change: ProgramChange, *, only_differences: bool = False
) -> Program:
    """Change the fields of a program that are sent. Raises NotFound, and Conflict if it has changed since `version`.

    With `only_differences`, fields that have these values already are not changes.
    """
    fields = cast("ProgramFields", stored_fields(take(ProgramInput, change)))

    def changed_fields(stored: StoredProgram) -> ProgramFields:
        return cast("ProgramFields", find_differences(stored, fields)) if only_differences else fields

    return await _present_one(ctx, await store.rewrite(ctx, program_id, changed_fields, change.get("version")))


async def upsert_external(
    ctx: Context, external_id: str, sent: ProgramChange, complete: Callable[[], ProgramInput]
) -> Upserted:
    """Change the program with this identifier in another system, or create one of what `complete` returns.

    What is stored already is not a change. Raises what `change` and core's `upsert` raise.
    """
    return await upsert(
        ctx,
        lambda tx: store.find_id_by_external_id(tx, external_id),
        lambda tx, program_id: update(tx, program_id, sent, only_differences=True),
        lambda tx: create(tx, {**complete(), "externalId": external_id}),
        (PROGRAMS.CREATE, PROGRAMS.EDIT),
    )


async def set_archived(ctx: Context, program_id: ObjectId, *, archived: bool, version: int | None = None) -> Program:
    """Archive or restore a program; repeating is harmless.

    Raises NotFound, and Conflict if the program has changed since `version`.
    """

    def changed_fields(stored: StoredProgram) -> ProgramFields:
        return {} if stored["isArchived"] == archived else {"isArchived": archived}

    return await _present_one(ctx, await store.rewrite(ctx, program_id, changed_fields, version))


async def is_assigned(ctx: Context, program_id: ObjectId, customer_id: ObjectId, start: str) -> bool:
    """Return whether the client has a block of the program on any of its days, day 1 on `start`.

    Raises NotFound for the program or the client, Forbidden, and InvalidFields if a date would leave the calendar.
    """
    await ClientCalendar(customer_id).require_access(ctx)
    dates = [str(block["date"]) for block in (await get_dated(ctx, program_id, start)).blocks]
    return bool(dates) and await workouts.has_program_block(ctx, customer_id, program_id, min(dates), max(dates))


async def get_dated(
    ctx: Context, program_id: ObjectId, start: str, weekdays: Collection[int] | None = None
) -> DatedProgram:
    """Return a program with dates: day 1 on `start`.

    With `weekdays` (1 Monday to 7 Sunday) only its days with work, one after another on the next dates of these
    weekdays. Raises NotFound, and InvalidFields if a date would leave the calendar.
    """
    program = await require(ctx, program_id)
    blocks = await workouts.list_stored_blocks(ctx, ProgramPlan(program_id))
    dates = date_blocks(blocks, start, weekdays)
    dated = [_dated_block(block, dates[block["_id"]]) for block in blocks if block["_id"] in dates]
    days = [block["day"] or 1 for block in blocks if block["_id"] in dates]
    span = max(days) - min(days) + 1 if days else 0
    return DatedProgram(program, start, dated, sorted(weekdays) if weekdays else None, span)


def date_blocks(blocks: Sequence[StoredBlock], start: str, weekdays: Collection[int] | None) -> dict[ObjectId, str]:
    """Return the dates of the blocks of a program, as `get_dated` does, by identifier.

    With `weekdays` rest days have none. Raises InvalidFields if a date would leave the calendar.
    """
    if weekdays:
        blocks = [block for block in blocks if not block["isRest"]]
        dates = _dates_on_weekdays(sorted({block["day"] or 1 for block in blocks}), start, weekdays)
    else:
        days = {block["day"] or 1 for block in blocks}
        dates = {day: workouts.shift_date(start, day - 1, "startDate") for day in days}
    return {block["_id"]: dates[block["day"] or 1] for block in blocks}


def _dates_on_weekdays(days: Sequence[int], start: str, weekdays: Collection[int]) -> dict[int, str]:
    """Return the date of each day of a program: the next date of one of the weekdays, from `start` on."""
    dates: dict[int, str] = {}
    current = start
    for day in days:
        if dates:
            current = workouts.shift_date(current, 1, "startDate")
        while date.fromisoformat(current).isoweekday() not in weekdays:
            current = workouts.shift_date(current, 1, "startDate")
        dates[day] = current
    return dates


def _dated_block(block: StoredBlock, day: str) -> BlockPlan:
    plan = plan_of(block, block["items"])
    return {**plan, **copy_of(block), "date": day, "day": block["day"], "programId": block["programId"]}


def copy_of(block: StoredBlock) -> ProgramCopy:
    """Return what a client's copy of a block of a program remembers of it."""
    return {"programBlockId": block["_id"], "programBlockVersion": block["version"]}


@transactional
async def delete(ctx: Context, program_id: ObjectId) -> None:
    """Delete a program with its blocks; blocks that were assigned from it remain. Raises NotFound."""
    if await store.programs.delete(ctx, {"_id": program_id}) is None:
        raise NotFound("program")
    await workouts.delete_all(ctx, ProgramPlan(program_id))
    await ctx.publish(ProgramDeleted(program_id))


async def _present_one(ctx: Context, program: StoredProgram | None) -> Program:
    if program is None:
        raise NotFound("program")
    return (await _present(ctx, [program]))[0]


async def _present(ctx: Context, programs: Sequence[StoredProgram]) -> list[Program]:
    counts = await workouts.count_program_workout_days(ctx, [program["_id"] for program in programs])
    return [
        {**program, **present_identity(program), "numberOfDaysWithWorkouts": counts.get(program["_id"], 0)}
        for program in programs
    ]
