"""Writing planned sets as text that `planned` reads as the same sets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import cast

from coaching_service.training.set_text._values import write_efforts, write_kind, write_load
from coaching_service.training.set_text.scanner import write_number
from coaching_service.training.workouts.sets.models import PlannedSet

_PLAIN_TEMPO = re.compile(r'[^\s,"|«»]+')  # the others have a meaning in the line of an exercise
_ESCAPE = re.compile(r'["\\]')


def write_planned(sets: Sequence[PlannedSet], load_unit: str) -> str:
    """Return planned sets, whose loads are in `load_unit`, as text: successive equal sets are one group."""
    groups = []
    expected = 1
    ordered = enumerate(sorted(sets, key=lambda planned: planned["index"]))
    # Sets with successive numbers have the same difference of number and position.
    for (text, _), members in groupby(
        ordered, key=lambda entry: (_write_set(entry[1], load_unit), entry[1]["index"] - entry[0])
    ):
        indexes = [planned["index"] for _, planned in members]
        prefix = "" if indexes[0] == expected else f"#{indexes[0]} "
        groups.append(f"{prefix}{len(indexes)}x{text}")
        expected = indexes[-1] + 1
    return ", ".join(groups)


def _write_set(planned: PlannedSet, load_unit: str) -> str:
    words = [_write_quantity(planned)]
    if planned.get("loadPercent") is not None:
        words.append(f"@{write_number(cast('float', planned['loadPercent']))}%")
    elif planned["type"].endswith("_load"):
        words.append(write_load(planned.get("load"), load_unit))
    return " ".join([*words, *_write_flags(planned)])


def _write_flags(planned: PlannedSet) -> list[str]:
    rest = [] if planned["rest"] is None else [f"rest {write_number(planned['rest'])}s"]
    tempo = [] if planned["tempo"] is None else [f"tempo {_write_tempo(planned['tempo'])}"]
    is_amrap = planned.get("isAmrap") and not planned["type"].startswith("reps")
    amrap = ["AMRAP"] if is_amrap else []
    return [*rest, *write_efforts(planned), *tempo, *write_kind(planned), *amrap]


def _write_quantity(planned: PlannedSet) -> str:
    side = "/side" if planned.get("perSide") else ""
    if planned["type"].startswith("distance"):
        return f"{_write_end(planned.get('plannedMeters'))}m{side}"
    if planned["type"].startswith("time"):
        return f"{_write_range(planned.get('minPlannedSeconds'), planned.get('maxPlannedSeconds'))}s{side}"
    reps = _write_range(planned.get("minPlannedReps"), planned.get("maxPlannedReps"))
    if planned.get("isAmrap"):
        return f"AMRAP{side}" if reps == "?" else f"{reps}+{side}"
    return f"{reps}{side}"


def _write_range(low: float | None, high: float | None) -> str:
    return _write_end(low) if low == high else f"{_write_end(low)}-{_write_end(high)}"


def _write_end(number: float | None) -> str:
    return "?" if number is None else write_number(number)


def _write_tempo(tempo: str) -> str:
    if _PLAIN_TEMPO.fullmatch(tempo):
        return tempo
    return f'"{_ESCAPE.sub(lambda match: chr(92) + match[0], tempo)}"'
