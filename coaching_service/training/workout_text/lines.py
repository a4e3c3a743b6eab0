"""Workouts as text, a line for each item: reading the items that lines describe, and writing them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, TypedDict, cast

from marshmallow import ValidationError

from coaching_service.core.errors import InvalidFields
from coaching_service.core.fields import Partial
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.mcp import Extent, typed
from coaching_service.core.text import split_lines
from coaching_service.core.validation import NAME_LENGTH, TEXT_LENGTH, Text
from coaching_service.library.exercises.models import ExerciseName
from coaching_service.people.availability import AvailabilityText
from coaching_service.training.set_text import (
    SetTextError,
    parse_planned,
    write_done,
    write_done_sets,
    write_number,
    write_planned,
)
from coaching_service.training.workouts.blocks.models import Block, BlockSettings
from coaching_service.training.workouts.blocks.service import describe_settings
from coaching_service.training.workouts.items import models as item_models
from coaching_service.training.workouts.items.models import ItemInput, ScheduledTime, WorkItem
from coaching_service.training.workouts.items.service import MAX_ITEMS
from coaching_service.training.workouts.sets import CustomerSet, PlannedSet


@dataclass(frozen=True)
class Problem:
    """What is wrong with a line of the text in the field `path`; lines count from 1, None if the text is a single one.

    `description` says it in a person's words. `suggestions`: names of the library to write in place of `name`.
    """

    path: str
    line: int | None
    message: str
    description: str
    code: str = "INVALID"
    name: str = ""
    suggestions: Sequence[str] = ()


class TextError(InvalidFields):
    """Lines of texts cannot be read, or name nothing."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        places = ["" if each.line is None else f"line {each.line}: " for each in problems]
        super().__init__(
            [
                {"field": each.path, "code": each.code, "message": place + each.message}
                for place, each in zip(places, problems, strict=True)
            ]
        )
        self.problems = list(problems)


