"""What the files of each service look like; to add one, add its declaration to DIALECTS (docs/import-formats.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from coaching_service.integrations.history_files import _amounts, _stronglifts, _trainheroic
from coaching_service.integrations.history_files._headings import FIELD_OF, Unit, read_heading, words_of
from coaching_service.integrations.history_files._vocabulary import VOCABULARY, Field
from coaching_service.integrations.history_files.models import Format
from coaching_service.integrations.history_files.tables import Cell
from coaching_service.integrations.history_files.values import DateOrder

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
        expand: For rows that are not one set.
        is_general: Whether tables that people made may have its marks, with any other columns.
    """

    format: Format
    marks: tuple[tuple[str, ...], ...]
    columns: Mapping[str, Field | None] = field(default_factory=dict)
    load_unit: Unit | None = None
    distance_unit: Unit | None = None
    sessions_by_day: bool = False
    is_mixed: bool = False
    expand: Expand | None = None
    is_general: bool = False

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

# The first one whose marks a file has is taken: special ones precede general ones.
DIALECTS: tuple[Dialect, ...] = (
    Dialect("workouts", marks=(("client id",), ("exercise title",), ("set index",))),
    Dialect(
        "trainheroic",
        marks=(("exercisedata", "exercise data"), ("exercisetitle", "exercise title")),
        expand=_trainheroic.expand,
    ),
    Dialect(
        "stronglifts",
        marks=(("set 1 reps", "set 1", "sets reps", "sets x reps", "setsxreps"), ("exercise",), ("date",)),
        expand=_stronglifts.expand,
    ),
    Dialect(
        "gravl",
        marks=(("set duration",), ("effort",), ("start date",)),
        columns={"start date": "time", "set": "set", "source": None, "energy": None, "incline": None, "steps": None},
    ),
    Dialect(
        "fitnotes",
        marks=(("category",), ("exercise",), ("date",), ("weight unit", "weight", "kind")),
        columns={"category": None, "kind": "setKind"},
        sessions_by_day=True,
    ),
    Dialect("hevy", marks=(_INDEX, _TITLE, _START), columns={"duration": "seconds"}),
    Dialect("strong", marks=(_SET_ORDER, _EXERCISE, _DATE), columns={"duration": "duration"}, is_general=True),
    Dialect("sets", marks=(_DATE, _EXERCISE, _QUANTITY), is_mixed=True, is_general=True),
)


def recognise(headings: Sequence[str], first: Sequence[Cell] = ()) -> Dialect | None:
    """Return the dialect of a file with these headings and this first row, or None."""
    words = words_of(headings)
    dialect = next((each for each in DIALECTS if each.matches(words)), None)
    if dialect is not None and dialect.format == "sets" and _stronglifts.has_sets_in_a_cell(headings, first):
        return next(each for each in DIALECTS if each.format == "stronglifts")
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


def cells_of(dialect: Dialect, headings: Sequence[str], cells: Sequence[Cell]) -> Iterator[Cells]:
    """Yield the cells of each set of a row, by field; of two columns for a field, the first that is not empty."""
    by_field: dict[Field, tuple[Cell, Unit | None]] = {}
    for heading, cell in zip(headings, cells, strict=False):
        name = dialect.field_of(heading)
        if name is not None and cell is not None and by_field.get(name, (None,))[0] is None:
            by_field[name] = (cell, read_heading(heading).unit)
    if dialect.expand is None:
        yield from _amounts.expand(by_field)
        return
    client = {name: value for name, value in by_field.items() if name in CLIENT_FIELDS}
    for of_set in dialect.expand(headings, cells):
        yield from _amounts.expand({**client, **of_set})
