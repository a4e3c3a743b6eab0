"""Business: the four reports on one page, as sentences that say what changed since the period before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Annotated, Any, Literal, TypedDict
from urllib.parse import urlencode

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.fields import Default
from coaching_service.core.http.responses import Download
from coaching_service.core.ids import ObjectId
from coaching_service.lifecycle import reports
from coaching_service.people import team
from coaching_service.web.formatting import quantity
from coaching_service.web.pages import Pages

pages = Pages("/app/reports")
_PERIODS = 12  # complete ones; the current one follows
_NAMES: Mapping[str, tuple[str, str, str]] = {
    "week": ("last week", "the week before", "this week"),
    "month": ("last month", "the month before", "this month"),
}
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


class BusinessQuery(TypedDict):
    """The periods to show."""

    groupBy: Annotated[Literal["week", "month"], Default("week")]


class ReportFile(BusinessQuery):
    """The report to download."""

    report: Annotated[Literal["clients", "adherence", "responses", "load"], Default("clients")]


@pages.get("", access=coach(CUSTOMERS.VIEW), template="reports.html", request_class="bulk")
async def business_page(ctx: Context, query: BusinessQuery) -> dict[str, Any]:
    """What changed in the last complete week or month: clients, adherence, answers and load, with small charts."""
    group_by = query["groupBy"]
    read, coaches = await gather_reads(
        ctx,
        reports.read(ctx, _query(ctx, group_by), "clients", "adherence", "responses", "load"),
        team.list_coaches(ctx),
    )
    names = {each["_id"]: each["name"] for each in coaches}

    def name_of(coach_id: ObjectId | None) -> str:
        return "No trainer" if coach_id is None else names.get(coach_id, "A former coach")

    days = [date.fromisoformat(each["from"]) for each in read["clients"]]
    labels = [f"{day.day} {day:%b}" if group_by == "week" else f"{day:%b %y}" for day in days]
    of_coaches = ("clients", "planned", "endingPrograms")
    load = [
        {name: sum(each[name] for each in read["load"] if each["from"] == start) for name in of_coaches}
        for start in dict.fromkeys(each["from"] for each in read["load"])
    ]
    answers = [
        {**each, "hours": seconds and round(seconds / _HOUR, 1)}
        for each in read["answers"]
        for seconds in [each["medianSeconds"]]
    ]
    last, before, current = _NAMES[group_by]
    return {
        "last": last,
        "before": before,
        "current": current,
        "duration": _duration,
        "clients": _compare(labels, read["clients"], "active", "joined", "archived"),
        "adherence": _compare(labels, read["adherence"], "percentage", "completedDays", "workoutDays", "sessions"),
        "responses": _compare(labels, answers, "answered", "hours", charted=2),
        "response_coaches": [
            (name_of(each["coachId"]), each["answered"], _duration(each["medianSeconds"]))
            for each in read["responses"]
            if each["from"] == read["answers"][-2]["from"] and each["medianSeconds"] is not None
        ],
        "load": _compare(labels, load, *of_coaches, charted=2),
        "load_coaches": [
            (name_of(each["coachId"]), *(each[name] for name in of_coaches))
            for each in read["load"]
            if each["from"] == read["load"][-1]["from"] and (each["clients"] or each["planned"])
        ],
        "csv": {name: f"/app/reports/csv?{urlencode({'report': name, 'groupBy': group_by})}" for name in _REPORTS},
    }


_REPORTS = ("clients", "adherence", "responses", "load")


@pages.get("/csv", access=coach(CUSTOMERS.VIEW), template="", request_class="bulk")
async def report_file(ctx: Context, query: ReportFile) -> Download:
    """Download a report."""
    asked = _query(ctx, query["groupBy"])
    rows: Sequence[Mapping[str, Any]] = (await reports.read(ctx, asked, query["report"]))[query["report"]]
    return reports.to_csv(asked, query["report"], rows)


def _query(ctx: Context, group_by: Literal["week", "month"]) -> reports.ReportQuery:
    """Return what the page reads: twelve complete periods and the current one, to its end."""
    today = ctx.caller.today()
    if group_by == "week":
        monday = today - timedelta(days=today.weekday())
        first, last = monday - timedelta(weeks=_PERIODS), monday + timedelta(days=6)
    else:
        first, next_month = today.replace(year=today.year - 1, day=1), today.replace(day=28) + timedelta(days=4)
        last = next_month.replace(day=1) - timedelta(days=1)
    return {"from": str(first), "to": str(last), "groupBy": group_by, "format": "csv"}


def _compare(labels: Sequence[str], rows: Sequence[Mapping[str, Any]], *names: str, charted: int = 1) -> dict[str, Any]:
    """Return the last three periods of a report, a table of some of its numbers, and the points of one of them."""
    table = [(label, *(row[name] for name in names)) for label, row in zip(labels, rows, strict=True)]
    points = [(row[0], row[charted] or 0) for row in table]
    return {"earlier": rows[-3], "last": rows[-2], "current": rows[-1], "table": table, "points": points}


def _duration(seconds: float | None) -> str:
    """Return a time that someone waits, in its largest unit: `40 minutes`, `3 hours`, `2 days`."""
    number = seconds or 0
    if number < _HOUR:
        return quantity(max(1, round(number / _MINUTE)), "minute")
    if number < 2 * _DAY:
        return quantity(round(number / _HOUR), "hour")
    return quantity(round(number / _DAY), "day")
