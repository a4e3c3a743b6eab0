"""A client's day over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Routes
from coaching_service.progress.own_today import service
from coaching_service.progress.own_today.models import Today
from coaching_service.training.workouts.blocks.models import WorkoutBlockQuery

own_routes = Routes("/customer/today", tag="The client's own")


@own_routes.get("", access=customer())
async def get_own_today(ctx: Context, query: WorkoutBlockQuery) -> Today:
    """Read my day: the workouts of today, what is due, and what comes next.

    Days that are hidden from the client are left out of all of it.
    """
    return await service.get_today(ctx, include_last_times=query.get("include") == "lastTime")
