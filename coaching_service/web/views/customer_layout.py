"""What all pages of a client share: the page header and the addresses of their tabs."""

from __future__ import annotations

from datetime import date
from typing import TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.file_links import file_url
from coaching_service.core.ids import ObjectId
from coaching_service.people.availability import service as availability
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import CustomerRoleData
from coaching_service.web.views.availability_forms import PeriodText, describe_period

_HEADER_FIELDS = ("_id", "name", "surname", "timezone", "customerRoleData", "profilePhoto")


class CustomerHeader(TypedDict):
    """What the layout of a client's pages shows; `portrait`: the address of the thumbnail.

    `period`: the present or next one in which the client cannot train as planned, or None.
    """

    _id: ObjectId
    name: str
    surname: str | None
    timezone: str | None
    customerRoleData: CustomerRoleData
    portrait: str | None
    period: PeriodText | None


async def load_header(ctx: Context, customer_id: ObjectId) -> CustomerHeader:
    """Load what the layout of a client's pages shows. Raises NotFound, Forbidden."""
    customer = await customers.get_visible(ctx, customer_id, _HEADER_FIELDS)
    photo = customer.get("profilePhoto")
    today = ctx.caller.today(customer["timezone"])
    period = await availability.find_present_or_next(ctx, customer_id, today)
    return {
        "_id": customer_id,
        "name": customer["name"],
        "surname": customer["surname"],
        "timezone": customer["timezone"],
        "customerRoleData": customer["customerRoleData"],
        "portrait": file_url(ctx.services, photo["thumbnailId"] if photo else None),
        "period": describe_period(period, today) if period else None,
    }


def customer_path(customer_id: ObjectId, tab: str = "") -> str:
    """Return the path of a client's page, such as `/app/customers/{id}/notes` for the tab `/notes`."""
    return f"/app/customers/{customer_id}{tab}"


def week_path(customer_id: ObjectId, day: str) -> str:
    """Return the path of the calendar week that contains a date."""
    return f"/app/customers/{customer_id}?week={day}"


def review_path(customer_id: ObjectId, block_id: ObjectId) -> str:
    """Return the path of the review of a client's workout."""
    return customer_path(customer_id, f"/blocks/{block_id}/review")


async def get_today(ctx: Context, customer_id: ObjectId) -> date:
    """Return today's date where a client is. Raises NotFound, Forbidden."""
    customer = await customers.get_visible(ctx, customer_id, (*customers.SCOPE_FIELDS, "timezone"))
    return ctx.caller.today(customer["timezone"])
