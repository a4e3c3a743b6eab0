"""What the files of each service look like; to add one, add its declaration to DIALECTS (docs/import-formats.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import time
from functools import lru_cache

from coaching_service.core.text import normalize
from coaching_service.integrations.history_files import values
from coaching_service.integrations.history_files.tables import Cell, Format, text_of

# --- Amounts with units, and those in the column of repetitions -------------------------------------------------------


# Cells by field, with the units that their headings have.
Cells = Mapping[values.Field, values.Amount]
SEVERAL_SETS = re.compile(r"(?:\d{1,4}|-)(?:\s*/\s*(?:\d{1,4}|-))+")
# What is between the numbers of a list, by the decimal sign; a comma without a space may be that sign.
_BETWEEN = {
    ".": re.compile(r"\s*[/;|,]\s*"),
    ",": re.compile(r"\s*[/;|]\s*|,\s+"),
}
_SEPARATOR = re.compile(r"[/;|,]")
_LISTED = re.compile(r"(-?\d+(?:[.,]\d+)?)\s*([^\d\s]*)")
_IN_LISTS: tuple[values.Field, ...] = ("reps", "load", "seconds", "distance", "rpe", "rir")
_SECONDS: Mapping[values.Unit, int] = {"min": 60, "m": 60, "h": 3600}  # no time is in meters
_DISTANCES: tuple[values.Unit, ...] = ("km", "mi", "m", "yd")
# Words behind an amount that say of what it is, such as `10 each`.
_NO_UNITS = {"a", "cada", "ea", "each", "por", "per", "x"}
# Words behind a number of repetitions.
_REPETITIONS = {
    *("rep", "reps", "repetition", "repetitions", "wdh", "wiederholungen", "repeticiones", "repes", "ripetizioni"),
    *("repeticoes", "e", "s", "l", "r", "left", "right", "side", "sides", "leg", "legs", "arm", "arms", "hand", "pro"),
    *("je", "seite", "bein", "arm", "lado", "pierna", "brazo", "par", "cote", "jambe", "bras", "lato", "gamba"),
    *("amrap", "max", *_NO_UNITS),
}
_WORD = re.compile(r"[^\W\d_]+")


def expand_amounts(cells: Cells, sign: values.DecimalSign | None) -> Iterator[Cells]:
    """Yield the sets of a row: `5/5/4` are three, `30s` is a time and `400 m` a distance in their own columns.

    Other lists, such as loads of `100/95`, are of as many sets as the column of sets or `5/5/4` counts.
    """
    cell = cells.get("reps", (None, None))[0]
    is_counted = isinstance(cell, str) and SEVERAL_SETS.fullmatch(cell.strip()) and not values.is_made_date(cell)
    lists = {name: parts for name in _IN_LISTS if (parts := list_in(cells.get(name, (None, None))[0], sign))}
    count = len(lists["reps"]) if is_counted else count_sets(cells)
    if count > 1 and any(len(parts) == count for parts in lists.values()):
        for number in range(count):
            of_set = {name: (parts[number], cells[name][1]) for name, parts in lists.items() if len(parts) == count}
            yield {**cells, "sets": (None, None), **of_set}
        return
    name = _column_of(cell)
    if name == "reps" or cells.get(name, (None, None))[0] is not None:
        yield dict(cells)
    else:
        if isinstance(cell, time):  # spreadsheets make 1:30 hours and minutes
            cell = cell.hour * 60 + cell.minute
        yield {**cells, "reps": (None, None), name: (cell, None)}


def list_in(cell: Cell, sign: values.DecimalSign | None) -> list[Cell]:
    """Return the numbers of a cell with several, such as `100/95 kg` or `5/5/-` (0: not done); else an empty list.

    `sign` is before decimals in the file; before it is known, a comma between two digits is one.
    """
    if not isinstance(cell, str) or not _SEPARATOR.search(cell) or values.is_made_date(cell):
        return []
    text = cell.strip()
    if sign == "." and values.is_plain_number(text) and "." in values.decimal_signs(text):  # thousands
        return []
    parts = _BETWEEN["." if sign == "." or text.count(",") > 1 else ","].split(text)
    found = [_LISTED.fullmatch("0" if part in ("-", "\u2013") else part) for part in parts]
    known = [each for each in found if each is not None]
    if len(parts) < 2 or len(known) < len(parts):
        return []
    return [f"{each[1]} {each[2] or known[-1][2]}".strip() for each in known]


def count_sets(cells: Cells) -> int:
    """Return how many sets the column of sets says that a row has; 0 if it has none, or no number."""
    with suppress(values.InvalidValue, OverflowError):
        return int(values.read_number(cells.get("sets", (None, None))[0]) or 0)
    return 0


def read_amount(
    cell: Cell, of_heading: values.Unit | None, in_column: str, sign: values.DecimalSign | None
) -> tuple[float | None, values.Unit | None]:
    """Return a load or distance, None without one, and its unit: behind it, of its heading, or in the column of units.

    Raises InvalidValue for a percentage, and for another word where the unit is.
    """
    quantity = values.read_quantity(cell, sign)
    if quantity is None or quantity.amount == 0:
        return None, None
    if quantity.unit.startswith("%"):
        raise values.InvalidValue("is a percentage")
    for written in (quantity.unit, in_column if of_heading is None else ""):
        word = _WORD.match(written)
        if word is None or word.group().casefold() in _NO_UNITS:
            continue
        if (unit := values.unit_of(word.group())) is None:
            raise values.InvalidValue(f"has a unit that is not known: {written[:50]}")
        return quantity.amount, unit
    return quantity.amount, of_heading


def read_repetitions(cell: Cell, sign: values.DecimalSign | None) -> float | None:
    """Return a number of repetitions, 0 of a failed attempt. Raises InvalidValue for a number of something else."""
    if isinstance(cell, str) and values.is_made_date(cell):
        raise values.InvalidValue(values.MADE_DATE)
    if isinstance(cell, str) and normalize(cell) in values.FAILED:
        return 0.0
    quantity = values.read_quantity(cell, sign)
    if quantity is None:
        return None
    is_other = _column_of(cell) != "reps" or quantity.unit == "%"
    if quantity.unit and (is_other or not _REPETITIONS.issuperset(_WORD.findall(quantity.unit))):
        raise values.InvalidValue("must be a number of repetitions")
    return quantity.amount


def seconds_in_unit(cell: Cell, unit: values.Unit | None) -> int:
    """Return by what a duration is multiplied that has been read as seconds, with the unit of its heading."""
    if unit == "h" and isinstance(cell, str) and cell.count(":") == 1:  # 1:05 is hours and minutes
        return 60
    return _SECONDS.get(unit, 1) if unit is not None and values.is_plain_number(cell) else 1


@lru_cache(maxsize=1024)  # rows repeat the same amounts
def _column_of(cell: Cell) -> values.Field:
    """Return the column in which a cell of repetitions belongs."""
    if isinstance(cell, time):
        return "seconds"
    if isinstance(cell, str):
        with suppress(values.InvalidValue):
            quantity = values.read_quantity(cell)
            if quantity is None or not quantity.unit:
                return "reps"
            if values.unit_of(quantity.unit) in _DISTANCES:
                return "distance"
        with suppress(values.InvalidValue):
            values.read_seconds(cell)
            return "seconds"
    return "reps"


# --- StrongLifts: an exercise with its sets in columns, or the repetitions of a session as `5/5/4` --------------------


_SET = re.compile(r"set (\d+)(?: (reps|time))?")
_STRONGLIFTS: dict[str, values.Field] = {
    "date": "date",
    "workout": "workout",
    "workout name": "workout",
    "exercise": "exercise",
    "start time": "time",
    "end time": "end",
    "duration": "duration",
    "notes": "notes",
    "note": "notes",
}
_EXERCISE_HEADING = re.compile(r"exercise \d+")
_OF_WORKOUTS: dict[str, values.Field] = {"date": "date", "note": "workoutNotes", "workout": "workout"}
_SETS_BY_REPS = {"sets reps", "sets x reps", "setsxreps", "reps"}
_LOADS = {"weight", "load"}
_LOAD_UNITS = {"kg", "lb"}


def expand_stronglifts(headings: Sequence[str], cells: Sequence[Cell]) -> Iterator[Cells]:
    """Yield the sets of a row: one for each column of repetitions that is not empty."""
    row = _Row()
    for heading, cell in zip(headings, cells, strict=False):
        if cell is not None:
            row.read(heading, cell)
    yield from row.sets()


def expand_old_stronglifts(headings: Sequence[str], cells: Sequence[Cell]) -> Iterator[Cells]:
    """Yield the sets of a row of before 2020, which is a workout: each exercise has its loads and sets behind it."""
    shared: dict[values.Field, values.Amount] = {}
    groups: list[tuple[Cell, list[tuple[str, Cell]]]] = []  # an exercise, and the cells behind it
    for heading, cell in zip(headings, cells, strict=False):
        words = values.read_heading(heading).words
        if _EXERCISE_HEADING.fullmatch(words):
            groups.append((cell, []))
        elif groups:
            groups[-1][1].append((heading, cell))
        elif words in _LOADS or _SET.fullmatch(words):  # the exercise has no column
            groups.append((None, [(heading, cell)]))
        elif cell is not None and (name := _OF_WORKOUTS.get(words)) is not None:
            shared[name] = (cell, None)
    rows = [_row_of(exercise, behind) for exercise, behind in groups]
    done = [row for row in rows if row.shared["exercise"][0] is not None or row.reps or row.times]
    for row in done:
        row.shared |= shared
        yield from row.sets()
    if not done:
        yield shared


def _row_of(exercise: Cell, cells: Sequence[tuple[str, Cell]]) -> _Row:
    """Return the sets of an exercise; a heading that comes again is of another one, whose name has no column."""
    row, left_out = _Row({"exercise": (exercise, None)}), list[str]()
    seen: dict[tuple[str, values.Unit | None], Cell] = {}
    for heading, cell in cells:
        read = values.read_heading(heading)
        first = seen.setdefault((read.words, read.unit), cell)
        if cell is None or (read.words in _LOADS and cell == first and row.load[0] is not None):
            continue
        if cell == first:
            row.read(heading, cell)
        else:
            left_out.append(f"{heading} {cell}")
    row.shared["leftOut"] = (", ".join(left_out) or None, None)
    return row


def reads_stronglifts(heading: str) -> bool:
    """Return whether the column of a heading is read, or has nothing to read: the number of a workout."""
    words = values.read_heading(heading).words
    known = {*_STRONGLIFTS, *_SETS_BY_REPS, *_LOADS, "workout number"}
    return words in known or bool(_SET.fullmatch(words) or _EXERCISE_HEADING.fullmatch(words))


@dataclass
class _Row:
    shared: dict[values.Field, values.Amount] = field(default_factory=dict)
    reps: dict[int, Cell] = field(default_factory=dict)
    loads: dict[int, values.Amount] = field(default_factory=dict)
    times: dict[int, values.Amount] = field(default_factory=dict)
    load: values.Amount = (None, None)
    text: str = ""

    def read(self, heading: str, cell: Cell) -> None:
        """Read a cell that is not empty."""
        read = values.read_heading(heading)
        if found := _SET.fullmatch(read.words):
            if read.unit in _LOAD_UNITS:
                self.loads[int(found[1])] = (cell, read.unit)
            elif read.unit is not None or found[2] == "time":
                self.times[int(found[1])] = (cell, read.unit)
            else:
                self.reps[int(found[1])] = 0 if cell == "-" else cell  # not done
        elif read.words == "workout":
            self.shared.setdefault("workout", (cell, None))
        elif read.words in _STRONGLIFTS:
            self.shared[_STRONGLIFTS[read.words]] = (cell, read.unit)
        elif read.words in _SETS_BY_REPS:
            self.text = str(cell)
        elif read.words in _LOADS:
            self.load = (cell, read.unit)

    def sets(self) -> Iterator[Cells]:
        """Yield the sets; a row without any as it is, so that it is reported."""
        if found := re.fullmatch(r"\s*(\d+)\s*[x×]\s*(\d+)\s*", self.text, re.IGNORECASE):  # sets by repetitions
            of_sets: list[Cell] = [found[2]] * int(found[1])
        else:
            of_sets = ["0" if part == "-" else part for part in re.split(r"\s*/\s*", self.text.strip()) if part]
        reps = self.reps or dict(enumerate(of_sets, start=1))
        for number in sorted({*reps, *self.times}):
            yield {
                **self.shared,
                "set": (number, None),
                "reps": (reps.get(number), None),
                "load": self.loads.get(number, self.load),
                "seconds": self.times.get(number, (None, None)),
            }
        if not reps and not self.times:
            yield self.shared


# --- TrainHeroic: an exercise with its sets as text, such as `6, 6, 6 rep x 40, 40, 40 pound` -------------------------


# Headings without their spaces; a later one replaces an earlier one for the same field.
_TRAINHEROIC: dict[str, values.Field] = {
    "workouttitle": "workout",
    "scheduleddate": "date",
    "rescheduleddate": "date",
    "workoutnotes": "workoutNotes",
    "exercisetitle": "exercise",
    "exercisenotes": "notes",
    "athlete": "customer",
    "client": "customer",
}
_LIST = re.compile(
    r"\s*(?P<values>(?:-?[\d.]+|AMRAP)(?:\s*,\s*(?:-?[\d.]+|AMRAP))*)\s*(?P<unit>[a-z%]*)\s*", re.IGNORECASE
)
_FIELDS: Mapping[str, values.Field] = values.by_words(
    {"reps": ("rep", "reps"), "seconds": ("second", "seconds", "sec"), "rpe": ("rpe",)}
)
_SECONDS_OF = {"minute": 60.0, "minutes": 60.0, "min": 60.0}


def expand_trainheroic(headings: Sequence[str], cells: Sequence[Cell]) -> Iterator[Cells]:
    """Yield the sets of a row."""
    pairs = zip(headings, cells, strict=False)
    words = {values.read_heading(heading).words.replace(" ", ""): cell for heading, cell in pairs if cell is not None}
    shared: dict[values.Field, values.Amount] = {
        name: (words[column], None) for column, name in _TRAINHEROIC.items() if column in words
    }
    data = (part.strip() for part in re.split(r"\s+x\s+", str(words.get("exercisedata", ""))))
    parts = [part for part in data if part and part.casefold() != "bodyweight"]
    quantities = [quantity for part in parts if (quantity := _quantity(part)) is not None]
    left_out = ", ".join(part for part in parts if _quantity(part) is None) or None
    for index in range(max((len(amounts) for _, amounts, _ in quantities), default=0)):
        of_set: dict[values.Field, values.Amount] = {
            name: (amounts[min(index, len(amounts) - 1)], unit)  # one value stands for all sets
            for name, amounts, unit in quantities
            if index < len(amounts) or len(amounts) == 1
        }
        yield {**shared, "set": (index + 1, None), "leftOut": (left_out, None), **of_set}
    if not quantities:
        yield shared


def _quantity(part: str) -> tuple[values.Field, list[Cell], values.Unit | None] | None:
    """Return the field, the amounts and the unit of a part; None for percentages and what is not known."""
    found = _LIST.fullmatch(part)
    if found is None:
        return None
    amounts: list[Cell] = [_value(value) for value in re.split(r"\s*,\s*", found["values"])]
    word = found["unit"].casefold()
    if word in _FIELDS or "AMRAP" in amounts:
        return _FIELDS.get(word, "reps"), amounts, None
    if word in _SECONDS_OF:
        factor = _SECONDS_OF[word]
        return "seconds", [value * factor if isinstance(value, float) else value for value in amounts], None
    unit = values.unit_of(word)
    if unit is None:
        return None
    return ("load" if unit in {"kg", "lb"} else "distance"), amounts, unit


def _value(text: str) -> Cell:
    """Return a number; AMRAP and what is none stay texts, which are reported as values that cannot be read."""
    try:
        return float(text)
    except ValueError:
        return text.upper()


# --- The dialects -----------------------------------------------------------------------------------------------------


_SET_IN_TEXT = re.compile(r"(-?\d+(?:\.\d+)?)x(\d+)", re.IGNORECASE)
# What tells whose set it is.
CLIENT_FIELDS: tuple[values.Field, ...] = ("customer", "customerId", "customerEmail", "firstName", "lastName")
# Makes rows of single sets of a row of the file.
Expand = Callable[[Sequence[str], Sequence[Cell]], Iterator[Cells]]


@dataclass(frozen=True)
class Dialect:
    """The files of one service.

    Attributes:
        format: Its name in responses.
        marks: Words of headings by which it is recognised: of each group, one must be there.
        columns: Fields of headings that mean something else here than in the vocabulary; None: ignored.
        sessions_by_day: Whether the sets of a day are one session.
        is_mixed: Whether rows of different sessions may be mixed.
        expand: For rows that are not one set, with `reads`: whether it reads the column of a heading, or knows it.
        is_general: Whether tables that people made may have its marks, with any other columns.
        sets_in: The words of the heading of a column with all sets of a row, as `60x10,65x8`, and the two fields.
        unit_heading: The words of the heading of another table of the file, which has the unit of loads.
        numbers_supersets: Whether 0 is a superset.
    """

    format: Format
    marks: tuple[tuple[str, ...], ...]
    columns: Mapping[str, values.Field | None] = field(default_factory=dict)
    sessions_by_day: bool = False
    is_mixed: bool = False
    expand: Expand | None = None
    reads: Callable[[str], bool] | None = None
    is_general: bool = False
    sets_in: tuple[str, tuple[values.Field, values.Field]] | None = None
    unit_heading: str | None = None
    numbers_supersets: bool = False

    def field_of(self, heading: str) -> values.Field | None:
        """Return the field of a heading; None for a column that is not read."""
        words = values.read_heading(heading).words
        return self.columns.get(words, values.FIELD_OF.get(words))

    def matches(self, words: set[str]) -> bool:
        """Return whether headings have its marks."""
        return all(words.intersection(group) for group in self.marks)

    def count_marks(self, words: set[str]) -> int:
        """Return how many of its marks headings have."""
        return sum(bool(words.intersection(group)) for group in self.marks)


# Hevy's own names of three columns, in the languages of its application.
_INDEX = ("set index", "indice de la serie", "satzindex", "index de la serie", "indice della serie", "indice da serie")
_TITLE = (
    "exercise title",
    "titulo del ejercicio",
    "titel der ubung",
    "titre de l exercice",
    "titolo dell esercizio",
    "titulo do exercicio",
)
_START = ("start time", "hora de inicio", "startzeit", "heure de debut", "ora di inizio")
_DATE, _EXERCISE = values.VOCABULARY["date"], values.VOCABULARY["exercise"]
_SET_ORDER = tuple(name for name in values.VOCABULARY["set"] if name not in {"set", "set index"})
_QUANTITY = tuple(n for n, f in values.FIELD_OF.items() if f in {"reps", "load", "seconds", "distance"})

# Columns that say what was planned, or number what other tables of the file have.
_OF_LIFTOSAUR = (
    *("program", "required reps", "is amrap", "required rpe", "log rpe", "required weight value", "required weight"),
    *("required weight unit", "ask weight", "completed reps time", "target muscles", "synergist muscles"),
)
_OF_JEFIT = (
    *("userid", "timestamp", "belongsys", "id", "record", "eid", "day item id", "belongsession", "logtime"),
    *("interval logs", "auto generated", "logs", "belongplan", "edit time"),
)

# The first one whose marks a file has is taken: special ones precede general ones.
DIALECTS: tuple[Dialect, ...] = (
    Dialect("workouts", marks=(("client id",), ("exercise title",), ("set index",)), numbers_supersets=True),
    Dialect(
        "jefit",
        marks=(("logs",), ("ename",), ("mydate",)),
        columns={"mydate": "date", "ename": "exercise", **dict.fromkeys(_OF_JEFIT)},
        sessions_by_day=True,
        sets_in=("logs", ("load", "reps")),
        unit_heading="mass",
    ),
    Dialect(
        "liftosaur",
        marks=(("workout datetime",), ("completed reps",), ("completed weight value", "completed weight")),
        columns={
            "workout datetime": "date",
            "day name": "workout",
            "completed reps": "reps",
            "completed rpe": "rpe",
            "completed weight value": "load",
            "completed weight": "load",
            "completed weight unit": "loadUnit",
            **dict.fromkeys(_OF_LIFTOSAUR),
        },
    ),
    Dialect(
        "fitbod",
        marks=(("multiplier", "iswarmup"), ("incline", "resistance"), ("exercise",), ("date",)),
        columns={"duration": "seconds"},
    ),
    Dialect(
        "stronglifts",
        marks=(("exercise 1",), ("set 1",), ("date",)),
        expand=expand_old_stronglifts,
        reads=reads_stronglifts,
    ),
    Dialect(
        "trainheroic",
        marks=(("exercisedata", "exercise data"), ("exercisetitle", "exercise title")),
        expand=expand_trainheroic,
        reads=lambda heading: values.read_heading(heading).words.replace(" ", "") in {*_TRAINHEROIC, "exercisedata"},
    ),
    Dialect(
        "stronglifts",
        marks=(("set 1 reps", "set 1", "sets reps", "sets x reps", "setsxreps"), ("exercise",), ("date",)),
        expand=expand_stronglifts,
        reads=reads_stronglifts,
    ),
    Dialect(
        "gravl",
        marks=(("set duration",), ("effort",), ("start date",)),
        columns={"start date": "time", "set": "set"},
    ),
    Dialect(
        "fitnotes",
        marks=(("category",), ("exercise",), ("date",), ("weight unit", "weight", "kind")),
        columns={"category": None, "kind": None},  # a kind of exercises
        sessions_by_day=True,
    ),
    Dialect("hevy", marks=(_INDEX, _TITLE, _START), columns={"duration": "seconds"}, numbers_supersets=True),
    Dialect(
        "strong",
        marks=(_SET_ORDER, _EXERCISE, _DATE),
        columns={"duration": "duration", **dict.fromkeys(("workout number", "workout nr"))},
        is_general=True,
    ),
    Dialect("sets", marks=(_DATE, _EXERCISE, _QUANTITY), is_mixed=True, is_general=True),
)


def recognise(headings: Sequence[str], first: Sequence[Cell] = ()) -> Dialect | None:
    """Return the dialect of a file with these headings and this first row, or None."""
    words = values.words_of(headings)
    dialect = next((each for each in DIALECTS if each.matches(words)), None)
    names = [values.read_heading(heading).words for heading in headings]
    reps = dict(zip(names, first, strict=False)).get("reps")
    known = {*_STRONGLIFTS, *_SETS_BY_REPS, *_LOADS, "body weight", "bodyweight"}
    # No other columns, and the repetitions of several sets in a cell.
    has_sets_in_a_cell = isinstance(reps, str) and SEVERAL_SETS.fullmatch(reps) and {*filter(None, names)} <= known
    if dialect is not None and dialect.format == "sets" and has_sets_in_a_cell:
        return next(each for each in DIALECTS if each.expand is expand_stronglifts)
    return dialect


def nearest(headings: Sequence[str]) -> Dialect:
    """Return the dialect most of whose marks the headings have; of equal ones the more general."""
    words = values.words_of(headings)
    return max(reversed(DIALECTS), key=lambda dialect: dialect.count_marks(words) / len(dialect.marks))


def count_headings(cells: Sequence[Cell]) -> int:
    """Return how many cells are headings of any dialect."""
    words = values.words_of(cells)
    special = {name for dialect in DIALECTS for group in (*dialect.marks, tuple(dialect.columns)) for name in group}
    return sum(word in values.FIELD_OF or word in special for word in words)


def date_order_of(dialect: Dialect, headings: Sequence[str]) -> values.DateOrder | None:
    """Return the order that the heading of the dates says, else another heading; None if none does."""
    orders: dict[values.Field | None, values.DateOrder] = {}
    for heading in headings:
        if (order := values.read_heading(heading).date_order) is not None:
            orders.setdefault(dialect.field_of(heading), order)
    return orders.get("date", next(iter(orders.values()), None))


def cells_of(
    dialect: Dialect, headings: Sequence[str], cells: Sequence[Cell], sign: values.DecimalSign | None
) -> Iterator[Cells]:
    """Yield the cells of each set of a row, by field; of two columns for a field, the first that is not empty."""
    by_field: dict[values.Field, values.Amount] = {}
    for heading, cell in zip(headings, cells, strict=False):
        name = dialect.field_of(heading)
        if name is not None and cell is not None and by_field.get(name, (None,))[0] is None:
            by_field[name] = (cell, values.read_heading(heading).unit)
    if dialect.sets_in is not None:
        words, fields = dialect.sets_in
        texts = {
            values.read_heading(heading).words: text_of(cell) for heading, cell in zip(headings, cells, strict=False)
        }
        parts = [part.strip() for part in texts.get(words, "").split(",") if part.strip()]
        left_out: list[str] = [part for part in parts if _SET_IN_TEXT.fullmatch(part) is None]  # what is no set
        by_field["leftOut"] = (", ".join(left_out) or None, None)
        for found in filter(None, map(_SET_IN_TEXT.fullmatch, parts)):
            yield {**by_field, fields[0]: (found[1], None), fields[1]: (found[2], None)}
        if left_out == parts:
            yield by_field
        return
    if dialect.expand is None:
        yield from expand_amounts(by_field, sign)
        return
    client = {name: value for name, value in by_field.items() if name in CLIENT_FIELDS}
    for of_set in dialect.expand(headings, cells):
        yield from expand_amounts({**client, **of_set}, sign)
