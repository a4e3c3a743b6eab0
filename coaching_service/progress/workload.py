"""How much a client trained: each muscle, and period by period."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Annotated, Literal, TypedDict

from coaching_service.core import mcp
from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.errors import invalid_field
from coaching_service.core.fields import Default, Description, query_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import Answer, Tools, typed
from coaching_service.core.query import Period, SearchedRange
from coaching_service.core.validation import Choice, Date
from coaching_service.library.exercises import service as exercises
from coaching_service.people.customers import service as customers
from coaching_service.training.workouts.blocks.items import show_loads
from coaching_service.training.workouts.items import service as items
from coaching_service.training.workouts.reports import blocks as block_reports
from coaching_service.training.workouts.reports import exercises as exercise_reports
from coaching_service.training.workouts.reports.blocks import Session

# --- Muscle-group volume as it is returned ----------------------------------------------------------------------------


class MuscleVolume(TypedDict):
    """The completed sets of a muscle without warm-up sets; as a secondary muscle they count half."""

    _id: ObjectId
    name: str
    sets: float
    reps: float
    volumeLoad: Annotated[float, Description("Sum of reps x load, in `loadUnit`.")]


class MuscleGroupVolume(Period):
    """How much each muscle was trained in a date range."""

    loadUnit: Annotated[str, Choice("kg", "lb")]
    muscleGroups: list[MuscleVolume]


_SHARE_OF_ROLE = {"primary": 1.0, "secondary": 0.5}


volume_routes = Routes("/coach/customers/{customerId}/musclegroups/volume", tag="Volume")


@volume_routes.get("", access=coach(CUSTOMERS.VIEW), query=SearchedRange(), operation_id="getMuscleGroupVolume")
async def get_volume(ctx: Context, customer_id: ObjectId, query: Period) -> MuscleGroupVolume:
    """Read how much a client trained each muscle.

    Volume load is the sum of reps x load over completed sets that are not warm-up; a secondary muscle counts half.
    Sorted by number of sets, most first.
    """
    _, totals = await gather_reads(
        ctx,
        customers.get_visible(ctx, customer_id),
        exercise_reports.sum_by_exercise(ctx, customer_id, query["startDate"], query["endDate"]),
    )
    muscles_of = await exercises.get_trained_muscles(ctx, [total["_id"] for total in totals])
    volumes: dict[ObjectId, MuscleVolume] = {}
    for total in totals:
        for muscle in muscles_of.get(total["_id"], ()):
            share = _SHARE_OF_ROLE[muscle["role"]]
            volume = volumes.setdefault(
                muscle["_id"], {"_id": muscle["_id"], "name": muscle["name"], "sets": 0, "reps": 0, "volumeLoad": 0}
            )
            volume["sets"] += total["sets"] * share
            volume["reps"] += total["reps"] * share
            volume["volumeLoad"] += total["volumeLoad"] * share
    for volume in volumes.values():
        volume["volumeLoad"] = items.round_total(volume["volumeLoad"])
    return {
        "startDate": query["startDate"],
        "endDate": query["endDate"],
        "loadUnit": ctx.caller.company.load_unit,
        "muscleGroups": sorted(volumes.values(), key=lambda volume: (-volume["sets"], volume["name"])),
    }


# --- Training load as it is asked for and returned --------------------------------------------------------------------


LoadKind = Literal["sessionLoad", "volumeLoad"]
GroupBy = Literal["day", "week", "month"]


class WorkloadQuery(Period):
    """The date range, and how its days are grouped."""

    groupBy: Annotated[GroupBy, Default("day")]


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


routes = Routes("/coach/customers/{customerId}/workload", tag="Workload")


@routes.get(
    "", access=coach(CUSTOMERS.VIEW), query=query_of(WorkloadQuery, SearchedRange)(), operation_id="getWorkload"
)
async def read(ctx: Context, customer_id: ObjectId, query: WorkloadQuery) -> Workload:
    """Read how much a client trained.

    Lists every period of the range (less than 3,700 days), including empty ones. A session counts on its block's date.
    Session load is the rating of perceived exertion x minutes; the acute:chronic ratio compares the mean of 7 days with
    the mean of 28.
    """
    start, end, group_by = (
        date.fromisoformat(query["startDate"]),
        date.fromisoformat(query["endDate"]),
        query["groupBy"],
    )
    if (end - start).days >= MAX_DAYS:
        raise invalid_field("endDate", f"must be less than {MAX_DAYS} days after startDate", code="RANGE_TOO_LONG")
    chronic_start = date.fromordinal(max(1, start.toordinal() - CHRONIC_DAYS + 1))
    _, sessions, first_date = await gather_reads(
        ctx,
        customers.get_visible(ctx, customer_id),
        block_reports.find_sessions(ctx, customer_id, str(chronic_start), str(end)),
        block_reports.find_session_date(ctx, customer_id, "date"),
    )
    sessions_of = defaultdict[int, list[Session]](list)
    first_session = date.fromisoformat(first_date) if first_date else None
    days = map(date.fromordinal, range(start.toordinal(), end.toordinal() + 1))
    periods: dict[date, WorkloadPeriod] = {
        day: {
            "date": str(day),
            "sessions": 0,
            "sets": 0,
            "reps": 0,
            "volumeLoad": 0,
            "sessionLoad": None,
            "acuteChronicRatio": None,
            "ratioOf": "volumeLoad",
        }
        for day in dict.fromkeys(period_start(each, group_by) for each in days)
    }
    for session in sessions:
        day = date.fromisoformat(session["date"])
        sessions_of[day.toordinal()].append(session)
        if day < start:
            continue
        period = periods[period_start(day, group_by)]
        period["sessions"] += 1
        period["sets"] += session["sets"]
        period["reps"] += session["reps"]
        period["volumeLoad"] += session["volumeLoad"]
        if (load := session_load(session)) is not None:
            period["sessionLoad"] = (period["sessionLoad"] or 0) + load
    last_days = [day - timedelta(days=1) for day in list(periods)[1:]] + [end]
    for period, last_day in zip(periods.values(), last_days, strict=True):
        period["volumeLoad"] = items.round_total(period["volumeLoad"])
        period["acuteChronicRatio"], period["ratioOf"] = _compare_loads(sessions_of, last_day, first_session)
    return {"loadUnit": ctx.caller.company.load_unit, "groupBy": group_by, "periods": list(periods.values())}


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


def _compare_loads(
    sessions_of: Mapping[int, Sequence[Session]], day: date, first_session: date | None
) -> tuple[float | None, LoadKind]:
    """Return the mean load of the 7 days up to `day` over the mean of 28 (Hulin et al. 2014), and the kind of load.

    Of session load if every session in the 28 days was rated, else of volume load. None in the first 28 days since the
    first session, or when the chronic mean is 0. `sessions_of` has the sessions by the ordinal of their day.
    """
    end = day.toordinal()
    month = [(each, done) for each in range(end - CHRONIC_DAYS + 1, end + 1) for done in sessions_of.get(each, ())]
    rated = [(each, session_load(session)) for each, session in month]
    is_rated = bool(month) and all(load is not None for _, load in rated)
    loads = rated if is_rated else [(each, session["volumeLoad"]) for each, session in month]
    # Whole numbers of millionths, so that sums are exact.
    exact = [(each, round((load or 0) * 1_000_000)) for each, load in loads]
    acute, chronic = sum(load for each, load in exact if each > end - ACUTE_DAYS), sum(load for _, load in exact)
    kind: LoadKind = "sessionLoad" if is_rated else "volumeLoad"
    if first_session is None or (day - first_session).days < CHRONIC_DAYS or not chronic:
        return None, kind
    return round(acute * (CHRONIC_DAYS // ACUTE_DAYS) / chronic, 2), kind


# --- Workload for assistants ------------------------------------------------------------------------------------------


tools = Tools()


class TrainingLoad(mcp.Dates, mcp.CustomerArgument):
    """The client, the date range, and how its days are grouped."""

    groupBy = Choice(*("day", "week", "month"), load_default="week", metadata={"description": "Weeks begin on Monday."})


@tools.tool("Read training load", access=coach(CUSTOMERS.VIEW), takes=TrainingLoad(), returns=mcp.Lines)
async def get_training_load(
    ctx: Context, customer_id: ObjectId, start_date: str, end_date: str, group_by: GroupBy
) -> Answer:
    """Read how much a client trained, period by period, for at most a year: sessions, sets, reps, volume load, session
    load (perceived exertion x minutes) and acute:chronic ratio (7 days over 28)."""
    customer, workload = await gather_reads(
        ctx,
        customers.get_visible_reference(ctx, customer_id),
        read(ctx, customer_id, {"startDate": start_date, "endDate": end_date, "groupBy": group_by}),
    )
    load_unit = ctx.caller.load_unit
    workload = show_loads(workload, ctx, load_unit)
    first = f"Training load of {typed(customer['name'])} by {group_by}, loads in {load_unit}"
    lines = []
    for period in workload["periods"]:
        if period["sessions"] or group_by != "day":
            load, ratio = period["sessionLoad"], period["acuteChronicRatio"]
            facts = mcp.join_facts(
                f"{period['sessions']} sessions",
                f"{period['sets']} sets",
                f"{period['reps']} reps",
                f"volume load {mcp.format_figure(period['volumeLoad'])}",
                load is not None and f"session load {mcp.format_figure(load)}",
                ratio is not None and f"ratio {mcp.format_figure(ratio)} of {period['ratioOf']}",
            )
            lines.append(f"{period['date']}: {facts}")
    docs = [{"line": line} for line in lines]
    return Answer("\n".join([first, *lines]), {**mcp.describe_list(first, {}), "docs": docs})
