"""MCP tools for workouts and for training maximums, and the changes of items that they make."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count
from typing import Any, Final, cast

from coaching_service.core import mcp
from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.dates import name_days
from coaching_service.core.errors import NotFound, invalid_field
from coaching_service.core.fields import DeferredChange, labels_of, names_of, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import Page
from coaching_service.core.mcp import Answer, CustomerArgument, Tools, Written, format_figure, paged, typed
from coaching_service.core.text import snake_case
from coaching_service.core.validation import Number, Text
from coaching_service.library.exercises import service as exercises
from coaching_service.people import availability
from coaching_service.people.account import convert_entered_load, convert_stored_load
from coaching_service.people.availability import AvailabilityText, write_period
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.bulk import choose_clients
from coaching_service.training import training_maxes
from coaching_service.training.training_maxes import load_of
from coaching_service.training.workout_text import finding, lines
from coaching_service.training.workout_text.finding import (
    CalendarDates,
    ItemEditArguments,
    ItemEdits,
    WorkoutChange,
    describe_readings,
    read_texts,
    resolve_document,
    resolve_exercises,
    resolve_workouts,
    to_exercise_items,
)
from coaching_service.training.workout_text.lines import Detail, ParsedWorkout, parse_items
from coaching_service.training.workouts.blocks import batches, service
from coaching_service.training.workouts.blocks import items as block_items
from coaching_service.training.workouts.blocks import models as block_models
from coaching_service.training.workouts.blocks.items import show_loads, store_loads
from coaching_service.training.workouts.blocks.models import Block, NewBlock
from coaching_service.training.workouts.blocks.service import ClientCalendar, has_nothing_done, regular_blocks
from coaching_service.training.workouts.items.models import ItemChange, WorkItem
from coaching_service.training.workouts.items.service import PLANNED_FIELDS, is_recorded, load_percent_bases
from coaching_service.training.workouts.sets import MAX_LOAD

# --- Changes of the items of a workout: text lines to add or change, and items to move or remove ----------------------


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
        if (item := lines.find_item(block["items"], str(edit["itemId"]))) is None:
            raise NotFound("workout item", f"{path}.itemId: Workout item not found")
        if edit["action"] == "change":
            changed = await _rewrite(ctx, owner, block, item, str(edit["text"]), f"{path}.text")
            before, after = (show_loads(each, ctx, unit) for each in (item, changed))
            if changed["updatedAt"] == item["updatedAt"]:
                outcome.sentences.append(f"{lines.name_with_sets(after, unit)} is so already")
                continue
            outcome.changes_done_work |= is_recorded(item)
            was, becomes = _label(block, before), _label(await service.get(ctx, owner, block_id), after)
            superset = "" if was == becomes else f", superset {was or 'none'} → {becomes or 'none'}"
            outcome.sentences.append(f"changed {_describe_changed_item(before, after, unit)}{superset}")
        elif edit["action"] == "move":
            index = 1000 if edit["index"] is None else edit["index"]
            target = edit["toWorkoutId"] or block_id
            await _move(ctx, owner, item["_id"], block_id, target, index)
            outcome.changes_done_work |= target != block_id and is_recorded(item)
            moved = f"moved {typed(lines.name_of(item))}"
            if target != block_id:
                other = await service.get(ctx, owner, target)
                day = name_days([str(other["date"])], await customers.resolve_today(ctx, owner.customer_id))
                moved += f" to {typed(other['name'])} on {day}"
            outcome.sentences.append(moved)
        else:
            await block_items.delete_item(ctx, owner, block_id, item["_id"])
            outcome.changes_done_work |= is_recorded(item)
            outcome.sentences.append(f"removed {typed(lines.name_of(item))}")
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
        if edit.get("action") != "add" and lines.find_item(block["items"], str(edit["itemId"])) is None
    ]


def _describe_changed_item(before: WorkItem, after: WorkItem, unit: str) -> str:
    """Return an item before and after a change of its plan: `«Squat» 4x8 @60kg → 4x8 @62.5kg`.

    Notes are stated where they differ.
    """
    notes = lines.notes_of(before) != lines.notes_of(after)
    old, new = (lines.name_with_sets(each, unit, notes=notes) for each in (before, after))
    return new if old == new else f"{old} → {new.removeprefix(lines.quote(lines.name_of(before))).lstrip(', ') or new}"


def _label(block: Block, item: WorkItem) -> str | None:
    """Return the letter of the superset that an item is in, or None."""
    superset = item["supersetId"] if item["type"] == "EXERCISE" else None
    return lines.superset_letters(block["items"])[superset] if superset else None


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
        is_known = new.superset in lines.superset_letters(block["items"]).values()
        if new.superset is not None and (is_known or new.item["supersetId"]):
            new.item["supersetId"] = _superset_of(block, new.superset)
        added = await block_items.create_item(ctx, owner, block["_id"], new.details)
        if edit["index"] is not None:
            await _move(ctx, owner, added["_id"], block["_id"], block["_id"], edit["index"] + offset)
        outcome.added.append(added["_id"])
        is_lone = new.superset not in (None, "-") and not new.item["supersetId"]
        note = f" (no superset: no other item has the letter {new.superset})" if is_lone else ""
        outcome.sentences.append(f"added {lines.name_with_sets(show_loads(added, ctx, unit), unit)}{note}")


async def _move(
    ctx: Context, owner: ClientCalendar, item_id: ObjectId, source: ObjectId, target: ObjectId, index: int
) -> None:
    await block_items.move_item(
        ctx, owner, {"wblockId": source, "witemId": item_id}, {"wblockId": target, "index": index}
    )


async def _rewrite(ctx: Context, owner: ClientCalendar, block: Block, item: WorkItem, text: str, path: str) -> WorkItem:
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
    letters = lines.superset_letters(block["items"])
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
    await finding.run_checks(checks)


def _entries(valid: Mapping[str, Any], name: str) -> list[tuple[int, Any]]:
    return list(enumerate(valid.get(name) or ()))


# --- The tools --------------------------------------------------------------------------------------------------------


tools = Tools()
_change = partial(tools.tool, access=coach(CUSTOMERS.EDIT), writes=True, locks="customer", destructive=True)

# Of planned sets, which assistants read only where they differ.
_DEFAULTS: dict[str, Any] = {"isAmrap": False, "perSide": False, "setKind": "normal"}
_LISTED_IDENTIFIERS, _NAMED_BLOCKS = 20, 10
_SETTINGS, _YES_NO = labels_of(block_models.BlockSettings), {True: "yes", False: "no"}


@tools.tool("Read workouts", access=coach(CUSTOMERS.VIEW), takes=CalendarDates(), returns=lines.CalendarTexts)
async def get_workouts(
    ctx: Context, customer_id: ObjectId, start_date: str, end_date: str, page: int, page_size: int, detail: Detail
) -> Answer:
    """Read the workouts on a client's calendar as text, planned and done, of at most three months. A line for each
    item, as create_workout takes it, begins with # and the item's id; the workout's _id is in brackets."""
    customer, blocks, today = await gather_reads(
        ctx,
        customers.get_visible_reference(ctx, customer_id),
        service.list_blocks(ctx, ClientCalendar(customer_id), start_date, end_date),
        customers.get_local_date(ctx, customer_id),
    )
    period = await availability.find_present_or_next(ctx, customer_id, today)
    load_unit = ctx.caller.load_unit
    title = f"Workouts of {mcp.typed(customer['name'])}, loads in {load_unit}"
    listed = paged(show_loads(blocks, ctx, load_unit), page, page_size)
    answer = answer_workouts(title, listed, load_unit, detail)
    if period is None:
        return answer
    text = f"Availability: {write_period(period)}\n{answer.text}"
    return Answer(text, {**answer.data, "availability": take(AvailabilityText, period)})


