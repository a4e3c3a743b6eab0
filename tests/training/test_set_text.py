"""Sets as text: what is written is read back, and errors name the position."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marshmallow import Schema

from coaching_service.core.ids import ObjectId
from coaching_service.training.set_text import SetTextError, parse_done, parse_planned, write_done, write_planned
from coaching_service.training.workout_text.lines import parse_items, split_note
from coaching_service.training.workouts.sets import CustomerSet, PlannedSet, PlannedSets
from tests.support.sampled import MORE

PLANNED = [
    "4x8-10 @60kg rest 90s RPE8",
    "3x30s",
    "2x400m",
    "3xAMRAP",
    "3x10/side",
    "1x5 @70%, 1x3 @80%",
    "1x5 @40kg warmup, 3x5 @100kg RPE8.5 RIR1 tempo 3110, 1x12 @60kg drop, 1x8+ @80kg failure",
    "3x30-45s @12.5kg, 1x20s AMRAP, 1xAMRAP/side @?",
    "3x40m @24kg rest 60s, 1x20m/side @70%, 1x?m @?",
    '1x?-10, 1x8-?, 1x?, 2x?m, 1x?s, #9 1x5 tempo "slow, then fast"',
]
DONE = [
    "8, 8, 7 @60kg",
    "8, 8 @60kg, 6 @62.5kg",
    "8 @?, 8 @60kg, 5",
    "3x8 @60kg RPE8",
    "30s, 400m, 12 60s 200m @10kg, - skipped",
    "10 round 2, #4 8 RIR1",
]
FREE_PLANNED = [
    ("3 X 8 @60", "3x8 @60kg"),
    ("3×8–10 @ 60 KG rest 1:30 rpe 8", "3x8-10 @60kg rest 90s RPE8"),
    ("1x20min, 2x1.5km, 1x1:30", "1x1200s, 2x1500m, 1x90s"),
    ("1x5 RPE8 @135lb", "1x5 @61.23kg RPE8"),
    ("2x10 per side rest 2min", "2x10/side rest 120s"),
    ("1x5, 2x5", "3x5"),
    ("3x8 @62,5kg RPE8,5 rest 1,5min, 1x5,2km", "3x8 @62.5kg rest 90s RPE8.5, 1x5200m"),
    ("1x5 @67,5%, 1x0,5-1,5min RIR1,5", "1x5 @67.5%, 1x30-90s RIR1.5"),
    ("1x5 rest 0,125s", "1x5 rest 0.125s"),
]
FREE_DONE = [
    ("8, 8, 7 @62,5", "8, 8, 7 @62.5kg"),
    ("8 @62,5, 8 @60", "8 @62.5kg, 8 @60kg"),
    ("5,2km, 1,5min RPE8,5", "5200m, 90s RPE8.5"),
    ("2x8 @62,5 RIR1,5", "2x8 @62.5kg RIR1.5"),
    ("8/8/7 @62,5", "8, 8, 7 @62.5kg"),
    ("3x8 @12,25", "8, 8, 8 @12.25kg"),
]
REFUSED_PLANNED = [
    ("", 1, "how many sets"),
    ("squat", 1, "how many sets"),
    ("4 8", 3, "x after"),
    ("101x5", 1, "1 to 100"),
    ("60x5, 60x6", 7, "at most 100 sets"),
    ("4x", 3, "repetitions (8 or 8-10)"),
    ("4x10-8", 3, "smaller number first"),
    ("4x8.5", 3, "whole number"),
    ("4x8 @60stone", 8, "rest, RPE, RIR"),
    ("4x8 @", 6, "a load (60kg"),
    ("4x8 @201%", 5, "at most 200%"),
    ("2x400-500m", 3, "not a range"),
    ("3x8 RPE11", 8, "from 1 to 10"),
    ("3x8 drop failure", 10, "drop or failure only once"),
    ("3x8 rest", 9, "a time, such as 90s"),
    ("1x5,", 5, "how many sets"),
    ("3x8,3x5", 3, "a comma between digits is a decimal comma: write a space after the commas between sets"),
    ("1x1,500m", 3, "1500 or 1.500, as 1,500 may mean both"),
    ("#2 1x5, #2 1x5", 9, "each number once"),
]
REFUSED_DONE = [
    ("", 1, "repetitions (8)"),
    ("8, ", 4, "repetitions (8)"),
    ("8 @heavy", 4, "a load (60kg"),
    ("8.5", 1, "whole number"),
    ("8 8", 3, "reps only once"),
    ("8 great", 3, "a comma"),
    ("201x5", 1, "how many sets"),
    ("8/8", 2, "a comma"),
    ("8,8,7 @60", 1, "a comma between digits is a decimal comma: write a space after the commas between sets"),
    ("8 @1,250", 4, "1250 or 1.250, as 1,250 may mean both"),
]


class _Sets(Schema):
    sets = PlannedSets()


def stored(sets: list[dict[str, Any]]) -> list[PlannedSet]:
    """Planned sets as a request stores them."""
    loaded = _Sets().load({"sets": sets})["sets"]
    return cast("list[PlannedSet]", loaded)


def optional(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """The strategy, or None."""
    return st.none() | strategy


def amounts(maximum: float, minimum: float = 0) -> st.SearchStrategy[Any]:
    """Numbers as requests have them."""
    integers = st.integers(int(minimum), int(maximum))
    return (
        integers
        | st.floats(minimum, maximum, allow_nan=False)
        | integers.map(lambda number: min(number + 0.5, maximum))
    )


def ranges(low: str, high: str, numbers: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Two ends in order, each of which may be open."""

    def in_order(ends: tuple[Any, Any]) -> dict[str, Any]:
        first, second = ends
        if first is not None and second is not None and first > second:
            first, second = second, first
        return {low: first, high: second}

    return st.tuples(optional(numbers), optional(numbers)).map(in_order)


