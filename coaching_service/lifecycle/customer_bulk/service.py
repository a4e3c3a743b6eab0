"""One change to many clients: in batches, each batch one transaction, so that every client succeeds or fails whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from coaching_service.core import idempotency
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import ServiceError
from coaching_service.core.idempotency import Claim, IdempotencyKeyReused
from coaching_service.core.ids import ObjectId
from coaching_service.library.metric_sets import service as metric_sets
from coaching_service.people.customers import bulk
from coaching_service.people.team import service as team
from coaching_service.progress.metrics import service as metrics
from coaching_service.training.programs import service as programs

BATCH = 1_000
# Assigning a program writes many blocks for each client: fewer at a time.
_CLIENT = 1

Apply = Callable[[Context, list[ObjectId]], Awaitable[Any]]
# Gives those to whom it cannot be done, and why.
Unfit = Callable[[Context, list[ObjectId]], Awaitable[dict[ObjectId, str]]]
# Called after each batch with what became of the clients so far.
OnProgress = Callable[["Result"], Awaitable[None]]


@dataclass
class Result:
    """What became of the clients asked for so far."""

    requested: int = 0
    ok: int = 0
    failed: list[Document] = field(default_factory=list)

    def fail(self, customer_id: ObjectId, code: str, message: object) -> None:
        """A client to whom nothing happened."""
        self.failed.append({"customerId": customer_id, "code": code, "message": str(message)})

    def answer(self) -> Document:
        """As it is sent."""
        return {"requested": self.requested, "ok": self.ok, "failed": self.failed}


async def list_selected(ctx: Context, selection: Document) -> list[ObjectId]:
    """The clients that a selection means at this moment, in their own order."""
    return sorted([customer_id async for ids in _selected(ctx, selection) for customer_id in ids])


async def archive(
    ctx: Context, selection: Document, *, archived: bool, on_progress: OnProgress | None = None
) -> Document:
    """Archive or restore clients."""
    return await _run(ctx, selection, lambda tx, ids: bulk.set_archived(tx, ids, archived=archived), on_progress)


async def add_groups(
    ctx: Context, selection: Document, groups: list[str], *, on_progress: OnProgress | None = None
) -> Document:
    """Put clients into groups; one who would be in too many fails."""

    async def overfull(tx: Context, ids: list[ObjectId]) -> dict[ObjectId, str]:
        return await bulk.find_over_group_limit(tx, ids, groups)

    return await _run(ctx, selection, lambda tx, ids: bulk.add_groups(tx, ids, groups), on_progress, unfit=overfull)


async def remove_groups(
    ctx: Context, selection: Document, groups: list[str], *, on_progress: OnProgress | None = None
) -> Document:
    """Take clients out of groups."""
    return await _run(ctx, selection, lambda tx, ids: bulk.remove_groups(tx, ids, groups), on_progress)


async def assign_trainer(
    ctx: Context, selection: Document, coach_id: ObjectId | None, *, on_progress: OnProgress | None = None
) -> Document:
    """Assign clients to a coach, or to nobody. Raises NotFound for an unknown coach."""

    async def require(tx: Context) -> None:
        if coach_id is not None:
            await team.require_coach(tx, coach_id)

    async def assign(tx: Context, ids: list[ObjectId]) -> None:
        await require(tx)  # who leaves while this goes on gets no more
        await bulk.assign_trainer(tx, ids, coach_id)

    await require(ctx)
    return await _run(ctx, selection, assign, on_progress)


async def assign_program(
    ctx: Context,
    selection: Document,
    program_id: ObjectId,
    start: str,
    *,
    claim: Claim | None = None,
    on_progress: OnProgress | None = None,
) -> Document:
    """Assign a program to clients from a date on; those to whom it was assigned under `claim` are `ok` as they are.

    Raises NotFound, BadRequest as programs.assign, KeyTaken when `claim` is another request's.
    """
    plan = await programs.load_dated(ctx, program_id, start)

    async def assign(tx: Context, ids: list[ObjectId]) -> None:
        for customer_id in ids:
            if claim is None or await idempotency.step(tx, claim, customer_id):
                await programs.add_to_calendar(tx, plan, customer_id)

    return await _run(ctx, selection, assign, on_progress, batch=_CLIENT)


async def assign_metrics_set(
    ctx: Context, selection: Document, set_id: ObjectId, *, on_progress: OnProgress | None = None
) -> Document:
    """Assign a metric set to clients. Raises NotFound for an unknown set."""
    await metric_sets.read(ctx, set_id)
    return await _run(ctx, selection, lambda tx, ids: metrics.assign_many(tx, ids, set_id), on_progress)


async def erase(ctx: Context, selection: Document, *, on_progress: OnProgress | None = None) -> Document:
    """Erase clients: gone at once for every reader, all that is theirs removed in the background."""
    return await _run(ctx, selection, bulk.erase, on_progress)


async def _none_unfit(_: Context, __: list[ObjectId]) -> dict[ObjectId, str]:
    return {}


async def _run(
    ctx: Context,
    selection: Document,
    apply: Apply,
    on_progress: OnProgress | None,
    *,
    batch: int = BATCH,
    unfit: Unfit = _none_unfit,
) -> Document:
    result = Result()
    async for ids in _selected(ctx, selection):
        result.requested += len(ids)
        for at in range(0, len(ids), batch):
            await _settle(ctx, ids[at : at + batch], apply, unfit, result, dry_run=selection["dryRun"])
            if on_progress is not None:
                await on_progress(result)
    return result.answer()


async def _settle(
    ctx: Context, ids: list[ObjectId], apply: Apply, unfit: Unfit, result: Result, *, dry_run: bool
) -> None:
    """Change those of `ids` that this coach may touch, all in one transaction, and note what became of each."""

    async def changed(tx: Context) -> tuple[dict[ObjectId, bool], dict[ObjectId, str]]:
        # Looked at in the transaction of the change: whoever is counted as `ok` is there, and is changed.
        found = await bulk.find_accessible(tx, ids)
        ours = [customer_id for customer_id in ids if found.get(customer_id)]
        without = await unfit(tx, ours)
        if (fit := [customer_id for customer_id in ours if customer_id not in without]) and not dry_run:
            await apply(tx, fit)
        return found, without

    try:
        found, without = await in_transaction(ctx, changed)
    except IdempotencyKeyReused:
        raise
    except ServiceError as error:
        for customer_id in ids:
            result.fail(customer_id, error.reason.upper().replace(" ", "_"), error.message)
        return
    for customer_id in ids:
        if (reason := _reason(customer_id, found, without)) is not None:
            result.fail(customer_id, *reason)
        else:
            result.ok += 1


def _reason(customer_id: ObjectId, found: dict[ObjectId, bool], without: dict[ObjectId, str]) -> tuple[str, str] | None:
    """Why nothing happened to a client: a code, and in words; None when it did."""
    if customer_id not in found:
        return "NOT_FOUND", "Customer not found"
    if not found[customer_id]:
        return "FORBIDDEN", "This client is assigned to another coach"
    return ("BAD_REQUEST", without[customer_id]) if customer_id in without else None


async def _selected(ctx: Context, selection: Document) -> AsyncIterator[list[ObjectId]]:
    """The clients asked for, each once, in batches; a filter finds only those this coach may touch."""
    if "ids" in selection:
        wanted = list(dict.fromkeys(selection["ids"]))
        for at in range(0, len(wanted), BATCH):
            yield wanted[at : at + BATCH]
        return
    excluded = set(selection.get("excludeIds", ()))
    async for ids in bulk.iterate_matching(ctx, selection["filter"], BATCH):
        yield [customer_id for customer_id in ids if customer_id not in excluded]