@dataclass
class Problems:
    """The problems of all lines, so that they are reported at once."""

    entries: list[Problem] = field(default_factory=list)

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Remember the problems that the block raises."""
        try:
            yield
        except TextError as error:
            self.entries += error.problems

    def raise_any(self) -> None:
        """Raise TextError if there are problems, in the order of the lines."""
        if self.entries:
            paths = list(dict.fromkeys(each.path for each in self.entries))
            raise TextError(sorted(self.entries, key=lambda each: (paths.index(each.path), each.line or 0)))


Kind = Literal["exercise", "form", "metric set"]

EXAMPLE = "A1) Back squat: 4x8-10 @60kg rest 90s RPE8 | note"
_INCOMPLETE = f"Write the exercise, a colon and its sets, as in {EXAMPLE}"
_TIME = "Write the time as in reminder 08:30: Drink water"
ITEM_ID = re.compile(r"#([0-9a-f]{6,24})(?:\s+|(?=:))", re.ASCII | re.IGNORECASE)
# A letter alone is a label up to H: names of exercises begin with later ones (L sit, T bar row, Z press).
LABEL = re.compile(r"(?:([A-Za-z])\d{0,2}[).:]\s*|([A-Z]\d{1,2}|[A-H])\s+|(-)\)\s*)(?=\S)", re.ASCII)
_NAME = re.compile(r"«(?P<marked>[^»]*)»|(?P<plain>[^:|\[«]*)")
_ID = re.compile(r"\s*\[([0-9a-fA-F]{24})\]", re.ASCII)
_CIRCUIT = re.compile(r"circuit\b\s*", re.IGNORECASE)
_ROUNDS = re.compile(r"\s*,?\s*(\d{1,4})\s*rounds?\s*:?\s*$|\s*x\s*(\d{1,4})\s*:?\s*$", re.IGNORECASE)
_OTHER = re.compile(r"(task|form|metrics)\s*:\s*", re.IGNORECASE)
_REMINDER = re.compile(r"reminder\s+([0-9TW:.,Z+-]+?(?: [0-9:.,Z+-]+?)?)\s*:\s+", re.IGNORECASE)
_ENTRY = re.compile(r"[-*•]\s+")
_MAX_CIRCUIT_EXERCISES = 50
_SCHEDULED_TIME = ScheduledTime()
_NAME_FIELD = Text()
_COLON = re.compile(r"\s*:")
_SEGMENT_PART = re.compile(r'«[^»]*»?|tempo\s*"(?:[^"\\]|\\.)*"|.', re.IGNORECASE | re.DOTALL)
_SETS = re.compile(r"(#\d+\s*)?\d+\s*[xX×]", re.ASCII)


@dataclass
class Mention:
    """A name in a text: `target[key]` becomes the identifier of what it names. `line` counts from 1.

    `whole` is the name with the letter before it, which is a label unless an exercise has this name: A skip.
    """

    kind: Kind
    field: str
    line: int
    name: str
    target: dict[str, Any]
    key: str
    whole: str | None = None


@dataclass
class ParsedItem:
    """An item that a text describes.

    `superset`: the letter of its label, `-` for none, or None without a label.
    """

    item: dict[str, Any]
    line: int
    superset: str | None = None

    @property
    def details(self) -> ItemInput:
        """The item as coaches send it; its identifiers are there once the mentions are resolved."""
        return cast("ItemInput", self.item)


@dataclass
class ParsedWorkout:
    """The items of a text in order, the names in it that are still to be resolved, and lines that cannot be read."""

    items: list[ParsedItem] = field(default_factory=list)
    mentions: list[Mention] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def parse_items(text: str, load_unit: str, path: str) -> ParsedWorkout:
    """Return the items of a text, one for each line; the lines of a circuit's exercises begin with `- `.

    Items whose labels have the same letter (`A1)`, `A2)`) are a superset. `path` is the field of the request that has
    the text.
    """
    parser, problems = _Parser(load_unit, path), Problems()
    for number, line in enumerate(split_lines(text), 1):
        if line.strip():
            if parser.circuit is None or not _ENTRY.match(_without_id(line.strip())):
                with problems.collect():
                    parser.end_circuit()
            with problems.collect():
                parser.read_line(number, line.strip())
    with problems.collect():
        parser.end_circuit()
        if len(parser.workout.items) > MAX_ITEMS:
            raise error_in_line(path, parser.workout.items[MAX_ITEMS].line, f"expected at most {MAX_ITEMS} items")
    group_supersets(parser.workout.items)
    parser.workout.problems = problems.entries
    return parser.workout


def describe_lone_labels(workouts: Sequence[ParsedWorkout]) -> str:
    """Return a sentence about labels that make no superset, with a space before it; empty if there are none."""
    letters = {letter for workout in workouts for letter, count in _count_labels(workout.items).items() if count == 1}
    if not letters:
        return ""
    return f" No superset: no other line of the workout has the letter {' or '.join(sorted(letters))}."


def error_in_line(path: str, line: int, message: str, description: str | None = None) -> TextError:
    """Return the error for a line of a text, counted from 1; `description` replaces the message for people."""
    return TextError([Problem(path, line, message, description or message.replace("expected ", "Write ", 1))])


def require_name(path: str, line: int, name: str) -> None:
    """Raise TextError for a name in a line that could not be sent as the field of a request."""
    try:
        _NAME_FIELD.deserialize(name)
    except ValidationError:
        expected = f"expected a name of 1 to {NAME_LENGTH} characters, without control characters"
        raise error_in_line(path, line, expected) from None


def read_planned(text: str, load_unit: str, path: str, line: int | None = None) -> list[PlannedSet]:
    """Return the planned sets of the text in the field `path`, or in a `line` of it. Raises TextError."""
    with reading_sets(path, line):
        return parse_planned(text, load_unit)


@contextmanager
def reading_sets(path: str, line: int | None = None) -> Iterator[None]:
    """Raise TextError if the block cannot read the sets in the field `path`, or in a `line` of it."""
    try:
        yield
    except SetTextError as error:
        message = str(error) if line is None else f"in the sets, {error}"
        raise TextError([Problem(path, line, message, error.problem)]) from None


def is_sets(text: str) -> bool:
    """Return whether a text begins with planned sets rather than with a name."""
    return _SETS.match(text.strip()) is not None


def unmark(text: str) -> str:
    """Return a text without the marks «» that results have around what people typed, and with its line breaks."""
    stripped = text.strip()
    if stripped.startswith("«") and stripped.endswith("»"):
        return stripped[1:-1].replace("\\n", "\n").strip()
    return stripped


def split_note(text: str) -> tuple[str, str | None]:
    """Return what is before the first `|` outside of marks and tempos, and the note after it; None without one."""
    first, *others = split_segments(text, 1)
    return first, unmark(others[0]) if others else None


def split_segments(text: str, limit: int = -1) -> list[str]:
    """Return the parts of a text between `|` outside of marks and quoted tempos; `limit`: at most so many splits."""
    segments = [""]
    for part in _SEGMENT_PART.findall(text):
        if part == "|" and len(segments) != limit + 1:
            segments.append("")
        else:
            segments[-1] += part
    return [segment.strip() for segment in segments]


def split_name(text: str) -> tuple[str, ObjectId | None, str] | None:
    """Return the name at the beginning of a line, the identifier `[id]` after it, and what follows the colon."""
    if (match := _NAME.match(text)) is None:
        return None
    position = match.end()
    if (identifier := _ID.match(text, position)) is not None:
        position = identifier.end()
    if (colon := _COLON.match(text, position)) is None:
        return None
    name = match["marked"] if match["marked"] is not None else match["plain"]
    return name.strip(), parse_id(identifier[1].lower()) if identifier else None, text[colon.end() :].strip()


class _Parser:
    def __init__(self, load_unit: str, path: str) -> None:
        self.load_unit, self.path = load_unit, path
        self.workout = ParsedWorkout()
        self.circuit: ParsedItem | None = None

    def read_line(self, number: int, line: str) -> None:
        """Read one line that is not empty. Raises TextError."""
        line = _without_id(line)
        if self.circuit is not None and (entry := _ENTRY.match(line)):
            exercise: dict[str, Any] = {}
            self.circuit.item["circuitExercises"].append(exercise)
            self._read_exercise(number, line[entry.end() :], exercise, "sets", "instructions")
            return
        readers = ((_CIRCUIT, self._read_circuit), (_REMINDER, self._read_reminder), (_OTHER, self._read_other))
        for pattern, read in readers:
            if match := pattern.match(line):
                read(number, match, line[match.end() :])
                return
        label = LABEL.match(line)
        superset = label and (label[1] or label[2] or label[3])[0].upper()
        content: dict[str, Any] = {"type": "EXERCISE", "supersetId": None}
        self._add(number, content, superset or None)
        known = len(self.workout.mentions)
        text = line[label.end() :] if label else line
        self._read_exercise(number, text, content, "exerciseSets", "exerciseInstructions")
        if label and len(label[2] or "") == 1 and len(self.workout.mentions) > known:
            self.workout.mentions[-1].whole = f"{label[2]} {self.workout.mentions[-1].name}"

    def end_circuit(self) -> None:
        """Check the circuit whose lines have ended. Raises TextError."""
        circuit, self.circuit = self.circuit, None
        if circuit is not None and not 1 <= len(circuit.item["circuitExercises"]) <= _MAX_CIRCUIT_EXERCISES:
            message = f"expected 1 to {_MAX_CIRCUIT_EXERCISES} exercises in the next lines, as in: - Burpee: 1x10"
            raise error_in_line(self.path, circuit.line, message)

    def _add(self, number: int, item: dict[str, Any], superset: str | None = None) -> ParsedItem:
        self.workout.items.append(ParsedItem(item, number, superset))
        return self.workout.items[-1]

    def _read_exercise(self, number: int, text: str, content: dict[str, Any], sets_field: str, note_field: str) -> None:
        """Read the name, sets and note of an exercise into `content`: the name first, so that all are checked."""
        if (parts := split_name(text)) is None:
            raise error_in_line(self.path, number, f"expected NAME: SETS, as in: {EXAMPLE}", _INCOMPLETE)
        name, exercise_id, rest_of_line = parts
        sets, note = split_note(rest_of_line)
        content["exerciseId"] = exercise_id
        if exercise_id is None:
            self._mention("exercise", number, name, content, "exerciseId")
        content[note_field] = self._checked_note(number, note)
        content[sets_field] = read_planned(sets, self.load_unit, self.path, number)

    def _read_circuit(self, number: int, _: re.Match[str], text: str) -> None:
        text = " ".join(text.split())  # many spaces would make the search slow
        rounds = _ROUNDS.search(text)
        name = unmark((text[: rounds.start()] if rounds else text).strip().rstrip(":"))
        count = int(rounds[1] or rounds[2]) if rounds else 1
        item: dict[str, Any] = {
            "type": "CIRCUIT",
            "circuitName": name or "Circuit",
            "rounds": count,
            "circuitExercises": [],
        }
        self.circuit = self._add(number, item)
        if not 1 <= count <= 1000:
            raise error_in_line(self.path, number, "expected 1 to 1000 rounds")
        require_name(self.path, number, item["circuitName"])

    def _read_reminder(self, number: int, match: re.Match[str], text: str) -> None:
        message = unmark(text)
        try:
            _SCHEDULED_TIME.deserialize(match[1])
        except ValidationError:
            raise error_in_line(self.path, number, "expected a time HH:MM, or a date-time in ISO 8601", _TIME) from None
        if not message or len(message) > 2_000:
            raise error_in_line(self.path, number, "expected a message, as in: reminder 08:30: Drink water")
        self._add(number, {"type": "REMINDER", "reminderFields": {"scheduledTime": match[1], "message": message}})

    def _read_other(self, number: int, match: re.Match[str], text: str) -> None:
        if (kind := match[1].lower()) == "task":
            title, note = split_note(text)
            title = unmark(title)
            require_name(self.path, number, title)
            fields = {"title": title, "description": self._checked_note(number, note)}
            self._add(number, {"type": "TASK", "taskFields": fields})
            return
        named = split_name(f"{text.strip()}:")
        name, identifier, _ = named if named is not None else (unmark(text), None, "")
        key, item_type, holder = (
            ("formId", "FORM", "form") if kind == "form" else ("metricsSetId", "METRICS", "metricsFields")
        )
        target: dict[str, Any] = {key: identifier}
        self._add(number, {"type": item_type, holder: target})
        if identifier is None:
            self._mention("form" if kind == "form" else "metric set", number, name, target, key)

    def _mention(self, kind: Kind, number: int, name: str, target: dict[str, Any], key: str) -> None:
        require_name(self.path, number, name)
        self.workout.mentions.append(Mention(kind, self.path, number, name, target, key))

    def _checked_note(self, number: int, note: str | None) -> str | None:
        if note is not None and len(note) > TEXT_LENGTH:
            raise error_in_line(self.path, number, f"expected a note of at most {TEXT_LENGTH} characters")
        return note or None


def _without_id(line: str) -> str:
    return ITEM_ID.sub("", line, count=1) if ITEM_ID.match(line) else line


def group_supersets(items: Sequence[ParsedItem]) -> None:
    """Put the items whose labels have the same letter into a superset; a letter on its own makes none."""
    counts = _count_labels(items)
    for parsed in items:
        if parsed.superset is not None:
            parsed.item["supersetId"] = parsed.superset if counts[parsed.superset] > 1 else None


def _count_labels(items: Sequence[ParsedItem]) -> Counter[str]:
    return Counter(parsed.superset for parsed in items if parsed.superset and parsed.superset != "-")


# --- Writing workouts as text: a line for each item, which can be read, and below it what was done --------------------


Detail = Literal["summary", "plan", "full"]
DETAILS = ("summary", "plan", "full")


class WorkoutText(TypedDict):
    """A workout as assistants read it; `settings` has those with a value, `items` is there only with `full`."""

    _id: ObjectId
    date: NotRequired[str]
    day: NotRequired[int]
    name: str
    settings: NotRequired[Partial[BlockSettings]]
    session: NotRequired[str]
    lines: NotRequired[str]
    items: NotRequired[list[dict[str, Any]]]


class WorkoutTexts(Extent):
    """A page of workouts."""

    docs: list[WorkoutText]


class CalendarTexts(WorkoutTexts):
    """A page of workouts of a client, and the period in which the client cannot train as planned, or the next one."""

    availability: NotRequired[AvailabilityText]


def quote(text: str) -> str:
    """Return a text that a person typed, marked as data, on one line."""
    return typed(text.replace("\n", "\\n"))


def write_header(block: Block) -> str:
    """Return the first line of a workout: its day, name, identifier, and what was reported of the session."""
    words = [block["date"] or f"day {block['day']}", quote(block["name"]), f"[{block['_id']}]", write_session(block)]
    return " ".join(filter(None, words))


def write_session(block: Block) -> str:
    """Return what the client did with a workout as a whole in words, such as its duration; empty for nothing."""
    words = describe_settings(block, quote)
    if block.get("createdBy") == "client":
        words.append("added by the client")
    if (planned := block.get("plannedDate")) is not None and planned != block["date"]:
        words.append(f"moved by the client from {planned}")
    if block["isCompleted"]:
        words.append("completed")
    if block["durationMinutes"] is not None:
        words.append(f"{write_number(block['durationMinutes'])}min")
    if block["sessionRpe"] is not None:
        words.append(f"session RPE{write_number(block['sessionRpe'])}")
    if block.get("feeling") is not None:
        words.append(f"feeling {block['feeling']} of 5")
    if block["comment"]:
        words.append(f"comment {quote(block['comment'])}")
    return " ".join(words)


def write_block(block: Block, load_unit: str, detail: Detail) -> str:
    """Return the lines of a workout's items; for `summary` one line with their names, and how many are completed."""
    items = block["items"]
    if detail == "summary":
        names = ", ".join(quote(name_of(item)) for item in items)
        completed = sum(item["isCompleted"] for item in items)
        done = f" ({completed} of {len(items)} completed)" if block["date"] else ""
        return f"{names}{done}" if items else "no items"
    ids = [str(item["_id"]) for item in items]  # their last characters, as many for all
    size = next(size for size in range(_SHORTEST, _FULL + 1) if len({each[-size:] for each in ids}) == len(set(ids)))
    labels = label_supersets(items)
    lines: list[str] = []
    for item in items:
        prefix = " ".join([f"#{str(item['_id'])[-size:]}", *([labels[item["_id"]]] if item["_id"] in labels else [])])
        planned, *more = write_item(item, load_unit)
        lines += [f"{prefix} {planned}", *more, *write_log(item, load_unit)]
        if detail == "full":
            lines += _write_more(item, load_unit)
    return "\n".join(lines)