TEMPOS = st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), min_size=1, max_size=20).filter(str.strip)
FLAGS = st.fixed_dictionaries(
    {},
    optional={
        "rest": optional(amounts(86_400)),
        "rpe": optional(amounts(10, 1)),
        "rir": optional(amounts(100)),
        "tempo": optional(st.sampled_from(["3110", "30X1", "3-1-1-0", 'a"b\\', "rest, 5"]) | TEMPOS),
        "isWarmup": st.booleans(),
        "isAmrap": st.booleans(),
        "perSide": st.booleans(),
        "setKind": st.sampled_from(["normal", "drop", "failure"]),
    },
)
REPS = ranges("minPlannedReps", "maxPlannedReps", st.integers(0, 100_000))
SECONDS = ranges("minPlannedSeconds", "maxPlannedSeconds", amounts(86_400))
LOADS = st.one_of(
    st.just({}), amounts(100_000).map(lambda load: {"load": load}), amounts(200).map(lambda part: {"loadPercent": part})
)


METERS = optional(amounts(10_000_000)).map(lambda meters: {"plannedMeters": meters})


def merged(*parts: dict[str, Any]) -> dict[str, Any]:
    """The fields of all parts."""
    return {name: value for part in parts for name, value in part.items()}


QUANTITIES = st.one_of(
    REPS.map(lambda reps: {"type": "reps", **reps}),
    st.builds(merged, st.just({"type": "reps_load"}), REPS, LOADS),
    SECONDS.map(lambda seconds: {"type": "time", **seconds}),
    st.builds(merged, st.just({"type": "time_load"}), SECONDS, LOADS),
    optional(amounts(10_000_000)).map(lambda meters: {"type": "distance", "plannedMeters": meters}),
    st.builds(merged, st.just({"type": "distance_load"}), METERS, LOADS),
)
PLANNED_SETS = st.lists(
    st.tuples(st.builds(merged, QUANTITIES, FLAGS), st.integers(1, 4), st.integers(0, 2)), min_size=1, max_size=8
)


@settings(max_examples=40 * MORE)
@given(groups=PLANNED_SETS, unit=st.sampled_from(["kg", "lb"]))
def test_stored_sets_survive_their_text(groups: list[tuple[dict[str, Any], int, int]], unit: str) -> None:
    sets: list[dict[str, Any]] = []
    index = 0
    for fields, count, gap in groups:
        index += gap
        for _ in range(count):
            index += 1
            sets.append({**fields, "index": index})
    expected = stored(sets)
    text = write_planned(expected, unit)
    read = parse_planned(text, unit)
    assert read == expected
    assert stored(cast("list[dict[str, Any]]", read)) == expected
    assert write_planned(read, unit) == text
    assert split_note(f"{text} | a note") == (text, "a note")


PLAIN: dict[str, Any] = {"reps": 8, "isWarmup": False, "setKind": "normal", "isCompleted": True}
CUSTOMER_SETS = st.lists(
    st.fixed_dictionaries(
        {
            "reps": optional(st.integers(0, 100_000)),
            "load": optional(amounts(100_000)) | st.just(60),
            "seconds": optional(amounts(86_400)),
            "meters": optional(amounts(10_000_000)),
            "rpe": optional(amounts(10, 1)),
            "rir": optional(amounts(100)),
            "isWarmup": st.booleans(),
            "setKind": st.sampled_from(["normal", "drop", "failure"]),
            "isCompleted": st.booleans(),
            "round": optional(st.integers(1, 4)),
        }
    )
    | st.just(dict.fromkeys(("load", "seconds", "meters", "rpe", "rir", "round")) | PLAIN),
    min_size=1,
    max_size=10,
)


