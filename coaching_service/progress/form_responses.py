"""Clients' responses to the forms of their workouts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, NotRequired, TypedDict, cast

from marshmallow import ValidationError, validates_schema

from coaching_service.core.auth import FORMS, coach, customer
from coaching_service.core.database import declared
from coaching_service.core.database.context import Context, gather_reads, transactional
from coaching_service.core.database.documents import Documents, Filter, PipelineStage, now
from coaching_service.core.database.recording import LoggedEvent
from coaching_service.core.errors import FieldError, InvalidFields, NotFound, require_found
from coaching_service.core.field_schemas import output_of, query_of
from coaching_service.core.fields import Description, names_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import CursorPage, ListPart, PartQuery, cursor_page_of
from coaching_service.core.validation import CalendarDate, Input, SearchedDate, Text
from coaching_service.library.forms import AnswerValue, Question
from coaching_service.people.customers import derived_figures
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import DatedCount, NamedCustomer
from coaching_service.training import visibility
from coaching_service.training.workouts.blocks.models import RecordedItemsRescheduled
from coaching_service.training.workouts.items.models import FormAnswer, ItemForm
from coaching_service.training.workouts.reports import blocks as block_reports

# --- Clients' responses to forms as they are asked for, stored and returned -------------------------------------------


class FormResponseAnswer(TypedDict):
    """An answer with the text of its question at the time."""

    questionId: ObjectId
    label: str
    value: Annotated[Any | None, AnswerValue()]


class ResponseFields(TypedDict):
    """The content of a response; `date` is the session's."""

    formId: Annotated[ObjectId | None, Description("null if the form was made for the workout item.")]
    formName: Annotated[str, Text()]
    date: Annotated[str, CalendarDate()]
    answers: list[FormResponseAnswer]


class ReviewFields(TypedDict):
    """When a coach marked a response as reviewed (UTC), and which coach."""

    reviewedAt: Annotated[
        datetime | None, Description("When a coach reviewed it; null until then, and after other answers.")
    ]
    reviewedBy: Annotated[ObjectId | None, Description("The coach who reviewed it.")]


class StoredResponse(declared.Stored, ResponseFields):
    """A stored response to the form of the workout item `witemId`; the review is missing in old responses."""

    customerId: ObjectId
    witemId: ObjectId
    reviewedAt: NotRequired[datetime | None]
    reviewedBy: NotRequired[ObjectId | None]


class FormResponse(ResponseFields, ReviewFields, declared.Returned):
    """A client's response to a form."""


class ReceivedResponse(FormResponse):
    """A response to a form with its client."""

    customer: Annotated[NamedCustomer, Description("The client.")]


# From `from` to `to`, both included. `from` is a keyword of Python, so this type has the functional form.
OpenRange = TypedDict(
    "OpenRange",
    {"to": NotRequired[Annotated[str, SearchedDate()]], "from": NotRequired[Annotated[str, SearchedDate()]]},
)


class InboxQuery(PartQuery, OpenRange):
    """Filters of the responses of all clients; they combine with AND."""

    reviewed: NotRequired[Annotated[bool, Description("`true`: only reviewed ones; `false`: only the others.")]]
    formId: NotRequired[Annotated[ObjectId, Description("Only responses to this form.")]]
    customerId: NotRequired[Annotated[ObjectId, Description("Only responses of this client.")]]


class _InOrder(Input):
    @validates_schema
    def in_order(self, data: OpenRange, **_: Any) -> None:
        """The end is not before the start."""
        if "from" in data and "to" in data and data["to"] < data["from"]:
            raise ValidationError("must not be before from", "to")


OPEN_RANGE = query_of(OpenRange, _InOrder)
INBOX_QUERY = query_of(InboxQuery, _InOrder)


class Review(TypedDict):
    """Whether a response is reviewed."""

    reviewed: Annotated[bool, Description("`false` takes the mark away.")]


# --- Form responses in the database: at most one for a workout item ---------------------------------------------------


INBOX_ORDER = ("-date", "-_id")