def write_item(item: WorkItem, load_unit: str) -> list[str]:
    """Return the lines that describe what is planned in an item, as `lines` reads them."""
    if item["type"] == "EXERCISE":
        return [_write_exercise(item["exercise"], item["exerciseSets"], item["exerciseInstructions"], load_unit)]
    if item["type"] == "CIRCUIT":
        lines = [f"circuit {quote(item['circuitName'])}, {item['rounds']} rounds:"]
        for entry in item["circuitExercises"]:
            lines.append(f"- {_write_exercise(entry['exercise'], entry['sets'], entry['instructions'], load_unit)}")
            if done := _sets_of(item, entry):
                lines.append(f"  done: {write_done(done, load_unit, len(entry['sets']))}")
        return lines
    if item["type"] == "TASK":
        task = item["taskFields"]
        return [f"task: {quote(task['title'])}{_write_note(task['description'])}"]
    if item["type"] == "REMINDER":
        reminder = item["reminderFields"]
        return [f"reminder {reminder['scheduledTime']}: {quote(reminder['message'])}"]
    if item["type"] == "FORM":
        return [f"form: {quote(item['form']['name'])}"]
    return [f"metrics: {quote(item['metricsFields']['name'])}"]


def name_of(item: WorkItem) -> str:
    """Return the name of an item that has been presented."""
    if item["type"] == "EXERCISE":
        return item["exercise"]["name"]
    if item["type"] == "CIRCUIT":
        return item["circuitName"]
    if item["type"] == "TASK":
        return item["taskFields"]["title"]
    if item["type"] == "FORM":
        return item["form"]["name"]
    if item["type"] == "METRICS":
        return item["metricsFields"]["name"]
    return item["reminderFields"]["message"]


