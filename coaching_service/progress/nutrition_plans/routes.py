"""Nutrition plans over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import NUTRITION, coach, customer
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import LegacyFailure
from coaching_service.core.http.routes import MultipartBody, Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import part_of
from coaching_service.core.media import IMAGE_TYPES, PDF
from coaching_service.core.pagination import Page, PageFields, PageQuery
from coaching_service.progress.nutrition_plans import service
from coaching_service.progress.nutrition_plans.models import PlanVersion

routes = Routes("/coach/customers/{customerId}", tag="Nutrition plans", locks="customer")
own_routes = Routes("/customer/plan-versions", tag="The client's own")


@routes.get("/plan-versions", access=coach(NUTRITION.VIEW), query=PageQuery())
async def list_plan_versions(ctx: Context, customer_id: ObjectId, query: PageFields) -> Page[PlanVersion]:
    """List the versions of a client's nutrition plan, newest first."""
    return await service.list_plans(ctx, customer_id, **part_of(query))


@routes.post(
    "/nutrition-plans",
    access=coach(NUTRITION.CREATE),
    multipart=MultipartBody("file", (PDF, *IMAGE_TYPES), size_limit="plan", file_required=True),
    errors=(LegacyFailure,),
    legacy_codes=("NUTRITION_PLAN_FILE_MISSING",),
    example={},
)
async def upload_nutrition_plan(ctx: Context, customer_id: ObjectId, file: StoredFile | None) -> PlanVersion:
    """Upload a nutrition plan.

    A PDF or a picture, which becomes the next version. Without `file`: 500 with `code` NUTRITION_PLAN_FILE_MISSING.
    """
    return await service.upload(ctx, customer_id, file)


@routes.get("/plan-versions/{planId}", access=coach(NUTRITION.VIEW))
async def get_plan_version(ctx: Context, customer_id: ObjectId, plan_id: ObjectId) -> PlanVersion:
    """Read a version of a client's nutrition plan."""
    return await service.get(ctx, customer_id, plan_id)


@routes.delete("/plan-versions/{planId}", access=coach(NUTRITION.DELETE))
async def delete_plan_version(ctx: Context, customer_id: ObjectId, plan_id: ObjectId) -> None:
    """Delete a version of a client's nutrition plan."""
    await service.delete(ctx, customer_id, plan_id)


@own_routes.get("", access=customer(), query=PageQuery())
async def list_own_plan_versions(ctx: Context, query: PageFields) -> Page[PlanVersion]:
    """List the versions of my nutrition plan, newest first."""
    return await service.list_plans(ctx, ctx.caller.id, **part_of(query))
