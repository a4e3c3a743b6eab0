"""Recurring check-ins in the database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from coaching_service.core.database.backlogs import count_backlog
from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Documents, now
from coaching_service.core.database.portable import RECORDS, Portable
from coaching_service.core.database.recording import Action, EventData, History
from coaching_service.core.errors import invalid_field
from coaching_service.core.fields import names_of, private_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.metrics import Backlog
from coaching_service.progress.check_ins.models import CheckIn, DueCheckIn, NewCheckInDocument, StoredCheckIn


def _complete_imported(check_in: dict[str, Any]) -> dict[str, Any]:
    """Return an imported check-in. Raises InvalidFields unless it has one recurrence and one content."""
    for names in (("weekday", "everyDays"), ("formId", "metricsSetId", "taskFields")):
        if sum(check_in[name] is not None for name in names) != 1:
            raise invalid_field(names[0], f"or one of {', '.join(names[1:])} must be set, and only one")
    return check_in


def _event(action: Action, known: Mapping[str, Any], _: Collection[str]) -> EventData | None:
    if action == "changed":
        return None
    return {
        "type": "check_in.created" if action == "created" else "check_in.ended",
        "data": {"checkInId": known["_id"]},
    }


check_ins = Documents[StoredCheckIn](
    "checkIns",
    (Index(("customerId", "_id")),),
    private=private_of(StoredCheckIn),
    client_field="customerId",
    history=History("check_in", _event),
    global_indexes=(Index(("dueAt",)),),
    cross_company_reason="a job schedules the check-ins of all companies",
    transfer=Portable(
        StoredCheckIn,
        RECORDS,
        references={"customerId": "customers"},
        complete=_complete_imported,
    ),
)
_FIELDS = (*names_of(CheckIn), "scheduledUntil", "dueAt", "absentDates")


async def create(ctx: Context, check_in: NewCheckInDocument) -> StoredCheckIn:
    """Store a new check-in."""
    return await check_ins.insert(ctx, check_in)


async def find_all(ctx: Context, customer_id: ObjectId) -> list[StoredCheckIn]:
    """Return the check-ins of a client, oldest first."""
    return await check_ins.find(ctx, {"customerId": customer_id}, sort=("_id",), fields=_FIELDS)


async def find_one(ctx: Context, customer_id: ObjectId, check_in_id: ObjectId) -> StoredCheckIn | None:
    """Return a check-in of a client, or None."""
    return await check_ins.find_one(ctx, {"customerId": customer_id, "_id": check_in_id}, _FIELDS)


async def set_scheduled(
    ctx: Context, customer_id: ObjectId, check_in_id: ObjectId, name: str, until: str | None, due_at: datetime | None
) -> None:
    """Store up to which date a check-in is scheduled, under which name, and when its next date has to be."""
    fields = {"name": name, "scheduledUntil": until, "dueAt": due_at}
    await check_ins.set_derived(ctx, {"customerId": customer_id, "_id": check_in_id}, {"$set": fields})


async def set_absent_dates(ctx: Context, customer_id: ObjectId, check_in_id: ObjectId, dates: Sequence[str]) -> None:
    """Store which of its dates a check-in leaves out because of an absence."""
    where = {"customerId": customer_id, "_id": check_in_id}
    await check_ins.set_derived(ctx, where, {"$set": {"absentDates": list(dates)}})


async def set_due(ctx: Context, customer_id: ObjectId, check_in_id: ObjectId, due_at: datetime | None) -> None:
    """Store when a check-in has to be scheduled again; None: not at all."""
    where = {"customerId": customer_id, "_id": check_in_id}
    await check_ins.set_derived(ctx, where, {"$set": {"dueAt": due_at}})


async def delete(ctx: Context, customer_id: ObjectId, check_in_id: ObjectId) -> bool:
    """Delete a check-in; returns whether it existed."""
    return await check_ins.delete(ctx, {"customerId": customer_id, "_id": check_in_id}) is not None


async def list_due(services: Services, limit: int) -> list[DueCheckIn]:
    """Return at most `limit` check-ins of any company that have to be scheduled, longest due first."""
    fields = {"companyId": 1, "customerId": 1}
    collection = check_ins.across_companies(services)
    due: list[Any] = (
        await collection.find({"dueAt": {"$lte": now()}}, fields, limit=limit).sort("dueAt", 1).to_list(None)
    )
    return due


async def count_due(services: Services, limit: int) -> Backlog:
    """Count the check-ins of all companies that have to be scheduled, at most `limit`, and since when they are due."""
    collection = check_ins.across_companies(services)
    return await count_backlog(collection, {"dueAt": {"$lte": now()}}, "dueAt", limit, hint="dueAt")


async def postpone(services: Services, company_id: ObjectId, ids: Sequence[ObjectId], delay: timedelta) -> None:
    """Schedule a company's check-ins no earlier than `delay` from now on."""
    where = {"companyId": company_id, "_id": {"$in": list(ids)}}
    await check_ins.across_companies(services).update_many(where, {"$set": {"dueAt": now() + delay}})


async def set_due_within(ctx: Context, delay: timedelta) -> None:
    """Make the check-ins of the company due that are due within `delay`."""
    at = now()
    await check_ins.set_derived(ctx, {"dueAt": {"$lte": at + delay}}, {"$set": {"dueAt": at}})
