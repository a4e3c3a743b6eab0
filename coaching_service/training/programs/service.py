"""Training programs: workout blocks by day, which can be assigned to clients."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, cast

from coaching_service.core import external_identity, list_selection
from coaching_service.core.auth import PROGRAMS
from coaching_service.core.database import declared
from coaching_service.core.database.context import Context, transactional
from coaching_service.core.database.documents import Documents, Filter
from coaching_service.core.errors import NotFound, require_found
from coaching_service.core.events import EventType
from coaching_service.core.field_schemas import checks_of
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import keyword_filter, normalize, search_fields_of
from coaching_service.core.validation import NAME_LENGTH
from coaching_service.training.programs import models as program_models
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import BlockPlan, ProgramCopy, StoredBlock, plan_of
from coaching_service.training.workouts.blocks.service import ClientCalendar, ScheduleOwner

# --- Programs in the database; their blocks are stored with all others, by training/workouts --------------------------


_EVENT_TYPES: dict[declared.Action, EventType] = {
    "created": "program.created",
    "changed": "program.updated",
    "deleted": "program.deleted",
}


def _event(action: declared.Action, known: Mapping[str, Any], _: Collection[str]) -> declared.EventData:
    return {"type": _EVENT_TYPES[action], "data": {"programId": known["_id"]}}


def _texts(program: Mapping[str, Any]) -> Iterator[declared.SearchedText]:
    text = "\n".join([program.get("description") or "", *program.get("tags", ())])
    yield declared.SearchedText("programs", program.get("name", ""), text, program.get("createdAt"))


_programs = Documents[program_models.StoredProgram](
    "programs",
    (
        declared.Index(("isArchived", "sortName", "_id")),
        declared.Index(("isArchived", "suf")),
        declared.Index(("_id",)),
        external_identity.BY_EXTERNAL_ID,
        declared.Index(("isArchived", *list_selection.BY_UPDATE)),
    ),
    private=("companyId", "sortName", "search", "suf", "scheduleChanges"),
    history=declared.History("program", _event),
    transfer=declared.Portable(
        program_models.StoredProgram,
        declared.LIBRARY,
        checks={**external_identity.IDENTITY_CHECKS, **checks_of(program_models.ProgramInput)},
        complete=lambda program: {**program, **search_fields(program)},
    ),
    searched=declared.Searched(("programs",), ("name", "description", "tags", "createdAt"), _texts),
)
ORDER, PRIVATE_ORDER = ("sortName", "_id"), ("sortName",)
_BY_NAME = _programs.index_name("isArchived", *ORDER)
_BY_SUFFIX = _programs.index_name("isArchived", "suf")
BY_ID = _programs.index_name("_id")
_BY_EXTERNAL_ID = _programs.index_name("externalId")
_BY_UPDATE = _programs.index_name("isArchived", *list_selection.BY_UPDATE)


async def find_page(
    ctx: Context, where: Filter, list_part: list_selection.ListPart, *, keywords: str
) -> tuple[list[program_models.StoredProgram], int]:
    """Return the programs of `where` for one part of the list with their sort fields, and their total number."""
    if "\0" in keywords:
        return [], 0
    condition = where | (keyword_filter(keywords) if keywords else {})
    hint = _list_index(where, list_part, keywords)
    return await list_part.read(ctx, _programs, condition, hint=hint)


def _list_index(where: Filter, list_part: list_selection.ListPart, keywords: str) -> str:
    """Return the index that serves a list of programs: one that has few of them, if there is one."""
    for field, index in (("externalId", _BY_EXTERNAL_ID), ("_id", BY_ID), (list_selection.UPDATED, _BY_UPDATE)):
        if field in where:
            return index
    if keywords:
        return _BY_SUFFIX
    return _BY_NAME if list_part.sort == ORDER else _BY_UPDATE


async def find_id_by_external_id(ctx: Context, external_id: str) -> ObjectId | None:
    """Return the identifier of the program with this identifier in another system, or None."""
    where = {"externalId": external_id}
    matching = await _programs.find(ctx, where, limit=1, fields=("_id",), hint=_BY_EXTERNAL_ID)
    return matching[0]["_id"] if matching else None


async def rewrite(
    ctx: Context,
    program_id: ObjectId,
    changed_fields: Callable[[program_models.StoredProgram], program_models.ProgramFields],
    version: int | None,
) -> program_models.StoredProgram | None:
    """Set the fields that `changed_fields` returns for the stored program. Returns None if there is no such program."""

    def mutate(stored: program_models.StoredProgram) -> Mapping[str, Any]:
        fields = changed_fields(stored)
        return {**fields, **search_fields({**stored, **fields})} if fields else fields

    return await _programs.rewrite(ctx, {"_id": program_id}, mutate, version=version)


def search_fields(program: Mapping[str, Any]) -> dict[str, Any]:
    """Return the private fields by which a program is sorted and searched."""
    texts = (program["name"], program["description"] or "", *program["tags"])
    return {"sortName": normalize(program["name"]), **search_fields_of(*texts)}


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
        if not await _programs.set_derived(ctx, {"_id": self.program_id}, change):
            raise NotFound("program")


async def list_page(
    ctx: Context,
    *,
    archived: bool,
    page: int,
    size: int,
    keywords: str = "",
    external_id: str | None = None,
    selection: list_selection.ListSelection = list_selection.ALL_ENTRIES,
    after: str | None = None,
) -> list_selection.Page[program_models.Program]:
    """Return one page of programs, sorted by name, or those after a cursor.

    `external_id` is the identifier in another system.
    """
    keywords = normalize(keywords)
    filters = {"archived": archived, "keywords": keywords, "externalId": external_id, **selection.for_cursor()}
    order = selection.order(ORDER)
    list_part = list_selection.ListPart(
        ctx, "programs", filters, order, page=page, size=size, after=after, private=PRIVATE_ORDER
    )
    where = {"isArchived": archived, **selection.filter()}
    if external_id is not None:
        where["externalId"] = external_id
    stored, total = await find_page(ctx, where, list_part, keywords=keywords)
    docs, cursor = list_part.take_page(stored)
    return list_part.numbered(await _present(ctx, docs), total, cursor)


list_ids_after = _programs.list_ids_after


async def require(ctx: Context, program_id: ObjectId) -> program_models.ProgramName:
    """Return the name of a program. Raises NotFound."""
    if (program := await _programs.find_one(ctx, {"_id": program_id}, ("name",))) is None:
        raise NotFound("program")
    return program


async def get_names(ctx: Context, ids: Sequence[ObjectId]) -> dict[ObjectId, str]:
    """Return the names of the company's programs among `ids`."""
    named = await _programs.find(ctx, {"_id": {"$in": list(ids)}}, fields=("name",), hint=BY_ID)
    return {program["_id"]: program["name"] for program in named}


