"""The MCP tool for what was done in a workout: a line for each item, such as `Back squat: 8, 8, 7 @60kg | easy`."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from marshmallow import ValidationError, validates_schema

from coaching_service.core import mcp
from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.dates import name_days
from coaching_service.core.errors import invalid_field
from coaching_service.core.fields import arguments_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import CustomerArgument, Tools, Written, find_reasons, optional, typed, typed_line
from coaching_service.core.text import normalize, snake_case, split_lines
from coaching_service.core.validation import Identifier, SearchedDate, Text
from coaching_service.library.exercises import name_resolution
from coaching_service.people.customers import service as customers
from coaching_service.progress.logs import service as logs_service
from coaching_service.progress.logs.schemas import PAIN_LENGTH
from coaching_service.training.set_text import parse_done, read_done_sets
from coaching_service.training.workout_text import lines
from coaching_service.training.workout_text.finding import MAX_TEXT, describe_readings
from coaching_service.training.workout_text.lines import find_item, name_of, write_done_of, write_result_of
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.items import show_loads, store_loads
from coaching_service.training.workouts.blocks.models import SESSION_FIELDS, Block, BlockLog, SessionFields
from coaching_service.training.workouts.blocks.service import ClientCalendar, regular_blocks
from coaching_service.training.workouts.items.models import REASON_LENGTH, CircuitExercise, ItemLog, WorkItem
from coaching_service.training.workouts.items.service import is_recorded, planned_exercise_ids

_PATH = "text"
_EXAMPLE = "Back squat: 8, 8, 7 @60kg | comment"
_MAX_COMMENT, _MAX_SHOWN = 10_000, 120


@dataclass
class ItemText:
    """What a text states about an item: its log, and what the lines about it name, with the names that they have."""

    item: WorkItem
    log: ItemLog
    targets: list[NamedWork] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class NamedWork:
    """What a line may name: an item, or an exercise of a circuit."""

    name: str
    item: WorkItem
    entry: CircuitExercise | None = None

    @property
    def exercise_id(self) -> ObjectId | None:
        """The exercise that is named, if it is one."""
        if self.entry is not None:
            return self.entry["exerciseId"]
        return self.item["exerciseId"] if self.item["type"] == "EXERCISE" else None


def list_other_names(text: str, items: Sequence[WorkItem]) -> list[str]:
    """Return the names in a text that no item of the workout has: they may be other names of its exercises."""
    named = list(_list_names(items))
    names = []
    for number, line in _number_lines(text):
        with lines.Problems().collect():  # parse_log reports them
            names.append(_split_line(number, line, named)[1])
    return [name for name in dict.fromkeys(names) if name and not any(_is_named(each, name) for each in named)]


def parse_log(
    ctx: Context, text: str, items: Sequence[WorkItem], other_names: Mapping[str, ObjectId]
) -> list[ItemText]:
    """Return the logs that a text describes, one for each item that it names, in order.

    A line is `NAME: SETS`, `NAME: done` or `NAME: skipped`, optionally followed by `| comment` (of a skipped item: the
    reason) and `| pain DESCRIPTION`. The name is the name of an item of the workout, or of an exercise of one of its
    circuits; `#` and the identifier of an item may be before or instead of it. `other_names` has the exercises of other
    names. Raises TextError for all lines that cannot be read, with what was expected, and InvalidFields without a line.
    """
    named = list(_list_names(items))
    texts: dict[ObjectId, ItemText] = {}
    problems = lines.Problems()
    for number, line in _number_lines(text):
        with problems.collect():
            short_id, name, content = _split_line(number, line, named)
            only = find_item(items, short_id) if short_id else None
            if short_id and only is None:
                raise lines.error_in_line(_PATH, number, "the workout has no item with this identifier")
            target = _find(named, only, name, other_names.get(name), number)
            if (item_text := texts.get(target.item["_id"])) is None:  # completed, with the texts that it has
                log: ItemLog = {**logs_service.stored_log(target.item), "isCompleted": True, "skipped": None}
                if target.item["type"] == "EXERCISE":
                    log["customerSets"] = []
                item_text = texts[target.item["_id"]] = ItemText(target.item, log)
            segments = lines.split_segments(content)
            _read_done(ctx, item_text, target, segments[0], number)
            _read_comments(item_text.log, segments[1:], number)
            item_text.targets.append(target)
            item_text.names.append(name or target.name)
    problems.raise_any()
    if not texts:
        raise invalid_field(_PATH, f"must have a line for each item, as in: {_EXAMPLE}", code="INVALID")
    return list(texts.values())


def _number_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not empty, with their numbers."""
    return ((number, line.strip()) for number, line in enumerate(split_lines(text), 1) if line.strip())


