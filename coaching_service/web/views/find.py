"""Finding: a page that works without script, whose results the dialog of every page shows while one types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypedDict

from coaching_service.core import search
from coaching_service.core.auth import CUSTOMERS, EXERCISES, PROGRAMS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.database.declared import SearchedType
from coaching_service.core.fields import Default
from coaching_service.core.validation import Text
from coaching_service.lifecycle import search as feature
from coaching_service.people.customers import service as customers
from coaching_service.web.pages import Pages
from coaching_service.web.views.customer_layout import week_path

pages = Pages("/app/search")
_KINDS: Mapping[SearchedType, str] = {
    "customers": "Clients",
    "programs": "Programs",
    "exercises": "Exercises",
    "workouts": "Workouts",
    "comments": "Comments in logs",
    "messages": "Messages",
    "notes": "Notes",
    "answers": "Answers to forms",
}
_NEW_WORKOUT = "New workout"
_SHOWN, _OF_KIND = 30, 6


class FindQuery(TypedDict):
    """What to search for; empty: nothing."""

    q: Annotated[str, Text(max_length=feature.MAX_LENGTH, allow_blank=True), Default("")]


class Command(NamedTuple):
    """A place to go to: its name, other words for it, its path, the permission it needs, and its icon."""

    title: str
    words: str
    path: str
    permission: str
    icon: str


_COMMANDS = (
    Command("Today", "attention start", "/app/attention", CUSTOMERS.VIEW, "house"),
    Command("Clients", "people list", "/app/customers", CUSTOMERS.VIEW, "users"),
    Command("New client", "add", "/app/customers/new", CUSTOMERS.CREATE, "plus"),
    Command("Inbox", "messages forms", "/app/inbox", CUSTOMERS.VIEW, "inbox"),
    Command("Exercises", "library", "/app/exercises", EXERCISES.VIEW, "dumbbell"),
    Command("Programs", "library templates", "/app/programs", PROGRAMS.VIEW, "library"),
    Command("Business", "reports adherence load answers", "/app/reports", CUSTOMERS.VIEW, "chart-line"),
    Command("History", "changes undo", "/app/settings/history", CUSTOMERS.VIEW, "undo-2"),
)


@pages.get("", access=coach(CUSTOMERS.VIEW), template="find.html")
async def find_page(ctx: Context, query: FindQuery) -> dict[str, Any]:
    """A field to search for clients and what is written about them, the results, and places to go to."""
    text = query["q"].strip()
    folded = search.split_words(text)
    if (name := _after(folded, search.split_words(_NEW_WORKOUT))) is not None:
        return {"q": text, "groups": [], "commands": await _list_new_workouts(ctx, name), "is_found": True}
    results = await feature.find(ctx, text, limit=_SHOWN)
    groups = [
        (label, found[:_OF_KIND])
        for kind, label in _KINDS.items()
        if (found := [result for result in results if result["type"] == kind])
    ]
    words = search.words_of(text)
    permitted = [each for each in _COMMANDS if each.permission in ctx.caller.permissions]
    if CUSTOMERS.EDIT in ctx.caller.permissions:
        permitted.insert(
            1, Command(_NEW_WORKOUT, "add", f"/app/search?q={_NEW_WORKOUT.replace(' ', '+')}+", "", "plus")
        )
    commands = [
        each for each in permitted if words is None or words.occur_in(search.split_words(f"{each.title} {each.words}"))
    ]
    return {"q": text, "groups": groups, "commands": commands, "is_found": bool(groups or commands)}


def _after(words: Sequence[str], beginning: Sequence[str]) -> str | None:
    """Return the words after a beginning; None if they do not begin with it."""
    return " ".join(words[len(beginning) :]) if [*words[: len(beginning)]] == [*beginning] else None


async def _list_new_workouts(ctx: Context, name: str) -> list[Command]:
    """Return where a workout is added, for the clients whose name has some words, or for the first ones by name."""
    if CUSTOMERS.EDIT not in ctx.caller.permissions:
        return []
    if name:
        found = await feature.find(ctx, name, ["customers"], limit=_SHOWN)
        clients = [each["customer"] for each in found if each["customer"] is not None and not each["isArchived"]]
    else:
        page = await customers.list_customers(ctx, archived=False, page=1, size=_OF_KIND)
        clients = [{"_id": each["_id"], "name": customers.full_name(each)} for each in page["docs"]]
    days = await customers.find_timezones(ctx, [each["_id"] for each in clients])
    return [
        Command(
            f"{_NEW_WORKOUT} for {each['name']}",
            "",
            f"{week_path(each['_id'], today)}#name-{today}",
            CUSTOMERS.EDIT,
            "plus",
        )
        for each in clients
        for today in [str(ctx.caller.today(days.get(each["_id"])))]
    ]
