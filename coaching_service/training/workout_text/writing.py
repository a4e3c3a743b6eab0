"""Writing workouts as text: a line for each item, which `lines` reads, and below it what was done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NotRequired, TypedDict, cast

from coaching_service.core.fields import Partial
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import Extent, typed
from coaching_service.library.exercises.models import ExerciseName
from coaching_service.people.availability import AvailabilityText
from coaching_service.training.set_text import write_done, write_done_sets, write_number, write_planned
from coaching_service.training.workouts.blocks.models import Block, BlockSettings
from coaching_service.training.workouts.blocks.service import describe_settings
from coaching_service.training.workouts.items import models as item_models
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.training.workouts.sets import CustomerSet, PlannedSet

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