def answer_workouts(title: str, page: Page[block_models.Block], load_unit: str, detail: Detail) -> Answer:
    """Return a page of workouts as text and as data."""
    docs: list[dict[str, Any]] = []
    for block in page["docs"]:
        settings = take(block_models.BlockSettings, block).items()
        described: dict[str, Any] = {
            "_id": block["_id"],
            "date": block["date"],
            "day": block["day"],
            "name": block["name"],
            "settings": {name: value for name, value in settings if value not in (None, False)} or None,
            "session": lines.write_session(block) or None,
            "lines": lines.write_block(block, load_unit, detail) or None,
        }
        if detail == "full":  # also its items as objects
            omitted = ("createdAt", "updatedAt", "exerciseId", "version")
            described["items"] = [
                {name: _without_unset(each) for name, each in item.items() if name not in omitted and each is not None}
                for item in block["items"]
            ]
        docs.append({name: value for name, value in described.items() if value is not None})
    more = f"; more on page {page['nextPage']} of {page['totalPages']}" if page["hasNextPage"] else ""
    workouts = [
        f"{lines.write_header(block)}\n{doc.get('lines', '')}" for block, doc in zip(page["docs"], docs, strict=True)
    ]
    text = "\n\n".join([f"{title}: {page['totalDocs']}{more}", *workouts])
    return Answer(text, {**mcp.describe_list(title, page), "docs": docs})


