"""The manifest of a backup: what is in it, and how to recognise that it is complete."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from bson import json_util

FORMAT = "coaching-service backup"
FOLDER_VERSION = 1  # a folder with a file for each collection, which versions before 0.3 wrote
VERSION = 2  # parts in a store
FILE = "manifest.json"
_LENGTH = 4  # bytes of a BSON document that say how long it is

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

    In a folder of an earlier version: the name and the SHA-256 of a file. In a store: `parts`.
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


def format_manifest(manifest: Manifest) -> str:
    """Return a manifest as the text of its file."""
    return json_util.dumps(manifest, json_options=json_util.RELAXED_JSON_OPTIONS, indent=1) + "\n"


def text_to_sign(manifest: Manifest) -> str:
    """Return the text that a manifest signs: itself without the signature."""
    return format_manifest(cast("Manifest", {name: each for name, each in manifest.items() if name != "signature"}))


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a backup that an earlier version made in a folder of its own. Raises BackupError."""
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
    if manifest["version"] not in (FOLDER_VERSION, VERSION):
        raise BackupError(
            f"{origin} was made by a newer version of the service, {manifest['serviceVersion']}: use that"
        )
    return cast("Manifest", manifest)


def count_documents(manifest: Manifest) -> int:
    """Return how many documents a backup has."""
    return sum(entry["documents"] for entry in manifest["collections"])


def iterate_documents(file: Path, sha256: str) -> Iterator[bytes]:
    """Iterate over the BSON documents of a file of a folder. Raises BackupError if it is not what was backed up."""
    try:
        with file.open("rb") as data:
            digest = hashlib.file_digest(data, "sha256").hexdigest()
    except FileNotFoundError:
        raise BackupError(f"{file} is missing") from None
    if digest != sha256:
        raise BackupError(f"{file} is damaged: it is not the file that was backed up")
    with gzip.open(file) as data:
        while prefix := data.read(_LENGTH):
            yield prefix + data.read(int.from_bytes(prefix, "little") - _LENGTH)


def split_documents(data: bytes) -> Iterator[bytes]:
    """Iterate over BSON documents that are complete."""
    start = 0
    while start < len(data):
        end = start + int.from_bytes(data[start : start + _LENGTH], "little")
        yield data[start:end]
        start = end
