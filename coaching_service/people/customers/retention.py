"""Erasing clients who are archived for longer than ARCHIVED_RETENTION_MONTHS, 30 days after a mail to the owner.

The mail counts when the server has accepted it: from then on a client is due in 30 days. Announced again are those who
were restored meanwhile, who could not be erased within a week after that time, and all after a suspension or the
restoration of a backup.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from itertools import takewhile

from coaching_service.core.database.context import Context, Services, transactional
from coaching_service.core.database.documents import Filter, now
from coaching_service.core.dates import add_months, local_date
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import mail, queue
from coaching_service.core.jobs.mail import MailBody, MailRejected, NewMail
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.people import team
from coaching_service.people.account import CompanyResumed
from coaching_service.people.customers import bulk, service, store
from coaching_service.people.customers.models import Customer

FIND = "find_archived_to_erase"
ERASE = "erase_archived"
_INTERVAL = timedelta(hours=1)
_NOTICE = timedelta(days=30)
_VALIDITY = timedelta(days=7)  # of an announcement after the time that it named
_ERASED_TOGETHER, _ANNOUNCED_TOGETHER = 100, 500
_LONGEST_MONTH = timedelta(days=31)
_FIELDS = ("name", "surname", "archivedAt", "erasureDueAt", store.ARCHIVED)


async def queue_due(services: Services, _: Job) -> RunAgain:
    """Store since when clients are archived of whom that is not known, and queue the companies with old ones."""
    archived, at = store.customers.across_companies(services), now()
    unknown = {store.ARCHIVED: True, "archivedAt": None}
    await archived.update_many(unknown, {"$set": {"archivedAt": at}}, hint=store.ARCHIVING_INDEX)
    if services.archived_retention_months:
        stages = [{"$match": _archived_long(services, at)}, {"$group": {"_id": "$companyId"}}]
        cursor = archived.aggregate(stages, hint=store.ARCHIVING_INDEX)
        await queue.enqueue_for_companies(services, ERASE, [company["_id"] async for company in cursor], {})
    return RunAgain(_INTERVAL)


async def run_step(services: Services, job: Job) -> RunAgain | None:
    """Erase clients of the job's company whose time has come, or announce whom it erases in 30 days."""
    try:
        owner = await team.get_owner(services, queue.company_of(job))
    except NotFound:  # the company is being erased
        return None
    if not services.archived_retention_months or owner.company.is_sandbox:
        return None
    ctx = Context(services, owner, operation="deleteArchivedCustomers", interface="system")
    if await _erase_due(ctx) == _ERASED_TOGETHER:
        return RunAgain()
    at = now()
    is_open = {"$or": [{"erasureDueAt": None}, {"erasureDueAt": {"$lte": at - _VALIDITY}}]}
    clients = await _list_until(ctx, ctx.caller.today() + _NOTICE, is_open, _ANNOUNCED_TOGETHER)
    if not clients or owner.email is None or owner.company.holds_mail:
        return None
    company, months = ctx.caller.company, ctx.services.archived_retention_months
    day = local_date(now() + _NOTICE, company.timezone)
    named_day = f"{day.day} {day:%B %Y}"
    who = "1 archived client" if len(clients) == 1 else f"{len(clients)} archived clients"
    address = f"{ctx.services.base_url}/app/customers"
    body: MailBody = {
        "company": company.name,
        "name": ctx.caller.name,
        "paragraphs": [
            f"On {named_day}, {who} will be erased with all data, because clients are kept for "
            f"{months} {'month' if months == 1 else 'months'} after they were archived.",
            "Restore those who are to stay before that day, or export their data.",
        ],
        "links": [
            {"label": service.full_name(client), "address": f"{address}/{client['_id']}/details"} for client in clients
        ],
        "button": "Open the archived clients",
        "link": f"{address}?archived=true",
        "notes": ["Erased data cannot be restored."],
        "reason": f"You receive this mail because you are the owner of {company.name}.",
        "settings": None,
    }
    try:
        await mail.send_now(services, job, NewMail(owner.email, f"{who} will be erased on {named_day}", body))
    except MailRejected as rejection:
        return RunAgain(timedelta(days=1) if rejection.permanent else _INTERVAL)
    announced = {"_id": {"$in": [client["_id"] for client in clients]}, store.ARCHIVED: True}
    await store.customers.set_derived(ctx, announced, {"$set": {"erasureDueAt": now() + _NOTICE}})
    return RunAgain() if len(clients) == _ANNOUNCED_TOGETHER else None


