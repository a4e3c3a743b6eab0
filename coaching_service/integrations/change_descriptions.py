"""What a change or a call did to documents, in words, and what of it reaches people."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from typing import Any, Literal, NamedTuple, TypedDict, cast

from markupsafe import Markup

from coaching_service.core.auth import areas_of
from coaching_service.core.changes.log import patch_of, reference_to
from coaching_service.core.changes.undo import public_values
from coaching_service.core.database.context import Context
from coaching_service.core.database.declared import Action, DocumentFields
from coaching_service.core.database.documents import registry
from coaching_service.core.database.recording import DocumentChange, set_path
from coaching_service.core.dates import format_day
from coaching_service.core.fields import labels_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import format_time, without_inner_marks
from coaching_service.integrations.proposals.models import ProposedChange
from coaching_service.library import metric_sets
from coaching_service.library.exercises import service as exercises
from coaching_service.people import team
from coaching_service.people.activity.models import RECORD_NAMES
from coaching_service.people.changes.models import DocumentValues, limit_values
from coaching_service.people.changes.service import name_kind
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import Customer, CustomerRoleData
from coaching_service.progress.notes import Note
from coaching_service.training.workout_text import lines as workout_lines
from coaching_service.training.workouts import plan_changes
from coaching_service.training.workouts.blocks.models import StoredBlock
from coaching_service.training.workouts.items.descriptions import (
    EFFORT_FIELDS,
    describe_done,
    describe_sets,
    format_number,
    format_seconds,
)
from coaching_service.training.workouts.items.models import PLANNED, PlannedReminder, WorkItem
from coaching_service.training.workouts.items.service import load_references, present_items
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
    identifiers = {document["_id"] for document in documents}
    names: dict[ObjectId, str] = {}  # that the documents give, as for questions of a form
    remaining: list[Any] = [value for document in documents for value in (document["before"], document["after"])]
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
            fields = self._fields({}, value)
            return ["; ".join(f"{each['label']}: {', '.join(map(str, each['after']))}" for each in fields)]
        text = str(value)
        if name in _HTML:
            return [str(Markup(text).striptags())]  # noqa: S704 - the text without tags, which the template escapes
        if _DATE.fullmatch(text):
            return [format_day(date.fromisoformat(text))]
        return [RECORD_NAMES.get(text, text.replace("_", " ").capitalize()) if name == "type" else text]

    def _members(self, name: str, value: Sequence[Any]) -> list[Line]:
        if name == "exerciseSets":
            return [*describe_sets(value, self.unit)]
        if name == "circuitExercises":
            return [f"{self._name(each)}: {'; '.join(describe_sets(each['sets'], self.unit))}" for each in value]
        if name == "customerSets":
            # Equal consecutive texts once, with their count.
            done = groupby(self._done_set(each) for each in value)
            return [f"{len(list(equal))} × {text}" for text, equal in done]
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


# --- What a call has changed: each document before and afterwards -----------------------------------------------------


# The kinds of documents with loads, sets, repetitions and times.
AMOUNTS = frozenset({"workout", "template", "training_max"})


class Version(NamedTuple):
    """A changed document before and afterwards; None where it does not exist."""

    change: DocumentChange
    before: DocumentFields | None
    after: DocumentFields | None


async def read_versions(tx: Context, kinds: Collection[str]) -> list[Version]:
    """Return the changed documents that reach people, or are of these kinds, completely."""
    changes = [each for each in tx.changes.documents.values() if each.history.contact or each.history.kind in kinds]
    return await complete(tx, changes)


async def complete(tx: Context, changes: Sequence[DocumentChange]) -> list[Version]:
    """Return changed documents completely, in the same order."""
    changed: dict[str, list[ObjectId]] = {}
    for change in changes:
        if change.action == "changed":
            changed.setdefault(change.collection, []).append(change.id)
    stored: dict[ObjectId, Any] = {
        each["_id"]: each for name, ids in changed.items() for each in await registry[name].find_whole(tx, ids)
    }
    versions = []
    for change in changes:
        before, after = change.before, change.after
        if change.action == "changed":
            after = stored[change.id]
            before = dict(after)
            for path, (value, _) in change.values.items():
                set_path(before, path, value)
        versions.append(Version(change, before, after))
    return versions


def reaches_people(tx: Context, versions: Sequence[Version]) -> bool:
    """Return whether the transaction sends something to people, or stores what will reach them.

    So does what moves to an earlier date than its author chose, with its workout or alone, or may have reached them
    before. What recurring check-ins schedule is a contact of the check-in, until it is changed or moved.
    """
    removed: defaultdict[tuple[ObjectId | None, Hashable], Counter[str]] = defaultdict(Counter)
    added: defaultdict[tuple[ObjectId | None, Hashable], Counter[str]] = defaultdict(Counter)
    for change, *sides in versions:
        is_scheduled = change.action == "created" and (sides[1] or {}).get("checkInId") is not None
        if (contact := change.history.contact) is None or is_scheduled:
            continue
        for dates, document in zip((removed, added), sides, strict=True):
            if document is not None:
                for each in contact(document):
                    dates[change.client_id, each][document.get("date") or ""] += 1
    today = str(tx.caller.today())
    return tx.changes.sends or any(
        not _only_moves_ahead(removed[about] - dates, dates - removed[about], today) for about, dates in added.items()
    )


def _only_moves_ahead(removed: Counter[str], added: Counter[str], today: str) -> bool:
    """Return whether each date of something that reaches people follows one, after today, on which it is no more."""
    left = sorted((day for day in removed.elements() if day > today), reverse=True)
    for day in sorted(added.elements()):
        earlier = next((each for each in left if each <= day), None)
        if earlier is None:
            return False
        left.remove(earlier)
    return True


async def find_unusual(tx: Context, versions: Sequence[Version]) -> list[str]:
    """Return a sentence for each load and amount that is unusual for its client, of whatever has been written.

    What has no client, such as programs, is compared when it is assigned.
    """
    sentences: list[str] = []
    by_client: dict[ObjectId | None, list[Version]] = {}
    for version in versions:
        by_client.setdefault(version.change.client_id, []).append(version)
    for client_id, some in by_client.items():
        workouts = [(each.before, each.after) for each in some if each.change.kind in ("workout", "template")]
        maxes = [each.after for each in some if each.change.kind == "training_max" and each.after is not None]
        values = {each["exerciseId"]: each["value"] for each in maxes if each["value"] is not None}
        if client_id is not None:
            found = await plan_changes.find_unusual(tx, client_id, workouts, values)
        else:
            found = plan_changes.list_excesses(workouts, tx.caller.company.load_unit)
        sentences += [f"{each}." for each in found]
    return list(dict.fromkeys(sentences))


# --- What a call changes, in words for a coach: each record before and afterwards -------------------------------------


MOST_CHANGES, _MOST_CHARACTERS = 300, 1_000_000  # of all changes together, but the first one
# What only follows from other records that are listed.
_IMPLIED = frozenset({"conversation"})
# Labels of fields that the name of a whole record has.
_IN_NAME = ("Name", "Surname", "Title", "Date")
_NAMING = ("name", "surname", "title", "date", "exerciseId")


async def describe_changes(tx: Context, unlogged: Sequence[DocumentChange] = ()) -> list[ProposedChange]:
    """Return what a transaction has changed until now, without what follows from it; loads are in the company's unit.

    `unlogged`: documents that it has not recorded, which come first. None is cut off, but more than 300 records, or a
    million characters, are only counted.
    """
    changes = [each for each in (*unlogged, *tx.changes.documents.values()) if is_shown(each)]
    shown = changes[:MOST_CHANGES]
    versions = await complete(tx, shown)
    items = await _write_items(tx, versions)
    documents = [_values(tx, each, items[each.id]) for each in shown]
    present = {
        each.change.id: {name: each.after[name] for name in _NAMING if name in each.after}
        for each in versions
        if each.change.action == "changed" and each.after is not None
    }
    described = await describe_documents(tx, documents, present)
    client_ids = dict.fromkeys(each.client_id for each in shown if each.client_id is not None)
    names = await customers.find_references(tx, list(client_ids))
    listed: list[ProposedChange] = []
    length = 0
    for change, values, words in zip(shown, documents, described, strict=True):
        known = {**present.get(change.id, {}), **(values["before"] or {}), **(values["after"] or {})}
        written, action = items[change.id], values["action"]
        record: ProposedChange = {
            "kind": values["kind"],
            "customer": None if change.client_id is None else names.get(change.client_id),
            "date": day if isinstance(day := known.get("date"), str) else None,
            "before": None if action == "created" else _text(words, action, "before", written.before),
            "after": None if action == "deleted" else _text(words, action, "after", written.after),
        }
        length += len(record["before"] or "") + len(record["after"] or "")
        if listed and length > _MOST_CHARACTERS:
            break
        listed.append(record)
    if (more := len(changes) - len(listed)) > 0:
        text = f"and {more} more"
        listed.append({"kind": shown[-1].history.kind, "customer": None, "date": None, "before": None, "after": text})
    return listed


def is_shown(change: DocumentChange) -> bool:
    """Return whether a changed record does not only follow from others."""
    return change.history.undo != "derived" and change.history.kind not in _IMPLIED


class _Items(NamedTuple):
    """The items of a workout that differ, as text, before and afterwards, and their identifiers."""

    before: list[str]
    after: list[str]
    ids: Collection[ObjectId]


async def _write_items(tx: Context, versions: Sequence[Version]) -> dict[ObjectId, _Items]:
    """Return the items of workouts that differ, by document; none of other documents."""
    by_client: dict[ObjectId | None, list[Version]] = {}
    for version in versions:
        by_client.setdefault(version.change.client_id, []).append(version)
    written, unit = dict[ObjectId, _Items](), tx.caller.company.load_unit
    for client_id, some in by_client.items():
        stored = [item for each in some for document in (each.before, each.after) for item in _items_of(each, document)]
        references = await load_references(tx, stored, client_id)
        for each in some:
            sides: list[dict[ObjectId, str]] = []
            for document in (each.before, each.after):
                items, texts = present_items(_items_of(each, document), 0, references, tx.caller), {}
                labels = workout_lines.label_supersets(items)
                for item in items:  # what is planned, and what was done
                    written_lines = (*workout_lines.write_item(item, unit), *workout_lines.write_log(item, unit))
                    lines = "\n".join(line.rstrip() for line in written_lines)
                    texts[item["_id"]] = without_inner_marks(" ".join(filter(None, [labels.get(item["_id"]), lines])))
                sides.append(texts)
            before, after = sides
            common = [identifier for identifier in before if before[identifier] == after.get(identifier)]
            if common == [identifier for identifier in after if after[identifier] == before.get(identifier)]:
                before, after = ({key: side[key] for key in side if key not in common} for side in (before, after))
            written[each.change.id] = _Items([*before.values()], [*after.values()], before.keys() | after.keys())
    return written


def _items_of(version: Version, document: DocumentFields | None) -> list[WorkItem]:
    """Return the stored items of a workout; none if the document is another one, or is not there."""
    kept = document is not None and document.get("deletedAt") is None and version.change.kind in ("workout", "template")
    return cast("list[WorkItem]", document["items"]) if document is not None and kept else []


def _values(tx: Context, change: DocumentChange, items: _Items) -> DocumentValues:
    """Return what differs of a document, but the items that are written as text."""
    reference = reference_to(change, tx.changes)
    visible, kind = areas_of(tx.caller), change.history.kind
    before, after = (limit_values(visible, kind, each) for each in public_values(reference, patch_of(change)))
    for side in (before, after):
        if side is not None and items.ids and isinstance(side.get("items"), list):
            side["items"] = [each for each in side["items"] if each["_id"] not in items.ids]
            if not side["items"]:
                del side["items"]
    action = "deleted" if reference.get("softDeleted") else change.action
    return {"kind": kind, "_id": change.id, "action": action, "before": before, "after": after}


def _text(words: DocumentDescription, action: Action, side: Literal["before", "after"], items: Sequence[str]) -> str:
    """Return a record in words: its name, a line for each field, and its items."""
    lines: list[str] = []
    for each in words["fields"]:
        if action == "changed" or each["label"] not in _IN_NAME:
            texts = [format_time(value) if isinstance(value, datetime) else value for value in each[side]]
            lines.append(f"{each['label']}: {'; '.join(texts) or '–'}")
    return "\n".join(filter(None, [words["name"], *lines, *items]))
