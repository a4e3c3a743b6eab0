"""How much a client trained, period by period."""

from __future__ import annotations

from datetime import date, timedelta

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import invalid_field
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service as customers
from coaching_service.progress.workload._load import (
    CHRONIC_DAYS,
    LoadCurve,
    period_start,
    period_starts,
    session_load,
)
from coaching_service.progress.workload.models import GroupBy, Session, Workload, WorkloadPeriod
from coaching_service.training.workouts.items import totals as training_load
from coaching_service.training.workouts.reports import blocks as queries

MAX_DAYS = 3_700


async def get_workload(
    ctx: Context, customer_id: ObjectId, start_date: str, end_date: str, group_by: GroupBy = "day"
) -> Workload:
    """Return every period (`day`, `week`, `month`) between two dates, both included, with what was done in it.

    The acute:chronic ratio is of the period's last day. Raises InvalidFields for more than ten years, NotFound if
    the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    start, end = date.fromisoformat(start_date), date.fromisoformat(end_date)
    if (end - start).days >= MAX_DAYS:
        raise invalid_field("endDate", f"must be less than {MAX_DAYS} days after startDate", code="RANGE_TOO_LONG")
    chronic_start = date.fromordinal(max(1, start.toordinal() - CHRONIC_DAYS + 1))
    _, sessions, first_date = await gather_reads(
        ctx,
        customers.get_visible(ctx, customer_id),
        queries.find_sessions(ctx, customer_id, str(chronic_start), end_date),
        queries.find_session_date(ctx, customer_id, "date"),
    )
    curve = LoadCurve(sessions, chronic_start, end)
    first_session = date.fromisoformat(first_date) if first_date else None
    periods = {day: _empty(day) for day in period_starts(start, end, group_by)}
    for session in sessions:
        if session["date"] >= start_date:
            _add(periods[period_start(date.fromisoformat(session["date"]), group_by)], session)
    last_days = [day - timedelta(days=1) for day in list(periods)[1:]] + [end]
    for period, last_day in zip(periods.values(), last_days, strict=True):
        period["volumeLoad"] = training_load.round_total(period["volumeLoad"])
        period["acuteChronicRatio"], period["ratioOf"] = curve.ratio(last_day, first_session)
    return {"loadUnit": ctx.caller.company.load_unit, "groupBy": group_by, "periods": list(periods.values())}


def _empty(day: date) -> WorkloadPeriod:
    return {
        "date": str(day),
        "sessions": 0,
        "sets": 0,
        "reps": 0,
        "volumeLoad": 0,
        "sessionLoad": None,
        "acuteChronicRatio": None,
        "ratioOf": "volumeLoad",
    }


def _add(period: WorkloadPeriod, session: Session) -> None:
    period["sessions"] += 1
    period["sets"] += session["sets"]
    period["reps"] += session["reps"]
    period["volumeLoad"] += session["volumeLoad"]
    if (load := session_load(session)) is not None:
        period["sessionLoad"] = (period["sessionLoad"] or 0) + load
