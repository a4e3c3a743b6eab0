"""Erasing all data of a deleted client or company, in bounded steps that continue after a restart."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from math import nan
from typing import TypedDict

from coaching_service.core import idempotency
from coaching_service.core.database import files
from coaching_service.core.database.across_companies import erase_batch
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.declared import Index, NotExported, Unsharded
from coaching_service.core.database.documents import Documents, now, registry
from coaching_service.core.errors import NotFound, Unavailable
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue, worker
from coaching_service.core.jobs.queue import Job, RunAgain, Steps
from coaching_service.core.jobs.worker import for_each_alone
from coaching_service.core.metrics import reading_in_time
from coaching_service.installation.backup.stores import BackupError, Store
from coaching_service.lifecycle.administration import Operator
from coaching_service.people import account
from coaching_service.people.account import CompanyDeleted
from coaching_service.people.customers import bulk, retention
from coaching_service.people.customers.models import CustomersDeleted

ERASE_CUSTOMER = "erase_customer"
BATCH = 500
FILES = 20
# A request that read the client just before the deletion may still write: a second pass erases what it wrote.
_SECOND_PASS = timedelta(minutes=2)


async def queue_erasure(ctx: Context, event: CustomersDeleted) -> None:
    """Queue the erasure of deleted clients, and delete the stored responses about them at once."""
    await idempotency.delete_responses(ctx, event.customer_ids)
    jobs = [{"companyId": ctx.company_id, "customerId": customer_id} for customer_id in event.customer_ids]
    await queue.enqueue_each(ctx, ERASE_CUSTOMER, {ObjectId(): (arguments, None) for arguments in jobs})


async def erase_company(services: Services, job: Job) -> RunAgain | None:
    """Erase at most 500 documents of one collection, or 20 files, of the company `companyId`.

    Files are erased with their chunks, which do not contain the company.
    """
    company_id = job.arguments["companyId"]
    if await files.erase_batch(services, {"companyId": company_id}, FILES):
        return RunAgain()
    for collection in registry.values():
        if collection is not files.files and (index := collection.by_company):
            where = {"_id": {"$ne": job.id}}
            if await erase_batch(collection, services, company_id, where, BATCH, hint=index):
                return RunAgain()
    return _finish(job)


async def erase_customer(services: Services, job: Job) -> RunAgain | None:
    """Erase at most 500 documents of one collection, or 20 files, of the client `customerId` of `companyId`.

    It covers every collection that declares a `client_field`.
    """
    company_id, customer_id = job.arguments["companyId"], job.arguments["customerId"]
    if await files.erase_batch(services, {"companyId": company_id, "customerId": customer_id}, FILES):
        return RunAgain()
    for collection in registry.values():
        if collection.client_field and (index := collection.by_client):
            where = {collection.client_field: customer_id}
            if await erase_batch(collection, services, company_id, where, BATCH, hint=index):
                return RunAgain()
    await worker.forget(services, company_id, customer_id)
    return _finish(job)


def _finish(job: Job) -> RunAgain | None:
    return None if job.arguments.get("isSecondPass") else RunAgain(_SECOND_PASS, {"isSecondPass": True})


# --- Tombstones: which clients and companies were erased, in the database and in the store of backups -----------------
# A backup still has clients who were erased after it was made. The list outside of the database says whom to erase
# again when it is restored.


STORE = "store_erasures"
_FOLDER = "erasures"
_PAUSE = timedelta(seconds=5)
_BATCH = 500
_READERS = 8
_MOST_PENDING = 10_000


class Tombstone(TypedDict):
    """Clients of a company who were erased at a time; without clients, the company itself.

    `storedAt` is when it was written to the store of backups, None before.
    """

    _id: ObjectId
    erasedCompanyId: ObjectId
    erasedCustomerIds: list[ObjectId]
    erasedAt: datetime
    storedAt: datetime | None


_tombstones = Documents[Tombstone](
    "erasures",
    private=(),
    global_indexes=(Index(("storedAt", "_id")),),
    cross_company_reason="a list of erasures of all companies, which outlives their data",
    placement=Unsharded("identifiers alone, which the operator needs together"),
    transfer=NotExported("the log of erasures"),
)


async def record_clients(ctx: Context, event: CustomersDeleted) -> None:
    """Record that clients were erased, in the caller's transaction."""
    if event.customer_ids:
        await _record(ctx, event.customer_ids)


async def record_company(ctx: Context, _: CompanyDeleted) -> None:
    """Record that the company was erased, in the caller's transaction."""
    await _record(ctx, ())


async def _record(ctx: Context, customer_ids: Sequence[ObjectId]) -> None:
    tombstone: Tombstone = {
        "_id": ObjectId(),
        "erasedCompanyId": ctx.company_id,
        "erasedCustomerIds": list(customer_ids),
        "erasedAt": now(),
        "storedAt": None,
    }
    await _tombstones.across_companies(ctx.services).insert_one(dict(tombstone), session=ctx.session)


async def store_step(services: Services, _: Job) -> RunAgain:
    """Write new tombstones to the store of backups, if there is one, every five seconds."""
    if services.backup_store is not None:
        await write_new(services, services.backup_store)
    return RunAgain(_PAUSE)


