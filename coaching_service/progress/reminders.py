"""What is due to remind clients of, computed from their calendars.

It is computed with the figures of a client: within seconds of a change, and once a local day, for this day and the
next, so that nothing depends on the moment of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Literal, NamedTuple

from coaching_service.core.changes import history
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.dates import at_local_time, next_midnight
from coaching_service.core.events import EventValue
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.mail import subject_with
from coaching_service.people import availability, notifications
from coaching_service.people.customers import bulk
from coaching_service.people.customers import service as customers
from coaching_service.people.notification_settings import Kind
from coaching_service.people.notifications import DueNotification, Message, Notification, Subject
from coaching_service.training import visibility
from coaching_service.training.workouts.items.service import time_of_day
from coaching_service.training.workouts.reports.blocks import (
    AgendaBlock,
    UnansweredForm,
    find_agenda,
    find_unanswered_forms,
)

CHECK_INS_AT = "09:00"
_DAY = timedelta(days=1)
_REMEMBERED = timedelta(days=365)  # what assistants have named
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
    due: list[DueNotification] = []
    for block in blocks:
        client = clients[block["customerId"]]
        if str(client.today) <= block["date"] <= str(client.today + _DAY) and block["customerId"] in settings:
            due += _list_due(block, client.timezone, settings[block["customerId"]]["workoutTime"])
    at = now()
    await notifications.make_due(ctx, [each for each in due if not _is_over(each, at)])
    # What is pending may be due at another time zone's time, or at one that was chosen before.
    await notifications.correct(ctx, [each for each in due if _is_over(each, at)])


def _is_over(due: DueNotification, at: datetime) -> bool:
    return due.due_at < at - (_GRACE_OF_CHECK_INS if due.kind == "checkIns" else _GRACE)


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


# --- What is sent to clients as reminders, if it is still to be done when it is due -----------------------------------
# No text that a coach has written is part of it, and names of workouts only on devices where the client wants them.


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
        details=await _find_names(ctx, client, open_workouts),
        event=_event(notification, open_workouts[0]),
    )


async def write_check_ins(ctx: Context, notification: Notification) -> Message | None:
    """Return what to send of the check-ins of a day, or of what a coach reminds of; None if there is nothing to do."""
    client, company = notification["recipient"]["_id"], ctx.caller.company.name
    if "formId" in notification["subject"]:
        form_id = notification["subject"]["formId"]
        forms = (await _find_overdue(ctx, await _load_days(ctx, [client]), form_id)).get(client)
        if not forms:
            return None
        are_several = len(forms) > 1
        return Message(
            subject=subject_with(company, "Your check-in with {}", "Your check-in is not answered yet"),
            paragraphs=[f"{f'{len(forms)} check-ins are' if are_several else 'A check-in is'} not answered yet."],
            button="Answer them" if are_several else "Answer it",
            path="/train" if are_several else f"/train/workouts/{forms[0]['_id']}",
            reason=_reason(ctx),
            title="Your check-in is not answered yet",
            text="Your coach reminds you of it",
            details=", ".join(dict.fromkeys(form["formName"] for form in forms)),
            event={"date": forms[0]["date"], "wblockId": forms[0]["_id"]},
        )
    open_check_ins = [block for block in await _read_day(ctx, notification) if block["isOpenCheckIn"]]
    if not open_check_ins:
        return None
    return Message(
        subject=subject_with(company, "Your check-in with {}", "Your check-in of today"),
        paragraphs=["A check-in is due today."],
        button="Answer it",
        path=_path(open_check_ins),
        reason=_reason(ctx),
        title="Your check-in of today",
        text="It is due today",
        details=await _find_names(ctx, client, open_check_ins),
        event=_event(notification, open_check_ins[0]),
    )


async def _read_day(ctx: Context, notification: Notification) -> list[AgendaBlock]:
    """Return the blocks of the client on the day of a notification; none if it is hidden, or the client is away."""
    client, day = notification["recipient"]["_id"], notification["subject"]["date"]
    if day in (await availability.get_absences(ctx, [client], day, day))[client]:
        return []
    if await visibility.find_hidden_days(ctx, client, day, day):
        return []
    return await find_agenda(ctx, [client], day, day)


def _reason(ctx: Context) -> str:
    return f"You receive this mail because you train with {ctx.caller.company.name}."


def _path(blocks: Sequence[AgendaBlock]) -> str:
    return f"/train/workouts/{blocks[0]['_id']}" if len(blocks) == 1 else "/train"


async def _find_names(ctx: Context, client: ObjectId, blocks: Sequence[AgendaBlock]) -> str | None:
    """Return the names of blocks but those that an assistant has given without an approval: they may say anything."""
    by_assistants: dict[ObjectId, str] = {}
    for change in await history.list_unapproved(ctx, client, [block["_id"] for block in blocks], _REMEMBERED):
        for patch in change.get("patch", ()):
            if patch["after"] is not None:
                by_assistants[patch["_id"]] = patch["after"]["name"]
            for field in patch["fields"]:
                if field["path"] == "name":
                    by_assistants[patch["_id"]] = field["after"]
    return ", ".join(block["name"] for block in blocks if by_assistants.get(block["_id"]) != block["name"]) or None


def _event(notification: Notification, block: AgendaBlock) -> dict[str, EventValue]:
    return {"date": notification["subject"]["date"], "wblockId": block["_id"]}


# --- What a coach reminds of: forms of earlier days without an answer, once a local day of the client -----------------


SkippedReminder = Literal["NOTHING_OVERDUE", "REMINDED_TODAY"]


async def find_not_reminded(
    ctx: Context, customer_ids: Sequence[ObjectId], form_id: ObjectId | None
) -> dict[ObjectId, SkippedReminder]:
    """Return which of these clients are not reminded of overdue forms, and why. Access is not checked.

    Those without one that they see, who are archived or do not train today, and who have been reminded today.
    """
    days = await _load_days(ctx, customer_ids)
    known = await notifications.find_known(ctx, [_form_key(each, day) for each, day in days.items()])
    overdue = await _find_overdue(ctx, days, form_id)
    return {
        each: "REMINDED_TODAY" if each in days and _form_key(each, days[each]) in known else "NOTHING_OVERDUE"
        for each in customer_ids
        if each not in overdue or _form_key(each, days[each]) in known
    }


async def remind_of_forms(ctx: Context, customer_ids: Sequence[ObjectId], form_id: ObjectId | None) -> None:
    """Remind clients of their overdue forms, in the transaction of `ctx` in which `find_not_reminded` left them."""
    days = await _load_days(ctx, customer_ids)
    await notifications.make_due(
        ctx,
        [
            DueNotification(
                key=_form_key(client, day),
                kind="checkIns",
                recipient={"type": "client", "_id": client},
                due_at=now(),
                customer_id=client,
                subject={"date": str(day.today), "formId": form_id},
            )
            for client, day in days.items()
        ],
    )


def _form_key(client: ObjectId, day: ClientDay) -> str:
    return f"forms:{client}:{day.today}"


async def _load_days(ctx: Context, customer_ids: Sequence[ObjectId]) -> dict[ObjectId, ClientDay]:
    """Return the local date of each of these clients who is not archived."""
    active = await bulk.load_active(ctx, list(customer_ids))
    zones = {each: client["timezone"] or ctx.caller.company.timezone for each, client in active.items()}
    return {each: ClientDay(ctx.caller.today(zone), zone) for each, zone in zones.items()}


async def _find_overdue(
    ctx: Context, days: Mapping[ObjectId, ClientDay], form_id: ObjectId | None
) -> dict[ObjectId, list[UnansweredForm]]:
    """Return the overdue forms of each client who has any, without those of hidden days and of absences."""
    if not days:
        return {}
    last = str(max(day.today for day in days.values()))
    forms = await find_unanswered_forms(ctx, list(days), last, form_id)
    first = min((form["date"] for form in forms), default=last)
    absences = await availability.get_absences(ctx, list(days), first, last)
    overdue: dict[ObjectId, list[UnansweredForm]] = {}
    for client in dict.fromkeys(form["customerId"] for form in forms):
        today, away = str(days[client].today), absences[client]
        if today in away:
            continue
        hidden = await visibility.find_hidden_days(ctx, client, first, last)
        of_client = [
            form
            for form in forms
            if form["customerId"] == client
            and form["date"] < today
            and form["date"] not in away
            and form["date"] not in hidden
        ]
        if of_client:
            overdue[client] = of_client
    return overdue
