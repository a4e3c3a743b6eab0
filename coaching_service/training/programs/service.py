"""What a coach does with programs."""

from __future__ import annotations

from dataclasses import dataclass

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Filter
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.pagination import Page, page_document, skip_of
from coaching_service.core.text import normalize
from coaching_service.people.activity import service as activity
from coaching_service.training.programs import store
from coaching_service.training.workouts import service as workouts
from coaching_service.training.workouts.owners import ClientCalendar


@dataclass(frozen=True)
class ProgramPlan:
    """A program as the owner of its blocks, by day."""

    program_id: ObjectId

    @property
    def where(self) -> Filter:
        """The program's own blocks, not those assigned from it."""
        return {"programId": self.program_id, "customerId": None}

    @property
    def slot(self) -> str:
        """A program's blocks are found by day."""
        return "day"

    async def check(self, ctx: Context) -> None:
        """Raise NotFound when the company has no such program."""
        await require(ctx, self.program_id)

    async def done_changed(self, ctx: Context, items: list[Document]) -> None:
        """Nothing is ever done of a program's own items."""

    async def rescheduled(self, ctx: Context) -> None:
        """Transactions that change one program's schedule run one after another."""
        if not await store.touch(ctx, self.program_id):
            raise NotFound("program")


async def page(ctx: Context, *, archived: bool, page: int, size: int, keywords: str = "") -> Page[Document]:
    """One page of programs by name."""
    docs, total = await store.page(
        ctx, archived=archived, keywords=normalize(keywords), skip=skip_of(page, size), limit=size
    )
    return page_document(await _counted(ctx, docs), total, page, size)


async def require(ctx: Context, program_id: ObjectId) -> Document:
    """The program's name. Raises NotFound."""
    if (program := await store.one(ctx, program_id, ("name",))) is None:
        raise NotFound("program")
    return program


async def read(ctx: Context, program_id: ObjectId) -> Document:
    """One program. Raises NotFound."""
    return await _one(ctx, await store.one(ctx, program_id))


async def create(ctx: Context, details: Document) -> Document:
    """A new program without blocks; `details`: name, description, tags."""
    return {**await store.add(ctx, {**details, "isArchived": False}), "numberOfDaysWithWorkouts": 0}


async def change(ctx: Context, program_id: ObjectId, details: Document) -> Document:
    """Change what is sent of a program. Raises NotFound, and Conflict when it has moved on since `version`."""
    fields = dict(details)
    version = fields.pop("version", None)
    return await _one(ctx, await store.rewrite(ctx, program_id, lambda _: fields, version))


async def set_archived(ctx: Context, program_id: ObjectId, *, archived: bool, version: int | None = None) -> Document:
    """Archive or restore a program; repeating is harmless.

    Raises NotFound, and Conflict when the program has been changed since `version`.
    """

    def mutate(stored: Document) -> Document:
        return {} if stored["isArchived"] == archived else {"isArchived": archived}

    return await _one(ctx, await store.rewrite(ctx, program_id, mutate, version))


async def assign(ctx: Context, program_id: ObjectId, customer_id: ObjectId, start: str) -> int:
    """Copy every block of a program onto a client's calendar, day 1 on `start`: all or none. Gives how many.

    Raises NotFound for the program or the client, Forbidden, BadRequest when a date would leave the calendar.
    """
    await ClientCalendar(customer_id).check(ctx)
    return await put(ctx, await plan(ctx, program_id, start), customer_id)


async def is_assigned(ctx: Context, program_id: ObjectId, customer_id: ObjectId, start: str) -> bool:
    """Whether the client has a block of the program on any of its days, day 1 on `start`. Raises as `assign`."""
    await ClientCalendar(customer_id).check(ctx)
    dates = [block["date"] for block in (await plan(ctx, program_id, start)).blocks]
    return bool(dates) and await workouts.is_assigned(ctx, customer_id, program_id, min(dates), max(dates))


@dataclass(frozen=True)
class Plan:
    """A program with dates: what is put onto a calendar."""

    program: Document
    start: str
    blocks: list[Document]


async def plan(ctx: Context, program_id: ObjectId, start: str) -> Plan:
    """A program's blocks with dates, day 1 on `start`. Raises NotFound, BadRequest as `assign`."""
    program = await require(ctx, program_id)
    blocks = await workouts.stored_blocks(ctx, ProgramPlan(program_id))
    return Plan(
        program, start, [block | {"date": workouts.later(start, block["day"] - 1, "startDate")} for block in blocks]
    )


async def put(ctx: Context, plan: Plan, customer_id: ObjectId) -> int:
    """Put a plan onto the calendar of a client who has been checked: all of it or nothing. Gives how many blocks."""

    async def assigned(tx: Context) -> int:
        count = await workouts.add_many(tx, ClientCalendar(customer_id), plan.blocks)
        await activity.record_event(
            *(tx, "program_assigned", customer_id, ObjectId()),
            programId=plan.program["_id"],
            programName=plan.program["name"],
            startDate=plan.start,
            blocks=count,
        )
        return count

    return await in_transaction(ctx, assigned)


async def remove(ctx: Context, program_id: ObjectId) -> None:
    """Delete a program with its blocks; blocks already assigned from it stay. Raises NotFound."""

    async def removed(tx: Context) -> None:
        if not await store.remove(tx, program_id):
            raise NotFound("program")
        await workouts.remove_all(tx, ProgramPlan(program_id))

    await in_transaction(ctx, removed)


async def _one(ctx: Context, program: Document | None) -> Document:
    if program is None:
        raise NotFound("program")
    return (await _counted(ctx, [program]))[0]


async def _counted(ctx: Context, programs: list[Document]) -> list[Document]:
    """Stored programs as they are read, with the number of their days with workouts."""
    counts = await workouts.program_workout_days(ctx, [program["_id"] for program in programs])
    return [{**program, "numberOfDaysWithWorkouts": counts.get(program["_id"], 0)} for program in programs]
