"""MCP tools for programs."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import PROGRAMS
from coaching_service.core.database.context import Context
from coaching_service.core.mcp.arguments import ToolPage, numbered
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Boolean, Text
from coaching_service.training.programs import service
from coaching_service.training.programs.models import Program

tools = Tools()


class ListPrograms(ToolPage):
    """A filter of the programs, and a page."""

    search = Text(
        allow_blank=True,
        load_default="",
        metadata={"description": "Words that must all occur in name, description or tag."},
    )
    isArchived = Boolean(
        load_default=False, metadata={"description": "true lists archived programs, false usable ones."}
    )


@tools.tool("List programs", access=coach(PROGRAMS.VIEW), takes=ListPrograms())
async def list_programs(ctx: Context, page: int, page_size: int, search: str, *, is_archived: bool) -> dict[str, Any]:
    """List training programs (workouts by day that can be assigned to a client) by name. Returns docs,
    totalDocs, hasNextPage and nextPage."""
    programs = await service.list_page(ctx, archived=is_archived, page=page, size=page_size, keywords=search)
    return {**numbered(programs), "docs": [_summary(program) for program in programs["docs"]]}


def _summary(program: Program) -> dict[str, Any]:
    return {
        "_id": program["_id"],
        "name": program["name"],
        "description": program["description"],
        "tags": program["tags"],
        "isArchived": program["isArchived"],
        "numberOfDaysWithWorkouts": program["numberOfDaysWithWorkouts"],
    }
