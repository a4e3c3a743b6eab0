"""Where a coach arrives."""

from __future__ import annotations

from typing import Any

from coaching_service.kernel.auth.access import coach
from coaching_service.kernel.storage.context import Context
from coaching_service.web.pages import Pages

pages = Pages("/app")


@pages.get("", access=coach(), template="home.html")
async def home(_: Context) -> dict[str, Any]:
    """The first page after signing in."""
    return {}
