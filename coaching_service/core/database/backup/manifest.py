"""The manifest of a backup: what is in it, and how to recognise that it is complete."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, cast

from bson import json_util

FORMAT = "coaching-service backup"
VERSION = 1
FILE = "manifest.json"
_LENGTH = 4  # bytes of a BSON document that say how long it is
_SMALLEST_DOCUMENT = 5
_READ_BYTES = 1 << 20

# Called with how many more documents were processed.
Report = Callable[[int], None]


class BackupError(Exception):
    """A backup cannot be made or restored; the message is one sentence that says why."""


class CollectionEntry(TypedDict):
    """A collection: its file, the SHA-256 of the file, its documents and their bytes before compression.

    `indexes` are the definitions of all indexes but that of `_id`.
    """

    name: str
    file: str
    sha256: str
    documents: int
    bytes: int
    indexes: list[dict[str, Any]]


class Manifest(TypedDict):
    """What a backup contains.

    `createdAt` is the moment that it shows, in UTC. `migrations` are the numbers of the applied migrations.
    `keyFingerprints` identify the master keys of the service, newest first, and reveal nothing about them.
    """

    format: str
    version: int
    serviceVersion: str
    createdAt: str
    database: str
    migrations: list[int]
    keyFingerprints: list[str]
    collections: list[CollectionEntry]


@dataclass
class Content:
    """What is in a file: the SHA-256 of the file, its documents and their bytes before compression."""

    sha256: str
    documents: int
    bytes: int


def write_manifest(folder: Path, manifest: Manifest) -> Path:
    """Write the manifest of a backup, and return its path."""
    file = folder / FILE
    file.write_text(json_util.dumps(manifest, json_options=json_util.RELAXED_JSON_OPTIONS, indent=1) + "\n", "utf-8")
    return file


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a backup. Raises BackupError if the folder has no backup that this version can read."""
    try:
        manifest: Any = json_util.loads((folder / FILE).read_text("utf-8"))
    except FileNotFoundError:
        raise BackupError(f"{folder} is not a backup: it has no {FILE}") from None
    except ValueError:
        raise BackupError(f"{folder / FILE} is damaged") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BackupError(f"{folder / FILE} is not the manifest of a backup")
    if manifest["version"] != VERSION:
        raise BackupError(
            f"{folder} was made by a newer version of the service, {manifest['serviceVersion']}: use that"
        )
    return cast("Manifest", manifest)


def count_documents(manifest: Manifest) -> int:
    """Return how many documents a backup has."""
    return sum(entry["documents"] for entry in manifest["collections"])


def verify(folder: Path, manifest: Manifest, report: Report) -> None:
    """Compare all files of a backup with its manifest. Raises BackupError if one is missing or differs."""
    for entry in manifest["collections"]:
        expected = Content(entry["sha256"], entry["documents"], entry["bytes"])
        if read_content(folder / entry["file"], report) != expected:
            raise BackupError(f"{folder / entry['file']} is damaged: it is not the file that was backed up")


def read_content(file: Path, report: Report) -> Content:
    """Read a file and return what is in it. Raises BackupError if it is missing or cannot be read completely."""
    digest = hashlib.sha256()
    try:
        with file.open("rb") as compressed:
            while data := compressed.read(_READ_BYTES):
                digest.update(data)
        content = Content(digest.hexdigest(), 0, 0)
        for document in iterate_documents(file):
            content.documents += 1
            content.bytes += len(document)
            report(1)
    except FileNotFoundError:
        raise BackupError(f"{file} is missing") from None
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise BackupError(f"{file} is damaged") from None
    return content


def iterate_documents(file: Path) -> Iterator[bytes]:
    """Iterate over the BSON documents of a file. Raises BackupError if it ends within one."""
    with gzip.open(file) as data:
        while prefix := data.read(_LENGTH):
            rest = max(int.from_bytes(prefix, "little"), _SMALLEST_DOCUMENT) - _LENGTH
            document = prefix + data.read(rest)
            if len(document) != _LENGTH + rest or document[-1] != 0:
                raise BackupError(f"{file} is damaged")
            yield document
