"""Compliance for assistants."""

from __future__ import annotations

from coaching_service.kernel.auth.access import coach
from coaching_service.kernel.auth.permissions import CUSTOMERS
from coaching_service.kernel.mcp.arguments import ClientArgument, OpenDates
from coaching_service.kernel.mcp.tools import Tools
from coaching_service.kernel.storage.context import Context, together
from coaching_service.kernel.storage.documents import Document
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.people.customers import service as customers
from coaching_service.progress.compliance import service

tools = Tools()


class ComplianceDates(OpenDates, ClientArgument):
    """Whose compliance, and of which days."""


@tools.tool("Read compliance", access=coach(CUSTOMERS.VIEW), takes=ComplianceDates())
async def get_compliance(ctx: Context, customer_id: ObjectId, start_date: str | None, end_date: str | None) -> Document:
    """Read whether a client did what was scheduled, by default over the last 30 days up to the client's today: how
    many workout days there were, how many were completed, the percentage (null without a workout day), and each
    workout day with its workouts. Days without a workout are left out."""
    client, found = await together(
        ctx, customers.card(ctx, customer_id), service.between(ctx, customer_id, start_date, end_date)
    )
    days = found["dailyCompliance"]
    return {
        "customer": client,
        "startDate": days[0]["date"],
        "endDate": days[-1]["date"],
        **{name: found[name] for name in ("totalWorkoutDays", "completedWorkoutDays", "workoutCompletionPercentage")},
        "workoutDays": [_day(day) for day in days if day["isWorkoutDay"]],
    }


def _day(day: Document) -> Document:
    names = ("date", "isCompleted", "completedItems", "totalItems")
    return {**{name: day[name] for name in names}, "workouts": [block["name"] for block in day["workoutBlocks"]]}
