"""Mail that will not be sent by itself any more, still encrypted: for 30 days the operator can send it again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import cast

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Documents, now
from coaching_service.core.database.models import Stored
from coaching_service.core.database.portable import NotExported
from coaching_service.core.database.sharding import Unsharded
from coaching_service.core.ids import ObjectId

RETENTION = timedelta(days=30)


class FailedMail(Stored):
    """A mail under the identifier of the job that was to send it; `about` is the client it concerns, if any."""

    about: ObjectId | None
    sealed: bytes
    reason: str
    tries: int


_mails = Documents[FailedMail](
    "failedMails",
    (Index(("about",)),),
    client_field="about",
    secret=True,
    expire=("createdAt", int(RETENTION.total_seconds())),
    cross_company_reason="the operator lists the mail of all companies that was not sent",
    placement=Unsharded("few documents, which the operator lists for all companies"),
    transfer=NotExported("mail that was not sent"),
)


async def store(
    services: Services,
    identifier: ObjectId,
    company_id: ObjectId | None,
    about: ObjectId | None,
    sealed: bytes,
    *,
    reason: str,
    tries: int,
) -> None:
    """Store a mail that was given up; repeating it changes nothing."""
    at = now()
    fields = {"companyId": company_id, "about": about, "sealed": sealed, "reason": reason, "tries": tries}
    new = {**fields, "createdAt": at, "updatedAt": at, "version": 0}
    await _mails.across_companies(services).update_one({"_id": identifier}, {"$setOnInsert": new}, upsert=True)


async def iterate(services: Services) -> AsyncIterator[FailedMail]:
    """Yield the mails of all companies that were given up, oldest first."""
    async for mail in _mails.across_companies(services).find({}, sort=[("createdAt", 1)], hint="createdAt"):
        yield cast("FailedMail", mail)


async def find(services: Services, identifier: ObjectId) -> FailedMail | None:
    """Return a mail of any company, or None."""
    return cast("FailedMail | None", await _mails.across_companies(services).find_one({"_id": identifier}))


async def remove(ctx: Context, identifier: ObjectId) -> bool:
    """Remove a mail of the company in the caller's transaction; returns whether it was there."""
    return await _mails.delete(ctx, {"_id": identifier}) is not None