async def write_new(services: Services, store: Store) -> int:
    """Write the tombstones that are not stored yet, and return how many. Raises Unavailable."""
    written = 0
    new = {each["_id"]: each for each in await _find(services, {"storedAt": None})}

    async def write(ids: Sequence[ObjectId]) -> None:
        for identifier in ids:
            content = _format(new[identifier])
            try:
                await asyncio.to_thread(store.write, _name(identifier), content)
            except BackupError as error:
                raise Unavailable(f"Erasures are not stored with the backups: {error}") from None
        change = {"$set": {"storedAt": now()}}
        await _tombstones.across_companies(services).update_many({"_id": {"$in": list(ids)}}, change)
        nonlocal written
        written += len(ids)

    await for_each_alone(services, "tombstones", None, new, write, skips_waiting=True)
    return written


async def read_metrics(services: Services) -> None:
    """Count the tombstones that are not stored yet; not a number while the database does not respond."""

    async def count() -> float:
        collection = _tombstones.across_companies(services)
        return await collection.count_documents({"storedAt": None}, limit=_MOST_PENDING, hint="storedAt__id")

    has_store = services.backup_store is not None
    services.metrics.erasures_pending.set(await reading_in_time(count(), nan, "erasures") if has_store else 0)


async def write_missing(services: Services, store: Store) -> None:
    """Write all tombstones that a store lacks, such as a new one. Raises BackupError."""
    present = await asyncio.to_thread(lambda: {each.name for each in store.iterate(_FOLDER)})
    last: ObjectId | None = None
    while batch := await _find(services, {} if last is None else {"_id": {"$gt": last}}):
        for tombstone in batch:
            if (name := _name(tombstone["_id"])) not in present:
                await asyncio.to_thread(store.write, name, _format(tombstone))
        last = batch[-1]["_id"]


def read_stored(store: Store) -> list[Tombstone]:
    """Return all tombstones of a store. Raises BackupError if one cannot be read."""
    names = [each.name for each in store.iterate(_FOLDER) if each.name.endswith(".json")]
    with ThreadPoolExecutor(_READERS) as pool:
        return list(pool.map(lambda name: _parse(store.read(name), f"{store.location}/{name}"), names))


async def _find(services: Services, where: dict[str, object]) -> list[Tombstone]:
    cursor = _tombstones.across_companies(services).find(where, sort=[("_id", 1)], limit=_BATCH)
    return [each async for each in cursor]


def _name(identifier: ObjectId) -> str:
    return f"{_FOLDER}/{identifier}.json"


def _format(tombstone: Tombstone) -> bytes:
    """Return a tombstone as the text of its file, which has no personal data."""
    facts = {
        "_id": str(tombstone["_id"]),
        "companyId": str(tombstone["erasedCompanyId"]),
        "customerIds": [str(each) for each in tombstone["erasedCustomerIds"]],
        "erasedAt": tombstone["erasedAt"].replace(tzinfo=UTC).isoformat(),
    }
    return json.dumps(facts).encode()


def _parse(data: bytes, origin: str) -> Tombstone:
    try:
        facts = json.loads(data)
        erased_at = datetime.fromisoformat(facts["erasedAt"]).astimezone(UTC).replace(tzinfo=None)
        return {
            "_id": ObjectId(facts["_id"]),
            "erasedCompanyId": ObjectId(facts["companyId"]),
            "erasedCustomerIds": [ObjectId(each) for each in facts["customerIds"]],
            "erasedAt": erased_at,
            "storedAt": now(),
        }
    except (ValueError, TypeError, KeyError):  # InvalidId is a ValueError
        raise BackupError(f"{origin} is damaged: it is no record of an erasure") from None


# --- Erasing clients and companies again whom a restored database has, although they were erased since the backup -----


_STEPS: Steps = {ERASE_CUSTOMER: erase_customer, account.ERASE: erase_company}


async def repeat_erasures(
    operator: Operator, listed: Sequence[Tombstone], report: Callable[[int], None]
) -> tuple[int, int]:
    """Erase again what the tombstones name and the database does not know as erased, with all its data.

    Returns the numbers of clients and companies. It can be repeated: what is erased already is not counted. `report`
    is called with 1 for each tombstone. The erasure of archived clients is announced again.
    """
    services, clients, companies = operator.services, 0, 0
    stored = _tombstones.across_companies(services)
    known = {each["_id"] async for each in stored.find({"_id": {"$in": [each["_id"] for each in listed]}}, {"_id": 1})}
    # Oldest first; the database lacks them because it is older.
    unknown = sorted((each for each in listed if each["_id"] not in known), key=lambda each: each["erasedAt"])
    report(len(listed) - len(unknown))
    for tombstone in unknown:
        try:
            ctx = await operator.acting_in(tombstone["erasedCompanyId"])
            if tombstone["erasedCustomerIds"]:
                clients += await bulk.erase(ctx, tombstone["erasedCustomerIds"])
            else:
                await account.delete(ctx)
                companies += 1
        except NotFound:  # the company is gone
            pass
        await stored.insert_one(dict(tombstone))
        report(1)
    await retention.withdraw_all_announcements(services)
    await worker.run_due(services, _STEPS)
    return clients, companies