def _split_line(number: int, line: str, named: Sequence[NamedWork]) -> tuple[str, str, str]:
    """Return the identifier of an item or an empty text, the name, and what follows it. Raises TextError.

    A letter before the name is a label, unless it is part of the name of something in the workout.
    """
    short_id = lines.ITEM_ID.match(line)
    content = (line[short_id.end() :] if short_id else line).removeprefix("- ")
    label = lines.LABEL.match(content)
    parts = lines.split_name(content)
    if label and (parts is None or not any(normalize(each.name) == normalize(parts[0]) for each in named)):
        parts = lines.split_name(content[label.end() :])
    if parts is None:
        raise lines.error_in_line(_PATH, number, f"expected NAME: SETS, as in: {_EXAMPLE}")
    return short_id[1] if short_id else "", parts[0], parts[2]


def _list_names(items: Sequence[WorkItem]) -> Iterator[NamedWork]:
    for item in items:
        yield NamedWork(name_of(item), item)
        if item["type"] == "CIRCUIT":
            for entry in item["circuitExercises"]:
                yield NamedWork(entry["exercise"]["name"], item, entry)


def _is_named(named: NamedWork, name: str) -> bool:
    return set(normalize(name).split()) <= set(normalize(named.name).split())


def _find(
    named: Sequence[NamedWork], only: WorkItem | None, name: str, exercise_id: ObjectId | None, number: int
) -> NamedWork:
    """Return what a line names: an exact name, else the only one that has all its words, or is this exercise."""
    candidates = [each for each in named if only is None or each.item is only]
    if only is not None and not name:
        return candidates[0]
    checks: Sequence[Callable[[NamedWork], bool]] = (
        lambda each: normalize(each.name) == normalize(name),
        lambda each: _is_named(each, name),
        lambda each: exercise_id is not None and each.exercise_id == exercise_id,
    )
    for check in checks:
        matching = [each for each in candidates if check(each)]
        if len(matching) == 1:
            return matching[0]
        if matching:
            message = "several items have this name; write # and the identifier of the item before it"
            raise lines.error_in_line(_PATH, number, message)
    known = ", ".join(typed(each.name) for each in named) or "none"
    raise lines.error_in_line(_PATH, number, f"the workout has no such item; its items: {known}")


def _read_done(ctx: Context, item_text: ItemText, target: NamedWork, text: str, number: int) -> None:
    load_unit, sets = ctx.caller.load_unit, text[len("done:") :] if text.lower().startswith("done:") else text
    word = text.lower().removeprefix("done:").strip()
    log, item = item_text.log, target.item
    if word in ("done", "skipped") and target.entry is not None:
        message = f"expected its sets, as in: 10, 10, - skipped; {word} alone is only for all of {typed(name_of(item))}"
        raise lines.error_in_line(_PATH, number, message)
    if word in ("done", "skipped"):
        log["isCompleted"] = word == "done"
        log["skipped"] = None if log["isCompleted"] else {"reason": None}
    elif item["type"] == "EXERCISE":
        with lines.reading_sets(_PATH, number):
            log["customerSets"] = store_loads(read_done_sets(sets, load_unit, item["exerciseSets"]), ctx)
    elif item["type"] == "CIRCUIT" and target.entry is not None:
        exercise_id, per_round = target.entry["exerciseId"], len(target.entry["sets"])
        with lines.reading_sets(_PATH, number):
            done = parse_done(sets, load_unit, exercise_id, per_round)
        others = [each for each in log["customerSets"] if each["exerciseId"] != exercise_id]
        log["customerSets"] = [*others, *store_loads(done, ctx)]
    else:
        raise lines.error_in_line(_PATH, number, "expected done or skipped: this item has no sets")


def _read_comments(log: ItemLog, segments: Sequence[str], number: int) -> None:
    """Read the texts after `|` into a log: `pain`, `comment` (as results have it), or the one or the other."""
    is_skipped = log.get("skipped") is not None
    for segment in segments:
        is_pain, is_comment = segment.lower().startswith(("pain ", "pain:")), segment.startswith("comment «")
        is_reason = is_skipped and not is_pain and not is_comment
        text = lines.unmark(segment[len("pain ") :] if is_pain else segment[len("comment ") * is_comment :])
        longest = PAIN_LENGTH if is_pain else REASON_LENGTH if is_reason else _MAX_COMMENT
        if len(text) > longest:
            raise lines.error_in_line(_PATH, number, f"expected at most {longest} characters after |")
        if is_pain:
            log["pain"] = text or None
        elif is_reason:
            log["skipped"] = {"reason": text or None}
        else:
            log["comment"] = text or None