def _texts(response: Mapping[str, Any]) -> Iterator[declared.SearchedText]:
    answers = [each["value"] for each in response.get("answers", ())]
    listed = [value if isinstance(value, list) else [value] for value in answers if isinstance(value, str | list)]
    text = "\n".join(str(word) for words in listed for word in words)
    yield declared.SearchedText("answers", response.get("formName", ""), text, response.get("date"))


responses = Documents[StoredResponse](
    "formResponses",
    (
        declared.Index(("customerId", "-date", "-_id")),
        declared.Index(("customerId", "witemId"), unique=True),
        declared.Index((*INBOX_ORDER, "customerId")),
        declared.Index((*INBOX_ORDER, "customerId", "formId"), partial_filter=(("reviewedAt", {"$eq": None}),)),
        declared.Index(("formId", *INBOX_ORDER)),
        declared.Index(("customerId", "updatedAt"), partial_filter=(("reviewedAt", {"$eq": None}),)),
        declared.Index(("reviewedAt", "customerId")),
    ),
    client_field="customerId",
    history=declared.History("form_response"),
    transfer=declared.Portable(
        StoredResponse,
        declared.RECORDS,
        references={"customerId": "customers"},
        keeps=("updatedAt",),  # when it was answered
    ),
    searched=declared.Searched(("answers",), ("formName", "date", "answers"), _texts),
)
_NOT_REVIEWED = responses.index_name("customerId", "updatedAt")
_BY_REVIEW = responses.index_name("reviewedAt", "customerId")


async def list_reviewed(ctx: Context, since: datetime, until: datetime) -> list[StoredResponse]:
    """Return the responses that coaches have reviewed from one time up to another: who, when, and when it was sent."""
    where: Filter = {"reviewedAt": {"$gte": since, "$lt": until}}
    fields = ("customerId", "createdAt", "reviewedAt", "reviewedBy")
    return await responses.find(ctx, where, fields=fields, hint=_BY_REVIEW)


async def count_not_reviewed(ctx: Context, customer_ids: Sequence[ObjectId]) -> list[DatedCount]:
    """Return how many responses no coach has reviewed, of clients with any. Access is not checked."""
    where: Filter = {"customerId": {"$in": list(customer_ids)}, "reviewedAt": None}
    group = {"_id": "$customerId", "count": {"$sum": 1}, "newest": {"$max": "$updatedAt"}}
    return await responses.aggregate(ctx, where, {"$group": group}, hint=_NOT_REVIEWED)


_MAX_LENGTH, _MAX_NUMBER = 10_000, 1e15
_LOWEST_RATING, _HIGHEST_RATING = 1, 10
_RETURNED = names_of(FormResponse)


def require_valid(form: ItemForm, answers: Sequence[FormAnswer], *, complete: bool) -> None:
    """Validate answers against the questions of their form.

    Raises NotFound for a question that is not in the form; InvalidFields for answers that do not match their
    questions and, with `complete`, for required questions without an answer.
    """
    questions = {question["_id"]: question for question in form["questions"]}
    answered = [answer["questionId"] for answer in answers]
    if not set(answered) <= questions.keys():
        raise NotFound("question")
    errors: list[FieldError] = [
        {"field": f"answers.{position}.value", "code": "INVALID_ANSWER", "message": message}
        for position, answer in enumerate(answers)
        if (message := _find_error(questions[answer["questionId"]], answer["value"])) is not None
    ]
    if len(set(answered)) < len(answered):
        message = "must answer each question only once"
        errors.append({"field": "answers", "code": "DUPLICATE", "message": message})
    given = {each["questionId"] for each in answers if each["value"] not in (None, []) and str(each["value"]).strip()}
    for question_id, question in questions.items() if complete else ():
        if question["required"] and question["type"] != "photo" and question_id not in given:
            message = f"must answer the required question {question_id}"
            errors.append({"field": "answers", "code": "ANSWER_REQUIRED", "message": message})
    if errors:
        raise InvalidFields(errors)


