"""Changes of the items of a workout: text lines to add or change, and items to move or remove."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count
from typing import Any, Final, cast

from coaching_service.core.database.context import Context
from coaching_service.core.dates import name_days
from coaching_service.core.errors import FieldError, Forbidden, InvalidFields, NotFound, invalid_field
from coaching_service.core.field_schemas import DeferredChange
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import typed
from coaching_service.core.validation import sentence
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.bulk import choose_clients
from coaching_service.training.workout_text import lines, writing
from coaching_service.training.workout_text.finding import resolve_document, resolve_exercises, resolve_workouts
from coaching_service.training.workout_text.lines import ParsedWorkout, parse_items
from coaching_service.training.workout_text.tool_schemas import ItemEditArguments
from coaching_service.training.workouts.blocks import items as block_items
from coaching_service.training.workouts.blocks import service
from coaching_service.training.workouts.blocks.load_conversion import show_loads, store_loads
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.blocks.service import ClientCalendar
from coaching_service.training.workouts.items.models import ItemChange, WorkItem
from coaching_service.training.workouts.items.service import PLANNED_FIELDS, is_recorded

_ITEM_NOT_FOUND = "is not an item of this workout"


@dataclass
class Outcome:
    """What edits have done: a sentence for each, the identifiers of new items, and whether done work is affected.

    `remarks`: sentences about how names were read, each with a space before it.
    """

    sentences: list[str] = field(default_factory=list)
    remarks: str = ""
    added: list[ObjectId] = field(default_factory=list)
    changes_done_work: bool = False


class ParsedChange(DeferredChange):
    """A change of an item that was read from a text."""

    def __init__(self, change: Mapping[str, Any]) -> None:
        super().__init__({}, None)
        self._change = change

    def validate_as(self, stored_type: str) -> dict[str, Any]:
        """Return the change: its fields are the fields of the stored item."""
        return dict(self._change)


async def apply_edits(
    ctx: Context, owner: ClientCalendar, block_id: ObjectId, edits: Sequence[ItemEditArguments]
) -> Outcome:
    """Apply edits to a workout one after another, in the transaction of the caller.

    Raises NotFound, Forbidden, and InvalidFields for a text or an item that cannot be read.
    """
    outcome, unit = Outcome(), ctx.caller.load_unit
    missing = _find_missing(await service.get(ctx, owner, block_id), dict(enumerate(edits)))
    problems = lines.Problems()
    with problems.collect():
        outcome.remarks = await resolve_workouts(ctx, parse_texts(dict(enumerate(edits)), unit), owner.customer_id)
    if missing and not problems.entries:
        raise NotFound("workout item", "; ".join(f"{path}: Workout item not found" for path in missing))
    problems.entries += [lines.Problem(path, None, _ITEM_NOT_FOUND, _ITEM_NOT_FOUND) for path in missing]
    problems.raise_any()
    for number, edit in enumerate(edits):
        block = await service.get(ctx, owner, block_id)
        path = f"changes.{number}"
        if edit["action"] == "add":
            await _add(ctx, owner, block, edit, path, outcome)
            continue
        if (item := writing.find_item(block["items"], str(edit["itemId"]))) is None:
            raise NotFound("workout item", f"{path}.itemId: Workout item not found")
        if edit["action"] == "change":
            changed = await _change(ctx, owner, block, item, str(edit["text"]), f"{path}.text")
            before, after = (show_loads(each, ctx, unit) for each in (item, changed))
            if changed["updatedAt"] == item["updatedAt"]:
                outcome.sentences.append(f"{writing.name_with_sets(after, unit)} is so already")
                continue
            outcome.changes_done_work |= is_recorded(item)
            was, becomes = _label(block, before), _label(await service.get(ctx, owner, block_id), after)
            superset = "" if was == becomes else f", superset {was or 'none'} → {becomes or 'none'}"
            outcome.sentences.append(f"changed {_describe_change(before, after, unit)}{superset}")
        elif edit["action"] == "move":
            index = 1000 if edit["index"] is None else edit["index"]
            target = edit["toWorkoutId"] or block_id
            await _move(ctx, owner, item["_id"], block_id, target, index)
            outcome.changes_done_work |= target != block_id and is_recorded(item)
            moved = f"moved {typed(writing.name_of(item))}"
            if target != block_id:
                other = await service.get(ctx, owner, target)
                day = name_days([str(other["date"])], await customers.resolve_today(ctx, owner.customer_id))
                moved += f" to {typed(other['name'])} on {day}"
            outcome.sentences.append(moved)
        else:
            await block_items.delete_item(ctx, owner, block_id, item["_id"])
            outcome.changes_done_work |= is_recorded(item)
            outcome.sentences.append(f"removed {typed(writing.name_of(item))}")
    return outcome


async def check_items(
    ctx: Context, owner: ClientCalendar, block_id: ObjectId, edits: Mapping[int, Mapping[str, Any]]
) -> None:
    """Raise InvalidFields for the items that edits, by their positions, name and the workout does not have."""
    missing = _find_missing(await service.get(ctx, owner, block_id), edits)
    lines.Problems([lines.Problem(path, None, _ITEM_NOT_FOUND, _ITEM_NOT_FOUND) for path in missing]).raise_any()


def _find_missing(block: Block, edits: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """Return the paths of the items that edits, by their positions, name and the workout does not have."""
    return [
        f"changes.{number}.itemId"
        for number, edit in edits.items()
        if edit.get("action") != "add" and writing.find_item(block["items"], str(edit["itemId"])) is None
    ]


def _describe_change(before: WorkItem, after: WorkItem, unit: str) -> str:
    """Return an item before and after a change of its plan: `«Squat» 4x8 @60kg → 4x8 @62.5kg`.

    Notes are stated where they differ.
    """
    notes = writing.notes_of(before) != writing.notes_of(after)
    old, new = (writing.name_with_sets(each, unit, notes=notes) for each in (before, after))
    return (
        new if old == new else f"{old} → {new.removeprefix(writing.quote(writing.name_of(before))).lstrip(', ') or new}"
    )


def _label(block: Block, item: WorkItem) -> str | None:
    """Return the letter of the superset that an item is in, or None."""
    superset = item["supersetId"] if item["type"] == "EXERCISE" else None
    return writing.superset_letters(block["items"])[superset] if superset else None


def parse_texts(edits: Mapping[int, ItemEditArguments], load_unit: str) -> list[ParsedWorkout]:
    """Return what the texts of edits, by their positions, describe."""
    parsed: list[ParsedWorkout] = []
    for number, edit in edits.items():
        text, path = str(edit["text"]), f"changes.{number}.text"
        if edit["action"] == "change" and lines.is_sets(text):
            problems = lines.Problems()  # no items, and what is wrong with the sets
            with problems.collect():
                lines.read_planned(lines.split_note(text)[0], load_unit, path)
            parsed.append(ParsedWorkout(problems=problems.entries))
        elif edit["action"] in ("add", "change"):
            parsed.append(lines.parse_items(text, load_unit, path))
    return parsed


async def _add(
    ctx: Context, owner: ClientCalendar, block: Block, edit: ItemEditArguments, path: str, outcome: Outcome
) -> None:
    unit = ctx.caller.load_unit
    parsed = lines.parse_items(str(edit["text"]), unit, f"{path}.text")
    await resolve_workouts(ctx, [parsed], owner.customer_id)
    store_loads([each.item for each in parsed.items], ctx)
    for offset, new in enumerate(parsed.items):
        is_known = new.superset in writing.superset_letters(block["items"]).values()
        if new.superset is not None and (is_known or new.item["supersetId"]):
            new.item["supersetId"] = _superset_of(block, new.superset)
        added = await block_items.create_item(ctx, owner, block["_id"], new.details)
        if edit["index"] is not None:
            await _move(ctx, owner, added["_id"], block["_id"], block["_id"], edit["index"] + offset)
        outcome.added.append(added["_id"])
        is_lone = new.superset not in (None, "-") and not new.item["supersetId"]
        note = f" (no superset: no other item has the letter {new.superset})" if is_lone else ""
        outcome.sentences.append(f"added {writing.name_with_sets(show_loads(added, ctx, unit), unit)}{note}")


async def _move(
    ctx: Context, owner: ClientCalendar, item_id: ObjectId, source: ObjectId, target: ObjectId, index: int
) -> None:
    await block_items.move_item(
        ctx, owner, {"wblockId": source, "witemId": item_id}, {"wblockId": target, "index": index}
    )


async def _change(ctx: Context, owner: ClientCalendar, block: Block, item: WorkItem, text: str, path: str) -> WorkItem:
    if item["type"] == "EXERCISE" and lines.is_sets(text):
        sets, note = lines.split_note(text)
        change: ItemChange = {"exerciseSets": lines.read_planned(sets, ctx.caller.load_unit, path)}
        if note is not None:
            change["exerciseInstructions"] = note or None
        store_loads(change, ctx)
    else:
        parsed = lines.parse_items(text, ctx.caller.load_unit, path)
        await resolve_workouts(ctx, [parsed], owner.customer_id)
        store_loads([each.item for each in parsed.items], ctx)
        if len(parsed.items) != 1 or parsed.items[0].item["type"] != item["type"]:
            message = f"must describe one item of the type {item['type']}; remove the item and add another instead"
            raise invalid_field(path, message, code="INVALID")
        new = parsed.items[0]  # a missing note or label leaves the item's
        stated = {name: new.item[name] for name in PLANNED_FIELDS[item["type"]] if name in new.item}
        change = cast("ItemChange", stated)
        if item["type"] == "EXERCISE":
            if change["exerciseInstructions"] is None:
                del change["exerciseInstructions"]
            change["supersetId"] = None if new.superset in (None, "-") else _superset_of(block, str(new.superset))
            if new.superset is None:
                del change["supersetId"]
    parsed_change = ParsedChange(change)
    return await block_items.update_item(ctx, owner, block["_id"], item["_id"], parsed_change, only_differences=True)


def _superset_of(block: Block, letter: str) -> str:
    """Return the identifier of the superset that a letter names, or an unused one for a new superset.

    A letter names a superset by its place in the workout: the identifier may be another letter.
    """
    letters = writing.superset_letters(block["items"])
    by_letter = {known: superset for superset, known in letters.items()}
    names = chain([letter], (f"{letter}{number}" for number in count(2)))
    return by_letter.get(letter) or next(name for name in names if name not in letters)


# --- Checking the names and lines of a call whose other arguments are not valid: an assistant reads all errors at once


_NAMES = ("exercise", "withExercise")
_DOCUMENTS: Final = (("form", "form"), ("metric set", "metrics"))


async def check_names(ctx: Context, valid: Mapping[str, Any]) -> None:
    """Raise InvalidFields for names, lines and identifiers among the `valid` arguments of a tool."""
    customer_id, unit = valid.get("customerId"), ctx.caller.load_unit
    names = {name: str(valid[name]) for name in _NAMES if valid.get(name) is not None}
    names |= {f"exercises.{index}": each for index, each in _entries(valid, "exercises") if isinstance(each, str)}
    workouts: list[ParsedWorkout] = [
        parse_items(str(day["text"]), unit, f"days.{index}.text")
        for index, day in _entries(valid, "days")
        if day.get("text") is not None
    ]
    edits = {index: edit for index, edit in _entries(valid, "changes") if {"action", "text"} <= edit.keys()}
    workouts += parse_texts(edits, unit)
    on_calendar = [path for path in names if path != "withExercise"]
    calendar = None if customer_id is None else ClientCalendar(customer_id)
    checks: list[Callable[[], Awaitable[object]]] = [
        *([partial(calendar.require_access, ctx)] if calendar is not None else []),
        partial(resolve_exercises, ctx, names, customer_id, on_calendar),
        partial(resolve_workouts, ctx, workouts, customer_id),
        *(partial(resolve_document, ctx, *each, str(valid[each[1]])) for each in _DOCUMENTS if valid.get(each[1])),
    ]
    if valid.get("customerIds") or valid.get("groups"):
        checks.append(partial(choose_clients, ctx, None, valid.get("customerIds"), valid.get("groups")))
    if calendar is not None and (workout_id := valid.get("workoutId")) is not None:
        edits = {index: edit for index, edit in _entries(valid, "changes") if edit.get("itemId") is not None}
        checks.append(partial(check_items, ctx, calendar, workout_id, edits))
    await run_checks(checks)


async def run_checks(checks: Iterable[Callable[[], Awaitable[object]]]) -> None:
    """Raise InvalidFields for all that the checks find together."""
    errors: dict[str, FieldError] = {}
    for check in checks:
        try:
            await check()
        except InvalidFields as error:
            errors |= {sentence(each): each for each in error.errors}
        except (NotFound, Forbidden) as error:
            errors[str(error)] = {"field": "", "code": str(error.code), "message": str(error)}
    if errors:
        raise InvalidFields(list(errors.values()))


def _entries(valid: Mapping[str, Any], name: str) -> list[tuple[int, Any]]:
    return list(enumerate(valid.get(name) or ()))
