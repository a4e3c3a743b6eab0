"""Compliance of clients with their schedule, and the figures that are stored with each client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import groupby

from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.errors import invalid_field
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import CursorPage
from coaching_service.people.availability import service as availability
from coaching_service.people.availability.absences import Absences
from coaching_service.people.customers import derived_figures
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.derived_figures import RateDays, RateOrder
from coaching_service.people.customers.models import Customer, CustomerRate
from coaching_service.progress.compliance import models as compliance_models
from coaching_service.progress.logs.service import ItemLogged
from coaching_service.training.workouts.blocks.models import CompletedWorkChanged, ScheduleChanged
from coaching_service.training.workouts.reports import blocks as queries
from coaching_service.training.workouts.reports.blocks import Status, status_of_day
from coaching_service.training.workouts.reports.models import ScheduledBlock

DEFAULT_DAYS, MAX_DAYS = 30, 3_700
LONGEST_RATE_DAYS = 90
_MISSED_DAYS = 7
# Of clients without one below the percentage, in a row.
_MAX_READS = 100


async def get_compliance(
    ctx: Context, customer_id: ObjectId, start_date: str | None, end_date: str | None
) -> compliance_models.Compliance:
    """Return what a client did of what was scheduled between two dates, both included; by default the last 30 days.

    "Today" is the client's. Raises InvalidFields for more than ten years, NotFound if the company has no such client,
    Forbidden if the client is outside the caller's scope.
    """
    customer = await customers.get_visible(ctx, customer_id, (*customers.SCOPE_FIELDS, "timezone"))
    today = ctx.caller.today(customer["timezone"])
    end = date.fromisoformat(end_date) if end_date else max(today, date.fromisoformat(start_date or str(today)))
    start = date.fromisoformat(start_date) if start_date else _first_of_days(end, DEFAULT_DAYS)
    if (end - start).days >= MAX_DAYS:
        raise invalid_field("to", f"must be less than {MAX_DAYS} days after from", code="RANGE_TOO_LONG")
    blocks, absences = await load_days(ctx, [customer_id], str(start), str(end))
    by_date = group_by_date(blocks[customer_id])
    days = [describe_day(day, by_date.get(day, ()), absences[customer_id]) for day in _list_dates(start, end)]
    total, completed = count_workout_days(days, today)
    return {
        "customerId": customer_id,
        "from": str(start),
        "to": str(end),
        "totalWorkoutDays": total,
        "completedWorkoutDays": completed,
        "workoutCompletionPercentage": percentage(completed, total),
        "dailyCompliance": days,
    }


async def compute_figures(
    ctx: Context, customer_id: ObjectId, today: date, timezone: str
) -> compliance_models.ClientFigures:
    """Return a client's compliance rates for the 7, 30 and 90 days up to `today`, and the last trained date."""
    stages = queries.last_session_stages(ctx, {customer_id: today})
    days_of, states = await gather_reads(
        ctx, get_days(ctx, {customer_id: today}), derived_figures.read_states(ctx, [customer_id], *stages)
    )
    last_trained = queries.find_last_trained(states[0], timezone) if states else None  # it may be erased meanwhile
    return {**compute_rates(days_of[customer_id], today), "lastTrainedDate": last_trained}


async def get_days(
    ctx: Context, today_of: Mapping[ObjectId, date], days_ahead: int = 0
) -> dict[ObjectId, list[compliance_models.DayCompliance]]:
    """Return, by client, the days on which anything is scheduled, in order.

    From 90 days before the client's today, which is in `today_of`, to at least `days_ahead` days after it.
    """
    days_of: dict[ObjectId, list[compliance_models.DayCompliance]] = {}
    if today_of:
        start = _first_of_days(min(today_of.values()), LONGEST_RATE_DAYS)
        end = date.fromordinal(min(date.max.toordinal(), max(today_of.values()).toordinal() + days_ahead))
        blocks_of, absences_of = await load_days(ctx, list(today_of), str(start), str(end))
        for client, blocks_of_client in blocks_of.items():
            by_date = group_by_date(blocks_of_client)
            days_of[client] = [
                describe_day(day, blocks_of_day, absences_of[client]) for day, blocks_of_day in by_date.items()
            ]
    return days_of


