"""A random history in each format with each locale's signs, of which a column was renamed, dropped or doubled.

Every number that is read equals the source, or its row is reported, or a question is asked; a column that is not read is
reported. `HISTORY_SEED=text` writes other histories, and repeats a failure. Each format has one of the locales with
each change, by chance; the proofs try all of them.
"""

from __future__ import annotations

import io
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

import pytest

from coaching_service.integrations.history_files.set_files import SetFile, Survey
from coaching_service.integrations.history_files.set_rows import Answers, SetRow
from coaching_service.integrations.history_files.tables import UnreadableTable
from tests.support.done_workouts import KG_OF_LB, Done, Workout, random_workouts
from tests.support.real_exports import EXPORTS, OTHER_EXPORTS, Export, as_csv
from tests.support.sampled import some
from tests.support.surveys import survey

SEED = os.environ.get("HISTORY_SEED", "2026-11-29")
# The sign before decimals, that of thousands, and what separates cells.
LOCALES = ((".", "", ","), (",", "", ";"), (".", ",", ";"), (",", ".", ";"), (",", "\u202f", ";"), (".", "\u2019", ","))
CHANGES = ("none", "renamed", "dropped", "doubled")
UNREAD = "Xyz"
DISTANCE = re.compile(r"^\d+\.\d+(?= (km|mi)$)")
Numbers = tuple[float | None, ...]  # repetitions, kilograms, meters, seconds, RPE


@dataclass(frozen=True)
class Case:
    """A file: the numbers of its lines by session, those of rests, and whether the changed column has something."""

    content: bytes
    lines: list[range]
    rests: set[int]
    has_cells: bool


def cell_of(value: object, sign: str, thousands: str) -> str:
    """A cell as a spreadsheet of a locale writes it."""
    if not isinstance(value, int | float):
        return DISTANCE.sub(lambda found: found[0].replace(".", sign), str(value))
    text = f"{value:,}" if abs(value) >= 1000 else str(value)
    return text.replace(",", "T").replace(".", sign).replace("T", thousands)


def build(export: Export, workouts: Sequence[Workout], locale: tuple[str, str, str], change: str, column: int) -> Case:
    sign, thousands, delimiter = locale
    headings, rows, lines = [*export.headings], list[list[str]](), list[range]()
    for workout in workouts:
        new = [[cell_of(cell, sign, thousands) for cell in row] for row in export.rows_of(workout)]
        lines.append(range(len(rows), len(rows) + len(new)))
        rows += new
    rests = {2 + number for number, row in enumerate(rows) if "Rest Timer" in row}
    has_cells = any(row[column] for row in rows)
    if change == "renamed":
        headings[column] = UNREAD
    elif change != "none":
        for each in (headings, *rows):
            each[column : column + 1] = [] if change == "dropped" else [each[column]] * 2
    table, first = [headings, *rows], 11 if export.format == "jefit" else 2
    return Case(
        export.encode(table) if export.format == "jefit" else as_csv(table, delimiter),
        [range(first + each.start, first + each.stop) for each in lines],
        rests,
        has_cells,
    )


def read(content: bytes, answers: Answers) -> tuple[Survey, list[SetRow]]:
    found = survey(io.BytesIO(content), answers)
    return found, [each for row in SetFile(io.BytesIO(content), found.answers).rows() for each in row.sets]


def answered(export: Export, sign: Literal[".", ","]) -> Answers:
    """What the person who has the file knows."""
    is_kg = export.unit == "kg"
    order: Literal["dmy"] | None = "dmy" if "CSV" in export.name and export.format == "sets" else None
    return Answers(
        load_unit="kg" if is_kg else "lb", distance_unit="km" if is_kg else "mi", decimal_sign=sign, date_order=order
    )


def numbers_of(export: Export, done: Done) -> Numbers:
    """What a file has of a set."""
    kg = done.kg if export.unit == "kg" else None if done.lb is None else done.lb * KG_OF_LB
    meters = None if done.km is None else (done.km * 1000 if export.unit == "kg" else (done.miles or 0) * 1609.344)
    return (
        done.reps,
        kg,
        meters if "meters" in export.has else None,
        done.seconds if "seconds" in export.has else None,
        done.rpe if "rpe" in export.has else None,
    )


def read_numbers(done: SetRow) -> Numbers:
    kg = None if done.load is None else done.load * (KG_OF_LB if done.load_unit == "lb" else 1)
    return (done.reps or None, kg, done.meters, done.seconds, done.rpe)  # 0 with a load: a failed attempt


def agree(found: Numbers, source: Numbers, *, may_lack: bool) -> bool:
    return all(
        (a is None and (may_lack or b is None)) or (a is not None and b is not None and abs(a - b) <= 0.02 + 1e-4 * b)
        for a, b in zip(found, source, strict=True)
    )


def unmatched(found: Iterable[Numbers], source: Sequence[Numbers]) -> tuple[list[Numbers], list[Numbers]]:
    """The sets that are not of the source, and those of the source that are missing."""
    left, wrong = [*source], list[Numbers]()
    for each in found:
        same = next((other for other in left if agree(each, other, may_lack=False)), None)
        if same is None:
            wrong.append(each)
        else:
            left.remove(same)
    return wrong, left


@pytest.mark.parametrize("export", (*EXPORTS, *OTHER_EXPORTS), ids=lambda export: export.name)
def test_every_number_equals_the_source_or_is_reported(export: Export) -> None:
    chance = Random(f"{SEED} {export.name}")
    seen: Counter[str] = Counter()
    for change in CHANGES:
        for locale in some(chance.sample(LOCALES, len(LOCALES)), 1):
            workouts = [*random_workouts(chance, 5)]
            column = chance.randrange(len(export.headings))
            case = build(export, workouts, locale, change, column)
            where = f"HISTORY_SEED={SEED} {export.name} {locale} {change} {export.headings[column]}"
            seen[check(export, workouts, case, locale, change, where)] += 1
    assert seen["read"], (SEED, seen)


def check(
    export: Export, workouts: Sequence[Workout], case: Case, locale: tuple[str, str, str], change: str, where: str
) -> str:
    try:
        found, sets = read(case.content, Answers())
        if found.questions:
            found, sets = read(case.content, answered(export, "." if locale[0] == "." else ","))
    except UnreadableTable:
        assert change in ("renamed", "dropped"), where
        return "refused"
    if found.questions:
        return "asked"
    is_unread = any(kind["code"] == "UNKNOWN_COLUMN" and kind["column"] == UNREAD for kind in found.kinds)
    assert is_unread or change != "renamed" or not case.has_cells, (where, found.kinds)
    reported = {line for kind in found.kinds if kind["code"] != "NOT_A_SET" for line in kind["lines"]}
    full = any(kind["count"] > len(kind["lines"]) for kind in found.kinds if kind["code"] != "NOT_A_SET")
    for workout, lines in zip(workouts, case.lines, strict=True):
        mine = [each for each in sets if each.line in lines]
        source = [numbers_of(export, each) for each in workout.sets]
        needs_reps = export.format in ("jefit", "stronglifts", "trainheroic")
        in_file = [each for each in source if (each[0] is not None if needs_reps else any(each))]
        for each in (other for other in mine if other.line not in case.rests or change == "none"):
            numbers = read_numbers(each)
            assert any(agree(numbers, other, may_lack=True) for other in source), (where, each, source)
            assert each.minutes in (None, workout.minutes), (where, each, workout.minutes)
        if change in ("none", "doubled") and not full and not reported.intersection(lines):
            wrong, missing = unmatched(map(read_numbers, mine), in_file)
            assert not wrong and not missing, (where, wrong, missing)
    return "read"