def describe_logged(ctx: Context, item_text: ItemText, stored: WorkItem) -> list[str]:
    """Return a line for each item or exercise that a text names: what is logged now, and what was logged before."""
    unit, described = ctx.caller.load_unit, []
    logged = show_loads(stored, ctx, unit)
    for target in item_text.targets:
        earlier, entry = show_loads(target.item, ctx, unit), target.entry
        before = write_done_of(earlier, unit, entry)
        words = [typed(target.name), *([before, "→"] if before else []), write_result_of(logged, unit, entry)]
        done, planned = _count_sets(logged, entry)
        if done < planned:
            words.append(f"({done} of {planned} planned sets)")
        # All of them where the side before shows them: what stays must not look as if it were removed.
        previous = {} if before and entry is None else _comments_of(earlier)
        shown = {kind: text for kind, text in _comments_of(logged).items() if text and text != previous.get(kind)}
        words += [f"| {kind} {typed_line(text, _MAX_SHOWN)}" for kind, text in shown.items()]
        described.append(" ".join(words))
    return described


def _comments_of(item: WorkItem) -> dict[str, str | None]:
    skip = item.get("skipped")
    return {"reason": skip["reason"] if skip else None, "comment": item["comment"], "pain": item.get("pain")}


def _count_sets(item: WorkItem, entry: CircuitExercise | None) -> tuple[int, int]:
    """Return how many sets of an exercise were done, and how many are planned: of its working sets, or of all."""
    if item["type"] == "EXERCISE" and item["customerSets"]:
        done = [each for each in item["customerSets"] if each["isCompleted"]]
        working = {each["index"] for each in item["exerciseSets"] if not each["isWarmup"]}
        planned = len(working) if all(each["index"] in working for each in done) else len(item["exerciseSets"])
        return len(done), planned
    if item["type"] == "CIRCUIT" and entry is not None:
        of_entry = [each for each in item["customerSets"] if each["exerciseId"] == entry["exerciseId"]]
        return sum(each["isCompleted"] for each in of_entry), (item["rounds"] or 0) * len(entry["sets"])
    return 0, 0


# --- MCP tools for what was done in a workout -------------------------------------------------------------------------


tools = Tools()
_MAX_NAMES = 50
_NEAR_DAYS = 7


