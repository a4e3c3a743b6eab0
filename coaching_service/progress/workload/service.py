"""How much a client trained, period by period."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import BadRequest
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service as customers
from coaching_service.progress.workload.figures import (
    CHRONIC_DAYS,
    LoadCurve,
    period_start,
    period_starts,
    session_load,
)
from coaching_service.training.workouts import readings, tallies

MAX_RANGE = 3_700


async def periods(ctx: Context, customer_id: ObjectId, first: str, last: str, group_by: str = "day") -> Document:
    """Every period (`day`, `week`, `month`) from `first` to `last` with what was done in it.

    The acute:chronic ratio is that of the period's last day. Raises NotFound, Forbidden, BadRequest over ten years.
    """
    start, end = date.fromisoformat(first), date.fromisoformat(last)
    if (end - start).days >= MAX_RANGE:
        raise BadRequest(f"endDate must be less than {MAX_RANGE} days after startDate")
    begin = date.fromordinal(max(1, start.toordinal() - CHRONIC_DAYS + 1))
    _, sessions, first_session = await gather_reads(
        ctx,
        customers.get_visible(ctx, customer_id),
        readings.sessions_done(ctx, customer_id, str(begin), last),
        readings.first_session(ctx, customer_id),
    )
    curve = LoadCurve(sessions, begin, end)
    since = date.fromisoformat(first_session) if first_session else None
    found = {day: _empty(day) for day in period_starts(start, end, group_by)}
    for session in sessions:
        if session["date"] >= first:
            _add(found[period_start(date.fromisoformat(session["date"]), group_by)], session)
    last_days = [day - timedelta(days=1) for day in list(found)[1:]] + [end]
    for period, day in zip(found.values(), last_days, strict=True):
        period["volumeLoad"] = tallies.exact(period["volumeLoad"])
        period["acuteChronicRatio"], period["ratioOf"] = curve.ratio(day, since)
    return {"loadUnit": ctx.caller.company.load_unit, "groupBy": group_by, "periods": list(found.values())}


def _empty(day: date) -> dict[str, Any]:
    return {"date": str(day), "sessions": 0, "sets": 0, "reps": 0, "volumeLoad": 0, "sessionLoad": None}


def _add(period: dict[str, Any], session: Document) -> None:
    period["sessions"] += 1
    period["sets"] += session["sets"]
    period["reps"] += session["reps"]
    period["volumeLoad"] += session["volumeLoad"]
    if (load := session_load(session)) is not None:
        period["sessionLoad"] = (period["sessionLoad"] or 0) + load
