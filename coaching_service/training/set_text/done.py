"""Done sets as text, such as `8, 8, 7 @60kg`: three sets. A load counts for the sets before it that have none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, cast

from coaching_service.core.ids import ObjectId
from coaching_service.training.set_text import scanner as set_text_scanner
from coaching_service.training.set_text.planned import MAX_INDEX
from coaching_service.training.workouts.sets import MAX_REPS, MAX_SETS, CustomerSet, PlannedSet

EXAMPLE = "8, 8, 7 @60kg"
MAX_DONE_SETS = 200
_SLASHES = re.compile(r"^\s*\d{1,6}(?:\s?/\s?\d{1,6}){2,}(?=\s|@|$)", re.ASCII)
_WORDS = {**set_text_scanner.KINDS, "skipped": ("isCompleted", False)}
_QUANTITY = "repetitions (8), a time (30s), a distance (400m) or -"
_OPTIONS = "a comma, or one of @LOAD, RPE, RIR, round and skipped"


@dataclass
class _Entry:
    """One entry of the text: a set, or equal ones; `fields` without the load if none was stated."""

    count: int = 1
    index: int | None = None
    fields: dict[str, Any] = field(default_factory=dict)


def parse_done(
    text: str, load_unit: str, exercise_id: ObjectId | None = None, sets_per_round: int | None = None
) -> list[CustomerSet]:
    """Return the done sets of a text, in the fields in which they are stored.

    `load_unit` (`kg` or `lb`) is the unit of loads without one, and of the result. `exercise_id`: the exercise of a
    circuit. `sets_per_round`: how many sets each round has, so that sets without `round` are of round 1, then 2.
    `8/8/7` is `8, 8, 7`; two numbers such as `8/8` are not accepted, as they may mean two sides. Raises SetTextError.
    """
    scanner = set_text_scanner.Scanner(text, EXAMPLE)
    slashes = _SLASHES.match(scanner.text)
    end_of_slashes = slashes.end() if slashes else 0
    entries: list[_Entry] = []
    without_load: list[_Entry] = []
    while True:
        entry = _parse_entry(scanner, load_unit)
        entries.append(entry)
        without_load.append(entry)
        if "load" in entry.fields:
            for each in without_load:
                each.fields["load"] = entry.fields["load"]
            without_load = []
        if sum(each.count for each in entries) > MAX_DONE_SETS:
            raise scanner.error(f"at most {MAX_DONE_SETS} sets")
        if scanner.is_at_end:
            break
        if not scanner.take_text(",") and not (scanner.start < end_of_slashes and scanner.take_text("/")):
            raise scanner.error(_OPTIONS)
    return _number_sets(scanner, entries, exercise_id, sets_per_round)


def _number_sets(
    scanner: set_text_scanner.Scanner,
    entries: Sequence[_Entry],
    exercise_id: ObjectId | None,
    sets_per_round: int | None,
) -> list[CustomerSet]:
    sets: list[CustomerSet] = []
    counts: Counter[int | None] = Counter()
    used: set[tuple[int | None, int]] = set()
    for entry in entries:
        for at in range(entry.count):
            round_of_set = entry.fields.get("round") or _expected_round(len(sets), sets_per_round)
            index = counts[round_of_set] + 1 if entry.index is None else entry.index + at
            counts[round_of_set] = index
            if (round_of_set, index) in used or index > MAX_INDEX:
                raise scanner.error(f"each number of a set once, at most {MAX_INDEX}", 0)
            used.add((round_of_set, index))
            empty = dict.fromkeys(("reps", "load", "seconds", "meters", "rpe", "rir"))
            kind = {"isWarmup": False, "setKind": "normal", "isCompleted": True}
            logged = {"index": index, "exerciseId": exercise_id, **empty, **kind, **entry.fields}
            sets.append(cast("CustomerSet", {**logged, "round": round_of_set}))
    return sets


def _expected_round(position: int, sets_per_round: int | None) -> int | None:
    """Return the round of a set that does not state it: its position counts from 0."""
    return None if sets_per_round is None else position // sets_per_round + 1


def _parse_entry(scanner: set_text_scanner.Scanner, load_unit: str) -> _Entry:
    entry = _Entry()
    if scanner.take_text("#"):
        entry.index = scanner.require_integer(f"the number of a set, 1 to {MAX_INDEX}", 1, MAX_INDEX)
    if not scanner.take_text("-") and not _parse_quantity(scanner, entry):
        raise scanner.error(_QUANTITY)
    while _parse_quantity(scanner, entry) or _parse_option(scanner, entry, load_unit):
        pass
    return entry


def _parse_quantity(scanner: set_text_scanner.Scanner, entry: _Entry) -> bool:
    start = scanner.start
    number = scanner.take_number()
    if number is None:
        return False
    if not entry.fields and scanner.take(set_text_scanner.TIMES):
        if number != number.to_integral_value() or not 1 <= number <= MAX_SETS:
            raise scanner.error(f"how many sets, 1 to {MAX_SETS}", start)
        entry.count = int(number)
        return scanner.take_text("-") or _parse_quantity(scanner, entry)
    if (factor := set_text_scanner.take_time_unit(scanner)) is not None:
        _set_once(scanner, entry, "seconds", set_text_scanner.seconds_of(scanner, number, factor, start), start)
    elif (factor := set_text_scanner.take_distance_unit(scanner)) is not None:
        _set_once(scanner, entry, "meters", set_text_scanner.meters_of(scanner, number, factor, start), start)
    elif number != number.to_integral_value() or number > MAX_REPS:
        raise scanner.error(f"a whole number of repetitions, at most {MAX_REPS}", start)
    else:
        _set_once(scanner, entry, "reps", int(number), start)
    return True


def _parse_option(scanner: set_text_scanner.Scanner, entry: _Entry, load_unit: str) -> bool:
    start = scanner.start
    if scanner.take_text("@"):
        _set_once(scanner, entry, "load", _parse_load(scanner, load_unit, start), start)
    elif scanner.take_word("round"):
        _set_once(scanner, entry, "round", scanner.require_integer("the number of a round", 1, 1000), start)
    elif (stated := set_text_scanner.take_stated(scanner, _WORDS)) is not None:
        _set_once(scanner, entry, *stated, start)
    else:
        return False
    return True


def _parse_load(scanner: set_text_scanner.Scanner, load_unit: str, start: int) -> float | None:
    if scanner.take_text("?"):
        return None
    number = scanner.take_number()
    if number is None:
        raise scanner.error("a load (60kg, 135lb) or ?")
    return set_text_scanner.require_load(scanner, number, load_unit, start)


def _set_once(scanner: set_text_scanner.Scanner, entry: _Entry, name: str, value: object, start: int) -> None:
    if name in entry.fields:
        raise scanner.error(f"{name} only once", start)
    entry.fields[name] = value


# --- Writing ---------------------------------------------------------------------------------------------------------


def write_done(sets: Sequence[CustomerSet], load_unit: str, sets_per_round: int | None = None) -> str:
    """Return done sets of one exercise, whose loads are in `load_unit`, as text: the inverse of `parse_done`.

    Sets without a load at the end need no mark; before one with a load, `@?` states that they have none.
    """
    texts = _write_entries(sets, sets_per_round)
    # Equal sets with flags are one entry with a count, others are written one by one, as coaches do.
    entries = [
        (count, prefix, quantity, flags, load)
        for (prefix, quantity, flags, load, _), count in _count_equal(texts)
        for count in ([count] if flags and not prefix else [1] * count)
    ]
    last_loaded = max((at for at, entry in enumerate(entries) if entry[4] is not None), default=-1)
    words = []
    for at, (count, prefix, quantity, flags, load) in enumerate(entries):
        ends_run = at + 1 == len(entries) or entries[at + 1][4] != load
        states_load = at <= last_loaded and ends_run
        options = [set_text_scanner.write_load(load, load_unit)] if states_load else []
        counted = f"{count}x{quantity}" if count > 1 else quantity
        words.append(" ".join([prefix + counted, *options, *flags]))
    return ", ".join(words)


_EntryText = tuple[str, str, tuple[str, ...], float | None, int | None]


def _write_entries(sets: Sequence[CustomerSet], sets_per_round: int | None) -> list[_EntryText]:
    """Return of each set: its number if it does not follow, quantity, flags, load, and round."""
    counts: Counter[int | None] = Counter()
    entries = []
    for position, logged in enumerate(sets):
        number = logged["round"]
        prefix = "" if logged["index"] == counts[number] + 1 else f"#{logged['index']} "
        counts[number] = logged["index"]
        flags = _write_flags(logged)
        if number is not None and number != _expected_round(position, sets_per_round):
            flags.append(f"round {number}")
        entries.append((prefix, _write_quantity(logged), tuple(flags), logged["load"], number))
    return entries


def _count_equal(entries: Sequence[_EntryText]) -> list[tuple[_EntryText, int]]:
    return [(entry, len(list(members))) for entry, members in groupby(entries)]


def _write_quantity(logged: CustomerSet) -> str:
    words = []
    if logged["reps"] is not None:
        words.append(str(logged["reps"]))
    if logged["seconds"] is not None:
        words.append(f"{set_text_scanner.write_number(logged['seconds'])}s")
    if logged["meters"] is not None:
        words.append(f"{set_text_scanner.write_number(logged['meters'])}m")
    return " ".join(words) or "-"


def _write_flags(logged: CustomerSet) -> list[str]:
    return [
        *set_text_scanner.write_efforts(logged),
        *set_text_scanner.write_kind(logged),
        *([] if logged["isCompleted"] else ["skipped"]),
    ]


def read_done_sets(text: str, load_unit: str, planned: Sequence[PlannedSet]) -> list[CustomerSet]:
    """Return the done sets of a text with the numbers of the planned sets. Raises SetTextError."""
    done = parse_done(text, load_unit)
    if "#" in text:
        return done
    return [{**each, "index": index} for each, index in zip(done, _usual_indexes(planned, len(done)), strict=True)]


def write_done_sets(done: Sequence[CustomerSet], load_unit: str, planned: Sequence[PlannedSet]) -> str:
    """Return done sets as the text that `read_done_sets` reads as the same sets."""
    indexes = [each["index"] for each in done]
    if indexes == _usual_indexes(planned, len(done)):
        return write_done([{**each, "index": index} for index, each in enumerate(done, 1)], load_unit)
    text = write_done(done, load_unit)
    return text if "#" in text else f"#1 {text}"


def _usual_indexes(planned: Sequence[PlannedSet], count: int) -> list[int]:
    """Return the numbers of done sets that do not state them."""
    working = [each["index"] for each in planned if not each["isWarmup"]]
    return working[:count] if count <= len(working) else list(range(1, count + 1))
