"""Training programs: workout blocks by day, which can be assigned to clients."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict, cast

from marshmallow import ValidationError, validates_schema

from coaching_service.core import external_identity, list_selection, validation
from coaching_service.core import fields as core_fields
from coaching_service.core.auth import PROGRAMS, coach, coach_with_any
from coaching_service.core.database import declared
from coaching_service.core.database.context import Context, transactional
from coaching_service.core.database.documents import Documents, Filter
from coaching_service.core.errors import NotFound, require_found
from coaching_service.core.events import DomainEvent, EventType
from coaching_service.core.external_identity import (
    ExternalId,
    Identity,
    IdentityFields,
    IdentityInput,
    IdentityResult,
    StoredIdentity,
    Upserted,
)
from coaching_service.core.fields import Description, checks_of, input_of, output_of, query_of, take
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import RECORDS, Page, RecordQuery, page_of, part_of
from coaching_service.core.query import QueryInteger
from coaching_service.core.text import keyword_filter, normalize, search_fields_of
from coaching_service.core.validation import NAME_LENGTH, DryRun, Input, complete_upsert, patch_of, upsert_of
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks import models as block_models
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import (
    BlockItems,
    BlockPlan,
    BlockPosition,
    ProgramCopy,
    StoredBlock,
    plan_of,
)
from coaching_service.training.workouts.blocks.service import ClientCalendar, ScheduleOwner
from coaching_service.training.workouts.shared_routes import declare_block_routes

# --- Programs as they are sent, stored and read -----------------------------------------------------------------------


LAST_DAY = 3_660


class ProgramBlockCopy(TypedDict):
    """The day of a copy."""

    day: Annotated[int, validation.Integer(minimum=1, maximum=LAST_DAY), Description(argument="The day, from 1.")]


class ProgramBlockFields(block_models.BlockName, ProgramBlockCopy, block_models.BlockSettings):
    """The fields of a workout block of a program."""


class NewProgramBlock(ProgramBlockFields, BlockItems):
    """A workout block with items for a program, created all or nothing."""


class _Details(TypedDict):
    name: Annotated[str, validation.Text()]
    description: Annotated[
        str | None,
        validation.Text(max_length=validation.TEXT_LENGTH, allow_blank=True),
        Description(argument="What it is for."),
    ]
    tags: Annotated[list[str], validation.StringList(), core_fields.Default(list)]


class ProgramInput(_Details, IdentityInput):
    """A program to create."""


class _Program(_Details):
    isArchived: bool


class _ProgramFields(_Program, StoredIdentity):
    pass


class StoredProgram(_ProgramFields, declared.Stored):
    """A program in the database; its blocks are stored by training/workouts."""


class _Days(TypedDict):
    numberOfDaysWithWorkouts: Annotated[
        int, Description("The number of days with a block that is not rest and has an item.")
    ]


class Program(_Program, _Days, Identity, declared.Stored):
    """Workout blocks by day."""


class ProgramQuery(RecordQuery):
    """The filters of the program list."""

    archived: bool
    keywords: NotRequired[Annotated[str, Description("Every word must occur in name, description or tag.")]]


class ProgramDayRange(block_models.BlockFilters):
    """`startDay` and `endDay`, both included; days count from 1, a start of 0 is accepted."""

    startDay: Annotated[int, QueryInteger(minimum=0)]
    endDay: Annotated[int, QueryInteger(minimum=0)]


class VersionReference(TypedDict):
    """The version that a change without other content is based on."""

    version: NotRequired[Annotated[int, validation.Version()]]


# The fields of a program to change, and the version the change is based on; those of a stored program to set.
ProgramChange: TypeAlias = core_fields.Change[ProgramInput]
ProgramFields: TypeAlias = core_fields.Partial[_ProgramFields]

# A program as assistants read it in a list.
ProgramName: TypeAlias = core_fields.Part[StoredProgram, Literal["_id", "name"]]


@dataclass(frozen=True)
class DatedProgram:
    """A program whose blocks have dates, day 1 on `start`, or on `weekdays` (1 Monday to 7 Sunday) from then on.

    `days` is the number of days from the first to the last block in the program itself.
    """

    program: ProgramName
    start: str
    blocks: list[BlockPlan]
    weekdays: list[int] | None = None
    days: int = 0


# --- Domain events about programs -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProgramDeleted(DomainEvent):
    """A program was deleted; what was assigned from it remains."""

    program_id: ObjectId


# --- Schemas ----------------------------------------------------------------------------------------------------------


class _DaysInOrder(Input):
    @validates_schema
    def require_order(self, data: Mapping[str, int], **_: Any) -> None:
        """Require the end not to be before the start."""
        if data["endDay"] < data["startDay"]:
            raise ValidationError("must not be before startDay", "endDay")


PROGRAM_QUERY = query_of(ProgramQuery, RECORDS)
DAY_RANGE = query_of(ProgramDayRange, _DaysInOrder)
NEW_PROGRAM = input_of(ProgramInput, IdentityFields, name="NewProgram")
PROGRAM = output_of(Program, IdentityResult)
PROGRAM_BLOCK_COPY = input_of(ProgramBlockCopy)
# The items come before the other fields, as in earlier API documents.
NEW_PROGRAM_BLOCK = input_of(NewProgramBlock, IdentityFields, input_of(BlockItems), DryRun)


# --- Programs in the database; their blocks are stored with all others, by training/workouts --------------------------


_EVENT_TYPES: dict[declared.Action, EventType] = {
    "created": "program.created",
    "changed": "program.updated",
    "deleted": "program.deleted",
}


def _texts(program: Mapping[str, Any]) -> Iterator[declared.SearchedText]:
    text = "\n".join([program.get("description") or "", *program.get("tags", ())])
    yield declared.SearchedText("programs", program.get("name", ""), text, program.get("createdAt"))


_programs = Documents[StoredProgram](
    "programs",
    (
        declared.Index(("isArchived", "sortName", "_id")),
        declared.Index(("isArchived", "suf")),
        declared.Index(("_id",)),
        external_identity.BY_EXTERNAL_ID,
        declared.Index(("isArchived", *list_selection.BY_UPDATE)),
    ),
    private=("companyId", "sortName", "search", "suf", "scheduleChanges"),
    history=declared.History(
        "program", lambda action, known, _: {"type": _EVENT_TYPES[action], "data": {"programId": known["_id"]}}
    ),
    transfer=declared.Portable(
        StoredProgram,
        declared.LIBRARY,
        checks={**external_identity.IDENTITY_CHECKS, **checks_of(ProgramInput)},
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


async def find_id_by_external_id(ctx: Context, external_id: str) -> ObjectId | None:
    """Return the identifier of the program with this identifier in another system, or None."""
    where = {"externalId": external_id}
    matching = await _programs.find(ctx, where, limit=1, fields=("_id",), hint=_BY_EXTERNAL_ID)
    return matching[0]["_id"] if matching else None


async def rewrite(
    ctx: Context,
    program_id: ObjectId,
    changed_fields: Callable[[StoredProgram], ProgramFields],
    version: int | None,
) -> StoredProgram | None:
    """Set the fields that `changed_fields` returns for the stored program. Returns None if there is no such program."""

    def mutate(stored: StoredProgram) -> Mapping[str, Any]:
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


routes = Routes("/coach/programs", tag="Programs")
block_routes = Routes("/coach/programs/{programId}", tag="Program workouts", locks="program")


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
) -> Page[Program]:
    """Return one page of programs, sorted by name, or those after a cursor.

    `external_id` is the identifier in another system.
    """
    keywords = normalize(keywords)
    filters = {"archived": archived, "keywords": keywords, "externalId": external_id, **selection.for_cursor()}
    order = selection.order(ORDER)
    list_part = list_selection.ListPart(
        ctx, "programs", filters, order, page=page, size=size, after=after, private=PRIVATE_ORDER
    )
    where: Filter = {"isArchived": archived, **selection.filter()}
    if external_id is not None:
        where["externalId"] = external_id
    stored, total = list[StoredProgram](), 0
    if "\0" not in keywords:
        # An index that serves few programs, if there is one.
        selecting = (("externalId", _BY_EXTERNAL_ID), ("_id", BY_ID), (list_selection.UPDATED, _BY_UPDATE))
        by_order = _BY_SUFFIX if keywords else _BY_NAME if list_part.sort == ORDER else _BY_UPDATE
        hint = next((index for name, index in selecting if name in where), by_order)
        where |= keyword_filter(keywords) if keywords else {}
        stored, total = await list_part.read(ctx, _programs, where, hint=hint)
    docs, cursor = list_part.take_page(stored)
    return list_part.numbered(await _present(ctx, docs), total, cursor)


@routes.get(
    "",
    access=coach(PROGRAMS.VIEW),
    query=PROGRAM_QUERY(),
    returns=page_of(PROGRAM),
    selects_fields=True,
)
async def list_programs(ctx: Context, query: ProgramQuery) -> Page[Program]:
    """List programs by name."""
    return await list_page(
        ctx,
        archived=query["archived"],
        keywords=query.get("keywords", ""),
        external_id=query.get("externalId"),
        **part_of(query),
    )


@routes.post(
    "",
    access=coach(PROGRAMS.CREATE),
    body=NEW_PROGRAM(),
    returns=PROGRAM,
    example={"name": "First twelve weeks", "description": "Three days a week", "tags": ["beginner"]},
    operation_id="createProgram",
)
async def create(ctx: Context, body: ProgramInput) -> Program:
    """Create a program."""
    new = {**external_identity.stored_fields(body), **search_fields(body), "isArchived": False}
    stored = await _programs.insert(ctx, new)
    return {**stored, **external_identity.present_identity(stored), "numberOfDaysWithWorkouts": 0}


@routes.put(
    "/by-external-id/{externalId}",
    access=coach_with_any(PROGRAMS.CREATE, PROGRAMS.EDIT),
    path_fields={"externalId": ExternalId()},
    body=upsert_of(NEW_PROGRAM, name="ProgramUpsert"),
    returns=PROGRAM,
    rolls_back=True,
    example={"name": "First twelve weeks", "tags": ["beginner"]},
)
async def upsert_program(ctx: Context, external_id: str, body: ProgramChange) -> Upserted:
    """Create or change the program with an external identifier.

    201 if it is new; otherwise 200, as changed by PATCH, and unchanged if it has all of it already. It needs the
    permission of what it does.
    """
    return await external_identity.upsert(
        ctx,
        lambda tx: find_id_by_external_id(tx, external_id),
        lambda tx, program_id: update(tx, program_id, body, only_differences=True),
        lambda tx: create(tx, complete_upsert(NEW_PROGRAM(), body) | {"externalId": external_id}),
        (PROGRAMS.CREATE, PROGRAMS.EDIT),
    )


@routes.get(
    "/by-external-id/{externalId}",
    access=coach(PROGRAMS.VIEW),
    path_fields={"externalId": ExternalId()},
    returns=PROGRAM,
    selects_fields=True,
    operation_id="getProgramByExternalId",
)
async def get_by_external_id(ctx: Context, external_id: str) -> Program:
    """Read the program with an external identifier."""
    return await get(ctx, require_found(await find_id_by_external_id(ctx, external_id), "program"))


@routes.get(
    "/{programId}", access=coach(PROGRAMS.VIEW), returns=PROGRAM, selects_fields=True, operation_id="getProgram"
)
async def get(ctx: Context, program_id: ObjectId) -> Program:
    """Read a program."""
    return await _present_one(ctx, await _programs.find_one(ctx, {"_id": program_id}))


@routes.patch(
    "/{programId}",
    access=coach(PROGRAMS.EDIT),
    locks="program",
    body=patch_of(NEW_PROGRAM, name="ProgramChange"),
    returns=PROGRAM,
    example={"tags": ["strength"], "version": 0},
    operation_id="updateProgram",
)
async def update(ctx: Context, program_id: ObjectId, body: ProgramChange, *, only_differences: bool = False) -> Program:
    """Change a program."""
    fields = cast("ProgramFields", external_identity.stored_fields(take(ProgramInput, body)))

    def changed_fields(stored: StoredProgram) -> ProgramFields:  # what has these values already is then no change
        return cast("ProgramFields", external_identity.find_differences(stored, fields)) if only_differences else fields

    return await _present_one(ctx, await rewrite(ctx, program_id, changed_fields, body.get("version")))


@routes.delete("/{programId}", access=coach(PROGRAMS.DELETE), locks="program", operation_id="deleteProgram")
@transactional
async def delete(ctx: Context, program_id: ObjectId) -> None:
    """Delete a program with its blocks.

    Blocks that were assigned from it remain on the clients' calendars.
    """
    require_found(await _programs.delete(ctx, {"_id": program_id}), "program")
    await workouts.delete_all(ctx, ProgramPlan(program_id))
    await ctx.publish(ProgramDeleted(program_id))


list_ids_after = _programs.list_ids_after


async def require(ctx: Context, program_id: ObjectId) -> ProgramName:
    """Return the name of a program. Raises NotFound."""
    return require_found(await _programs.find_one(ctx, {"_id": program_id}, ("name",)), "program")


async def get_names(ctx: Context, ids: Sequence[ObjectId]) -> dict[ObjectId, str]:
    """Return the names of the company's programs among `ids`."""
    named = await _programs.find(ctx, {"_id": {"$in": list(ids)}}, fields=("name",), hint=BY_ID)
    return {program["_id"]: program["name"] for program in named}


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