def _without_unset(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _without_unset(inner)
            for name, inner in value.items()
            if name not in ("variables", "defaultInstructions") and inner is not None and inner != _DEFAULTS.get(name)
        }
    return [_without_unset(each) for each in value] if isinstance(value, list) else value


@tools.tool(
    "Create workouts",
    access=coach(CUSTOMERS.EDIT),
    takes=finding.NewWorkouts(),
    writes=True,
    locks="customer",
    confirms=(mcp.Reason.MANY_DAYS, mcp.Reason.FAR_DATE),
    check=check_names,
)
async def create_workout(
    ctx: Context,
    customer_id: ObjectId,
    days: list[finding.WorkoutDayArguments] | None,
    date: str | None,
    name: str | None,
    exercises: list[finding.ToolExerciseArguments] | None,
) -> Written:
    """Schedule workouts on a client's calendar, all or nothing. text has a line for each item: `NAME: SETS | note`,
    NAME an exercise's name or [id]. SETS are groups separated by commas, each
    `COUNT x REPS[-REPS] [@LOAD[kg|lb] | @P%] [flags]`: 4x8-10 @60kg rest 90s RPE8; 3x30s; 2x400m; 3xAMRAP; 1x8+ (at
    least 8); 3x10/side; 1x5 @70%, 1x3 @80%. Flags: rest Ns, RPEn, RIRn, tempo abcd, warmup, drop, failure; ? leaves a
    value open. Supersets: lines that begin with A1) and A2). Other lines: `circuit NAME, N rounds:`, with its exercises
    in the next lines as `- NAME: SETS`; `task: TITLE | note`; `reminder HH:MM: text`; `form: NAME`; `metrics: SET`."""
    owner = ClientCalendar(customer_id)
    read_as = ""
    there = await read_taken_days(ctx, owner, {day["date"] for day in days} if days else {date or ""})
    if days is not None:
        texts = [(f"days.{index}.text", day["text"]) for index, day in enumerate(days)]
        read = await read_texts(ctx, texts, customer_id=customer_id)
        plans = [block_models.plan_of(day, items) for day, items in zip(days, read.items, strict=True)]
        blocks = [cast("NewBlock", {**plan, "date": day["date"]}) for plan, day in zip(plans, days, strict=True)]
        read_as = read.remarks
        created = (await batches.create_blocks(ctx, owner, blocks))["created"]
    else:
        items = await to_exercise_items(ctx, customer_id, exercises or [])
        block: NewBlock = {"name": name or "", "date": date or "", "isRest": False, "items": items}
        created = [await batches.create_block(ctx, owner, block, items_field="exercises")]
        sent = [each["name"] or str(each["exerciseId"]) for each in exercises or []]
        read_as = describe_readings(sent, [lines.name_of(item) for item in created[0]["items"]])
    dates = {str(block["date"]) for block in created}
    today = await customers.resolve_today(ctx, customer_id)
    return Written(
        f"Created {await _name_workouts(ctx, customer_id, created)}{describe_taken_days(there, today)}.{read_as}",
        identify_workouts(created),
        mcp.find_reasons(today=await customers.get_local_date(ctx, customer_id), dates=dates, days=len(dates)),
    )


