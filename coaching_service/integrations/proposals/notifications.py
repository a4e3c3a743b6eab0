"""Notifications of a coach for whom proposals wait: after a minute, at most one in 15 minutes for each assistant.

They contain no part of the proposals.
"""

from __future__ import annotations

from datetime import timedelta

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter, now
from coaching_service.integrations.proposals import store
from coaching_service.integrations.proposals.models import Proposal
from coaching_service.people.notifications import service as notifications
from coaching_service.people.notifications.models import DueNotification, Message, Notification

# A coach who is in front of the assistant decides meanwhile.
_DELAY = timedelta(minutes=1)
_INTERVAL = timedelta(minutes=15)


async def make_due(ctx: Context, proposal: Proposal) -> None:
    """Make the notification about a new proposal due, in the transaction that stores it."""
    coach, assistant = proposal["coachId"], proposal["assistant"]["_id"]
    due = DueNotification(
        key=f"proposals:{coach}:{assistant}",
        kind="proposals",
        recipient={"type": "coach", "_id": coach},
        due_at=now() + _DELAY,
        subject={"assistantId": assistant},
        interval=_INTERVAL,
    )
    await notifications.make_due(ctx, [due])


async def write_message(ctx: Context, notification: Notification) -> Message | None:
    """Return what to send about the proposals that wait since the last notification; None if there are none."""
    coach, assistant = notification["recipient"]["_id"], notification["subject"]["assistantId"]
    waiting: Filter = {"coachId": coach, "assistant._id": assistant, **store.has_status("pending")}
    unannounced = {**waiting, "isMailed": {"$exists": False}}
    newest = next(iter(await store.find(ctx, unannounced, sort=store.NEWEST_FIRST, limit=1)), None)
    if newest is None:
        return None
    number = await store.proposals.set_derived(ctx, waiting, {"$set": {"isMailed": True}})
    what = "something" if number == 1 else f"{number} things"
    return Message(
        subject="Your assistant waits for your decision",
        paragraphs=[f"Your assistant {newest['assistant']['name']} proposes {what} that you have to approve first."],
        button="Look at it, and decide",
        path=f"/app/proposals/{newest['_id']}" if number == 1 else "/app/proposals?status=pending",
        notes=["Nothing is done until you approve it, and nothing at all if you do not within 24 hours."],
        reason=f"You receive this mail because an assistant acts for you at {ctx.caller.company.name}.",
        title="Your assistant waits for your decision",
        text=f"It proposes {what}",
    )
