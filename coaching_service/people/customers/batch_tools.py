"""Creating several clients at once for assistants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from marshmallow import fields

from coaching_service.core.auth.access import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.mcp.arguments import Arguments, optional
from coaching_service.core.mcp.results import OUTREACH, OutreachDenied, Reason, Written, find_reasons, typed
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Boolean, Date, Email, ListOf, StringList, Text
from coaching_service.people.customers import batch
from coaching_service.people.customers.batch import find_duplicates
from coaching_service.people.customers.listing import full_name_key
from coaching_service.people.customers.models import CustomerUpsert, Duplicate
from coaching_service.people.customers.service import full_name
from coaching_service.people.identities.addresses import account_key

tools = Tools()
_MAX_CLIENTS = 100
_SAME = {"email": "e-mail address", "name": "name"}


class ClientToCreate(Arguments):
    """A client to create."""

    name = Text(required=True, metadata={"description": "First or full name."})
    surname = Text(load_default=None, allow_none=True)
    email = Email(load_default=None, allow_none=True)
    phone = Text(max_length=50, load_default=None, allow_none=True)
    birthday = Date(**optional("YYYY-MM-DD."))
    groups = StringList(load_default=list)


class CreateCustomers(Arguments):
    """The clients to create."""

    customers = ListOf(
        fields.Nested(ClientToCreate),
        minimum=1,
        maximum=_MAX_CLIENTS,
        required=True,
        metadata={"description": "The clients.", "minItems": 1, "maxItems": _MAX_CLIENTS},
    )
    dryRun = Boolean(load_default=False, metadata={"description": "true only says what would be created."})


@tools.tool(
    "Create several clients",
    access=coach(CUSTOMERS.VIEW, CUSTOMERS.CREATE),
    takes=CreateCustomers(),
    writes=True,
    confirms=(Reason.MANY_CLIENTS,),
    unlisted=True,
)
async def create_customers(ctx: Context, customers: list[Mapping[str, Any]], *, dry_run: bool) -> Written:
    """Create up to 100 clients, all or none, without invitations. Those with the e-mail address or name of an existing
    client are named and left out; create_customer creates one anyway."""
    return await create_several(ctx, customers, dry_run=dry_run)


async def create_several(ctx: Context, customers: list[Mapping[str, Any]], *, dry_run: bool) -> Written:
    """Create clients but those who are there already, and say whom."""
    entries = [cast("CustomerUpsert", {**each, "sendInvitation": False}) for each in customers]
    known = await find_duplicates(ctx, entries)
    left_out: list[str] = []
    new: list[CustomerUpsert] = []
    for entry, duplicates in zip(entries, known, strict=True):
        if duplicates:
            left_out.append(f"{_name(entry)} ({_describe(duplicates[0])})")
        elif repeated := _find_repeated(entry, new):
            left_out.append(f"{_name(entry)} (same {_SAME[repeated]} as an earlier entry)")
        else:
            new.append(entry)
    created = [] if dry_run else (await batch.save_many(ctx, new))["results"]
    reasons = find_reasons(clients=len(new))
    verb = "Would create" if dry_run else "Created"
    named = f": {', '.join(map(_name, new))}" if new else ""
    note = f" Left out, because they are there: {', '.join(left_out)}." if left_out else ""
    if dry_run and OUTREACH.intersection(reasons) and not ctx.caller.may_reach_out:
        note += f" But it would be refused: {OutreachDenied()}."
    return Written(
        f"{verb} {len(new)} {'client' if len(new) == 1 else 'clients'} without an invitation{named}.{note}",
        {"customerIds": [result["_id"] for result in created]},
        () if dry_run else reasons,
        details={"created": len(created), "leftOut": len(left_out)},
    )


def _find_repeated(entry: CustomerUpsert, earlier: Sequence[CustomerUpsert]) -> str | None:
    """Return what an entry has in common with an earlier one, or None."""
    email = account_key(entry["email"] or "")
    if email and any(account_key(each["email"] or "") == email for each in earlier):
        return "email"
    return "name" if full_name_key(entry) in map(full_name_key, earlier) else None


def _describe(duplicate: Duplicate) -> str:
    return f"same {_SAME[duplicate['same']]} as {typed(duplicate['name'])} [{duplicate['_id']}]"


def _name(entry: CustomerUpsert) -> str:
    return typed(full_name(entry))