def _describe_change(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


async def read_taken_days(ctx: Context, owner: ClientCalendar, dates: Collection[str]) -> list[block_models.DayBlock]:
    """Return the workouts that days of a client have, without check-ins. Raises NotFound and Forbidden."""
    await owner.require_access(ctx)
    return regular_blocks(await batches.read_days(ctx, owner, {"$in": sorted(dates)}))


def describe_taken_days(blocks: Sequence[block_models.DayBlock], today: str) -> str:
    """Return the workouts that days had before, for the sentence of a tool; empty without any."""
    if not blocks:
        return ""
    more = f" and {len(blocks) - _NAMED_BLOCKS} more" if len(blocks) > _NAMED_BLOCKS else ""
    some = blocks[:_NAMED_BLOCKS]
    named = ", ".join(f"{mcp.typed(block['name'])} on {name_days([str(block['date'])], today)}" for block in some)
    return f"; there {'was' if len(blocks) == 1 else 'were'} already {named}{more}"


def identify_workouts(blocks: Sequence[block_models.Block]) -> mcp.Identifiers:
    """Return the identifiers of workouts for the result of a tool, if there are not too many of them."""
    ids = [block["_id"] for block in blocks]
    if len(ids) == 1:
        return {"workoutId": ids[0]}
    return {"workoutIds": ids} if len(ids) <= _LISTED_IDENTIFIERS else {}


async def _name_workouts(ctx: Context, customer_id: ObjectId, blocks: Sequence[block_models.Block]) -> str:
    customer = await customers.get_visible_reference(ctx, customer_id)
    today = await customers.resolve_today(ctx, customer_id)
    count = "1 workout" if len(blocks) == 1 else f"{len(blocks)} workouts"
    some = blocks[:_LISTED_IDENTIFIERS]
    named = ", ".join(f"{mcp.typed(block['name'])} on {name_days([str(block['date'])], today)}" for block in some)
    return f"{count} of {mcp.typed(customer['name'])}: {named}"


@_change("Rename or move a workout", takes=WorkoutChange(), confirms=(mcp.Reason.DONE_WORK, mcp.Reason.FAR_DATE))
async def update_workout(
    ctx: Context,
    customer_id: ObjectId,
    workout_id: ObjectId,
    name: str | None,
    date: str | None,
    order: int | None,
    **settings: Any,
) -> Written:
    """Change a workout's name, date, position in the day or other settings; what is done moves with it, after
    confirmation."""
    owner = ClientCalendar(customer_id)
    before = await service.get(ctx, owner, workout_id)
    change: block_models.BlockChange = {}
    there: list[block_models.DayBlock] = []
    if name is not None and name != before["name"]:
        change["name"] = name
    if date is not None and date != before["date"]:
        change["date"] = date
        there = await read_taken_days(ctx, owner, {date})
    if order is not None:
        change["order"] = order
    given = {each: settings[snake_case(each)] for each in names_of(block_models.BlockSettings)}
    changed = {each: value for each, value in given.items() if value not in (None, cast("Any", before)[each])}
    block = await service.update(ctx, owner, workout_id, cast("block_models.BlockChange", {**change, **changed}))
    customer = await customers.get_visible_reference(ctx, customer_id)
    named = _describe_change(mcp.typed(before["name"]), mcp.typed(block["name"]))
    today = await customers.resolve_today(ctx, customer_id)
    moved = _describe_change(*(name_days([str(each["date"])], today) for each in (before, block)))
    place = _describe_change(str((block if "date" in change else before)["order"]), str(block["order"]))
    position = "" if order is None else f", position {place} of the day"
    for each in changed:
        said = [cast("Mapping[str, Any]", known)[each] for known in (before, block)]
        values = [
            "-" if value is None else _YES_NO[value] if isinstance(value, bool) else mcp.typed(str(value))
            for value in said
        ]
        position += f", {_SETTINGS.get(each, each).lower()} {_describe_change(*values)}"
    if ctx.change_id is None:
        about = f"the workout {named} of {mcp.typed(customer['name'])}"
        stays = f"Nothing changed: {about} is already on {moved}{position}."
        return Written(stays, {"workoutId": workout_id})
    return Written(
        f"Changed the workout {named} of {mcp.typed(customer['name'])}, {moved}{position}"
        f"{describe_taken_days(there, today)}.",
        {"workoutId": workout_id},
        mcp.find_reasons(
            today=await customers.get_local_date(ctx, customer_id),
            dates=[change["date"]] if "date" in change else [],
            done_work="date" in change and not has_nothing_done(before),
        ),
    )


@_change("Change a workout's items", takes=ItemEdits(), confirms=(mcp.Reason.DONE_WORK,), check=check_names)
async def update_workout_items(
    ctx: Context, customer_id: ObjectId, workout_id: ObjectId, changes: list[finding.ItemEditArguments]
) -> Written:
    """Add, change, move and remove items of a workout, all or nothing. A changed exercise may have only new sets (`4x8
    @62.5kg`), or `NAME: SETS | note`; without a note it stays. A label A) puts it into a superset, -) takes it out."""
    owner = ClientCalendar(customer_id)
    outcome = await apply_edits(ctx, owner, workout_id, changes)
    named = await _name_workouts(ctx, customer_id, [await service.get(ctx, owner, workout_id)])
    verb = "Nothing changed in" if ctx.change_id is None else "Changed items of"
    return Written(
        f"{verb} {named}: {'; '.join(outcome.sentences)}.{outcome.remarks}",
        {"workoutId": workout_id, "itemIds": outcome.added},
        mcp.find_reasons(done_work=outcome.changes_done_work),
    )


@_change("Remove a workout", takes=finding.WorkoutArgument(), deletes=True, confirms=(mcp.Reason.DONE_WORK,))
async def remove_workout(ctx: Context, customer_id: ObjectId, workout_id: ObjectId) -> Written:
    """Remove a workout with its items; with something done only after confirmation."""
    owner = ClientCalendar(customer_id)
    block = await service.get(ctx, owner, workout_id)
    await service.delete(ctx, owner, workout_id)
    return Written(
        f"Removed {await _name_workouts(ctx, customer_id, [block])}.",
        {"workoutId": workout_id},
        mcp.find_reasons(done_work=not has_nothing_done(block)),
    )


# --- Training maximums ------------------------------------------------------------------------------------------------


training_max_tools = Tools()


class TrainingMaxToSet(CustomerArgument):
    """The exercise, and its training maximum."""

    exercise = Text(required=True, metadata={"description": "Its name or _id."})
    value = Number(
        minimum=0.1, maximum=MAX_LOAD, required=True, metadata={"description": "The load, in the client's unit."}
    )


@training_max_tools.tool(
    "Set a training maximum",
    access=coach(CUSTOMERS.EDIT),
    takes=TrainingMaxToSet(),
    writes=True,
    locks="customer",
    destructive=True,
    idempotent=True,
    check=check_names,
)
async def set_training_max(ctx: Context, customer_id: ObjectId, exercise: str, value: float) -> Written:
    """Set the load to which a client's planned percentages (`@70%`) of an exercise refer, as in 5/3/1; without it they
    refer to the estimated 1RM."""
    [exercise_id] = await resolve_exercises(ctx, {"exercise": exercise}, customer_id)
    unit, stored_unit = ctx.caller.load_unit, ctx.caller.company.load_unit
    before = (await training_maxes.load_reference_loads(ctx, customer_id, [exercise_id])).get(exercise_id)
    base = (await load_percent_bases(ctx, customer_id, [exercise_id])).get(exercise_id)
    stored = convert_entered_load(value, unit, stored_unit)
    is_set = before is not None and before["trainingMax"] == stored
    if not is_set:
        await training_maxes.set_by_coach(ctx, customer_id, exercise_id, stored)
    customer = await customers.get_visible_reference(ctx, customer_id)
    name = (await exercises.get_names(ctx, [exercise_id]))[exercise_id]["name"]
    raised = (
        [] if base is None else [mcp.RaisedLoad(customer_id, exercise_id, base.load_of(100), stored, unit="maximum")]
    )
    about = f"the training maximum of {typed(name)} of {typed(customer['name'])}"
    shown = format_figure(value, f" {unit}")
    was = None if before is None else load_of(before)
    old = "none" if was is None else format_figure(convert_stored_load(was, stored_unit, unit), f" {unit}")
    estimated = " (estimated)" if before is not None and was is not None and before["trainingMax"] is None else ""
    line = f"Set {about}: {old}{estimated} → {shown}."
    return Written(
        f"{f'Nothing changed: {about} is {shown} already.' if is_set else line}{describe_readings([exercise], [name])}",
        {"customerId": customer_id, "exerciseId": exercise_id},
        raised=raised,
        details={"value": value},
    )