async def get(ctx: Context, program_id: ObjectId) -> program_models.Program:
    """Return a program. Raises NotFound."""
    return await _present_one(ctx, await _programs.find_one(ctx, {"_id": program_id}))


async def get_by_external_id(ctx: Context, external_id: str) -> program_models.Program:
    """Return the program with an identifier in another system. Raises NotFound."""
    return await get(ctx, require_found(await find_id_by_external_id(ctx, external_id), "program"))


async def create(ctx: Context, program: program_models.ProgramInput) -> program_models.Program:
    """Create a program without blocks."""
    new = {**external_identity.stored_fields(program), **search_fields(program), "isArchived": False}
    stored = await _programs.insert(ctx, new)
    return {**stored, **external_identity.present_identity(stored), "numberOfDaysWithWorkouts": 0}


@transactional
async def duplicate(ctx: Context, program_id: ObjectId) -> program_models.Program:
    """Create a copy of a program with all its blocks. Raises NotFound."""
    source = await get(ctx, program_id)
    name = f"{source['name'][: NAME_LENGTH - len(_COPY)]}{_COPY}"
    details: program_models.ProgramInput = {"name": name, "description": source["description"], "tags": source["tags"]}
    copy = await create(ctx, details)
    blocks = await workouts.list_stored_blocks(ctx, ProgramPlan(program_id))
    plans: list[BlockPlan] = [{**plan_of(block, block["items"]), "day": block["day"]} for block in blocks]
    await batches.write(ctx, ProgramPlan(copy["_id"]), batches.Batch(created=plans), [])
    return await get(ctx, copy["_id"])


