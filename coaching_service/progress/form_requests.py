"""Which check-ins are pending: the scheduled forms that clients have not answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, NotRequired, TypedDict

from marshmallow import validates_schema

from coaching_service.core import validation
from coaching_service.core.auth import CUSTOMERS, FORMS, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.database.documents import Filter, now
from coaching_service.core.errors import PermissionMissing
from coaching_service.core.fields import Description
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import CursorPage, ListPart, PartQuery
from coaching_service.core.mcp import arguments
from coaching_service.core.mcp.results import Answer, Written, typed
from coaching_service.core.mcp.tools import Tools
from coaching_service.people import availability
from coaching_service.people.availability import Absences
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import NamedCustomer
from coaching_service.progress import form_responses as responses
from coaching_service.progress import own_today
from coaching_service.progress.conversation.messages import MAX_TEXT_LENGTH
from coaching_service.progress.conversation.tools import write_message
from coaching_service.progress.form_responses import ReceivedResponse
from coaching_service.training.workouts.reports import blocks as block_reports
from coaching_service.training.workouts.reports.blocks import PendingForm

_MOST_OVERDUE = 1_000
_ORDER = ("date", "_id", "items._id")
# How far local time can be behind and ahead of UTC.
_BEHIND, _AHEAD = timedelta(hours=12), timedelta(hours=14)


class FormRequestQuery(PartQuery):
    """Filters of the pending forms; they combine with AND."""

    overdue: NotRequired[Annotated[bool, Description("`true`: only requests of past dates; `false`: only the others.")]]
    customerId: NotRequired[Annotated[ObjectId, Description("Only forms of this client.")]]


class _OfCustomer(TypedDict):
    customer: Annotated[NamedCustomer, Description("The client.")]


class FormRequest(_OfCustomer, own_today.PendingForm):
    """A scheduled form that the client has not answered."""

    isOverdue: Annotated[bool, Description("The date is before the client's today, and not in an absence.")]


async def list_pending(
    ctx: Context,
    *,
    limit: int,
    after: str | None = None,
    overdue: bool | None = None,
    customer_id: ObjectId | None = None,
) -> CursorPage[FormRequest]:
    """Return part of the pending forms of the active clients in the coach's scope, oldest first.

    `overdue`: of dates before the client's today, or the others (None: both); of one client. Raises InvalidFields if
    `after` is not a cursor of this list with the same filters.
    """
    filters = {"overdue": overdue, "customerId": customer_id}
    list_part = ListPart(ctx, "form-requests", filters, _ORDER, size=limit, after=after)
    stored = await block_reports.find_pending_forms(
        ctx,
        list_part.condition(),
        dates=_possible_dates(overdue),
        customer_ids=await customers.select_ids_in_scope(ctx, customer_id),
        limit=limit + 1,
    )
    absences = await _load_absences(ctx, stored)
    part = list_part.by_cursor(stored, lambda pending: _present(ctx, pending, absences))
    # Only the client's time zone decides whether a form of about today is overdue.
    docs = [request for request in part["docs"] if overdue in (None, request["isOverdue"])]
    return {"docs": docs, "nextCursor": part["nextCursor"], "hasMore": part["hasMore"]}


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
    return [request for pending in stored if (request := _present(ctx, pending, absences))["isOverdue"]]


async def _load_absences(ctx: Context, stored: Sequence[PendingForm]) -> Mapping[ObjectId, Absences]:
    """Return on which days of these forms their clients do not train."""
    dates = [pending["date"] for pending in stored] or [""]
    clients = list({pending["customerId"] for pending in stored})
    return await availability.get_absences(ctx, clients, min(dates), max(dates))


def _possible_dates(overdue: bool | None) -> Filter:
    """Return the dates on which a form can be overdue, or not be, somewhere in the world."""
    if overdue is None:
        return {}
    return {"$lt": str((now() + _AHEAD).date())} if overdue else {"$gte": str((now() - _BEHIND).date())}


def _present(ctx: Context, pending: PendingForm, absences: Mapping[ObjectId, Absences]) -> FormRequest:
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


# --- REST -------------------------------------------------------------------------------------------------------------


routes = Routes("/coach/form-requests", tag="Form responses")


@routes.get("", access=coach(FORMS.VIEW))
async def list_form_requests(ctx: Context, query: FormRequestQuery) -> CursorPage[FormRequest]:
    """List the scheduled forms that clients have not answered, oldest first.

    Forms of archived clients, and of those that the caller may not see, are left out.
    """
    overdue, customer_id = query.get("overdue"), query.get("customerId")
    return await list_pending(ctx, limit=query["limit"], after=query["after"], overdue=overdue, customer_id=customer_id)


# --- Check-ins for assistants: the forms that clients have to answer, their answers, and the review of these ----------


tools = Tools()
_LONGEST_ANSWER = 600
_STATUSES = ("pending", "to_review", "reviewed")


class ListCheckIns(arguments.ToolPart):
    """Which check-ins, and which part of the list."""

    status = validation.Choice(*_STATUSES, **arguments.optional("to_review: answered; without it pending ones too."))
    customerId = validation.Identifier(**arguments.optional("Without it all clients."))

    @validates_schema
    def validate_after(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raises ValidationError for a cursor without a status: only a list of one status continues."""
        if data["after"] is not None and data["status"] is None:
            raise validation.invalid("needs a status", "NOT_COMBINED", "after")


