"""Rosters: tables of clients of other services and of spreadsheets, with headings in English and Spanish."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Literal, NotRequired, TypedDict

from coaching_service.core.text import normalize
from coaching_service.integrations.history_files import _vocabulary, values
from coaching_service.integrations.history_files import tables as history_file_tables
from coaching_service.integrations.history_files._headings import FIELD_OF, read_heading, words_of
from coaching_service.integrations.history_files.columns import unknown_column, unknown_sheet
from coaching_service.integrations.history_files.models import Problem
from coaching_service.integrations.history_files.values import DateOrder, InvalidValue, UnknownOrder

Column = (
    Literal["name", "surname", "fullName", "email", "phone", "birthday", "timezone", "externalId"]
    | Literal["groups", "status", "notes", "goal", "assignedTo"]
)

_NAMES = ("name", "nombre")
# Words of headings, normalized.
COLUMNS: Mapping[Column, tuple[str, ...]] = {
    "name": (*_NAMES, *_vocabulary.FIRST_NAMES),
    "surname": _vocabulary.LAST_NAMES,
    "fullName": ("full name", "member", "nombre completo", *_vocabulary.CLIENT_NAMES),
    "email": _vocabulary.EMAILS,
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
_COLUMN_OF: Mapping[str, Column] = _vocabulary.by_words(COLUMNS)
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


class RosterDetails(TypedDict):
    """What a row says about a client, as a request sends it; not validated yet."""

    name: str
    surname: NotRequired[str]
    email: NotRequired[str]
    phone: NotRequired[str]
    birthday: NotRequired[str]
    timezone: NotRequired[str]
    externalId: NotRequired[str]
    groups: NotRequired[list[str]]


class LeftOut(TypedDict):
    """A field of a row that is left out, and why; `code` is VALUE_LEFT_OUT or DATE_ORDER."""

    field: str
    code: str
    message: str


@dataclass
class RosterRow:
    """A row of a roster.

    Attributes:
        details: The fields of the client.
        notes: Texts of notes to add, among them the goal.
        trainer: The e-mail address or name of the trainer; empty without one.
        is_archived: Whether the client is archived.
        has_status: Whether the row says whether the client is archived.
        left_out: Optional values that could not be read.
        surplus: How many more cells the row has than there are headings.
    """

    row: history_file_tables.Row
    details: RosterDetails
    notes: list[str] = field(default_factory=list)
    trainer: str = ""
    is_archived: bool = False
    has_status: bool = False
    left_out: list[LeftOut] = field(default_factory=list)
    surplus: int = 0

    @property
    def full_name(self) -> str:
        """The name of the client, with the surname."""
        return f"{self.details['name']} {self.details.get('surname', '')}".strip()

    @property
    def is_sum(self) -> bool:
        """Whether the name says that the row has the sum of others."""
        return _vocabulary.is_total(self.full_name)


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
    problems: list[Problem]
    date_order: DateOrder | None
    is_order_open: bool
    open_rows: int = 0
    name_options: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Clients:
    """A table of clients with what its columns have."""

    table: history_file_tables.Table
    known: list[Column | None]
    rows: list[history_file_tables.Row]


def column_of(
    heading: history_file_tables.Cell, columns: Mapping[str, Column | Literal[""]] | None = None
) -> Column | None:
    """Return what a column has; `columns` are the answers of the caller by heading, empty for one that is not read."""
    if not isinstance(heading, str):
        return None
    if columns and heading in columns:
        return columns[heading] or None
    return _COLUMN_OF.get(read_heading(heading).words)


def _columns_of(headings: Sequence[str], columns: Mapping[str, Column | Literal[""]] | None) -> list[Column | None]:
    """Return what columns have; a name next to its parts is the full name."""
    known = [column_of(heading, columns) for heading in headings]
    if known.count("name") < 2:
        return known
    pairs = zip(headings, known, strict=True)
    return ["fullName" if name == "name" and read_heading(each).words in _NAMES else name for each, name in pairs]


def count_headings(
    cells: Sequence[history_file_tables.Cell], columns: Mapping[str, Column | Literal[""]] | None = None
) -> int:
    """Return how many cells are headings of rosters."""
    return sum(column_of(cell, columns) in COLUMNS for cell in cells)


def read_roster(
    file: IO[bytes],
    date_order: DateOrder | None = None,
    columns: Mapping[str, Column | Literal[""]] | None = None,
    *,
    asks_for_names: bool = False,
) -> Roster:
    """Return the clients of the first table with their names, and of the others with the same columns.

    `asks_for_names`: without a column with names, return the headings that may have them. Raises UnreadableTable.
    """
    file.seek(0)
    refused: history_file_tables.UnreadableTable | None = None
    nameless: list[Roster] = []
    read: list[_Clients] = []
    left_out: list[Problem] = []

    def count(cells: Sequence[history_file_tables.Cell]) -> int:
        return count_headings(cells, columns)

    found = history_file_tables.read_tables(file, count)
    for table in (part for each in found for part in history_file_tables.divide(each, count)):
        known = _columns_of(table.headings, columns)
        if columns is None and "exercise" in {FIELD_OF.get(words) for words in words_of(table.headings)}:
            refused = refused or _refused(table, "exercises, not clients")
        elif {"name", "fullName"} & {*known} and (not read or {*known, None} == {*read[0].known, None}):
            read.append(_read(table, known, room=MAX_CLIENTS - sum(len(each.rows) for each in read)))
            continue
        elif asks_for_names:
            nameless.append(_without_names(table, known))
        else:
            refused = refused or _refused(table, "no column with names of clients")
        left_out.append(unknown_sheet(table, "clients with the same columns"))
    if read:
        return _roster_of(read, date_order, left_out)
    if nameless:
        return max(nameless, key=lambda roster: len(roster.name_options))
    raise refused or history_file_tables.UnreadableTable("has no rows")


def _refused(table: history_file_tables.Table, reason: str) -> history_file_tables.UnreadableTable:
    return history_file_tables.UnreadableTable(f"has {reason}; it has: {', '.join(filter(None, table.headings))[:300]}")


def _without_names(table: history_file_tables.Table, known: Sequence[Column | None]) -> Roster:
    free = [heading for heading, column in zip(table.headings, known, strict=True) if heading and not column]
    options = list(dict.fromkeys(free or filter(None, table.headings)))
    return Roster([], [], None, is_order_open=False, open_rows=sum(1 for _ in table.rows), name_options=options)


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


def _read(table: history_file_tables.Table, known: list[Column | None], *, room: int) -> _Clients:
    repeated = [column for column, n in Counter(known).items() if column and n > 1 and column not in JOINED]
    if repeated:
        raise history_file_tables.UnreadableTable(f"has several columns for: {', '.join(repeated)}")
    rows = list(itertools.islice(table.rows, room + 1))
    if len(rows) > room:
        raise history_file_tables.UnreadableTable(
            f"has more than {MAX_CLIENTS:,} rows: divide it into several files", rows[-1].line
        )
    return _Clients(table, known, rows)


def _roster_of(tables: Sequence[_Clients], date_order: DateOrder | None, left_out: list[Problem]) -> Roster:
    order = date_order or _decided_order(tables)
    read = [_row_of(row, each.known, order) for each in tables for row in each.rows]
    is_open = any(each["code"] == "DATE_ORDER" for row in read for each in row.left_out)
    ignored = [
        unknown_column(each.table, heading)
        for each in tables
        for heading, column in zip(each.table.headings, each.known, strict=True)
        if heading and column is None
    ]
    return Roster(read, [*ignored, *left_out], order, is_open)


def _decided_order(tables: Sequence[_Clients]) -> DateOrder | None:
    """Return the one order in which all dates of a roster can be read, else the one that their heading says.

    None if both are possible, or none.
    """
    pattern: DateOrder | None = None
    orders: set[DateOrder] = {"dmy", "mdy"}
    for each in tables:
        if "birthday" not in each.known:
            continue
        place = each.known.index("birthday")
        pattern = pattern or read_heading(each.table.headings[place]).date_order
        for row in each.rows:
            cell = row.cells[place] if place < len(row.cells) else None
            if isinstance(cell, str) and values.depends_on_order(cell, pattern):
                orders &= values.possible_orders(cell) or orders  # one that is no day decides nothing
    return next(iter(orders)) if len(orders) == 1 else pattern


def _row_of(row: history_file_tables.Row, known: Sequence[Column | None], order: DateOrder | None) -> RosterRow:
    cells: dict[Column, history_file_tables.Cell] = {}
    joined: dict[Column, list[str]] = {column: [] for column in JOINED}
    for column, cell in zip(known, row.cells, strict=False):
        if column in JOINED and cell is not None:
            joined[column].append(str(cell).strip())
        elif column is not None and cell is not None:
            cells[column] = cell
    read = RosterRow(row, _names_of(cells))
    for name in ("email", "phone", "timezone", "externalId"):
        text = _text(cells, name)
        if name == "phone" and _WITH_DECIMALS.fullmatch(text):
            text = text.partition(".")[0]
        if _SHORTENED.fullmatch(text):
            message = f"has lost digits, as a spreadsheet has shortened it: {text[:50]}"
            read.left_out.append({"field": name, "code": "VALUE_LEFT_OUT", "message": message})
        elif text:
            read.details[name] = text
    if groups := [group for cell in joined["groups"] for group in split_groups(cell)]:
        read.details["groups"] = list(dict.fromkeys(groups))
    read.surplus = max(0, len(row.cells) - len(known))
    read.notes = joined["notes"] + ([f"Goal: {goal}"] if (goal := _text(cells, "goal")) else [])
    read.trainer = _text(cells, "assignedTo")
    read.left_out += [
        {"field": column, "code": "VALUE_LEFT_OUT", "message": history_file_tables.UNSOLVED}
        for number in row.unsolved
        if number < len(known) and (column := known[number]) is not None
    ]
    _read_birthday(read, cells.get("birthday"), order)
    _read_status(read, _text(cells, "status"))
    return read


def _names_of(cells: Mapping[Column, history_file_tables.Cell]) -> RosterDetails:
    """Return the names: of their own columns, else of the full name."""
    name, surname = _text(cells, "name"), _text(cells, "surname")
    if not name or not surname:
        first, last = split_name(_text(cells, "fullName"))
        if not name:
            name, surname = first, last or surname
    details: RosterDetails = {"name": name}
    if surname:
        details["surname"] = surname
    return details


def _read_birthday(row: RosterRow, cell: history_file_tables.Cell, order: DateOrder | None) -> None:
    try:
        moment = values.read_date_and_time(cell, order)
    except UnknownOrder as error:
        row.left_out.append({"field": "birthday", "code": "DATE_ORDER", "message": str(error)})
    except InvalidValue as error:
        row.left_out.append({"field": "birthday", "code": "VALUE_LEFT_OUT", "message": str(error)})
    else:
        if moment is not None:
            row.details["birthday"] = str(moment.day)


def _read_status(row: RosterRow, text: str) -> None:
    status = normalize(text)
    row.has_status = status in _ARCHIVED | _ACTIVE and bool(status)
    row.is_archived = status in _ARCHIVED
    if status not in _ARCHIVED | _ACTIVE:
        row.left_out.append({"field": "status", "code": "VALUE_LEFT_OUT", "message": f"is not known: {text[:50]}"})


def _text(cells: Mapping[Column, history_file_tables.Cell], column: Column) -> str:
    return history_file_tables.text_of(cells.get(column))
