"""Mail that is not sent: of sandboxes, for the developers who test with them, and what was given up.

The operator can send mail that was given up again, for 30 days: until then it is stored, still encrypted.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, TypedDict

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import Documents, now
from coaching_service.core.database.models import Stored
from coaching_service.core.database.portable import NotExported
from coaching_service.core.database.sharding import Unsharded
from coaching_service.core.fields import Description, Private, private_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.queue import Job

RETENTION = timedelta(days=30)
SANDBOX_ORDER = ("-createdAt", "-_id")


class NewSandboxMail(TypedDict):
    """A mail to store; `about` is the client it concerns, if any."""

    to: Annotated[str, Description("The address of the recipient.")]
    subject: Annotated[str, Description("The subject.")]
    text: Annotated[str, Description("The text, with the links and tokens that it contains.")]
    about: Annotated[ObjectId | None, Private]


class SandboxMail(NewSandboxMail, Stored):
    """A mail that would have been sent."""


sandbox_mails = Documents[SandboxMail](
    "sandboxMails",
    (Index(SANDBOX_ORDER), Index(("about",))),
    private=private_of(SandboxMail),
    client_field="about",
    secret=True,
    expire=("createdAt", int(RETENTION.total_seconds())),
    transfer=NotExported("mail of a sandbox"),
)


class FailedMail(Stored):
    """A mail under the identifier of the job that was to send it; `about` is the client it concerns, if any."""

    about: ObjectId | None
    sealed: bytes
    reason: str
    tries: int


failed_mails = Documents[FailedMail](
    "failedMails",
    (Index(("about",)),),
    client_field="about",
    secret=True,
    expire=("createdAt", int(RETENTION.total_seconds())),
    cross_company_reason="the operator lists the mail of all companies that was not sent",
    placement=Unsharded("few documents, which the operator lists for all companies"),
    transfer=NotExported("mail that was not sent"),
)


async def store_failed(services: Services, job: Job, reason: str) -> None:
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
    await failed_mails.across_companies(services).update_one({"_id": job.id}, {"$setOnInsert": new}, upsert=True)
