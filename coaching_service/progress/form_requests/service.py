"""Which check-ins are pending: the scheduled forms that clients have not answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, NotRequired, TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter, now
from coaching_service.core.fields import Description
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import CursorPage, ListPart, PartQuery
from coaching_service.people.availability import service as availability
from coaching_service.people.availability.absences import Absences
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import NamedCustomer
from coaching_service.progress import own_today
from coaching_service.training.workouts.reports import blocks as queries
from coaching_service.training.workouts.reports.models import PendingForm

_MOST_OVERDUE = 1_000
_ORDER = ("date", "_id", "items._id")
# How far local time can be behind and ahead of UTC.
_BEHIND, _AHEAD = timedelta(hours=12), timedelta(hours=14)


class FormRequestQuery(PartQuery):
    """Filters of the pending forms; they combine with AND."""

    overdue: NotRequired[Annotated[bool, Description("`true`: only requests of past dates; `false`: only the others.")]]
    customerId: NotRequired[Annotated[ObjectId, Description("Only forms of this client.")]]


class OfCustomer(TypedDict):
    """A record with its client."""

    customer: Annotated[NamedCustomer, Description("The client.")]


class FormRequest(OfCustomer, own_today.PendingForm):
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
    stored = await queries.find_pending_forms(
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
    stored = await queries.find_pending_forms(
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
