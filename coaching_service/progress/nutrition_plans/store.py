"""Plan versions in the database, numbered from 1 for each client."""

from __future__ import annotations

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.portable import RECORDS, FileRule, Portable
from coaching_service.core.database.recording import History
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import ListSelection
from coaching_service.core.media import IMAGE_TYPES, PDF
from coaching_service.core.validation import Text
from coaching_service.core.walking import Walk
from coaching_service.progress.nutrition_plans.models import NewPlan, PlanCounter, StoredPlan

ORDER = ("-number",)

plans = Documents[StoredPlan](
    "planVersions",
    (Index(("customerId", "-number"), unique=True),),
    client_field="customerId",
    history=History("nutrition_plan", undo="never"),
    transfer=Portable(
        StoredPlan,
        RECORDS,
        checks={"fileName": Text(max_length=250, allow_blank=True)},
        references={"customerId": "customers"},
        files=FileRule((PDF, *IMAGE_TYPES), "plan"),
    ),
)
counters = Documents[PlanCounter](
    "planCounters",
    (Index(("customerId",), unique=True),),
    client_field="customerId",
    transfer=Portable(PlanCounter, RECORDS, references={"customerId": "customers"}, keeps_version=True),
)


async def find_page(
    ctx: Context, customer_id: ObjectId, walk: Walk, selection: ListSelection
) -> tuple[list[StoredPlan], int]:
    """Return the plan versions of a selection for one part of the list of a client, and how many there are."""
    where = {"customerId": customer_id, **selection.filter()}
    return await walk.read(ctx, plans, where)


async def find_one(ctx: Context, customer_id: ObjectId, plan_id: ObjectId) -> StoredPlan | None:
    """Return a plan version, or None."""
    return await plans.find_one(ctx, {"customerId": customer_id, "_id": plan_id})


async def next_number(ctx: Context, customer_id: ObjectId) -> int:
    """Return the next version number; a number is never used twice, not even after its version was deleted."""
    counter = await counters.upsert(ctx, {"customerId": customer_id}, {})
    return counter["version"] + 1


async def insert(ctx: Context, plan: NewPlan) -> StoredPlan:
    """Store a new plan version."""
    return await plans.insert(ctx, plan)


async def delete(ctx: Context, customer_id: ObjectId, plan_id: ObjectId) -> StoredPlan | None:
    """Delete a plan version; returns what was deleted, or None."""
    return await plans.delete(ctx, {"customerId": customer_id, "_id": plan_id})
