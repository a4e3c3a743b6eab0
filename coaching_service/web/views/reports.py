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
from coaching_service.web import charts
from coaching_service.web.formatting import format_number, quantity
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
    last, before, current = _NAMES[group_by]
    days = [date.fromisoformat(each["from"]) for each in read["clients"]]
    labels = [f"{day.day} {day:%b}" if group_by == "week" else f"{day:%b %y}" for day in days]
    return {
        "group_by": group_by,
        "last": last,
        "current": current,
        "labels": labels,
        "clients": _describe_clients(read["clients"], labels, last, before),
        "adherence": _describe_adherence(read["adherence"], labels, last, before),
        "responses": _describe_responses(read, labels, names, last, before),
        "load": _describe_load(read["load"], labels, names, current, last),
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


# --- The words of each report: the last complete period, and what is different from the one before --------------------


def _describe_clients(
    rows: Sequence[reports.ClientsReport], labels: Sequence[str], last: str, before: str
) -> dict[str, Any]:
    now, earlier = rows[-2], rows[-3]
    were = "were" if now["archived"] > 1 else "was"
    changes = [f"{_count(now['joined'])} joined", f"{_count(now['archived']).lower()} {were} archived"]
    return {
        "headline": f"{quantity(now['active'], 'client')} trained {last}",
        "change": f"{_difference(now['active'], earlier['active'])} {before}.",
        "more": f"{' and '.join(changes)}.",
        "chart": charts.bars(_points(labels, rows, "active"), "clients", "Clients who trained"),
        "table": [
            (label, row["active"], row["joined"], row["archived"]) for label, row in zip(labels, rows, strict=True)
        ],
    }


def _describe_adherence(
    rows: Sequence[reports.AdherenceReport], labels: Sequence[str], last: str, before: str
) -> dict[str, Any]:
    now, earlier = rows[-2], rows[-3]
    share, previous = now["percentage"], earlier["percentage"]
    headline = f"Nothing was planned {last}"
    change = f"{before[0].upper()}{before[1:]} it was {format_number(previous, '%')}." if previous is not None else ""
    if share is not None:
        headline = f"{format_number(share, '%')} of the workout days were completed {last}"
        if previous is not None:
            word, points = "more" if share > previous else "less", format_number(abs(share - previous))
            differs = f"{points} points {word} than" if round(share - previous, 1) else "The same as"
            change = f"{differs} {before}."
    return {
        "headline": headline,
        "change": change,
        "more": f"{now['completedDays']} of {quantity(now['workoutDays'], 'workout day')}, "
        f"{quantity(now['sessions'], 'session')}.",
        "chart": charts.bars(_points(labels, rows, "percentage"), "%", "Workout days completed"),
        "table": [
            (label, row["percentage"], row["completedDays"], row["workoutDays"], row["sessions"])
            for label, row in zip(labels, rows, strict=True)
        ],
    }


def _describe_responses(
    read: reports.Reports, labels: Sequence[str], names: Mapping[ObjectId, str], last: str, before: str
) -> dict[str, Any]:
    rows, of_last = read["answers"], [each for each in read["responses"] if each["from"] == read["answers"][-2]["from"]]
    now, earlier = rows[-2], rows[-3]
    seconds, previous = now["medianSeconds"], earlier["medianSeconds"]
    hours = [(label, round((row["medianSeconds"] or 0) / _HOUR, 1)) for label, row in zip(labels, rows, strict=True)]
    headline, change = f"No client waited for an answer {last}", ""
    if seconds is not None:
        headline = f"Clients got an answer within {_duration(seconds)} {last}"
        if previous is not None:
            word, by = "faster" if seconds < previous else "slower", _duration(abs(seconds - previous))
            differs = "The same as" if _duration(seconds) == _duration(previous) else f"{by} {word} than"
            change = f"{differs} {before}."
    elif previous is not None:
        change = f"{before[0].upper()}{before[1:]} it took {_duration(previous)}."
    return {
        "headline": headline,
        "change": change,
        "more": f"Half of {quantity(now['answered'], 'message')} and forms were answered sooner."
        if now["answered"] > 1
        else "",
        "coaches": [
            (_name(each["coachId"], names), each["answered"], _duration(each["medianSeconds"]))
            for each in of_last
            if each["medianSeconds"] is not None
        ],
        "chart": charts.bars(hours, "hours", "Time until half of the answers") if any(dict(hours).values()) else None,
        "table": [
            (label, row["answered"], seconds_of and round(seconds_of / _HOUR, 1))
            for label, row in zip(labels, rows, strict=True)
            for seconds_of in [row["medianSeconds"]]
        ],
    }


def _describe_load(
    rows: Sequence[reports.LoadReport], labels: Sequence[str], names: Mapping[ObjectId, str], current: str, last: str
) -> dict[str, Any]:
    sums = [
        {
            name: sum(each[name] for each in rows if each["from"] == start)
            for name in ("clients", "planned", "endingPrograms")
        }
        for start in dict.fromkeys(each["from"] for each in rows)
    ]
    now, earlier = sums[-1], sums[-2]
    of_now = [each for each in rows if each["from"] == rows[-1]["from"]]
    ending = now["endingPrograms"]
    return {
        "headline": f"{quantity(now['planned'], 'workout')} {'is' if now['planned'] == 1 else 'are'} planned {current}",
        "change": f"{_difference(now['planned'], earlier['planned'])} {last}.",
        "more": f"For {quantity(now['clients'], 'client')}; {quantity(ending, 'program') if ending else 'no program'} "
        f"{'ends' if ending < 2 else 'end'}.",
        "coaches": [
            (_name(each["coachId"], names), each["clients"], each["planned"], each["endingPrograms"])
            for each in of_now
            if each["clients"] or each["planned"]
        ],
        "chart": charts.bars(
            [(label, each["planned"]) for label, each in zip(labels, sums, strict=True)], "workouts", "Planned workouts"
        ),
        "table": [
            (label, each["clients"], each["planned"], each["endingPrograms"])
            for label, each in zip(labels, sums, strict=True)
        ],
    }


def _points(labels: Sequence[str], rows: Sequence[Mapping[str, Any]], name: str) -> list[tuple[str, float]]:
    return [(label, row[name] or 0) for label, row in zip(labels, rows, strict=True)]


def _name(coach_id: ObjectId | None, names: Mapping[ObjectId, str]) -> str:
    return "No trainer" if coach_id is None else names.get(coach_id, "A former coach")


def _count(number: int) -> str:
    return str(number) if number else "Nobody"


def _difference(now: int, before: int) -> str:
    """Return how a number differs from an earlier one, to be followed by what that was."""
    if now == before:
        return "As many as"
    return f"{abs(now - before)} {'more' if now > before else 'fewer'} than"


def _duration(seconds: float | None) -> str:
    """Return a time that someone waits, in its largest unit: `40 minutes`, `3 hours`, `2 days`."""
    number = seconds or 0
    if number < _HOUR:
        return quantity(max(1, round(number / _MINUTE)), "minute")
    if number < 2 * _DAY:
        return quantity(round(number / _HOUR), "hour")
    return quantity(round(number / _DAY), "day")
