"""Compliance for assistants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, validates_schema

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import arguments
from coaching_service.core.mcp.results import Answer, typed
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Date, Identifier, Integer, invalid
from coaching_service.people.customers import bulk
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.derived_figures import RateDays
from coaching_service.progress.compliance import service
from coaching_service.progress.compliance.models import MAX_LIST_DAYS, PERIODS, ClientCompliance, DayCompliance

tools = Tools()
_MAX_DAYS = 366
_USUAL_PERIOD: RateDays = 30


class ComplianceQuery(arguments.ToolPart):
    """One client, or all with a filter; the dates: both or neither."""

    customerId = Identifier(**arguments.optional("Without it all clients."))
    startDate = Date(load_default=None, metadata={"description": "First day; with endDate."})
    endDate = Date(load_default=None, metadata={"description": "At most a year later, for all clients 92 days."})
    period = Integer(
        minimum=min(PERIODS),
        maximum=max(PERIODS),
        **arguments.optional("All clients: the last 7, 30 or 90 days."),
    )
    below = Integer(minimum=1, maximum=100, **arguments.optional("All clients: only those below this percentage."))

    @validates_schema
    def validate_combination(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raises ValidationError unless there are both dates in order or neither, and filters without dates."""
        start, end, one_client = data["startDate"], data["endDate"], data["customerId"] is not None
        if (start is None) != (end is None):
            missing, given = ("endDate", "startDate") if end is None else ("startDate", "endDate")
            raise ValidationError(f"is required together with {given}", missing)
        if start is not None:
            arguments.require_range(start, end, _MAX_DAYS if one_client else MAX_LIST_DAYS)
        if data["period"] is not None and (one_client or start is not None):
            raise invalid("is only for all clients, without dates", "NOT_COMBINED", "period")
        if data["below"] is not None and one_client:
            raise invalid("is only for all clients", "NOT_COMBINED", "below")
        if data["period"] not in (None, *PERIODS):
            raise invalid("must be 7, 30 or 90", "INVALID_CHOICE", "period")


@tools.tool("Read compliance", access=coach(CUSTOMERS.VIEW), takes=ComplianceQuery(), returns=arguments.PartOfLines)
async def get_compliance(
    ctx: Context,
    customer_id: ObjectId | None,
    start_date: str | None,
    end_date: str | None,
    period: RateDays | None,
    below: int | None,
    limit: int,
    after: str | None,
) -> Answer:
    """Read the percentage of workout days completed, up to yesterday (today once it is completed). One client: each
    workout day too, by default of the last 30 days. All clients: lowest first; with dates by name."""
    if customer_id is not None:
        return await _read_one(ctx, customer_id, start_date, end_date)
    if start_date is not None and end_date is not None:
        title = f"Compliance from {start_date} to {end_date}" + (f", below {below}%" if below is not None else "")
        part = await service.list_between(ctx, start_date, end_date, below=below, limit=limit, after=after)
    else:
        days = period or _USUAL_PERIOD
        title = f"Compliance of the last {days} days" + (f", below {below}%" if below is not None else "")
        part = await service.list_stored(ctx, days, below=below, limit=limit, after=after)
        clients = await bulk.load_identities(ctx, [client["customerId"] for client in part["docs"]])
        today_of = {each: ctx.caller.today(client["timezone"]) for each, client in clients.items()}
        counts = await service.count_days(ctx, today_of, days)
        for client in part["docs"]:
            client["totalWorkoutDays"], client["completedWorkoutDays"] = counts.get(client["customerId"], (None, None))
    ids = [client["customerId"] for client in part["docs"]]
    return arguments.list_answer(title, part, [_describe_client(client) for client in part["docs"]], ids=ids)


def _describe_client(client: ClientCompliance) -> str:
    total, completed = client["totalWorkoutDays"], client["completedWorkoutDays"]
    counts = f" ({completed} of {total} workout days)" if total else ""
    figure = arguments.format_figure(client["workoutCompletionPercentage"], "%")
    return f"{typed(client['name'])} [{client['customerId']}]: {figure}{counts}"


async def _read_one(ctx: Context, customer_id: ObjectId, start_date: str | None, end_date: str | None) -> Answer:
    customer, compliance = await gather_reads(
        ctx,
        customers.get_visible_reference(ctx, customer_id),
        service.get_compliance(ctx, customer_id, start_date, end_date),
    )
    days = [day for day in compliance["dailyCompliance"] if day["isWorkoutDay"]]
    percentage = compliance["workoutCompletionPercentage"]
    shown = arguments.format_figure(percentage, "%")
    first = (
        f"{typed(customer['name'])}, {compliance['from']} to {compliance['to']}: {shown} "
        f"({compliance['completedWorkoutDays']} of {compliance['totalWorkoutDays']} workout days)"
    )
    lines = [_describe_day(day) for day in days]
    docs = [{"line": line} for line in lines]
    return Answer("\n".join([first, *lines]), {**arguments.describe_list(first, {}), "docs": docs})


def _describe_day(day: DayCompliance) -> str:
    done = "done" if day["isCompleted"] else f"{day['completedItems']} of {day['totalItems']} items"
    return f"{day['date']} {done}: {', '.join(typed(block['name']) for block in day['workoutBlocks'])}"
