"""Tables in CSV and XLSX files: rows with the number of their line, and what files leave open or have wrong."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
import zipfile
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from operator import itemgetter
from time import perf_counter, sleep
from typing import IO, TYPE_CHECKING, Annotated, Literal, NotRequired, TypeAlias, TypedDict, cast

from coaching_service.core.fields import Description, Optional
from coaching_service.core.text import restore, without_separators

if TYPE_CHECKING:
    from openpyxl.cell import Cell as SheetCell
    from openpyxl.cell import MergedCell
    from openpyxl.workbook import Workbook
    from openpyxl.worksheet._read_only import ReadOnlyWorksheet
    from openpyxl.worksheet.worksheet import Worksheet


Format = Literal[
    "hevy",
    "strong",
    "fitnotes",
    "stronglifts",
    "gravl",
    "fitbod",
    "liftosaur",
    "jefit",
    "trainheroic",
    "workouts",
    "sets",
]
QuestionCode = Literal[
    "LOAD_UNIT", "DISTANCE_UNIT", "DURATION_UNIT", "DECIMAL_SIGN", "DATE_ORDER", "CUSTOMER", "COLUMN", "METRIC"
]


class FileProblem(TypedDict):
    """Why a row or a value of it was left out, as jobs report it."""

    entry: Annotated[str, Description("Where: a line, with the name of its sheet.")]
    line: Annotated[int, Description("The line of the file, or the row of the sheet, from 1.")]
    field: Annotated[str | None, Description("The field; null: the whole row.")]
    code: Annotated[str, Description("A stable code, such as `VALUE_LEFT_OUT`.")]
    message: Annotated[str, Description("What is wrong, as the continuation of the field's name.")]


Problem: TypeAlias = FileProblem


class ProblemKind(TypedDict):
    """A kind of problem, and how often a file has it."""

    code: Annotated[str, Description("The code, as in `errors`.")]
    column: Annotated[str | None, Description("The field, or the heading of a column; null: whole rows.")]
    count: Annotated[int, Description("How often the file has it.")]
    lines: Annotated[list[int], Description("The first 20 lines that have it.")]


# Problems of rows that are left out as they should be, and of columns: of other kinds the most frequent comes first.
LAST_CODES = ("NOT_A_SET", "REPEATED_COLUMN", "UNKNOWN_COLUMN")
_MOST_LINES = 20


def count_kinds(kinds: Sequence[ProblemKind], problems: Iterable[Problem]) -> list[ProblemKind]:
    """Return kinds of problems with more of them: rests and columns last, of others the most frequent first."""
    return merge_kinds(
        kinds,
        [{"code": each["code"], "column": each["field"], "count": 1, "lines": [each["line"]]} for each in problems],
    )


def merge_kinds(*parts: Iterable[ProblemKind]) -> list[ProblemKind]:
    """Return the kinds of problems of several parts of a file, in the same order."""
    counted: dict[tuple[str, str | None], ProblemKind] = {}
    for each in itertools.chain(*parts):
        key = (each["code"], each["column"])
        known: ProblemKind = counted.get(key, {**each, "count": 0, "lines": []})
        lines = [*known["lines"], *each["lines"]][:_MOST_LINES]
        counted[key] = {**known, "count": known["count"] + each["count"], "lines": lines}
    return sorted(counted.values(), key=lambda each: (each["code"] in LAST_CODES, -each["count"]))


MAX_PROBLEMS = 1_000


@dataclass(kw_only=True)
class Reported:
    """What was reported of a file: the first problems, how many there are, and all of them by kind."""

    problems: list[Problem] = field(default_factory=list)
    problem_count: int = 0
    kinds: list[ProblemKind] = field(default_factory=list)

    def report(self, problems: Sequence[Problem], *, is_counted: bool = False) -> None:
        """Add problems; `is_counted`: to the kinds only."""
        if problems:
            self.kinds = count_kinds(self.kinds, problems)
        if not is_counted:
            self.problem_count += len(problems)
            self.problems += problems[: MAX_PROBLEMS - len(self.problems)]


class ImportQuestion(TypedDict):
    """What the file does not decide; `options` are the possible answers."""

    code: Annotated[QuestionCode, Description("What is asked for.")]
    message: Annotated[str, Description("The question.")]
    options: Annotated[list[str], Description("The possible answers, as they are sent.")]
    name: NotRequired[
        Annotated[str, Optional, Description("The client, field, heading or measurement that it is about.")]
    ]
    labels: NotRequired[Annotated[list[str], Optional, Description("The possible answers in words.")]]


Question: TypeAlias = ImportQuestion


# --- Limits of workbooks: an XLSX file is an archive of XML, which may inflate to anything ----------------------------


_MAX_ENTRIES = 2_000
_MAX_BYTES = 200_000_000
_MAX_TEXT_BYTES = 50_000_000  # of the shared texts, which are read as a whole
_MAX_RATIO = 100
_CHUNK = 1 << 20
_REFUSED = (b"<!DOCTYPE", b"<!ENTITY")  # of which no spreadsheet has any
# A formula without the result that spreadsheet programs store with it.
_WITHOUT_RESULT = re.compile(
    rb"(?:</(?:\w+:)?f>|<(?:\w+:)?f(?:\s[^<>]*)?/>)\s*(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v>\s*</|</(?:\w+:)?c>)"
)
_LONGEST_MATCH = 1_000


def require_safe(file: IO[bytes]) -> None:
    """Raise UnreadableTable for an archive that inflates too much, or with XML that declares entities.

    Raises zipfile.BadZipFile if it is not an archive. No more is inflated of an entry than its directory states.
    """
    file.seek(0, 2)
    packed = file.tell()
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        inflated = sum(entry.file_size for entry in entries)
        if len(entries) > _MAX_ENTRIES:
            raise UnreadableTable(f"has more than {_MAX_ENTRIES:,} parts")
        if inflated > min(_MAX_BYTES, max(_MAX_RATIO * packed, 1_000_000)):
            raise UnreadableTable("inflates to too many bytes: save it as CSV")
        for entry in entries:
            name = entry.filename.casefold()
            if name.endswith("sharedstrings.xml") and entry.file_size > _MAX_TEXT_BYTES:
                raise UnreadableTable("has too much text: save it as CSV")
            for text in _parts_of(archive, entry) if name.endswith((".xml", ".rels", ".vml")) else ():
                if any(each in text.replace(b"\x00", b"").upper() for each in _REFUSED):  # UTF-16 too
                    raise UnreadableTable("has XML with a document type, which no spreadsheet writes")
    file.seek(0)


def lacks_results(file: IO[bytes]) -> bool:
    """Return whether a workbook has formulas that were stored without their results, as some tools write them."""
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        sheets = [each for each in archive.infolist() if each.filename.casefold().endswith(".xml")]
        return any(
            _WITHOUT_RESULT.search(text)
            for each in sheets
            if "sharedstrings" not in each.filename.casefold()
            for text in _parts_of(archive, each)
        )


def _parts_of(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield an entry in parts, each behind the end of the one before."""
    end = b""
    with archive.open(entry) as content:
        while chunk := content.read(_CHUNK):
            yield end + chunk
            end = (end + chunk)[-_LONGEST_MATCH:]