def name_with_sets(item: WorkItem, load_unit: str, *, notes: bool = False) -> str:
    """Return the name of an item that has been presented, with its planned sets or time as text, and with its notes."""

    def write_sets(name: str, sets: Sequence[PlannedSet], note: str | None) -> str:
        return f"{quote(name)} {write_planned(sets, load_unit)}{_write_note(note) if notes else ''}"

    if item["type"] == "EXERCISE":
        return write_sets(name_of(item), item["exerciseSets"], item["exerciseInstructions"])
    if item["type"] == "CIRCUIT":
        entries = item["circuitExercises"]
        sets = ", ".join(write_sets(each["exercise"]["name"], each["sets"], each["instructions"]) for each in entries)
        return f"{quote(name_of(item))}, {item['rounds']} rounds ({sets})"
    if item["type"] == "REMINDER":
        return f"{item['reminderFields']['scheduledTime']} {quote(name_of(item))}"
    note = item["taskFields"]["description"] if item["type"] == "TASK" and notes else None
    return f"{quote(name_of(item))}{_write_note(note)}"


def notes_of(item: WorkItem) -> list[str | None]:
    """Return the notes for the client in an item: of an exercise, a task, or the exercises of a circuit."""
    if item["type"] == "EXERCISE":
        return [item["exerciseInstructions"]]
    if item["type"] == "CIRCUIT":
        return [each["instructions"] for each in item["circuitExercises"]]
    return [item["taskFields"]["description"]] if item["type"] == "TASK" else []


