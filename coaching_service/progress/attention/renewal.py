"""The background jobs that renew the figures stored with clients: after a change, and once a local day.

A permanent job finds the companies that have clients whose figures are due, and queues a job for each, which any
process claims: one kind for changes, and one for the day, each with a place of its own in every process. So a backlog
of the day delays no change, and processes share it by company.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta

import structlog

from coaching_service.core.auth import CUSTOMERS
from coaching_service.core.database.connection import as_service_error
from coaching_service.core.database.context import Context, Services
from coaching_service.core.database.documents import now
from coaching_service.core.dates import at_local_time, next_midnight
from coaching_service.core.errors import NotFound, Unavailable
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job, RunAgain
from coaching_service.core.jobs.worker import for_each_alone
from coaching_service.people import notification_settings, notifications, team
from coaching_service.people.account import CompanyResumed, FigureSettingsChanged
from coaching_service.people.customers import derived_figures
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import RENEWAL, FigureLane, ReasonType
from coaching_service.people.notification_settings import NotificationSettings
from coaching_service.people.notifications import DueNotification, Message, Notification
from coaching_service.people.team import CoachNotificationsChanged
from coaching_service.progress.attention import service as attention

# --- The digest of a coach: which clients need attention, at a local hour of weekdays, nothing if none does -----------
# The next digest of each coach is made due with the figures of the company's clients: at least once a day for every
# company that has an active client.


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


async def make_next_digest_due(ctx: Context, event: CoachNotificationsChanged) -> None:
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
    lines = []
    for client in clients:
        reasons = []  # most important first
        for reason in client["attention"]["reasons"]:
            singular, plural = _WORDS[reason["type"]]
            count = f"{reason['count']} " if plural else ""
            reasons.append(f"{count}{plural if plural and reason['count'] != 1 else singular}")
        lines.append(f"{customers.full_name(client)}: {', '.join(reasons)}.")
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


FIND_DUE = "renew_compliance"
RENEW_CHANGED = "renew_changed_figures"
RENEW_DAILY = "renew_daily_figures"
MARK_ALL_DUE = "mark_all_figures_due"
# The companies of changes are queued first.
KINDS: dict[FigureLane, str] = {"changes": RENEW_CHANGED, "daily": RENEW_DAILY}
_BATCH = 200
_MARKED_BATCH = 1_000
# Clients whose companies are queued at once; the companies of all others follow.
_SEARCHED = 10_000
# The contract promises new figures within 10 seconds of a change.
_PAUSE = timedelta(seconds=3)
# Of the clients of a company that cannot be loaded, or is suspended.
_POSTPONEMENT = timedelta(hours=1)
log = structlog.get_logger("coaching_service.attention")


async def queue_due(services: Services, _: Job) -> RunAgain:
    """Queue the renewal of each company that has clients whose figures are due, unless it is queued or running.

    Runs again in three seconds: clients that change all the time are renewed that often, not all the time.
    """
    for lane, kind in KINDS.items():
        company_ids = await derived_figures.find_due_companies(services, lane, _SEARCHED)
        await queue.enqueue_for_companies(services, kind, company_ids, {"last": None})
    return RunAgain(_PAUSE)


async def renew_next(services: Services, job: Job, *, lane: FigureLane) -> RunAgain | None:
    """Renew the figures of the next 200 clients of the job's company that are due, with the same queries as of one.

    Clients that change in the meantime stay due. Those whose renewal fails wait, as `for_each_alone` says, and all for
    an hour if the company cannot be loaded, is suspended or being erased. Raises Unavailable while the database cannot
    be used.
    """
    company_id = queue.company_of(job)
    due = await derived_figures.list_due(services, company_id, lane, job.arguments["last"], _BATCH)
    if not due:
        return None
    try:
        owner = await team.get_owner(services, company_id)
    except NotFound:  # the company is being erased
        owner = None
    except Exception as error:
        if isinstance(as_service_error(error), Unavailable):
            raise
        log.exception("figures of a company not renewed", company=str(company_id))
        owner = None
    by_id = {each["_id"]: each for each in due}
    if owner is None or owner.company.is_suspended:
        waits = dict.fromkeys(by_id, _POSTPONEMENT)
    else:
        ctx = Context(services, owner, operation=RENEWAL, interface="system")
        await plan(ctx)
        waits = await for_each_alone(
            services, "figures", company_id, by_id, lambda ids: attention.renew_due(ctx, [by_id[each] for each in ids])
        )
    for client, wait in waits.items():
        await derived_figures.postpone(services, company_id, lane, [client], wait)
    return RunAgain(progress={"last": due[-1]["_id"]}) if len(due) == _BATCH else None


async def queue_renewal_of_all(ctx: Context, _: FigureSettingsChanged | CompanyResumed | None = None) -> None:
    """Have the figures of all clients renewed: what they are computed with has changed, or could not be followed."""
    await queue.enqueue(ctx, MARK_ALL_DUE, {"last": None})


async def mark_all_due(services: Services, job: Job) -> RunAgain | None:
    """Mark the figures of the next 1,000 clients of the job's company as due."""
    company_id = queue.company_of(job)
    last = await derived_figures.mark_all_due(services, company_id, job.arguments["last"], _MARKED_BATCH)
    return None if last is None else RunAgain(progress={"last": last})