async def get_recent_days(
    ctx: Context, today_of: Mapping[ObjectId, date], length: int
) -> dict[ObjectId, list[tuple[str, Status | None]]]:
    """Return, by client, the last `length` days up to the client's today, each with what became of its workouts.

    `today_of` has the clients with their today. Two queries for any number of clients; access is not checked.
    """
    if not today_of:
        return {}
    first = _first_of_days(min(today_of.values()), length)
    blocks_of, absences_of = await load_days(ctx, list(today_of), str(first), str(max(today_of.values())))
    recent: dict[ObjectId, list[tuple[str, Status | None]]] = {}
    for client, today in today_of.items():
        by_date = group_by_date(blocks_of[client])
        dates = _list_dates(_first_of_days(today, length), today)
        absences = absences_of[client]
        recent[client] = [(day, status_of_day(by_date.get(day, ()), today, is_away=day in absences)) for day in dates]
    return recent


async def load_days(
    ctx: Context, customer_ids: Sequence[ObjectId], first: str, last: str
) -> tuple[dict[ObjectId, list[ScheduledBlock]], dict[ObjectId, Absences]]:
    """Return, by client, the scheduled blocks from `first` to `last`, in order, and on which days they do not train."""
    listed, absences = await gather_reads(
        ctx,
        queries.find_scheduled_blocks(ctx, customer_ids, first, last),
        availability.get_absences(ctx, customer_ids, first, last),
    )
    blocks: dict[ObjectId, list[ScheduledBlock]] = {client: [] for client in customer_ids}
    for block in listed:
        blocks[block["customerId"]].append(block)
    return blocks, absences


def compute_rates(days: Sequence[compliance_models.DayCompliance], today: date) -> compliance_models.ComplianceRates:
    """Return the compliance rates for 7, 30 and 90 days up to `today`, from these `days`."""

    def rate(length: int) -> float | None:
        first = str(_first_of_days(today, length))
        total, completed = count_workout_days((day for day in days if day["date"] >= first), today)
        return percentage(completed, total)

    longest = rate(LONGEST_RATE_DAYS)
    return {
        "complianceRate7d": rate(7),
        "complianceRate30d": rate(30),
        "complianceRate90d": longest,
        "complianceDate": None if longest is None else str(today),
    }


def _first_of_days(end: date, days: int) -> date:
    """Return the first of `days` days up to `end`, or the first date of the calendar."""
    return date.fromordinal(max(1, end.toordinal() - days + 1))


async def mark_figures_due(ctx: Context, event: ScheduleChanged | CompletedWorkChanged | ItemLogged) -> None:
    """Mark the figures stored with a client as due: a background job computes them within 10 seconds."""
    await derived_figures.mark_due(ctx, [event.customer_id])


async def describe_missed(ctx: Context, today_of: Mapping[ObjectId, date]) -> dict[ObjectId, str]:
    """Return the workouts that clients have missed in the last 7 days, the latest first. Access is not checked.

    `today_of`: the clients with today's date where they are.
    """
    first = min(today_of.values()).toordinal() - _MISSED_DAYS
    blocks_of, absences_of = await load_days(
        ctx, list(today_of), str(date.fromordinal(first)), str(max(today_of.values()))
    )
    missed: dict[ObjectId, str] = {}
    for client, today in today_of.items():
        names = [
            f"{block['name']} of {block['date']}"
            for block in reversed(blocks_of[client])
            if str(date.fromordinal(today.toordinal() - _MISSED_DAYS)) < block["date"] < str(today)
            and block["isWorkout"]
            and block["completedItems"] < block["totalItems"]
            and block["date"] not in absences_of[client]
        ]
        if names:
            missed[client] = ", ".join(names)
    return missed


# --- All clients of a company: the stored rates, or computed for a range of dates -------------------------------------


async def list_stored(
    ctx: Context,
    period: RateDays,
    *,
    below: int | None = None,
    sort: RateOrder = "percentage",
    limit: int,
    after: str | None = None,
) -> CursorPage[compliance_models.ClientCompliance]:
    """Return part of the active clients in the coach's scope with their stored rates of the last `period` days.

    By percentage, ascending with None last, or by name; `below`: only clients with a percentage below it. Reads no
    workouts, so the numbers of workout days are None. Raises InvalidFields if `after` is not a cursor of this list
    with the same filters.
    """
    part = await derived_figures.list_rates(ctx, period, below=below, sort=sort, limit=limit, after=after)
    docs = [_present_stored(client) for client in part["docs"]]
    return {"docs": docs, "nextCursor": part["nextCursor"], "hasMore": part["hasMore"]}


