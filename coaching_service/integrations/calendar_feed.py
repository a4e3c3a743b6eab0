"""Links with which a calendar application shows a client's workouts, and the calendar that they lead to."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, date, timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from marshmallow import fields

from coaching_service import __version__
from coaching_service.core import audit
from coaching_service.core.auth import CUSTOMERS, coach, public
from coaching_service.core.database.context import Context, gather_reads, transactional
from coaching_service.core.database.declared import Index, NotExported, Stored, Unsharded
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.recording import interface_of
from coaching_service.core.errors import CompanySuspended, NotFound, require_found
from coaching_service.core.fields import Description
from coaching_service.core.http.responses import Download, to_json
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.people import availability
from coaching_service.people.availability import Absences, Availability, AvailabilityKind
from coaching_service.people.customers import service as customers
from coaching_service.training import visibility
from coaching_service.training.workouts.reports import blocks as block_reports
from coaching_service.training.workouts.reports.blocks import BlockTitle

if TYPE_CHECKING:
    from icalendar import Event


# --- Calendar links as they are stored and returned -------------------------------------------------------------------


class StoredCalendarLink(Stored):
    """The link to a client's calendar, signed by its `_id`. It works for as long as this document exists."""

    customerId: ObjectId


class CalendarLink(TypedDict):
    """The link to a client's calendar."""

    url: Annotated[
        str,
        fields.Url(),
        Description("An iCalendar file. Anyone who has the address can read it, until the link is revoked."),
    ]


# --- Database access for calendar links: at most one for each client --------------------------------------------------


links = Documents[StoredCalendarLink](
    "calendarLinks",
    (Index(("customerId",), unique=True),),
    client_field="customerId",
    secret=True,
    cross_company_reason="a link is found before its company is known",
    placement=Unsharded("calendars ask for a link by its identifier, every hour"),
    transfer=NotExported("links of this company, which others have"),
)


PATH = "/calendar"
DAYS_BACK, DAYS_AHEAD = 92, 366
_LAST_DAY = "9999-12-30"  # of the calendar, but for the day after it
_REFRESH = timedelta(hours=1)
_TITLES: dict[AvailabilityKind, str] = {
    "away": "Away",
    "injured": "Injured",
    "ill": "Ill",
    "limited": "Limited training",
}


async def find_url(ctx: Context, customer_id: ObjectId) -> str | None:
    """Return the address of a client's calendar, or None. Raises NotFound, Forbidden."""
    await customers.get_visible(ctx, customer_id)
    link = await links.find_one(ctx, {"customerId": customer_id})
    return None if link is None else _url(ctx, link)


def _url(ctx: Context, link: StoredCalendarLink) -> str:
    text = _signed_text(link["_id"], for_application=interface_of(ctx) == "application")
    signature = ctx.services.vault.sign(text)
    return f"{ctx.services.base_url}{PATH}/{link['_id']}.{signature}"


def _signed_text(link_id: ObjectId, *, for_application: bool) -> str:
    """Return the text that the signature covers: the address of an application is one of its own."""
    return f"calendar:{link_id}" + (":application" if for_application else "")


# --- The file (RFC 5545) ---------------------------------------------------------------------------------------------


def _write_calendar(
    name: str, blocks: Sequence[BlockTitle], periods: Sequence[Availability], open_until: str | None
) -> bytes:
    """Return a calendar called `name` with an event of a whole day for each block: its title and nothing else.

    And an event for each period of availability, without its note, up to `open_until` if it has no end. The same
    arguments give the same bytes. It is slow: call it on a thread.
    """
    from icalendar import Calendar  # large, and not needed by processes that serve no calendar

    calendar = Calendar()
    calendar.add("prodid", "-//coaching-service//calendar feed//EN")
    calendar.add("version", "2.0")
    calendar.add("method", "PUBLISH")
    calendar.add("x-wr-calname", " ".join(name.split()))
    calendar.add("refresh-interval", _REFRESH, parameters={"VALUE": "DURATION"})
    for period in periods:
        event = _make_event(period["from"], _TITLES[period["kind"]], period)
        end = min(period["until"] or open_until or period["from"], _LAST_DAY)
        event.add("dtend", date.fromisoformat(end) + timedelta(days=1))
        calendar.add_component(event)
    for block in blocks:
        calendar.add_component(_make_event(block["date"], block["name"], block))
    file: bytes = calendar.to_ical()
    return file


def _make_event(first: str, title: str, document: BlockTitle | Availability) -> Event:
    from icalendar import Event

    event = Event()
    event.add("uid", f"{document['_id']}@coaching-service")
    event.add("dtstamp", document["updatedAt"].replace(tzinfo=UTC))
    event.add("dtstart", date.fromisoformat(first))
    event.add("summary", " ".join(title.split()))
    event.add("sequence", document["version"])
    event.add("transp", "TRANSPARENT")  # it does not make its days busy
    return event


