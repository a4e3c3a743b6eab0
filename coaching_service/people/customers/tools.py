"""Clients for assistants."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, TypedDict, cast

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core import mcp, validation
from coaching_service.core.auth import CUSTOMERS, coach, require_permission
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import Answer, Reason, Tools, Written, typed
from coaching_service.people import team
from coaching_service.people.customers import batch, bulk, service
from coaching_service.people.customers.models import CustomerDetails, CustomerProfile
from coaching_service.people.customers.service import full_name

tools = Tools()

_NOT_INVITED = (
    ". No invitation was sent: the client has no e-mail address. The coach can add one and invite the client in the "
    "application."
)


class CustomerText(TypedDict):
    """A client as get_customer returns one; `today` is the date where the client is."""

    _id: ObjectId
    name: str
    today: str
    version: int
    lines: str


class ListCustomers(mcp.ToolPage):
    """Which clients, and which page of them."""

    search = validation.Text(
        allow_blank=True,
        load_default="",
        metadata={"description": "Parts of name, surname or e-mail."},
    )
    isArchived = validation.Boolean(load_default=False, metadata={"description": "Archived clients instead."})
    groups = validation.ListOf(
        validation.Text(max_length=100), maximum=50, **mcp.optional("Only clients in any of these groups.")
    )


@tools.tool("List clients", access=coach(CUSTOMERS.VIEW), takes=ListCustomers(), returns=mcp.Lines)
async def list_customers(
    ctx: Context, page: int, page_size: int, search: str, *, is_archived: bool, groups: list[str] | None
) -> Answer:
    """List clients by name: _id, trainer, groups, percent of workouts completed, the latest session (trained), and the
    last date anything is scheduled on. Without a match it names the nearest. Other tools need a client's _id."""
    wanted = await bulk.match_groups(ctx, groups or [])
    list_page = partial(
        service.list_customers,
        ctx,
        archived=is_archived,
        groups=[*wanted.known, *wanted.unknown] or None,
        page=page,
        size=page_size,
    )
    clients, coaches = await gather_reads(ctx, list_page(contains=search), team.list_coaches(ctx))
    hints = [bulk.suggest_groups(wanted)]
    if search and not clients["totalDocs"]:
        clients = await list_page(words=search)
    if search and not clients["totalDocs"]:
        near = await bulk.find_near_clients(ctx, search)
        named = [f"{typed(each.name)} [{each.id}]{' (archived)' if each.is_archived else ''}" for each in near]
        none = "No client has all these words with these filters. The nearest names: "
        hints.append(f"{none}{', '.join(named)}." if near else "No client has a similar name.")
    names = {coach["_id"]: coach["name"] for coach in coaches}
    title = f"{'Archived' if is_archived else 'Active'} clients"
    lines = []
    for client in clients["docs"]:
        role = client["customerRoleData"]
        line = mcp.join_facts(
            f"{name_client(client)} [{client['_id']}]",
            role["assignedTo"] and f"trainer {typed(names.get(role['assignedTo'], ''))}",
            role["groups"] and f"groups {', '.join(map(typed, role['groups']))}",
            describe_rates(client),
            role["lastTrainedDate"] and f"trained {role['lastTrainedDate']}",
            role["lastWorkoutDate"] and f"scheduled to {role['lastWorkoutDate']}",
        )
        lines.append(line)
    ids = [client["_id"] for client in clients["docs"]]
    return mcp.list_answer(title, clients, lines, ids=ids, hint=" ".join(filter(None, hints)))


def name_client(client: CustomerProfile) -> str:
    """Return a client's full name, marked as data."""
    return typed(full_name(client))


def describe_rates(client: CustomerProfile) -> str | None:
    """Return the share of workouts that a client has completed, or None if there is none."""
    role = client["customerRoleData"]
    rates = (role["complianceRate7d"], role["complianceRate30d"], role["complianceRate90d"])
    if rates == (None, None, None):
        return None
    return f"completed {' / '.join(mcp.format_figure(rate) for rate in rates)}% in 7/30/90 days"


