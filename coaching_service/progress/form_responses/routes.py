"""Form responses over REST."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import FORMS
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Routes, list_of
from coaching_service.core.ids import ObjectId
from coaching_service.progress.form_responses import service
from coaching_service.progress.form_responses.schemas import FormResponse, OpenRange

routes = Routes("/coach/customers/{customerId}/form-responses", tag="Form responses")


@routes.get("", access=coach(FORMS.VIEW), query=OpenRange(), returns=list_of(FormResponse))
async def list_form_responses(ctx: Context, customer_id: ObjectId, query: dict[str, Any]) -> list[dict[str, Any]]:
    """List what a client answered, newest first.

    `date` is the day of the session; a question keeps the wording it had.
    """
    return await service.between(ctx, customer_id, query.get("from"), query.get("to"))
