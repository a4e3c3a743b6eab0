"""The versions of a client's nutrition plan."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.progress.nutrition_plans import service as nutrition_plans
from coaching_service.web.pages import Pages
from coaching_service.web.search_fields import PageQuery
from coaching_service.web.urls import list_url

pages = Pages("/train")

_PAGE_SIZE = 20


@pages.get("/plan", access=customer(), query=PageQuery, template="train/plan.html")
async def plan_page(ctx: Context, query: PageQuery) -> dict[str, Any]:
    """The versions of the nutrition plan, the latest first."""
    page = await nutrition_plans.list_plans(ctx, ctx.caller.id, page=query["page"], size=_PAGE_SIZE)
    return {"page": page, "address": list_url("/train/plan", query)}
