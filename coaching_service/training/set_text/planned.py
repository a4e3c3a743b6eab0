"""Reading planned sets from text, such as `4x8-10 @60kg rest 90s RPE8, 1xAMRAP @50kg failure`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import groupby
from typing import Any, cast

from coaching_service.training.set_text import scanner as set_text_scanner
from coaching_service.training.workouts import sets as workout_sets

EXAMPLE = "4x8-10 @60kg rest 90s RPE8"
MAX_INDEX = 1000
_FLAGS = "a comma, or one of @LOAD, rest, RPE, RIR, tempo, warmup, drop, failure and AMRAP"
_QUANTITY = "repetitions (8 or 8-10), a time (30s), a distance (400m) or AMRAP"
_LABELS = {"setKind": "drop or failure", "isAmrap": "AMRAP", "isWarmup": "warmup"}
_WORDS = {**set_text_scanner.KINDS, "amrap": ("isAmrap", True)}
_CLOCK = re.compile(r"(\d{1,4}):([0-5]\d)(?!\d)", re.ASCII)
_DASH = re.compile(r"[-–]")
_SIDE = re.compile(r"/\s*side\b|\bper side\b|\beach side\b", re.IGNORECASE)
_TEMPO = re.compile(r'"((?:[^"\\]|\\["\\]){1,40})"|([^\s,"]{1,20})')
_UNESCAPE = re.compile(r"\\(.)")
_LONGEST_TEMPO = 20


@dataclass
class _Group:
    """Equal sets while they are read: `fields` are the fields of each set, but its index."""

    scanner: set_text_scanner.Scanner
    load_unit: str
    fields: dict[str, Any] = field(default_factory=dict)
    quantity: str = "reps"
    has_load: bool = False

    def set_once(self, name: str, value: object, start: int) -> None:
        """Set a field. Raises SetTextError if the text has already stated it."""
        if name in self.fields:
            raise self.scanner.error(f"{_LABELS.get(name, name)} only once", start)
        self.fields[name] = value


def parse_planned(text: str, load_unit: str) -> list[workout_sets.PlannedSet]:
    """Return the planned sets of a text, in the fields in which they are stored.

    `load_unit` (`kg` or `lb`) is the unit of loads without one, and of the result: other loads are converted. Raises
    SetTextError.
    """
    scanner = set_text_scanner.Scanner(text, EXAMPLE)
    sets: list[workout_sets.PlannedSet] = []
    used: set[int] = set()
    index = 1
    while True:
        start = scanner.start
        if scanner.take_text("#"):
            index = scanner.require_integer(f"the number of a set, 1 to {MAX_INDEX}", 1, MAX_INDEX)
        count = scanner.require_integer(
            f"how many sets, 1 to {workout_sets.MAX_SETS}, then x", 1, workout_sets.MAX_SETS
        )
        if not scanner.take(set_text_scanner.TIMES):
            raise scanner.error("x after the number of sets")
        group = _parse_group(scanner, load_unit)
        indexes = range(index, index + count)
        if len(sets) + count > workout_sets.MAX_SETS or indexes[-1] > MAX_INDEX or not used.isdisjoint(indexes):
            raise scanner.error(f"at most {workout_sets.MAX_SETS} sets in all, each number once", start)
        used.update(indexes)
        sets += [cast("workout_sets.PlannedSet", {"index": each, **group}) for each in indexes]
        index += count
        if scanner.is_at_end:
            return sorted(sets, key=lambda planned: planned["index"])
        if not scanner.take_text(","):
            raise scanner.error(_FLAGS)


def _parse_group(scanner: set_text_scanner.Scanner, load_unit: str) -> dict[str, Any]:
    group = _Group(scanner, load_unit)
    _parse_quantity(group)
    while _parse_option(group):
        pass
    defaults: dict[str, Any] = {"rest": None, "rpe": None, "rir": None, "tempo": None, "isWarmup": False}
    defaults |= {"isAmrap": False, "perSide": False, "setKind": "normal"}
    if group.has_load:
        defaults |= {"load": None, "loadPercent": None}
    set_type = f"{group.quantity}_load" if group.has_load else group.quantity
    return {"type": set_type, **defaults, **group.fields}


# --- Quantities ------------------------------------------------------------------------------------------------------


def _parse_quantity(group: _Group) -> None:
    """Read the repetitions, time or distance of each set."""
    scanner = group.scanner
    start = scanner.start
    if scanner.take_word("amrap", "max"):
        group.set_once("isAmrap", value=True, start=start)
        _set_reps(group, None, None, start)
    elif clock := scanner.take(_CLOCK):
        seconds = set_text_scanner.seconds_of(scanner, Decimal(clock[1]) * 60 + Decimal(clock[2]), 1, start)
        _set_seconds(group, seconds, seconds)
    else:
        _parse_range(group, start)
    if scanner.take(_SIDE):
        group.set_once("perSide", value=True, start=start)


def _parse_range(group: _Group, start: int) -> None:
    scanner = group.scanner
    low = _parse_end(scanner)
    high = _parse_end(scanner) if scanner.take(_DASH) else low
    if low is not None and high is not None and low > high:
        raise scanner.error("the smaller number first", start)
    if (factor := set_text_scanner.take_time_unit(scanner)) is not None:
        ends = [
            None if end is None else set_text_scanner.seconds_of(scanner, end, factor, start) for end in (low, high)
        ]
        _set_seconds(group, ends[0], ends[1])
    elif (factor := set_text_scanner.take_distance_unit(scanner)) is not None:
        if low != high:
            raise scanner.error("one distance, not a range", start)
        group.quantity = "distance"
        group.fields["plannedMeters"] = None if low is None else set_text_scanner.meters_of(scanner, low, factor, start)
    else:
        _set_reps(group, low, high, start)
        if scanner.take_text("+"):
            group.set_once("isAmrap", value=True, start=start)


def _parse_end(scanner: set_text_scanner.Scanner) -> Decimal | None:
    """Read one end of a range; None for `?`, which leaves it open."""
    if scanner.take_text("?"):
        return None
    number = scanner.take_number()
    if number is None:
        raise scanner.error(_QUANTITY)
    return number


def _set_seconds(group: _Group, low: float | None, high: float | None) -> None:
    group.quantity = "time"
    group.fields |= {"minPlannedSeconds": low, "maxPlannedSeconds": high}


def _set_reps(group: _Group, low: Decimal | None, high: Decimal | None, start: int) -> None:
    for end in (low, high):
        if end is not None and (end != end.to_integral_value() or end > workout_sets.MAX_REPS):
            raise group.scanner.error(f"a whole number of repetitions, at most {workout_sets.MAX_REPS}", start)
    ends = [None if end is None else int(end) for end in (low, high)]
    group.fields |= {"minPlannedReps": ends[0], "maxPlannedReps": ends[1]}


# --- Load and flags --------------------------------------------------------------------------------------------------


def _parse_option(group: _Group) -> bool:
    """Read a load or a flag; False if there is none."""
    scanner = group.scanner
    start = scanner.start
    if scanner.take_text("@"):
        _parse_load(group, start)
    elif scanner.take_word("rest"):
        _parse_rest(group, start)
    elif scanner.take_word("tempo"):
        _parse_tempo(group, start)
    elif (stated := set_text_scanner.take_stated(scanner, _WORDS)) is not None:
        group.set_once(*stated, start)
    else:
        return False
    return True


def _parse_load(group: _Group, start: int) -> None:
    scanner = group.scanner
    group.has_load = True
    if scanner.take_text("?"):
        group.set_once("load", None, start)
        return
    number = scanner.take_number()
    if number is None:
        raise scanner.error("a load (60kg, 135lb), a percentage (70%) or ?")
    if not scanner.take_text("%"):
        group.set_once("load", set_text_scanner.require_load(scanner, number, group.load_unit, start), start)
        return
    if number > workout_sets.MAX_PERCENT:
        raise scanner.error(f"at most {workout_sets.MAX_PERCENT}%", start)
    group.set_once("load", None, start)
    group.fields["loadPercent"] = set_text_scanner.to_number(number)


def _parse_rest(group: _Group, start: int) -> None:
    scanner = group.scanner
    if clock := scanner.take(_CLOCK):
        seconds = set_text_scanner.seconds_of(scanner, Decimal(clock[1]) * 60 + Decimal(clock[2]), 1, start)
    else:
        number = scanner.require_number("a time, such as 90s", 0, workout_sets.MAX_SECONDS)
        seconds = set_text_scanner.seconds_of(scanner, number, set_text_scanner.take_time_unit(scanner) or 1, start)
    group.set_once("rest", seconds, start)


def _parse_tempo(group: _Group, start: int) -> None:
    match = group.scanner.take(_TEMPO)
    tempo = match and (match[2] or _UNESCAPE.sub(r"\1", match[1]).strip())
    if not tempo or len(tempo) > _LONGEST_TEMPO:
        raise group.scanner.error(f'a tempo such as 3110 or "slow down", at most {_LONGEST_TEMPO} characters')
    group.set_once("tempo", tempo, start)


_PLAIN_TEMPO = re.compile(r'[^\s,"|«»]+')  # the others have a meaning in the line of an exercise
_ESCAPE = re.compile(r'["\\]')


def write_planned(sets: Sequence[workout_sets.PlannedSet], load_unit: str) -> str:
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


def _write_set(planned: workout_sets.PlannedSet, load_unit: str) -> str:
    words = [_write_quantity(planned)]
    if planned.get("loadPercent") is not None:
        words.append(f"@{set_text_scanner.write_number(cast('float', planned['loadPercent']))}%")
    elif planned["type"].endswith("_load"):
        words.append(set_text_scanner.write_load(planned.get("load"), load_unit))
    return " ".join([*words, *_write_flags(planned)])


def _write_flags(planned: workout_sets.PlannedSet) -> list[str]:
    rest = [] if planned["rest"] is None else [f"rest {set_text_scanner.write_number(planned['rest'])}s"]
    tempo = [] if planned["tempo"] is None else [f"tempo {_write_tempo(planned['tempo'])}"]
    is_amrap = planned.get("isAmrap") and not planned["type"].startswith("reps")
    amrap = ["AMRAP"] if is_amrap else []
    return [*rest, *set_text_scanner.write_efforts(planned), *tempo, *set_text_scanner.write_kind(planned), *amrap]


def _write_quantity(planned: workout_sets.PlannedSet) -> str:
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
    return "?" if number is None else set_text_scanner.write_number(number)


def _write_tempo(tempo: str) -> str:
    if _PLAIN_TEMPO.fullmatch(tempo):
        return tempo
    return f'"{_ESCAPE.sub(lambda match: chr(92) + match[0], tempo)}"'
