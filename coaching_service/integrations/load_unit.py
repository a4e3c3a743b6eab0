"""Converting all loads of a company to another unit, in the background.

Each client, program and template is converted in one transaction with the position of the conversion, so that one that
was interrupted continues with the first that is not converted, and none is converted twice.
See docs/decisions/units-of-loads.md.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Annotated, Literal, NamedTuple, TypedDict, cast

from coaching_service.core import audit
from coaching_service.core.auth import owner
from coaching_service.core.database.context import Context, Services, in_transaction, transactional
from coaching_service.core.errors import Conflict
from coaching_service.core.fields import Default, Description
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.integrations import background_jobs
from coaching_service.people import account, jobs
from coaching_service.people.customers import service as customers
from coaching_service.progress import personal_records
from coaching_service.training import programs, templates, training_maxes
from coaching_service.training.workouts.blocks import items as block_items
from coaching_service.training.workouts.blocks.service import ClientCalendar

# --- The conversion of a company's loads as it is sent ----------------------------------------------------------------


class LoadUnitConversion(TypedDict):
    """The unit that all loads are converted to."""

    loadUnit: Annotated[account.LoadUnit, Description("The new unit of all loads.")]
    dryRun: Annotated[bool, Default(False), Description("Whether to count what would be converted only.")]


class ConversionWork(TypedDict):
    """What the next step of a conversion of loads needs.

    `entry` and `record` are its position: what is converted (clients, programs, templates) and how many of it have
    been; `last` is the last of them.
    """

    isDryRun: bool
    loadUnit: account.LoadUnit
    entry: int
    record: int
    last: ObjectId | None
    converted: dict[str, int]


CONVERT = "convert_load_unit"
_OPERATION = "convertLoadUnit"
_STEP_SECONDS = queue.STEP_SECONDS
_AT_ONCE = 50
_FIRST_STEP = timedelta(seconds=1)  # by then no process uses the company as it was before
_WAIT = timedelta(seconds=5)


@transactional
async def begin(ctx: Context, load_unit: Literal["kg", "lb"], *, dry_run: bool) -> jobs.StoredJob:
    """Queue the conversion of the caller's company, and return its job.

    Raises Conflict if the loads are in that unit, while another conversion is not finished, and unless it is a dry run,
    while an import is not.
    """
    if (await account.get_account(ctx))["loadUnit"] == load_unit:
        raise Conflict(f"The loads are in {load_unit} already", code="LOAD_UNIT_UNCHANGED")
    if not dry_run:
        await jobs.require_none_unfinished(ctx, "import")
    work: ConversionWork = {
        "isDryRun": dry_run,
        "loadUnit": load_unit,
        "entry": 0,
        "record": 0,
        "last": None,
        "converted": {},
    }
    job = await jobs.create(ctx, {"kind": "load_unit", "work": work})
    if not dry_run:
        await account.begin_conversion(ctx, {"jobId": job["_id"], "loadUnit": load_unit})
    await queue.enqueue(ctx, CONVERT, {"jobId": job["_id"]}, after=timedelta(0) if dry_run else _FIRST_STEP)
    await audit.record(ctx, "load_unit.conversion_started", job["_id"], "dry run" if dry_run else None)
    return job


async def run_step(services: Services, job: queue.Job) -> queue.RunAgain | None:
    """Continue a conversion for a moment."""
    if (step := await jobs.get_step(services, job, _OPERATION, background_jobs.end_without_requester)) is None:
        return None
    ctx, stored = step
    try:
        if not cast("ConversionWork", stored["work"])["isDryRun"]:
            await jobs.require_none_unfinished(ctx, "import")
        return await _continue(ctx, stored)
    except (Conflict, jobs.Superseded):  # an import that began at the same time, or a step whose lease had ended
        return queue.RunAgain(_WAIT)


class _Target(NamedTuple):
    """One kind of what is converted: how the next ones are listed, and how one is converted."""

    list_after: Callable[[Context, ObjectId | None, int], Awaitable[list[ObjectId]]]
    convert: Callable[[Context, ObjectId, account.Conversion], Awaitable[Mapping[str, int]]]


async def _continue(ctx: Context, job: jobs.StoredJob) -> queue.RunAgain | None:
    end = time.monotonic() + _STEP_SECONDS
    work = cast("ConversionWork", job["work"])
    convert = partial(account.convert_stored_load, unit=ctx.caller.company.load_unit, target=work["loadUnit"])
    conversion = account.Conversion(convert, work["loadUnit"], is_stored=not work["isDryRun"])
    if job["status"] == "queued":
        total = 0
        for target in _TARGETS:
            last: ObjectId | None = None
            while ids := await target.list_after(ctx, last, 20 * _AT_ONCE):
                last, total = ids[-1], total + len(ids)
        await _store(ctx, job, {"status": "running", "total": total})
    while work["entry"] < len(_TARGETS):
        ids = await _TARGETS[work["entry"]].list_after(ctx, work["last"], _AT_ONCE)
        for each in ids:
            work = await _convert(ctx, job, work, each, conversion)
            if time.monotonic() > end:
                return queue.RunAgain()
        if not ids:
            work = {**work, "entry": work["entry"] + 1, "record": 0, "last": None}
            await _store(ctx, job, {"work": work})
            job["work"] = work
    result = {"dryRun": work["isDryRun"], "loadUnit": work["loadUnit"], "converted": work["converted"]}

    async def end_job(tx: Context) -> None:
        await jobs.update(tx, job, {"status": "done", "result": result})
        if not work["isDryRun"]:  # the company has the new unit from then on
            await account.end_conversion(tx, {"jobId": job["_id"], "loadUnit": work["loadUnit"]})
            await audit.record(tx, "load_unit.converted", job["_id"])

    await in_transaction(ctx, end_job)
    return None


async def _convert(
    ctx: Context, job: jobs.StoredJob, work: ConversionWork, identifier: ObjectId, conversion: account.Conversion
) -> ConversionWork:
    """Convert one client, program or template, and store the position after it; returns this position."""
    changed = work

    async def convert(tx: Context) -> None:
        nonlocal changed
        counts = await _TARGETS[work["entry"]].convert(tx, identifier, conversion)
        converted = {name: work["converted"].get(name, 0) + count for name, count in counts.items()}
        changed = {
            **work,
            "record": work["record"] + 1,
            "last": identifier,
            "converted": {**work["converted"], **converted},
        }
        await jobs.update(tx, job, {"work": changed}, done=1)

    await in_transaction(ctx, convert)
    job["work"] = changed
    return changed


async def _store(ctx: Context, job: jobs.StoredJob, fields: Mapping[str, object]) -> None:
    await in_transaction(ctx, lambda tx: jobs.update(tx, job, fields))


async def _convert_client(ctx: Context, customer_id: ObjectId, conversion: account.Conversion) -> Mapping[str, int]:
    if conversion.is_stored:
        await customers.lock_and_mark_figures(ctx, customer_id)
    of_workouts = await block_items.convert_blocks(ctx, ClientCalendar(customer_id), conversion)
    of_records, estimates = await personal_records.convert_client(ctx, customer_id, conversion)
    of_maxes = await training_maxes.convert_client(ctx, customer_id, conversion, estimates)
    if conversion.is_stored:
        await customers.set_loads_in(ctx, customer_id, conversion.load_unit)
    return {
        "workouts": of_workouts.documents,
        "personalRecords": of_records.documents,
        "trainingMaxes": of_maxes.documents,
        "loads": of_workouts.loads + of_records.loads + of_maxes.loads,
    }


async def _convert_program(ctx: Context, program_id: ObjectId, conversion: account.Conversion) -> Mapping[str, int]:
    converted = await block_items.convert_blocks(ctx, programs.ProgramPlan(program_id), conversion)
    return {"workouts": converted.documents, "loads": converted.loads}


async def _convert_template(ctx: Context, template_id: ObjectId, conversion: account.Conversion) -> Mapping[str, int]:
    converted = await templates.convert_template(ctx, template_id, conversion)
    return {"templates": converted.documents, "loads": converted.loads}


# Clients come first: a request that began before the conversion cannot copy from what is converted to what is not.
_TARGETS = (
    _Target(customers.list_ids_after, _convert_client),
    _Target(programs.list_ids_after, _convert_program),
    _Target(templates.list_ids_after, _convert_template),
)


async def require_no_loads(ctx: Context, _: account.LoadUnitChanged) -> None:
    """Raise Conflict if any load is stored, in the transaction that changes the unit.

    What is still stored of clients that have been deleted does not count: it is being erased.
    """
    if await templates.has_loads(ctx):
        raise account.load_unit_locked()
    deleted: list[ObjectId] = []
    for find_with_load in (block_items.find_with_load, personal_records.find_with_load, training_maxes.find_with_load):
        while (owner := await find_with_load(ctx, deleted)) is not None:
            (customer_id,) = owner
            if customer_id is None or customer_id in await customers.find_references(ctx, [customer_id]):
                raise account.load_unit_locked()
            deleted.append(customer_id)


# --- The conversion of a company's loads over REST --------------------------------------------------------------------


routes = Routes("/coach/account/load-unit", tag="Account")


@routes.post(
    "",
    access=owner(),
    returns=background_jobs.BACKGROUND_JOB,
    status=202,
    errors=(Conflict,),
    example={"loadUnit": "lb", "dryRun": True},
)
async def convert_load_unit(ctx: Context, body: LoadUnitConversion) -> jobs.StoredJob:
    """Convert all loads to another unit.

    A job converts planned and done sets, records, training maximums, programs and templates, and rounds to 0.1;
    GET /coach/jobs/{jobId} returns its progress. Until it is done, all other operations of the company are 503 with
    `Retry-After`. Changes from before cannot be undone afterwards if they have loads. A dry run counts what would be
    converted, and refuses nothing. 409 while an import is not finished.
    """
    return await begin(ctx, body["loadUnit"], dry_run=body["dryRun"])
