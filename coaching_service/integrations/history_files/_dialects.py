"""What the files of each service look like; to add one, add its declaration to DIALECTS (docs/import-formats.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from coaching_service.integrations.history_files import _amounts, _stronglifts, _trainheroic
from coaching_service.integrations.history_files._headings import FIELD_OF, Unit, read_heading, words_of
from coaching_service.integrations.history_files._vocabulary import VOCABULARY, Field
from coaching_service.integrations.history_files.models import Format
from coaching_service.integrations.history_files.tables import Cell, text_of
from coaching_service.integrations.history_files.values import DateOrder, DecimalSign

_SET_IN_TEXT = re.compile(r"(-?\d+(?:\.\d+)?)x(\d+)", re.IGNORECASE)
# Cells by field, with the units that their headings have.
Cells = Mapping[Field, tuple[Cell, Unit | None]]
# What tells whose set it is.
CLIENT_FIELDS: tuple[Field, ...] = ("customer", "customerId", "customerEmail", "firstName", "lastName")
# Makes rows of single sets of a row of the file.
Expand = Callable[[Sequence[str], Sequence[Cell]], Iterator[Cells]]


@dataclass(frozen=True)
class Dialect:
    """The files of one service.

    Attributes:
        format: Its name in responses.
        marks: Words of headings by which it is recognised: of each group, one must be there.
        columns: Fields of headings that mean something else here than in the vocabulary; None: ignored.
        load_unit: The unit of loads without one; None: the file or the caller says it.
        distance_unit: The same for distances.
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
    columns: Mapping[str, Field | None] = field(default_factory=dict)
    load_unit: Unit | None = None
    distance_unit: Unit | None = None
    sessions_by_day: bool = False
    is_mixed: bool = False
    expand: Expand | None = None
    reads: Callable[[str], bool] | None = None
    is_general: bool = False
    sets_in: tuple[str, tuple[Field, Field]] | None = None
    unit_heading: str | None = None
    numbers_supersets: bool = False

    def field_of(self, heading: str) -> Field | None:
        """Return the field of a heading; None for a column that is not read."""
        words = read_heading(heading).words
        return self.columns.get(words, FIELD_OF.get(words))

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
_DATE, _EXERCISE = VOCABULARY["date"], VOCABULARY["exercise"]
_SET_ORDER = tuple(name for name in VOCABULARY["set"] if name not in {"set", "set index"})
_QUANTITY = tuple(n for n, f in FIELD_OF.items() if f in {"reps", "load", "seconds", "distance"})

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
        expand=_stronglifts.expand_exercises,
        reads=_stronglifts.reads,
    ),
    Dialect(
        "trainheroic",
        marks=(("exercisedata", "exercise data"), ("exercisetitle", "exercise title")),
        expand=_trainheroic.expand,
        reads=_trainheroic.reads,
    ),
    Dialect(
        "stronglifts",
        marks=(("set 1 reps", "set 1", "sets reps", "sets x reps", "setsxreps"), ("exercise",), ("date",)),
        expand=_stronglifts.expand,
        reads=_stronglifts.reads,
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
    words = words_of(headings)
    dialect = next((each for each in DIALECTS if each.matches(words)), None)
    if dialect is not None and dialect.format == "sets" and _stronglifts.has_sets_in_a_cell(headings, first):
        return next(each for each in DIALECTS if each.expand is _stronglifts.expand)
    return dialect


def nearest(headings: Sequence[str]) -> Dialect:
    """Return the dialect most of whose marks the headings have; of equal ones the more general."""
    words = words_of(headings)
    return max(reversed(DIALECTS), key=lambda dialect: dialect.count_marks(words) / len(dialect.marks))


def count_headings(cells: Sequence[Cell]) -> int:
    """Return how many cells are headings of any dialect."""
    words = words_of(cells)
    special = {name for dialect in DIALECTS for group in (*dialect.marks, tuple(dialect.columns)) for name in group}
    return sum(word in FIELD_OF or word in special for word in words)


def date_order_of(dialect: Dialect, headings: Sequence[str]) -> DateOrder | None:
    """Return the order that the heading of the dates says, else another heading; None if none does."""
    orders: dict[Field | None, DateOrder] = {}
    for heading in headings:
        if (order := read_heading(heading).date_order) is not None:
            orders.setdefault(dialect.field_of(heading), order)
    return orders.get("date", next(iter(orders.values()), None))


def cells_of(
    dialect: Dialect, headings: Sequence[str], cells: Sequence[Cell], sign: DecimalSign | None
) -> Iterator[Cells]:
    """Yield the cells of each set of a row, by field; of two columns for a field, the first that is not empty."""
    by_field: dict[Field, tuple[Cell, Unit | None]] = {}
    for heading, cell in zip(headings, cells, strict=False):
        name = dialect.field_of(heading)
        if name is not None and cell is not None and by_field.get(name, (None,))[0] is None:
            by_field[name] = (cell, read_heading(heading).unit)
    if dialect.sets_in is not None:
        words, fields = dialect.sets_in
        texts = {read_heading(heading).words: text_of(cell) for heading, cell in zip(headings, cells, strict=False)}
        for of_set in _sets_in(texts.get(words, ""), fields):
            yield {**by_field, **of_set}
        return
    if dialect.expand is None:
        yield from _amounts.expand(by_field, sign)
        return
    client = {name: value for name, value in by_field.items() if name in CLIENT_FIELDS}
    for of_set in dialect.expand(headings, cells):
        yield from _amounts.expand({**client, **of_set}, sign)


def _sets_in(text: str, fields: tuple[Field, Field]) -> Iterator[Cells]:
    """Yield the sets of a text such as `60x10,65x8`; what is no set is left out, and said."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    left_out = ", ".join(part for part in parts if _SET_IN_TEXT.fullmatch(part) is None)
    for found in filter(None, map(_SET_IN_TEXT.fullmatch, parts)):
        yield {"leftOut": (left_out or None, None), fields[0]: (found[1], None), fields[1]: (found[2], None)}
    if left_out == ", ".join(parts):
        yield {"leftOut": (left_out or None, None)}
