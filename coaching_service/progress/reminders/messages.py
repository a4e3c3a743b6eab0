"""What is sent to clients as reminders, if it is still to be done when it is due.

No text that a coach has written is part of it, and names of workouts only on devices where the client wants them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from coaching_service.core.database.context import Context
from coaching_service.core.events import EventValue
from coaching_service.core.jobs.mail_body import subject_with
from coaching_service.people.availability import service as availability
from coaching_service.people.customers import bulk
from coaching_service.people.customers import service as customers
from coaching_service.people.notifications.models import Message, Notification
from coaching_service.progress.reminders.planning import is_open_workout
from coaching_service.training.visibility import service as visibility
from coaching_service.training.workouts.items.content import time_of_day
from coaching_service.training.workouts.reports.blocks import find_agenda
from coaching_service.training.workouts.reports.models import AgendaBlock


async def write_reminder(ctx: Context, notification: Notification) -> Message | None:
    """Return what to send of a reminder in a workout; None if it is completed, moved, deleted or not to be seen."""
    subject = notification["subject"]
    timezone = await bulk.get_timezone(ctx, notification["recipient"]["_id"])
    for block in await _read_day(ctx, notification):
        for reminder in block["reminders"]:
            time = time_of_day(reminder["scheduledTime"], timezone)
            is_same = (reminder["_id"], time) == (subject["witemId"], subject["time"])
            if is_same and not reminder["isCompleted"]:
                company = ctx.caller.company.name
                return Message(
                    subject=subject_with(company, "Reminder from {}", "A reminder from your coach"),
                    paragraphs=[f"There is a reminder for {subject['time']} in your plan."],
                    button="Open it",
                    path=f"/train/workouts/{block['_id']}",
                    reason=_reason(ctx),
                    title="Reminder",
                    text=f"A reminder for {subject['time']}",
                    details=f"{subject['time']}: {block['name']}",
                    event=_event(notification, block) | {"witemId": reminder["_id"]},
                )
    return None


async def write_workout(ctx: Context, notification: Notification) -> Message | None:
    """Return what to send of the workouts of a day; None if they are begun, deleted or not to be seen."""
    client = notification["recipient"]["_id"]
    if (await customers.list_notifications(ctx, [client]))[client]["workoutTime"] is None:
        return None
    open_workouts = [block for block in await _read_day(ctx, notification) if is_open_workout(block)]
    if not open_workouts:
        return None
    return Message(
        subject="Your workout of today",
        paragraphs=["A workout is in your plan for today."],
        button="Open it",
        path=_path(open_workouts),
        reason=_reason(ctx),
        title="Your workout of today",
        text="Open it to see what is planned",
        details=_names(open_workouts),
        event=_event(notification, open_workouts[0]),
    )


async def write_check_ins(ctx: Context, notification: Notification) -> Message | None:
    """Return what to send of the check-ins of a day; None if they are done, deleted or not to be seen."""
    open_check_ins = [block for block in await _read_day(ctx, notification) if block["isOpenCheckIn"]]
    if not open_check_ins:
        return None
    company = ctx.caller.company.name
    return Message(
        subject=subject_with(company, "Your check-in with {}", "Your check-in of today"),
        paragraphs=["A check-in is due today."],
        button="Answer it",
        path=_path(open_check_ins),
        reason=_reason(ctx),
        title="Your check-in of today",
        text="It is due today",
        details=_names(open_check_ins),
        event=_event(notification, open_check_ins[0]),
    )


async def _read_day(ctx: Context, notification: Notification) -> list[AgendaBlock]:
    """Return the blocks of the client on the day of a notification; none if it is hidden, or the client is away."""
    client, day = notification["recipient"]["_id"], notification["subject"]["date"]
    if not await availability.is_available(ctx, client, date.fromisoformat(day)):
        return []
    if await visibility.find_hidden_days(ctx, client, day, day):
        return []
    return await find_agenda(ctx, [client], day, day)


def _reason(ctx: Context) -> str:
    return f"You receive this mail because you train with {ctx.caller.company.name}."


def _path(blocks: Sequence[AgendaBlock]) -> str:
    return f"/train/workouts/{blocks[0]['_id']}" if len(blocks) == 1 else "/train"


def _names(blocks: Sequence[AgendaBlock]) -> str:
    return ", ".join(block["name"] for block in blocks)


def _event(notification: Notification, block: AgendaBlock) -> dict[str, EventValue]:
    return {"date": notification["subject"]["date"], "wblockId": block["_id"]}
