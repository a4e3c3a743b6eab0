"""Compliance of clients with their schedule, and the figures that are stored with each client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import groupby
from typing import Annotated, Any, NotRequired, TypedDict, get_args

from marshmallow import ValidationError, validates_schema
from marshmallow import validate as validators

from coaching_service.core import mcp, validation
from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.errors import invalid_field
from coaching_service.core.fields import Description, query_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import CursorPage, PartQuery
from coaching_service.core.mcp import Answer, Tools, typed
from coaching_service.core.query import QueryInteger
from coaching_service.people import availability
from coaching_service.people.availability import Absences
from coaching_service.people.customers import bulk, derived_figures
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.derived_figures import RateDays, RateOrder
from coaching_service.progress.form_responses import OPEN_RANGE, OpenRange
from coaching_service.progress.logs.service import ItemLogged
from coaching_service.training.workouts.blocks.models import CompletedWorkChanged, ScheduleChanged
from coaching_service.training.workouts.reports import blocks as block_reports
from coaching_service.training.workouts.reports.blocks import ScheduledBlock, Status, status_of_day

# --- Compliance as it is asked for and returned -----------------------------------------------------------------------


MAX_LIST_DAYS = 92
PERIODS: tuple[RateDays, ...] = get_args(RateDays)


class BlockCompliance(TypedDict):
    """A workout block of a day."""

    id: ObjectId
    name: str
    isCompleted: bool


class DayCompliance(TypedDict):
    """What was scheduled and completed on a day."""

    date: Annotated[str, validation.Date()]
    isWorkoutDay: Annotated[
        bool,
        Description("A block that is not rest has an exercise, a circuit or a task, and the client is not absent."),
    ]
    isRestDay: Annotated[bool, Description("Rest is scheduled, and no workout.")]
    isCompleted: Annotated[bool, Description("All items of the day's workouts are completed.")]
    totalItems: Annotated[int, Description("Items of the day's workouts.")]
    completedItems: Annotated[int, Description("How many of them are completed.")]
    workoutBlocks: list[BlockCompliance]


# `from` is a keyword of Python, so this type has the functional form.
_Compliance = TypedDict(
    "_Compliance",
    {
        "customerId": ObjectId,
        "totalWorkoutDays": Annotated[
            int,
            Description("Workout days up to yesterday, and today once it is completed; not those after today."),
        ],
        "completedWorkoutDays": Annotated[int, Description("How many of them are completed.")],
        "workoutCompletionPercentage": Annotated[
            float | None,
            Description("completedWorkoutDays of totalWorkoutDays, in percent; null without a workout day."),
        ],
        "dailyCompliance": list[DayCompliance],
        "from": Annotated[str, validation.Date(), Description("The first date of the range.")],
        "to": Annotated[str, validation.Date(), Description("The last date of the range, included.")],
    },
)


class Compliance(_Compliance):
    """What a client did of what was scheduled."""


class ClientCompliance(TypedDict):
    """What a client did of what was scheduled, in a list of clients."""

    customerId: ObjectId
    name: Annotated[str, Description("The name and surname of the client.")]
    totalWorkoutDays: Annotated[
        int | None,
        Description("Workout days up to yesterday, and today once it is completed; null with `period`."),
    ]
    completedWorkoutDays: Annotated[int | None, Description("How many of them are completed; null with `period`.")]
    workoutCompletionPercentage: Annotated[
        float | None, Description("In percent, 0 to 100; null without a workout day.")
    ]


class _RateQuery(PartQuery):
    period: NotRequired[
        Annotated[
            RateDays,
            QueryInteger(
                validate=validators.OneOf(
                    PERIODS, error=validation.Message("must be one of: 7, 30, 90", "INVALID_CHOICE")
                ),
                metadata={
                    "description": "The stored rates of the last 7, 30 or 90 days up to each client's today; required "
                    "without `from` and `to`.",
                    "enum": list(PERIODS),
                },
            ),
        ]
    ]
    below: NotRequired[
        Annotated[
            int, QueryInteger(minimum=0, maximum=100), Description("Only clients whose percentage is below this one.")
        ]
    ]
    sort: NotRequired[
        Annotated[
            RateOrder,
            Description(
                "The order: `percentage`, lowest first and null last, the default with `period`; or `name`, the only "
                "one with `from` and `to`."
            ),
        ]
    ]


_Range = TypedDict(
    "_Range",
    {
        "from": NotRequired[
            Annotated[str, validation.SearchedDate(), Description("The first date, with `to` and without `period`.")]
        ],
        "to": NotRequired[
            Annotated[
                str,
                validation.SearchedDate(),
                Description(f"The last date, included; at most {MAX_LIST_DAYS} days with the first one."),
            ]
        ],
    },
)


class ComplianceListQuery(_RateQuery, _Range):
    """Either `period`, on request with `sort`; or `from` and `to`; with `below` on request."""


class _EitherPeriodOrRange(validation.Input):
    @validates_schema(skip_on_field_errors=True)
    def validate_period(self, data: ComplianceListQuery, **_: Any) -> None:
        """Raise ValidationError unless there is either a period, or a range of at most 92 days without its filters."""
        if "period" in data:
            for name in {"from", "to"} & data.keys():
                raise validation.invalid("must not be combined with period", "NOT_ALLOWED", name)
            return
        if "from" not in data and "to" not in data:
            raise validation.invalid("is required, or from and to", "REQUIRED", "period")
        for name in ("from", "to"):
            if name not in data:
                raise validation.invalid("is required", "REQUIRED", name)
        if data.get("sort") == "percentage":
            raise validation.invalid("must be name with from and to", "NOT_ALLOWED", "sort")
        days = (date.fromisoformat(data["to"]) - date.fromisoformat(data["from"])).days + 1
        if days < 1:
            raise validation.invalid("must not be before from", "BEFORE_START", "to")
        if days > MAX_LIST_DAYS:
            raise validation.invalid(f"must be at most {MAX_LIST_DAYS} days with from", "RANGE_TOO_LONG", "to")


COMPLIANCE_LIST_QUERY = query_of(ComplianceListQuery, _EitherPeriodOrRange)


class ComplianceRates(TypedDict):
    """Completed workout days in percent, up to `complianceDate`; None without a workout day."""

    complianceRate7d: float | None
    complianceRate30d: float | None
    complianceRate90d: float | None
    complianceDate: str | None


class ClientFigures(ComplianceRates):
    """The figures stored with a client; `lastTrainedDate` is the date of the latest session with completed work."""

    lastTrainedDate: str | None


# --- Reading and computing it -----------------------------------------------------------------------------------------


DEFAULT_DAYS, MAX_DAYS = 30, 3_700
LONGEST_RATE_DAYS = 90
_MISSED_DAYS = 7
# Of clients without one below the percentage, in a row.
_MAX_READS = 100


routes = Routes("/coach/customers/{customerId}/compliance", tag="Compliance")
company_routes = Routes("/coach/compliance", tag="Compliance")


@routes.get("", access=coach(CUSTOMERS.VIEW), query=OPEN_RANGE(), operation_id="getCompliance")
async def read(ctx: Context, customer_id: ObjectId, query: OpenRange) -> Compliance:
    """Read what a client did of what was scheduled.

    Without `from` and `to`: the last 30 days up to the client's today; less than 3,700 days at once. A workout day has
    a block that is not rest and has an exercise, a circuit or a task; it is completed when all items of such blocks
    are. Days up to yesterday count, and today once it is completed; later days are listed and not counted.
    """
    start_date, end_date = query.get("from"), query.get("to")
    today = await customers.get_local_date(ctx, customer_id)
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


async def compute_figures(ctx: Context, customer_id: ObjectId, today: date, timezone: str) -> ClientFigures:
    """Return a client's compliance rates for the 7, 30 and 90 days up to `today`, and the last trained date."""
    stages = block_reports.last_session_stages(ctx, {customer_id: today})
    days_of, states = await gather_reads(
        ctx, get_days(ctx, {customer_id: today}), derived_figures.read_states(ctx, [customer_id], *stages)
    )
    last_trained = (
        block_reports.find_last_trained(states[0], timezone) if states else None
    )  # it may be erased meanwhile
    return {**compute_rates(days_of[customer_id], today), "lastTrainedDate": last_trained}


