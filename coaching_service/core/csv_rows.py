"""Rows of CSV files that spreadsheets open: text never becomes a formula."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable

from coaching_service.core.text import without_separators

# Where a formula may begin: in a cell, and behind what separates cells or lines for a spreadsheet that expects other
# separators than commas.
_START = r"(^|;|\t|\r\n?|\n)"
_FORMULA = r"(?=[\s\"']*[=+\-@＝＋－＠])"  # full-width characters begin one in some spreadsheets
_UNMARKED, _MARKED = re.compile(_START + _FORMULA), re.compile(f"{_START}'{_FORMULA}")


def neutralise(cell: object) -> object:
    """Return a cell as it is written: an apostrophe precedes text that a spreadsheet would run; None is empty.

    A line ends at LF and CR LF only.
    """
    if isinstance(cell, str):
        return _UNMARKED.sub(r"\1'", without_separators(cell))
    return "" if cell is None else cell


def restore(cell: str) -> str:
    """Return the text that `neutralise` wrote as `cell`."""
    return _MARKED.sub(r"\1", cell)


def write_rows(rows: Iterable[Iterable[object]]) -> bytes:
    """Rows of text and numbers as CSV in UTF-8 (RFC 4180)."""
    out = io.StringIO()
    csv.writer(out).writerows([neutralise(cell) for cell in row] for row in rows)
    return out.getvalue().encode("utf-8")