class WorkoutLog(CustomerArgument):
    """What was done in a workout."""

    workoutId = Identifier(**optional("From get_workouts."))
    date = SearchedDate(**optional("Instead: the workout of this day."))
    text = Text(max_length=MAX_TEXT, **optional("A line for each item done: NAME: SETS | comment."))

    class Meta(CustomerArgument.Meta):
        include = arguments_of(SessionFields)

    @validates_schema(skip_on_field_errors=False)
    def names_one_workout(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require a workout or a date."""
        if {"workoutId", "date"} <= data.keys() and (data["workoutId"] is None) == (data["date"] is None):
            is_missing = data["date"] is None
            raise ValidationError(
                "is required, or date" if is_missing else "must not be combined with date", "workoutId"
            )

    @validates_schema(skip_on_field_errors=False)
    def logs_something(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require something to log."""
        if all(data.get(name, ...) is None for name in ("text", *SESSION_FIELDS)):
            raise ValidationError("is required, or durationMinutes, sessionRpe, feeling or comment", "text")


async def _check(ctx: Context, valid: Mapping[str, Any]) -> None:
    """Raise InvalidFields for the lines and the date among the valid arguments; NotFound, Forbidden."""
    if (customer_id := valid.get("customerId")) is None:
        return
    workout_id, owner = valid.get("workoutId"), ClientCalendar(customer_id)
    if workout_id is None and valid.get("date") is not None:
        workout_id = await _find_workout(ctx, owner, str(valid["date"]))
    if workout_id is not None:
        await _read_logs(ctx, valid.get("text") or "", await workouts.get(ctx, owner, workout_id))


@tools.tool(
    "Log a workout",
    access=coach(CUSTOMERS.EDIT),
    takes=WorkoutLog(),
    writes=True,
    locks="customer",
    destructive=True,
    confirms=(mcp.Reason.DONE_WORK,),
    check=_check,
)
async def log_workout(
    ctx: Context,
    customer_id: ObjectId,
    workout_id: ObjectId | None,
    date: str | None,
    text: str | None,
    **session: Any,
) -> Written:
    """Record what a client did of a workout: `8, 8, 7 @60kg` is three sets, a load counts for the sets before it; also
    `30s`, `400m`, `RPE8`, `RIR2`. `NAME: done` and `NAME: skipped | reason` are without sets; `| pain KNEE` records
    pain. NAME is an item of the workout, or an exercise of its circuit, with its sets round by round. Items not named
    stay; an existing log is replaced after confirmation."""
    if workout_id is None:
        find = partial(_find_workout, ctx, ClientCalendar(customer_id), str(date))
        workout_id = await ctx.resolve(f"workout of {customer_id} on {date}", find)
    block = await workouts.get(ctx, ClientCalendar(customer_id), workout_id)
    # After tomorrow: in no time zone was it done.
    if str(block["date"]) > str(await customers.get_local_date(ctx, customer_id) + datetime.timedelta(days=1)):
        message = f"is a workout of {block['date']}, which is in the future; move it with update_workout first"
        raise invalid_field("workoutId", message, code="INVALID")
    before: Mapping[str, Any] = {**block}
    logs = await _read_logs(ctx, text, block) if text is not None else []
    sentences: list[str] = []
    for logged in logs:
        item = await logs_service.log_item(ctx, customer_id, workout_id, logged.item["_id"], logged.log)
        sentences += describe_logged(ctx, logged, item)
    names = [name for logged in logs for name in logged.names]
    targets = [target.name for logged in logs for target in logged.targets]
    given = {name: session[snake_case(name)] for name in SESSION_FIELDS if session[snake_case(name)] is not None}
    if given:
        log = cast("BlockLog", {name: given.get(name, before[name]) for name in SESSION_FIELDS})
        await logs_service.log_block(ctx, customer_id, workout_id, log)
    customer = await customers.get_visible_reference(ctx, customer_id)
    replaced = any(before[name] not in (None, "") for name in given)
    words = {"durationMinutes": "{:g} min", "sessionRpe": "session RPE {:g}", "feeling": "feeling {:g} of 5"}
    for name, value in given.items():
        states = [value] if before[name] in (None, "") else [before[name], value]
        described = [words[name].format(each) if name in words else typed_line(each, _MAX_SHOWN) for each in states]
        sentences.append(" → ".join(described))
    day = name_days([str(block["date"])], await customers.resolve_today(ctx, customer_id))
    return Written(
        f"Logged {typed(block['name'])} of {typed(customer['name'])} on {day}: {'; '.join(sentences)}."
        f"{describe_readings(names, targets)}",
        {"workoutId": workout_id},
        find_reasons(done_work=replaced or any(is_recorded(logged.item) for logged in logs)),
    )


async def _read_logs(ctx: Context, text: str, block: Block) -> list[ItemText]:
    """Return the logs that a text describes; exercises may also have other names that mean them."""
    items = block["items"]

    async def list_planned(_: Context) -> Sequence[ObjectId]:
        return [exercise_id for item in items for exercise_id in planned_exercise_ids(item)]

    names = list_other_names(text, items)[:_MAX_NAMES]
    known = name_resolution.KnownExercises(block["_id"], list_planned, loosely=True)
    resolved = await name_resolution.resolve_names(ctx, names, known)
    other_names = {about["name"]: about["match"]["_id"] for about in resolved if about["match"] is not None}
    return parse_log(ctx, text, items, other_names)


async def _find_workout(ctx: Context, owner: ClientCalendar, day: str) -> ObjectId:
    """Return the workout of a day. Raises InvalidFields, naming the workouts, if there is none or more than one."""
    first, last = (workouts.shift_date(day, days, "date") for days in (-_NEAR_DAYS, _NEAR_DAYS))
    near = [
        block for block in regular_blocks(await workouts.list_blocks(ctx, owner, first, last)) if not block["isRest"]
    ]
    of_day = [block for block in near if block["date"] == day]
    if len(of_day) == 1:
        return of_day[0]["_id"]
    named = ", ".join(f"{typed(block['name'])} on {block['date']} [{block['_id']}]" for block in of_day or near)
    if not of_day:
        raise invalid_field("date", f"has no workout; within a week of it: {named or 'none'}", code="NO_WORKOUT")
    message = f"has {len(of_day)} workouts: {named}. Send the workoutId of one of them"
    raise invalid_field("date", message, code="AMBIGUOUS")
