"""The attention list for assistants."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.dates import local_date
from coaching_service.core.errors import Conflict
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import CursorPage
from coaching_service.core.mcp import arguments
from coaching_service.core.mcp.results import Answer, typed
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Choice, Integer, ListOf, StringList
from coaching_service.people.customers import bulk, derived_figures
from coaching_service.people.customers.models import WEIGHTS, ReasonType, parse_trainers
from coaching_service.progress.attention import service as attention

tools = Tools()


class AttentionFilter(arguments.ToolPart):
    """Which clients, and which part of the list."""

    reasons = ListOf(
        Choice(*WEIGHTS),
        load_default=list,
        maximum=len(WEIGHTS),
        metadata={"description": "Only with any of these."},
    )
    inactiveDays = Integer(
        minimum=1,
        maximum=attention.MAX_INACTIVE_DAYS,
        **arguments.optional("Only without a session in so many days."),
    )
    groups = StringList(load_default=list, metadata={"description": "Only clients in any of these groups."})


@tools.tool(
    "List clients who need attention",
    access=coach(CUSTOMERS.VIEW),
    takes=AttentionFilter(),
    returns=arguments.Lines,
)
async def get_attention(
    ctx: Context,
    reasons: list[ReasonType],
    inactive_days: int | None,
    groups: list[str],
    limit: int,
    after: str | None,
) -> Answer:
    """List the active clients who need a coach, most urgent first, with all their reasons: how many of each, since
    when, and what caused it."""
    wanted = await bulk.match_groups(ctx, groups)
    chosen = [*wanted.known, *wanted.unknown] or None
    filters: dict[str, Any] = {"reasons": reasons, "groups": chosen, "inactive_since": _since(ctx, inactive_days)}
    listed, total = await gather_reads(
        ctx,
        derived_figures.list_attention(ctx, **filters, limit=limit, after=after),
        derived_figures.count_attention(ctx, **filters),
    )
    part = await attention.present_part(ctx, listed)
    # Of one reason: in one line if it is the same.
    alike: dict[tuple[str, ObjectId | None], list[attention.AttentionCustomer]] = {}
    for client, entry in zip(listed["docs"], part["docs"], strict=True):
        facts = _describe(entry, client["timezone"] or ctx.caller.company.timezone)
        alike.setdefault((facts, client["_id"] if len(entry["reasons"]) > 1 else None), []).append(entry["customer"])
    lines = []
    for (facts, _), clients in alike.items():
        names = [
            f"{typed(' '.join(filter(None, (each['name'], each['surname']))))} [{each['_id']}]" for each in clients
        ]
        lines.append(f"{', '.join(names)}: {facts}")
    title = (
        "Clients who need attention" if inactive_days is None else f"Clients without a session in {inactive_days} days"
    )
    return arguments.list_answer(
        f"{title} (at least)" if total == derived_figures.MOST_COUNTED else title,
        {**part, "totalDocs": total},
        lines,
        ids=[clients[0]["_id"] if len(clients) == 1 else None for clients in alike.values()],
        hint=bulk.suggest_groups(wanted),
    )


def _since(ctx: Context, inactive_days: int | None) -> date | None:
    return None if inactive_days is None else ctx.caller.today() - timedelta(days=inactive_days)


def _describe(entry: attention.AttentionEntry, timezone: str) -> str:
    """Return score, reasons and figures of a client in words; dates are local to the client."""
    customer, rate, reasons = entry["customer"], entry["customer"]["complianceRate7d"], []
    for reason in entry["reasons"]:
        if reason["quote"] == attention.NEVER_SCHEDULED:  # what never was has no date
            reasons.append(f"{reason['type']} {typed(attention.NEVER_SCHEDULED)}")
            continue
        count = f" x{reason['count']}" if reason["count"] > 1 else ""
        since = "newest" if reason["type"] in attention.DATED_BY_NEWEST else "since"
        quote = f" {typed(reason['quote'])}" if reason["quote"] else ""
        reasons.append(f"{reason['type']}{count} {since} {local_date(reason['since'], timezone)}{quote}")
    return arguments.join_facts(
        f"score {entry['score']}",
        ", ".join(reasons),
        f"trained {customer['lastTrainedDate'] or 'never'}",
        rate is not None and f"7d {arguments.format_figure(rate, '%')}",
    )


# --- The attention list over REST -------------------------------------------------------------------------------------


routes = Routes("/coach/attention", tag="Attention")


@routes.get("", access=coach(CUSTOMERS.VIEW))
async def list_attention(ctx: Context, query: attention.AttentionQuery) -> CursorPage[attention.AttentionEntry]:
    """List the clients who need attention, highest score first.

    The reasons are stored with the clients: they follow a change within ten seconds, and the date once a local day.
    Archived clients, and those that the caller may not see, are left out.
    """
    listed = await derived_figures.list_attention(
        ctx,
        reasons=query["reason"],
        groups=query.get("groups"),
        trainers=parse_trainers(query.get("assignedTo")),
        inactive_since=_since(ctx, query["inactiveDays"]),
        limit=query["limit"],
        after=query["after"],
    )
    return await attention.present_part(ctx, listed)


@routes.put(
    "/{customerId}",
    access=coach(CUSTOMERS.EDIT),
    locks="customer",
    errors=(Conflict,),
    example={"reason": "nothing_scheduled", "until": None},
)
async def dismiss_attention(
    ctx: Context, customer_id: ObjectId, body: attention.AttentionDismissal
) -> attention.AttentionEntry:
    """Dismiss a reason for the whole company.

    Until the date `until`, or until its `since` is later: until something new happens. The answer is the client with
    the reasons that are left. 409 if the client does not have the reason.
    """
    return await attention.dismiss(ctx, customer_id, [body["reason"]], until=body["until"])
