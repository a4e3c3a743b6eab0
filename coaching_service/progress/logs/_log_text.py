"""Reading what was done in a workout from text: a line for each item, such as `Back squat: 8, 8, 7 @60kg | easy`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from coaching_service.core.database.context import Context
from coaching_service.core.errors import invalid_field
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import typed_line
from coaching_service.core.mcp.results import typed
from coaching_service.core.text import normalize, split_lines
from coaching_service.progress.logs.own_changes import stored_log
from coaching_service.progress.logs.schemas import PAIN_LENGTH
from coaching_service.training.set_text import SetTextError, parse_done, read_done_sets
from coaching_service.training.workout_text import lines
from coaching_service.training.workout_text.writing import find_item, name_of, write_done_of, write_result_of
from coaching_service.training.workouts.blocks.load_conversion import show_loads, store_loads
from coaching_service.training.workouts.items.models import REASON_LENGTH, CircuitExercise, ItemLog, WorkItem
from coaching_service.training.workouts.sets import CustomerSet

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
            item_text = texts.setdefault(target.item["_id"], _unchanged(target.item))
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


def _unchanged(item: WorkItem) -> ItemText:
    """Return the log with which an item of a text begins: completed, with the texts that it has."""
    log: ItemLog = {**stored_log(item), "isCompleted": True, "skipped": None}
    if item["type"] == "EXERCISE":
        log["customerSets"] = []
    return ItemText(item, log)


def _read_done(ctx: Context, item_text: ItemText, target: NamedWork, text: str, number: int) -> None:
    load_unit = ctx.caller.load_unit
    word = text.lower().removeprefix("done:").strip()
    log, item = item_text.log, target.item
    if word in ("done", "skipped") and target.entry is not None:
        message = f"expected its sets, as in: 10, 10, - skipped; {word} alone is only for all of {typed(name_of(item))}"
        raise lines.error_in_line(_PATH, number, message)
    if word in ("done", "skipped"):
        log["isCompleted"] = word == "done"
        log["skipped"] = None if log["isCompleted"] else {"reason": None}
    elif item["type"] == "EXERCISE":
        planned = item["exerciseSets"]
        done = _parse_sets(text, number, lambda sets: read_done_sets(sets, load_unit, planned))
        log["customerSets"] = store_loads(done, ctx)
    elif item["type"] == "CIRCUIT" and target.entry is not None:
        exercise_id, per_round = target.entry["exerciseId"], len(target.entry["sets"])
        done = _parse_sets(text, number, lambda sets: parse_done(sets, load_unit, exercise_id, per_round))
        others = [each for each in log["customerSets"] if each["exerciseId"] != exercise_id]
        log["customerSets"] = [*others, *store_loads(done, ctx)]
    else:
        raise lines.error_in_line(_PATH, number, "expected done or skipped: this item has no sets")


def _parse_sets(text: str, number: int, parse: Callable[[str], list[CustomerSet]]) -> list[CustomerSet]:
    try:
        return parse(text[len("done:") :] if text.lower().startswith("done:") else text)
    except SetTextError as error:
        raise lines.error_in_line(_PATH, number, f"in the sets, {error}") from None


def _read_comments(log: ItemLog, segments: Sequence[str], number: int) -> None:
    skip = log.get("skipped")
    for kind, text in map(_read_segment, segments):
        is_reason = not kind and skip is not None
        longest = PAIN_LENGTH if kind == "pain" else REASON_LENGTH if is_reason else _MAX_COMMENT
        if len(text) > longest:
            raise lines.error_in_line(_PATH, number, f"expected at most {longest} characters after |")
        if kind == "pain":
            log["pain"] = text or None
        elif is_reason:
            log["skipped"] = {"reason": text or None}
        else:
            log["comment"] = text or None


def _read_segment(segment: str) -> tuple[str, str]:
    """Return what a text after `|` is: `pain`, `comment` (in results, of a skipped item) or nothing, and its text."""
    if segment.lower().startswith(("pain ", "pain:")):
        return "pain", lines.unmark(segment[len("pain ") :])
    if segment.startswith("comment «"):
        return "comment", lines.unmark(segment.removeprefix("comment "))
    return "", lines.unmark(segment)


def describe_logged(ctx: Context, item_text: ItemText, stored: WorkItem) -> list[str]:
    """Return a line for each item or exercise that a text names: what is logged now, and what was logged before."""
    unit = ctx.caller.load_unit
    shown = show_loads(stored, ctx, unit)
    return [
        _describe(replace(target, item=show_loads(target.item, ctx, unit)), shown, unit) for target in item_text.targets
    ]


def _describe(target: NamedWork, stored: WorkItem, load_unit: str) -> str:
    before = write_done_of(target.item, load_unit, target.entry)
    words = [typed(target.name), *([before, "→"] if before else []), write_result_of(stored, load_unit, target.entry)]
    done, planned = _count_sets(stored, target.entry)
    if done < planned:
        words.append(f"({done} of {planned} planned sets)")
    # All of them where the side before shows them: what stays must not look as if it were removed.
    previous = {} if before and target.entry is None else _comments_of(target.item)
    shown = {kind: text for kind, text in _comments_of(stored).items() if text and text != previous.get(kind)}
    words += [f"| {kind} {typed_line(text, _MAX_SHOWN)}" for kind, text in shown.items()]
    return " ".join(words)


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
