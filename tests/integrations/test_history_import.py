"""Imports of training history over REST: what is stored, what follows, and what is reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.client import CoachClient
from tests.support.transfer import import_file

HEVY = (
    '"title","start_time","end_time","description","exercise_title","superset_id","exercise_notes","set_index",'
    '"set_type","weight_lbs","reps","distance_miles","duration_seconds","rpe"\n'
    '"Push 💪","17 Nov 2025, 18:05","17 Nov 2025, 19:10","","Bench Press (Barbell)",,"",0,"warmup",45,10,,,\n'
    '"Push 💪","17 Nov 2025, 18:05","17 Nov 2025, 19:10","","Bench Press (Barbell)",,"",1,"normal",135,8,,,8.5\n'
)


async def workouts(coach: CoachClient, customer: dict[str, Any]) -> list[dict[str, Any]]:
    """The client's calendar of all years."""
    path = f"/coach/customers/{customer['_id']}/wblock"
    blocks: list[dict[str, Any]] = (await coach.get(path, startDate="2000-01-01", endDate="2100-01-01")).ok()
    return blocks


async def test_a_file_of_hevy_becomes_a_session(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana")
    job = await import_file(coach, HEVY.encode(), name="workouts.csv", customerId=ana["_id"])

    assert (job["status"], job["errors"]) == ("done", [])
    result = job["result"]
    assert (result["format"], result["rows"], result["imported"], result["reported"]) == ("hevy", 2, 2, 0)
    assert result["created"] == {"customers": 0, "sessions": 1, "sets": 2, "exercises": 0}
    assert (result["from"], result["to"], result["questions"]) == ("2025-11-17", "2025-11-17", [])
    assert result["names"][0]["match"]["name"] == "Barbell Bench Press"
    [block] = await workouts(coach, ana)
    assert (block["name"], block["date"], block["startTime"], block["durationMinutes"]) == (
        "Push 💪",
        "2025-11-17",
        "18:05",
        65,
    )
    assert block["source"] == {"format": "hevy", "importId": job["_id"]}
    assert block["isCompleted"] is True
    [item] = block["items"]
    assert item["exerciseSets"] == []
    first, second = item["customerSets"]
    assert (first["isWarmup"], first["load"], first["reps"]) == (True, 20.41, 10)
    assert (second["isWarmup"], second["load"], second["rpe"], second["setKind"]) == (False, 61.23, 8.5, "normal")
