"""Calendar links over REST."""

from __future__ import annotations

from marshmallow import fields

from coaching_service.core.auth.access import CUSTOMERS, coach, public
from coaching_service.core.database.context import Context
from coaching_service.core.errors import CompanySuspended, NotFound
from coaching_service.core.http.responses import Download
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.integrations.calendar_feed import service
from coaching_service.integrations.calendar_feed.models import CalendarLink

routes = Routes("/coach/customers/{customerId}/calendar-link", tag="Calendar feed", locks="customer")
feed_routes = Routes(
    service.PATH, tag="Calendar feed", path_descriptions={"calendarToken": "The signed part of the link."}
)


@routes.post("", access=coach(CUSTOMERS.EDIT))
async def create_calendar_link(ctx: Context, customer_id: ObjectId) -> CalendarLink:
    """Create a link to the calendar of a client.

    For calendar applications, which read the `url` from time to time. A client has one link: a repetition returns the
    same one until it is revoked.
    """
    return await service.create(ctx, customer_id)


@routes.delete("", access=coach(CUSTOMERS.EDIT))
async def delete_calendar_link(ctx: Context, customer_id: ObjectId) -> None:
    """Revoke the link to the calendar of a client.

    Its address no longer works; the next link has another one.
    """
    await service.revoke(ctx, customer_id)


@feed_routes.get(
    "/{calendarToken}",
    access=public(),
    returns=bytes,
    media_types=("text/calendar",),
    errors=(
        CompanySuspended,
        NotFound,
    ),
    path_fields={"calendarToken": fields.String(metadata={"pattern": r"^[0-9a-f]{24}\.[A-Za-z0-9_-]{43}$"})},
    other_responses={304: "The calendar has not changed: its `ETag` is in `If-None-Match`."},
)
async def get_calendar(ctx: Context, calendar_token: str) -> Download:
    """Read the calendar of a client by a calendar link.

    An iCalendar file with the titles of the workouts from 92 days ago for a year, without those on hidden days and days
    of absence, and with the periods of availability. It is 404 after the link was revoked, and while the client is
    archived.
    """
    return await service.get(ctx, calendar_token)
