"""Planned and done sets as text, such as `4x8-10 @60kg rest 90s RPE8` and `8, 8, 7 @60kg`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import groupby
from typing import Any, cast

from coaching_service.core.ids import ObjectId
from coaching_service.core.text import without_separators
from coaching_service.people.account import convert_load
from coaching_service.training.workouts import sets as workout_sets
from coaching_service.training.workouts.sets import CustomerSet, PlannedSet

_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(r"(\d+)(?:([.,])(\d+))?", re.ASCII)
_WORD = re.compile(r"[a-z]+", re.ASCII | re.IGNORECASE)
_LONGEST_QUOTE = 40
_THOUSANDS = 3  # digits after a separator of thousands
_COMMA_HINT = " (a comma between digits is a decimal comma: write a space after the commas between sets)"
_MAX_INDEX = 1000
_TIMES = re.compile(r"[xX×]")
_SECONDS = {"s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1, "min": 60, "mins": 60, "minute": 60, "minutes": 60}
_METERS = {"m": 1, "meter": 1, "meters": 1, "km": 1_000}
# Words that state a field of a set, and its value.
_Words = Mapping[str, tuple[str, object]]
_KINDS: _Words = {"warmup": ("isWarmup", True), "drop": ("setKind", "drop"), "failure": ("setKind", "failure")}
_EFFORTS = {"rpe": (1, 10), "rir": (0, 100)}


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
class _Scanner:
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
        if (match := pattern.match(self.text, self.start)) is not None:
            self.position = match.end()
        return match

    def take_word(self, *words: str) -> bool:
        """Read one of these words, in lower or upper case, and return whether it was there."""
        if (match := _WORD.match(self.text, self.start)) is None or match[0].lower() not in words:
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
        if (match := self.take(_NUMBER)) is None:
            return None
        if match[2] == ",":
            if len(match[3]) == _THOUSANDS and int(match[1]):
                raise self.error(f"{match[1]}{match[3]} or {match[1]}.{match[3]}, as {match[0]} may mean both", start)
            self.has_decimal_comma = True
        return Decimal(match[0].replace(",", "."))

    def require_number(self, expected: str, minimum: int, maximum: int) -> Decimal:
        """Read a number from `minimum` to `maximum`. Raises SetTextError."""
        start = self.start
        if (number := self.take_number()) is None or not minimum <= number <= maximum:
            raise self.error(expected, start)
        return number

    def require_integer(self, expected: str, minimum: int, maximum: int) -> int:
        """Read a whole number from `minimum` to `maximum`. Raises SetTextError."""
        start = self.start
        if (number := self.require_number(expected, minimum, maximum)) != number.to_integral_value():
            raise self.error(expected, start)
        return int(number)

    def take_unit(self, units: Mapping[str, int]) -> int | None:
        """Read a unit of time or distance, and return how many seconds or meters it has; None if there is none."""
        return next((factor for word, factor in units.items() if self.take_word(word)), None)

    def bound(self, number: Decimal, maximum: int, expected: str, start: int) -> float:
        """Return a number as it is stored, an integer if it is whole. Raises SetTextError above the maximum."""
        if number > maximum:
            raise self.error(expected, start)
        return _to_number(number)

    def seconds(self, number: Decimal, start: int) -> float:
        """Return a time in seconds. Raises SetTextError if it is more than a day."""
        return self.bound(number, workout_sets.MAX_SECONDS, "a time of at most 24 hours", start)

    def meters(self, number: Decimal, start: int) -> float:
        """Return a distance in meters. Raises SetTextError if it is too long."""
        return self.bound(number, workout_sets.MAX_METERS, f"at most {workout_sets.MAX_METERS} meters", start)

    def repetitions(self, number: Decimal, start: int) -> int:
        """Return a whole number of repetitions. Raises SetTextError."""
        if number != number.to_integral_value() or number > workout_sets.MAX_REPS:
            raise self.error(f"a whole number of repetitions, at most {workout_sets.MAX_REPS}", start)
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
        at = (self.start if position is None else position) + 1
        return SetTextError(at, expected + hint, self.example, self.text)


def _to_number(number: Decimal) -> float:
    return int(number) if number == number.to_integral_value() else float(number)


def write_number(number: float) -> str:
    """Return the shortest text of a number that is read as the same number, without an exponent."""
    return str(int(number)) if number == int(number) else format(Decimal(repr(number)), "f")


# --- The parts that planned and done sets have in common --------------------------------------------------------------


@dataclass
class _Entry:
    """Equal sets while they are read: `fields` are the fields of each that the text states, but its index."""

    scanner: _Scanner
    load_unit: str
    labels: Mapping[str, str] = field(default_factory=dict)  # of fields in errors
    fields: dict[str, Any] = field(default_factory=dict)
    count: int = 1
    index: int | None = None
    quantity: str = "reps"

    def set_once(self, name: str, value: object, start: int) -> None:
        """Set a field. Raises SetTextError if the text has already stated it."""
        if name in self.fields:
            raise self.scanner.error(f"{self.labels.get(name, name)} only once", start)
        self.fields[name] = value

    def read_stated(self, words: _Words, start: int) -> bool:
        """Read one of the words, or RPE or RIR with its number; False if there is none. Raises SetTextError."""
        for word, (name, value) in words.items():
            if self.scanner.take_word(word):
                self.set_once(name, value, start)
                return True
        for name, (minimum, maximum) in _EFFORTS.items():
            if self.scanner.take_word(name):
                expected = f"a number from {minimum} to {maximum} after {name.upper()}"
                self.set_once(name, _to_number(self.scanner.require_number(expected, minimum, maximum)), start)
                return True
        return False

    def read_load(self, number: Decimal, start: int) -> float:
        """Return a load in `load_unit`, after reading the unit that may follow the number. Raises SetTextError."""
        unit = self.load_unit
        if self.scanner.take_word("kg", "kgs"):
            unit = "kg"
        elif self.scanner.take_word("lb", "lbs"):
            unit = "lb"
        expected = f"a load of at most {workout_sets.MAX_LOAD} {self.load_unit}"
        self.scanner.bound(number, 10 * workout_sets.MAX_LOAD, expected, start)
        load = convert_load(number, unit, self.load_unit)
        return self.scanner.bound(load, workout_sets.MAX_LOAD, expected, start)


def _write_load(load: float | None, load_unit: str) -> str:
    return "@?" if load is None else f"@{write_number(load)}{load_unit}"


def _write_efforts(each: PlannedSet | CustomerSet) -> list[str]:
    rpe = [] if each["rpe"] is None else [f"RPE{write_number(each['rpe'])}"]
    return rpe if each["rir"] is None else [*rpe, f"RIR{write_number(each['rir'])}"]


def _write_kind(each: PlannedSet | CustomerSet) -> list[str]:
    kind = each.get("setKind", "normal")
    return [*(["warmup"] if each.get("isWarmup") else []), *([kind] if kind != "normal" else [])]


# --- Planned sets -----------------------------------------------------------------------------------------------------


PLANNED_EXAMPLE = "4x8-10 @60kg rest 90s RPE8"
_FLAGS = "a comma, or one of @LOAD, rest, RPE, RIR, tempo, warmup, drop, failure and AMRAP"
_LABELS = {"setKind": "drop or failure", "isAmrap": "AMRAP", "isWarmup": "warmup"}
_PLANNED_WORDS = {**_KINDS, "amrap": ("isAmrap", True)}
_CLOCK = re.compile(r"(\d{1,4}):([0-5]\d)(?!\d)", re.ASCII)
_DASH = re.compile(r"[-–]")
_SIDE = re.compile(r"/\s*side\b|\bper side\b|\beach side\b", re.IGNORECASE)
_TEMPO = re.compile(r'"((?:[^"\\]|\\["\\]){1,40})"|([^\s,"]{1,20})')
_UNESCAPE = re.compile(r"\\(.)")
_LONGEST_TEMPO = 20


def parse_planned(text: str, load_unit: str) -> list[PlannedSet]:
    """Return the planned sets of a text, in the fields in which they are stored.

    `load_unit` (`kg` or `lb`) is the unit of loads without one, and of the result: other loads are converted. Raises
    SetTextError.
    """
    scanner = _Scanner(text, PLANNED_EXAMPLE)
    planned: list[PlannedSet] = []
    used: set[int] = set()
    index, most = 1, workout_sets.MAX_SETS
    while True:
        start = scanner.start
        if scanner.take_text("#"):
            index = scanner.require_integer(f"the number of a set, 1 to {_MAX_INDEX}", 1, _MAX_INDEX)
        count = scanner.require_integer(f"how many sets, 1 to {most}, then x", 1, most)
        if not scanner.take(_TIMES):
            raise scanner.error("x after the number of sets")
        entry = _Entry(scanner, load_unit, _LABELS)
        _read_planned_quantity(entry)
        while _read_planned_option(entry):
            pass
        indexes = range(index, index + count)
        if len(planned) + count > most or indexes[-1] > _MAX_INDEX or not used.isdisjoint(indexes):
            raise scanner.error(f"at most {most} sets in all, each number once", start)
        used.update(indexes)
        fields: dict[str, Any] = {"type": entry.quantity, "rest": None, "rpe": None, "rir": None, "tempo": None}
        fields |= {"isWarmup": False, "isAmrap": False, "perSide": False, "setKind": "normal"}
        if "load" in entry.fields:
            fields |= {"type": f"{entry.quantity}_load", "load": None, "loadPercent": None}
        planned += [cast("PlannedSet", {"index": each, **fields, **entry.fields}) for each in indexes]
        index += count
        if scanner.is_at_end:
            return sorted(planned, key=lambda each: each["index"])
        if not scanner.take_text(","):
            raise scanner.error(_FLAGS)


def _read_planned_quantity(entry: _Entry) -> None:
    """Read the repetitions, time or distance of each set."""
    scanner, start = entry.scanner, entry.scanner.start
    if scanner.take_word("amrap", "max"):
        entry.fields |= {"isAmrap": True, "minPlannedReps": None, "maxPlannedReps": None}
    elif (seconds := _take_clock(scanner)) is not None:
        entry.quantity = "time"
        entry.fields |= {"minPlannedSeconds": seconds, "maxPlannedSeconds": seconds}
    else:
        low = _read_end(scanner)
        high = _read_end(scanner) if scanner.take(_DASH) else low
        if low is not None and high is not None and low > high:
            raise scanner.error("the smaller number first", start)
        if (factor := scanner.take_unit(_SECONDS)) is not None:
            entry.quantity, read = "time", scanner.seconds
            names = ("minPlannedSeconds", "maxPlannedSeconds")
        elif (factor := scanner.take_unit(_METERS)) is not None:
            if low != high:
                raise scanner.error("one distance, not a range", start)
            entry.quantity, read, names = "distance", scanner.meters, ("plannedMeters", "plannedMeters")
        else:
            factor, read, names = 1, scanner.repetitions, ("minPlannedReps", "maxPlannedReps")
        for name, end in zip(names, (low, high), strict=True):
            entry.fields[name] = None if end is None else read(end * factor, start)
        if entry.quantity == "reps" and scanner.take_text("+"):
            entry.fields["isAmrap"] = True
    if scanner.take(_SIDE):
        entry.fields["perSide"] = True


def _read_end(scanner: _Scanner) -> Decimal | None:
    """Read one end of a range; None for `?`, which leaves it open."""
    if scanner.take_text("?"):
        return None
    if (number := scanner.take_number()) is None:
        raise scanner.error("repetitions (8 or 8-10), a time (30s), a distance (400m) or AMRAP")
    return number


def _take_clock(scanner: _Scanner) -> float | None:
    """Read a time such as 1:30; None if there is none."""
    start = scanner.start
    if clock := scanner.take(_CLOCK):
        return scanner.seconds(Decimal(clock[1]) * 60 + Decimal(clock[2]), start)
    return None


def _read_planned_option(entry: _Entry) -> bool:
    """Read a load or a flag; False if there is none."""
    scanner, start = entry.scanner, entry.scanner.start
    if scanner.take_text("@"):
        if scanner.take_text("?"):
            entry.set_once("load", None, start)
        elif (number := scanner.take_number()) is None:
            raise scanner.error("a load (60kg, 135lb), a percentage (70%) or ?")
        elif scanner.take_text("%"):
            most = workout_sets.MAX_PERCENT
            percent = scanner.bound(number, most, f"at most {most}%", start)
            entry.set_once("load", None, start)
            entry.fields["loadPercent"] = percent
        else:
            entry.set_once("load", entry.read_load(number, start), start)
    elif scanner.take_word("rest"):
        if (seconds := _take_clock(scanner)) is None:
            number = scanner.require_number("a time, such as 90s", 0, workout_sets.MAX_SECONDS)
            seconds = scanner.seconds(number * (scanner.take_unit(_SECONDS) or 1), start)
        entry.set_once("rest", seconds, start)
    elif scanner.take_word("tempo"):
        match = scanner.take(_TEMPO)
        tempo = match and (match[2] or _UNESCAPE.sub(r"\1", match[1]).strip())
        if not tempo or len(tempo) > _LONGEST_TEMPO:
            raise scanner.error(f'a tempo such as 3110 or "slow down", at most {_LONGEST_TEMPO} characters')
        entry.set_once("tempo", tempo, start)
    else:
        return entry.read_stated(_PLANNED_WORDS, start)
    return True


_PLAIN_TEMPO = re.compile(r'[^\s,"|«»]+')  # the others have a meaning in the line of an exercise
_ESCAPE = re.compile(r'["\\]')


def write_planned(sets: Sequence[PlannedSet], load_unit: str) -> str:
    """Return planned sets, whose loads are in `load_unit`, as text: successive equal sets are one group."""
    groups = []
    expected = 1
    ordered = enumerate(sorted(sets, key=lambda planned: planned["index"]))
    # Sets with successive numbers have the same difference of number and position.
    for (text, _), members in groupby(
        ordered, key=lambda entry: (_write_planned_set(entry[1], load_unit), entry[1]["index"] - entry[0])
    ):
        indexes = [planned["index"] for _, planned in members]
        prefix = "" if indexes[0] == expected else f"#{indexes[0]} "
        groups.append(f"{prefix}{len(indexes)}x{text}")
        expected = indexes[-1] + 1
    return ", ".join(groups)


def _write_planned_set(planned: PlannedSet, load_unit: str) -> str:
    quantity = _write_range(planned.get("minPlannedReps"), planned.get("maxPlannedReps"))
    if planned["type"].startswith("distance"):
        quantity = f"{_write_range(planned.get('plannedMeters'))}m"
    elif planned["type"].startswith("time"):
        quantity = f"{_write_range(planned.get('minPlannedSeconds'), planned.get('maxPlannedSeconds'))}s"
    elif planned.get("isAmrap"):
        quantity = "AMRAP" if quantity == "?" else f"{quantity}+"
    words = [quantity + ("/side" if planned.get("perSide") else "")]
    if planned.get("loadPercent") is not None:
        words.append(f"@{write_number(cast('float', planned['loadPercent']))}%")
    elif planned["type"].endswith("_load"):
        words.append(_write_load(planned.get("load"), load_unit))
    if planned["rest"] is not None:
        words.append(f"rest {write_number(planned['rest'])}s")
    words += _write_efforts(planned)
    if (tempo := planned["tempo"]) is not None:
        escaped = _ESCAPE.sub(lambda match: chr(92) + match[0], tempo)
        words.append(f"tempo {tempo}" if _PLAIN_TEMPO.fullmatch(tempo) else f'tempo "{escaped}"')
    words += _write_kind(planned)
    if planned.get("isAmrap") and not planned["type"].startswith("reps"):
        words.append("AMRAP")
    return " ".join(words)


def _write_range(*ends: float | None) -> str:
    """Return the ends of a range as text, equal ones once; `?` for one that is open."""
    return "-".join("?" if end is None else write_number(end) for end in dict.fromkeys(ends))


# --- Done sets: a load counts for the sets before it that have none ---------------------------------------------------


DONE_EXAMPLE = "8, 8, 7 @60kg"
MAX_DONE_SETS = 200
_SLASHES = re.compile(r"^\s*\d{1,6}(?:\s?/\s?\d{1,6}){2,}(?=\s|@|$)", re.ASCII)
_DONE_WORDS = {**_KINDS, "skipped": ("isCompleted", False)}


def parse_done(
    text: str, load_unit: str, exercise_id: ObjectId | None = None, sets_per_round: int | None = None
) -> list[CustomerSet]:
    """Return the done sets of a text, in the fields in which they are stored.

    `load_unit` (`kg` or `lb`) is the unit of loads without one, and of the result. `exercise_id`: the exercise of a
    circuit. `sets_per_round`: how many sets each round has, so that sets without `round` are of round 1, then 2.
    `8/8/7` is `8, 8, 7`; two numbers such as `8/8` are not accepted, as they may mean two sides. Raises SetTextError.
    """
    scanner = _Scanner(text, DONE_EXAMPLE)
    slashes = _SLASHES.match(scanner.text)
    end_of_slashes = slashes.end() if slashes else 0
    entries: list[_Entry] = []
    without_load: list[_Entry] = []
    while True:
        entry = _read_done_entry(scanner, load_unit)
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
            raise scanner.error("a comma, or one of @LOAD, RPE, RIR, round and skipped")
    done: list[CustomerSet] = []
    counts: Counter[int | None] = Counter()
    used: set[tuple[int | None, int]] = set()
    for entry in entries:
        for at in range(entry.count):
            round_of_set = entry.fields.get("round") or _expected_round(len(done), sets_per_round)
            index = counts[round_of_set] + 1 if entry.index is None else entry.index + at
            counts[round_of_set] = index
            if (round_of_set, index) in used or index > _MAX_INDEX:
                raise scanner.error(f"each number of a set once, at most {_MAX_INDEX}", 0)
            used.add((round_of_set, index))
            empty = dict.fromkeys(("reps", "load", "seconds", "meters", "rpe", "rir"))
            kind = {"isWarmup": False, "setKind": "normal", "isCompleted": True}
            logged = {"index": index, "exerciseId": exercise_id, **empty, **kind, **entry.fields}
            done.append(cast("CustomerSet", {**logged, "round": round_of_set}))
    return done


def _expected_round(position: int, sets_per_round: int | None) -> int | None:
    """Return the round of a set that does not state it: its position counts from 0."""
    return None if sets_per_round is None else position // sets_per_round + 1


def _read_done_entry(scanner: _Scanner, load_unit: str) -> _Entry:
    entry = _Entry(scanner, load_unit)
    if scanner.take_text("#"):
        entry.index = scanner.require_integer(f"the number of a set, 1 to {_MAX_INDEX}", 1, _MAX_INDEX)
    if not scanner.take_text("-") and not _read_done_quantity(entry):
        raise scanner.error("repetitions (8), a time (30s), a distance (400m) or -")
    while _read_done_quantity(entry) or _read_done_option(entry):
        pass
    return entry


def _read_done_quantity(entry: _Entry) -> bool:
    scanner, start = entry.scanner, entry.scanner.start
    if (number := scanner.take_number()) is None:
        return False
    if not entry.fields and scanner.take(_TIMES):
        if number != number.to_integral_value() or not 1 <= number <= workout_sets.MAX_SETS:
            raise scanner.error(f"how many sets, 1 to {workout_sets.MAX_SETS}", start)
        entry.count = int(number)
        return scanner.take_text("-") or _read_done_quantity(entry)
    if (factor := scanner.take_unit(_SECONDS)) is not None:
        entry.set_once("seconds", scanner.seconds(number * factor, start), start)
    elif (factor := scanner.take_unit(_METERS)) is not None:
        entry.set_once("meters", scanner.meters(number * factor, start), start)
    else:
        entry.set_once("reps", scanner.repetitions(number, start), start)
    return True


def _read_done_option(entry: _Entry) -> bool:
    scanner, start = entry.scanner, entry.scanner.start
    if scanner.take_text("@"):
        number = None
        if not scanner.take_text("?") and (number := scanner.take_number()) is None:
            raise scanner.error("a load (60kg, 135lb) or ?")
        entry.set_once("load", None if number is None else entry.read_load(number, start), start)
    elif scanner.take_word("round"):
        entry.set_once("round", scanner.require_integer("the number of a round", 1, 1000), start)
    else:
        return entry.read_stated(_DONE_WORDS, start)
    return True


def write_done(sets: Sequence[CustomerSet], load_unit: str, sets_per_round: int | None = None) -> str:
    """Return done sets of one exercise, whose loads are in `load_unit`, as text: the inverse of `parse_done`.

    Sets without a load at the end need no mark; before one with a load, `@?` states that they have none.
    """
    counts: Counter[int | None] = Counter()
    texts = []  # of each set: its number if it does not follow, quantity, flags, load, and round
    for position, logged in enumerate(sets):
        number = logged["round"]
        prefix = "" if logged["index"] == counts[number] + 1 else f"#{logged['index']} "
        counts[number] = logged["index"]
        amounts = ((logged["reps"], ""), (logged["seconds"], "s"), (logged["meters"], "m"))
        quantity = " ".join(f"{write_number(amount)}{unit}" for amount, unit in amounts if amount is not None) or "-"
        flags = [*_write_efforts(logged), *_write_kind(logged), *([] if logged["isCompleted"] else ["skipped"])]
        if number is not None and number != _expected_round(position, sets_per_round):
            flags.append(f"round {number}")
        texts.append((prefix, quantity, tuple(flags), logged["load"], number))
    # Equal sets with flags are one entry with a count, others are written one by one, as coaches do.
    entries = [
        (count, prefix, quantity, options, load)
        for (prefix, quantity, options, load, _), members in groupby(texts)
        for equal in [len(list(members))]
        for count in ([equal] if options and not prefix else [1] * equal)
    ]
    last_loaded = max((at for at, entry in enumerate(entries) if entry[4] is not None), default=-1)
    words = []
    for at, (count, prefix, quantity, options, load) in enumerate(entries):
        ends_run = at + 1 == len(entries) or entries[at + 1][4] != load
        loads = [_write_load(load, load_unit)] if at <= last_loaded and ends_run else []
        counted = f"{count}x{quantity}" if count > 1 else quantity
        words.append(" ".join([prefix + counted, *loads, *options]))
    return ", ".join(words)


def read_done_sets(text: str, load_unit: str, planned: Sequence[PlannedSet]) -> list[CustomerSet]:
    """Return the done sets of a text with the numbers of the planned sets. Raises SetTextError."""
    done = parse_done(text, load_unit)
    if "#" in text:
        return done
    return [{**each, "index": index} for each, index in zip(done, _usual_indexes(planned, len(done)), strict=True)]


def write_done_sets(done: Sequence[CustomerSet], load_unit: str, planned: Sequence[PlannedSet]) -> str:
    """Return done sets as the text that `read_done_sets` reads as the same sets."""
    if [each["index"] for each in done] == _usual_indexes(planned, len(done)):
        return write_done([{**each, "index": index} for index, each in enumerate(done, 1)], load_unit)
    text = write_done(done, load_unit)
    return text if "#" in text else f"#1 {text}"


def _usual_indexes(planned: Sequence[PlannedSet], count: int) -> list[int]:
    """Return the numbers of done sets that do not state them."""
    working = [each["index"] for each in planned if not each["isWarmup"]]
    return working[:count] if count <= len(working) else list(range(1, count + 1))
