"""A client's own calendar and history, without what is on days that are hidden from the client."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Collection, Iterable, Iterator
from datetime import date, timedelta
from typing import Annotated, TypedDict

from marshmallow import fields

from coaching_service.core.auth import customer
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.fields import Description
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Date
from coaching_service.people import availability
from coaching_service.people.availability import Absences, Availability
from coaching_service.people.customers import service as customers
from coaching_service.progress import form_responses
from coaching_service.progress.conversation import service as conversation
from coaching_service.training import visibility
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import WORKOUT_BLOCK, Block, WorkoutBlockQuery
from coaching_service.training.workouts.blocks.service import ClientCalendar
from coaching_service.training.workouts.reports import blocks as block_reports
from coaching_service.training.workouts.reports.blocks import CalendarDay, DoneWorkout
from coaching_service.training.workouts.reports.exercises import add_last_times

# --- The workouts that a client has done ------------------------------------------------------------------------------


class DoneMonth(TypedDict):
    """The workouts that a client has done in a month (`YYYY-MM`), newest first.

    `earlier` and `later` are the nearest months with such a workout, None without one.
    """

    month: str
    workouts: list[DoneWorkout]
    earlier: str | None
    later: str | None


async def list_own_days(
    ctx: Context, first: date, last: date, *, today: date, hidden: Collection[str] | None = None
) -> list[CalendarDay]:
    """Return every day of the caller, a client, from `first` to `last`, with its blocks and what became of them.

    `today` is the client's. `hidden`: the days hidden from the client, if they are known already. A hidden day has no
    blocks.
    """
    if hidden is None:
        hidden = await visibility.find_hidden_days(ctx, ctx.caller.id, str(first), str(last))
    return await block_reports.list_days(ctx, ctx.caller.id, first, last, today=today, without=hidden)


async def list_latest_done(ctx: Context, count: int) -> list[Block]:
    """Return the latest workouts that the caller, a client, has done something of, at most `count`."""
    hidden = await visibility.find_days_hidden_from_caller(ctx, ctx.caller.id)
    return await block_reports.find_latest_done(ctx, ctx.caller.id, count, without=hidden)


async def get_done_month(ctx: Context, month: str | None) -> DoneMonth:
    """Return the workouts that the caller, a client, has done in a month (`YYYY-MM`); None: the latest that has any."""
    hidden = await visibility.find_days_hidden_from_caller(ctx, ctx.caller.id)
    if month is None:
        end = str(date.max)
        latest, _ = await block_reports.find_done_dates_around(ctx, ctx.caller.id, end, end, without=hidden)
        month = (latest or str(ctx.caller.today()))[:7]
    year, number = int(month[:4]), int(month[5:])
    first, last = f"{month}-01", f"{month}-{monthrange(year, number)[1]:02}"
    workouts, (before, after) = await gather_reads(
        ctx,
        block_reports.find_done_workouts(ctx, ctx.caller.id, first, last, without=hidden),
        block_reports.find_done_dates_around(ctx, ctx.caller.id, first, last, without=hidden),
    )
    return {
        "month": month,
        "workouts": workouts,
        "earlier": before[:7] if before else None,
        "later": after[:7] if after else None,
    }


# --- A client's day as it is returned ---------------------------------------------------------------------------------


class NextWorkout(TypedDict):
    """The first workout after today."""

    _id: ObjectId
    name: str
    date: Annotated[str, Date()]


class OwnPendingForm(form_responses.PendingForm):
    """A scheduled form that the client has not answered."""

    isOverdue: Annotated[bool, Description("The date is before today, and not in an absence.")]


class Today(TypedDict):
    """A client's day."""

    date: Annotated[str, Date(), Description("Today, in the client's time zone.")]
    blocks: Annotated[
        list[Block], fields.List(fields.Nested(WORKOUT_BLOCK)), Description("The workout blocks of today.")
    ]
    nextWorkout: Annotated[NextWorkout | None, Description("The first workout after today; null without one.")]
    pendingForms: Annotated[
        list[OwnPendingForm],
        Description("The forms of today and the 30 days before that are not answered, oldest first."),
    ]
    unreadMessages: Annotated[int, Description("How many messages of coaches the client has not read.")]
    streakWeeks: Annotated[
        int,
        Description(
            "The number of successive weeks, from Monday, up to this or the last one, that each have a completed "
            "workout. Weeks with a day of absence and without a completed workout are passed over."
        ),
    ]
    availability: Annotated[
        Availability | None,
        Description("The period in which the client cannot train as planned, or the next one; null without one."),
    ]


class Overview(TypedDict):
    """A client's day, the days of its week from Monday on, and the workout blocks of tomorrow."""

    today: Today
    week: list[CalendarDay]
    tomorrow: list[Block]


_FORM_DAYS = 30
_STREAK_WEEKS = (26, 104, 520)  # how many weeks are read, until there is one without training; no streak is longer
_WEEK, _DAY = timedelta(days=7), timedelta(days=1)
_LAST_DAY = date.max - _DAY


own_routes = Routes("/customer/today", tag="The client's own")


