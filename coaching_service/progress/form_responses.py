"""Clients' responses to the forms of their workouts, and the scheduled forms that they have not answered."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, NotRequired, TypedDict, cast

from marshmallow import ValidationError, validates_schema

from coaching_service.core import mcp, validation
from coaching_service.core.auth import CUSTOMERS, FORMS, coach, customer
from coaching_service.core.database import declared
from coaching_service.core.database.context import Context, gather_reads, transactional
from coaching_service.core.database.documents import Documents, Filter, PipelineStage, now
from coaching_service.core.database.recording import LoggedEvent
from coaching_service.core.errors import FieldError, InvalidFields, NotFound, PermissionMissing, require_found
from coaching_service.core.fields import Description, names_of, output_of, query_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import CursorPage, ListPart, PartQuery, cursor_page_of
from coaching_service.core.mcp import Answer, Tools, Written, typed
from coaching_service.core.validation import CalendarDate, Date, Input, SearchedDate
from coaching_service.library.forms import AnswerValue, Question
from coaching_service.people import availability
from coaching_service.people.availability import Absences
from coaching_service.people.customers import derived_figures
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import DatedCount, NamedCustomer
from coaching_service.progress.conversation.messages import MAX_TEXT_LENGTH
from coaching_service.progress.conversation.tools import write_message
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
    formName: Annotated[str, validation.Text()]
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


routes = Routes("/coach/customers/{customerId}/form-responses", tag="Form responses")
own_routes = Routes("/customer/form-responses", tag="The client's own")
inbox_routes = Routes(
    "/coach/form-responses", tag="Form responses", path_descriptions={"responseId": "The response to a form."}
)
# With the fields of a response first.
_RECEIVED = output_of(ReceivedResponse, output_of(FormResponse))


@routes.get("", access=coach(FORMS.VIEW), query=OPEN_RANGE(), operation_id="listFormResponses")
async def list_between(ctx: Context, customer_id: ObjectId, query: OpenRange) -> list[FormResponse]:
    """List a client's responses to forms, newest first.

    `date` is the date of the session; each answer has the text of its question at the time.
    """
    # Without those of days that are hidden from a client who reads.
    dates = _dates_between(query)
    where: Filter = {"customerId": customer_id} | ({"date": dates} if dates else {})
    _, visible, listed = await gather_reads(
        ctx,
        customers.get_visible(ctx, customer_id),
        visibility.find_visibility(ctx, customer_id),
        responses.find(ctx, where, sort=INBOX_ORDER, fields=_RETURNED),
    )
    return [_present(response) for response in listed if visible.allows(day=response["date"])]


@own_routes.get("", access=customer(), query=OPEN_RANGE())
async def list_own_form_responses(ctx: Context, query: OpenRange) -> list[FormResponse]:
    """List my responses to forms, newest first.

    `date` is the date of the session; responses of days that are hidden from the client are left out.
    """
    return await list_between(ctx, ctx.caller.id, query)


def _dates_between(query: OpenRange) -> Filter:
    bounds = {"$gte": query.get("from"), "$lte": query.get("to")}
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


@inbox_routes.get(
    "",
    access=coach(FORMS.VIEW),
    query=INBOX_QUERY(),
    returns=cursor_page_of(_RECEIVED),
    operation_id="listReceivedFormResponses",
)
async def list_received(ctx: Context, query: InboxQuery) -> CursorPage[ReceivedResponse]:
    """List the responses of all clients to forms, the one with the latest date first.

    Responses of clients whom the caller may not see are left out.
    """
    reviewed, form_id, customer_id = query.get("reviewed"), query.get("formId"), query.get("customerId")
    bounds = {"from": query.get("from"), "to": query.get("to")}
    filters = {"reviewed": reviewed, "formId": form_id, "customerId": customer_id, **bounds}
    list_part = ListPart(ctx, "form-responses", filters, INBOX_ORDER, size=query["limit"], after=query["after"])
    where = list_part.condition()
    if dates := _dates_between(query):
        where = {"$and": [where, {"date": dates}]}
    if reviewed is not None:
        where = {**where, "reviewedAt": {"$ne": None} if reviewed else None}
    if form_id is not None:
        where = {**where, "formId": form_id}
    if (customer_ids := await customers.select_ids_in_scope(ctx, customer_id)) is not None:
        where = {**where, "customerId": {"$in": list(customer_ids)}}
    stored = await responses.find(ctx, where, sort=INBOX_ORDER, limit=list_part.limit)
    part = list_part.by_cursor(stored, lambda entry: entry)
    references = await customers.find_references(ctx, list({response["customerId"] for response in part["docs"]}))
    docs: list[ReceivedResponse] = [
        {**_present(response), "customer": references[response["customerId"]]}
        for response in part["docs"]
        if response["customerId"] in references  # the client may be being erased
    ]
    return {**part, "docs": docs}


@inbox_routes.get("/{responseId}", access=coach(FORMS.VIEW), returns=_RECEIVED, errors=(NotFound,))
async def get_form_response(ctx: Context, response_id: ObjectId) -> ReceivedResponse:
    """Read a response of a client to a form."""
    response = require_found(await responses.find_one(ctx, {"_id": response_id}), "form response")
    return {**_present(response), "customer": await customers.get_visible_reference(ctx, response["customerId"])}


@inbox_routes.put(
    "/{responseId}/reviewed",
    access=coach(FORMS.EDIT),
    returns=_RECEIVED,
    errors=(NotFound,),
    example={"reviewed": True},
    operation_id="setFormResponseReviewed",
)
@transactional
async def set_reviewed(ctx: Context, response_id: ObjectId, body: Review) -> ReceivedResponse:
    """Mark a response as reviewed, or remove the mark.

    Repeating is harmless. New answers of the client also remove the mark.
    """
    reviewed = body["reviewed"]
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


# --- Which forms are pending: scheduled, and not answered ---------------------------------------------------------


_MOST_OVERDUE = 1_000
_REQUEST_ORDER = ("date", "_id", "items._id")
# How far local time can be behind and ahead of UTC.
_BEHIND, _AHEAD = timedelta(hours=12), timedelta(hours=14)


class FormRequestQuery(PartQuery):
    """Filters of the pending forms; they combine with AND."""

    overdue: NotRequired[Annotated[bool, Description("`true`: only requests of past dates; `false`: only the others.")]]
    customerId: NotRequired[Annotated[ObjectId, Description("Only forms of this client.")]]


class PendingForm(TypedDict):
    """A scheduled form without an answer."""

    formId: Annotated[ObjectId | None, Description("null if the form was made for the workout item.")]
    formName: Annotated[str, Description("The name of the form.")]
    date: Annotated[str, Date(), Description("The date it is scheduled for.")]
    wblockId: Annotated[ObjectId, Description("The workout block it is in.")]
    witemId: Annotated[ObjectId, Description("The item with the form.")]


class _OfCustomer(TypedDict):
    customer: Annotated[NamedCustomer, Description("The client.")]


class FormRequest(_OfCustomer, PendingForm):
    """A scheduled form that the client has not answered."""

    isOverdue: Annotated[bool, Description("The date is before the client's today, and not in an absence.")]


request_routes = Routes("/coach/form-requests", tag="Form responses")


@request_routes.get("", access=coach(FORMS.VIEW), operation_id="listFormRequests")
async def list_pending(ctx: Context, query: FormRequestQuery) -> CursorPage[FormRequest]:
    """List the scheduled forms that clients have not answered, oldest first.

    Forms of archived clients, and of those that the caller may not see, are left out.
    """
    overdue, customer_id = query.get("overdue"), query.get("customerId")
    filters = {"overdue": overdue, "customerId": customer_id}
    list_part = ListPart(ctx, "form-requests", filters, _REQUEST_ORDER, size=query["limit"], after=query["after"])
    stored = await block_reports.find_pending_forms(
        ctx,
        list_part.condition(),
        dates=_possible_dates(overdue),
        customer_ids=await customers.select_ids_in_scope(ctx, customer_id),
        limit=list_part.limit,
    )
    absences = await _load_absences(ctx, stored)
    part = list_part.by_cursor(stored, lambda pending: _present_request(ctx, pending, absences))
    # Only the client's time zone decides whether a form of about today is overdue.
    docs = [request for request in part["docs"] if overdue in (None, request["isOverdue"])]
    return {**part, "docs": docs}


async def list_overdue(ctx: Context, *, limit: int) -> list[FormRequest]:
    """Return the latest overdue forms of the active clients in the coach's scope, newest first."""
    customer_ids = await customers.select_ids_in_scope(ctx, None)
    return await _find_overdue(ctx, _possible_dates(overdue=True), customer_ids, limit)


