"""Four reports on the business by week or month: clients, adherence, how fast coaches answer, and their load."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby, pairwise
from statistics import median
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict, TypeVar, cast

from marshmallow import validates_schema

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.changes import history
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.dates import FIRST_DATE, LAST_DATE, local_date, midnight, next_midnight
from coaching_service.core.fields import Default, Description, query_of
from coaching_service.core.http.responses import Download
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import write_rows
from coaching_service.core.validation import Date, Input, SearchedDate, invalid
from coaching_service.people import availability, team
from coaching_service.people.customers import bulk
from coaching_service.people.customers.models import Customer, parse_trainers
from coaching_service.progress import form_responses
from coaching_service.progress.compliance import percentage
from coaching_service.progress.conversation import service as conversation
from coaching_service.training.assignments import service as assignments
from coaching_service.training.workouts.reports import blocks as block_reports
from coaching_service.training.workouts.reports.blocks import PeriodTotals

# --- Reports as they are asked for and returned -----------------------------------------------------------------------


MAX_DAYS = 400
GroupBy = Literal["week", "month"]

# `from` is a keyword of Python, so these types have the functional form.
_Dates = TypedDict(
    "_Dates",
    {
        "from": Annotated[str, SearchedDate()],
        "to": Annotated[
            str, SearchedDate(), Description(f"The last date, included; at most {MAX_DAYS} days with `from`.")
        ],
    },
)


class ReportQuery(_Dates):
    """The days and the clients that a report is about."""

    groupBy: Annotated[GroupBy, Description("Weeks begin on Monday. The first and last period end with the range.")]
    assignedTo: NotRequired[
        Annotated[list[str], Description("Repeatable; clients of any of the trainers; `none`: without a trainer.")]
    ]
    groups: NotRequired[Annotated[list[str], Description("Repeatable; clients in any of the groups.")]]
    format: Annotated[Literal["json", "csv"], Default("json"), Description("Default: `json`.")]


class _Range(Input):
    @validates_schema(skip_on_field_errors=True)
    def validate_range(self, data: ReportQuery, **_: Any) -> None:
        """Raise ValidationError unless the range is in order, and of at most 400 days."""
        days = (date.fromisoformat(data["to"]) - date.fromisoformat(data["from"])).days + 1
        if days < 1:
            raise invalid("must not be before from", "BEFORE_START", "to")
        if days > MAX_DAYS:
            raise invalid(f"must be at most {MAX_DAYS} days with from", "RANGE_TOO_LONG", "to")


REPORT_QUERY = query_of(ReportQuery, _Range)
_Period = TypedDict(
    "_Period",
    {
        "from": Annotated[str, Date(), Description("The first day of the period that the range has.")],
        "to": Annotated[str, Date(), Description("Its last one.")],
    },
)


class ClientsReport(_Period):
    """How many clients there were in a period."""

    active: Annotated[int, Description("Clients with a session in the period.")]
    joined: Annotated[int, Description("Clients who were added in the period.")]
    archived: Annotated[int, Description("Clients who were archived in the period.")]


class AdherenceReport(_Period):
    """What clients did of what was planned for a period."""

    workoutDays: Annotated[int, Description("Up to yesterday, and today once it is completed, as in compliance.")]
    completedDays: Annotated[int, Description("Those of them that were completed.")]
    percentage: Annotated[float | None, Description("Completed workout days in percent; null without a workout day.")]
    sessions: Annotated[int, Description("All sessions, imported ones and those that clients have added too.")]


class ResponsesReport(_Period):
    """How fast a coach answered clients in a period."""

    coachId: Annotated[ObjectId | None, Description("Who answered; null if that coach is not known.")]
    answered: Annotated[int, Description("Messages that were answered, and forms that were reviewed, in the period.")]
    medianSeconds: Annotated[
        int | None,
        Description("From the first message without an answer, or the form, to that; null if nothing was answered."),
    ]


class LoadReport(_Period):
    """What a coach had to do in a period, of the clients who are assigned to them now and are not archived."""

    coachId: Annotated[ObjectId | None, Description("The trainer; null: of the clients without a trainer.")]
    clients: Annotated[int, Description("Clients who had been added by the end of the period.")]
    planned: Annotated[int, Description("Workouts planned for the period.")]
    endingPrograms: Annotated[int, Description("Programs whose last workout is in the period.")]


_R = TypeVar("_R", bound=Mapping[str, Any])
routes = Routes("/coach/reports", tag="Reports")
_AS_CSV = {"query": REPORT_QUERY(), "media_types": ("text/csv",), "request_class": "bulk"}


@routes.get("/clients", access=coach(CUSTOMERS.VIEW), returns=list[ClientsReport], **_AS_CSV)
async def get_clients_report(ctx: Context, query: ReportQuery) -> list[ClientsReport] | Download:
    """Report by week or month how many clients trained, joined and were archived.

    Of the clients in the coach's scope, archived ones too, on their local days.
    """
    return _result(query, "clients", (await read(ctx, query, "clients"))["clients"])


@routes.get("/adherence", access=coach(CUSTOMERS.VIEW), returns=list[AdherenceReport], **_AS_CSV)
async def get_adherence_report(ctx: Context, query: ReportQuery) -> list[AdherenceReport] | Download:
    """Report by week or month what clients did of what was planned.

    Days count as in compliance; of the clients in the coach's scope, archived ones too.
    """
    return _result(query, "adherence", (await read(ctx, query, "adherence"))["adherence"])


@routes.get("/responses", access=coach(CUSTOMERS.VIEW), returns=list[ResponsesReport], **_AS_CSV)
async def get_responses_report(ctx: Context, query: ReportQuery) -> list[ResponsesReport] | Download:
    """Report by week or month, and by coach, how fast clients were answered.

    On the client's local day of the answer; a message that has waited for more than 90 days before `from` counts from
    then. Of the clients in the coach's scope, archived ones too.
    """
    return _result(query, "responses", (await read(ctx, query, "responses"))["responses"])


@routes.get("/load", access=coach(CUSTOMERS.VIEW), returns=list[LoadReport], **_AS_CSV)
async def get_load_report(ctx: Context, query: ReportQuery) -> list[LoadReport] | Download:
    """Report by week or month, and by coach, the clients, their planned workouts and the programs that end.

    Of the clients in the coach's scope who are not archived.
    """
    return _result(query, "load", (await read(ctx, query, "load"))["load"])


def _result(query: ReportQuery, name: str, rows: list[_R]) -> list[_R] | Download:
    return rows if query["format"] == "json" else to_csv(query, name, rows)


def to_csv(query: ReportQuery, name: str, rows: Sequence[Mapping[str, Any]]) -> Download:
    """Return a report as CSV."""
    columns = list(rows[0]) if rows else []
    content = write_rows([columns, *(list(row.values()) for row in rows)])

    async def read_all(start: int, end: int) -> AsyncGenerator[bytes, None]:
        yield content[start:end]

    return Download("text/csv; charset=utf-8", f"{name}-{query['from']}-{query['to']}.csv", read_all, len(content))


# --- Reading ----------------------------------------------------------------------------------------------------------


class Reports(TypedDict):
    """The reports that are asked for; the others are empty. `answers`: `responses` without regard to who answered."""

    clients: list[ClientsReport]
    adherence: list[AdherenceReport]
    responses: list[ResponsesReport]
    answers: list[ResponsesReport]
    load: list[LoadReport]


class Wait(NamedTuple):
    """How long a client waited for a coach: from one time to another (UTC)."""

    customer_id: ObjectId
    coach_id: ObjectId | None
    since: datetime
    until: datetime


@dataclass(frozen=True)
class _Span:
    """The days of a report, divided into periods: the first and last day of each, by its key."""

    first: date
    last: date
    group_by: GroupBy
    periods: Mapping[str, tuple[date, date]]

    @classmethod
    def of(cls, query: ReportQuery) -> _Span:
        """Return the days that a query asks for."""
        first, last = date.fromisoformat(query["from"]), date.fromisoformat(query["to"])
        days = (date.fromordinal(number) for number in range(first.toordinal(), last.toordinal() + 1))
        grouped = [(key, [*of_period]) for key, of_period in groupby(days, lambda day: key_of(day, query["groupBy"]))]
        return cls(first, last, query["groupBy"], {key: (some[0], some[-1]) for key, some in grouped})

    def find(self, day: date) -> str | None:
        """Return the key of the period that has a day, or None."""
        return key_of(day, self.group_by) if self.first <= day <= self.last else None

    def times(self) -> tuple[datetime, datetime]:
        """Return from when (UTC) until when it is one of the days in any time zone."""
        first, last = max(self.first, FIRST_DATE + timedelta(2)), min(self.last, LAST_DATE - timedelta(2))
        return midnight(first - timedelta(1), "UTC"), next_midnight(last + timedelta(1), "UTC")

    def rows(self) -> Iterator[tuple[str, _Period]]:
        """Yield each period with the fields that each row has."""
        for key, (first, last) in self.periods.items():
            yield key, {"from": str(first), "to": str(last)}


def key_of(day: date, group_by: GroupBy) -> str:
    """Return what a period is named by: `2026-03`, or `2026-10` for a week that begins on Monday."""
    if group_by == "month":
        return str(day)[:7]
    year, week, _ = day.isocalendar()
    return f"{year:04}-{week:02}"


_CLIENTS, _ABSENT_CLIENTS = 200, 20  # of one query
_WAITED = timedelta(days=90)


async def read(ctx: Context, query: ReportQuery, *names: str) -> Reports:
    """Return reports on the clients in the coach's scope, each in order of time, and by coach where that applies."""
    span = _Span.of(query)
    found = await bulk.list_reported(ctx, query.get("groups"), parse_trainers(query.get("assignedTo")))
    clients = {each["_id"]: each for each in found}
    reports: Reports = {"clients": [], "adherence": [], "responses": [], "answers": [], "load": []}
    totals: dict[ObjectId | None, dict[str, Counter[str]]] = {}
    if {*names} - {"responses"}:
        chosen = [each for each in found if names != ("load",) or not _is_archived(each)]
        totals = await _sum_by_trainer(ctx, chosen, span)
    if {"clients", "adherence"} & {*names}:
        of_all: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for of_trainer in totals.values():
            for key, counts in of_trainer.items():
                of_all[key].update(counts)
        joined = Counter(span.find(_local(ctx, each["createdAt"], each)) for each in found)
        archived: defaultdict[str | None, set[ObjectId]] = defaultdict(set)
        for client_id, at in await history.list_archivals(ctx, *span.times()):
            if client_id in clients:
                archived[span.find(_local(ctx, at, clients[client_id]))].add(client_id)
        for key, period in span.rows():
            counts = of_all[key]
            reports["clients"].append(
                {**period, "active": counts["active"], "joined": joined[key], "archived": len(archived[key])}
            )
            reports["adherence"].append(
                {
                    **period,
                    "workoutDays": counts["workoutDays"],
                    "completedDays": counts["completedDays"],
                    "percentage": percentage(counts["completedDays"], counts["workoutDays"]),
                    "sessions": counts["sessions"],
                }
            )
    if "responses" in names:
        reports["responses"], reports["answers"] = await _report_responses(ctx, clients, span)
    if "load" in names:
        active = {key: each for key, each in clients.items() if not _is_archived(each)}
        if len(active) < len(clients) and names != ("load",):
            totals = await _sum_by_trainer(ctx, list(active.values()), span)
        reports["load"] = await _report_load(ctx, active, span, totals)
    return reports


