"""Forms over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import FORMS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.field_schemas import input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import UpdatedSince
from coaching_service.core.validation import patch_of
from coaching_service.library.forms import service
from coaching_service.library.forms.models import Form, FormChange, NewForm

routes = Routes("/coach/forms", tag="Forms")


@routes.get("", access=coach(FORMS.VIEW))
async def list_forms(ctx: Context, query: UpdatedSince) -> list[Form]:
    """List the forms by name."""
    return await service.list_all(ctx, updated_since=query.get("updatedSince"))


@routes.post(
    "",
    access=coach(FORMS.CREATE),
    example={"name": "Weekly check-in", "questions": [{"label": "How did you sleep?", "type": "rating"}]},
)
async def create_form(ctx: Context, body: NewForm) -> Form:
    """Create a form."""
    return await service.create(ctx, body)


@routes.get("/{formId}", access=coach(FORMS.VIEW))
async def get_form(ctx: Context, form_id: ObjectId) -> Form:
    """Read a form."""
    return await service.get(ctx, form_id)


@routes.patch(
    "/{formId}",
    access=coach(FORMS.EDIT),
    body=patch_of(input_of(NewForm), name="FormChange"),
    example={"name": "Check-in", "version": 0},
)
async def update_form(ctx: Context, form_id: ObjectId, body: FormChange) -> Form:
    """Change a form.

    Scheduled items keep the questions they were scheduled with.
    """
    return await service.update(ctx, form_id, body)


@routes.delete("/{formId}", access=coach(FORMS.DELETE))
async def delete_form(ctx: Context, form_id: ObjectId) -> None:
    """Delete a form.

    Scheduled items keep its questions.
    """
    await service.delete(ctx, form_id)