async def _find_overdue(
    ctx: Context, dates: Filter, customer_ids: Sequence[ObjectId] | None, limit: int
) -> list[FormRequest]:
    """Return which of the latest pending forms on these dates are overdue, newest first; at most `limit` are read."""
    stored = await block_reports.find_pending_forms(
        ctx, {}, dates=dates, customer_ids=customer_ids, limit=limit, newest_first=True
    )
    absences = await _load_absences(ctx, stored)
    return [request for pending in stored if (request := _present_request(ctx, pending, absences))["isOverdue"]]


async def _load_absences(ctx: Context, stored: Sequence[block_reports.PendingForm]) -> Mapping[ObjectId, Absences]:
    """Return on which days of these forms their clients do not train."""
    dates = [pending["date"] for pending in stored] or [""]
    clients = list({pending["customerId"] for pending in stored})
    return await availability.get_absences(ctx, clients, min(dates), max(dates))


def _possible_dates(overdue: bool | None) -> Filter:
    """Return the dates on which a form can be overdue, or not be, somewhere in the world."""
    if overdue is None:
        return {}
    return {"$lt": str((now() + _AHEAD).date())} if overdue else {"$gte": str((now() - _BEHIND).date())}


def _present_request(
    ctx: Context, pending: block_reports.PendingForm, absences: Mapping[ObjectId, Absences]
) -> FormRequest:
    """Return a pending form; one of a day of absence is not overdue."""
    client, item = pending["client"], pending["items"]
    return {
        "customer": {"_id": pending["customerId"], "name": customers.full_name(client)},
        "formId": item["form"]["formId"],
        "formName": item["form"]["name"],
        "date": pending["date"],
        "wblockId": pending["_id"],
        "witemId": item["_id"],
        "isOverdue": pending["date"] < str(ctx.caller.today(client["timezone"]))
        and pending["date"] not in absences[pending["customerId"]],
    }