# The last 6 characters of an identifier count the documents that a process creates.
_SHORTEST = 6
_FULL = 24


def find_item(items: Sequence[WorkItem], short_id: str) -> WorkItem | None:
    """Return the item whose identifier ends with `short_id` (6 to 24 characters); None if none or several do."""
    wanted = short_id.lower().removeprefix("#")
    matching = [item for item in items if len(wanted) >= _SHORTEST and str(item["_id"]).endswith(wanted)]
    return matching[0] if len(matching) == 1 else None


def superset_letters(items: Iterable[WorkItem]) -> dict[str, str]:
    """Return the letter by which a text names each superset of a workout, by the superset's identifier."""
    ids = (item["supersetId"] for item in items if item["type"] == "EXERCISE" and item["supersetId"])
    return {superset: chr(ord("A") + position % 26) for position, superset in enumerate(dict.fromkeys(ids))}


def label_supersets(items: Sequence[WorkItem]) -> dict[ObjectId, str]:
    """Return the labels (`A1)`, `A2)`, `B1)`) of the exercises in supersets, by item."""
    letters = superset_letters(items)
    counts = dict.fromkeys(letters, 0)
    labels = {}
    for item in items:
        if item["type"] == "EXERCISE" and item["supersetId"]:
            counts[item["supersetId"]] += 1
            labels[item["_id"]] = f"{letters[item['supersetId']]}{counts[item['supersetId']]})"
    return labels


