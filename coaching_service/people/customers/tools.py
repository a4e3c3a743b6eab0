"""Clients for assistants."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import Arguments, ToolPage
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Boolean, Email, ListOf, StringList, Text
from coaching_service.people.customers import service
from coaching_service.people.team import service as team

tools = Tools()
_NO_ADDRESS = "Nobody was invited: the client has no e-mail address. The coach adds one and invites in the application."
_RATES = ("complianceRate7d", "complianceRate30d", "complianceRate90d")


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
) -> Document:
    """List the coaching company's clients by name, a page at a time. Gives docs (one client each, with _id, name,
    groups, trainer and compliance; lastWorkoutDate is the last day anything is scheduled on, done or not, be it ahead;
    lastActivityDate is when the client last did something), totalDocs, hasNextPage and nextPage. Use it first: other
    tools need a client's _id."""
    found, coaches = await gather_reads(
        ctx,
        service.list_customers(ctx, archived=is_archived, page=page, size=page_size, contains=search, groups=groups),
        team.list_coaches(ctx),
    )
    names = {each["_id"]: each["name"] for each in coaches}
    return {**found, "units": _UNITS, "docs": [_listed(customer, names) for customer in found["docs"]]}


_UNITS = {"complianceRate7d": "percent", "complianceRate30d": "percent", "complianceRate90d": "percent"}


def _listed(customer: Document, coaches: dict[ObjectId, str]) -> Document:
    """A client as assistants read one: what identifies them, and how they are doing."""
    role = customer["customerRoleData"]
    trainer = role["assignedTo"]
    return {
        **{name: customer[name] for name in ("_id", "name", "surname", "email")},
        "isArchived": role["isArchived"],
        "groups": role["groups"],
        "assignedTo": None if trainer is None else {"_id": trainer, "name": coaches.get(trainer)},
        **{name: role[name] for name in _RATES},
        "lastWorkoutDate": role["lastWorkoutDate"],
        "lastActivityDate": customer["lastActivityDate"],
    }


def describe_customer(ctx: Context, customer: Document, coaches: dict[ObjectId, str]) -> Document:
    """A client as `get_customer` and `create_customer` return one; `coaches` maps identifiers to names."""
    return {
        **_listed(customer, coaches),
        **{name: customer[name] for name in ("phone", "birthday", "createdAt", "version")},
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
        load_default=True, metadata={"description": "Whether an e-mail invites the client; needs email."}
    )
    phone = Text(max_length=50, load_default=None, allow_none=True, metadata={"description": "Phone number."})
    groups = StringList(load_default=list, metadata={"description": "Names of the groups the client is in."})


@tools.tool("Create a client", access=coach(CUSTOMERS.CREATE), takes=CreateCustomer(), writes=True, open_world=True)
async def create_customer(ctx: Context, send_invitation: bool, **details: Any) -> Document:
    """Create a client. With an e-mail address an invitation is sent, unless sendInvitation is false. Two clients may
    share a name or an address, so look with list_customers first. Not to be repeated blindly: each call creates
    one more. Gives the client with the new _id, and invited: whether an invitation is on its way."""
    invited = send_invitation and details["email"] is not None
    created, coaches = await gather_reads(
        ctx, service.create(ctx, details, send_invitation=invited), team.list_coaches(ctx)
    )
    whole = describe_customer(ctx, created, {each["_id"]: each["name"] for each in coaches}) | {"invited": invited}
    return whole | ({"hint": _NO_ADDRESS} if send_invitation and not invited else {})
