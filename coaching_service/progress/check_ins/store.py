"""Recurring check-ins in the database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

from coaching_service.core.database.across_companies import count_backlog
from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Services
from coaching_service.core.database.documents import Documents, now
from coaching_service.core.database.portable import RECORDS, Portable
from coaching_service.core.database.recording import Action, EventData, History
from coaching_service.core.errors import invalid_field
from coaching_service.core.fields import names_of, private_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.metrics import Backlog
from coaching_service.progress.check_ins.models import CheckIn, DueCheckIn, StoredCheckIn


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


def _contact(check_in: Mapping[str, Any]) -> list[str]:
    return [str([check_in[name] for name in ("formId", "metricsSetId", "taskFields")])]


check_ins = Documents[StoredCheckIn](
    "checkIns",
    (Index(("customerId", "_id")),),
    private=private_of(StoredCheckIn),
    client_field="customerId",
    history=History("check_in", _event, contact=_contact),
    global_indexes=(Index(("dueAt",)),),
    cross_company_reason="a job schedules the check-ins of all companies",
    transfer=Portable(
        StoredCheckIn,
        RECORDS,
        references={"customerId": "customers"},
        complete=_complete_imported,
    ),
)
FIELDS = (*names_of(CheckIn), "scheduledUntil", "dueAt", "absentDates")


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
