"""Releases as they were recorded: a database that the release wrote, and of the last one its code.

`releases/VERSION/data.jsonl.xz` has one JSON document in each line: facts of the service first (Facts), then each
collection with its indexes, followed by its documents as canonical extended JSON. `code.tar.xz` has the files of the
wheel. `scripts/record-release` writes both (docs/decisions/tests-and-releases.md).
"""

from __future__ import annotations

import lzma
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import orjson
from bson import json_util
from pymongo.database import Database

RELEASES = Path(__file__).parent / "releases"
Document = dict[str, Any]


class Facts(TypedDict):
    """What a test has to know: the master key, the demo company's credentials, and what the release returned.

    `identifiers` are those in the response to each read, by path (reading.read_all).
    """

    version: str
    secretKey: str
    email: str
    password: str
    apiKey: str
    identifiers: dict[str, list[str]]


class Collection(TypedDict):
    """A collection: its name, its documents, and the definitions of all indexes but that of `_id`."""

    name: str
    indexes: list[Document]
    documents: list[Document]


@dataclass(frozen=True)
class Release:
    """A recorded release."""

    folder: Path

    @property
    def version(self) -> str:
        return self.folder.name

    @property
    def facts(self) -> Facts:
        with lzma.open(self.folder / "data.jsonl.xz") as lines:
            facts: Facts = orjson.loads(next(lines))
        return facts

    def collections(self) -> Iterator[Collection]:
        """Yield the collections with their documents."""
        with lzma.open(self.folder / "data.jsonl.xz", "rt", encoding="utf-8") as lines:
            next(lines)
            for line in lines:
                head: Any = json_util.loads(line)
                documents = [json_util.loads(next(lines)) for _ in range(head["documents"])]
                yield {"name": head["name"], "indexes": head["indexes"], "documents": documents}

    def load(self, db: Database[Document]) -> None:
        """Store the documents, in place of everything that the database has."""
        db.client.drop_database(db.name)
        for collection in self.collections():
            db.create_collection(collection["name"])
            if collection["indexes"]:
                db.command({"createIndexes": collection["name"], "indexes": collection["indexes"]})
            if collection["documents"]:
                db[collection["name"]].insert_many(collection["documents"])

    def unpack(self, folder: Path) -> Path:
        """Unpack the code into a new folder, and return it: `python -m coaching_service` runs the release there."""
        with tarfile.open(self.folder / "code.tar.xz") as packed:
            packed.extractall(folder, filter="data")
        return folder


def record(folder: Path, facts: Facts, collections: Iterable[Collection]) -> None:
    """Write the data of a release."""
    with lzma.open(folder / "data.jsonl.xz", "wb", preset=9) as lines:
        lines.write(orjson.dumps(facts, option=orjson.OPT_APPEND_NEWLINE))
        for collection in collections:
            head = {**collection, "documents": len(collection["documents"])}
            for document in (head, *collection["documents"]):
                text = json_util.dumps(document, json_options=json_util.CANONICAL_JSON_OPTIONS)
                lines.write(text.encode() + b"\n")


def releases() -> list[Release]:
    """All recorded releases, the earliest first."""
    folders = [file.parent for file in RELEASES.glob("*/data.jsonl.xz")]
    return [Release(each) for each in sorted(folders, key=lambda folder: [int(n) for n in folder.name.split(".")])]


def last_release() -> Release:
    """The last release, of which the code is recorded too."""
    return releases()[-1]