def describe_customer(ctx: Context, client: CustomerProfile, coach_names: Mapping[ObjectId, str]) -> list[str]:
    """Return a client in a few lines; `coach_names` are by identifier."""
    role = client["customerRoleData"]
    trainer = role["assignedTo"]
    lines = [
        f"{name_client(client)} [{client['_id']}]{' (archived)' if role['isArchived'] else ''}",
        f"Today: {get_today(ctx, client)} ({client['timezone'] or ctx.caller.company.timezone})",
        mcp.join_facts(
            client["email"] and f"e-mail {typed(client['email'])}",
            client["phone"] and f"phone {typed(client['phone'])}",
            client["birthday"] and f"birthday {client['birthday']}",
        ),
        mcp.join_facts(
            f"trainer {typed(coach_names.get(trainer, ''))}" if trainer else "no trainer",
            role["groups"] and f"groups {', '.join(map(typed, role['groups']))}",
        ),
        mcp.join_facts(
            describe_rates(client) or "no workout day in the last 90 days",
            f"trained {role['lastTrainedDate'] or 'never'}",
            role["lastWorkoutDate"] and f"scheduled to {role['lastWorkoutDate']}",
            client["lastActivityDate"] and f"own latest action {mcp.format_time(client['lastActivityDate'])}",
        ),
    ]
    return [line for line in lines if line]


def get_today(ctx: Context, client: CustomerProfile) -> str:
    """Return the date where a client is."""
    return str(ctx.caller.today(client["timezone"]))


def answer_customer(ctx: Context, client: CustomerProfile, lines: list[str]) -> Answer:
    """Return a client as `get_customer` does."""
    data: CustomerText = {
        "_id": client["_id"],
        "name": full_name(client),
        "today": get_today(ctx, client),
        "version": client["version"],
        "lines": "\n".join(lines[1:]),
    }
    return Answer("\n".join(lines), data)


class CreateCustomer(mcp.Arguments):
    """A client to create, or several."""

    name = validation.Text(**mcp.optional("First or full name."))
    surname = validation.Text(load_default=None, allow_none=True)
    email = validation.Email(load_default=None, allow_none=True)
    sendInvitation = validation.Boolean(
        load_default=False, metadata={"description": "Sends an invitation; needs email."}
    )
    phone = validation.Text(max_length=50, load_default=None, allow_none=True)
    groups = validation.StringList(load_default=list, metadata={"description": "Names of groups."})
    customers = validation.ListOf(
        fields.Nested(batch.ClientToCreate), minimum=1, maximum=100, **mcp.optional("Instead: up to 100 clients.")
    )
    dryRun = validation.Boolean(
        load_default=False, metadata={"description": "Of customers: only says what would be created."}
    )

    @validates_schema(skip_on_field_errors=False)
    def creates_one_or_several(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require the name of one client, or several clients."""
        if (has_name := data.get("name") is not None) == (data.get("customers") is not None):
            message = "must not be combined with customers" if has_name else "is required, or customers"
            raise ValidationError(message, "name")
        if data.get("dryRun") and data.get("customers") is None:
            raise ValidationError("needs customers", "dryRun")


@tools.tool(
    "Create clients",
    access=coach(CUSTOMERS.CREATE),
    takes=CreateCustomer(),
    writes=True,
    open_world=True,
    confirms=(Reason.MANY_CLIENTS,),
)
async def create_customer(
    ctx: Context, customers: list[Mapping[str, Any]] | None, send_invitation: bool, dry_run: bool, **details: Any
) -> Written:
    """Create a client, invited only if sendInvitation is true; search with list_customers first. Or several customers,
    all or none, not invited: who has the e-mail address or name of a client is left out."""
    if customers is not None:
        require_permission(ctx.caller, CUSTOMERS.VIEW)
        return cast("Written", await batch.create_customers(ctx, customers, dry_run=dry_run))
    invited = send_invitation and details["email"] is not None
    customer = await batch.create_customer(ctx, cast("CustomerDetails", details), send_invitation=invited)
    outcome = (
        " and invited them by e-mail." if invited else _NOT_INVITED if send_invitation else ". No invitation was sent."
    )
    return Written(
        f"Created the client {name_client(customer)}{outcome}",
        {"customerId": customer["_id"]},
        details={"invited": invited},
    )
