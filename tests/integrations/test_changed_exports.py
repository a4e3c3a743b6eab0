"""A history in each format with each decimal sign, of which a column was renamed, dropped or doubled: nothing is misread."""

from __future__ import annotations

import csv
import io
import random
import re

import pytest

from coaching_service.integrations.history_files.set_files import SetFile
from coaching_service.integrations.history_files.set_rows import Answers, SetRow
from coaching_service.integrations.history_files.tables import UnreadableTable
from tests.support.real_exports import EXPORTS, Export
from tests.support.surveys import survey

_DECIMAL = re.compile(r"-?\d+\.\d+")
_ROWS = 60


def amounts(done: SetRow) -> dict[str, object]:
    """The numbers of a set."""
    kilograms = None if done.load is None else round(done.load * (0.45359237 if done.load_unit == "lb" else 1), 1)
    load = None if kilograms is None else (kilograms, done.load_unit is None)
    return {
        "reps": done.reps,
        "load": load,
        "meters": done.meters,
        "seconds": done.seconds,
        "rpe": done.rpe,
        "minutes": done.minutes,
    }


def written(headings: list[str], rows: list[list[str]], sign: str) -> bytes:
    """A CSV file, with semicolons if decimals have commas."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=";" if sign == "," else ",")
    writer.writerow(headings)
    for row in rows:
        writer.writerow([cell.replace(".", sign) if _DECIMAL.fullmatch(cell) else cell for cell in row])
    return out.getvalue().encode()


def read(content: bytes) -> tuple[dict[int, list[dict[str, object]]], set[int], bool]:
    """The numbers of each line, the lines with a problem, and whether anything is asked about."""
    try:
        found = survey(io.BytesIO(content), Answers())
    except UnreadableTable:
        return {}, set(), True
    rows = SetFile(io.BytesIO(content), found.answers).rows()
    sets = {row.line: [amounts(each) for each in row.sets] for row in rows}
    return sets, {line for kind in found.kinds for line in kind["lines"]}, bool(found.questions)


@pytest.mark.parametrize("export", EXPORTS, ids=lambda export: export.name)
def test_every_number_equals_the_source_or_is_reported(export: Export) -> None:
    chance = random.Random(export.name)
    headings = list(export.headings)
    rows = [["" if cell is None else str(cell) for cell in row] for row in export.rows()[:_ROWS]]
    truth, _, _ = read(written(headings, rows, "."))
    for sign in (".", ","):
        for change in ("none", "renamed", "dropped", "doubled"):
            number = chance.randrange(len(headings))
            changed, cells = list(headings), [list(row) for row in rows]
            if change == "renamed":
                changed[number] = "Xyz"
            if change in ("dropped", "doubled"):
                for each in (changed, *cells):
                    each[number : number + 1] = [] if change == "dropped" else [each[number]] * 2
            sets, reported, is_asked = read(written(changed, cells, sign))
            for line, expected in truth.items():
                found = sets.get(line, [])
                case = (sign, change, headings[number], line, expected, found)
                if is_asked:
                    continue
                is_same = change in ("none", "doubled")  # else the file itself says less: what is a rest, how many sets
                is_reported = line in reported or len(reported) >= 20
                assert not is_same or len(found) == len(expected) or is_reported, case
                for now in found if expected else ():
                    known = {name: {was[name] for was in expected} for name in now}
                    wrong = {name for name, value in now.items() if value is not None and value not in known[name]}
                    assert not wrong, (wrong, *case)
                    lost = {name for name, values in known.items() if now[name] is None and None not in values}
                    assert not lost or not is_same or is_reported, (lost, *case)