async def set_archived(ctx: Context, program_id: ObjectId, *, archived: bool, version: int | None = None) -> Program:
    """Archive or restore a program; repeating is harmless.

    Raises NotFound, and Conflict if the program has changed since `version`.
    """

    def changed_fields(stored: StoredProgram) -> ProgramFields:
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
) -> DatedProgram:
    """Return a program with dates: day 1 on `start`.

    With `weekdays` (1 Monday to 7 Sunday) only its days with work, one after another on the next dates of these
    weekdays. Raises NotFound, and InvalidFields if a date would leave the calendar.
    """
    program = await require(ctx, program_id)
    blocks = await workouts.list_stored_blocks(ctx, ProgramPlan(program_id))
    dates = date_blocks(blocks, start, weekdays)
    blocks = [block for block in blocks if block["_id"] in dates]
    dated: list[BlockPlan] = [
        {
            **plan_of(block, block["items"]),
            **copy_of(block),
            "date": dates[block["_id"]],
            "day": block["day"],
            "programId": block["programId"],
        }
        for block in blocks
    ]
    days = [block["day"] or 1 for block in blocks]
    span = max(days) - min(days) + 1 if days else 0
    return DatedProgram(program, start, dated, sorted(weekdays) if weekdays else None, span)


def date_blocks(blocks: Sequence[StoredBlock], start: str, weekdays: Collection[int] | None) -> dict[ObjectId, str]:
    """Return the dates of the blocks of a program, as `get_dated` does, by identifier.

    With `weekdays` rest days have none. Raises InvalidFields if a date would leave the calendar.
    """
    if weekdays:
        blocks = [block for block in blocks if not block["isRest"]]
        dates, current = dict[int, str](), start
        for day in sorted({block["day"] or 1 for block in blocks}):
            if dates:
                current = workouts.shift_date(current, 1, "startDate")
            while date.fromisoformat(current).isoweekday() not in weekdays:
                current = workouts.shift_date(current, 1, "startDate")
            dates[day] = current
    else:
        days = {block["day"] or 1 for block in blocks}
        dates = {day: workouts.shift_date(start, day - 1, "startDate") for day in days}
    return {block["_id"]: dates[block["day"] or 1] for block in blocks}