async def describe_overdue(ctx: Context, customer_ids: Sequence[ObjectId], days: int) -> dict[ObjectId, str]:
    """Return the latest form that each client has not answered in the last days. Access is not checked."""
    since = str((now() - timedelta(days=days + 1)).date())
    dates = {"$gte": since, **_possible_dates(overdue=True)}
    overdue = await _find_overdue(ctx, dates, customer_ids, _MOST_OVERDUE)
    return {each["customer"]["_id"]: f"{each['formName']} of {each['date']}" for each in reversed(overdue)}


# --- Check-ins for assistants: the forms that clients have to answer, their answers, and the review of these ----------


tools = Tools()
_LONGEST_ANSWER = 600
_STATUSES = ("pending", "to_review", "reviewed")


class ListCheckIns(mcp.ToolPart):
    """Which check-ins, and which part of the list."""

    status = validation.Choice(*_STATUSES, **mcp.optional("to_review: answered; without it pending ones too."))
    customerId = validation.Identifier(**mcp.optional("Without it all clients."))

    @validates_schema
    def validate_after(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raises ValidationError for a cursor without a status: only a list of one status continues."""
        if data["after"] is not None and data["status"] is None:
            raise validation.invalid("needs a status", "NOT_COMBINED", "after")


class ReviewCheckIn(mcp.Arguments):
    """The response, and an answer to the client."""

    responseId = validation.Identifier(required=True, metadata={"description": "From list_check_ins."})
    isReviewed = validation.Boolean(load_default=True, metadata={"description": "false: it has to be reviewed again."})
    reply = validation.Text(max_length=MAX_TEXT_LENGTH, **mcp.optional("A message to the client."))


@tools.tool("List check-ins", access=coach(FORMS.VIEW), takes=ListCheckIns(), returns=mcp.Lines)
async def list_check_ins(
    ctx: Context, status: str | None, customer_id: ObjectId | None, limit: int, after: str | None
) -> Answer:
    """List clients' check-ins (forms): answered ones that no coach has reviewed, with the answers, newest first; and
    scheduled ones without an answer, oldest first."""
    if status is None:
        to_review, pending = await gather_reads(
            ctx, _list(ctx, "to_review", customer_id, limit, None), _list(ctx, "pending", customer_id, limit, None)
        )
        docs = [*to_review.data["docs"], *pending.data["docs"]]
        texts = [to_review.text, pending.text]
        if customer_id is not None and not to_review.data["docs"]:  # else the newest answer is there
            newest: InboxQuery = {"limit": 1, "after": None, "reviewed": True, "customerId": customer_id}
            last = await list_received(ctx, newest)
            lines = [f"Last answered, reviewed: {_describe_response(each)}" for each in last["docs"]]
            docs, texts = [*docs, *({"line": line} for line in lines)], [*texts, *lines]
        has_more = "nextCursor" in to_review.data or "nextCursor" in pending.data
        hint = "There are more: repeat with a status." if has_more else ""
        data = mcp.describe_list("Check-ins to review, then those without an answer", {}, hint)
        return Answer("\n".join([*texts, *([hint] if hint else [])]), {**data, "docs": docs})
    return await _list(ctx, status, customer_id, limit, after)


async def _list(ctx: Context, status: str, customer_id: ObjectId | None, limit: int, after: str | None) -> Answer:
    asked: FormRequestQuery = {"limit": limit, "after": after}
    answered: InboxQuery = {"limit": limit, "after": after, "reviewed": status == "reviewed"}
    if customer_id is not None:
        asked["customerId"] = answered["customerId"] = customer_id
    if status == "pending":
        requests = await list_pending(ctx, asked)
        lines = []
        for request in requests["docs"]:
            customer, overdue = request["customer"], " overdue" if request["isOverdue"] else ""
            named = f"{typed(customer['name'])} [{customer['_id']}] {typed(request['formName'])}"
            lines.append(f"{request['date']}{overdue}: {named}")
        return mcp.list_answer("Check-ins without an answer", requests, lines)
    received = await list_received(ctx, answered)
    lines = [_describe_response(response) for response in received["docs"]]
    title = "Reviewed check-ins" if status == "reviewed" else "Check-ins to review"
    return mcp.list_answer(title, received, lines)


def _describe_response(response: ReceivedResponse) -> str:
    customer = response["customer"]
    named = f"{typed(customer['name'])} [{customer['_id']}] {typed(response['formName'])}"
    lines = [f"{response['date']}: {named}, responseId {response['_id']}"]
    for answer in response["answers"]:
        value = answer["value"]
        text = mcp.format_figure(value) if value is None or isinstance(value, int | float) else "-"
        if isinstance(value, str | list) and value != []:
            words = value if isinstance(value, list) else [value]
            text = ", ".join(mcp.typed_line(str(each), _LONGEST_ANSWER) for each in words)
        lines.append(f"  {mcp.typed_line(answer['label'], _LONGEST_ANSWER)}: {text}")
    return "\n".join(lines)


@tools.tool("Review a check-in", access=coach(FORMS.EDIT), takes=ReviewCheckIn(), writes=True, open_world=True)
async def review_check_in(ctx: Context, response_id: ObjectId, *, is_reviewed: bool, reply: str | None) -> Written:
    """Mark a check-in that a client has answered as reviewed, and send a reply if there is one."""
    response = await set_reviewed(ctx, response_id, {"reviewed": is_reviewed})
    customer = response["customer"]
    named = f"{typed(response['formName'])} of {typed(customer['name'])} on {response['date']}"
    state = "reviewed" if is_reviewed else "to be reviewed"
    line = f"Marked {named} as {state}." if ctx.change_id is not None else f"{named} is {state} already."
    identifiers: dict[str, ObjectId] = {"customerId": customer["_id"], "responseId": response_id}
    if reply is None:
        return Written(line if ctx.change_id is not None else f"Nothing changed: {line}", identifiers)
    if CUSTOMERS.EDIT not in ctx.caller.permissions:
        raise PermissionMissing(CUSTOMERS.EDIT)
    sent = await write_message(ctx, customer["_id"], reply)
    return Written(f"{sent.line} {line}", {**identifiers, **sent.identifiers})
