"""Reactions of clients to the events of other features."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import timedelta
from typing import cast

from coaching_service.core.changes.undo import DocumentsRestored
from coaching_service.core.database.context import Context, Services
from coaching_service.core.errors import NotFound
from coaching_service.core.idempotency import ResponseReplayed
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.people.account.events import LoadUnitChanged
from coaching_service.people.customers import _group_totals, counters, locks_store, service, store
from coaching_service.people.customers.models import Customer
from coaching_service.people.team import service as team
from coaching_service.people.team.events import CoachRemoved

UNASSIGN = "unassign_clients"
COUNT_GROUPS = _group_totals.COUNT
# A request that read the coach just before the removal may still assign clients: a second pass unassigns those.
_SECOND_PASS = timedelta(minutes=2)
_STEP_SECONDS = 1.0


async def require_customer_in_scope(ctx: Context, event: ResponseReplayed) -> None:
    """Raise Forbidden if a stored response is about a client outside the employee's scope."""
    if ctx.caller.customers_scope == "assigned":
        with suppress(NotFound):  # the response is about another kind of document, or the client is deleted
            await service.get_visible(ctx, event.about)


async def follow_load_unit(ctx: Context, event: LoadUnitChanged) -> None:
    """Store with all clients that loads are in another unit: writes of requests that began before are refused."""
    await store.customers.set_derived(ctx, {}, {"$set": {"loadsIn": event.load_unit}})


async def count_restored_customers(ctx: Context, event: DocumentsRestored) -> None:
    """Count clients again whom an undo has archived, restored from the archive, or put into other groups.

    The reasons of those it has archived are cleared, and the figures of those it has restored are due.
    """
    both = [
        (cast("Customer", each.before), cast("Customer", each.after))
        for each in event.of_kind("customer")
        if each.before is not None and each.after is not None
    ]
    if both:
        roles = [[each["customerRoleData"] for each in clients] for clients in zip(*both, strict=True)]
        await counters.count_changed(ctx, *roles)
        for archived in (True, False):
            changed = [
                before["_id"]
                for before, after in both
                if before["customerRoleData"]["isArchived"] is not archived
                and after["customerRoleData"]["isArchived"] is archived
            ]
            await locks_store.follow_archiving(ctx, changed, archived=archived)


async def count_groups(services: Services, job: Job) -> RunAgain | None:
    """Count the clients in the groups of some companies after `last`, by identifier, for about a second."""
    last, end = job.arguments.get("last"), time.monotonic() + _STEP_SECONDS
    while (company_id := await _group_totals.find_company_after(services, last)) is not None:
        await counters.correct_groups(services, company_id)
        last = company_id
        if time.monotonic() > end:
            return RunAgain(progress={"last": last})
    return None


async def unassign_customers_of_coach(ctx: Context, event: CoachRemoved) -> None:
    """Leave the clients of a removed coach without a trainer, and queue a second pass."""
    ctx.changes.prevent_undo()  # the coach cannot be restored
    await store.unassign(ctx, event.coach_id)
    arguments = {"companyId": ctx.company_id, "coachId": event.coach_id}
    await queue.enqueue(ctx, UNASSIGN, arguments, after=_SECOND_PASS)


async def repeat_unassignment(services: Services, job: Job) -> None:
    """Run the second pass for the coach `coachId` of `companyId`."""
    with suppress(NotFound):  # the company has been deleted
        owner = await team.get_owner(services, job.arguments["companyId"])
        await store.unassign(Context(services, owner, operation=UNASSIGN, interface="system"), job.arguments["coachId"])