async def record_response(
    ctx: Context,
    customer_id: ObjectId,
    item_id: ObjectId,
    form: ItemForm,
    date: str,
    answers: Sequence[FormAnswer],
) -> ObjectId | None:
    """Replace the response to a FORM item, in the transaction of its log; without answers it is deleted.

    The response has the text of the questions at the time. Returns its identifier, None if it was deleted.
    """
    where = {"customerId": customer_id, "witemId": item_id}
    if not answers:
        await responses.delete_many(ctx, where)
        return None
    labels = {question["_id"]: question["label"] for question in form["questions"]}
    given: list[FormResponseAnswer] = [
        {"questionId": each["questionId"], "value": each["value"], "label": labels[each["questionId"]]}
        for each in answers
    ]
    fields: ResponseFields = {"formId": form["formId"], "formName": form["name"], "date": date, "answers": given}
    previous = await responses.find_one(ctx, where, ("answers", "reviewedAt", "reviewedBy"))
    same = previous if previous is not None and previous["answers"] == given else None
    review: ReviewFields = {  # other answers have to be reviewed again
        "reviewedAt": same.get("reviewedAt") if same else None,
        "reviewedBy": same.get("reviewedBy") if same else None,
    }
    return (await responses.upsert(ctx, where, {**fields, **review}))["_id"]


async def move_responses(ctx: Context, event: RecordedItemsRescheduled) -> None:
    """Move the responses submitted with rescheduled items to the new date."""
    where = {"customerId": event.customer_id, "witemId": {"$in": list(event.item_ids)}}
    await responses.update_many(ctx, where, {"$set": {"date": event.date}})


async def list_between(
    ctx: Context, customer_id: ObjectId, start_date: str | None, end_date: str | None
) -> list[FormResponse]:
    """Return a client's responses between two dates, both included, newest first; None leaves an end open.

    Days that are hidden from a client are left out of what this client reads. Raises NotFound if the company has no
    such client, Forbidden if the client is outside the caller's scope.
    """
    dates = _dates_between(start_date, end_date)
    where: Filter = {"customerId": customer_id} | ({"date": dates} if dates else {})
    _, visible, listed = await gather_reads(
        ctx,
        customers.get_visible(ctx, customer_id),
        visibility.find_visibility(ctx, customer_id),
        responses.find(ctx, where, sort=INBOX_ORDER, fields=_RETURNED),
    )
    return [_present(response) for response in listed if visible.allows(day=response["date"])]


def _dates_between(start_date: str | None, end_date: str | None) -> Filter:
    bounds = {"$gte": start_date, "$lte": end_date}
    return {operator: bound for operator, bound in bounds.items() if bound is not None}


async def locate_own(ctx: Context, response_ids: Sequence[ObjectId]) -> dict[ObjectId, tuple[ObjectId, ObjectId]]:
    """Return the block and the item that each of some responses of the caller, a client, belongs to.

    Responses whose item was removed are left out.
    """
    where: Filter = {"customerId": ctx.caller.id, "_id": {"$in": list(response_ids)}}
    listed = await responses.find(ctx, where, fields=("witemId",), hint="_id_")
    items = {response["_id"]: response["witemId"] for response in listed}
    found = await block_reports.find_items(ctx, [ctx.caller.id], items.values())
    return {each: (found[item_id]["wblockId"], item_id) for each, item_id in items.items() if item_id in found}


async def find_items(ctx: Context, response_ids: Sequence[ObjectId]) -> dict[ObjectId, tuple[ObjectId, ObjectId]]:
    """Return the client and the item of each of some responses. Access is not checked."""
    fields = ("customerId", "witemId")
    listed = await responses.find(ctx, {"_id": {"$in": list(response_ids)}}, fields=fields, hint="_id_")
    return {response["_id"]: (response["customerId"], response["witemId"]) for response in listed}