def copy_of(block: StoredBlock) -> ProgramCopy:
    """Return what a client's copy of a block of a program remembers of it."""
    return {"programBlockId": block["_id"], "programBlockVersion": block["version"]}


async def _present_one(ctx: Context, program: StoredProgram | None) -> Program:
    return (await _present(ctx, [require_found(program, "program")]))[0]


async def _present(ctx: Context, programs: Sequence[StoredProgram]) -> list[Program]:
    counts = await workouts.count_program_workout_days(ctx, [program["_id"] for program in programs])
    return [
        {
            **program,
            **external_identity.present_identity(program),
            "numberOfDaysWithWorkouts": counts.get(program["_id"], 0),
        }
        for program in programs
    ]


# --- REST -------------------------------------------------------------------------------------------------------------


@routes.put(
    "/{programId}/archive",
    access=coach(PROGRAMS.EDIT),
    locks="program",
    body_optional=True,
    returns=PROGRAM,
    example={},
)
async def archive_program(ctx: Context, program_id: ObjectId, body: VersionReference) -> Program:
    """Archive a program.

    Repeating is harmless.
    """
    return await set_archived(ctx, program_id, archived=True, version=body.get("version"))


@routes.put(
    "/{programId}/unarchive",
    access=coach(PROGRAMS.EDIT),
    locks="program",
    body_optional=True,
    returns=PROGRAM,
    example={},
)
async def unarchive_program(ctx: Context, program_id: ObjectId, body: VersionReference) -> Program:
    """Restore an archived program.

    Repeating is harmless.
    """
    return await set_archived(ctx, program_id, archived=False, version=body.get("version"))


declare_block_routes(
    block_routes,
    ProgramPlan,
    PROGRAMS,
    range_query=DAY_RANGE(),
    new_block=NEW_PROGRAM_BLOCK(),
    block_change=patch_of(
        input_of(ProgramBlockFields, IdentityFields), input_of(BlockPosition), name="ProgramBlockChange"
    ),
    copy_target=PROGRAM_BLOCK_COPY(),
    block_example={"name": "Full body A", "day": 1},
)