class ReviewCheckIn(arguments.Arguments):
    """The response, and an answer to the client."""

    responseId = validation.Identifier(required=True, metadata={"description": "From list_check_ins."})
    isReviewed = validation.Boolean(load_default=True, metadata={"description": "false: it has to be reviewed again."})
    reply = validation.Text(max_length=MAX_TEXT_LENGTH, **arguments.optional("A message to the client."))


@tools.tool("List check-ins", access=coach(FORMS.VIEW), takes=ListCheckIns(), returns=arguments.Lines)
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
            last = await responses.list_received(ctx, limit=1, reviewed=True, customer_id=customer_id)
            lines = [f"Last answered, reviewed: {_describe_response(each)}" for each in last["docs"]]
            docs, texts = [*docs, *({"line": line} for line in lines)], [*texts, *lines]
        has_more = "nextCursor" in to_review.data or "nextCursor" in pending.data
        hint = "There are more: repeat with a status." if has_more else ""
        data = arguments.describe_list("Check-ins to review, then those without an answer", {}, hint)
        return Answer("\n".join([*texts, *([hint] if hint else [])]), {**data, "docs": docs})
    return await _list(ctx, status, customer_id, limit, after)


async def _list(ctx: Context, status: str, customer_id: ObjectId | None, limit: int, after: str | None) -> Answer:
    if status == "pending":
        requests = await list_pending(ctx, limit=limit, after=after, customer_id=customer_id)
        lines = []
        for request in requests["docs"]:
            customer, overdue = request["customer"], " overdue" if request["isOverdue"] else ""
            named = f"{typed(customer['name'])} [{customer['_id']}] {typed(request['formName'])}"
            lines.append(f"{request['date']}{overdue}: {named}")
        return arguments.list_answer("Check-ins without an answer", requests, lines)
    received = await responses.list_received(
        ctx, limit=limit, after=after, reviewed=status == "reviewed", customer_id=customer_id
    )
    lines = [_describe_response(response) for response in received["docs"]]
    title = "Reviewed check-ins" if status == "reviewed" else "Check-ins to review"
    return arguments.list_answer(title, received, lines)


def _describe_response(response: ReceivedResponse) -> str:
    customer = response["customer"]
    named = f"{typed(customer['name'])} [{customer['_id']}] {typed(response['formName'])}"
    lines = [f"{response['date']}: {named}, responseId {response['_id']}"]
    for answer in response["answers"]:
        value = answer["value"]
        text = arguments.format_figure(value) if value is None or isinstance(value, int | float) else "-"
        if isinstance(value, str | list) and value != []:
            words = value if isinstance(value, list) else [value]
            text = ", ".join(arguments.typed_line(str(each), _LONGEST_ANSWER) for each in words)
        lines.append(f"  {arguments.typed_line(answer['label'], _LONGEST_ANSWER)}: {text}")
    return "\n".join(lines)


@tools.tool("Review a check-in", access=coach(FORMS.EDIT), takes=ReviewCheckIn(), writes=True, open_world=True)
async def review_check_in(ctx: Context, response_id: ObjectId, *, is_reviewed: bool, reply: str | None) -> Written:
    """Mark a check-in that a client has answered as reviewed, and send a reply if there is one."""
    response = await responses.set_reviewed(ctx, response_id, reviewed=is_reviewed)
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