async def update(
    ctx: Context, program_id: ObjectId, change: program_models.ProgramChange, *, only_differences: bool = False
) -> program_models.Program:
    """Change the fields of a program that are sent. Raises NotFound, and Conflict if it has changed since `version`.

    With `only_differences`, fields that have these values already are not changes.
    """
    fields = cast(
        "program_models.ProgramFields", external_identity.stored_fields(take(program_models.ProgramInput, change))
    )

    def changed_fields(stored: program_models.StoredProgram) -> program_models.ProgramFields:
        return (
            cast("program_models.ProgramFields", external_identity.find_differences(stored, fields))
            if only_differences
            else fields
        )

    return await _present_one(ctx, await rewrite(ctx, program_id, changed_fields, change.get("version")))


async def upsert_external(
    ctx: Context,
    external_id: str,
    sent: program_models.ProgramChange,
    complete: Callable[[], program_models.ProgramInput],
) -> external_identity.Upserted:
    """Change the program with this identifier in another system, or create one of what `complete` returns.

    What is stored already is not a change. Raises what `change` and core's `upsert` raise.
    """
    return await external_identity.upsert(
        ctx,
        lambda tx: find_id_by_external_id(tx, external_id),
        lambda tx, program_id: update(tx, program_id, sent, only_differences=True),
        lambda tx: create(tx, {**complete(), "externalId": external_id}),
        (PROGRAMS.CREATE, PROGRAMS.EDIT),
    )


async def set_archived(
    ctx: Context, program_id: ObjectId, *, archived: bool, version: int | None = None
) -> program_models.Program:
    """Archive or restore a program; repeating is harmless.

    Raises NotFound, and Conflict if the program has changed since `version`.
    """

    def changed_fields(stored: program_models.StoredProgram) -> program_models.ProgramFields:
        return {} if stored["isArchived"] == archived else {"isArchived": archived}

    return await _present_one(ctx, await rewrite(ctx, program_id, changed_fields, version))


async def is_assigned(ctx: Context, program_id: ObjectId, customer_id: ObjectId, start: str) -> bool:
    """Return whether the client has a block of the program on any of its days, day 1 on `start`.

    Raises NotFound for the program or the client, Forbidden, and InvalidFields if a date would leave the calendar.
    """
    await ClientCalendar(customer_id).require_access(ctx)
    dates = [str(block["date"]) for block in (await get_dated(ctx, program_id, start)).blocks]
    return bool(dates) and await workouts.has_program_block(ctx, customer_id, program_id, min(dates), max(dates))


async def get_dated(
    ctx: Context, program_id: ObjectId, start: str, weekdays: Collection[int] | None = None
) -> program_models.DatedProgram:
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
    return program_models.DatedProgram(program, start, dated, sorted(weekdays) if weekdays else None, span)


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
    if await _programs.delete(ctx, {"_id": program_id}) is None:
        raise NotFound("program")
    await workouts.delete_all(ctx, ProgramPlan(program_id))
    await ctx.publish(program_models.ProgramDeleted(program_id))


async def _present_one(ctx: Context, program: program_models.StoredProgram | None) -> program_models.Program:
    if program is None:
        raise NotFound("program")
    return (await _present(ctx, [program]))[0]


async def _present(ctx: Context, programs: Sequence[program_models.StoredProgram]) -> list[program_models.Program]:
    counts = await workouts.count_program_workout_days(ctx, [program["_id"] for program in programs])
    return [
        {
            **program,
            **external_identity.present_identity(program),
            "numberOfDaysWithWorkouts": counts.get(program["_id"], 0),
        }
        for program in programs
    ]
