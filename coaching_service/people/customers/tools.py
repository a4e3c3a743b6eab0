"""Clients for assistants."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypedDict, cast

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import Arguments, ToolPage, numbered
from coaching_service.core.mcp.confirmation import Reason, find_reasons
from coaching_service.core.mcp.results import Written, typed
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.pagination import Page
from coaching_service.core.validation import Boolean, Email, ListOf, StringList, Text
from coaching_service.people.customers import service
from coaching_service.people.customers.models import CustomerDetails, CustomerProfile, CustomerReference
from coaching_service.people.team import service as team

tools = Tools()

_NOT_INVITED = (
    ". No invitation was sent: the client has no e-mail address. The coach can add one and invite the client in the "
    "application."
)
_UNITS = {"complianceRate7d": "percent", "complianceRate30d": "percent", "complianceRate90d": "percent"}


class CustomerSummary(TypedDict):
    """A client as list_customers returns one; rates in percent."""

    _id: ObjectId
    name: str
    surname: str | None
    email: str | None
    isArchived: bool
    groups: list[str]
    assignedTo: CustomerReference | None
    complianceRate7d: float | None
    complianceRate30d: float | None
    complianceRate90d: float | None
    lastWorkoutDate: str | None
    lastTrainedDate: str | None
    lastActivityDate: datetime | None


class CustomerDescription(CustomerSummary):
    """A client as get_customer and create_customer return one; `today` is the date where the client is."""

    phone: str | None
    birthday: str | None
    createdAt: datetime
    version: int
    timezone: str
    today: str
    units: dict[str, str]


class CustomerSummaryPage(Page[CustomerSummary]):
    """A page of clients, with the units of their figures."""

    units: dict[str, str]


class ListCustomers(ToolPage):
    """Which clients, and which page of them."""

    search = Text(
        allow_blank=True,
        load_default="",
        metadata={"description": "Part of a name, surname or e-mail, taken literally."},
    )
    isArchived = Boolean(
        load_default=False, metadata={"description": "true lists archived clients, false active ones."}
    )
    groups = ListOf(
        Text(max_length=100),
        maximum=50,
        load_default=None,
        allow_none=True,
        metadata={"description": "Only clients in any of these groups (names)."},
    )


@tools.tool("List clients", access=coach(CUSTOMERS.VIEW), takes=ListCustomers())
async def list_customers(
    ctx: Context, page: int, page_size: int, search: str, *, is_archived: bool, groups: list[str] | None
) -> CustomerSummaryPage:
    """List the coaching company's clients by name, one page at a time. Returns docs (a client each, with _id, name,
    groups, trainer and compliance; lastWorkoutDate is the last scheduled date, which may be in the future;
    lastTrainedDate is the date of the latest session with completed work; lastActivityDate is the time of the client's
    own latest action), totalDocs, hasNextPage and nextPage. Use it first: other tools need a client's _id."""
    clients, coaches = await gather_reads(
        ctx,
        service.list_customers(ctx, archived=is_archived, page=page, size=page_size, contains=search, groups=groups),
        team.list_coaches(ctx),
    )
    names = {coach["_id"]: coach["name"] for coach in coaches}
    summaries = [_summarize(customer, names) for customer in clients["docs"]]
    return cast("CustomerSummaryPage", {**numbered(clients), "units": _UNITS, "docs": summaries})


def _summarize(customer: CustomerProfile, coach_names: Mapping[ObjectId, str]) -> CustomerSummary:
    role = customer["customerRoleData"]
    trainer = role["assignedTo"]
    return {
        "_id": customer["_id"],
        "name": customer["name"],
        "surname": customer["surname"],
        "email": customer["email"],
        "isArchived": role["isArchived"],
        "groups": role["groups"],
        "assignedTo": None if trainer is None else {"_id": trainer, "name": coach_names.get(trainer, "")},
        "complianceRate7d": role["complianceRate7d"],
        "complianceRate30d": role["complianceRate30d"],
        "complianceRate90d": role["complianceRate90d"],
        "lastWorkoutDate": role["lastWorkoutDate"],
        "lastTrainedDate": role["lastTrainedDate"],
        "lastActivityDate": customer["lastActivityDate"],
    }


def describe_customer(
    ctx: Context, customer: CustomerProfile, coach_names: Mapping[ObjectId, str]
) -> CustomerDescription:
    """Return a client as `get_customer` and `create_customer` return one; `coach_names` are by identifier."""
    return {
        **_summarize(customer, coach_names),
        "phone": customer["phone"],
        "birthday": customer["birthday"],
        "createdAt": customer["createdAt"],
        "version": customer["version"],
        "timezone": customer["timezone"] or ctx.caller.company.timezone,
        "today": str(ctx.caller.today(customer["timezone"])),
        "units": _UNITS,
    }


class CreateCustomer(Arguments):
    """A client to create."""

    name = Text(required=True, metadata={"description": "First or full name."})
    surname = Text(load_default=None, allow_none=True, metadata={"description": "Surname."})
    email = Email(load_default=None, allow_none=True, metadata={"description": "E-mail address."})
    sendInvitation = Boolean(
        load_default=False, metadata={"description": "true sends an e-mail that invites the client; needs email."}
    )
    phone = Text(max_length=50, load_default=None, allow_none=True, metadata={"description": "Phone number."})
    groups = StringList(load_default=list, metadata={"description": "Names of the groups the client is in."})


@tools.tool(
    "Create a client",
    access=coach(CUSTOMERS.CREATE),
    takes=CreateCustomer(),
    writes=True,
    open_world=True,
    confirms=(Reason.CONTACT,),
)
async def create_customer(ctx: Context, send_invitation: bool, **details: Any) -> Written:
    """Create a client. No invitation is sent unless sendInvitation is true. Two clients may share a name or an e-mail
    address, so search with list_customers first."""
    invited = send_invitation and details["email"] is not None
    customer = await service.create(ctx, cast("CustomerDetails", details), send_invitation=invited)
    name = " ".join(part for part in (customer["name"], customer["surname"]) if part)
    outcome = " and invited them by e-mail." if invited else _NOT_INVITED if send_invitation else "."
    return Written(
        f"Created the client {typed(name)}{outcome}",
        {"customerId": customer["_id"]},
        find_reasons(contacts=invited),
        details={"invited": invited},
    )
