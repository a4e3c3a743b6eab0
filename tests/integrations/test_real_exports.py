"""Exports of each service, compared set by set with a truth made by hand."""

from __future__ import annotations

import io
from datetime import date
from typing import Any, cast

import pytest

from coaching_service.integrations.history_files.set_files import SetFile
from coaching_service.integrations.history_files.set_rows import Answers, SetRow
from coaching_service.integrations.history_files.values import Unit
from tests.support.client import CoachClient
from tests.support.done_workouts import KG_OF_LB
from tests.support.real_exports import EXPORTS, ROWS, Export, own_csv
from tests.support.sampled import MORE
from tests.support.surveys import survey
from tests.support.transfer import import_file

ALL = [*EXPORTS, own_csv("64b7f0c2a1b2c3d4e5f60718", "Mara Quill")]
# The other rows of an export are like these: one export has more of them, in the proofs all have all.
LARGE, MANY, FEW = "Hevy in kg", 200, 60


def shown(row: SetRow) -> tuple[object, ...]:
    load = None if row.load is None else round(row.load * (KG_OF_LB if row.load_unit == "lb" else 1), 2)
    kind = row.kind
    return (str(row.day), row.clock, row.exercise, kind, row.reps, load, row.meters, row.seconds, row.rpe)


def require_read(export: Export, built: bytes, size: int) -> None:
    """All sets of a file are read, before any is stored."""
    content = io.BytesIO(built)
    answers = Answers(
        load_unit=cast("Unit | None", export.answers.get("loadUnit")),
        distance_unit=cast("Unit | None", export.answers.get("distanceUnit")),
    )
    found = survey(content, answers)
    assert (found.format, found.rows, found.questions) == (export.format, size, [])
    sets = [each for row in SetFile(content, found.answers).rows() for each in row.sets]
    by_hand = [shown(each) for each in sets if each.day >= date(2025, 3, 28)]
    assert by_hand == export.truth()
    assert len(by_hand) >= 30


@pytest.mark.parametrize("name", [each.name for each in ALL])
async def test_an_export_is_read_and_imported_set_by_set(coach: CoachClient, name: str) -> None:
    client = await coach.create_customer("Mara", surname="Quill")
    [export] = [each for each in (*EXPORTS, own_csv(client["_id"], "Mara Quill")) if each.name == name]
    owner = {} if export.format == "workouts" else {"customerId": client["_id"]}
    fields: dict[str, Any] = {**export.answers, **owner}

    size = ROWS if MORE > 1 else MANY if name == LARGE else FEW
    built = export.build(size)
    require_read(export, built, size)

    job = await import_file(coach, built, name=export.file_name, **fields)

    result = job["result"]
    assert (job["status"], result["format"], result["rows"]) == ("done", export.format, size), job["errors"][:3]
    assert result["imported"] + result["reported"] == size
    assert {each["code"] for each in job["errors"]} <= {"NOT_A_SET", "VALUE_LEFT_OUT"}
    blocks = await coach.calendar(client, "2025-03-28", "2030-01-01")
    assert {block["source"]["format"] for block in blocks} == {export.format}
    names = {each["match"]["name"]: each["name"] for each in result["names"] if each["match"]}
    stored = [
        (
            *(block["date"], block["startTime"], names.get(item["exercise"]["name"], item["exercise"]["name"])),
            "warmup" if each["isWarmup"] else each["setKind"],
            *(each[field] for field in ("reps", "load", "meters", "seconds", "rpe")),
        )
        for block in sorted(blocks, key=lambda each: (each["date"], each["startTime"] or ""))
        for item in block["items"]
        for each in item["customerSets"]
    ]
    assert stored == export.truth()
