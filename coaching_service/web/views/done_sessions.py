"""The workouts that clients completed lately, each with its review."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import now
from coaching_service.core.ids import ObjectId
from coaching_service.people.activity import service as activity
from coaching_service.training.workouts.reports import blocks as queries
from coaching_service.web.views.customer_layout import review_path

_DAYS, _EVENTS, _SESSIONS = 7, 30, 12


class DoneSession(TypedDict):
    """A completed workout: the client's and the workout's name, when it was completed (UTC), and its review."""

    client: str
    workout: str
    at: datetime
    url: str


async def list_done_sessions(ctx: Context) -> list[DoneSession]:
    """Return at most 12 workouts that clients in the coach's scope completed in the last week, newest first.

    Check-ins are left out: recurring ones, and blocks with nothing but forms.
    """
    since = now() - timedelta(days=_DAYS)
    part = await activity.list_company_events(ctx, limit=_EVENTS, since=since, types=["workout_completed"])
    trained = await queries.find_trained_ids(ctx, {event["data"]["wblockId"] for event in part["docs"]})
    sessions: dict[ObjectId, DoneSession] = {}
    for event in part["docs"]:
        block_id, client = event["data"]["wblockId"], event["customer"]
        if block_id not in trained:
            continue
        sessions.setdefault(
            block_id,
            {
                "client": client["name"],
                "workout": event["data"]["blockName"],
                "at": event["date"],
                "url": review_path(client["_id"], block_id),
            },
        )
    return list(sessions.values())[:_SESSIONS]
