"""Compliance of all clients of a company: the stored rates, or computed for a range of dates."""

from __future__ import annotations

from datetime import date

from coaching_service.core.database.context import Context
from coaching_service.core.pagination import CursorPage
from coaching_service.people.availability.absences import Absences
from coaching_service.people.customers import derived_figures
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.derived_figures import RateDays, RateOrder
from coaching_service.people.customers.models import Customer, CustomerRate
from coaching_service.progress.compliance.models import ClientCompliance
from coaching_service.progress.compliance.service import (
    count_workout_days,
    describe_day,
    group_by_date,
    load_days,
    percentage,
)
from coaching_service.training.workouts.reports.models import ScheduledBlock

# Of clients without one below the percentage, in a row.
_MAX_READS = 100


async def list_stored(
    ctx: Context,
    period: RateDays,
    *,
    below: int | None = None,
    sort: RateOrder = "percentage",
    limit: int,
    after: str | None = None,
) -> CursorPage[ClientCompliance]:
    """Return part of the active clients in the coach's scope with their stored rates of the last `period` days.

    By percentage, ascending with None last, or by name; `below`: only clients with a percentage below it. Reads no
    workouts, so the numbers of workout days are None. Raises InvalidFields if `after` is not a cursor of this list
    with the same filters.
    """
    part = await derived_figures.list_rates(ctx, period, below=below, sort=sort, limit=limit, after=after)
    docs = [_present_stored(client) for client in part["docs"]]
    return {"docs": docs, "nextCursor": part["nextCursor"], "hasMore": part["hasMore"]}


def _present_stored(client: CustomerRate) -> ClientCompliance:
    return {
        "customerId": client["_id"],
        "name": client["name"],
        "totalWorkoutDays": None,
        "completedWorkoutDays": None,
        "workoutCompletionPercentage": client["rate"],
    }


async def list_between(
    ctx: Context, first: str, last: str, *, below: int | None = None, limit: int, after: str | None = None
) -> CursorPage[ClientCompliance]:
    """Return part of the active clients in the coach's scope, by name, with what they did of what was scheduled.

    From the date `first` to `last`, both included; days up to each client's yesterday count, and today once it is
    completed. `below`: only clients with a percentage below it; a part may then have fewer clients than `limit`,
    although there are more. Raises InvalidFields if `after` is not a cursor of this list with the same filters.
    """
    docs: list[ClientCompliance] = []
    for _ in range(_MAX_READS):
        part = await _read_between(ctx, first, last, below, limit=limit - len(docs), after=after)
        docs += part["docs"]
        after = part["nextCursor"]
        if not part["hasMore"] or len(docs) == limit:
            break
    return {"docs": docs, "nextCursor": part["nextCursor"], "hasMore": part["hasMore"]}


async def _read_between(
    ctx: Context, first: str, last: str, below: int | None, *, limit: int, after: str | None
) -> CursorPage[ClientCompliance]:
    filters = {"from": first, "to": last, "below": below}
    part = await derived_figures.list_clients_by_name(ctx, "compliance", filters, limit=limit, after=after)
    blocks_of, absences_of = await load_days(ctx, [client["_id"] for client in part["docs"]], first, last)
    docs = [
        _present_computed(
            client, blocks_of[client["_id"]], absences_of[client["_id"]], ctx.caller.today(client["timezone"])
        )
        for client in part["docs"]
    ]
    if below is not None:
        rated = [(each, each["workoutCompletionPercentage"]) for each in docs]
        docs = [each for each, rate in rated if rate is not None and rate < below]
    return {"docs": docs, "nextCursor": part["nextCursor"], "hasMore": part["hasMore"]}


def _present_computed(
    client: Customer, blocks: list[ScheduledBlock], absences: Absences, today: date
) -> ClientCompliance:
    days = [describe_day(day, blocks_of_day, absences) for day, blocks_of_day in group_by_date(blocks).items()]
    total, completed = count_workout_days(days, today)
    return {
        "customerId": client["_id"],
        "name": customers.full_name(client),
        "totalWorkoutDays": total,
        "completedWorkoutDays": completed,
        "workoutCompletionPercentage": percentage(completed, total),
    }
