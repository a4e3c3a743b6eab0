"""Limits of workbooks: an XLSX file is an archive of XML, which may inflate to anything."""

from __future__ import annotations

import re
import zipfile
from typing import IO

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
_OVERLAP = max(map(len, _REFUSED)) - 1


class UnsafeWorkbook(Exception):
    """A workbook is beyond the limits; the message says which."""


def require_safe(file: IO[bytes]) -> None:
    """Raise UnsafeWorkbook for an archive that inflates too much, or with XML that declares entities.

    Raises zipfile.BadZipFile if it is not an archive. No more is inflated of an entry than its directory states.
    """
    file.seek(0, 2)
    packed = file.tell()
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        inflated = sum(entry.file_size for entry in entries)
        if len(entries) > _MAX_ENTRIES:
            raise UnsafeWorkbook(f"has more than {_MAX_ENTRIES:,} parts")
        if inflated > min(_MAX_BYTES, max(_MAX_RATIO * packed, 1_000_000)):
            raise UnsafeWorkbook("inflates to too many bytes: save it as CSV")
        for entry in entries:
            if entry.filename.casefold().endswith("sharedstrings.xml") and entry.file_size > _MAX_TEXT_BYTES:
                raise UnsafeWorkbook("has too much text: save it as CSV")
            if entry.filename.casefold().endswith((".xml", ".rels", ".vml")):
                _require_no_entities(archive, entry)
    file.seek(0)


def lacks_results(file: IO[bytes]) -> bool:
    """Return whether a workbook has formulas that were stored without their results, as some tools write them."""
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        return any(_lacks_results(archive, each) for each in archive.infolist() if _is_sheet(each.filename))


def _is_sheet(name: str) -> bool:
    return name.casefold().endswith(".xml") and "sharedstrings" not in name.casefold()


def _lacks_results(archive: zipfile.ZipFile, sheet: zipfile.ZipInfo) -> bool:
    end = b""
    with archive.open(sheet) as part:
        while chunk := part.read(_CHUNK):
            text = end + chunk
            if _WITHOUT_RESULT.search(text):
                return True
            end = text[-_LONGEST_MATCH:]
    return False


def _require_no_entities(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    end = b""
    with archive.open(entry) as part:
        while chunk := part.read(_CHUNK):
            text = end + chunk.replace(b"\x00", b"").upper()  # UTF-16 too
            if any(each in text for each in _REFUSED):
                raise UnsafeWorkbook("has XML with a document type, which no spreadsheet writes")
            end = text[-_OVERLAP:]
