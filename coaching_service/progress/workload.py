"""How much a client trained, period by period."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from itertools import accumulate
from typing import Annotated, Literal, TypedDict

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.errors import invalid_field
from coaching_service.core.field_schemas import query_of
from coaching_service.core.fields import Default, Description
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import arguments
from coaching_service.core.mcp.results import Answer, typed
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.query import Period, SearchedRange
from coaching_service.core.validation import Choice, Date
from coaching_service.people.customers import service as customers
from coaching_service.training.workouts.blocks.load_conversion import show_loads
from coaching_service.training.workouts.items import totals as training_load
from coaching_service.training.workouts.reports import blocks as queries

# --- Training load as it is asked for and returned --------------------------------------------------------------------


LoadKind = Literal["sessionLoad", "volumeLoad"]
GroupBy = Literal["day", "week", "month"]


class WorkloadQuery(Period):
    """The date range, and how its days are grouped."""

    groupBy: Annotated[GroupBy, Default("day")]


class Session(TypedDict):
    """What was done in one training session, on its block's date."""

    date: str
    sets: int
    reps: int
    volumeLoad: float
    sessionRpe: float | None
    durationMinutes: int | None


class WorkloadPeriod(TypedDict):
    """What was done in a day, a week (from Monday) or a month."""

    date: Annotated[str, Date(), Description("The period's first day.")]
    sessions: Annotated[
        int,
        Description("Workouts with a completed set that is not warm-up, or a completed item of a type without sets."),
    ]
    sets: Annotated[int, Description("Completed sets that are not warm-up.")]
    reps: int
    volumeLoad: Annotated[float, Description("Sum of reps x load, in `loadUnit`.")]
    sessionLoad: Annotated[
        float | None, Description("Sum of sessionRpe x durationMinutes; null when no session was rated.")
    ]
    acuteChronicRatio: Annotated[
        float | None,
        Description(
            "On the period's last day: mean daily load of 7 days over the mean of 28; null in the first 28 days and "
            "when the mean of 28 is 0."
        ),
    ]
    ratioOf: Annotated[LoadKind, Description("sessionLoad if every session of the 28 days was rated, else volumeLoad.")]


class Workload(TypedDict):
    """How much a client trained, period by period."""

    loadUnit: Annotated[str, Choice("kg", "lb")]
    groupBy: GroupBy
    periods: list[WorkloadPeriod]


MAX_DAYS = 3_700
ACUTE_DAYS, CHRONIC_DAYS = 7, 28


async def read(
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


# --- The formulas of training load -----------------------------------------------------------------------------------


def session_load(session: Session) -> float | None:
    """Rating of perceived exertion times minutes (Foster et al. 2001); None unless both are recorded."""
    rpe, minutes = session["sessionRpe"], session["durationMinutes"]
    return None if rpe is None or minutes is None else rpe * minutes


def period_start(day: date, group_by: GroupBy) -> date:
    """Return the first day of the period that contains `day`: the day itself, its Monday, or the first of its month."""
    if group_by == "week":
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if group_by == "month" else day


def period_starts(start: date, end: date, group_by: GroupBy) -> list[date]:
    """Return the first days of all periods with a day from `start` to `end`."""
    days = map(date.fromordinal, range(start.toordinal(), end.toordinal() + 1))
    return list(dict.fromkeys(period_start(day, group_by) for day in days))


class LoadCurve:
    """Daily training load from `start` to `end`, and the acute:chronic ratio on any day between them.

    `sessions` are those from `start` on; a window's load is a difference of running totals.
    """

    def __init__(self, sessions: Iterable[Session], start: date, end: date) -> None:
        self._start = start
        days = (end - start).days + 1
        volume, load, unrated, count = [0] * days, [0] * days, [0] * days, [0] * days
        for session in sessions:
            day = (date.fromisoformat(session["date"]) - start).days
            rated_load = session_load(session)
            volume[day] += _millionths(session["volumeLoad"])
            load[day] += _millionths(rated_load or 0)
            unrated[day] += rated_load is None
            count[day] += 1
        self._volume, self._load, self._unrated, self._count = (
            list(accumulate(daily, initial=0)) for daily in (volume, load, unrated, count)
        )

    def ratio(self, day: date, first_session: date | None) -> tuple[float | None, LoadKind]:
        """Return the mean daily load of the 7 days up to `day` over the mean of 28 (Hulin et al. 2014), with the
        kind of load.

        Of session load if every session in the 28 days was rated, else of volume load. None in the first 28 days
        since the first session, or when the chronic mean is 0.
        """
        end = (day - self._start).days + 1
        chronic_start, acute_start = max(0, end - CHRONIC_DAYS), max(0, end - ACUTE_DAYS)
        sessions = self._count[end] - self._count[chronic_start]
        is_rated = sessions > 0 and self._unrated[end] == self._unrated[chronic_start]
        kind: LoadKind = "sessionLoad" if is_rated else "volumeLoad"
        totals = self._load if is_rated else self._volume
        chronic = totals[end] - totals[chronic_start]
        if first_session is None or (day - first_session).days < CHRONIC_DAYS or not chronic:
            return None, kind
        acute = totals[end] - totals[acute_start]
        return round(acute * (CHRONIC_DAYS // ACUTE_DAYS) / chronic, 2), kind


def _millionths(load: float) -> int:
    """Return a load as a whole number of millionths, so that sums and their differences are exact."""
    return round(load * 1_000_000)


# --- REST -------------------------------------------------------------------------------------------------------------


routes = Routes("/coach/customers/{customerId}/workload", tag="Workload")


@routes.get("", access=coach(CUSTOMERS.VIEW), query=query_of(WorkloadQuery, SearchedRange)())
async def get_workload(ctx: Context, customer_id: ObjectId, query: WorkloadQuery) -> Workload:
    """Read how much a client trained.

    Lists every period of the range (less than 3,700 days), including empty ones. A session counts on its block's date.
    Session load is the rating of perceived exertion x minutes; the acute:chronic ratio compares the mean of 7 days with
    the mean of 28.
    """
    return await read(ctx, customer_id, query["startDate"], query["endDate"], query["groupBy"])


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
        read(ctx, customer_id, start_date, end_date, group_by),
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
