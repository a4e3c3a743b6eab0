"""Compliance for assistants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, validates_schema

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import CustomerArgument, require_range
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Date
from coaching_service.people.customers import service as customers
from coaching_service.progress.compliance import service
from coaching_service.progress.compliance.models import DayCompliance

tools = Tools()
_MAX_DAYS = 366


class ComplianceDates(CustomerArgument):
    """The client, and the dates: both or neither."""

    startDate = Date(load_default=None, metadata={"description": "First day, YYYY-MM-DD; left out with endDate."})
    endDate = Date(load_default=None, metadata={"description": "Last day, included, at most a year later."})

    @validates_schema
    def both_or_neither(self, data: Mapping[str, str | None], **_: Any) -> None:
        """Both dates in order, or neither."""
        start, end = data["startDate"], data["endDate"]
        if (start is None) != (end is None):
            missing, given = ("endDate", "startDate") if end is None else ("startDate", "endDate")
            raise ValidationError(f"is required together with {given}", missing)
        if start is not None and end is not None:
            require_range(start, end, _MAX_DAYS)


@tools.tool("Read compliance", access=coach(CUSTOMERS.VIEW), takes=ComplianceDates())
async def get_compliance(
    ctx: Context, customer_id: ObjectId, start_date: str | None, end_date: str | None
) -> dict[str, object]:
    """Read whether a client did what was scheduled, from startDate to endDate (at most a year), or without them in
    the last 30 days up to the client's today: how many workout days there were up to yesterday (today counts once it is
    completed), how many were completed, the percentage (null without a workout day), and each workout day with its
    workouts. Days after today are listed and do not count."""
    customer, compliance = await gather_reads(
        ctx,
        customers.get_visible_reference(ctx, customer_id),
        service.read_compliance(ctx, customer_id, start_date, end_date),
    )
    return {
        "customer": customer,
        "startDate": compliance["from"],
        "endDate": compliance["to"],
        "totalWorkoutDays": compliance["totalWorkoutDays"],
        "completedWorkoutDays": compliance["completedWorkoutDays"],
        "workoutCompletionPercentage": compliance["workoutCompletionPercentage"],
        "workoutDays": [_describe_day(day) for day in compliance["dailyCompliance"] if day["isWorkoutDay"]],
    }


def _describe_day(day: DayCompliance) -> dict[str, object]:
    return {
        "date": day["date"],
        "isCompleted": day["isCompleted"],
        "completedItems": day["completedItems"],
        "totalItems": day["totalItems"],
        "workouts": [
            {"_id": block["id"], "name": block["name"], "isCompleted": block["isCompleted"]}
            for block in day["workoutBlocks"]
        ],
    }
