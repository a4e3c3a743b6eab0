"""Stored documents are compared with the types that their collections declare, and identities with their users."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from io import BytesIO
from typing import Any, Literal, NotRequired, TypedDict, is_typeddict

import pytest

from coaching_service.command_line.doctor import _write_json
from coaching_service.core.database.checks import Occurrences
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import registry
from coaching_service.core.ids import ObjectId
from coaching_service.lifecycle.consistency import mismatches
from tests.support.doctor import Restored, check, reported

UNTYPED = {"fileTotals", "fs.files", "fs.chunks"}  # of the driver; other checks read them
DAMAGED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("coaches", {"role": "OWNER"}, {"$set": {"role": "WIZARD"}}, "role is not one of: OWNER, EMPLOYEE"),
    ("coaches", {}, {"$unset": {"permissions": 1}}, "permissions is missing"),
    ("companies", {}, {"$set": {"timezone": "Mars/Olympus"}}, "timezone must be the IANA name of a time zone"),
    ("customers", {}, {"$set": {"timezone": "Mars/Olympus"}}, "timezone must be the IANA name of a time zone"),
    ("apiKeys", {}, {"$set": {"name": ["a", 7]}}, "name is not a text"),
    ("customers", {}, {"$set": {"name": 12345}}, "name is not a text"),
    ("customers", {}, {"$set": {"birthday": "not a date"}}, "birthday must be a date in the form YYYY-MM-DD"),
    (
        "customers",
        {},
        {"$set": {"customerRoleData.isArchived": None}},
        "customerRoleData.isArchived is not true or false",
    ),
    ("customers", {}, {"$set": {"createdAt": "2026-03-02"}}, "createdAt is not a time"),
    ("workoutBlocks", {"items.type": "EXERCISE"}, {"$set": {"items": "x"}}, "items is not a list"),
    ("workoutBlocks", {"items.type": "EXERCISE"}, {"$set": {"items.0.type": "DANCE"}}, "items.type is not one of"),
    ("messages", {}, {"$unset": {"text": 1}}, "text is missing"),
    ("notes", {}, {"$set": {"version": "1"}}, "version is not an integer"),
    ("identities", {}, {"$set": {"kind": "wizard"}}, "kind is not one of: coach, customer"),
]


async def test_documents_of_another_shape_are_reported(ctx: Context, restored: Restored) -> None:
    damaged: dict[str, str] = {}
    for collection, where, change, problem in DAMAGED:
        others = {"_id": {"$nin": [ObjectId(each) for each in damaged]}}
        damaged[str(await restored.change(collection, where | others, change))] = f"{collection} whose {problem}"
    findings = await reported(ctx, "documents")
    assert [(each.count, each.is_notice) for each in findings] == [(1, False)] * len(DAMAGED)
    problems = {identifier: each.problem for each in findings for identifier in each.identifiers}
    assert problems.keys() == damaged.keys()
    for identifier, problem in damaged.items():
        assert problems[identifier].startswith(f"Documents of {problem}")


def test_every_collection_declares_the_type_of_its_documents() -> None:
    """Otherwise `doctor` could not compare them."""
    assert {name for name, each in registry.items() if not is_typeddict(each.model)} == UNTYPED


async def test_coaches_without_identity_are_reported(ctx: Context, restored: Restored) -> None:
    owner = await restored.delete("identities", {"subjectId": ctx.caller.id})
    [lost] = await reported(ctx, "sign-ins")
    assert (lost.problem, list(lost.identifiers), lost.is_notice) == (
        "Owners who cannot sign in",
        [str(ctx.caller.id)],
        False,
    )
    assert owner
    employee = await ctx.db["coaches"].find_one({"role": "EMPLOYEE"})
    assert employee is not None
    await restored.delete("identities", {"subjectId": employee["_id"]})
    [notice] = [each for each in await reported(ctx, "sign-ins") if each.is_notice]
    assert list(notice.identifiers) == [str(employee["_id"])]


async def test_identities_of_other_companies_and_kinds_are_reported(ctx: Context, restored: Restored) -> None:
    for change in (
        {"subjectId": ObjectId()},
        {"kind": "customer"},
        {"companyId": ObjectId()},
    ):
        identifier = await restored.change("identities", {"kind": "coach"}, {"$set": change})
        [finding] = await reported(ctx, "identities")
        assert finding.problem == "Documents of identities whose coach or client does not exist"
        assert list(finding.identifiers) == [str(identifier)], change
        await restored.restore()


async def test_all_identifiers_are_in_the_json(ctx: Context, restored: Restored) -> None:
    notes = [
        str(await restored.change("notes", {"content": {"$type": "string"}}, {"$set": {"content": number}}))
        for number in range(3)
    ]
    out = BytesIO()
    _write_json(await check(ctx.services, "documents", "identities"), out)
    documents, identities = json.loads(out.getvalue())
    assert (documents["status"], identities["status"], identities["findings"]) == ("problem", "ok", [])
    [finding] = documents["findings"]
    assert (finding["count"], sorted(finding["identifiers"])) == (3, sorted(notes))
    assert documents["documents"] > 1000, "all are read"


def test_identifiers_of_many_occurrences_are_not_held_in_memory() -> None:
    occurrences = Occurrences()
    for number in range(20_000):
        occurrences.add(f"identifier {number}")
    finding = occurrences.finding("Numbers", "Count")
    assert occurrences.identifiers._file._rolled  # type: ignore[attr-defined]
    assert list(finding.identifiers) == [f"identifier {number}" for number in range(20_000)]
    assert (finding.count, finding.example) == (20_000, "identifier 0")


class Exercise(TypedDict):
    type: Literal["EXERCISE"]
    load: float | None
    tags: NotRequired[list[str]]


class Task(TypedDict):
    type: Literal["TASK"]
    text: str


class Block(TypedDict):
    items: list[Exercise | Task]
    at: datetime
    counts: dict[Literal["client", "company"], int]


BLOCK = {"items": [], "at": datetime(2026, 3, 2, tzinfo=UTC), "counts": {}, "unknown": {1, 2}}


@pytest.mark.parametrize(
    ("change", "problems"),
    [
        ({}, []),
        ({"items": [{"type": "EXERCISE", "load": 2}, {"type": "TASK", "text": ""}]}, []),
        ({"items": [{"type": "EXERCISE", "load": "2"}]}, ["items.load is not a number"]),
        ({"items": [{"type": "TASK"}]}, ["items.text is missing"]),
        ({"items": [{"type": "EXERCISE", "load": None, "tags": "a"}]}, ["items.tags is not a list"]),
        ({"items": [{"type": "DANCE", "text": ""}]}, ["items.type is not one of: EXERCISE, TASK"]),
        ({"items": [True]}, ["items is not an object"]),
        ({"counts": {"coach": 1}}, ["counts (a name in it) is not one of: client, company"]),
        ({"counts": {"client": True}}, ["counts.* is not an integer"]),
        ({"at": None}, ["at is not a time"]),
    ],
)
def test_values_are_compared_with_the_declared_types(change: dict[str, Any], problems: list[str]) -> None:
    assert list(mismatches(Block, BLOCK | change, "")) == problems
