"""The clients: finding them, adding one, choosing some for a change to all of them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from marshmallow import fields

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.pagination import Page
from coaching_service.core.validation import Input, Integer
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.schemas import NO_TRAINER, NewCustomer
from coaching_service.people.team import service as team
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.search_fields import Keywords
from coaching_service.web.views.bulk_actions import offered

pages = Pages("/app/customers")
PAGE = 25


class Filter(Input):
    """Which clients: as typed into the address."""

    keywords = Keywords()
    groups = fields.List(fields.String(), load_default=list)
    assignedTo = fields.List(fields.String(), load_default=list)
    archived = fields.Boolean(load_default=False)
    page = Integer(minimum=1, load_default=1)


def trainers(names: list[str]) -> list[ObjectId | None]:
    """The coaches that a filter names; `none` is nobody, and what is no identifier matches nobody's clients."""
    return [None if name == NO_TRAINER else parse_id(name) or ObjectId() for name in names]


async def found(ctx: Context, query: dict[str, Any], size: int = PAGE) -> Page[Document]:
    """One page of the clients a filter matches."""
    return await customers.list_customers(
        ctx,
        archived=query["archived"],
        page=query["page"],
        size=size,
        contains=query["keywords"],
        groups=query["groups"],
        trainers=trainers(query["assignedTo"]),
    )


def address(query: dict[str, Any], **changed: Any) -> str:
    """The list's address with this filter."""
    merged = query | changed
    kept = {name: value for name, value in merged.items() if value and not (name == "page" and value == 1)}
    if "archived" in kept:
        kept["archived"] = "true"
    return "/app/customers" + (f"?{urlencode(kept, doseq=True)}" if kept else "")


@pages.get("", access=coach(CUSTOMERS.VIEW), query=Filter(), template="customers/list.html")
async def customers_page(ctx: Context, query: dict[str, Any]) -> dict[str, Any]:
    """The clients this coach sees, by name."""
    page, groups, coaches = await gather_reads(
        ctx, found(ctx, query), customers.list_groups(ctx), team.list_coaches(ctx)
    )
    filtered = bool(query["keywords"] or query["groups"] or query["assignedTo"])
    archived = 0
    if not (page["totalDocs"] or filtered or query["archived"]):
        archived = (await customers.list_customers(ctx, archived=True, page=1, size=1))["totalDocs"]
    return {
        "page": page,
        "groups": groups,
        "coaches": coaches,
        "names": {each["_id"]: each["name"] for each in coaches},
        "query": query,
        "actions": offered(ctx.caller.permissions, archived=query["archived"]),
        "filtered": filtered,
        "archived": archived,
        "address": lambda **changed: address(query, **changed),
    }


@pages.get("/new", access=coach(CUSTOMERS.CREATE), template="customers/new.html")
async def new_customer_page(ctx: Context) -> dict[str, Any]:
    """The page on which a client begins."""
    groups, coaches = await gather_reads(ctx, customers.list_groups(ctx), team.list_coaches(ctx))
    if _sees_only_own(ctx):
        return {"groups": groups, "trainers": [(str(ctx.caller.id), ctx.caller.name)]}
    return {"groups": groups, "trainers": [("", "Nobody"), *((str(each["_id"]), each["name"]) for each in coaches)]}


def _sees_only_own(ctx: Context) -> bool:
    return ctx.caller.customers_scope == "assigned"


@pages.post("/new", access=coach(CUSTOMERS.CREATE), form=NewCustomer(), on=new_customer_page)
async def new_customer(ctx: Context, form: dict[str, Any]) -> Redirect:
    """Add a client, and invite them if it is wished."""
    invited = form.pop("sendInvitation")
    if _sees_only_own(ctx):
        form["assignedTo"] = ctx.caller.id  # anybody else's would be out of sight at once
    customer = await customers.create(ctx, form, send_invitation=invited)
    notice = f"{customer['name']} is a client now."
    if invited and customer["email"]:
        notice += " The invitation is on its way."
    elif invited:
        notice += " No invitation went out, since no e-mail address is noted."
    return Redirect(f"/app/customers/{customer['_id']}", notice, customer_id=customer["_id"])
