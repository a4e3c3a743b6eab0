"""What a client sees first: the workouts of today, what is due, and the week."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from functools import partial
from typing import Any, Literal, TypedDict

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.progress import own_today
from coaching_service.progress.own_today import Today
from coaching_service.training import own_schedule
from coaching_service.training.workouts.blocks.models import SESSION_FIELDS, Block
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.web.formatting import quantity
from coaching_service.web.pages import Pages
from coaching_service.web.views.availability_forms import KINDS, LENGTHS, USUAL_LENGTH, describe_period
from coaching_service.web.views.train.layout import form_path, is_session, item_path, label_day, workout_path

pages = Pages("/train")

_NAMES = 4  # how many exercises of a session are named
_NOUNS = {"TASK": "task", "FORM": "form", "METRICS": "measurement", "REMINDER": "reminder"}


class Session(TypedDict):
    """A workout of today in words; `handled` of `total` items are completed or skipped.

    `days` are those to which the client may move it.
    """

    name: str
    path: str
    state: Literal["planned", "part", "done"]
    facts: str
    exercises: list[str]
    more: int
    handled: int
    total: int
    days: Sequence[str]
    block: Block


class Due(TypedDict):
    """Something to do, with the page to do it on; `icon` is its picture."""

    icon: str
    title: str
    note: str
    path: str
    isOverdue: bool


@pages.get("", access=customer(), template="train/today.html")
async def today_page(ctx: Context) -> dict[str, Any]:
    """The client's day."""
    overview = await own_today.get_overview(ctx)
    today = overview["today"]
    sessions = [block for block in today["blocks"] if is_session(block)]
    rights, days_to_move = await gather_reads(
        ctx, own_schedule.get_rights(ctx), own_schedule.list_days_to_move(ctx, sessions)
    )
    day = date.fromisoformat(today["date"])
    return {
        "today": today,
        "week": overview["week"],
        "keep": list(_list_kept_paths([*today["blocks"], *overview["tomorrow"]])),
        "sessions": [_describe_session(block, days_to_move.get(block["_id"], ())) for block in sessions],
        "is_rest_day": any(block["isRest"] for block in today["blocks"]),
        "may_add": rights["clientsMayAdd"],
        "absence": describe_period(today["availability"], day) if today["availability"] else None,
        "kinds": KINDS,
        "lengths": LENGTHS,
        "usual_length": USUAL_LENGTH,
        "due": list(_list_due(today, day)),
        "label_day": partial(label_day, today=day),
    }


def _list_kept_paths(blocks: list[Block]) -> Iterator[str]:
    """Yield the paths of the pages that open without a connection: the calendar, workouts and forms of two days."""
    yield "/train/calendar"
    for block in blocks:
        if is_session(block):
            yield workout_path(block["_id"])
        for item in block["items"]:
            if item["type"] == "FORM":
                yield form_path(block["_id"], item["_id"])


def _describe_session(block: Block, days_to_move: Sequence[str]) -> Session:
    names = [name for item in block["items"] for name in _exercise_names(item)]
    handled = sum(item["isCompleted"] or item.get("skipped") is not None for item in block["items"])
    return {
        "name": block["name"],
        "path": workout_path(block["_id"]),
        "state": _state_of(block, handled),
        "facts": _count_parts(block["items"], len(names)),
        "exercises": names[:_NAMES],
        "more": len(names[_NAMES:]),
        "handled": handled,
        "total": len(block["items"]),
        "days": days_to_move,
        "block": block,
    }


def _state_of(block: Block, handled: int) -> Literal["planned", "part", "done"]:
    """Return whether a workout is still to do, has been started, or is over: completed, or ended by the client."""
    is_ended = any(block.get(name) is not None for name in SESSION_FIELDS if name != "comment")
    if block["isCompleted"] or is_ended or (block["items"] and handled == len(block["items"])):
        return "done"
    is_started = handled or any(item.get("customerSets") for item in block["items"])
    return "part" if is_started else "planned"


def _exercise_names(item: WorkItem) -> list[str]:
    if item["type"] == "EXERCISE":
        return [item["exercise"]["name"]]
    if item["type"] == "CIRCUIT":
        return [entry["exercise"]["name"] for entry in item["circuitExercises"]]
    return []


def _count_parts(items: list[WorkItem], exercises: int) -> str:
    """Return what a workout consists of, such as `5 exercises · 16 sets · 1 task`."""
    sets = sum(_count_sets(item) for item in items)
    parts = [quantity(count, noun) for count, noun in ((exercises, "exercise"), (sets, "set")) if count]
    for item_type, noun in _NOUNS.items():
        if count := sum(item["type"] == item_type for item in items):
            parts.append(quantity(count, noun))
    return " · ".join(parts)


def _count_sets(item: WorkItem) -> int:
    if item["type"] == "EXERCISE":
        return len(item["exerciseSets"])
    if item["type"] == "CIRCUIT":
        return sum(entry["plannedSetsTotal"] for entry in item["circuitExercises"])
    return 0


def _list_due(today: Today, day: date) -> Iterator[Due]:
    """Yield what is due, what is overdue first: forms, measurements and habits of today, and unread messages."""
    for form in today["pendingForms"]:
        since = label_day(form["date"], day, within=True)
        note = f"Since {since}" if form["isOverdue"] else "Today"
        path = form_path(form["wblockId"], form["witemId"])
        yield _due("clipboard-list", form["formName"], note, path, is_overdue=form["isOverdue"])
    for block in today["blocks"]:
        for item in block["items"]:
            if not item["isCompleted"] and item.get("skipped") is None:
                yield from _due_item(block["_id"], item, is_habit=block.get("checkInId") is not None)
    if count := today["unreadMessages"]:
        yield _due("message-circle", quantity(count, "new message"), "From your coach", "/train/messages")


def _due_item(block_id: ObjectId, item: WorkItem, *, is_habit: bool) -> Iterator[Due]:
    path = item_path(block_id, item["_id"])
    if item["type"] == "METRICS":
        names = ", ".join(metric["name"] for metric in item["metricsFields"]["metrics"])
        yield _due("ruler", item["metricsFields"]["name"], names, path)
    elif item["type"] == "TASK" and is_habit:
        yield _due("circle-check", item["taskFields"]["title"], "Today", path)


def _due(icon: str, title: str, note: str, path: str, *, is_overdue: bool = False) -> Due:
    return {"icon": icon, "title": title, "note": note, "path": path, "isOverdue": is_overdue}