def _is_archived(client: Customer) -> bool:
    return client["customerRoleData"]["isArchived"]


def _trainer(client: Customer) -> ObjectId | None:
    return client["customerRoleData"]["assignedTo"]


async def _sum_by_trainer(
    ctx: Context, clients: Sequence[Customer], span: _Span
) -> dict[ObjectId | None, dict[str, Counter[str]]]:
    sums: defaultdict[ObjectId | None, defaultdict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    alike: defaultdict[tuple[ObjectId | None, str], list[ObjectId]] = defaultdict(list)
    for client in clients:
        alike[_trainer(client), str(ctx.caller.today(client["timezone"]))].append(client["_id"])
    for (trainer, today), ids in alike.items():
        absences = await availability.get_absences(ctx, ids, str(span.first), str(span.last))
        present = [client for client in ids if not absences[client]]
        absent = [client for client in ids if absences[client]]
        for batch in (*_batches(present, _CLIENTS), *_batches(absent, _ABSENT_CLIENTS)):
            found: list[PeriodTotals] = await block_reports.sum_periods(
                ctx,
                batch,
                str(span.first),
                str(span.last),
                period=span.group_by,
                today=today,
                absences={client: absences[client] for client in batch if absences[client]},
            )
            for each in found:
                counts = {name: number for name, number in each.items() if name != "_id"}
                sums[trainer][each["_id"]].update(cast("dict[str, int]", counts))
    return {trainer: dict(of_trainer) for trainer, of_trainer in sums.items()}


def _batches(ids: Sequence[ObjectId], size: int) -> list[Sequence[ObjectId]]:
    return [ids[start : start + size] for start in range(0, len(ids), size)]


def _local(ctx: Context, at: datetime, client: Customer) -> date:
    return local_date(at, client["timezone"] or ctx.caller.company.timezone)


# --- How long clients wait --------------------------------------------------------------------------------------------


async def _wait_for_messages(ctx: Context, ids: Sequence[ObjectId], since: datetime, until: datetime) -> list[Wait]:
    waits = []
    for batch in _batches(ids, _CLIENTS):
        turns = await conversation.find_turns(ctx, batch, since - _WAITED, until)
        for asked, answer in pairwise(turns):
            is_answer = asked["isOfClient"] and not answer["isOfClient"]
            if is_answer and asked["customerId"] == answer["customerId"]:
                waits.append(Wait(asked["customerId"], answer["authorId"], asked["createdAt"], answer["createdAt"]))
    return waits


async def _report_responses(
    ctx: Context, clients: Mapping[ObjectId, Customer], span: _Span
) -> tuple[list[ResponsesReport], list[ResponsesReport]]:
    since, until = span.times()
    coaches, waits, reviewed = await gather_reads(
        ctx,
        team.list_coaches(ctx),
        _wait_for_messages(ctx, list(clients), since, until),
        form_responses.list_reviewed(ctx, since, until),
    )
    waits += [
        Wait(each["customerId"], each.get("reviewedBy"), each["createdAt"], cast("datetime", each.get("reviewedAt")))
        for each in reviewed
    ]
    seconds: defaultdict[tuple[str, ObjectId | None], list[float]] = defaultdict(list)
    for wait in (each for each in waits if each.customer_id in clients):
        if key := span.find(_local(ctx, wait.until, clients[wait.customer_id])):
            seconds[key, wait.coach_id].append((wait.until - wait.since).total_seconds())
    listed = _list_coaches(ctx, coaches, {coach_id for _, coach_id in seconds})
    rows = [_response(period, coach_id, seconds[key, coach_id]) for key, period in span.rows() for coach_id in listed]
    by_all = [
        _response(period, None, [each for coach_id in listed for each in seconds[key, coach_id]])
        for key, period in span.rows()
    ]
    return rows, by_all


def _response(period: _Period, coach_id: ObjectId | None, seconds: Sequence[float]) -> ResponsesReport:
    typical = round(median(seconds)) if seconds else None
    return {**period, "coachId": coach_id, "answered": len(seconds), "medianSeconds": typical}


async def _report_load(
    ctx: Context,
    clients: Mapping[ObjectId, Customer],
    span: _Span,
    totals: Mapping[ObjectId | None, Mapping[str, Counter[str]]],
) -> list[LoadReport]:
    coaches, last_days = await gather_reads(ctx, team.list_coaches(ctx), assignments.list_last_days(ctx, list(clients)))
    ending = Counter((_trainer(clients[client]), span.find(date.fromisoformat(day))) for client, day in last_days)
    joined: defaultdict[ObjectId | None, list[date]] = defaultdict(list)
    for client in clients.values():
        joined[_trainer(client)].append(_local(ctx, client["createdAt"], client))
    listed = _list_coaches(ctx, coaches, {*joined})
    return [
        {
            **period,
            "coachId": coach_id,
            "clients": sum(day <= span.periods[key][1] for day in joined[coach_id]),
            "planned": totals.get(coach_id, {}).get(key, Counter[str]())["planned"],
            "endingPrograms": ending[coach_id, key],
        }
        for key, period in span.rows()
        for coach_id in listed
    ]


def _list_coaches(ctx: Context, coaches: Sequence[team.Coach], found: set[ObjectId | None]) -> list[ObjectId | None]:
    """Return the coaches that rows are about: those of the company in order, then others with anything to report.

    An employee who sees assigned clients only has a row, and others only if they have anything to report of these.
    """
    known = [each["_id"] for each in coaches]
    sees_all = ctx.caller.customers_scope == "all"
    listed = [each for each in known if sees_all or each == ctx.caller.id or each in found]
    return [*listed, *sorted((each for each in found if each not in known), key=str)]
