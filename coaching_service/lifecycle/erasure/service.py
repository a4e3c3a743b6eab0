"""Erasing all data of a deleted client or company, in bounded steps that continue after a restart."""

from __future__ import annotations

from datetime import timedelta

from coaching_service.core import idempotency
from coaching_service.core.database import files
from coaching_service.core.database.across_companies import erase_batch
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import declared_collections
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import alone, queue
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.people.customers.events import CustomersDeleted

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
    for collection in declared_collections().values():
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
    for collection in declared_collections().values():
        if collection.client_field and (index := collection.by_client):
            where = {collection.client_field: customer_id}
            if await erase_batch(collection, services, company_id, where, BATCH, hint=index):
                return RunAgain()
    await alone.forget(services, company_id, customer_id)
    return _finish(job)


def _finish(job: Job) -> RunAgain | None:
    return None if job.arguments.get("isSecondPass") else RunAgain(_SECOND_PASS, {"isSecondPass": True})
