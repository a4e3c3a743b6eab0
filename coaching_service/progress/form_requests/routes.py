"""Pending forms over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import FORMS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Routes
from coaching_service.core.pagination import CursorPage
from coaching_service.progress.form_requests import service
from coaching_service.progress.form_requests.models import FormRequest, FormRequestQuery

routes = Routes("/coach/form-requests", tag="Form responses")


@routes.get("", access=coach(FORMS.VIEW))
async def list_form_requests(ctx: Context, query: FormRequestQuery) -> CursorPage[FormRequest]:
    """List the scheduled forms that clients have not answered, oldest first.

    Forms of archived clients, and of those that the caller may not see, are left out.
    """
    return await service.list_pending(
        ctx,
        limit=query["limit"],
        after=query["after"],
        overdue=query.get("overdue"),
        customer_id=query.get("customerId"),
    )