@settings(max_examples=40 * MORE)
@given(sets=CUSTOMER_SETS, gaps=st.lists(st.integers(0, 1), min_size=10, max_size=10), circuit=st.booleans())
def test_done_sets_survive_their_text(sets: list[dict[str, Any]], gaps: list[int], circuit: bool) -> None:
    exercise_id = ObjectId() if circuit else None
    indexes: dict[int | None, int] = {}
    done: list[CustomerSet] = []
    for fields, gap in zip(sets, gaps, strict=False):
        number = (fields["round"] or 1) if circuit else None
        indexes[number] = indexes.get(number, 0) + 1 + gap
        done.append(
            cast("CustomerSet", {**fields, "index": indexes[number], "exerciseId": exercise_id, "round": number})
        )
    per_round = 2 if circuit else None
    text = write_done(done, "kg", per_round)
    assert parse_done(text, "kg", exercise_id, per_round) == done
    assert write_done(parse_done(text, "kg", exercise_id, per_round), "kg", per_round) == text


PIECES = st.sampled_from(
    [
        *"0123456789x@#%?+-,.:/|«» \n",
        "kg",
        "lb",
        "rest ",
        "RPE",
        "tempo ",
        '"',
        "AMRAP",
        "circuit ",
        "rounds",
        "- ",
        "A1) ",
    ]
)


@settings(max_examples=50 * MORE)
@given(text=st.lists(PIECES, max_size=60).map("".join) | st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (parse_planned, parse_done):
        with suppress(SetTextError):
            assert read(text, "kg")
    parsed = parse_items(text, "lb", "text")
    assert all(problem.message and problem.description for problem in parsed.problems)
    assert parsed.items or parsed.problems or not text.strip()


def test_long_texts_are_read_quickly() -> None:
    for text in ("4x8 @" + "9" * 5_000 + "lb", "4x" + "9" * 5_000, "4x8 rest " + "9" * 5_000 + "min"):
        with pytest.raises(SetTextError):
            parse_planned(text, "kg")
    (problem,) = parse_items("circuit a" + " " * 20_000 + "b", "kg", "text").problems
    assert problem.message.startswith("expected 1 to 50 exercises")


@pytest.mark.parametrize(("text", "canonical"), [*zip(PLANNED, PLANNED, strict=True), *FREE_PLANNED])
def test_planned_text_and_other_spellings_are_read(text: str, canonical: str) -> None:
    assert write_planned(parse_planned(text, "kg"), "kg") == canonical


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("8/8/7", "8, 8, 7"),
        (" 10 / 8 / 6 @60", "10, 8, 6 @60kg"),
        ("3 × 8 @60", "8, 8, 8 @60kg"),
        ("8/8/7@60kg", "8, 8, 7 @60kg"),
        *zip(DONE, DONE, strict=True),
        *FREE_DONE,
    ],
)
def test_done_text_and_other_spellings_are_read(text: str, canonical: str) -> None:
    assert write_done(parse_done(text, "kg"), "kg") == canonical


def test_numbers_without_a_unit_are_in_the_unit_of_the_company() -> None:
    assert parse_planned("1x5 @135", "lb")[0]["load"] == 135
    assert parse_planned("1x5 @100kg", "lb")[0]["load"] == 220.46
    assert [each["load"] for each in parse_done("8, 8, 7 @60", "kg")] == [60, 60, 60]
    assert [each["round"] for each in parse_done("10, 10, 8", "kg", ObjectId(), 1)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("read", "example", "text", "position", "words"),
    [
        *((parse_planned, "4x8-10 @60kg rest 90s RPE8", *each) for each in REFUSED_PLANNED),
        *((parse_done, "8, 8, 7 @60kg", *each) for each in REFUSED_DONE),
    ],
)
def test_text_with_an_error_is_refused_where_it_is(
    read: Callable[[str, str], object], example: str, text: str, position: int, words: str
) -> None:
    with pytest.raises(SetTextError) as caught:
        read(text, "kg")
    assert caught.value.position == position, str(caught.value)
    assert words in str(caught.value)
    assert str(caught.value).endswith(example)


@pytest.mark.parametrize(
    ("line", "superset", "name"),
    [
        ("C Farmer carry: 3x40m", "C", "Farmer carry"),
        ("A  Skip: 3x20m", "A", "Skip"),
        ("C1 Farmer carry: 3x40m", "C", "Farmer carry"),
        ("c) Farmer carry: 3x40m", "C", "Farmer carry"),
        ("T bar row: 3x8", None, "T bar row"),
        ("Z Press: 3x8", None, "Z Press"),
        ("Chin-up: 3x8", None, "Chin-up"),
        ("-) Chin-up: 3x8", "-", "Chin-up"),
    ],
)
def test_letter_before_a_name_is_a_label(line: str, superset: str | None, name: str) -> None:
    parsed = parse_items(line, "kg", "text")
    assert [(item.superset, mention.name) for item, mention in zip(parsed.items, parsed.mentions, strict=True)] == [
        (superset, name)
    ]