async def list_received(
    ctx: Context,
    *,
    limit: int,
    after: str | None = None,
    reviewed: bool | None = None,
    form_id: ObjectId | None = None,
    customer_id: ObjectId | None = None,
    start_date: str | None = None,
    end_date: str | None = None,
) -> CursorPage[ReceivedResponse]:
    """Return part of the responses of all clients in the coach's scope, the one with the latest date first.

    `reviewed` or not (None: both); to one form, of one client, between two dates, both included. Raises InvalidFields
    if `after` is not a cursor of this list with the same filters.
    """
    filters = {"reviewed": reviewed, "formId": form_id, "customerId": customer_id, "from": start_date, "to": end_date}
    list_part = ListPart(ctx, "form-responses", filters, INBOX_ORDER, size=limit, after=after)
    where = list_part.condition()
    if dates := _dates_between(start_date, end_date):
        where = {"$and": [where, {"date": dates}]}
    if reviewed is not None:
        where = {**where, "reviewedAt": {"$ne": None} if reviewed else None}
    if form_id is not None:
        where = {**where, "formId": form_id}
    if (customer_ids := await customers.select_ids_in_scope(ctx, customer_id)) is not None:
        where = {**where, "customerId": {"$in": list(customer_ids)}}
    stored = await responses.find(ctx, where, sort=INBOX_ORDER, limit=limit + 1)
    part = list_part.by_cursor(stored, lambda entry: entry)
    references = await customers.find_references(ctx, list({response["customerId"] for response in part["docs"]}))
    docs: list[ReceivedResponse] = [
        {**_present(response), "customer": references[response["customerId"]]}
        for response in part["docs"]
        if response["customerId"] in references  # the client may be being erased
    ]
    return {"docs": docs, "nextCursor": part["nextCursor"], "hasMore": part["hasMore"]}


async def get_received(ctx: Context, response_id: ObjectId) -> ReceivedResponse:
    """Return a response of any client in the coach's scope. Raises NotFound, Forbidden."""
    response = require_found(await responses.find_one(ctx, {"_id": response_id}), "form response")
    return {**_present(response), "customer": await customers.get_visible_reference(ctx, response["customerId"])}


@transactional
async def set_reviewed(ctx: Context, response_id: ObjectId, *, reviewed: bool) -> ReceivedResponse:
    """Mark a response as reviewed by the caller, or as not reviewed; repeating changes nothing.

    Raises NotFound for a response that does not exist, Forbidden if its client is outside the caller's scope.
    """
    response = require_found(await responses.find_one(ctx, {"_id": response_id}), "form response")
    customer = await customers.get_visible_reference(ctx, response["customerId"])
    if reviewed != (response.get("reviewedAt") is not None):
        review = {"reviewedAt": now() if reviewed else None, "reviewedBy": ctx.caller.id if reviewed else None}
        where = {"customerId": response["customerId"], "_id": response_id}
        response = require_found(await responses.update(ctx, where, {"$set": review}), "form response")
        await derived_figures.mark_due(ctx, [customer["_id"]])
        if reviewed:
            data = {"responseId": response_id}
            ctx.changes.events.append(LoggedEvent("form.reviewed", customer["_id"], data, response_id))
    return {**_present(response), "customer": customer}


async def find_newest_unreviewed_texts(ctx: Context, customer_ids: Sequence[ObjectId]) -> dict[ObjectId, str]:
    """Return the newest response without a review in words, of clients with any. Access is not checked."""
    where: Filter = {"customerId": {"$in": list(customer_ids)}, "reviewedAt": None}
    stages: list[PipelineStage] = [
        {"$sort": {"customerId": 1, "updatedAt": 1}},
        {"$group": {"_id": "$customerId", "newest": {"$last": "$$ROOT"}}},
        {"$replaceRoot": {"newRoot": "$newest"}},
    ]
    newest: list[StoredResponse] = await responses.aggregate(ctx, where, *stages, hint=_NOT_REVIEWED)
    texts: dict[ObjectId, str] = {}
    for each in newest:
        answers = [(answer["label"], answer["value"]) for answer in each["answers"]]
        words = [value for _, value in answers if value and isinstance(value, str)]
        words += [f"{label} {value}" for label, value in answers if isinstance(value, int | float)]
        texts[each["customerId"]] = f"{each['formName']}: {'; '.join(words)}" if words else each["formName"]
    return texts