@own_routes.get("", access=customer(), operation_id="getOwnToday")
async def get_today(ctx: Context, query: WorkoutBlockQuery) -> Today:
    """Read my day: the workouts of today, what is due, and what comes next.

    Days that are hidden from the client are left out of all of it.
    """
    today, hidden = await _load_date(ctx)
    day = await _read_day(ctx, today, hidden)
    if query.get("include") == "lastTime":
        day["blocks"] = await add_last_times(ctx, ctx.caller.id, day["blocks"], without=hidden)
    return day


async def get_overview(ctx: Context) -> Overview:
    """Return the day of the caller, a client, as `get_today`, with the days of its week, and the workouts of tomorrow.

    Raises NotFound likewise.
    """
    today, hidden = await _load_date(ctx)
    monday = _monday_of(today)
    sunday = date.fromordinal(min(monday.toordinal() + 6, date.max.toordinal()))
    day, week, tomorrow = await gather_reads(
        ctx,
        _read_day(ctx, today, hidden),
        list_own_days(ctx, monday, sunday, today=today, hidden=hidden),
        _list_blocks(ctx, str(min(today, _LAST_DAY) + _DAY), hidden),
    )
    return {"today": day, "week": week, "tomorrow": tomorrow}


async def _load_date(ctx: Context) -> tuple[date, frozenset[str]]:
    """Return the date of today for the caller, a client, and the days hidden from the client."""
    customer, hidden = await gather_reads(
        ctx,
        customers.get_visible(ctx, ctx.caller.id, ("timezone",)),
        visibility.find_days_hidden_from_caller(ctx, ctx.caller.id),
    )
    return ctx.caller.today(customer["timezone"]), hidden


async def _read_day(ctx: Context, today: date, hidden: Collection[str]) -> Today:
    client_id = ctx.caller.id
    first = str(today - timedelta(days=_FORM_DAYS))
    blocks, next_workout, pending, unread, streak, period, absences_of = await gather_reads(
        ctx,
        _list_blocks(ctx, str(today), hidden),
        block_reports.find_next_workout(ctx, client_id, str(today), without=hidden),
        block_reports.find_own_pending_forms(ctx, client_id, first, str(today), without=hidden),
        conversation.count_own_unread(ctx),
        _count_streak_weeks(ctx, today, hidden),
        availability.find_present_or_next(ctx, client_id, today),
        availability.get_absences(ctx, [client_id], first, str(today)),
    )
    return {
        "date": str(today),
        "blocks": blocks,
        "nextWorkout": next_workout,
        "pendingForms": [
            {
                "formId": each["form"]["formId"],
                "formName": each["form"]["name"],
                "date": each["date"],
                "wblockId": each["wblockId"],
                "witemId": each["_id"],
                "isOverdue": each["date"] < str(today) and each["date"] not in absences_of[client_id],
            }
            for each in pending
        ],
        "unreadMessages": unread,
        "streakWeeks": streak,
        "availability": period,
    }


async def _list_blocks(ctx: Context, day: str, hidden: Collection[str]) -> list[Block]:
    return [] if day in hidden else await workouts.list_blocks(ctx, ClientCalendar(ctx.caller.id), day, day)


async def _count_streak_weeks(ctx: Context, today: date, hidden: Collection[str]) -> int:
    """Return the number of successive weeks with a completed workout, up to this or the last one.

    Weeks with an absence and without a completed workout are passed over; what is done in an absence is not counted.
    It goes back ten years at most, however long an absence is stored to be.
    """
    this_week = last_read = _monday_of(today)
    last, completed, absent = today, set[date](), set[date]()
    for length in _STREAK_WEEKS:
        first = this_week - length * _WEEK
        dates, absences_of = await gather_reads(
            ctx,
            block_reports.find_completed_dates(ctx, ctx.caller.id, str(first), str(last), without=hidden),
            availability.get_absences(ctx, [ctx.caller.id], str(first), str(last)),
        )
        absences: Absences = absences_of[ctx.caller.id]
        completed |= {_monday_of(date.fromisoformat(day)) for day in dates if day not in absences}
        absent |= {week for week in _weeks_between(first, last) if absences.has_any(week, week + timedelta(days=6))}
        if not set(_weeks_between(first, last_read - _WEEK)) <= completed | absent:
            break
        last, last_read = first - _DAY, first
    return count_successive_weeks(completed, this_week, absent)


def count_successive_weeks(completed: Iterable[date], this_week: date, absent: Collection[date] = ()) -> int:
    """Return how many successive weeks, by their Mondays, are `completed`, up to `this_week` or the one before.

    Those that are only `absent` are passed over.
    """
    weeks = set(completed)
    week = this_week if this_week in weeks else this_week - _WEEK
    count = 0
    while week in weeks or week in absent:
        count += week in weeks
        week -= _WEEK
    return count


def _weeks_between(first: date, last: date) -> Iterator[date]:
    """Yield the Mondays from the Monday `first` to `last`."""
    while first <= last:
        yield first
        first += _WEEK


def _monday_of(day: date) -> date:
    return day - timedelta(days=day.weekday())
