"""The groups of clients, and the program that clients get when they join one."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict
from urllib.parse import urlencode

from coaching_service.core.auth.access import CUSTOMERS, PROGRAMS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import invalid_field
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import CalendarDate, Choice
from coaching_service.people.customers import listing
from coaching_service.training.group_programs import service as group_programs
from coaching_service.training.group_programs.models import JOIN_DAY, NEXT_MONDAY, GroupName, Leaving
from coaching_service.web.formatting import quantity
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.programs import list_options

pages = Pages("/app/customers/groups")


class _Group(TypedDict):
    group: Annotated[str, GroupName(allow_blank=True), Default("")]


class _Rule(TypedDict):
    programId: ObjectId
    startOn: Annotated[Literal["nextMonday", "joinDay", "date"], Choice(NEXT_MONDAY, JOIN_DAY, "date")]
    startDate: Annotated[str | None, CalendarDate()]
    leave: Annotated[Leaving, Choice("keep", "removeUpcoming"), Default("keep")]
    existing: Annotated[bool, Default(False)]


def group_path(name: str) -> str:
    """Return the path of the page of a group's program."""
    return f"{pages.prefix}/program?{urlencode({'group': name})}"


@pages.get("", access=coach(CUSTOMERS.VIEW), template="customers/groups.html")
async def groups_page(ctx: Context) -> dict[str, Any]:
    """The groups of clients, each with its program."""
    in_use, ruled = await gather_reads(ctx, listing.list_groups(ctx), group_programs.list_all(ctx))
    counts = {group["name"]: group["count"] for group in in_use}
    rules = {rule["groupName"]: rule for rule in ruled}
    names = sorted({*counts, *rules}, key=str.casefold)
    return {
        "groups": [(name, counts.get(name, 0), rules.get(name), group_path(name)) for name in names],
        "starts": _STARTS,
    }


_STARTS = {NEXT_MONDAY: "on the Monday after", JOIN_DAY: "on the day of joining"}


@pages.get("/program", access=coach(CUSTOMERS.EDIT, PROGRAMS.VIEW), template="customers/group_program.html")
async def group_program_page(ctx: Context, query: _Group) -> dict[str, Any] | Redirect:
    """The program that clients get when they join a group."""
    if not query["group"]:
        return Redirect(pages.prefix)
    listed, ruled = await gather_reads(ctx, list_options(ctx), group_programs.list_all(ctx))
    rule = next((rule for rule in ruled if rule["groupName"] == query["group"]), None)
    options = dict(listed)
    if rule is not None:
        options.setdefault(str(rule["programId"]), rule["programName"])
    return {"group": query["group"], "rule": rule, "programs": list(options.items()), "today": ctx.caller.today()}


@pages.post("/program", access=coach(CUSTOMERS.EDIT, PROGRAMS.VIEW), on=group_program_page, idempotent=True)
async def set_program_of_group(ctx: Context, query: _Group, form: _Rule) -> Redirect:
    """Set the program of a group."""
    start = form["startDate"] if form["startOn"] == "date" else form["startOn"]
    if start is None:
        raise invalid_field("startDate", "is required", code="REQUIRED")
    enrolled = await group_programs.set_program(
        ctx,
        query["group"],
        {"programId": form["programId"], "startOn": start, "leave": form["leave"], "existing": form["existing"]},
    )
    given = f" {quantity(enrolled, 'client')} got it now." if form["existing"] else ""
    return Redirect(pages.prefix, f"{query['group']} has a program.{given}")


@pages.post("/program/remove", access=coach(CUSTOMERS.EDIT), on=group_program_page, idempotent=True, deletes=True)
async def remove_program_of_group(ctx: Context, query: _Group) -> Redirect:
    """Leave a group without a program."""
    await group_programs.remove_program(ctx, query["group"])
    return Redirect(pages.prefix, f"{query['group']} has no program any more. Clients who have it keep it.")
