"""The digest of a coach: which clients need attention, at a local hour of weekdays, nothing if none does.

The next digest of each coach is made due with the figures of the company's clients: at least once a day for every
company that has an active client.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta

from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.dates import at_local_time, next_midnight
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs.alone import for_each_alone
from coaching_service.people.customers import derived_figures
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import Customer, Reason, ReasonType
from coaching_service.people.notification_settings import service as notification_settings
from coaching_service.people.notification_settings.models import NotificationSettings
from coaching_service.people.notifications import service as notifications
from coaching_service.people.notifications.models import DueNotification, Message, Notification
from coaching_service.people.team import service as team
from coaching_service.people.team.events import CoachNotificationsChanged

_SHOWN = 10
_WEEKEND = (5, 6)
_DAY = timedelta(days=1)
# One and several of what is counted; a reason without a number has one text.
_WORDS: Mapping[ReasonType, tuple[str, str]] = {
    "health_note": ("health note", "health notes"),
    "erasure_requested": ("erasure requested", ""),
    "unread_message": ("unread message", "unread messages"),
    "check_in_to_review": ("check-in to review", "check-ins to review"),
    "check_in_overdue": ("overdue check-in", "overdue check-ins"),
    "missed_workout": ("missed workout", "missed workouts"),
    "inactive": ("not training", ""),
    "low_compliance": ("low compliance", ""),
    "nothing_scheduled": ("nothing scheduled", ""),
    "program_ending": ("program ending", ""),
    "returning": ("back soon", ""),
    "personal_record": ("personal record", "personal records"),
    "unavailable": ("away or ill", ""),
}


async def plan(ctx: Context) -> None:
    """Make the next digest of each coach of the company due. Repeating it changes nothing but its hour."""
    stored = await team.list_notifications(ctx)

    async def make_due(coaches: Sequence[ObjectId]) -> None:
        settings = {coach: notification_settings.complete(stored[coach]) for coach in coaches}
        await notifications.make_due(ctx, [_next_digest(ctx, coach, each) for coach, each in settings.items()])

    await for_each_alone(ctx.services, "digests", ctx.company_id, stored, make_due, skips_waiting=True)


async def follow_settings(ctx: Context, event: CoachNotificationsChanged) -> None:
    """Make the next digest of a coach due at the hour that the coach has chosen."""
    settings = await team.get_notifications(ctx, event.coach_id)
    await notifications.make_due(ctx, [_next_digest(ctx, event.coach_id, settings)])


def _next_digest(ctx: Context, coach_id: ObjectId, settings: NotificationSettings) -> DueNotification:
    timezone = ctx.caller.company.timezone
    day = ctx.caller.today(timezone)
    while day.weekday() in _WEEKEND or _due_at(day, settings, timezone) <= now():
        day += _DAY
    return DueNotification(
        key=f"digest:{coach_id}:{day}",
        kind="digest",
        recipient={"type": "coach", "_id": coach_id},
        due_at=_due_at(day, settings, timezone),
        subject={"date": str(day)},
        valid_until=next_midnight(day, timezone),
    )


def _due_at(day: date, settings: NotificationSettings, timezone: str) -> datetime:
    return at_local_time(day, f"{settings['digestHour']:02}:00", timezone)


async def write_digest(ctx: Context, notification: Notification) -> Message | None:
    """Return the digest of a coach; None if no client whom the coach sees needs attention."""
    company = ctx.caller.company
    seen = replace(ctx, principal=await team.load_principal(ctx, notification["recipient"]["_id"]))
    if CUSTOMERS.VIEW not in seen.caller.permissions:
        return None
    clients = (await derived_figures.list_attention(seen, limit=_SHOWN))["docs"]
    if not any(client["attention"]["score"] for client in clients):
        return None
    number = await derived_figures.count_attention(seen)
    need = "1 client needs" if number == 1 else f"{number} clients need"
    lines = [f"{customers.full_name(client)}: {_describe(client)}." for client in clients]
    if number > len(clients):
        lines.append(f"And {number - len(clients)} more.")
    return Message(
        subject=f"{need} your attention",
        paragraphs=[f"{need} your attention today.", *lines],
        button="Open Today",
        path="/app/attention",
        reason=f"You receive this mail on weekdays because you coach at {company.name}.",
        title="Today",
        text=f"{need} your attention",
        details=", ".join(customers.full_name(client) for client in clients),
    )


def _describe(client: Customer) -> str:
    """Return the reasons of a client, most important first."""
    return ", ".join(_name(each) for each in client["attention"]["reasons"])


def _name(reason: Reason) -> str:
    singular, plural = _WORDS[reason["type"]]
    if not plural:
        return singular
    return f"{reason['count']} {singular if reason['count'] == 1 else plural}"
