"""Exports of each service through POST /coach/import, compared set by set with a truth made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import CoachClient
from tests.support.real_exports import EXPORTS, ROWS, Export, own_csv
from tests.support.transfer import import_file

FIRST_BY_HAND = "2025-03-28"


@pytest.mark.parametrize("name", [each.name for each in EXPORTS] + ["own"])
async def test_an_export_becomes_the_sets_of_the_truth(coach: CoachClient, name: str) -> None:
    mara = await coach.create_customer("Mara", surname="Quill")
    exports = {each.name: each for each in EXPORTS} | {"own": own_csv(mara["_id"], "Mara Quill")}
    export: Export = exports[name]
    own = {} if name == "own" else {"customerId": mara["_id"]}
    fields: dict[str, Any] = {**own, **export.answers}
    job = await import_file(coach, export.build(), name="history.csv", **fields)

    result = job["result"]
    assert (job["status"], result["format"], result["rows"]) == ("done", export.format, ROWS)
    assert result["imported"] + result["reported"] == ROWS
    assert not [each for each in job["errors"] if each["code"] not in ("NOT_A_SET", "VALUE_LEFT_OUT")]
    path = f"/coach/customers/{mara['_id']}/wblock"
    blocks = (await coach.get(path, startDate=FIRST_BY_HAND, endDate="2030-01-01")).ok()
    stored = [shown(block, done) for block in blocks for item in block["items"] for done in item["customerSets"]]
    assert sorted(stored, key=repr) == sorted(map(expected, export.truth()), key=repr)
    assert all(block["source"]["format"] == export.format for block in blocks)


def shown(block: dict[str, Any], done: dict[str, Any]) -> tuple[object, ...]:
    kind = "warmup" if done["isWarmup"] else done["setKind"]
    load = None if done["load"] is None else done["load"]
    return (block["date"], block["startTime"], kind, done["reps"], load, done["meters"], done["seconds"], done["rpe"])


def expected(row: tuple[Any, ...]) -> tuple[object, ...]:
    day, clock, _, *rest = row
    return (day, clock, *rest)
