"""The format of a company's export, which is described in docs/export-format.md. Exports and imports share it."""

from __future__ import annotations

from collections.abc import Iterator

from coaching_service.core.database.documents import Documents, declared_collections
from coaching_service.core.database.portable import Portable
from coaching_service.core.media import file_extension

FORMAT = "coaching-service-company"
VERSION = 1
HEADER, ACCOUNT, COACHES, MANIFEST = "export.json", "account.json", "coaches.jsonl", "manifest.json"
ACTIVITY, HISTORY = "activity.jsonl", "history.jsonl"  # to be read by people: an import leaves them out
_RECORDS, _FILES = "records/", "files/"
_MAX_NAME = 100


def portable_collections() -> Iterator[tuple[str, Documents[dict[str, object]], Portable]]:
    """Yield the collections of an export with their names, in the order in which they are imported."""
    named = [
        (name, collection, collection.transfer)
        for name, collection in declared_collections().items()
        if isinstance(collection.transfer, Portable)
    ]
    yield from sorted(named, key=lambda each: (each[2].stage, each[0]))


def records_entry(collection: str) -> str:
    """Return the name of the entry with the records of a collection."""
    return f"{_RECORDS}{collection}.jsonl"


def collection_of(entry: str) -> str | None:
    """Return the collection of an entry with records; None for other entries."""
    is_records = entry.startswith(_RECORDS) and entry.endswith(".jsonl")
    return entry.removeprefix(_RECORDS).removesuffix(".jsonl") if is_records else None


def is_known(entry: str) -> bool:
    """Return whether an export of this version may have an entry of this name; collections and files may be others."""
    single = (HEADER, ACCOUNT, COACHES, MANIFEST, ACTIVITY, HISTORY)
    return entry in single or collection_of(entry) is not None or file_of(entry) is not None


def file_entry(file_id: object, name: str, content_type: str) -> str:
    """Return the name of the entry with a file: its identifier, and the name that it was uploaded with."""
    extension = file_extension(content_type)
    stem = name.removesuffix(extension)[:_MAX_NAME].replace("/", "_").replace("\\", "_").strip(". ")
    return f"{_FILES}{file_id}/{stem or 'file'}{extension}"


def file_of(entry: str) -> tuple[str, str] | None:
    """Return the identifier and the name of the file in an entry; None for other entries."""
    parts = entry.split("/")
    return (parts[1], parts[2]) if len(parts) == 3 and entry.startswith(_FILES) else None
