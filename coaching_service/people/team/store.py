"""Coaches in the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import Document, Documents, Filter
from coaching_service.core.database.portable import NotExported
from coaching_service.core.database.sharding import Unsharded
from coaching_service.core.database.worker_thread import aggregate_all
from coaching_service.core.fields import private_of
from coaching_service.core.ids import ObjectId
from coaching_service.people.notification_settings.models import NotificationSettings, SomeSettings
from coaching_service.people.team.models import Coach, CoachSettings, CoachWithCompany

coaches = Documents[Coach](
    "coaches",
    (Index(("_id",)), Index(("role", "createdAt"))),
    private=private_of(Coach),
    cross_company_reason="a session or the command line knows a coach before it knows the company",
    is_cached=True,
    placement=Unsharded("joined to keys, sessions and grants, on the shard of these"),
    transfer=NotExported("exported as coaches.jsonl; an import finds coaches by their e-mail address"),
)


async def create(ctx: Context, coach: Mapping[str, object]) -> Coach:
    """Store a new coach."""
    return await coaches.insert(ctx, coach)


async def find_one(ctx: Context, coach_id: ObjectId) -> Coach | None:
    """Return the coach, or None."""
    return await coaches.find_one(ctx, {"_id": coach_id})


async def find_notifications(ctx: Context, coach_id: ObjectId) -> SomeSettings | None:
    """Return the settings of notifications that a coach has changed; None if there are none, or no such coach."""
    coach = await coaches.find_one(ctx, {"_id": coach_id}, ("notifications",))
    return None if coach is None else coach.get("notifications")


async def set_notifications(ctx: Context, coach_id: ObjectId, settings: NotificationSettings) -> bool:
    """Store the settings of a coach's notifications; returns whether there is such a coach."""
    change = {"$set": {"notifications": settings}}
    return await coaches.set_derived(ctx, {"_id": coach_id}, change, may_be_stale=True) > 0


async def list_notifications(ctx: Context) -> list[CoachSettings]:
    """Return every coach of the company with the settings of notifications that the coach has changed."""
    return await coaches.find(ctx, {"role": {"$in": ["OWNER", "EMPLOYEE"]}}, fields=("notifications",))


async def list_all(ctx: Context) -> list[Coach]:
    """Return every coach of the company: the owner, then employees by date of creation."""
    return await coaches.find(ctx, {"role": {"$in": ["OWNER", "EMPLOYEE"]}}, sort=("-role", "createdAt"))


async def list_employees(ctx: Context) -> list[Coach]:
    """Return the employees by date of creation."""
    return await coaches.find(ctx, {"role": "EMPLOYEE"}, sort=("createdAt",))


async def find_employee(ctx: Context, coach_id: ObjectId) -> Coach | None:
    """Return the employee, or None."""
    return await coaches.find_one(ctx, {"_id": coach_id, "role": "EMPLOYEE"})


async def update_employee(
    ctx: Context, coach_id: ObjectId, fields: Mapping[str, object], version: int | None
) -> Coach | None:
    """Set fields of an employee; None if there is no such employee.

    Raises Conflict if the employee is no longer at `version`.
    """
    where = {"_id": coach_id, "role": "EMPLOYEE"}
    return await coaches.rewrite(ctx, where, lambda _: fields, version=version)


async def delete_employee(ctx: Context, coach_id: ObjectId) -> bool:
    """Delete an employee; returns whether there was one."""
    return await coaches.delete(ctx, {"_id": coach_id, "role": "EMPLOYEE"}) is not None


async def find_with_company(services: Services, coach_id: ObjectId) -> CoachWithCompany | None:
    """Return the coach with the `company`, in one round trip; None if either is deleted."""
    return await _with_company(services, {"_id": coach_id})


async def find_owner_with_company(services: Services, company_id: ObjectId) -> CoachWithCompany | None:
    """Return the company's owner with the `company`; None if either is deleted."""
    return await _with_company(services, {"companyId": company_id, "role": "OWNER"})


async def list_owners(services: Services, company_ids: Sequence[ObjectId]) -> list[Coach]:
    """Return the owners of these companies."""
    where = {"companyId": {"$in": list(company_ids)}, "role": "OWNER"}
    owners: list[Any] = await coaches.across_companies(services).find(where).to_list(None)
    return owners


async def _with_company(services: Services, where: Filter) -> CoachWithCompany | None:
    stages: list[Document] = [
        {"$match": where},
        {"$lookup": {"from": "companies", "localField": "companyId", "foreignField": "_id", "as": "company"}},
        {"$unwind": "$company"},
    ]
    result: list[Any] = await aggregate_all(coaches.across_companies(services), stages)
    return result[0] if result else None
