"""What is due to remind clients of, computed from their calendars.

It is computed with the figures of a client: within seconds of a change, and once a local day, for this day and the
next, so that nothing depends on the moment of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import NamedTuple

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.dates import at_local_time, next_midnight
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import service as customers
from coaching_service.people.notification_settings.models import Kind
from coaching_service.people.notifications import service as notifications
from coaching_service.people.notifications.models import DueNotification, Subject
from coaching_service.training.workouts.items.content import time_of_day
from coaching_service.training.workouts.reports.blocks import find_agenda
from coaching_service.training.workouts.reports.models import AgendaBlock

CHECK_INS_AT = "09:00"
_DAY = timedelta(days=1)
# What is scheduled for a time that was over long before is not due; a check-in is as long as it is sent.
_GRACE = timedelta(minutes=5)
_GRACE_OF_CHECK_INS = timedelta(hours=2)


class ClientDay(NamedTuple):
    """The date of today where a client is, and the time zone."""

    today: date
    timezone: str


async def plan(ctx: Context, clients: Mapping[ObjectId, ClientDay]) -> None:
    """Make due what clients of the company are to be reminded of today and tomorrow. Repeating it changes nothing."""
    if not clients:
        return
    today = [client.today for client in clients.values()]
    blocks = await find_agenda(ctx, clients, str(min(today)), str(max(today) + _DAY))
    settings = await customers.list_notifications(ctx, sorted({block["customerId"] for block in blocks}))
    due = [
        each
        for block in blocks
        if _is_near(block, client := clients[block["customerId"]]) and block["customerId"] in settings
        for each in _list_due(block, client.timezone, settings[block["customerId"]]["workoutTime"])
    ]
    at = now()
    await notifications.make_due(ctx, [each for each in due if not _is_over(each, at)])
    # What is pending may be due at another time zone's time, or at one that was chosen before.
    await notifications.correct(ctx, [each for each in due if _is_over(each, at)])


def _is_over(due: DueNotification, at: datetime) -> bool:
    return due.due_at < at - (_GRACE_OF_CHECK_INS if due.kind == "checkIns" else _GRACE)


def _is_near(block: AgendaBlock, client: ClientDay) -> bool:
    return str(client.today) <= block["date"] <= str(client.today + _DAY)


def _list_due(block: AgendaBlock, timezone: str, workout_time: str | None) -> Iterator[DueNotification]:
    """Yield what is due of a block: once for all workouts of a day, and for all check-ins of the same moment."""
    day, client = block["date"], block["customerId"]
    for reminder in block["reminders"]:
        if not reminder["isCompleted"]:
            clock = time_of_day(reminder["scheduledTime"], timezone)
            subject: Subject = {"date": day, "time": clock, "wblockId": block["_id"], "witemId": reminder["_id"]}
            yield _notification(block, timezone, "reminders", f"{reminder['_id']}:{day}T{clock}", clock, subject)
    if workout_time is not None and is_open_workout(block):
        yield _notification(block, timezone, "workouts", f"{client}:{day}", workout_time, {"date": day})
    if block["isOpenCheckIn"]:
        morning = at_local_time(date.fromisoformat(day), CHECK_INS_AT, timezone)
        due_at = max(morning, block["createdAt"])
        # The morning is the same in every time zone.
        key = f"{client}:{day}:{CHECK_INS_AT if due_at == morning else f'{due_at:%H:%M:%S}'}"
        yield _notification(block, timezone, "checkIns", key, due_at, {"date": day, "wblockId": block["_id"]})


def is_open_workout(block: AgendaBlock) -> bool:
    """Return whether a block is a workout and nothing of it has been done."""
    return block["isWorkout"] and not block["hasWork"] and block["completedItems"] == 0


def _notification(
    block: AgendaBlock, timezone: str, kind: Kind, key: str, due_at: str | datetime, subject: Subject
) -> DueNotification:
    """Return a notification that is due at a local time of the block's day, or at a moment (UTC)."""
    day = date.fromisoformat(block["date"])
    return DueNotification(
        key=f"{kind}:{key}",
        kind=kind,
        recipient={"type": "client", "_id": block["customerId"]},
        due_at=at_local_time(day, due_at, timezone) if isinstance(due_at, str) else due_at,
        customer_id=block["customerId"],
        subject=subject,
        valid_until=next_midnight(day, timezone),
    )
