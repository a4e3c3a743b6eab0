"""Workbooks of Excel, and archives with other parts than they were made with."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterable, Sequence

import openpyxl

Row = Sequence[object]


def workbook(*rows: Row, **sheets: Iterable[Row]) -> bytes:
    """A workbook with these sheets; rows without one are of a sheet of their own."""
    book, out = openpyxl.Workbook(), io.BytesIO()
    book.remove(book.worksheets[0])
    for name, content in (sheets or {"Sheet": rows}).items():
        sheet = book.create_sheet(name)
        for row in content:
            sheet.append(row)
    book.save(out)
    return out.getvalue()


def with_parts(content: bytes, change: Callable[[str, bytes], bytes], **more: bytes) -> bytes:
    """An archive with changed parts, and others by their names."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            if name not in more:
                target.writestr(name, change(name, source.read(name)))
        for name, part in more.items():
            target.writestr(name, part)
    return out.getvalue()
