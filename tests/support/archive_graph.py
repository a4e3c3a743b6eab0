"""Comparison of two exports as labelled graphs: identifiers are the nodes, records and files say what they are.

Two exports are equal if there is one bijection of their identifiers that turns each record of the first into a record
of the second, and each file into one with the same bytes. The data must distinguish every identifier, so that there is
at most one such bijection.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.transfer import Entries

_ID = re.compile(r"[0-9a-f]{24}")
# Fields whose values are texts, whatever they look like.
_TEXTS = ("externalId", "metadata", "value", "name", "text", "content", "comment", "title", "supersetId")

Bijection = dict[str, str]
Names = dict[str, str]


@dataclass
class Graph:
    """The records of an export with their entries, and where each identifier occurs: its path, and which record.

    `known` has the names of identifiers that are known.
    """

    records: list[tuple[str, Any]]
    known: Mapping[str, str]
    places: dict[str, list[tuple[str, int]]]

    @property
    def first_names(self) -> Names:
        """A name for each identifier, the same for all that are not known."""
        return {identifier: self.known.get(identifier, "") for identifier in self.places}

    def refine(self, names: Names) -> Names:
        """Name each identifier after the records it occurs in, in which others have their `names`."""
        texts = [_hash(entry, _text(record, names)) for entry, record in self.records]
        return {
            identifier: self.known.get(identifier)
            or _hash(names[identifier], *sorted(path + texts[number] for path, number in places))
            for identifier, places in self.places.items()
        }

    def rename(self, names: Mapping[str, str]) -> list[tuple[str, str]]:
        """The records as text, in any order, with other identifiers."""
        return sorted((entry, _text(record, names)) for entry, record in self.records)

    def find_unclear(self, names: Names) -> list[list[str]]:
        """Where identifiers occur that have the same name as others: the data does not distinguish them."""
        by_name: dict[str, list[str]] = {}
        for identifier, name in names.items():
            by_name.setdefault(name, []).append(identifier)
        return [
            sorted({f"{self.records[number][0]} {path}" for each in same for path, number in self.places[each]})
            for same in by_name.values()
            if len(same) > 1
        ]


def graph_of(
    entries: Entries, known: Mapping[str, str], as_stored: Callable[[bytes], bytes] = lambda content: content
) -> Graph:
    """The graph of an export; `known` has the names of identifiers that are known, those of shared data.

    Coaches are known by their names, the owner by the role. `as_stored` returns what an import makes of a file.
    """
    records = [
        (name, json.loads(line))
        for name, content in entries.items()
        if name.startswith("records/")
        for line in content.splitlines()
    ]
    records.append(("account.json", json.loads(entries["account.json"])))
    sizes = {}
    for name, content in entries.items():
        if name.startswith("files/"):
            _, file_id, file_name = name.split("/")
            stored = as_stored(content)
            sizes[file_id] = {len(content): len(stored)}
            digest = hashlib.sha256(stored).hexdigest()
            records.append(("files", {"fileId": file_id, "fileName": file_name, "sha256": digest}))
    for _, record in records:
        _set_sizes(record, sizes)
    known = {**known, **{coach["_id"]: _name_of(coach) for coach in _coaches(entries)}}
    places: dict[str, list[tuple[str, int]]] = {}
    for number, (_, record) in enumerate(records):
        for path, identifier in _identifiers(record):
            places.setdefault(identifier, []).append((path, number))
    return Graph(records, known, places)


def _coaches(entries: Entries) -> list[dict[str, Any]]:
    return [json.loads(line) for line in entries["coaches.jsonl"].splitlines()]


def _name_of(coach: dict[str, Any]) -> str:
    return "owner" if coach["role"] == "OWNER" else f"coach {coach['name']}"


def _set_sizes(value: Any, sizes: Mapping[str, Mapping[int, int]]) -> None:
    """Replace the sizes of files by those that an import stores. Raises AssertionError for a size that is wrong."""
    if isinstance(value, dict):
        if "size" in value and "fileId" in value:
            of_file = sizes[value["fileId"]]
            assert value["size"] in of_file, "no equal size"
            value["size"] = of_file[value["size"]]
        for entry in value.values():
            _set_sizes(entry, sizes)
    elif isinstance(value, list):
        for entry in value:
            _set_sizes(entry, sizes)


def find_bijection(first: Graph, second: Graph) -> Bijection:
    """Return what each identifier of the first export is in the second one.

    Identifiers are named after the records they occur in, which have the names of other identifiers, until nothing
    changes. Fails if identifiers are not distinguishable, or if a record or file has no equal in the other export.
    """
    names, other_names, distinct = first.first_names, second.first_names, 0
    while len(set(names.values())) > distinct:
        compare(first.rename(names), second.rename(other_names))
        distinct = len(set(names.values()))
        names, other_names = first.refine(names), second.refine(other_names)
    compare(first.rename(names), second.rename(other_names))
    assert first.find_unclear(names) == [], "the data does not distinguish these identifiers"
    identifiers = {name: identifier for identifier, name in other_names.items()}
    assert len(identifiers) == len(other_names) == len(names)
    bijection = {identifier: identifiers[name] for identifier, name in names.items()}
    compare(first.rename(bijection), second.rename({}))
    return bijection


def compare(first: list[tuple[str, str]], second: list[tuple[str, str]]) -> None:
    """Assert that two lists of records are equal; the message has one that is not, of each."""
    if first != second:
        lacking, surplus = sorted(set(first) - set(second)), sorted(set(second) - set(first))
        raise AssertionError(f"no equal in the other export: {lacking[:1]}, {surplus[:1]}, {len(lacking)} records")


def swap_identifiers(entries: Entries) -> Iterator[tuple[str, Entries]]:
    """Yield each field with identifiers, and the export with two different identifiers of that field exchanged.

    Identifiers that nothing refers to are left out, and records that differ only in the identifier: exchanging them
    changes nothing.
    """
    records = {name: content.splitlines() for name, content in entries.items() if name.startswith("records/")}
    places: dict[str, list[tuple[str, int, str]]] = {}
    count: Counter[str] = Counter(name.split("/")[1] for name in entries if name.startswith("files/"))
    for entry, lines in records.items():
        for number, line in enumerate(lines):
            for path, identifier in _identifiers(json.loads(line)):
                places.setdefault(entry + re.sub(r"\.\d+", "", path), []).append((identifier, number, path))
                count[identifier] += 1
    for field, all_places in places.items():
        entry = field.partition(".jsonl")[0] + ".jsonl"
        first = next((place for place in all_places if count[place[0]] > 1), None)
        if first is None:
            continue
        rest = _without(records[entry][first[1]], first[2], count)
        others = (place for place in all_places if place[0] != first[0])
        second = next((place for place in others if _without(records[entry][place[1]], place[2], count) != rest), None)
        if second is None:
            continue
        lines = list(records[entry])
        for place, identifier in ((first, second[0]), (second, first[0])):
            lines[place[1]] = _replace_at(lines[place[1]], place[2], identifier)
        yield field, {**entries, entry: b"\n".join(lines)}


def _without(line: bytes, path: str, count: Mapping[str, int]) -> bytes:
    """A record without the identifier at `path`, and without its own identifier if nothing refers to it."""
    own = json.loads(line).get("_id", "")
    return _replace_at(line if count[own] > 1 else _replace_at(line, "._id", ""), path, "")


def _replace_at(line: bytes, path: str, identifier: str) -> bytes:
    record = json.loads(line)
    *names, last = path.removeprefix(".").split(".")
    target = record
    for name in names:
        target = target[int(name)] if isinstance(target, list) else target[name]
    target[int(last) if isinstance(target, list) else last] = identifier
    return json.dumps(record).encode()


def _identifiers(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the identifiers of a record with their paths."""
    if isinstance(value, dict):
        for name, entry in value.items():
            if name not in _TEXTS:
                yield from _identifiers(entry, f"{path}.{name}")
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield from _identifiers(entry, f"{path}.{number}")
    elif isinstance(value, str) and _ID.fullmatch(value):
        yield path, value


def _text(value: Any, names: Mapping[str, str]) -> str:
    return json.dumps(rename(value, names), sort_keys=True)


def rename(value: Any, names: Mapping[str, str]) -> Any:
    """Return a record with other identifiers."""
    if isinstance(value, dict):
        return {name: entry if name in _TEXTS else rename(entry, names) for name, entry in value.items()}
    if isinstance(value, list):
        return [rename(entry, names) for entry in value]
    return names.get(value, value) if isinstance(value, str) else value


def _hash(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
