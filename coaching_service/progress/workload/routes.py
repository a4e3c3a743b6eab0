"""Workload over REST."""

from __future__ import annotations

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.field_schemas import query_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import arguments
from coaching_service.core.mcp.results import Answer, typed
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.query import SearchedRange
from coaching_service.core.validation import Choice
from coaching_service.people.customers import service as customers
from coaching_service.progress.workload import service
from coaching_service.progress.workload.service import GroupBy, Workload, WorkloadPeriod, WorkloadQuery
from coaching_service.training.workouts.blocks.load_conversion import show_loads

routes = Routes("/coach/customers/{customerId}/workload", tag="Workload")


@routes.get("", access=coach(CUSTOMERS.VIEW), query=query_of(WorkloadQuery, SearchedRange)())
async def get_workload(ctx: Context, customer_id: ObjectId, query: WorkloadQuery) -> Workload:
    """Read how much a client trained.

    Lists every period of the range (less than 3,700 days), including empty ones. A session counts on its block's date.
    Session load is the rating of perceived exertion x minutes; the acute:chronic ratio compares the mean of 7 days with
    the mean of 28.
    """
    return await service.get_workload(ctx, customer_id, query["startDate"], query["endDate"], query["groupBy"])


# --- Workload for assistants ------------------------------------------------------------------------------------------


tools = Tools()


class TrainingLoad(arguments.Dates, arguments.CustomerArgument):
    """The client, the date range, and how its days are grouped."""

    groupBy = Choice(*("day", "week", "month"), load_default="week", metadata={"description": "Weeks begin on Monday."})


@tools.tool("Read training load", access=coach(CUSTOMERS.VIEW), takes=TrainingLoad(), returns=arguments.Lines)
async def get_training_load(
    ctx: Context, customer_id: ObjectId, start_date: str, end_date: str, group_by: GroupBy
) -> Answer:
    """Read how much a client trained, period by period, for at most a year: sessions, sets, reps, volume load, session
    load (perceived exertion x minutes) and acute:chronic ratio (7 days over 28)."""
    customer, workload = await gather_reads(
        ctx,
        customers.get_visible_reference(ctx, customer_id),
        service.get_workload(ctx, customer_id, start_date, end_date, group_by),
    )
    load_unit = ctx.caller.load_unit
    workload = show_loads(workload, ctx, load_unit)
    first = f"Training load of {typed(customer['name'])} by {group_by}, loads in {load_unit}"
    lines = [_describe(period) for period in workload["periods"] if period["sessions"] or group_by != "day"]
    docs = [{"line": line} for line in lines]
    return Answer("\n".join([first, *lines]), {**arguments.describe_list(first, {}), "docs": docs})


def _describe(period: WorkloadPeriod) -> str:
    ratio = period["acuteChronicRatio"]
    facts = arguments.join_facts(
        f"{period['sessions']} sessions",
        f"{period['sets']} sets",
        f"{period['reps']} reps",
        f"volume load {arguments.format_figure(period['volumeLoad'])}",
        period["sessionLoad"] is not None and f"session load {arguments.format_figure(period['sessionLoad'])}",
        ratio is not None and f"ratio {arguments.format_figure(ratio)} of {period['ratioOf']}",
    )
    return f"{period['date']}: {facts}"
