"""Form responses over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import FORMS
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Routes, list_of
from coaching_service.core.ids import ObjectId
from coaching_service.progress.form_responses import models, schemas, service

routes = Routes("/coach/customers/{customerId}/form-responses", tag="Form responses")


@routes.get("", access=coach(FORMS.VIEW), query=schemas.OpenRange(), returns=list_of(schemas.FormResponse))
async def list_form_responses(ctx: Context, customer_id: ObjectId, query: dict[str, str]) -> list[models.FormResponse]:
    """List a client's responses to forms, newest first.

    `date` is that of the session; each answer has the text of its question at the time.
    """
    return await service.list_between(ctx, customer_id, query.get("from"), query.get("to"))