async def get_days(
    ctx: Context, today_of: Mapping[ObjectId, date], days_ahead: int = 0
) -> dict[ObjectId, list[DayCompliance]]:
    """Return, by client, the days on which anything is scheduled, in order.

    From 90 days before the client's today, which is in `today_of`, to at least `days_ahead` days after it.
    """
    if not today_of:
        return {}
    start = _first_of_days(min(today_of.values()), LONGEST_RATE_DAYS)
    end = date.fromordinal(min(date.max.toordinal(), max(today_of.values()).toordinal() + days_ahead))
    blocks_of, absences_of = await load_days(ctx, list(today_of), str(start), str(end))
    return {client: _describe_days(blocks, absences_of[client]) for client, blocks in blocks_of.items()}


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
    by_date = {client: group_by_date(blocks) for client, blocks in blocks_of.items()}
    return {
        client: [
            (day, status_of_day(by_date[client].get(day, ()), today, is_away=day in absences_of[client]))
            for day in _list_dates(_first_of_days(today, length), today)
        ]
        for client, today in today_of.items()
    }


async def load_days(
    ctx: Context, customer_ids: Sequence[ObjectId], first: str, last: str
) -> tuple[dict[ObjectId, list[ScheduledBlock]], dict[ObjectId, Absences]]:
    """Return, by client, the scheduled blocks from `first` to `last`, in order, and on which days they do not train."""
    listed, absences = await gather_reads(
        ctx,
        block_reports.find_scheduled_blocks(ctx, customer_ids, first, last),
        availability.get_absences(ctx, customer_ids, first, last),
    )
    blocks: dict[ObjectId, list[ScheduledBlock]] = {client: [] for client in customer_ids}
    for block in listed:
        blocks[block["customerId"]].append(block)
    return blocks, absences


