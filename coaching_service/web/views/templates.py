"""Workout templates: the list, new ones, and each one in the editor of the workouts of clients and programs."""

from __future__ import annotations

from functools import partial
from typing import Any

from coaching_service.core.auth.access import PROGRAMS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import patch_of
from coaching_service.training.templates import service as templates
from coaching_service.training.templates.models import TemplateChange, TemplateDetails
from coaching_service.training.templates.service import TemplatePlan
from coaching_service.training.workouts.items.descriptions import describe_item
from coaching_service.web.page_queries import Search, list_url
from coaching_service.web.pages import ConfirmedAction, Pages, Redirect
from coaching_service.web.views.workout import WorkoutOwnerPages, declare_workout_pages
from coaching_service.web.views.workout.cards import ItemsText, add_text

pages = Pages("/app/templates")
_template = pages.below("/{templateId}")
_PAGE_SIZE = 24
_CHANGE_FORM = patch_of(input_of(TemplateDetails), name="TemplateForm")


class _NewTemplate(TemplateDetails, ItemsText):
    """A template, and its items as text."""


@pages.get("", access=coach(PROGRAMS.VIEW), template="library/templates.html")
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


@pages.post("", access=coach(PROGRAMS.CREATE), on=templates_page)
async def create_template(ctx: Context, form: _NewTemplate) -> Redirect:
    """Create a template, with the items of a text if there is one."""
    template = await templates.create(ctx, {**take(TemplateDetails, form), "items": []})
    plan, text = TemplatePlan(template["_id"]), form["text"]
    _, remarks = await add_text(ctx, plan, template["_id"], text)
    return Redirect(f"{pages.prefix}/{template['_id']}", f"{template['name']} created.{remarks}")


async def _layout_variables(ctx: Context, template_id: ObjectId) -> dict[str, Any]:
    return {"template": await templates.get(ctx, template_id)}


declare_workout_pages(
    WorkoutOwnerPages(
        pages=_template,
        owner_type=TemplatePlan,
        owner_parameter="template_id",
        view=PROGRAMS.VIEW,
        edit=PROGRAMS.EDIT,
        layout="library/template_layout.html",
        layout_variables=_layout_variables,
        overview_path=lambda *_: pages.prefix,
        is_single=True,
    )
)


@_template.get("/edit", access=coach(PROGRAMS.EDIT), template="library/edit_template.html")
async def edit_template_page(ctx: Context, template_id: ObjectId) -> dict[str, Any]:
    """The form to change the name, type and tags of a template."""
    template = await templates.get(ctx, template_id)
    return {"template": template, "version": template["version"]}


@_template.post("/edit", access=coach(PROGRAMS.EDIT), form=_CHANGE_FORM, on=edit_template_page)
async def update_template(ctx: Context, template_id: ObjectId, form: TemplateChange) -> Redirect:
    """Change the name, type and tags of a template."""
    await templates.update(ctx, template_id, form)
    return Redirect(f"{pages.prefix}/{template_id}", "Changes saved.")


@_template.confirm("/delete", access=coach(PROGRAMS.DELETE), template="library/delete_template.html", deletes=True)
async def delete_template(ctx: Context, template_id: ObjectId) -> ConfirmedAction:
    """Delete a template."""
    template = await templates.get(ctx, template_id)
    done = Redirect(pages.prefix, f"{template['name']} deleted.")
    return ConfirmedAction({"template": template}, partial(templates.delete, ctx, template_id), done)
