"""A client's nutrition plans."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from functools import partial
from typing import Annotated, Any, TypedDict, Unpack

from marshmallow import fields

from coaching_service.core import list_selection
from coaching_service.core.auth import NUTRITION, coach, customer
from coaching_service.core.database import declared, files
from coaching_service.core.database.checks import Check, CountRead, Finding, Occurrences
from coaching_service.core.database.context import Context, Services, gather_reads, reading_snapshot, transactional
from coaching_service.core.database.documents import Document, Documents, now
from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import LegacyFailure, require_found
from coaching_service.core.fields import Description, take
from coaching_service.core.http.routes import MultipartBody, Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import IMAGE_TYPES, PDF
from coaching_service.core.validation import Text
from coaching_service.people.activity import service as activity
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.service import list_records
from coaching_service.people.file_links import file_url

# --- Nutrition plans as they are stored and returned ------------------------------------------------------------------


class PlanFile(TypedDict):
    """The file of a version of a client's nutrition plan."""

    customerId: ObjectId
    number: Annotated[int, Description("From 1; a number is never used twice.")]
    fileName: str
    contentType: str
    size: Annotated[int, Description("Bytes.")]


class StoredPlan(PlanFile, declared.Stored):
    """A version of a client's nutrition plan as it is stored; `thumbnailId` is set for pictures."""

    fileId: ObjectId
    thumbnailId: ObjectId | None


class PlanCounter(declared.Stored):
    """Counts the versions of one client's plan: its own `version` rises by one with each."""

    customerId: ObjectId


class PlanVersion(PlanFile, declared.Returned):
    """A version of a client's nutrition plan."""

    url: Annotated[str, fields.Url(), Description("Expires after two hours.")]


# --- Plan versions in the database, numbered from 1 for each client ---------------------------------------------------


ORDER = ("-number",)
_REASON = "the numbers of all companies are checked"


def _event(action: declared.Action, known: Mapping[str, Any], _: Collection[str]) -> declared.EventData | None:
    data = {"planId": known["_id"], "number": known["number"]}
    return {"type": "plan.deleted", "data": data} if action == "deleted" else None


plans = Documents[StoredPlan](
    "planVersions",
    (declared.Index(("customerId", "-number"), unique=True),),
    client_field="customerId",
    history=declared.History("nutrition_plan", _event, ("number",), undo="never"),
    transfer=declared.Portable(
        StoredPlan,
        declared.RECORDS,
        checks={"fileName": Text(max_length=250, allow_blank=True)},
        references={"customerId": "customers"},
        files=declared.FileRule((PDF, *IMAGE_TYPES), "plan"),
    ),
    cross_company_reason=_REASON,
)
counters = Documents[PlanCounter](
    "planCounters",
    (declared.Index(("customerId",), unique=True),),
    client_field="customerId",
    no_history_reason="the last number of a plan, which is never given twice",
    transfer=declared.Portable(
        PlanCounter, declared.RECORDS, references={"customerId": "customers"}, keeps=("version",)
    ),
    cross_company_reason=_REASON,
)


routes = Routes("/coach/customers/{customerId}", tag="Nutrition plans", locks="customer")
own_routes = Routes("/customer/plan-versions", tag="The client's own")


@routes.get("/plan-versions", access=coach(NUTRITION.VIEW), query=list_selection.PageQuery())
async def list_plan_versions(
    ctx: Context, customer_id: ObjectId, query: list_selection.PageFields
) -> list_selection.Page[PlanVersion]:
    """List the versions of a client's nutrition plan, newest first."""
    return await list_plans(ctx, customer_id, **list_selection.part_of(query))


@own_routes.get("", access=customer(), query=list_selection.PageQuery())
async def list_own_plan_versions(ctx: Context, query: list_selection.PageFields) -> list_selection.Page[PlanVersion]:
    """List the versions of my nutrition plan, newest first."""
    return await list_plans(ctx, ctx.caller.id, **list_selection.part_of(query))


