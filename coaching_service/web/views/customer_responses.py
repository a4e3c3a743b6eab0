"""The answers of a client to forms, each next to the answers of the time before, and marking them as reviewed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS, FORMS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.pagination import page_document, skip_of
from coaching_service.progress.form_responses import service as form_responses
from coaching_service.progress.form_responses.models import FormResponse
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.search_fields import PageQuery
from coaching_service.web.urls import list_url
from coaching_service.web.views.customer_layout import customer_path, load_header
from coaching_service.web.views.item_results import describe_answer

pages = Pages("/app/customers/{customerId}/check-ins/responses")
_PAGE_SIZE = 8


class _ComparedAnswer(TypedDict):
    """An answer in words, and the answer of the time before; None if the question was not asked then."""

    label: str
    answer: str
    before: str | None
    isChanged: bool


class _ComparedResponse(TypedDict):
    """A response with the date of the one before to the same form, if there is one."""

    _id: ObjectId
    formName: str
    date: str
    isReviewed: bool
    dateBefore: str | None
    answers: list[_ComparedAnswer]


@pages.get("", access=coach(CUSTOMERS.VIEW, FORMS.VIEW), query=PageQuery, template="customer/responses.html")
async def responses_page(ctx: Context, customer_id: ObjectId, query: PageQuery) -> dict[str, Any]:
    """The responses of a client, the latest first."""
    customer, responses = await gather_reads(
        ctx, load_header(ctx, customer_id), form_responses.list_between(ctx, customer_id, None, None)
    )
    first = skip_of(query["page"], _PAGE_SIZE)
    compared = [_compare(responses, at) for at in range(first, min(first + _PAGE_SIZE, len(responses)))]
    return {
        "customer": customer,
        "responses": compared,
        "page": page_document(compared, len(responses), query["page"], _PAGE_SIZE),
        "page_url": list_url(_path(customer_id), query),
    }


def _compare(responses: Sequence[FormResponse], at: int) -> _ComparedResponse:
    """Return the response at a position of a list, newest first, with the answers of the time before."""
    response = responses[at]
    before = next((each for each in responses[at + 1 :] if _form_key(each) == _form_key(response)), None)
    earlier = {answer["questionId"]: answer["value"] for answer in before["answers"]} if before else {}
    return {
        "_id": response["_id"],
        "formName": response["formName"],
        "date": response["date"],
        "isReviewed": response["reviewedAt"] is not None,
        "dateBefore": before["date"] if before else None,
        "answers": [
            {
                "label": answer["label"],
                "answer": describe_answer(answer["value"]),
                "before": describe_answer(earlier[question]) if (question := answer["questionId"]) in earlier else None,
                "isChanged": answer["questionId"] in earlier and earlier[answer["questionId"]] != answer["value"],
            }
            for answer in response["answers"]
        ],
    }


def _form_key(response: FormResponse) -> object:
    return response["formId"] or response["formName"]


@pages.post("/{responseId}/review", access=coach(CUSTOMERS.VIEW, FORMS.EDIT), on=responses_page, query=PageQuery)
async def review_response(ctx: Context, customer_id: ObjectId, response_id: ObjectId, query: PageQuery) -> Redirect:
    """Mark a response as reviewed."""
    response = await form_responses.set_reviewed(ctx, response_id, reviewed=True)
    if response["customer"]["_id"] != customer_id:
        raise NotFound("form response")
    return Redirect(list_url(_path(customer_id), query)(), "Marked as reviewed.")


def _path(customer_id: ObjectId) -> str:
    return customer_path(customer_id, "/check-ins/responses")