def compute_rates(days: Sequence[DayCompliance], today: date) -> ComplianceRates:
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


@company_routes.get("", access=coach(CUSTOMERS.VIEW), query=COMPLIANCE_LIST_QUERY())
async def list_compliance(ctx: Context, query: ComplianceListQuery) -> CursorPage[ClientCompliance]:
    """List what each client did of what was scheduled.

    With `period`: the rates stored with the clients, which follow a change within ten seconds, lowest first. With
    `from` and `to`: computed for these dates, by name. Archived clients, and those that the caller may not see, are
    left out.
    """
    limit, after = query["limit"], query["after"]
    if "period" not in query:
        return await list_between(ctx, query["from"], query["to"], below=query.get("below"), limit=limit, after=after)
    sort = query.get("sort", "percentage")
    return await list_stored(ctx, query["period"], below=query.get("below"), sort=sort, limit=limit, after=after)


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
    docs: list[ClientCompliance] = [
        {
            "customerId": client["_id"],
            "name": client["name"],
            "totalWorkoutDays": None,
            "completedWorkoutDays": None,
            "workoutCompletionPercentage": client["rate"],
        }
        for client in part["docs"]
    ]
    return {**part, "docs": docs}


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


async def list_between(
    ctx: Context, first: str, last: str, *, below: int | None = None, limit: int, after: str | None = None
) -> CursorPage[ClientCompliance]:
    """Return part of the active clients in the coach's scope, by name, with what they did of what was scheduled.

    From the date `first` to `last`, both included; days up to each client's yesterday count, and today once it is
    completed. `below`: only clients with a percentage below it; a part may then have fewer clients than `limit`,
    although there are more. Raises InvalidFields if `after` is not a cursor of this list with the same filters.
    """
    docs: list[ClientCompliance] = []
    filters = {"from": first, "to": last, "below": below}
    for _ in range(_MAX_READS):
        part = await derived_figures.list_clients_by_name(
            ctx, "compliance", filters, limit=limit - len(docs), after=after
        )
        blocks_of, absences_of = await load_days(ctx, [client["_id"] for client in part["docs"]], first, last)
        for client in part["docs"]:
            days = _describe_days(blocks_of[client["_id"]], absences_of[client["_id"]])
            total, completed = count_workout_days(days, ctx.caller.today(client["timezone"]))
            rate = percentage(completed, total)
            if below is None or (rate is not None and rate < below):
                docs.append(
                    {
                        "customerId": client["_id"],
                        "name": customers.full_name(client),
                        "totalWorkoutDays": total,
                        "completedWorkoutDays": completed,
                        "workoutCompletionPercentage": rate,
                    }
                )
        after = part["nextCursor"]
        if not part["hasMore"] or len(docs) == limit:
            break
    return {**part, "docs": docs}


# --- Which days count, and which of them are completed ----------------------------------------------------------------


def group_by_date(blocks: Iterable[ScheduledBlock]) -> dict[str, list[ScheduledBlock]]:
    """Return the blocks of each date that has any; `blocks` are sorted by date."""
    return {day: list(blocks_of_day) for day, blocks_of_day in groupby(blocks, key=lambda block: block["date"])}


def _list_dates(start: date, end: date) -> list[str]:
    return [str(date.fromordinal(number)) for number in range(start.toordinal(), end.toordinal() + 1)]


def _describe_days(blocks: Iterable[ScheduledBlock], absences: Absences) -> list[DayCompliance]:
    return [describe_day(day, blocks_of_day, absences) for day, blocks_of_day in group_by_date(blocks).items()]