def _write_exercise(exercise: ExerciseName, sets: Sequence[PlannedSet], note: str | None, load_unit: str) -> str:
    return f"{quote(exercise['name'])}: {write_planned(sets, load_unit)}{_write_note(note)}"


def _write_note(note: str | None) -> str:
    return f" | {quote(note)}" if note else ""


def _sets_of(item: item_models.CircuitItem, entry: item_models.CircuitExercise) -> list[CustomerSet]:
    """Return the done sets of an exercise of a circuit, round by round."""
    done = [each for each in item["customerSets"] if each["exerciseId"] == entry["exerciseId"]]
    return sorted(done, key=lambda each: (each["round"] or 0, each["index"]))


def write_done_of(item: WorkItem, load_unit: str, entry: item_models.CircuitExercise | None = None) -> str:
    """Return what was done for an item, with its comments, or of an exercise of a circuit; empty for nothing."""
    if entry is not None:
        return write_result_of(item, load_unit, entry)
    return "".join(write_log(item, load_unit)).strip().removeprefix("done: ")


def write_result_of(item: WorkItem, load_unit: str, entry: item_models.CircuitExercise | None = None) -> str:
    """Return what was done for an item without its comments, or of an exercise of a circuit."""
    if item["type"] == "CIRCUIT" and entry is not None:
        done = _sets_of(item, entry)
        return write_done(done, load_unit, len(entry["sets"])) if done else ""
    return " ".join(_write_result(item, load_unit)).removeprefix("done: ")


