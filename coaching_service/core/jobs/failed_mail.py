"""Mail that will not be sent by itself any more, still encrypted: for 30 days the operator can send it again."""

from __future__ import annotations

from datetime import timedelta

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import Documents, now
from coaching_service.core.database.models import Stored
from coaching_service.core.database.portable import NotExported
from coaching_service.core.database.sharding import Unsharded
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job

RETENTION = timedelta(days=30)


class FailedMail(Stored):
    """A mail under the identifier of the job that was to send it; `about` is the client it concerns, if any."""

    about: ObjectId | None
    sealed: bytes
    reason: str
    tries: int


mails = Documents[FailedMail](
    "failedMails",
    (Index(("about",)),),
    client_field="about",
    secret=True,
    expire=("createdAt", int(RETENTION.total_seconds())),
    cross_company_reason="the operator lists the mail of all companies that was not sent",
    placement=Unsharded("few documents, which the operator lists for all companies"),
    transfer=NotExported("mail that was not sent"),
)


async def store(services: Services, job: Job, reason: str) -> None:
    """Store the mail of a job that was given up; repeating it changes nothing."""
    at = now()
    new = {
        "companyId": job.company_id,
        "about": job.about,
        "sealed": job.arguments["sealed"],
        "reason": reason,
        "tries": job.arguments["tries"] + 1,
        "createdAt": at,
        "updatedAt": at,
        "version": 0,
    }
    await mails.across_companies(services).update_one({"_id": job.id}, {"$setOnInsert": new}, upsert=True)
