"""One workout template, in the same editor as the workouts of clients and programs."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import PROGRAMS
from coaching_service.core.database.context import Context
from coaching_service.core.field_schemas import input_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import patch_of
from coaching_service.training.templates import service as templates
from coaching_service.training.templates.editing import TemplatePlan
from coaching_service.training.templates.models import TemplateChange, TemplateDetails
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.workout import WorkoutOwnerPages, declare_workout_pages

pages = Pages("/app/templates/{templateId}")
_LIST = "/app/templates"
_CHANGE_FORM = patch_of(input_of(TemplateDetails), name="TemplateForm")


async def _layout_variables(ctx: Context, template_id: ObjectId) -> dict[str, Any]:
    return {"template": await templates.get(ctx, template_id)}


declare_workout_pages(
    WorkoutOwnerPages(
        pages=pages,
        owner_type=TemplatePlan,
        owner_parameter="template_id",
        view=PROGRAMS.VIEW,
        edit=PROGRAMS.EDIT,
        layout="library/template_layout.html",
        layout_variables=_layout_variables,
        overview_path=lambda *_: _LIST,
        is_single=True,
    )
)


@pages.get("/edit", access=coach(PROGRAMS.EDIT), template="library/edit_template.html")
async def edit_template_page(ctx: Context, template_id: ObjectId) -> dict[str, Any]:
    """The form to change the name, type and tags of a template."""
    template = await templates.get(ctx, template_id)
    return {"template": template, "version": template["version"]}


@pages.post("/edit", access=coach(PROGRAMS.EDIT), form=_CHANGE_FORM, on=edit_template_page)
async def update_template(ctx: Context, template_id: ObjectId, form: TemplateChange) -> Redirect:
    """Change the name, type and tags of a template."""
    await templates.update(ctx, template_id, form)
    return Redirect(f"{_LIST}/{template_id}", "Changes saved.")


@pages.get("/delete", access=coach(PROGRAMS.DELETE), template="library/delete_template.html")
async def delete_template_page(ctx: Context, template_id: ObjectId) -> dict[str, Any]:
    """Confirmation of deleting a template."""
    return {"template": await templates.get(ctx, template_id)}


@pages.post("/delete", access=coach(PROGRAMS.DELETE), on=delete_template_page)
async def delete_template(ctx: Context, template_id: ObjectId) -> Redirect:
    """Delete a template."""
    template = await templates.get(ctx, template_id)
    await templates.delete(ctx, template_id)
    return Redirect(_LIST, f"{template['name']} deleted.")
