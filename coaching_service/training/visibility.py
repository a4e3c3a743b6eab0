"""Which days of their calendar a client sees."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Annotated, TypedDict

from coaching_service.core.auth import CUSTOMERS, Visibility, areas_of, coach
from coaching_service.core.database import declared
from coaching_service.core.database.context import Context, gather_reads, transactional
from coaching_service.core.database.documents import Documents
from coaching_service.core.errors import invalid_field
from coaching_service.core.fields import input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import DateRange, Period, SearchedRange
from coaching_service.core.validation import CalendarDate, DryRun
from coaching_service.people.customers import service as customers

# --- Visibility of calendar days as it is sent, stored and read -------------------------------------------------------


class HiddenDay(declared.Stored):
    """A day that is hidden from a client."""

    customerId: ObjectId
    date: Annotated[str, CalendarDate()]


class DayVisibility(TypedDict):
    """Whether the client sees a day."""

    date: Annotated[str, CalendarDate()]
    isVisible: bool


class VisibilityChange(Period):
    """The days to show or hide."""

    isVisible: bool


# --- Hidden days in the database: one document for each client and hidden day -----------------------------------------


hidden_days = Documents[HiddenDay](
    "hiddenDays",
    (declared.Index(("customerId", "date"), unique=True),),
    client_field="customerId",
    history=declared.History("hidden_day"),
    transfer=declared.Portable(HiddenDay, declared.RECORDS, references={"customerId": "customers"}),
)


async def find_hidden_days(ctx: Context, customer_id: ObjectId, first: str, last: str) -> set[str]:
    """Return the days from `first` to `last` that are hidden from a client whose access has been checked."""
    condition = {"customerId": customer_id, "date": {"$gte": first, "$lte": last}}
    return {day["date"] for day in await hidden_days.find(ctx, condition, fields=("date",))}


MAX_DAYS = 1_100
_FIRST_DATE, _LAST_DATE = "", "9999-12-31"
routes = Routes("/coach/customers/{customerId}/visibility", tag="Visibility", locks="customer")


async def find_visibility(
    ctx: Context, customer_id: ObjectId, first: str = _FIRST_DATE, last: str = _LAST_DATE
) -> Visibility:
    """Return what the caller may see of a client whose access has been checked: no day is hidden from coaches.

    Only the days from `first` to `last` are asked for.
    """
    hidden = set() if ctx.caller.is_coach else await find_hidden_days(ctx, customer_id, first, last)
    return replace(areas_of(ctx.caller), hidden_days=frozenset(hidden))


async def is_shown(ctx: Context, customer_id: ObjectId, day: object) -> bool:
    """Return whether the caller may see a day of a client whose access has been checked, as `find_visibility`."""
    return (await find_visibility(ctx, customer_id, str(day), str(day))).allows(day=str(day))


async def find_days_hidden_from_caller(ctx: Context, customer_id: ObjectId) -> frozenset[str]:
    """Return every day that is hidden from the caller of a client's calendar, for queries that leave them out."""
    return (await find_visibility(ctx, customer_id)).hidden_days


def _list_dates(first: str, last: str) -> list[str]:
    start = date.fromisoformat(first)
    if (count := (date.fromisoformat(last) - start).days + 1) > MAX_DAYS:
        message = f"must not be more than {MAX_DAYS - 1} days after startDate"
        raise invalid_field("endDate", message, code="RANGE_TOO_LONG")
    return [str(start + timedelta(days=number)) for number in range(count)]


# --- REST -------------------------------------------------------------------------------------------------------------


@routes.get("", access=coach(CUSTOMERS.VIEW), query=SearchedRange())
async def get_visibility(ctx: Context, customer_id: ObjectId, query: Period) -> list[DayVisibility]:
    """List which days a client sees.

    Every day of the range, at most three years; shown unless hidden.
    """
    days = _list_dates(query["startDate"], query["endDate"])
    find_hidden = find_hidden_days(ctx, customer_id, query["startDate"], query["endDate"])
    _, hidden = await gather_reads(ctx, customers.get_visible(ctx, customer_id), find_hidden)
    return [{"date": day, "isVisible": day not in hidden} for day in days]


@routes.put(
    "",
    access=coach(CUSTOMERS.EDIT),
    body=input_of(VisibilityChange, DateRange, DryRun)(),
    rolls_back=True,
    example={"startDate": "2026-03-02", "endDate": "2026-03-08", "isVisible": False},
)
@transactional
async def set_visibility(ctx: Context, customer_id: ObjectId, body: VisibilityChange) -> list[DayVisibility]:
    """Show or hide days of a client's calendar."""
    await customers.get_visible(ctx, customer_id)
    first, last, visible = body["startDate"], body["endDate"], body["isVisible"]
    days = _list_dates(first, last)
    if visible or await find_hidden_days(ctx, customer_id, first, last) != set(days):
        where = {"customerId": customer_id, "date": {"$gte": first, "$lte": last}}
        await hidden_days.delete_many(ctx, where)
        if not visible:
            await hidden_days.insert_many(ctx, [{"customerId": customer_id, "date": day} for day in days])
    return [{"date": day, "isVisible": visible} for day in days]
