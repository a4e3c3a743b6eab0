"""What reading and controlling the jobs of a company needs, by their kind."""

from __future__ import annotations

from typing import cast

from coaching_service.core.auth.access import check_access
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Forbidden, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.background_jobs import store
from coaching_service.integrations.background_jobs.models import ImportWork, JobReaders, JobWork
from coaching_service.integrations.history_import.models import UndoWork
from coaching_service.people.bulk_jobs.access import OF_OWNER, JobAccess, of_clients
from coaching_service.people.customers import service as customers

_OF_CLIENT = of_clients(CUSTOMERS.EDIT)


def access_to_import(customer_id: ObjectId | None) -> JobAccess:
    """Return the access to an import that a coach requests: of the history of one client, or None: of the company."""
    return OF_OWNER if customer_id is None else _OF_CLIENT


async def require_access(ctx: Context, job_id: ObjectId, *, writes: bool) -> None:
    """Raise what `require` raises for a job of the company; NotFound without it."""
    if (job := await store.find_readers(ctx, job_id)) is None:
        raise NotFound("job")
    await require(ctx, job, writes=writes)


async def require(ctx: Context, job: JobReaders | JobWork, *, writes: bool) -> None:
    """Raise an error unless the caller may read a job, or with `writes` cancel it and undo it.

    Raises NotFound for another client's; Forbidden without the permission, for a coach who has not requested it unless
    the caller is the owner, and if its client is not in the caller's scope.
    """
    if not ctx.caller.is_coach:
        if ctx.caller.id != job.get("customerId"):
            raise NotFound("job")
        return
    is_own = ctx.caller.id == job.get("requestedBy")  # of an import of one client, or its undo
    needed = _OF_CLIENT if is_own else OF_OWNER
    check_access(needed.control if writes else needed.reading, ctx.caller, writes=writes)
    if is_own and (customer_id := await _find_client(ctx, job)) is not None:
        await customers.get_visible(ctx, customer_id)


async def may_continue(ctx: Context, job: JobReaders | JobWork) -> bool:
    """Return whether the coach who acts in a job may still do what it does."""
    try:
        await require(ctx, job, writes=True)
    except (Forbidden, NotFound):
        return False
    return True


async def _find_client(ctx: Context, job: JobReaders | JobWork) -> ObjectId | None:
    """Return the client whose history a job imports, or removes again; None if that import has been removed."""
    if job["kind"] == "undo":
        undone = await store.find_readers(ctx, cast("UndoWork", job["work"])["importId"])
        return None if undone is None else await _find_client(ctx, undone)
    return cast("ImportWork", job["work"])["answers"]["customerId"]
