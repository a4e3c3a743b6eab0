"""What a client sees first: the workouts of today, and what is due."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.progress.own_today import service as own_today
from coaching_service.web.pages import Pages

pages = Pages("/train")


@pages.get("", access=customer(), template="train/today.html")
async def today_page(ctx: Context) -> dict[str, Any]:
    """The client's day."""
    return {"today": await own_today.read_today(ctx)}