def _present(stored: StoredResponse) -> FormResponse:
    """Return a stored response as it is returned."""
    return cast("FormResponse", {name: stored.get(name) for name in _RETURNED})


# --- Answers to the questions of a form ------------------------------------------------------------------------------


def _find_error(question: Question, value: Any) -> str | None:
    """Return what is wrong with an answer, such as "must be a number", or None. Null is valid for every question."""
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match question["type"]:
        case "text":
            is_valid, error = isinstance(value, str), "must be a string"
            if is_valid and len(value) > _MAX_LENGTH:
                return f"must not be longer than {_MAX_LENGTH} characters"
        case "number":
            is_valid, error = is_number and math.isfinite(value) and abs(value) <= _MAX_NUMBER, "must be a number"
        case "rating":
            is_valid = is_number and isinstance(value, int) and _LOWEST_RATING <= value <= _HIGHEST_RATING
            error = f"must be an integer from {_LOWEST_RATING} to {_HIGHEST_RATING}"
        case "choice":
            is_valid, error = (
                isinstance(value, str) and value in question["options"],
                "must be one of the question's options",
            )
        case "multi":
            is_valid = isinstance(value, list) and all(
                isinstance(each, str) and each in question["options"] for each in value
            )
            error = "must be an array of the question's options"
            if is_valid and len(set(value)) < len(value):
                return "must name each option only once"
        case _:
            return "must be null: a photo is a picture of the item that names the question"
    return None if is_valid else error


# --- REST -------------------------------------------------------------------------------------------------------------


routes = Routes("/coach/customers/{customerId}/form-responses", tag="Form responses")
own_routes = Routes("/customer/form-responses", tag="The client's own")
inbox_routes = Routes(
    "/coach/form-responses", tag="Form responses", path_descriptions={"responseId": "The response to a form."}
)
# With the fields of a response first.
_RECEIVED = output_of(ReceivedResponse, output_of(FormResponse))


@routes.get("", access=coach(FORMS.VIEW), query=OPEN_RANGE())
async def list_form_responses(ctx: Context, customer_id: ObjectId, query: OpenRange) -> list[FormResponse]:
    """List a client's responses to forms, newest first.

    `date` is the date of the session; each answer has the text of its question at the time.
    """
    return await list_between(ctx, customer_id, query.get("from"), query.get("to"))


@inbox_routes.get("", access=coach(FORMS.VIEW), query=INBOX_QUERY(), returns=cursor_page_of(_RECEIVED))
async def list_received_form_responses(ctx: Context, query: InboxQuery) -> CursorPage[ReceivedResponse]:
    """List the responses of all clients to forms, the one with the latest date first.

    Responses of clients whom the caller may not see are left out.
    """
    return await list_received(
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
async def get_form_response(ctx: Context, response_id: ObjectId) -> ReceivedResponse:
    """Read a response of a client to a form."""
    return await get_received(ctx, response_id)


@inbox_routes.put(
    "/{responseId}/reviewed",
    access=coach(FORMS.EDIT),
    returns=_RECEIVED,
    errors=(NotFound,),
    example={"reviewed": True},
)
async def set_form_response_reviewed(ctx: Context, response_id: ObjectId, body: Review) -> ReceivedResponse:
    """Mark a response as reviewed, or remove the mark.

    Repeating is harmless. New answers of the client also remove the mark.
    """
    return await set_reviewed(ctx, response_id, reviewed=body["reviewed"])


@own_routes.get("", access=customer(), query=OPEN_RANGE())
async def list_own_form_responses(ctx: Context, query: OpenRange) -> list[FormResponse]:
    """List my responses to forms, newest first.

    `date` is the date of the session; responses of days that are hidden from the client are left out.
    """
    return await list_between(ctx, ctx.caller.id, query.get("from"), query.get("to"))
