"""On which dates a recurring check-in takes place."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from itertools import takewhile

from hypothesis import given
from hypothesis import strategies as st

from coaching_service.progress.check_ins import Recurrence, iterate_dates, plan_schedule

TODAY = date(2026, 3, 4)  # a Wednesday
DAYS = st.dates(date(2025, 12, 1), date(2026, 6, 30))


def recurrence(**fields: object) -> Recurrence:
    """A recurrence from TODAY on with these fields."""
    return {"weekday": None, "everyDays": None, "startDate": str(TODAY), "until": None, **fields}  # type: ignore[typeddict-item]  # fields by keyword


recurrences = st.builds(
    lambda rhythm, start, length: recurrence(
        **rhythm, startDate=str(start), until=None if length is None else str(start + timedelta(days=length))
    ),
    st.one_of(
        st.integers(1, 7).map(lambda day: {"weekday": day}), st.integers(1, 40).map(lambda days: {"everyDays": days})
    ),
    DAYS,
    st.none() | st.integers(0, 100),
)


def takes_place(plan: Recurrence, day: date) -> bool:
    """Whether a check-in takes place on a date, by the definition."""
    start = date.fromisoformat(plan["startDate"])
    if day < start or (plan["until"] is not None and str(day) > plan["until"]):
        return False
    if plan["weekday"] is not None:
        return day.isoweekday() == plan["weekday"]
    return (day - start).days % (plan["everyDays"] or 1) == 0


@given(recurrences, DAYS)
def test_dates_are_those_of_the_definition(plan: Recurrence, first: date) -> None:
    days = [first + timedelta(days=number) for number in range(200)]
    dates = list(takewhile(lambda day: day <= days[-1], iterate_dates(plan, first)))
    assert dates == [day for day in days if takes_place(plan, day)]


@given(recurrences, st.lists(st.integers(0, 20), max_size=12))
def test_scheduling_on_any_days_schedules_every_date_once(plan: Recurrence, pauses: list[int]) -> None:
    """As long as no pause is longer than the time that is scheduled ahead."""
    today, scheduled = TODAY, plan_schedule(plan, None, TODAY, "UTC")
    dates = list(scheduled.dates)
    for pause in pauses:
        today += timedelta(days=pause)
        scheduled = plan_schedule(plan, scheduled.scheduled_until, today, "UTC")
        dates += scheduled.dates
    window = [TODAY + timedelta(days=number) for number in range((today - TODAY).days + 28)]
    assert dates == [str(day) for day in window if takes_place(plan, day)]


@given(recurrences)
def test_is_due_on_the_day_on_which_the_next_date_comes_within_four_weeks(plan: Recurrence) -> None:
    first = plan_schedule(plan, None, TODAY, "UTC")
    if first.due_at is None:
        later = plan_schedule(plan, first.scheduled_until, TODAY + timedelta(days=365), "UTC")
        assert later.dates == []
        return
    due = first.due_at.date()
    assert due > TODAY
    assert plan_schedule(plan, first.scheduled_until, due - timedelta(days=1), "UTC").dates == []
    assert len(plan_schedule(plan, first.scheduled_until, due, "UTC").dates) == 1


def test_weekly_check_in_is_scheduled_four_times() -> None:
    plan = plan_schedule(recurrence(weekday=7), None, TODAY, "Europe/Madrid")
    assert plan.dates == ["2026-03-08", "2026-03-15", "2026-03-22", "2026-03-29"]
    assert plan.scheduled_until == "2026-03-31"
    assert plan.due_at == datetime(2026, 3, 8, 23), "the local midnight at which the 5 April is 27 days away"  # noqa: DTZ001 - stored times are UTC without a time zone
    assert plan_schedule(recurrence(weekday=3), None, TODAY, "UTC").dates == [
        "2026-03-04",
        "2026-03-11",
        "2026-03-18",
        "2026-03-25",
    ]


def test_dates_that_have_passed_are_not_scheduled_but_keep_the_rhythm() -> None:
    plan = plan_schedule(recurrence(everyDays=10, startDate="2026-02-27"), None, TODAY, "UTC")
    assert plan.dates == ["2026-03-09", "2026-03-19", "2026-03-29"]
    plan = plan_schedule(recurrence(everyDays=10, startDate="2026-02-27"), "2026-02-28", TODAY, "UTC")
    assert plan.dates == ["2026-03-09", "2026-03-19", "2026-03-29"]


def test_an_earlier_local_date_does_not_schedule_again() -> None:
    """As after a change of the client's time zone."""
    plan = plan_schedule(recurrence(everyDays=1), "2026-03-31", TODAY - timedelta(days=1), "UTC")
    assert (plan.dates, plan.scheduled_until) == ([], "2026-03-31")


def test_the_end_of_the_calendar_is_no_failure() -> None:
    last = recurrence(everyDays=7, startDate="2199-12-30")
    assert [str(day) for day in iterate_dates(last, TODAY)] == ["2199-12-30"]
    assert list(iterate_dates(recurrence(weekday=4, startDate="2199-12-31"), TODAY)) == []
    assert list(iterate_dates(recurrence(everyDays=1, startDate="9999-12-30"), TODAY)) == []
