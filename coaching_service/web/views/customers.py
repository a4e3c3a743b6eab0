"""The list of clients: searching, sorting, and selecting clients for a bulk change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlencode

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.pagination import Page
from coaching_service.core.validation import Choice
from coaching_service.people.customers import listing
from coaching_service.people.customers.models import CustomerProfile, SortFigure
from coaching_service.people.customers.trainer_filter import NO_TRAINER
from coaching_service.people.team import service as team
from coaching_service.web.pages import Pages
from coaching_service.web.search_fields import FilterValues, Search
from coaching_service.web.views.bulk_actions import list_actions
from coaching_service.web.views.customer_rows import describe_rows

pages = Pages("/app/customers")
_CLIENTS_PER_PAGE = 25


# The orders of the list, each with the stored figure and whether the highest is first; a search is always by name.
SORTS: Mapping[str, tuple[SortFigure, bool] | None] = {
    "name": None,
    "-lastTrained": ("lastTrained", True),
    "lastTrained": ("lastTrained", False),
    "-compliance": ("compliance", True),
    "compliance": ("compliance", False),
    "-unread": ("unread", True),
}
_SORT_NAMES = (
    ("name", "Name"),
    ("lastTrained", "Last trained, longest ago first"),
    ("-lastTrained", "Last trained, latest first"),
    ("compliance", "30-day compliance, lowest first"),
    ("-compliance", "30-day compliance, highest first"),
    ("-unread", "Unread messages, most first"),
)


class CustomerFilter(Search):
    """The filters of the client list, as sent in the query."""

    groups: FilterValues
    assignedTo: FilterValues
    archived: Annotated[bool, Default(False)]
    sort: Annotated[str, Choice(*SORTS), Default("name")]


def parse_trainer_ids(values: list[str]) -> list[ObjectId | None]:
    """Parse the trainers of a filter: None for `none` (clients without a trainer).

    A malformed identifier becomes a new one, which matches no client.
    """
    return [None if value == NO_TRAINER else parse_id(value) or ObjectId() for value in values]


async def find_customers(ctx: Context, query: CustomerFilter) -> Page[CustomerProfile]:
    """Find the page of the list that a query asks for."""
    sort, trainers = SORTS[query["sort"]], parse_trainer_ids(query["assignedTo"])
    if sort is not None and not query["keywords"]:
        figure, descending = sort
        return await listing.list_customers_by(
            ctx,
            figure,
            descending=descending,
            archived=query["archived"],
            page=query["page"],
            size=_CLIENTS_PER_PAGE,
            groups=query["groups"],
            trainers=trainers,
        )
    return await listing.list_customers(
        ctx,
        archived=query["archived"],
        page=query["page"],
        size=_CLIENTS_PER_PAGE,
        contains=query["keywords"],
        groups=query["groups"],
        trainers=trainers,
    )


_DEFAULTS = (("page", 1), ("sort", "name"))


def list_path(query: CustomerFilter, **changes: Any) -> str:
    """Return the path of the client list with a filter in which `changes` are replaced."""
    merged = query | changes
    parameters = {name: value for name, value in merged.items() if value and (name, value) not in _DEFAULTS}
    if "archived" in parameters:
        parameters["archived"] = "true"
    return "/app/customers" + (f"?{urlencode(parameters, doseq=True)}" if parameters else "")


@pages.get("", access=coach(CUSTOMERS.VIEW), query=CustomerFilter, template="customers/list.html")
async def customers_page(ctx: Context, query: CustomerFilter) -> dict[str, Any]:
    """The clients in the coach's scope, by name."""
    page, groups, coaches = await gather_reads(
        ctx, find_customers(ctx, query), listing.list_groups(ctx), team.list_coaches(ctx)
    )
    is_filtered = bool(query["keywords"] or query["groups"] or query["assignedTo"])
    archived_count = 0
    if not (page["totalDocs"] or is_filtered or query["archived"]):
        archived_count = (await listing.list_customers(ctx, archived=True, page=1, size=1))["totalDocs"]
    return {
        "page": page,
        "rows": await describe_rows(ctx, page["docs"]),
        "sorts": _SORT_NAMES,
        "groups": groups,
        "coaches": coaches,
        "coach_names": {coach["_id"]: coach["name"] for coach in coaches},
        "query": query,
        "actions": list_actions(ctx.caller.permissions, archived=query["archived"]),
        "is_filtered": is_filtered,
        "archived_count": archived_count,
        "address": lambda **changes: list_path(query, **changes),
    }