def write_log(item: WorkItem, load_unit: str) -> list[str]:
    """Return the line about what was done for an item, or none."""
    words = _write_result(item, load_unit)
    if (skip := item.get("skipped")) is not None and skip["reason"]:
        words.append(f"| {quote(skip['reason'])}")
    if item["comment"]:
        words.append(f"| {'comment ' if skip is not None else ''}{quote(item['comment'])}")
    if item.get("pain"):
        words.append(f"| pain {quote(cast('str', item['pain']))}")
    return [f"  {' '.join(words)}"] if words else []


def _write_result(item: WorkItem, load_unit: str) -> list[str]:
    """Return the words for the sets or values of an item, and whether it is completed or skipped."""
    words = []
    if item["type"] == "EXERCISE" and item["customerSets"]:
        swap = item.get("swappedFor")
        own = [each for each in item["customerSets"] if each["exerciseId"] in (None, item["exerciseId"])]
        others = [each for each in item["customerSets"] if each not in own]
        parts = [f"done: {write_done_sets(own, load_unit, item['exerciseSets'])}"] if own else []
        if others:
            name = swap["exercise"]["name"] if swap is not None and "exercise" in swap else "another exercise"
            parts.append(f"done instead {quote(name)}: {write_done_sets(others, load_unit, item['exerciseSets'])}")
        words.append("; ".join(parts))
    elif item["isCompleted"]:
        words.append("done")
    if item["type"] == "METRICS" and item["values"]:
        words.append(_write_values(item))
    if item.get("skipped") is not None:
        words.append("(skipped)" if words else "skipped")
    elif words and not item["isCompleted"]:
        words.append("(not completed)")
    return words


def _write_values(item: item_models.MetricsItem) -> str:
    names = {metric["_id"]: metric for metric in item["metricsFields"].get("metrics", [])}
    values = []
    for value in item["values"] or ():
        metric = names.get(value["metricId"])
        name = quote(metric["name"]) if metric else f"[{value['metricId']}]"
        unit = f" {metric['metricUnit']['shortName']}" if metric else ""
        values.append(f"{name} {write_number(value['value'])}{unit}")
    return ", ".join(values)


def _write_more(item: WorkItem, load_unit: str) -> list[str]:
    """Return the lines that only `full` has: loads of percentages, answers, general instructions, and times."""
    lines = []
    if item["type"] == "EXERCISE":
        texts = []  # the loads of percentages
        for planned in item["exerciseSets"]:
            if (percent := planned.get("loadPercent")) is not None:
                load = planned.get("load")
                known = "unknown" if load is None else f"{write_number(load)}{load_unit}"
                texts.append(f"{write_number(percent)}% is {known}")
        lines += [f"  today {', '.join(dict.fromkeys(texts))}"] if texts else []
        if item["exercise"]["defaultInstructions"]:
            lines.append(f"  instructions: {quote(item['exercise']['defaultInstructions'])}")
    if item["type"] == "FORM" and item["answers"] is not None:
        answers = {answer["questionId"]: answer["value"] for answer in item["answers"]}
        for question in item["form"]["questions"]:
            value = answers.get(question["_id"])
            if isinstance(value, list):
                answer = ", ".join(quote(each) for each in value)
            else:
                answer = (
                    "" if value is None else write_number(value) if isinstance(value, int | float) else quote(value)
                )
            answer = "(photo)" if question["type"] == "photo" else answer
            lines.append(f"  {quote(question['label'])} {answer}".rstrip())
    if item["completedAt"] is not None:
        lines.append(f"  completed at {item['completedAt'].isoformat(timespec='minutes')}Z")
    return lines
