"""Adding a client: who it is, an invitation, and the first program and check-in, on one page."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict, cast

from marshmallow import fields

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS, PROGRAMS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import PermissionMissing, invalid_field
from coaching_service.core.fields import Default, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Choice, Date, Text
from coaching_service.people.customers import creation, listing
from coaching_service.people.customers.models import CustomerDetails, SentCustomer, WrittenDetails
from coaching_service.people.team import service as team
from coaching_service.progress.check_ins import service as check_ins
from coaching_service.training.assignments import service as assignments
from coaching_service.web.formatting import document_options, quantity
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.customer_check_ins import RHYTHMS, CheckInChoice, list_contents, to_check_in
from coaching_service.web.views.customer_layout import customer_path, week_path
from coaching_service.web.views.programs import list_options

pages = Pages("/app/customers/new")


class _Beginning(TypedDict):
    """The program and the check-in of a new client as the form sent them; blank or None: not chosen."""

    programId: ObjectId | None
    programStart: Annotated[str | None, Date()]
    content: Annotated[str, fields.String(), Default("")]
    title: Annotated[str, Text(allow_blank=True), Default("")]
    rhythm: Annotated[str, Choice(*(value for value, _ in RHYTHMS)), Default("weekday-7")]


class _NewCustomer(SentCustomer, _Beginning):
    """A client to create, with the program and the check-in to begin with, if any."""


@pages.get("", access=coach(CUSTOMERS.CREATE), template="customers/new.html")
async def new_customer_page(ctx: Context) -> dict[str, Any]:
    """The form for a new client."""
    groups, coaches = await gather_reads(ctx, listing.list_groups(ctx), team.list_coaches(ctx))
    trainers = [("", "Unassigned"), *document_options(coaches)]
    if _sees_assigned_only(ctx):
        trainers = [(str(ctx.caller.id), ctx.caller.name)]
    return {
        "groups": groups,
        "trainers": trainers,
        "programs": await _list_programs(ctx),
        "contents": [("", "No check-in"), *await list_contents(ctx)],
        "rhythms": RHYTHMS,
        "today": ctx.caller.today(),
    }


async def _list_programs(ctx: Context) -> list[tuple[str, str]]:
    if PROGRAMS.VIEW not in ctx.caller.permissions:
        return []
    return [("", "No program"), *await list_options(ctx)]


def _sees_assigned_only(ctx: Context) -> bool:
    return ctx.caller.customers_scope == "assigned"


@pages.post("", access=coach(CUSTOMERS.CREATE), form=_NewCustomer, on=new_customer_page)
async def new_customer(ctx: Context, form: _NewCustomer) -> Redirect:
    """Add a client; send an invitation, assign a program and add a check-in if requested."""
    send_invitation = form["sendInvitation"]
    details = cast("CustomerDetails", take(WrittenDetails, form))
    if _sees_assigned_only(ctx):
        details["assignedTo"] = ctx.caller.id
    customer = await creation.create_customer(ctx, details, send_invitation=send_invitation)
    notice = f"{customer['name']} added."
    if send_invitation and customer["email"]:
        notice += " Invitation sent."
    elif send_invitation:
        notice += " No invitation was sent because the client has no email address."
    location, added = await _begin(ctx, customer["_id"], take(_Beginning, form))
    return Redirect(location, notice + added, customer_id=customer["_id"])


async def _begin(ctx: Context, customer_id: ObjectId, beginning: _Beginning) -> tuple[str, str]:
    """Assign the program and add the check-in to begin with; return where they are seen, and what was added."""
    location, added, program_id = customer_path(customer_id), "", beginning["programId"]
    if not program_id and not beginning["content"]:
        return location, added
    if CUSTOMERS.EDIT not in ctx.caller.permissions:
        raise PermissionMissing(CUSTOMERS.EDIT)
    start = beginning["programStart"] or str(ctx.caller.today())
    if program_id:
        if PROGRAMS.VIEW not in ctx.caller.permissions:
            raise PermissionMissing(PROGRAMS.VIEW)
        if beginning["programStart"] is None:
            raise invalid_field("programStart", "is required", code="REQUIRED")
        assignment = await assignments.assign(ctx, program_id, customer_id, start)
        location, added = week_path(customer_id, start), f" {quantity(assignment['blocks'], 'workout')} scheduled."
    if beginning["content"]:
        check_in = await check_ins.create(
            ctx, customer_id, to_check_in({**take(CheckInChoice, beginning), "startDate": start, "until": None})
        )
        added += f" {check_in['name']} is scheduled four weeks ahead."
    return location, added