def describe_day(day: str, blocks: Sequence[ScheduledBlock], absences: Absences) -> DayCompliance:
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
        "workoutBlocks": [
            {
                "id": block["_id"],
                "name": block["name"],
                "isCompleted": 0 < block["totalItems"] == block["completedItems"],
            }
            for block in blocks
        ],
    }


def count_workout_days(days: Iterable[DayCompliance], today: date) -> tuple[int, int]:
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


# --- Compliance for assistants ----------------------------------------------------------------------------------------


tools = Tools()
_MAX_LISTED_DAYS = 366


class ComplianceQuery(mcp.ToolPart):
    """One client, or all with a filter; the dates: both or neither."""

    customerId = validation.Identifier(**mcp.optional("Without it all clients."))
    startDate = validation.Date(load_default=None, metadata={"description": "First day; with endDate."})
    endDate = validation.Date(
        load_default=None, metadata={"description": "At most a year later, for all clients 92 days."}
    )
    period = validation.Integer(
        minimum=min(PERIODS), maximum=max(PERIODS), **mcp.optional("All clients: the last 7, 30 or 90 days.")
    )
    below = validation.Integer(minimum=1, maximum=100, **mcp.optional("All clients: only those below this percentage."))

    @validates_schema
    def validate_combination(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raises ValidationError unless there are both dates in order or neither, and filters without dates."""
        start, end, one_client = data["startDate"], data["endDate"], data["customerId"] is not None
        if (start is None) != (end is None):
            missing, given = ("endDate", "startDate") if end is None else ("startDate", "endDate")
            raise ValidationError(f"is required together with {given}", missing)
        if start is not None:
            mcp.require_range(start, end, _MAX_LISTED_DAYS if one_client else MAX_LIST_DAYS)
        if data["period"] is not None and (one_client or start is not None):
            raise validation.invalid("is only for all clients, without dates", "NOT_COMBINED", "period")
        if data["below"] is not None and one_client:
            raise validation.invalid("is only for all clients", "NOT_COMBINED", "below")
        if data["period"] not in (None, *PERIODS):
            raise validation.invalid("must be 7, 30 or 90", "INVALID_CHOICE", "period")


@tools.tool("Read compliance", access=coach(CUSTOMERS.VIEW), takes=ComplianceQuery(), returns=mcp.Lines)
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
        dates: OpenRange = {} if start_date is None or end_date is None else {"from": start_date, "to": end_date}
        customer, compliance = await gather_reads(
            ctx, customers.get_visible_reference(ctx, customer_id), read(ctx, customer_id, dates)
        )
        total, completed = compliance["totalWorkoutDays"], compliance["completedWorkoutDays"]
        first = (
            f"{typed(customer['name'])}, {compliance['from']} to {compliance['to']}: "
            f"{mcp.format_figure(compliance['workoutCompletionPercentage'], '%')} "
            f"({completed} of {total} workout days)"
        )
        lines = []
        for day in compliance["dailyCompliance"]:
            if day["isWorkoutDay"]:
                done = "done" if day["isCompleted"] else f"{day['completedItems']} of {day['totalItems']} items"
                names = ", ".join(typed(block["name"]) for block in day["workoutBlocks"])
                lines.append(f"{day['date']} {done}: {names}")
        docs = [{"line": line} for line in lines]
        return Answer("\n".join([first, *lines]), {**mcp.describe_list(first, {}), "docs": docs})
    if start_date is not None and end_date is not None:
        title = f"Compliance from {start_date} to {end_date}" + (f", below {below}%" if below is not None else "")
        part = await list_between(ctx, start_date, end_date, below=below, limit=limit, after=after)
    else:
        days: RateDays = period or 30
        title = f"Compliance of the last {days} days" + (f", below {below}%" if below is not None else "")
        part = await list_stored(ctx, days, below=below, limit=limit, after=after)
        clients = await bulk.load_identities(ctx, [client["customerId"] for client in part["docs"]])
        today_of = {each: ctx.caller.today(client["timezone"]) for each, client in clients.items()}
        counts = await count_days(ctx, today_of, days)
        for client in part["docs"]:
            client["totalWorkoutDays"], client["completedWorkoutDays"] = counts.get(client["customerId"], (None, None))
    lines = []
    for client in part["docs"]:
        total, completed = client["totalWorkoutDays"], client["completedWorkoutDays"]
        numbers = f" ({completed} of {total} workout days)" if total else ""
        figure = mcp.format_figure(client["workoutCompletionPercentage"], "%")
        lines.append(f"{typed(client['name'])} [{client['customerId']}]: {figure}{numbers}")
    return mcp.list_answer(title, part, lines, ids=[client["customerId"] for client in part["docs"]])
