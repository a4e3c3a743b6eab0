"""Programs written for the last release still work: see docs/api-changes.md."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.contract.compatibility import breaking_changes
from tests.support.client import document

Json = dict[str, Any]
RELEASED = Path(__file__).parent / "released"
CHANGES = Path(__file__).parents[2] / "docs" / "api-changes.md"
Change = tuple[str, str]


def last_release() -> str:
    """The version of the newest stored document."""
    versions = [path.stem for path in RELEASED.glob("*.json")]
    return max(versions, key=lambda version: [int(part) for part in version.split(".")])


def documented(text: str, version: str) -> list[Change]:
    """The rows of the table of changes since a release: patterns of operations and of changes."""
    section = text.partition(f"## Since {version}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| .", section, re.MULTILINE)
    return [(operation, change.replace("\\|", "|")) for operation, change in rows]


def matches(pattern: str, text: str) -> bool:
    """Whether a text fits a pattern, in which `*` is any text."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None


def covers(entry: Change, change: Change) -> bool:
    """Whether a documented change is this one."""
    return matches(entry[0], change[0]) and matches(entry[1], change[1])


def test_what_breaks_programs_for_the_last_release_is_documented() -> None:
    released = json.loads((RELEASED / f"{last_release()}.json").read_text("utf-8"))
    entries = documented(CHANGES.read_text("utf-8"), last_release())
    changes = breaking_changes(released, document())
    assert [change for change in changes if not any(covers(entry, change) for entry in entries)] == []
    assert [entry for entry in entries if not any(covers(entry, change) for change in changes)] == []


# --- the comparison itself --------------------------------------------------------------------------------------------

SET = {"type": "object", "properties": {"kind": {"enum": ["a", "b"], "type": "string"}, "reps": {"type": "integer"}}}
DOCUMENT: Json = {
    "paths": {
        "/sets": {
            "post": {
                "parameters": [{"in": "query", "name": "limit", "schema": {"type": "integer", "maximum": 50}}],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Set"}}}},
                "responses": {
                    "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Page"}}}},
                    "201": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Page"}}}},
                    "400": {},
                },
                "security": [{"apiKey": []}, {"session": []}],
            }
        }
    },
    "components": {
        "schemas": {
            "Set": {**SET, "required": ["kind"]},
            "Page": {
                "type": "object",
                "properties": {
                    "docs": {"type": "array", "items": {"anyOf": [{"$ref": "#/components/schemas/Item"}]}},
                    "count": {"type": "integer"},
                    "level": {"type": ["string", "null"], "enum": ["low", None]},
                    "date": {"type": "string", "format": "date"},
                },
                "required": ["docs", "count"],
            },
            "Item": {
                "type": "object",
                "properties": {"type": {"const": "task"}, "title": {"type": "string"}},
                "required": ["type"],
            },
        }
    },
}
FORM = {"type": "object", "properties": {"type": {"const": "form"}}, "required": ["type"]}


def operation_of(changed: Json) -> Json:
    operation: Json = changed["paths"]["/sets"]["post"]
    return operation


def schema(changed: Json, name: str) -> Json:
    declared: Json = changed["components"]["schemas"][name]
    return declared


def value(changed: Json, name: str, field: str) -> Json:
    declared: Json = schema(changed, name)["properties"][field]
    return declared


BREAKING: list[tuple[Callable[[Json], Any], str]] = [
    (lambda new: new["paths"].clear(), "removed"),
    (lambda new: operation_of(new)["responses"].pop("201"), "response 201: removed"),
    (lambda new: operation_of(new)["security"].pop(0), "credential apiKey: removed"),
    (lambda new: operation_of(new)["parameters"].clear(), "query parameter limit: removed"),
    (lambda new: operation_of(new)["parameters"][0].update(required=True), "query parameter limit: required"),
    (lambda new: operation_of(new)["parameters"][0]["schema"].update(maximum=20), "query parameter limit: maximum 20"),
    (lambda new: operation_of(new)["requestBody"].update(required=True), "request: required"),
    (lambda new: schema(new, "Set")["properties"].pop("reps"), "request.reps: removed"),
    (lambda new: schema(new, "Set")["required"].append("reps"), "request.reps: required"),
    (lambda new: value(new, "Set", "kind")["enum"].pop(), "request.kind: no longer b"),
    (lambda new: value(new, "Set", "reps").update(type="string"), "request.reps: no longer integer"),
    (lambda new: value(new, "Set", "reps").update(minimum=1), "request.reps: minimum 1"),
    (lambda new: value(new, "Set", "kind").update(pattern="^a"), "request.kind: pattern ^a"),
    (lambda new: schema(new, "Page")["properties"].pop("count"), "response 200.count: removed"),
    (lambda new: schema(new, "Page")["required"].pop(), "response 200.count: can be absent"),
    (lambda new: value(new, "Page", "count").update(type="number"), "response 200.count: can be number"),
    (lambda new: value(new, "Page", "count").update(type=["integer", "null"]), "response 200.count: can be null"),
    (lambda new: value(new, "Page", "level")["enum"].append("high"), "response 200.level: can be high"),
    (lambda new: value(new, "Page", "date").pop("format"), "response 200.date: no longer has the format date"),
    (lambda new: schema(new, "Item")["properties"].pop("title"), "response 200.docs[].title: removed"),
    (
        lambda new: value(new, "Page", "docs")["items"]["anyOf"].append(FORM),
        "response 200.docs[]: can be object of type form",
    ),
]
HARMLESS: list[Callable[[Json], Any]] = [
    lambda new: new["paths"].update({"/others": {"get": {"responses": {}}}}),
    lambda new: operation_of(new)["parameters"].append({"in": "query", "name": "after", "schema": {"type": "string"}}),
    lambda new: operation_of(new)["parameters"][0]["schema"].update(maximum=100),
    lambda new: schema(new, "Set")["properties"].update(note={"type": "string"}),
    lambda new: schema(new, "Set")["required"].clear(),
    lambda new: value(new, "Set", "kind")["enum"].append("c"),
    lambda new: value(new, "Set", "reps").update(type=["number", "null"]),
    lambda new: schema(new, "Page")["properties"].update(total={"type": "integer"}),
    lambda new: schema(new, "Page")["required"].append("date"),
    lambda new: value(new, "Page", "level").update(type="string", enum=["low"]),
    lambda new: operation_of(new)["responses"].update({"409": {}}),
]


@pytest.mark.parametrize(("change", "finding"), BREAKING, ids=[finding for _, finding in BREAKING])
def test_a_breaking_change_is_reported(change: Callable[[Json], Any], finding: str) -> None:
    changed = deepcopy(DOCUMENT)
    change(changed)
    assert ("POST /sets", finding) in breaking_changes(DOCUMENT, changed)


@pytest.mark.parametrize("change", HARMLESS)
def test_a_change_that_breaks_nothing_is_not_reported(change: Callable[[Json], Any]) -> None:
    changed = deepcopy(DOCUMENT)
    change(changed)
    assert changed != DOCUMENT
    assert breaking_changes(DOCUMENT, changed) == []


def test_an_entry_covers_only_what_it_names() -> None:
    [entry] = documented(
        "## Since 1.2.0\n\n| `GET /a/*` | `response *.b: can be c\\|d` | Nothing |\n\n## Since 1.1.0\n", "1.2.0"
    )
    assert covers(entry, ("GET /a/x", "response 200.b: can be c|d"))
    assert not covers(entry, ("GET /b/x", "response 200.b: can be c|d"))
    assert not covers(entry, ("GET /a/x", "response 200.b: can be c"))
