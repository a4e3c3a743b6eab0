"""Compliance for assistants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, validates_schema

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import CustomerArgument, require_range
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Date
from coaching_service.people.customers import service as customers
from coaching_service.progress.compliance import service

tools = Tools()
_MAX_LENGTH = 366


class ComplianceDates(CustomerArgument):
    """Whose compliance, and of which days: both ends or neither."""

    startDate = Date(load_default=None, metadata={"description": "First day, YYYY-MM-DD; left out with endDate."})
    endDate = Date(load_default=None, metadata={"description": "Last day, included, at most a year later."})

    @validates_schema
    def both_or_neither(self, data: Mapping[str, str | None], **_: Any) -> None:
        """Two ends in order, or none."""
        first, last = data["startDate"], data["endDate"]
        if (first is None) != (last is None):
            raise ValidationError("is needed beside the other end", "endDate" if last is None else "startDate")
        if first is not None and last is not None:
            require_range(first, last, _MAX_LENGTH)


@tools.tool("Read compliance", access=coach(CUSTOMERS.VIEW), takes=ComplianceDates())
async def get_compliance(ctx: Context, customer_id: ObjectId, start_date: str | None, end_date: str | None) -> Document:
    """Read whether a client did what was scheduled, from startDate to endDate (at most a year), or without them in
    the last 30 days up to the client's today: how many workout days there were, how many were completed, the
    percentage (null without a workout day), and each workout day with its workouts, each with whether it was completed.
    Days without a workout are left out."""
    client, found = await gather_reads(
        ctx, customers.get_visible_reference(ctx, customer_id), service.between(ctx, customer_id, start_date, end_date)
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
    workouts = [{"_id": of["id"], "name": of["name"], "isCompleted": of["isCompleted"]} for of in day["workoutBlocks"]]
    return {**{name: day[name] for name in names}, "workouts": workouts}
