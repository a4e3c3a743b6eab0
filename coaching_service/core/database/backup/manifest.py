"""The manifest of a backup: what is in it, and how to recognise that it is complete."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from bson import json_util

FORMAT = "coaching-service backup"
VERSION = 1  # a folder with a file for each collection
PARTS_VERSION = 2  # parts in a store
FILE = "manifest.json"
_LENGTH = 4  # bytes of a BSON document that say how long it is
_SMALLEST_DOCUMENT = 5
_READ_BYTES = 1 << 20

# Called with how many more documents were processed.
Report = Callable[[int], None]


class BackupError(Exception):
    """A backup cannot be made or restored; the message is one sentence that says why."""


class Part(TypedDict):
    """Some documents of a collection: their SHA-256 and bytes before compression.

    `stored` is the SHA-256 of the file in the store, which can be compared without the private key.
    """

    sha256: str
    documents: int
    bytes: int
    stored: NotRequired[str]


class CollectionContent(TypedDict):
    """The documents of a collection and their bytes before compression, and where they are.

    In a folder: the name and the SHA-256 of a file. In a store: `parts`.
    """

    documents: int
    bytes: int
    file: NotRequired[str]
    sha256: NotRequired[str]
    parts: NotRequired[list[Part]]


class CollectionEntry(CollectionContent):
    """A collection. `indexes` are the definitions of all indexes, except of `_id`."""

    name: str
    indexes: list[dict[str, Any]]


class Manifest(TypedDict):
    """What a backup contains.

    `createdAt` is the moment that it shows, in UTC. `migrations` are the numbers of the applied migrations.
    `keyFingerprints` identify the master keys of the service, newest first, and reveal nothing about them.
    In a store: `recipients` are the public keys for which the parts are encrypted, and `signature` is made with the
    newest master key.
    """

    format: str
    version: int
    serviceVersion: str
    createdAt: str
    database: str
    migrations: list[int]
    keyFingerprints: list[str]
    collections: list[CollectionEntry]
    recipients: NotRequired[list[str]]
    signature: NotRequired[str]


@dataclass
class Content:
    """What is in a file: the SHA-256 of the file, its documents and their bytes before compression."""

    sha256: str
    documents: int
    bytes: int


def format_manifest(manifest: Manifest) -> str:
    """Return a manifest as the text of its file."""
    return json_util.dumps(manifest, json_options=json_util.RELAXED_JSON_OPTIONS, indent=1) + "\n"


def text_to_sign(manifest: Manifest) -> str:
    """Return the text that a manifest signs: itself without the signature."""
    return format_manifest(cast("Manifest", {name: each for name, each in manifest.items() if name != "signature"}))


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a backup. Raises BackupError if the folder has no backup that this version can read."""
    try:
        data = (folder / FILE).read_bytes()
    except FileNotFoundError:
        raise BackupError(f"{folder} is not a backup: it has no {FILE}") from None
    return parse_manifest(data, str(folder / FILE))


def parse_manifest(data: bytes, origin: str) -> Manifest:
    """Return the manifest in a file, `origin`. Raises BackupError if it is none that this version can read."""
    try:
        manifest: Any = json_util.loads(data.decode("utf-8"))
    except ValueError:
        raise BackupError(f"{origin} is damaged") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BackupError(f"{origin} is not the manifest of a backup")
    if manifest["version"] not in (VERSION, PARTS_VERSION):
        raise BackupError(
            f"{origin} was made by a newer version of the service, {manifest['serviceVersion']}: use that"
        )
    return cast("Manifest", manifest)


def count_documents(manifest: Manifest) -> int:
    """Return how many documents a backup has."""
    return sum(entry["documents"] for entry in manifest["collections"])


def verify(path_of: Callable[[str], Path], manifest: Manifest, report: Report) -> None:
    """Compare all files of a backup with its manifest. Raises BackupError if one is missing or differs."""
    for entry in manifest["collections"]:
        expected = Content(entry["sha256"], entry["documents"], entry["bytes"])
        if read_content(file := path_of(entry["file"]), report) != expected:
            raise BackupError(f"{file} is damaged: it is not the file that was backed up")


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


def split_documents(data: bytes) -> Iterator[bytes]:
    """Iterate over BSON documents that are complete."""
    start = 0
    while start < len(data):
        end = start + int.from_bytes(data[start : start + _LENGTH], "little")
        yield data[start:end]
        start = end
