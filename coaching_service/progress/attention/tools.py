"""The attention list for assistants."""

from __future__ import annotations

from datetime import timedelta

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
from coaching_service.people.customers import bulk, derived_figures, similar_names
from coaching_service.people.customers.attention_events import WEIGHTS
from coaching_service.people.customers.models import ReasonType, parse_trainers
from coaching_service.progress.attention import models as attention_models
from coaching_service.progress.attention import service
from coaching_service.progress.attention.service import DATED_BY_NEWEST, NEVER_SCHEDULED

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
        maximum=attention_models.MAX_INACTIVE_DAYS,
        **arguments.optional("Only without a session in so many days."),
    )
    groups = StringList(load_default=list, metadata={"description": "Only clients in any of these groups."})


@tools.tool(
    "List clients who need attention",
    access=coach(CUSTOMERS.VIEW),
    takes=AttentionFilter(),
    returns=arguments.PartWithHint,
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
    wanted = await similar_names.match_groups(ctx, groups)
    chosen = [*wanted.known, *wanted.unknown] or None
    since = None if inactive_days is None else ctx.caller.today() - timedelta(days=inactive_days)
    part, total = await gather_reads(
        ctx,
        service.list_attention(
            ctx, reasons=reasons, groups=chosen, inactive_days=inactive_days, limit=limit, after=after
        ),
        derived_figures.count_attention(ctx, reasons=reasons, groups=chosen, inactive_since=since),
    )
    ids = [entry["customer"]["_id"] for entry in part["docs"]]
    timezones = {each: client["timezone"] for each, client in (await bulk.load_identities(ctx, ids)).items()}
    company = ctx.caller.company.timezone
    alike: dict[
        tuple[str, ObjectId | None], list[attention_models.AttentionEntry]
    ] = {}  # of one reason: in one line if it is the same
    for each, entry in zip(ids, part["docs"], strict=True):
        facts = _describe(entry, timezones.get(each) or company)
        alike.setdefault((facts, each if len(entry["reasons"]) > 1 else None), []).append(entry)
    lines = [f"{', '.join(map(_name, some))}: {facts}" for (facts, _), some in alike.items()]
    title = (
        "Clients who need attention" if inactive_days is None else f"Clients without a session in {inactive_days} days"
    )
    return arguments.list_answer(
        f"{title} (at least)" if total == derived_figures.MOST_COUNTED else title,
        {**part, "totalDocs": total},
        lines,
        ids=[some[0]["customer"]["_id"] if len(some) == 1 else None for some in alike.values()],
        hint=similar_names.suggest_groups(wanted),
    )


def _name(entry: attention_models.AttentionEntry) -> str:
    customer = entry["customer"]
    return f"{typed(' '.join(filter(None, (customer['name'], customer['surname']))))} [{customer['_id']}]"


def _describe(entry: attention_models.AttentionEntry, timezone: str) -> str:
    customer = entry["customer"]
    return arguments.join_facts(
        f"score {entry['score']}",
        ", ".join(_describe_reason(reason, timezone) for reason in entry["reasons"]),
        f"trained {customer['lastTrainedDate'] or 'never'}",
        customer["complianceRate7d"] is not None and f"7d {arguments.format_figure(customer['complianceRate7d'], '%')}",
    )


def _describe_reason(reason: attention_models.AttentionReason, timezone: str) -> str:
    """Return a reason in words; its date is one of the client. What never was has none."""
    if reason["quote"] == NEVER_SCHEDULED:
        return f"{reason['type']} {typed(NEVER_SCHEDULED)}"
    count = f" x{reason['count']}" if reason["count"] > 1 else ""
    since = "newest" if reason["type"] in DATED_BY_NEWEST else "since"
    quote = f" {typed(reason['quote'])}" if reason["quote"] else ""
    return f"{reason['type']}{count} {since} {local_date(reason['since'], timezone)}{quote}"


# --- The attention list over REST -------------------------------------------------------------------------------------


routes = Routes("/coach/attention", tag="Attention")


@routes.get("", access=coach(CUSTOMERS.VIEW))
async def list_attention(
    ctx: Context, query: attention_models.AttentionQuery
) -> CursorPage[attention_models.AttentionEntry]:
    """List the clients who need attention, highest score first.

    The reasons are stored with the clients: they follow a change within ten seconds, and the date once a local day.
    Archived clients, and those that the caller may not see, are left out.
    """
    return await service.list_attention(
        ctx,
        reasons=query["reason"],
        groups=query.get("groups"),
        trainers=parse_trainers(query.get("assignedTo")),
        inactive_days=query["inactiveDays"],
        limit=query["limit"],
        after=query["after"],
    )


@routes.put(
    "/{customerId}",
    access=coach(CUSTOMERS.EDIT),
    locks="customer",
    errors=(Conflict,),
    example={"reason": "nothing_scheduled", "until": None},
)
async def dismiss_attention(
    ctx: Context, customer_id: ObjectId, body: attention_models.AttentionDismissal
) -> attention_models.AttentionEntry:
    """Dismiss a reason for the whole company.

    Until the date `until`, or until its `since` is later: until something new happens. The answer is the client with
    the reasons that are left. 409 if the client does not have the reason.
    """
    return await service.dismiss(ctx, customer_id, [body["reason"]], until=body["until"])
