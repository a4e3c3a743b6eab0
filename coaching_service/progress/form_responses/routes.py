"""Form responses over REST."""

from __future__ import annotations

from coaching_service.core.auth import FORMS, coach, customer
from coaching_service.core.database.context import Context
from coaching_service.core.errors import NotFound
from coaching_service.core.field_schemas import output_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import CursorPage, cursor_page_of
from coaching_service.progress.form_responses import service

routes = Routes("/coach/customers/{customerId}/form-responses", tag="Form responses")
own_routes = Routes("/customer/form-responses", tag="The client's own")
inbox_routes = Routes(
    "/coach/form-responses", tag="Form responses", path_descriptions={"responseId": "The response to a form."}
)
# With the fields of a response first.
_RECEIVED = output_of(service.ReceivedResponse, output_of(service.FormResponse))


@routes.get("", access=coach(FORMS.VIEW), query=service.OPEN_RANGE())
async def list_form_responses(
    ctx: Context, customer_id: ObjectId, query: service.OpenRange
) -> list[service.FormResponse]:
    """List a client's responses to forms, newest first.

    `date` is the date of the session; each answer has the text of its question at the time.
    """
    return await service.list_between(ctx, customer_id, query.get("from"), query.get("to"))


@inbox_routes.get("", access=coach(FORMS.VIEW), query=service.INBOX_QUERY(), returns=cursor_page_of(_RECEIVED))
async def list_received_form_responses(ctx: Context, query: service.InboxQuery) -> CursorPage[service.ReceivedResponse]:
    """List the responses of all clients to forms, the one with the latest date first.

    Responses of clients whom the caller may not see are left out.
    """
    return await service.list_received(
        ctx,
        limit=query["limit"],
        after=query["after"],
        reviewed=query.get("reviewed"),
        form_id=query.get("formId"),
        customer_id=query.get("customerId"),
        start_date=query.get("from"),
        end_date=query.get("to"),
    )


@inbox_routes.get("/{responseId}", access=coach(FORMS.VIEW), returns=_RECEIVED, errors=(NotFound,))
async def get_form_response(ctx: Context, response_id: ObjectId) -> service.ReceivedResponse:
    """Read a response of a client to a form."""
    return await service.get_received(ctx, response_id)


@inbox_routes.put(
    "/{responseId}/reviewed",
    access=coach(FORMS.EDIT),
    returns=_RECEIVED,
    errors=(NotFound,),
    example={"reviewed": True},
)
async def set_form_response_reviewed(
    ctx: Context, response_id: ObjectId, body: service.Review
) -> service.ReceivedResponse:
    """Mark a response as reviewed, or remove the mark.

    Repeating is harmless. New answers of the client also remove the mark.
    """
    return await service.set_reviewed(ctx, response_id, reviewed=body["reviewed"])


@own_routes.get("", access=customer(), query=service.OPEN_RANGE())
async def list_own_form_responses(ctx: Context, query: service.OpenRange) -> list[service.FormResponse]:
    """List my responses to forms, newest first.

    `date` is the date of the session; responses of days that are hidden from the client are left out.
    """
    return await service.list_between(ctx, ctx.caller.id, query.get("from"), query.get("to"))