@transactional
async def _erase_due(ctx: Context) -> int:
    at = now()
    is_due = {"erasureDueAt": {"$lte": at, "$gt": at - _VALIDITY}}
    clients = await _list_until(ctx, ctx.caller.today(), is_due, _ERASED_TOGETHER)
    return await bulk.erase(ctx, [client["_id"] for client in clients]) if clients else 0


async def _list_until(ctx: Context, last: date, condition: Filter, limit: int) -> list[Customer]:
    """Return archived clients whose time in the archive ends on a day until `last`, longest archived first."""
    where = _archived_long(ctx.services, now()) | condition
    order = ("archivedAt", "_id")
    clients = await store.customers.find(
        ctx, where, sort=order, limit=limit, fields=_FIELDS, hint=store.OWN_ARCHIVING_INDEX
    )
    return list(takewhile(lambda client: _find_end(ctx, client) <= last, clients))


def _archived_long(services: Services, at: datetime) -> Filter:
    """Return the filter of all who may have to be announced or erased, and some who are archived for less."""
    latest = add_months(at.date(), -services.archived_retention_months) + _NOTICE + _LONGEST_MONTH
    return {store.ARCHIVED: True, "archivedAt": {"$lte": datetime.combine(latest, at.time())}}


def _find_end(ctx: Context, client: Customer) -> date:
    """Return the first day, where the company is, on which a client is archived for longer than the set months."""
    archived_on = local_date(client.get("archivedAt", now()), ctx.caller.company.timezone)
    return add_months(archived_on, ctx.services.archived_retention_months) + timedelta(days=1)


async def find_erasure_days(ctx: Context, ids: Sequence[ObjectId]) -> dict[ObjectId, date]:
    """Return when those of the clients `ids` who are archived will be erased, where the company is; empty: never.

    Access is not checked.
    """
    company = ctx.caller.company
    if not ids or not ctx.services.archived_retention_months or company.is_sandbox:
        return {}
    where = {"_id": {"$in": list(ids)}, store.ARCHIVED: True}
    days: dict[ObjectId, date] = {}
    for client in await store.customers.find(ctx, where, fields=_FIELDS, hint=store.BY_ID):
        end, due_at = _find_end(ctx, client), client.get("erasureDueAt")
        lapses = due_at + _VALIDITY if due_at else now()
        is_announced = due_at and now() <= lapses and end <= local_date(lapses, company.timezone)
        erased_at = due_at if due_at and is_announced else now() + _NOTICE
        days[client["_id"]] = max(end, local_date(erased_at, company.timezone))
    return days


async def withdraw_announcement(ctx: Context, _: CompanyResumed) -> None:
    """Have erasures announced again: the owner could restore no client while the company was suspended."""
    announced = {store.ARCHIVED: True, "erasureDueAt": {"$ne": None}}
    await store.customers.set_derived(ctx, announced, {"$unset": {"erasureDueAt": ""}})


async def withdraw_all_announcements(services: Services) -> None:
    """Have all erasures announced again: a restored database does not know who was restored since the backup."""
    archived = store.customers.across_companies(services)
    forgotten = {"$unset": {"erasureDueAt": ""}}
    await archived.update_many({store.ARCHIVED: True}, forgotten, hint=store.ARCHIVING_INDEX)
