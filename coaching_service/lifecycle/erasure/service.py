"""Removing all that belongs to an erased client, in bounded steps that survive a restart."""

from __future__ import annotations

from datetime import timedelta

from coaching_service.core.database import files
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import declared_collections
from coaching_service.core.jobs.queue import Job, RunAgain

BATCH = 500
FILES = 20
# A request that had seen the client just before may still write: one more pass finds what it left.
_SECOND_LOOK = timedelta(minutes=2)


async def erase_company(services: Services, job: Job) -> RunAgain | None:
    """One step of erasing the company `companyId`: at most 500 documents of any collection of companies', or 20 files.

    Files go with their bytes, which know no company.
    """
    company_id = job.arguments["companyId"]
    if await files.erase_batch(services, {"companyId": company_id}, FILES):
        return RunAgain()
    for collection in declared_collections().values():
        if collection is not files.files and (index := collection.by_company):
            where = {"_id": {"$ne": job.id}}
            if await collection.erase_batch(services, company_id, where, BATCH, hint=index):
                return RunAgain()
    return None if job.arguments.get("looked") else RunAgain(_SECOND_LOOK, {"looked": True})


async def erase_customer(services: Services, job: Job) -> RunAgain | None:
    """One step of erasing the client `customerId` of `companyId`: at most 500 documents or 20 files.

    Every collection that declares a `client_field` is covered, so that a new feature cannot be forgotten.
    """
    company_id, customer_id = job.arguments["companyId"], job.arguments["customerId"]
    if await files.erase_batch(services, {"companyId": company_id, "customerId": customer_id}, FILES):
        return RunAgain()
    for collection in declared_collections().values():
        if collection.client_field and (index := collection.by_client):
            where = {collection.client_field: customer_id}
            if await collection.erase_batch(services, company_id, where, BATCH, hint=index):
                return RunAgain()
    return None if job.arguments.get("looked") else RunAgain(_SECOND_LOOK, {"looked": True})
