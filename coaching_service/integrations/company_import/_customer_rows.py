"""The rows of a CSV file of clients: columns by their heading, each row validated like a request."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, cast

from marshmallow import ValidationError

from coaching_service.core.csv_rows import restore
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.core.validation_messages import field_errors
from coaching_service.integrations.background_jobs.models import JobError
from coaching_service.integrations.company_import._archive_reader import InvalidArchive
from coaching_service.people.customers.models import Customer, CustomerDetails
from coaching_service.people.customers.schemas import CustomerFields as CustomerSchema

MAX_ROWS, MAX_COLUMNS = 50_000, 500
MAX_BYTES = 50_000_000
_DELIMITERS = (",", ";", "\t")
_NOT_LETTERS = re.compile(r"[^a-z]+")
_SEPARATORS = re.compile(r"[;|]")
# The headings of each column, without spaces, signs and accents.
_HEADINGS = {
    "name": ("name", "firstname", "givenname", "nombre"),
    "surname": ("surname", "lastname", "familyname", "apellido", "apellidos"),
    "email": ("email", "emailaddress", "mail", "correo", "correoelectronico"),
    "phone": ("phone", "phonenumber", "telephone", "mobile", "telefono", "movil"),
    "birthday": ("birthday", "birthdate", "dateofbirth", "dob", "fechadenacimiento"),
    "timezone": ("timezone", "zonahoraria"),
    "externalId": ("externalid", "externalidentifier"),
    "groups": ("groups", "group", "tags", "grupos", "grupo"),
}
_COLUMN_OF = {heading: column for column, headings in _HEADINGS.items() for heading in headings}
_SCHEMA = CustomerSchema(exclude=("metadata",))

Key = tuple[str, str, str]


@dataclass
class CustomerRow:
    """A line of the file: the client to create or change, or its problems."""

    line: int
    details: CustomerDetails | None = None
    problems: list[JobError] = field(default_factory=list)

    def reject(self, field_path: str | None, code: str, message: str, holder: ObjectId | None = None) -> None:
        """Leave the row out. `holder` is the client because of whom it is left out."""
        self.details = None
        problem: JobError = {"entry": f"line {self.line}", "field": field_path, "code": code, "message": message}
        self.problems.append(problem if holder is None else {**problem, "_id": holder})


@dataclass(frozen=True)
class CustomerFile:
    """A CSV file of clients; `ignored` are headings that are not known."""

    rows: list[CustomerRow]
    ignored: list[str]


def read_customers(file: IO[bytes]) -> CustomerFile:
    """Return the rows of a CSV file. Raises InvalidArchive if it is none, too long, or has no column for names."""
    content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise InvalidArchive(f"must not be larger than {MAX_BYTES} bytes")
    text = _decode(content)
    delimiter = _find_delimiter(text)
    try:
        lines = list(_read_lines(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)))
    except csv.Error as error:
        raise InvalidArchive(f"is not a CSV file: {error}") from None
    if not lines:
        raise InvalidArchive("has no headings")
    headings = lines[0][1]
    if len(headings) > MAX_COLUMNS:
        raise InvalidArchive(f"must not have more than {MAX_COLUMNS} columns; it has {len(headings)}", "line 1")
    columns = _columns(headings)
    if repeated := [
        str(column) for column, count in Counter(columns).items() if count > 1 and column not in (None, "groups")
    ]:
        raise InvalidArchive(f"has several columns for: {', '.join(repeated)}", "line 1")
    if "name" not in columns:
        raise InvalidArchive(f"has no column with the heading name; it has: {', '.join(headings)}"[:500], "line 1")
    rows = [_read_row(number, columns, cells) for number, cells in lines[1:]]
    _reject_duplicates(rows)
    ignored = [heading for heading, column in zip(headings, columns, strict=True) if column is None and heading]
    return CustomerFile(rows, ignored)


def key_of(client: CustomerDetails | Customer) -> Key:
    """Return what two rows of the same client have in common."""
    return normalize(client["name"]), normalize(client.get("surname") or ""), normalize(client.get("email") or "")


def _decode(content: bytes) -> str:
    """UTF-8, or the encoding in which spreadsheets on Windows save CSV files."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def _find_delimiter(text: str) -> str:
    """Return the delimiter with which the headings have the most known columns, or else the most columns."""

    def count(delimiter: str) -> tuple[int, int]:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        try:
            headings: list[str] = next(filter(any, rows), [])
        except csv.Error:
            return 0, 0
        return sum(column is not None for column in _columns(headings)), len(headings)

    return max(_DELIMITERS, key=count)


def _columns(headings: Sequence[str]) -> list[str | None]:
    return [_COLUMN_OF.get(_NOT_LETTERS.sub("", normalize(heading))) for heading in headings]


def _read_lines(reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not empty, each with the number of its first line, from 1."""
    count = end = 0
    for cells in reader:
        line, end = end + 1, reader.line_num
        if any(cell.strip() for cell in cells):
            count += 1
            if count > MAX_ROWS + 1:
                raise InvalidArchive(f"must not have more than {MAX_ROWS} rows")
            yield line, cells


def _read_row(line: int, columns: Sequence[str | None], cells: Sequence[str]) -> CustomerRow:
    row = CustomerRow(line)
    sent: dict[str, Any] = {}
    for column, cell in zip(columns, cells, strict=False):
        value = restore(cell.strip())
        if column == "groups":
            groups = [group for each in _SEPARATORS.split(value) if (group := each.strip())]
            sent[column] = [*sent.get(column, ()), *groups]
        elif column is not None and (value or column == "name"):
            sent[column] = value
    if len(cells) > len(columns):
        row.reject(None, "TOO_MANY_CELLS", f"has {len(cells)} cells for {len(columns)} columns")
    try:
        details = cast("CustomerDetails", _SCHEMA.load(sent))
    except ValidationError as error:
        for each in field_errors(error):
            row.reject(each["field"], each["code"], each["message"])
    else:
        row.details = None if row.problems else details
    return row


def _reject_duplicates(rows: Sequence[CustomerRow]) -> None:
    """Leave out clients who are in an earlier row; different external identifiers mean different clients."""
    first_of_ids: dict[str, int] = {}
    first_of_names: dict[Key, CustomerRow] = {}
    for row in rows:
        if row.details is None:
            continue
        if (external_id := row.details.get("externalId")) is not None:
            line = first_of_ids.setdefault(external_id, row.line)
            if line != row.line:
                row.reject("externalId", "DUPLICATE", f"is the same as in line {line}")
                continue
        first = first_of_names.setdefault(key_of(row.details), row)
        if first is not row and not (external_id and first.details and first.details.get("externalId")):
            row.reject(None, "DUPLICATE", f"is the same client as in line {first.line}")
