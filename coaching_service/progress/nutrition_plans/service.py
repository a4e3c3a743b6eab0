"""A client's nutrition plans."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from coaching_service.core.database import files
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.database.transactions import gather_reads, transactional
from coaching_service.core.errors import LegacyFailure, require_found
from coaching_service.core.fields import take
from coaching_service.core.file_links import file_url
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import PartOfList
from coaching_service.core.pagination import Page
from coaching_service.people.activity import service as activity
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.record_lists import list_records
from coaching_service.progress.nutrition_plans.models import NewPlan, PlanVersion, StoredPlan
from coaching_service.progress.nutrition_plans.store import ORDER, counters, plans


async def list_plans(ctx: Context, customer_id: ObjectId, **part: Unpack[PartOfList]) -> Page[PlanVersion]:
    """Return one page of a client's plan versions, newest first, or those after a cursor.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    present = partial(_to_plan, ctx)
    return await list_records(ctx, customer_id, plans, "nutrition_plans", ORDER, present, part)


async def get(ctx: Context, customer_id: ObjectId, plan_id: ObjectId) -> PlanVersion:
    """Return one plan version. Raises NotFound if the client has no such version, and what `list_plans` raises."""
    where = {"customerId": customer_id, "_id": plan_id}
    _, plan = await gather_reads(ctx, customers.get_visible(ctx, customer_id), plans.find_one(ctx, where))
    return _to_plan(ctx, require_found(plan, "plan version"))


async def upload(ctx: Context, customer_id: ObjectId, file: StoredFile | None) -> PlanVersion:
    """Add an uploaded file as the next version of a client's plan.

    Raises LegacyFailure if there is no file, and what `list_plans` raises.
    """
    await customers.get_visible(ctx, customer_id)
    if file is None:
        raise LegacyFailure("NUTRITION_PLAN_FILE_MISSING", "The nutrition plan's file is missing")
    return _to_plan(ctx, await _add(ctx, customer_id, file))


@transactional
async def _add(ctx: Context, customer_id: ObjectId, file: StoredFile) -> StoredPlan:
    counter = await counters.upsert(ctx, {"customerId": customer_id}, {})
    new: NewPlan = {
        "customerId": customer_id,
        "number": counter["version"] + 1,  # never used twice, not even after its version was deleted
        "fileName": file.name or "plan",
        "contentType": file.content_type,
        "size": file.size,
        "fileId": file.id,
        "thumbnailId": file.thumbnail_id,
    }
    plan = await plans.insert(ctx, new)
    data = {"planId": plan["_id"], "number": plan["number"], "fileName": plan["fileName"]}
    await activity.record_event(ctx, "plan_uploaded", customer_id, plan["_id"], **data)
    return plan


@transactional
async def delete(ctx: Context, customer_id: ObjectId, plan_id: ObjectId) -> None:
    """Delete a plan version with its file. Raises NotFound if the client has no such version."""
    await customers.get_visible(ctx, customer_id)
    plan = require_found(await plans.delete(ctx, {"customerId": customer_id, "_id": plan_id}), "plan version")
    await activity.delete_events(ctx, customer_id, plan_id, "plan_uploaded")
    await files.discard(ctx, [file_id for file_id in (plan["fileId"], plan["thumbnailId"]) if file_id])


def _to_plan(ctx: Context, stored: StoredPlan) -> PlanVersion:
    return {**take(PlanVersion, stored), "url": str(file_url(ctx.services, stored["fileId"]))}
