"""Workout templates: the list, and new ones."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import PROGRAMS
from coaching_service.core.database.context import Context
from coaching_service.core.fields import take
from coaching_service.training.templates import service as templates
from coaching_service.training.templates.editing import TemplatePlan
from coaching_service.training.templates.models import TemplateDetails
from coaching_service.training.workouts.items.descriptions import describe_item
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.search_fields import Search
from coaching_service.web.urls import list_url
from coaching_service.web.views.workout.item_texts import ItemsText, add_text

pages = Pages("/app/templates")
_PAGE_SIZE = 24


class _NewTemplate(TemplateDetails, ItemsText):
    """A template, and its items as text."""


@pages.get("", access=coach(PROGRAMS.VIEW), query=Search, template="library/templates.html")
async def templates_page(ctx: Context, query: Search) -> dict[str, Any]:
    """The templates, by name."""
    page = await templates.list_page(ctx, page=query["page"], size=_PAGE_SIZE, keywords=query["keywords"])
    unit = ctx.caller.company.load_unit
    return {
        "page": page,
        "titles": {
            each["_id"]: [describe_item(item, unit)["title"] for item in each["items"]] for each in page["docs"]
        },
        "query": query,
        "page_url": list_url(pages.prefix, query),
    }


@pages.post("", access=coach(PROGRAMS.CREATE), form=_NewTemplate, on=templates_page)
async def create_template(ctx: Context, form: _NewTemplate) -> Redirect:
    """Create a template, with the items of a text if there is one."""
    template = await templates.create(ctx, {**take(TemplateDetails, form), "items": []})
    plan, text = TemplatePlan(template["_id"]), form["text"]
    _, remarks = await add_text(ctx, plan, template["_id"], text, confirmed=form["confirmed"])
    return Redirect(f"{pages.prefix}/{template['_id']}", f"{template['name']} created.{remarks}")
