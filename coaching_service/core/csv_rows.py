"""Rows of CSV files that spreadsheets open: text never becomes a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def neutralise(cell: object) -> object:
    """A cell as it is written: text that a spreadsheet would run begins with an apostrophe; None is empty."""
    if isinstance(cell, str) and cell.lstrip().startswith(_FORMULA):
        return f"'{cell}"
    return "" if cell is None else cell


def restore(cell: str) -> str:
    """The text that `neutralise` wrote as `cell`."""
    return cell[1:] if cell.startswith("'") and cell[1:].lstrip().startswith(_FORMULA) else cell


def write_rows(rows: Iterable[Iterable[object]]) -> bytes:
    """Rows of text and numbers as CSV in UTF-8 (RFC 4180)."""
    out = io.StringIO()
    csv.writer(out).writerows([neutralise(cell) for cell in row] for row in rows)
    return out.getvalue().encode("utf-8")
