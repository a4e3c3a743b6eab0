"""Rosters: tables of clients of other services and of spreadsheets, with headings in English and Spanish."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Literal

from coaching_service.core.text import normalize
from coaching_service.integrations.history_files import tables, values

Column = (
    Literal["name", "surname", "fullName", "email", "phone", "birthday", "timezone", "externalId"]
    | Literal["groups", "status", "notes", "goal", "assignedTo"]
)

_NAMES = ("name", "nombre")
# Words of headings, normalized.
COLUMNS: Mapping[Column, tuple[str, ...]] = {
    "name": (*_NAMES, *values.FIRST_NAMES),
    "surname": values.LAST_NAMES,
    "fullName": ("full name", "member", "nombre completo", *values.CLIENT_NAMES),
    "email": values.EMAILS,
    "phone": ("phone", "phone number", "telephone", "mobile", "mobile phone", "telefono", "movil"),
    "birthday": ("birthday", "birthdate", "birth date", "date of birth", "dob", "fecha de nacimiento", "nacimiento"),
    "timezone": ("timezone", "time zone", "zona horaria"),
    "externalId": ("externalid", "external id", "external identifier", "id", "client id", "member id"),
    "groups": ("groups", "group", "group names", "tags", "tag", "grupos", "grupo", "etiquetas"),
    "status": ("status", "client status", "estado"),
    "notes": ("notes", "note", "injuries", "comments", "notas", "nota"),
    "goal": ("goal", "goals", "objetivo", "objetivos"),
    "assignedTo": ("trainer", "coach", "coach email", "trainer email", "coach name", "entrenador"),
}
_COLUMN_OF: Mapping[str, Column] = values.by_words(COLUMNS)
# Several columns may have these: their cells are joined.
JOINED: tuple[Column, ...] = ("groups", "notes")
_ARCHIVED = {"archived", "deactivated", "inactive", "archivado", "inactivo", "desactivado", "cancelled", "canceled"}
_ACTIVE = {"", "active", "activo", "current", "trial", "pending", "invited"}
# A group in quotes may have a separator in its name.
_GROUP = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^,;|]*))\s*(?:[,;|]|$)')
_MUST_BE_QUOTED = re.compile(r'[,;|"]')
# A number with many digits as spreadsheets write it in CSV files: the last digits are lost.
_SHORTENED = re.compile(r"\d(?:[.,]\d+)?E\+\d+", re.IGNORECASE)
# A number with the decimals that other programs write.
_WITH_DECIMALS = re.compile(r"\+?\d{5,}\.0+")
MAX_CLIENTS = 50_000


@dataclass
class RosterRow:
    """A row of a roster.

    Attributes:
        details: The fields of the client as a request sends them; not validated yet.
        notes: Texts of notes to add, among them the goal.
        trainer: The e-mail address or name of the trainer; empty without one.
        is_archived: Whether the client is archived.
        has_status: Whether the row says whether the client is archived.
        left_out: Optional values that could not be read.
        surplus: How many more cells the row has than there are headings.
    """

    row: tables.Row
    details: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    trainer: str = ""
    is_archived: bool = False
    has_status: bool = False
    left_out: list[tables.Problem] = field(default_factory=list)
    surplus: int = 0

    def leave_out(self, name: str, message: str, code: str = "VALUE_LEFT_OUT") -> None:
        """Report that a field is left out, and why."""
        self.left_out.append(self.row.problem(name, code, message))

    @property
    def full_name(self) -> str:
        """The name of the client, with the surname."""
        return f"{self.details['name']} {self.details.get('surname', '')}".strip()


@dataclass
class Roster:
    """A roster.

    Attributes:
        rows: The clients.
        problems: The columns and sheets that are not read.
        date_order: The order of its dates, if the file or the caller decides it.
        is_order_open: Whether dates are left out because nothing decides it.
        open_rows: How many rows could not be read because no column has names.
        name_options: The headings that may have the names then.
    """

    rows: list[RosterRow]
    problems: list[tables.Problem]
    date_order: values.DateOrder | None
    is_order_open: bool
    open_rows: int = 0
    name_options: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Clients:
    """A table of clients with what its columns have."""

    table: tables.Table
    known: list[Column | None]
    rows: list[tables.Row]


def column_of(heading: tables.Cell, columns: Mapping[str, Column | Literal[""]] | None = None) -> Column | None:
    """Return what a column has; `columns` are the answers of the caller by heading, empty for one that is not read."""
    if not isinstance(heading, str):
        return None
    if columns and heading in columns:
        return columns[heading] or None
    return _COLUMN_OF.get(values.read_heading(heading).words)


def count_headings(cells: Sequence[tables.Cell], columns: Mapping[str, Column | Literal[""]] | None = None) -> int:
    """Return how many cells are headings of rosters."""
    return sum(column_of(cell, columns) in COLUMNS for cell in cells)


def read_roster(
    file: IO[bytes],
    date_order: values.DateOrder | None = None,
    columns: Mapping[str, Column | Literal[""]] | None = None,
    *,
    asks_for_names: bool = False,
) -> Roster:
    """Return the clients of the first table with their names, and of the others with the same columns.

    `asks_for_names`: without a column with names, return the headings that may have them. Raises UnreadableTable.
    """
    refused: tables.UnreadableTable | None = None
    nameless: list[Roster] = []
    read: list[_Clients] = []
    left_out: list[tables.Problem] = []

    def count(cells: Sequence[tables.Cell]) -> int:
        return count_headings(cells, columns)

    for table in tables.read_tables(file, count, is_divided=True):
        known = [column_of(heading, columns) for heading in table.headings]
        if known.count("name") > 1:  # a name next to its parts is the full name
            pairs = zip([values.read_heading(heading).words for heading in table.headings], known, strict=True)
            known = ["fullName" if name == "name" and words in _NAMES else name for words, name in pairs]
        described = ", ".join(filter(None, table.headings))[:300]
        if columns is None and "exercise" in {values.FIELD_OF.get(words) for words in values.words_of(table.headings)}:
            refused = refused or tables.UnreadableTable(f"has exercises, not clients; it has: {described}")
        elif {"name", "fullName"} & {*known} and (not read or {*known, None} == {*read[0].known, None}):
            repeated = [column for column, n in Counter(known).items() if column and n > 1 and column not in JOINED]
            if repeated:
                raise tables.UnreadableTable(f"has several columns for: {', '.join(repeated)}")
            room = MAX_CLIENTS - sum(len(each.rows) for each in read)
            rows = list(itertools.islice(table.rows, room + 1))
            if len(rows) > room:
                message = f"has more than {MAX_CLIENTS:,} rows: divide it into several files"
                raise tables.UnreadableTable(message, rows[-1].line)
            read.append(_Clients(table, known, rows))
            continue
        elif asks_for_names:
            free = [heading for heading, column in zip(table.headings, known, strict=True) if heading and not column]
            options = list(dict.fromkeys(free or filter(None, table.headings)))
            count_rows = sum(1 for _ in table.rows)
            nameless.append(Roster([], [], None, is_order_open=False, open_rows=count_rows, name_options=options))
        else:
            refused = refused or tables.UnreadableTable(f"has no column with names of clients; it has: {described}")
        left_out.append(tables.unknown_sheet(table, "clients with the same columns"))
    if not read:
        if nameless:
            return max(nameless, key=lambda roster: len(roster.name_options))
        raise refused or tables.UnreadableTable("has no rows")
    order = date_order or _decided_order(read)
    clients = [_row_of(row, each.known, order) for each in read for row in each.rows]
    ignored = [
        tables.column_problem(each.table, heading)
        for each in read
        for heading, column in zip(each.table.headings, each.known, strict=True)
        if heading and column is None
    ]
    is_open = any(each["code"] == "DATE_ORDER" for row in clients for each in row.left_out)
    return Roster(clients, [*ignored, *left_out], order, is_open)


def split_groups(cell: str) -> list[str]:
    """Return the groups in a cell, separated by commas, semicolons or bars."""
    return [group for quoted, plain in _GROUP.findall(cell) if (group := (quoted.replace('""', '"') or plain).strip())]


def split_name(full_name: str) -> tuple[str, str]:
    """Return name and surname: the last word, or what is before a comma; without one, an empty text."""
    last, comma, first = (each.strip() for each in full_name.partition(","))
    if not (comma and first and last):
        first, _, last = full_name.strip(", ").rpartition(" ")
    return (first, last) if first else (last, "")


def join_groups(groups: Iterable[str]) -> str:
    """Return a cell that `split_groups` reads as these groups."""
    quoted = ('"{}"'.format(each.replace('"', '""')) if _MUST_BE_QUOTED.search(each) else each for each in groups)
    return "; ".join(quoted)


def _decided_order(read: Sequence[_Clients]) -> values.DateOrder | None:
    """Return the one order in which all dates of a roster can be read, else the one that their heading says.

    None if both are possible, or none.
    """
    pattern: values.DateOrder | None = None
    orders: set[values.DateOrder] = {"dmy", "mdy"}
    for each in [each for each in read if "birthday" in each.known]:
        place = each.known.index("birthday")
        pattern = pattern or values.read_heading(each.table.headings[place]).date_order
        for cell in [row.cell(place) for row in each.rows]:
            if isinstance(cell, str) and values.depends_on_order(cell, pattern):
                orders &= values.possible_orders(cell) or orders  # one that is no day decides nothing
    return next(iter(orders)) if len(orders) == 1 else pattern


def _row_of(row: tables.Row, known: Sequence[Column | None], order: values.DateOrder | None) -> RosterRow:
    texts: defaultdict[Column, str] = defaultdict(str)
    joined: dict[Column, list[str]] = {column: [] for column in JOINED}
    for column, cell in zip(known, row.cells, strict=False):
        if column in JOINED and cell is not None:
            joined[column].append(str(cell).strip())
        elif column is not None and cell is not None:
            texts[column] = tables.text_of(cell)
    first, last = split_name(texts["fullName"])
    name, surname = (texts["name"], texts["surname"]) if texts["name"] else (first, last or texts["surname"])
    read = RosterRow(row, {"name": name, "surname": surname} if surname else {"name": name})
    for field_name in ("email", "phone", "timezone", "externalId"):
        text = texts[field_name]
        if field_name == "phone" and _WITH_DECIMALS.fullmatch(text):
            text = text.partition(".")[0]
        if _SHORTENED.fullmatch(text):
            read.leave_out(field_name, f"has lost digits, as a spreadsheet has shortened it: {text[:50]}")
        elif text:
            read.details[field_name] = text
    if groups := [group for cell in joined["groups"] for group in split_groups(cell)]:
        read.details["groups"] = list(dict.fromkeys(groups))
    read.surplus = max(0, len(row.cells) - len(known))
    read.notes = joined["notes"] + ([f"Goal: {texts['goal']}"] if texts["goal"] else [])
    read.trainer = texts["assignedTo"]
    for column in [known[number] for number in row.unsolved if number < len(known)]:
        read.left_out += [row.problem(column, "VALUE_LEFT_OUT", tables.UNSOLVED)] if column else []
    _read_birthday(read, row.cell(known.index("birthday")) if "birthday" in known else None, order)
    status = normalize(texts["status"])
    read.is_archived, read.has_status = status in _ARCHIVED, status in _ARCHIVED | _ACTIVE and bool(status)
    if status not in _ARCHIVED | _ACTIVE:
        read.leave_out("status", f"is not known: {texts['status'][:50]}")
    return read


def _read_birthday(row: RosterRow, cell: tables.Cell, order: values.DateOrder | None) -> None:
    try:
        if (moment := values.read_date_and_time(cell, order)) is not None:
            row.details["birthday"] = str(moment.day)
    except values.UnknownOrder as error:
        row.leave_out("birthday", str(error), "DATE_ORDER")
    except values.InvalidValue as error:
        row.leave_out("birthday", str(error))