# --- Calendar links over REST -----------------------------------------------------------------------------------------


routes = Routes("/coach/customers/{customerId}/calendar-link", tag="Calendar feed", locks="customer")
feed_routes = Routes(PATH, tag="Calendar feed", path_descriptions={"calendarToken": "The signed part of the link."})


@routes.post("", access=coach(CUSTOMERS.EDIT), operation_id="createCalendarLink")
@transactional
async def create(ctx: Context, customer_id: ObjectId) -> CalendarLink:
    """Create a link to the calendar of a client.

    For calendar applications, which read the `url` from time to time. A client has one link: a repetition returns the
    same one until it is revoked.
    """
    await customers.get_visible(ctx, customer_id)
    owner = {"customerId": customer_id}
    link = await links.find_one(ctx, owner) or await links.upsert(ctx, owner, {})
    await audit.record(ctx, "calendar_link.created", customer_id=customer_id)
    return {"url": _url(ctx, link)}


@routes.get("", access=coach(CUSTOMERS.VIEW), errors=(NotFound,))
async def get_calendar_link(ctx: Context, customer_id: ObjectId) -> CalendarLink:
    """Read the link to the calendar of a client.

    404 if there is none.
    """
    return {"url": require_found(await find_url(ctx, customer_id), "calendar link")}


@routes.delete("", access=coach(CUSTOMERS.EDIT), operation_id="deleteCalendarLink")
@transactional
async def revoke(ctx: Context, customer_id: ObjectId) -> None:
    """Revoke the link to the calendar of a client.

    Its address no longer works; the next link has another one.
    """
    await customers.get_visible(ctx, customer_id)
    if not await links.delete_many(ctx, {"customerId": customer_id}):
        raise NotFound("calendar link")
    await audit.record(ctx, "calendar_link.deleted", customer_id=customer_id)


@feed_routes.get(
    "/{calendarToken}",
    access=public(),
    returns=bytes,
    media_types=("text/calendar",),
    errors=(CompanySuspended, NotFound),
    path_fields={"calendarToken": fields.String(metadata={"pattern": r"^[0-9a-f]{24}\.[A-Za-z0-9_-]{43}$"})},
    other_responses={304: "The calendar has not changed: its `ETag` is in `If-None-Match`."},
)
async def get_calendar(ctx: Context, calendar_token: str) -> Download:
    """Read the calendar of a client by a calendar link.

    An iCalendar file with the titles of the workouts from 92 days ago for a year, without those on hidden days and days
    of absence, and with the periods of availability. It is 404 after the link was revoked, and while the client is
    archived.
    """
    # Always the same error: the link is not valid or was revoked, the client is archived or deleted, or the link is
    # for an application and the client has declined applications since.
    identifier, _, signature = calendar_token.partition(".")
    link_id, verify = parse_id(identifier), ctx.services.vault.verify_signature
    if link_id is None:
        raise NotFound("calendar")
    for_application = verify(_signed_text(link_id, for_application=True), signature)
    if not for_application and not verify(_signed_text(link_id, for_application=False), signature):
        raise NotFound("calendar")
    link: Any = await links.across_companies(ctx.services).find_one({"_id": link_id}, {"companyId": 1, "customerId": 1})
    link = require_found(link, "calendar")
    client = await customers.load_principal(ctx.services, link["companyId"], link["customerId"])
    ctx = ctx.acting_as(require_found(client, "calendar"))
    if for_application and not (await customers.get_consent(ctx, ctx.caller.id))["applications"]:
        raise NotFound("calendar")
    today = ctx.caller.today()
    first, last = str(today - timedelta(days=DAYS_BACK)), str(today + timedelta(days=DAYS_AHEAD))
    blocks, visible, periods_of = await gather_reads(
        ctx,
        block_reports.find_titles(ctx, ctx.caller.id, first, last),
        visibility.find_visibility(ctx, ctx.caller.id, first, last),
        availability.get_periods(ctx, [ctx.caller.id], first, last),
    )
    periods = periods_of[ctx.caller.id]
    open_until = last if any(period["until"] is None for period in periods) else None
    absences = Absences(periods)
    shown = [block for block in blocks if visible.allows(day=block["date"]) and block["date"] not in absences]
    name = ctx.caller.company.name

    async def read_file(_start: int, _end: int) -> AsyncGenerator[bytes, None]:
        yield await asyncio.to_thread(_write_calendar, name, shown, periods, open_until)

    # Of what the file is written from, so that nothing is written for an application that has it.
    fingerprint = hashlib.sha256(to_json([__version__, name, shown, periods, open_until])).hexdigest()
    return Download("text/calendar; charset=utf-8", "training.ics", read_file, etag=f'"{fingerprint}"')
