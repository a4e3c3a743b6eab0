"""Finding workouts of many clients for assistants, in place of a walk over their calendars."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, cast

from marshmallow import ValidationError, validates_schema

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.errors import invalid_field
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import ToolPage, optional
from coaching_service.core.mcp.lists import PageOfLines, describe_list
from coaching_service.core.mcp.results import Answer, typed
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.text import normalize
from coaching_service.core.validation import Choice, Date, Identifier, ListOf, Text
from coaching_service.library.exercises import alternatives
from coaching_service.library.exercises.muscles import ID_OF
from coaching_service.people.customers import bulk
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.chosen_clients import MAX_CLIENTS, choose_clients
from coaching_service.training.workout_text import writing
from coaching_service.training.workout_text.mentions import resolve_exercises
from coaching_service.training.workouts.blocks import service
from coaching_service.training.workouts.blocks.load_conversion import show_loads
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.training.workouts.items.totals import planned_exercise_ids

tools = Tools()
_MAX_ALL, _NEAR_DAYS, _MAX_DAYS, _MAX_FOUND, _MAX_ITEMS = 1_000, 28, 366, 1_000, 6
_MUSCLES = {normalize(name): identifier for name, identifier in ID_OF.items()}


class WorkoutSearch(ToolPage):
    """What the workouts have, whose they are and when, and a page."""

    exercise = Text(**optional("A name, or _id."))
    muscle = Text(max_length=40, **optional("Or: trained by an exercise."))
    words = Text(max_length=100, **optional("Or: in names and notes."))
    customerIds = ListOf(Identifier(), minimum=1, maximum=MAX_CLIENTS, **optional("Without: all active clients."))
    groups = ListOf(Text(max_length=100), minimum=1, maximum=MAX_CLIENTS, **optional("Or: clients in these."))
    locals()["from"] = Date(**optional("Without: 28 days ago."))
    to = Date(**optional("Without: in 28 days."))
    status = Choice("planned", "done", **optional("Only what is not done yet, or done."))

    @validates_schema(skip_on_field_errors=False)
    def chooses_once(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require one thing to look for, and one way to choose clients."""
        given = [name for name in ("exercise", "muscle", "words") if data.get(name) is not None]
        if len(given) != 1:
            raise ValidationError("is required, or muscle, or words: one of them", "exercise")
        if data.get("customerIds") and data.get("groups"):
            raise ValidationError("must not be combined with customerIds", "groups")


@tools.tool("Find workouts", access=coach(CUSTOMERS.VIEW), takes=WorkoutSearch(), returns=PageOfLines)
async def find_workouts(
    ctx: Context,
    exercise: str | None,
    muscle: str | None,
    words: str | None,
    customer_ids: list[ObjectId] | None,
    groups: list[str] | None,
    to: str | None,
    status: str | None,
    page: int,
    page_size: int,
    **period: str | None,
) -> Answer:
    """Find workouts of all or some clients by an exercise, muscle or words, by date, with the items that have it."""
    today = ctx.caller.today()
    first = period["from"] or str(today - timedelta(days=_NEAR_DAYS))
    last = to or str(max(today, date.fromisoformat(first)) + timedelta(days=_NEAR_DAYS))
    if not 0 <= (date.fromisoformat(last) - date.fromisoformat(first)).days <= _MAX_DAYS:
        raise invalid_field("to", f"must be at most {_MAX_DAYS} days after from, and not before it", code="INVALID")
    if page * page_size > _MAX_FOUND:
        raise invalid_field("page", f"must end within the first {_MAX_FOUND} workouts", code="TOO_FAR")
    ids = await _choose(ctx, customer_ids, groups)
    exercise_ids = await _find_exercises(ctx, exercise, muscle)
    found = await service.find_of_clients(
        ctx,
        ids,
        (first, last),
        exercise_ids=exercise_ids,
        words=(words or "").split(),
        is_done=None if status is None else status == "done",
        skip=(page - 1) * page_size,
        limit=page_size + 1,
    )
    has_more, unit = len(found) > page_size, ctx.caller.load_unit
    names = await customers.find_references(ctx, list({cast("ObjectId", each["customerId"]) for each in found}))
    lines: list[str] = []
    for block in show_loads(found[:page_size], ctx, unit):
        client = names[cast("ObjectId", block["customerId"])]
        items = [each for each in block["items"] if exercise_ids is None or _has(each, exercise_ids)]
        said = [_describe_item(each, unit) for each in items[:_MAX_ITEMS]]
        said += [f"{len(items) - _MAX_ITEMS} more"] if len(items) > _MAX_ITEMS else []
        about = f"{typed(client['name'])} [{client['_id']}] {typed(block['name'])} [workout {block['_id']}]"
        lines.append(f"{block['date']} {about}: {'; '.join(said)}")
    title = f"Workouts with {typed(exercise or muscle or words or '')}, {first} to {last}, loads in {unit}"
    more = f"; more on page {page + 1}" if has_more else ""
    data = describe_list(title, {"nextPage": page + 1 if has_more else None})
    text = "\n".join([f"{title}: {len(lines) or 'none'}{more}", *lines])
    return Answer(text, {**data, "docs": [{"line": line} for line in lines]})


async def _choose(ctx: Context, customer_ids: list[ObjectId] | None, groups: list[str] | None) -> list[ObjectId]:
    if customer_ids is not None or groups is not None:
        return [each["_id"] for each in await choose_clients(ctx, None, customer_ids, groups)]
    ids: list[ObjectId] = []
    async for part in bulk.iterate_matching(ctx, {"archived": False}, _MAX_ALL + 1):
        ids += part
        if len(ids) > _MAX_ALL:
            raise invalid_field("groups", f"is required: there are more than {_MAX_ALL:,} clients", code="REQUIRED")
    return ids


async def _find_exercises(ctx: Context, exercise: str | None, muscle: str | None) -> Collection[ObjectId] | None:
    """Return the exercises that are named, or train a muscle most; None for neither."""
    if exercise is not None:
        return await resolve_exercises(ctx, {"exercise": exercise})
    if muscle is None:
        return None
    if (muscle_id := _MUSCLES.get(normalize(muscle))) is None:
        raise invalid_field("muscle", f"is unknown. Known are {', '.join(ID_OF)}", code="UNKNOWN_NAME")
    return await alternatives.list_training(ctx, muscle_id)


def _has(item: WorkItem, exercise_ids: Collection[ObjectId]) -> bool:
    return any(each in exercise_ids for each in planned_exercise_ids(item))


def _describe_item(item: WorkItem, load_unit: str) -> str:
    lines: Sequence[str] = [*writing.write_item(item, load_unit), *writing.write_log(item, load_unit)]
    return " ".join(line.strip() for line in lines)
