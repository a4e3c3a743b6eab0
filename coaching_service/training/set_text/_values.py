"""The parts that planned and done sets have in common: times, distances and loads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from coaching_service.people.account.load_units import convert_load
from coaching_service.training.set_text.scanner import Scanner, to_number, write_number
from coaching_service.training.workouts.sets.models import MAX_LOAD, MAX_METERS, MAX_SECONDS, CustomerSet, PlannedSet

_SECONDS = {"s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1, "min": 60, "mins": 60, "minute": 60, "minutes": 60}
TIMES = re.compile(r"[xX×]")
# Words that state a field of a set, and its value.
Words = Mapping[str, tuple[str, object]]
KINDS: Words = {"warmup": ("isWarmup", True), "drop": ("setKind", "drop"), "failure": ("setKind", "failure")}
_EFFORTS = {"rpe": (1, 10), "rir": (0, 100)}
_METERS = {"m": 1, "meter": 1, "meters": 1, "km": 1_000}


def take_time_unit(scanner: Scanner) -> int | None:
    """Read a unit of time and return its seconds; None if there is none."""
    return _take_unit(scanner, _SECONDS)


def take_distance_unit(scanner: Scanner) -> int | None:
    """Read a unit of distance and return its meters; None if there is none."""
    return _take_unit(scanner, _METERS)


def _take_unit(scanner: Scanner, units: dict[str, int]) -> int | None:
    for word, factor in units.items():
        if scanner.take_word(word):
            return factor
    return None


def take_stated(scanner: Scanner, words: Words) -> tuple[str, object] | None:
    """Read one of the words, or RPE or RIR with its number, and return the field that it states, and its value.

    None if there is none. Raises SetTextError.
    """
    for word, stated in words.items():
        if scanner.take_word(word):
            return stated
    for name, (minimum, maximum) in _EFFORTS.items():
        if scanner.take_word(name):
            expected = f"a number from {minimum} to {maximum} after {name.upper()}"
            return name, to_number(scanner.require_number(expected, minimum, maximum))
    return None


def seconds_of(scanner: Scanner, number: Decimal, factor: int, start: int) -> float:
    """Return a time in seconds. Raises SetTextError if it is more than a day."""
    return _bounded(scanner, number * factor, MAX_SECONDS, "a time of at most 24 hours", start)


def meters_of(scanner: Scanner, number: Decimal, factor: int, start: int) -> float:
    """Return a distance in meters. Raises SetTextError if it is too long."""
    return _bounded(scanner, number * factor, MAX_METERS, f"at most {MAX_METERS} meters", start)


def require_load(scanner: Scanner, number: Decimal, load_unit: str, start: int) -> float:
    """Return a load in `load_unit`, after reading the unit that may follow the number. Raises SetTextError."""
    unit = load_unit
    if scanner.take_word("kg", "kgs"):
        unit = "kg"
    elif scanner.take_word("lb", "lbs"):
        unit = "lb"
    expected = f"a load of at most {MAX_LOAD} {load_unit}"
    _bounded(scanner, number, 10 * MAX_LOAD, expected, start)
    load = convert_load(number, unit, load_unit)
    return _bounded(scanner, load, MAX_LOAD, expected, start)


def _bounded(scanner: Scanner, number: Decimal, maximum: int, expected: str, start: int) -> float:
    if number > maximum:
        raise scanner.error(expected, start)
    return to_number(number)


def write_load(load: float | None, load_unit: str) -> str:
    """Return a load as text; `@?` for one that is not stated."""
    return "@?" if load is None else f"@{write_number(load)}{load_unit}"


def write_efforts(each: PlannedSet | CustomerSet) -> list[str]:
    """Return the RPE and RIR of a set as text, those that it has."""
    rpe = [] if each["rpe"] is None else [f"RPE{write_number(each['rpe'])}"]
    return rpe if each["rir"] is None else [*rpe, f"RIR{write_number(each['rir'])}"]


def write_kind(each: PlannedSet | CustomerSet) -> list[str]:
    """Return the words for a warm-up set, drop set or set to failure."""
    kind = each.get("setKind", "normal")
    return [*(["warmup"] if each.get("isWarmup") else []), *([kind] if kind != "normal" else [])]
