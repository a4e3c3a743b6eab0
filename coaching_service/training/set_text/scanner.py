"""Reading a text from left to right, with errors that name the position and what was expected there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from coaching_service.core.text import without_separators
from coaching_service.people.account import convert_load
from coaching_service.training.workouts import sets

_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(r"(\d+)(?:([.,])(\d+))?", re.ASCII)
_WORD = re.compile(r"[a-z]+", re.ASCII | re.IGNORECASE)
_LONGEST_QUOTE = 40
_THOUSANDS = 3  # digits after a separator of thousands
_COMMA_HINT = " (a comma between digits is a decimal comma: write a space after the commas between sets)"


class SetTextError(ValueError):
    """A text is not in the grammar; `position` counts characters from 1.

    `problem` says it to the person who typed the text, with what could not be read.
    """

    def __init__(self, position: int, expected: str, example: str, text: str = "") -> None:
        super().__init__(f"at position {position}: expected {expected}, as in: {example}")
        self.position = position
        unread = text[position - 1 :].strip()
        shown = unread if len(unread) <= _LONGEST_QUOTE else f"{unread[:_LONGEST_QUOTE]}…"
        start = f"“{shown}” cannot be read. Write" if unread else "Something is missing: write"
        self.problem = f"{start} {expected}, as in {example}"


@dataclass
class Scanner:
    """A text and the position up to which it has been read; `example` is added to errors."""

    text: str
    example: str
    position: int = 0
    has_decimal_comma: bool = False

    def __post_init__(self) -> None:
        """Read what ends a line elsewhere as a space."""
        self.text = without_separators(self.text)

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read what `pattern` matches after white space; None, and nothing is read, if it does not match."""
        start = self.start
        match = pattern.match(self.text, start)
        if match is not None:
            self.position = match.end()
        return match

    def take_word(self, *words: str) -> bool:
        """Read one of these words, in lower or upper case, and return whether it was there."""
        start = self.start
        match = _WORD.match(self.text, start)
        if match is None or match[0].lower() not in words:
            return False
        self.position = match.end()
        return True

    def take_text(self, text: str) -> bool:
        """Read exactly this text, and return whether it was there."""
        start = self.start
        if not self.text.startswith(text, start):
            return False
        self.position = start + len(text)
        return True

    def take_number(self) -> Decimal | None:
        """Read a number without a sign, if there is one. A comma directly between digits is a decimal comma.

        Raises SetTextError for three digits after a comma, such as 1,500, which may also be thousands.
        """
        start = self.start
        match = self.take(_NUMBER)
        if match is None:
            return None
        if match[2] == ",":
            if len(match[3]) == _THOUSANDS and int(match[1]):
                raise self.error(f"{match[1]}{match[3]} or {match[1]}.{match[3]}, as {match[0]} may mean both", start)
            self.has_decimal_comma = True
        return Decimal(match[0].replace(",", "."))

    def require_number(self, expected: str, minimum: int, maximum: int) -> Decimal:
        """Read a number from `minimum` to `maximum`. Raises SetTextError."""
        start = self.start
        number = self.take_number()
        if number is None or not minimum <= number <= maximum:
            raise self.error(expected, start)
        return number

    def require_integer(self, expected: str, minimum: int, maximum: int) -> int:
        """Read a whole number from `minimum` to `maximum`. Raises SetTextError."""
        start = self.start
        number = self.require_number(expected, minimum, maximum)
        if number != number.to_integral_value():
            raise self.error(expected, start)
        return int(number)

    @property
    def start(self) -> int:
        """The position of the next character that is not white space."""
        match = _SPACE.match(self.text, self.position)
        return match.end() if match else self.position

    @property
    def is_at_end(self) -> bool:
        """Whether only white space is left."""
        return self.start == len(self.text)

    def error(self, expected: str, position: int | None = None) -> SetTextError:
        """Return the error for a position, by default the next character that is not white space."""
        hint = _COMMA_HINT if self.has_decimal_comma else ""
        return SetTextError(
            (self.start if position is None else position) + 1, expected + hint, self.example, self.text
        )


def to_number(number: Decimal) -> float:
    """Return a number as it is stored: an integer if it is whole."""
    return int(number) if number == number.to_integral_value() else float(number)


def write_number(number: float) -> str:
    """Return the shortest text of a number that is read as the same number, without an exponent."""
    if number == int(number):
        return str(int(number))
    return format(Decimal(repr(number)), "f")


# --- The parts that planned and done sets have in common: times, distances and loads ----------------------------------


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
    return _bounded(scanner, number * factor, sets.MAX_SECONDS, "a time of at most 24 hours", start)


def meters_of(scanner: Scanner, number: Decimal, factor: int, start: int) -> float:
    """Return a distance in meters. Raises SetTextError if it is too long."""
    return _bounded(scanner, number * factor, sets.MAX_METERS, f"at most {sets.MAX_METERS} meters", start)


def require_load(scanner: Scanner, number: Decimal, load_unit: str, start: int) -> float:
    """Return a load in `load_unit`, after reading the unit that may follow the number. Raises SetTextError."""
    unit = load_unit
    if scanner.take_word("kg", "kgs"):
        unit = "kg"
    elif scanner.take_word("lb", "lbs"):
        unit = "lb"
    expected = f"a load of at most {sets.MAX_LOAD} {load_unit}"
    _bounded(scanner, number, 10 * sets.MAX_LOAD, expected, start)
    load = convert_load(number, unit, load_unit)
    return _bounded(scanner, load, sets.MAX_LOAD, expected, start)


def _bounded(scanner: Scanner, number: Decimal, maximum: int, expected: str, start: int) -> float:
    if number > maximum:
        raise scanner.error(expected, start)
    return to_number(number)


def write_load(load: float | None, load_unit: str) -> str:
    """Return a load as text; `@?` for one that is not stated."""
    return "@?" if load is None else f"@{write_number(load)}{load_unit}"


def write_efforts(each: sets.PlannedSet | sets.CustomerSet) -> list[str]:
    """Return the RPE and RIR of a set as text, those that it has."""
    rpe = [] if each["rpe"] is None else [f"RPE{write_number(each['rpe'])}"]
    return rpe if each["rir"] is None else [*rpe, f"RIR{write_number(each['rir'])}"]


def write_kind(each: sets.PlannedSet | sets.CustomerSet) -> list[str]:
    """Return the words for a warm-up set, drop set or set to failure."""
    kind = each.get("setKind", "normal")
    return [*(["warmup"] if each.get("isWarmup") else []), *([kind] if kind != "normal" else [])]
