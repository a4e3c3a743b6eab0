"""The logged sets of a company as CSV, in the columns of Hevy's export."""

from __future__ import annotations

import pytest

from coaching_service.core.text import neutralise, restore
from tests.support.client import CoachClient
from tests.support.training import block_with, circuit_of, exercise_of, log
from tests.support.transfer import exported_rows


async def test_one_row_for_each_logged_set(coach: CoachClient) -> None:
    ana = await coach.create_customer("Ana", surname="Ruiz")
    squat, press = await coach.create_exercise("Squat"), await coach.create_exercise("Press")
    planned = [
        {"type": "reps_load", "minPlannedReps": 5, "load": 20, "isWarmup": True},
        {"type": "reps_load", "minPlannedReps": 5, "load": 100},
        {"type": "reps_load", "minPlannedReps": 8, "load": 80, "setKind": "drop"},
    ]
    block = await block_with(coach, ana, exercise_of(squat, *planned), circuit_of(squat, press, rounds=1))
    lifted = [{"reps": 5, "load": 20}, {"reps": 5, "load": 100.5, "rpe": 8.5}, {"reps": 8, "load": 80}]
    (await log(coach, block, block["items"][0], customerSets=lifted, comment="Deep")).ok()
    circuit = [{"exerciseId": press["_id"], "reps": 10}, {"exerciseId": squat["_id"], "seconds": 30, "meters": 400}]
    (await log(coach, block, block["items"][1], customerSets=circuit)).ok()

    exported = await exported_rows(coach, "workouts")

    assert [row["set_type"] for row in exported] == ["warmup", "normal", "dropset", "normal", "normal"]
    assert [row["set_index"] for row in exported] == ["0", "1", "2", "0", "0"]
    assert exported[1] == {
        "client_id": ana["_id"],
        "client_name": "Ana Ruiz",
        "title": "Legs",
        "start_time": "2026-03-02",
        "end_time": "",
        "description": "",
        "exercise_title": "Squat",
        "superset_id": "",
        "exercise_notes": "Deep",
        "set_index": "1",
        "set_type": "normal",
        "weight_kg": "100.5",
        "reps": "5",
        "distance_km": "",
        "duration_seconds": "",
        "rpe": "8.5",
        "rir": "",
        "is_completed": "true",
        "duration_minutes": "",
    }
    assert (exported[4]["exercise_title"], exported[4]["distance_km"], exported[4]["duration_seconds"]) == (
        "Squat",
        "0.4",
        "30",
    )


async def test_text_never_becomes_a_formula(coach: CoachClient) -> None:
    ana = await coach.create_customer('=HYPERLINK("https://evil.example")')
    squat = await coach.create_exercise("@SUM(1)")
    block = await block_with(coach, ana, exercise_of(squat), name="-2+3")
    (await log(coach, block, block["items"][0], customerSets=[{"reps": 5}], comment="+1")).ok()

    (row,) = await exported_rows(coach, "workouts")

    texts = (row["client_name"], row["exercise_title"], row["title"], row["exercise_notes"])
    assert texts == ('\'=HYPERLINK("https://evil.example")', "'@SUM(1)", "'-2+3", "'+1")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("easy;=1+1", "easy;'=1+1"),
        ("＝1+1", "'＝1+1"),
        (" ＋1", "' ＋1"),
        ("a;－1", "a;'－1"),
        ("＠SUM(1)", "'＠SUM(1)"),
        ('slow; "=cmd()"', 'slow;\' "=cmd()"'),
        ("first\n@SUM(A1)", "first\n'@SUM(A1)"),
        ("a\r\n+1", "a\r\n'+1"),
        ("a\t-1", "a\t'-1"),
        ("tempo 3-1-1; 4x8 @60", "tempo 3-1-1; 4x8 @60"),
    ],
)
def test_text_is_no_formula_with_other_separators(text: str, written: str) -> None:
    """A spreadsheet that expects semicolons splits the text there, whatever quotes are around it."""
    assert neutralise(text) == written


@pytest.mark.parametrize(
    "text",
    [
        *("=1", "+1", "-1", "@x", "\t=1", " =1", "plain", "'quoted", "", "a=b"),
        *("a;=1", "a;'=1", "'=1", ";\n=", "a\r\n=2", "; \"'=", "=;=;="),
    ],
)
def test_neutralised_text_can_be_restored(text: str) -> None:
    assert restore(str(neutralise(text))) == text


async def test_a_csv_needs_its_kind(coach: CoachClient) -> None:
    assert (await coach.get("/coach/export", format="csv")).refused(400)["errors"][0]["field"] == "kind"
    (await coach.get("/coach/export", format="xml")).refused(400)