Cell: TypeAlias = str | int | float | bool | datetime | date | time | timedelta | None
# Returns how many of the cells are known headings.
CountHeadings: TypeAlias = Callable[[Sequence[Cell]], int]

MAX_ROWS = 200_000  # of a file, in all its sheets
MAX_COLUMNS = 500
UNSOLVED = "is a formula that was stored without its result: save the file with a spreadsheet program"
_SECTION = re.compile(r"#{3,}\s*([^#]*?)\s*#*")
_DELIMITERS = (",", ";", "\t", "|")
_SAMPLE_BYTES = 64_000
_MAX_SHEET_ROWS = 1_048_576  # that a sheet of Excel has
_TITLE_ROWS = 20
_LEAST_HEADINGS = 3  # of a row with digits that is one of headings below others
_WORK_SECONDS = 0.001  # without a rest
_EMPTY_RESULT = "str"  # the type of a cell whose formula has an empty text as its result
_COMMA_IN_NUMBER = re.compile(r"[-+]?\d+,\d+")
_QUOTED = re.compile(r'"[^"]*"|\\.')  # parts of the format of a number that do not change it
_DAMAGED = "is a damaged workbook: save it again as XLSX or CSV"
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


class UnreadableTable(Exception):
    """A file is not a table; the message says why, and `line` where."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message, self.line = message, line


class CommaNumber(str):
    """A text that is a number with a comma before its decimals, if it is a number: semicolons are between the cells."""

    __slots__ = ()


@dataclass(frozen=True)
class Row:
    """A row of a table that is not empty; `line` counts the lines of the file, or the rows of the sheet, from 1.

    `unsolved` are the numbers of its cells with formulas that were stored without a result, from 0. `sheet` is the name
    of its sheet, empty if the file has no other.
    """

    line: int
    cells: tuple[Cell, ...]
    unsolved: tuple[int, ...] = ()
    sheet: str = ""

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return f"{self.sheet}, line {self.line}" if self.sheet else f"line {self.line}"

    def cell(self, number: int) -> Cell:
        """Return a cell by its number; None behind the last one."""
        return self.cells[number] if number < len(self.cells) else None

    def problem(self, field: str | None, code: str, message: str) -> Problem:
        """Return a problem of the row, or of a field of it."""
        return {"entry": self.place, "line": self.line, "field": field, "code": code, "message": message}

    def find_surplus(self, headings: Sequence[object]) -> Problem | None:
        """Return the problem that cells are behind the last heading, as the others may be in wrong columns."""
        surplus = sum(cell is not None for cell in self.cells[len(headings) :])
        message = f"has {surplus} more {'cell' if surplus == 1 else 'cells'} than there are columns"
        return self.problem(None, "TOO_MANY_CELLS", message) if surplus else None


@dataclass(frozen=True)
class Table:
    """A sheet of a workbook, or the whole of a CSV file: its headings, in a line, and the rows below them.

    `place` is where the headings are, in words, and `titles` are the rows above them. `is_text`: it is no sheet.
    """

    name: str
    headings: tuple[str, ...]
    rows: Iterator[Row]
    line: int
    place: str
    titles: tuple[Row, ...] = ()
    is_text: bool = False


def read_tables(file: IO[bytes], count_headings: CountHeadings, *, is_divided: bool = False) -> Iterator[Table]:
    """Return the tables of a CSV or XLSX file, one after another: read the rows of one before the next.

    `count_headings` decides which line has the headings (titles may precede them) and how cells are separated. Empty
    sheets are left out. `is_divided`: headings within a table begin another one. Raises UnreadableTable if the file is
    no table, or has too many rows or columns; for rows that is raised while they are read.
    """
    file.seek(0)
    is_archive = file.read(4) == b"PK\x03\x04"
    file.seek(0)
    sheets = _read_workbook(file) if is_archive else _read_csv(file, count_headings)
    numbers = itertools.count(1)
    for name, rows in sheets:
        if not (first := list(itertools.islice(rows, _TITLE_ROWS))):
            continue
        best = max(range(len(first)), key=lambda index: (count_headings(first[index].cells), -index))
        row, headings = first[best], headings_of(first[best])
        if len(headings) > MAX_COLUMNS:
            raise UnreadableTable(f"has {len(headings)} columns; {MAX_COLUMNS} are possible", row.line)
        below = _with_rests(itertools.chain(first[best + 1 :], rows), numbers)
        table = Table(name, headings, below, row.line, row.place, tuple(first[:best]), not is_archive)
        yield from _divide(table, count_headings) if is_divided else (table,)


def _divide(table: Table, count_headings: CountHeadings) -> Iterator[Table]:
    """Return a table as the parts of it that headings of their own begin; rows that are not read are passed over."""
    heading: Row | None = None

    def rows_of_part() -> Iterator[Row]:
        nonlocal heading
        heading = None
        for row in table.rows:
            filled = [cell for cell in row.cells if cell is not None]
            texts = [cell for cell in filled if isinstance(cell, str)]
            least = 2 if not any(character.isdigit() for text in texts for character in text) else _LEAST_HEADINGS
            if len(texts) == len(filled) >= least and count_headings(texts) >= max(least, len(texts) / 2):
                heading = row
                return
            yield row

    rows = rows_of_part()
    yield replace(table, rows=rows)
    deque(rows, maxlen=0)
    while heading is not None:
        headings, line, place, rows = headings_of(heading), heading.line, heading.place, rows_of_part()
        yield Table(table.name, headings, rows, line, place, (), table.is_text)
        deque(rows, maxlen=0)


def fill_down(
    rows: Iterable[Row],
    fields: Sequence[str | None],
    carried: Collection[str],
    *,
    lead: Collection[str],
    kept: Collection[str] = (),
    needed: Collection[str] = (),
) -> Iterator[Row]:
    """Yield rows in which the empty cells of the `carried` fields are those above, as in merged cells.

    A cell of a field in `lead` ends what is above it, but for `kept`. Rows without a cell of `needed` stay as they are.
    """
    above: dict[int, Cell] = {}
    numbers = [number for number, name in enumerate(fields) if name in carried]
    for row in rows:
        cells = [*row.cells, *[None] * (len(fields) - len(row.cells))]
        filled = {name for name, cell in zip(fields, cells, strict=False) if cell is not None}
        if needed and filled.isdisjoint(needed):
            yield row
            continue
        if not filled.isdisjoint(lead):
            above = {number: cell for number, cell in above.items() if fields[number] in kept}
        for number in numbers:
            if cells[number] is not None:
                above[number] = cells[number]
            elif number not in row.unsolved:
                cells[number] = above.get(number)
        yield replace(row, cells=tuple(cells))


def estimate_rows(file: IO[bytes]) -> int:
    """Return about how many rows a CSV file has: its lines."""
    file.seek(0)
    count = 0
    while chunk := file.read(1 << 20):
        count += chunk.count(b"\n")
    file.seek(0)
    return count


def headings_of(row: Row) -> tuple[str, ...]:
    """Return the cells of a row as headings."""
    return tuple("" if cell is None else str(cell).strip() for cell in row.cells)


def _with_rests(rows: Iterator[Row], numbers: Iterator[int]) -> Iterator[Row]:
    """Yield rows, as many as are possible, and rest from time to time as long as the work with them took.

    A thread that computes delays each step of each request by up to sys.getswitchinterval(), which is 5 ms.
    """
    began = perf_counter()
    for row, number in zip(rows, numbers, strict=False):
        if number > MAX_ROWS:
            raise UnreadableTable(f"has more than {MAX_ROWS:,} rows: divide it into several files", row.line)
        yield row
        worked = perf_counter() - began
        if worked > _WORK_SECONDS:
            sleep(worked)
            began = perf_counter()


# --- CSV -------------------------------------------------------------------------------------------------------------


def _read_csv(file: IO[bytes], count_headings: CountHeadings) -> Iterator[tuple[str, Iterator[Row]]]:
    sample = file.read(_SAMPLE_BYTES)
    file.seek(0)
    encoding = _encoding_of(file, sample)
    text = io.TextIOWrapper(file, encoding, errors="replace", newline="")
    try:
        delimiter = _delimiter_of(sample.decode(encoding, "replace"), count_headings)
        yield from _sections_of(_rows_of_csv(text, delimiter))
    finally:
        with suppress(ValueError):  # the file has been closed before all of it was read
            text.detach()


def _encoding_of(file: IO[bytes], sample: bytes) -> str:
    """Return the encoding of a byte order mark, else UTF-8 if all of the file is, else the one of Excel on Windows."""
    for mark, encoding in _MARKS:
        if sample.startswith(mark):
            return encoding
    if b"\x00" in sample:
        if len(sample) > 1 and sample[1] == 0:
            return "utf-16-le"
        if sample[0] == 0:
            return "utf-16-be"
        raise UnreadableTable("is neither a CSV nor an XLSX file")
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while chunk := file.read(1 << 20):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return "cp1252"
    finally:
        file.seek(0)
    return "utf-8"


def _delimiter_of(sample: str, count_headings: CountHeadings) -> str:
    lines = [line.rstrip("\n") for line in io.StringIO(sample.lstrip("\ufeff"), newline=None)]
    if lines and lines[0].casefold().startswith("sep=") and len(lines[0]) == len("sep=") + 1:
        return lines[0][-1]

    def most_headings(delimiter: str) -> tuple[int, int]:
        try:
            rows = [row for row in csv.reader(lines[:_TITLE_ROWS], delimiter=delimiter) if any(row)]
        except csv.Error:
            return 0, 0
        return max((count_headings(row) for row in rows), default=0), max(map(len, rows), default=0)

    return max(_DELIMITERS, key=most_headings)


def _rows_of_csv(text: io.TextIOWrapper, delimiter: str) -> Iterator[Row]:
    has_ended = False

    def lines() -> Iterator[str]:
        nonlocal has_ended
        while content := text.readline():
            yield content
        has_ended = True

    reader, line = csv.reader(lines(), delimiter=delimiter), 1
    try:
        for cells in reader:
            if has_ended:  # the reader has looked for the end of a cell
                raise UnreadableTable("is not a CSV file: a quotation mark is not closed", line)
            is_declaration = line == 1 and cells[:1] and cells[0].lstrip("\ufeff").casefold().startswith("sep=")
            if any(cell.strip() for cell in cells) and not is_declaration:
                yield Row(line, tuple(_csv_cell(cell, delimiter) for cell in cells))
            line = reader.line_num + 1
    except csv.Error as error:
        raise UnreadableTable(f"cannot be read as CSV: {error}", line) from None


def _sections_of(rows: Iterator[Row]) -> Iterator[tuple[str, Iterator[Row]]]:
    """Yield the tables of a file that has lines such as `### LOGS ###` above each; of others the only one."""
    name = ""

    def named() -> Iterator[tuple[str, Row]]:
        nonlocal name
        for row in rows:
            first = row.cells[0]
            if isinstance(first, str) and first.startswith("###") and (title := _SECTION.fullmatch(first)):
                name = title[1]
            else:
                yield name, replace(row, sheet=name) if name else row

    for section, found in itertools.groupby(named(), key=itemgetter(0)):
        yield section, (row for _, row in found)


def text_of(cell: Cell) -> str:
    """Return a cell as text: whole numbers without a decimal point, dates without a time that is midnight.

    The text of no value is empty.
    """
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, datetime) and cell.time() == time():
        cell = cell.date()
    return "" if cell is None else str(cell).strip()


def _csv_cell(cell: str, delimiter: str) -> str | None:
    text = without_separators(cell).strip("\ufeff ")
    if delimiter == ";" and _COMMA_IN_NUMBER.fullmatch(text):
        return CommaNumber(text)
    return (restore(text) if "'" in text else text) or None


# --- XLSX ------------------------------------------------------------------------------------------------------------


def _read_workbook(file: IO[bytes]) -> Iterator[tuple[str, Iterator[Row]]]:
    """Yield the visible sheets. Formulas have the values that were stored with them."""
    try:
        require_safe(file)
        with ExitStack() as stack:
            workbook = _open_workbook(file, stack, has_results=True)
            formulas = _open_workbook(file, stack, has_results=False) if lacks_results(file) else None
            opened = stack.pop_all()
    except UnreadableTable:
        raise
    except Exception as error:  # of any type: a part of the archive is not as the library expects it
        raise UnreadableTable(_DAMAGED) from error
    with opened:
        visible = [(number, each) for number, each in enumerate(workbook.worksheets) if each.sheet_state == "visible"]
        for number, sheet in visible:
            other = None if formulas is None else cast("Worksheet", formulas.worksheets[number])
            name = str(sheet.title)
            yield name, _rows_of_sheet(cast("Worksheet", sheet), other, name if len(visible) > 1 else "")


def _open_workbook(file: IO[bytes], stack: ExitStack, *, has_results: bool) -> Workbook:
    """Return a workbook with the results of its formulas, else with the formulas; the stack closes it."""
    import openpyxl  # large, and not needed by processes that read no workbook

    workbook = openpyxl.load_workbook(file, read_only=True, data_only=has_results)
    stack.callback(workbook.close)
    return workbook


def _rows_of_sheet(sheet: Worksheet, formulas: Worksheet | None, name: str) -> Iterator[Row]:
    """Yield the rows, whatever size the sheet says that it has, and which formulas lack their results.

    `formulas` is the sheet with formulas in place of results; None if no formula lacks its result.
    """
    is_complete, line = formulas is None, 0
    try:
        cast("ReadOnlyWorksheet", sheet).reset_dimensions()
        if formulas is not None:
            cast("ReadOnlyWorksheet", formulas).reset_dimensions()
        written = itertools.repeat(()) if formulas is None else formulas.iter_rows(values_only=True)
        rows = zip(sheet.iter_rows(), written, strict=not is_complete)
        for line, (of_sheet, of_formulas) in enumerate(rows, start=1):
            if line > _MAX_SHEET_ROWS:
                break
            unsolved = tuple(
                number
                for number, (cell, formula) in enumerate(zip(of_sheet, of_formulas, strict=not is_complete))
                if cell.value is None and formula is not None and cell.data_type != _EMPTY_RESULT
            )
            cells = tuple(
                without_separators(value).strip() or None if isinstance(value, str) else cast("Cell", value)
                for value in map(_value_of, of_sheet)
            )
            while cells and cells[-1] is None:
                cells = cells[:-1]
            if cells or unsolved:
                yield Row(line, cells, unsolved, name)
    except Exception as error:  # of any type, as when the workbook is opened
        raise UnreadableTable(_DAMAGED) from error
    if line > _MAX_SHEET_ROWS:
        raise UnreadableTable(_DAMAGED, line)


def _value_of(cell: SheetCell | MergedCell) -> object:
    """Return the value of a cell; a number that is shown as a percentage is a text such as `70%`."""
    value = cell.value
    if isinstance(value, int | float) and not isinstance(value, bool) and "%" in cell.number_format:
        factor = 100 if "%" in _QUOTED.sub("", cell.number_format) else 1
        return f"{value * factor:.10g}%"
    return value


# --- Problems of columns, sheets and rows -----------------------------------------------------------------------------


def unread_column(number: int, heading: str = "", code: str = "UNKNOWN_COLUMN") -> ProblemKind:
    """Return the kind of problem of a column that is not read, before its cells are counted."""
    return {"code": code, "column": heading[:100] or f"column {number + 1}", "count": 0, "lines": []}


def count_cells(unread: Mapping[int, ProblemKind], row: Row) -> None:
    """Count the cells of a row in columns that are not read, by the number of the column."""
    for number, kind in unread.items():
        if row.cell(number) is not None:
            kind["count"] += 1
            kind["lines"] += [row.line] if len(kind["lines"]) < _MOST_LINES else []


def column_problem(table: Table, heading: str, *, is_repeated: bool = False) -> Problem:
    """Return the problem of a column that is not read, or that has what an earlier one has."""
    code, message = "UNKNOWN_COLUMN", "is not a known column and is left out"
    if is_repeated:
        code, message = "REPEATED_COLUMN", "has what an earlier column has, and is read only where that one is empty"
    return {"entry": table.place, "line": table.line, "field": heading[:100], "code": code, "message": message}


def unknown_sheet(table: Table, kind: str) -> Problem:
    """Return the problem of a sheet that is not read: it has no table of this kind."""
    return {
        "entry": table.name or table.place,
        "line": table.line,
        "field": table.name[:100] or None,
        "code": "UNKNOWN_SHEET",
        "message": f"is a sheet without a table of {kind} and is left out",
    }
