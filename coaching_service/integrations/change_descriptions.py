"""What a change did to its documents, in words: the name of each field with its value before and after."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from typing import Any, TypedDict, cast

from markupsafe import Markup

from coaching_service.core.database.context import Context
from coaching_service.core.dates import format_day
from coaching_service.core.fields import labels_of
from coaching_service.core.ids import ObjectId
from coaching_service.library import metric_sets
from coaching_service.library.exercises import service as exercises
from coaching_service.people import team
from coaching_service.people.activity.models import RECORD_NAMES
from coaching_service.people.changes.models import DocumentValues
from coaching_service.people.changes.service import name_kind
from coaching_service.people.customers.models import Customer, CustomerRoleData
from coaching_service.progress.notes.service import Note
from coaching_service.training.workouts.blocks.models import StoredBlock
from coaching_service.training.workouts.items.descriptions import (
    EFFORT_FIELDS,
    describe_done,
    describe_sets,
    format_number,
    format_seconds,
)
from coaching_service.training.workouts.items.models import PLANNED, PlannedReminder
from coaching_service.training.workouts.sets import PerformedSet

Line = str | datetime
Values = Mapping[str, Any]
_LABELS = {
    "aliases": "Other names",
    "assignAutomatically": "For new clients",
    "completedAt": "Completed at",
    "customerSets": "Sets done",
    "defaultInstructions": "Instructions",
    "deletedAt": "Deleted",
    "endDate": "Last day",
    "everyDays": "Days from one to the next",
    "endedDate": "Ended on",
    "formName": "Form",
    "isCompleted": "Completed",
    "label": "Question",
    "metricId": "Metric",
    "metricUnitId": "Unit",
    "metricsSetId": "Metric set",
    "programName": "Program",
    "startDate": "First day",
    "since": "Reason since",
    "swappedFor": "Exercise done instead",
    "unassignedAt": "Unassigned",
    "url": "Address",
    "videoLink": "Video",
    **labels_of(Note, StoredBlock, *PLANNED.values(), PlannedReminder, Customer, CustomerRoleData),
}
# Identifiers, and what is derived from other fields or of no use to a coach.
_HIDDEN = frozenset(
    {
        *("_id", "companyId", "createdAt", "customerId", "programId", "updatedAt", "version", "formId", "libraryId"),
        *("assignmentId", "checkInId", "witemId", "wblockId", "questionId", "fileId", "thumbnailId", "index"),
        *("clientTexts", "done", "doneExerciseIds", "exerciseIds", "position", "tally", "variables"),
        *("complianceDate", "complianceRate7d", "complianceRate30d", "complianceRate90d", "customerType", "role"),
        *("deliverAt", "digest", "firstLoginDate", "lastActivityDate", "lastTrainedDate", "lastWorkoutDate", "author"),
        *("figuresUntil", "figuresChangedAt", "attention", "scheduleChanges", "search", "sortName", "sortSurname"),
        *("suf", "unreadBy", "source"),
    }
)
_UNITS = {"durationMinutes": "min", "meters": "m"}
_NOTHING_DONE = dict.fromkeys(("reps", "seconds", "meters", "load"))
_HTML = frozenset({"content", "defaultInstructions", "exerciseInstructions", "instructions"})
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_MAX_LINES = 40


class ChangedField(TypedDict):
    """A field by its label, with the lines of text that describe its value before and after; none without a value."""

    label: str
    before: list[Line]
    after: list[Line]


class DocumentDescription(TypedDict):
    """A document in words: its name, empty if it has none, what was done to it, and its changed fields."""

    name: str
    title: str
    fields: list[ChangedField]


async def describe_documents(
    ctx: Context, documents: Sequence[DocumentValues], known: Mapping[ObjectId, Values]
) -> list[DocumentDescription]:
    """Return the documents of a change in words; `known` has present fields, such as the name, by document."""
    values = [value for document in documents for value in (document["before"], document["after"])]
    identifiers, names = _references_in([*values, *(document["_id"] for document in documents)])
    known_exercises = await exercises.get_names(ctx, identifiers)
    sets = await metric_sets.get_by_id(ctx, identifiers)
    metrics = [metric for each in sets.values() for metric in (*each["metrics"], *each["archivedMetrics"])]
    named = (*known_exercises.values(), *sets.values(), *metrics, *metric_sets.list_units())
    names |= {each["_id"]: each["name"] for each in named}
    names |= {each["_id"]: each["name"] for each in await team.list_coaches(ctx)}
    descriptions = Descriptions(names, ctx.caller.company.load_unit)
    return [descriptions.describe(each, known.get(each["_id"], {})) for each in documents]


@dataclass(frozen=True)
class Descriptions:
    """Describes documents with the names of what they refer to; loads are in `unit`."""

    names: Mapping[ObjectId, str]
    unit: str

    def describe(self, document: DocumentValues, known: Values) -> DocumentDescription:
        """Describe a document of a change; `known` has its present fields, or nothing."""
        before, after = document["before"] or {}, document["after"] or {}
        kind = name_kind(document["kind"])
        name = self._name({**known, **before, **after}) or self.names.get(document["_id"], "")
        title = f"{kind[:1].upper()}{kind[1:]} {document['action']}"
        fields = list(self._fields(before, after))
        return {"name": name, "title": f"{title}: {name}" if name else title, "fields": fields}

    def _fields(self, before: Values, after: Values, element: str = "") -> Iterator[ChangedField]:
        """Yield the fields that differ; `element` names the element of a list that they belong to."""
        for name in dict.fromkeys([*before, *after]):
            old, new = before.get(name), after.get(name)
            is_same = element and old == new
            if is_same or name in _HIDDEN or not (_is_given(old) or _is_given(new)):
                continue
            if _are_elements(old, new):
                yield from self._elements(_label(name, element), old or [], new or [])
            elif isinstance(old, Mapping) or isinstance(new, Mapping):
                yield from self._fields(old or {}, new or {}, element)
            else:
                changed = self._lines(name, old), self._lines(name, new)
                if changed[0] != changed[1]:
                    yield {"label": _label(name, element), "before": changed[0], "after": changed[1]}

    def _elements(self, label: str, before: Sequence[Values], after: Sequence[Values]) -> Iterator[ChangedField]:
        """Yield the added and removed elements of a list, and the changed fields of the others."""
        if not before and not after:
            yield {"label": label, "before": [], "after": ["Other order"]}
        earlier, later = ({each["_id"]: each for each in elements} for elements in (before, after))
        for identifier in dict.fromkeys([*earlier, *later]):
            old, new = earlier.get(identifier), later.get(identifier)
            if old is not None and new is not None:
                yield from self._fields(old, new, self._name(new) or label)
            else:
                yield {"label": label, "before": self._element(old), "after": self._element(new)}

    def _element(self, element: Values | None) -> list[Line]:
        """Return an element of a list in words: its name, and the sets of an exercise or circuit."""
        if element is None:
            return []
        details = [
            line
            for name in ("exerciseSets", "circuitExercises", "description", "options")
            for line in self._lines(name, element.get(name))
        ]
        done = [f"Done: {line}" for line in self._lines("customerSets", element.get("customerSets"))]
        return [self._name(element) or "Unnamed", *details, *done]

    def _name(self, values: Values) -> str:
        """Return the name of a document or of an element of a list; empty if it has none."""
        for name in ("name", "title", "circuitName", "programName", "formName", "label", "message"):
            if isinstance(values.get(name), str):
                surname, day = values.get("surname"), values.get("date")
                named = f"{values[name]} {surname}" if surname else values[name]
                return f"{named}, {format_day(date.fromisoformat(day))}" if day else str(named)
        for name in ("taskFields", "reminderFields", "form"):
            if isinstance(values.get(name), Mapping):
                return self._name(values[name])
        for name in ("exerciseId", "metricId", "metricsSetId"):
            identifier = values.get(name)
            if isinstance(identifier, ObjectId) and identifier in self.names:
                return self.names[identifier]
        if isinstance(values.get("metricsFields"), Mapping):
            return self._name(values["metricsFields"])
        if isinstance(values.get("url"), str):
            return str(values["url"])
        return format_day(date.fromisoformat(values["date"])) if isinstance(values.get("date"), str) else ""

    def _lines(self, name: str, value: Any) -> list[Line]:
        """Return a value in words, one line for each member of a list; more than 40 are cut off."""
        if value is None or value in ("", []):
            return []
        if isinstance(value, list):
            lines = self._members(name, value)
            return lines if len(lines) <= _MAX_LINES else [*lines[:_MAX_LINES], f"and {len(lines) - _MAX_LINES} more"]
        if isinstance(value, ObjectId):
            return [self.names[value]] if value in self.names else ["Another one"]
        if isinstance(value, bool):
            return ["Yes" if value else "No"]
        if isinstance(value, datetime):
            return [value]
        if isinstance(value, int | float) and name == "seconds":
            return [format_seconds(value)]
        if isinstance(value, int | float):
            return [format_number(value, self.unit if name in ("load", "volumeLoad") else _UNITS.get(name, ""))]
        if isinstance(value, Mapping):
            return [self._sentence(value)]
        return [_describe_text(name, str(value))]

    def _members(self, name: str, value: Sequence[Any]) -> list[Line]:
        if name == "exerciseSets":
            return [*describe_sets(value, self.unit)]
        if name == "circuitExercises":
            return [f"{self._name(each)}: {'; '.join(describe_sets(each['sets'], self.unit))}" for each in value]
        if name == "customerSets":
            return [*_count_equal(self._done_set(each) for each in value)]
        if name in ("answers", "values"):
            return [self._answer(each) for each in value]
        return [line for each in value for line in self._lines("", each)]

    def _done_set(self, done: Values) -> str:
        """Return a logged set, such as `8 x 60 kg, RPE 8`."""
        parts = [
            describe_done(cast("PerformedSet", {**_NOTHING_DONE, **done}), self.unit),
            *(f"{label} {format_number(done[key])}" for label, key in EFFORT_FIELDS if done.get(key) is not None),
            "" if done.get("isCompleted") else "not completed",
        ]
        text = ", ".join(part for part in parts if part) or "done"
        exercise = self.names.get(done["exerciseId"]) if done.get("exerciseId") else None
        return f"{exercise}: {text}" if exercise else text

    def _answer(self, answer: Values) -> str:
        """Return an answer to a question of a form, or the value of a metric, after its name."""
        name = answer.get("label") or self.names.get(answer.get("questionId", answer.get("metricId")), "")
        value = ", ".join(str(line) for line in self._lines("value", answer.get("value"))) or "–"
        return f"{name}: {value}" if name else value

    def _sentence(self, values: Values) -> str:
        """Return a document inside another one on one line."""
        fields = self._fields({}, values)
        texts = (f"{field['label']}: {', '.join(str(line) for line in field['after'])}" for field in fields)
        return "; ".join(texts)


def _references_in(documents: Iterable[Any]) -> tuple[set[ObjectId], dict[ObjectId, str]]:
    """Return the identifiers in documents, and names that the documents give them, as for questions of a form."""
    identifiers: set[ObjectId] = set()
    names: dict[ObjectId, str] = {}
    remaining = list(documents)
    while remaining:
        value = remaining.pop()
        if isinstance(value, ObjectId):
            identifiers.add(value)
        elif isinstance(value, Mapping):
            remaining.extend(value.values())
            name = value.get("name") or value.get("label")
            if isinstance(value.get("_id"), ObjectId) and isinstance(name, str):
                names[value["_id"]] = name
        elif isinstance(value, list):
            remaining.extend(value)
    return identifiers, names


def _are_elements(*values: Any) -> bool:
    """Return whether values are lists of documents with identifiers; empty if only their order has changed."""
    lists = [value for value in values if value is not None]
    if not lists or not all(isinstance(value, list) for value in lists):
        return False
    members = [member for value in lists for member in value]
    if not members:
        return len(lists) == len(values)
    return all(isinstance(member, Mapping) and "_id" in member for member in members)


def _is_given(value: Any) -> bool:
    """Return whether a value is worth showing: an absent one, null and false are not."""
    return value is not None and value is not False


def _label(name: str, element: str) -> str:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").lower()
    label = _LABELS.get(name, spaced[:1].upper() + spaced[1:])
    return f"{element} · {label}" if element else label


def _describe_text(name: str, text: str) -> str:
    if name in _HTML:
        return str(Markup(text).striptags())  # noqa: S704 - the text without tags, which the template escapes
    if _DATE.fullmatch(text):
        return format_day(date.fromisoformat(text))
    if name == "type":
        return RECORD_NAMES.get(text, text.replace("_", " ").capitalize())
    return text


def _count_equal(texts: Iterable[str]) -> Iterator[str]:
    """Equal consecutive texts once, with their count."""
    for text, equal in groupby(texts):
        yield f"{len(list(equal))} × {text}"