async def count_days(ctx: Context, today_of: Mapping[ObjectId, date], days: int) -> dict[ObjectId, tuple[int, int]]:
    """Return, by client, the workout days of the last `days` days and how many are completed. Access is not checked.

    `today_of`: the clients with today's date where they are.
    """
    days_of = await get_days(ctx, today_of)
    first = {client: str(_first_of_days(today, days)) for client, today in today_of.items()}
    return {
        client: count_workout_days((day for day in days_of[client] if day["date"] >= first[client]), today)
        for client, today in today_of.items()
    }


def _present_stored(client: CustomerRate) -> compliance_models.ClientCompliance:
    return {
        "customerId": client["_id"],
        "name": client["name"],
        "totalWorkoutDays": None,
        "completedWorkoutDays": None,
        "workoutCompletionPercentage": client["rate"],
    }


async def list_between(
    ctx: Context, first: str, last: str, *, below: int | None = None, limit: int, after: str | None = None
) -> CursorPage[compliance_models.ClientCompliance]:
    """Return part of the active clients in the coach's scope, by name, with what they did of what was scheduled.

    From the date `first` to `last`, both included; days up to each client's yesterday count, and today once it is
    completed. `below`: only clients with a percentage below it; a part may then have fewer clients than `limit`,
    although there are more. Raises InvalidFields if `after` is not a cursor of this list with the same filters.
    """
    docs: list[compliance_models.ClientCompliance] = []
    for _ in range(_MAX_READS):
        part = await _read_between(ctx, first, last, below, limit=limit - len(docs), after=after)
        docs += part["docs"]
        after = part["nextCursor"]
        if not part["hasMore"] or len(docs) == limit:
            break
    return {"docs": docs, "nextCursor": part["nextCursor"], "hasMore": part["hasMore"]}


async def _read_between(
    ctx: Context, first: str, last: str, below: int | None, *, limit: int, after: str | None
) -> CursorPage[compliance_models.ClientCompliance]:
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
) -> compliance_models.ClientCompliance:
    days = [describe_day(day, blocks_of_day, absences) for day, blocks_of_day in group_by_date(blocks).items()]
    total, completed = count_workout_days(days, today)
    return {
        "customerId": client["_id"],
        "name": customers.full_name(client),
        "totalWorkoutDays": total,
        "completedWorkoutDays": completed,
        "workoutCompletionPercentage": percentage(completed, total),
    }


# --- Which days count, and which of them are completed ----------------------------------------------------------------


def group_by_date(blocks: Iterable[ScheduledBlock]) -> dict[str, list[ScheduledBlock]]:
    """Return the blocks of each date that has any; `blocks` are sorted by date."""
    return {day: list(blocks_of_day) for day, blocks_of_day in groupby(blocks, key=lambda block: block["date"])}


def _list_dates(start: date, end: date) -> list[str]:
    """Return every date from `start` to `end`."""
    return [str(date.fromordinal(number)) for number in range(start.toordinal(), end.toordinal() + 1)]


def describe_day(day: str, blocks: Sequence[ScheduledBlock], absences: Absences) -> compliance_models.DayCompliance:
    """Return what was scheduled and completed on one day.

    A workout day has a block that is not rest and has an exercise, a circuit or a task; it is completed when all items
    of such blocks are. Other blocks are ignored in both. A day on which the client does not train is none.
    """
    is_absent = day in absences
    workouts = [block for block in blocks if block["isWorkout"]]
    total = sum(block["totalItems"] for block in workouts)
    completed = sum(block["completedItems"] for block in workouts)
    return {
        "date": day,
        "isWorkoutDay": total > 0 and not is_absent,
        "isRestDay": not workouts and any(block["isRest"] for block in blocks),
        "isCompleted": total > 0 and completed == total and not is_absent,
        "totalItems": total,
        "completedItems": completed,
        "workoutBlocks": [_describe_block(block) for block in blocks],
    }


def _describe_block(block: ScheduledBlock) -> compliance_models.BlockCompliance:
    is_completed = block["totalItems"] > 0 and block["completedItems"] == block["totalItems"]
    return {"id": block["_id"], "name": block["name"], "isCompleted": is_completed}


def count_workout_days(days: Iterable[compliance_models.DayCompliance], today: date) -> tuple[int, int]:
    """Return the numbers of workout days and of completed ones, up to yesterday, and today once completed."""
    counted = [
        day
        for day in days
        if day["isWorkoutDay"] and (day["date"] < str(today) or (day["date"] == str(today) and day["isCompleted"]))
    ]
    return len(counted), sum(day["isCompleted"] for day in counted)


def percentage(completed: int, total: int) -> float | None:
    """Completed workout days in percent, to one decimal; None without a workout day."""
    return round(100 * completed / total, 1) if total else None