async def list_plans(
    ctx: Context, customer_id: ObjectId, **part: Unpack[list_selection.PartOfList]
) -> list_selection.Page[PlanVersion]:
    """Return one page of a client's plan versions, newest first, or those after a cursor.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    present = partial(_to_plan, ctx)
    return await list_records(ctx, customer_id, plans, "nutrition_plans", ORDER, present, part)


@routes.post(
    "/nutrition-plans",
    access=coach(NUTRITION.CREATE),
    multipart=MultipartBody("file", (PDF, *IMAGE_TYPES), size_limit="plan", file_required=True),
    errors=(LegacyFailure,),
    legacy_codes=("NUTRITION_PLAN_FILE_MISSING",),
    example={},
    operation_id="uploadNutritionPlan",
)
@transactional
async def upload(ctx: Context, customer_id: ObjectId, file: StoredFile | None) -> PlanVersion:
    """Upload a nutrition plan.

    A PDF or a picture, which becomes the next version. Without `file`: 500 with `code` NUTRITION_PLAN_FILE_MISSING.
    """
    await customers.get_visible(ctx, customer_id)
    if file is None:
        raise LegacyFailure("NUTRITION_PLAN_FILE_MISSING", "The nutrition plan's file is missing")
    counter = await counters.upsert(ctx, {"customerId": customer_id}, {})
    plan = await plans.insert(
        ctx,
        {
            "customerId": customer_id,
            "number": counter["version"] + 1,  # never used twice, not even after its version was deleted
            "fileName": file.name or "plan",
            "contentType": file.content_type,
            "size": file.size,
            "fileId": file.id,
            "thumbnailId": file.thumbnail_id,
        },
    )
    data = {"planId": plan["_id"], "number": plan["number"], "fileName": plan["fileName"]}
    await activity.record_event(ctx, "plan_uploaded", customer_id, plan["_id"], **data)
    return _to_plan(ctx, plan)


@routes.get("/plan-versions/{planId}", access=coach(NUTRITION.VIEW), operation_id="getPlanVersion")
async def get(ctx: Context, customer_id: ObjectId, plan_id: ObjectId) -> PlanVersion:
    """Read a version of a client's nutrition plan."""
    where = {"customerId": customer_id, "_id": plan_id}
    _, plan = await gather_reads(ctx, customers.get_visible(ctx, customer_id), plans.find_one(ctx, where))
    return _to_plan(ctx, require_found(plan, "plan version"))


@routes.delete("/plan-versions/{planId}", access=coach(NUTRITION.DELETE), operation_id="deletePlanVersion")
@transactional
async def delete(ctx: Context, customer_id: ObjectId, plan_id: ObjectId) -> None:
    """Delete a version of a client's nutrition plan."""
    await customers.get_visible(ctx, customer_id)
    plan = require_found(await plans.delete(ctx, {"customerId": customer_id, "_id": plan_id}), "plan version")
    await activity.delete_events(ctx, customer_id, plan_id, "plan_uploaded")
    await files.discard(ctx, [plan["fileId"], plan["thumbnailId"]])


def _to_plan(ctx: Context, stored: StoredPlan) -> PlanVersion:
    return {**take(PlanVersion, stored), "url": str(file_url(ctx, stored["fileId"]))}


# --- Checks of the numbers of plan versions ---------------------------------------------------------------------------


async def _find_low_counters(services: Services, session: Any = None) -> list[Document]:
    """Return the clients (`_id`) whose next version would have a used number, with their highest `number`."""
    of_client = {"$and": [{"$eq": [f"${name}", f"$${name}"]} for name in ("companyId", "customerId")]}
    counter = {
        "from": counters.name,
        "let": {"companyId": "$_id.companyId", "customerId": "$_id.customerId"},
        "pipeline": [{"$match": {"$expr": of_client}}],
        "as": "counter",
    }
    group = {"_id": {"companyId": "$companyId", "customerId": "$customerId"}, "number": {"$max": "$number"}}
    # The first version has the number 1 and the version 0 of its counter.
    stages: list[Document] = [
        {"$group": group},
        {"$lookup": counter},
        {"$set": {"last": {"$add": [{"$ifNull": [{"$first": "$counter.version"}, -1]}, 1]}}},
        {"$match": {"$expr": {"$gt": ["$number", "$last"]}}},
        {"$sort": {"_id": 1}},  # so that every check names the same client as its example
        {"$project": {"number": 1}},
    ]
    cursor = plans.across_companies(services).aggregate(stages, session=session, allowDiskUse=True)
    low: list[Any] = await cursor.to_list(None)
    return low


async def find_low_counters(services: Services, _: CountRead) -> AsyncIterator[Finding]:
    """Find clients whose next plan version would have a number that is used already, which fails."""
    occurrences = Occurrences()
    if await _find_low_counters(services):
        async with reading_snapshot(services) as session:
            for low in await _find_low_counters(services, session):
                occurrences.add(low["_id"]["customerId"])
    problem = "Clients whose counter of nutrition plans is too low"
    yield occurrences.finding(problem, "Run doctor --repair; until then no plan can be uploaded for them")


async def raise_counters(services: Services) -> None:
    """Raise these counters to the highest number in use."""
    for low in await _find_low_counters(services):
        metadata = dict.fromkeys(("createdAt", "updatedAt"), now())
        change = {"$max": {"version": low["number"] - 1}, "$setOnInsert": metadata}
        await counters.across_companies(services).update_one(low["_id"], change, upsert=True)


CHECKS = (Check("plan-numbers", "The numbers of plan versions are right", find_low_counters, raise_counters),)
