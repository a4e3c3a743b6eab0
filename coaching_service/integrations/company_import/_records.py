"""Storing the records of an export in batches, each in one transaction with the progress of the import."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import orjson

from coaching_service.core.database import files
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, declared_collections
from coaching_service.core.database.files import StoredFile, storing
from coaching_service.core.database.portable import (
    FILE_FIELDS,
    FileRule,
    Portable,
    clear_values,
    file_holders,
    values_at,
)
from coaching_service.core.database.transactions import DocumentExists
from coaching_service.core.errors import InvalidFields
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import DecodingFailed, InvalidFile
from coaching_service.integrations.company_export.rows import records_entry
from coaching_service.integrations.company_import._archive_reader import ArchiveReader
from coaching_service.integrations.company_import._dry_run import Accepted
from coaching_service.integrations.history_import.importing import Outcome, Progress
from coaching_service.people.jobs.models import JobError

# --- What identifiers of an export become in the company, and whether what records refer to is there ------------------


_MAX_KNOWN = 50_000


class ReferenceCheck:
    """Looks up the documents that records refer to; `accepted` has those that a dry run does not store."""

    def __init__(self, ctx: Context, accepted: Accepted | None) -> None:
        self._ctx, self._accepted = ctx, accepted
        self._known: dict[str, set[ObjectId]] = {}

    async def load(self, portable: Portable, documents: list[dict[str, Any]]) -> None:
        """Look up what documents refer to, in one query for each collection."""
        wanted: dict[str, set[ObjectId]] = {}
        for path, collection in {**portable.references, **portable.optional_references}.items():
            for document in documents:
                values = values_at(document, path.split("."))
                wanted.setdefault(collection, set()).update(value for value in values if value is not None)
        for collection, ids in wanted.items():
            known = self._known.setdefault(collection, set())
            if len(known) > _MAX_KNOWN:
                known.clear()
            if self._accepted is not None:
                known |= ids & self._accepted.ids.get(collection, set())
            if missing := ids - known:
                where = {"_id": {"$in": list(missing)}}
                existing = await declared_collections()[collection].find(self._ctx, where, fields=("_id",))
                known |= {document["_id"] for document in existing}

    def find_missing(self, portable: Portable, document: dict[str, Any]) -> str | None:
        """Return the path of a reference to something that does not exist; None if there is none.

        Optional references to something that does not exist become null. Call `load` first.
        """
        for path, collection in portable.references.items():
            known = self._known.get(collection, set())
            values = values_at(document, path.split("."))
            if any(value is not None and value not in known for value in values):
                return path
        for path, collection in portable.optional_references.items():
            names = path.split(".")
            absent = [value for value in values_at(document, names) if value not in self._known.get(collection, set())]
            clear_values(document, names, [value for value in absent if value is not None])
        return None


# The parts of an identifier: the time in seconds, a random value of the process that made it, and a counter.
_PROCESS, _COUNTER = slice(4, 9), slice(9, 12)
_AUTHOR = "author._id"  # of notes and messages


class IdMap:
    """Maps identifiers of an export to identifiers that the import stores.

    The new ones are the same for the same import, so that it can continue anywhere: they are derived from the old ones
    with the secret `seed` of the import, which is stored with its job. They keep the time of creation, and those made
    by one process their order, so that records ordered by identifier stay in order. `fixed` are known already: the
    company, its coaches, and what all companies share. `authors` are the coaches who are the same person as one of the
    company: others are not in the company.
    """

    def __init__(self, seed: str, fixed: Mapping[ObjectId, ObjectId], authors: Mapping[ObjectId, ObjectId]) -> None:
        self._seed, self._fixed, self._authors = seed.encode(), fixed, authors

    def __call__(self, identifier: ObjectId, path: str) -> ObjectId:
        """Return the identifier to store in place of one that was read at a path."""
        if path == "_id":
            return self.derive(identifier)
        if path.rpartition(".")[2] in FILE_FIELDS:  # replaced when the file is stored
            return identifier
        fixed = (self._authors if path == _AUTHOR else self._fixed).get(identifier)
        return self.derive(identifier) if fixed is None else fixed

    def derive(self, identifier: ObjectId) -> ObjectId:
        """Return the new identifier of a record."""
        old = identifier.binary
        process, counter = self._digest(old[_PROCESS])[:5], int.from_bytes(old[_COUNTER])
        moved = (counter + int.from_bytes(self._digest(b"counter")[:3])) % 2**24
        return ObjectId(old[: _PROCESS.start] + process + moved.to_bytes(3))

    def _digest(self, value: bytes) -> bytes:
        return hashlib.sha256(self._seed + value).digest()


BATCH = 200
_FILES = 4  # of one transaction: storing them takes time, and the lease of the job is a minute


@dataclass
class _Record:
    """A line of an entry: the document to store, unless it is not valid, and its problems: field, code, message."""

    line: int
    document: dict[str, Any] | None = None
    files: list[StoredFile] = field(default_factory=list)
    problems: list[tuple[str | None, str, str]] = field(default_factory=list)

    def reject(self, field_path: str | None, code: str, message: str) -> None:
        """Leave the record out."""
        self.document = None
        self.problems.append((field_path, code, message))


class RecordImport:
    """Imports one entry with records, from the position of the import."""

    def __init__(
        self,
        progress: Progress,
        reader: ArchiveReader,
        name: str,
        collection: Documents[Any],
        portable: Portable,
        map_id: IdMap,
        references: ReferenceCheck,
        accepted: Accepted | None,
        start: int,
    ) -> None:
        self._progress, self._reader, self._name = progress, reader, name
        self._collection, self._portable, self._map_id, self._references = collection, portable, map_id, references
        self._accepted = accepted
        self._entry = records_entry(name)
        self._lines: Iterator[tuple[int, bytes]] = reader.lines(self._entry, start)

    async def run_batch(self) -> bool:
        """Import the next records; returns False if there are none left. Raises InvalidArchive, Superseded."""
        records = await asyncio.to_thread(self._read)
        if not records:
            return False
        await self._check_references(records)
        for part in _parts(records, self._portable):
            await self._store(part)
        return True

    async def repeat(self, accepted: Accepted, number: int, end: int | None) -> None:
        """Find out again what a dry run has accepted of this entry, the `number`th, before the line `end` if given.

        Files are not checked again: no record refers to one that is left out because of its file.
        """
        while records := [each for each in await asyncio.to_thread(self._read) if end is None or each.line < end]:
            await self._check_references(records)
            await self._reject_collisions(accepted, records)
            documents = [record.document for record in records if record.document is not None]
            accepted.add(self._collection, documents, (number, records[-1].line + 1))

    def _read(self) -> list[_Record]:
        """Read and validate the next records."""
        records = []
        for line, text in islice(self._lines, BATCH):
            records.append(record := _Record(line))
            try:
                record.document = self._portable.from_export(orjson.loads(text), self._map_id)
            except orjson.JSONDecodeError:
                record.reject(None, "MALFORMED_JSON", "is not JSON")
            except InvalidFields as error:
                record.reject(error.errors[0]["field"], error.errors[0]["code"], error.errors[0]["message"])
        return records

    async def _check_references(self, records: Sequence[_Record]) -> None:
        await self._references.load(self._portable, [each.document for each in records if each.document is not None])
        for record in records:
            if record.document is None:
                continue
            path = self._references.find_missing(self._portable, record.document)
            if path is not None:
                record.reject(path, "REFERENCE_MISSING", "refers to a record that was not imported")

    async def _reject_collisions(self, accepted: Accepted, records: Sequence[_Record]) -> None:
        documents = [record.document for record in records]
        collisions = await accepted.find_collisions(self._progress.ctx, self._collection, documents)
        for number, error in collisions.items():
            records[number].reject(error.field, DocumentExists.default_code, str(error.message))

    async def _store(self, records: Sequence[_Record]) -> None:
        async with AsyncExitStack() as stack:
            for record in records:
                await self._store_files(record, stack)
            if self._accepted is not None:
                await self._reject_collisions(self._accepted, records)
            try:
                await self._commit(records)
            except DocumentExists:  # its transaction is over: find out which record it was
                for record in records:
                    await self._store_alone(record)

    async def _store_alone(self, record: _Record) -> None:
        try:
            await self._commit([record])
        except DocumentExists as error:
            record.reject(error.field, DocumentExists.default_code, str(error.message))
            await self._commit([record])

    async def _store_files(self, record: _Record, stack: AsyncExitStack) -> None:
        if record.document is None or (rule := self._portable.files) is None:
            return
        ctx = self._progress.ctx
        if self._progress.work["isDryRun"]:
            problems = await _check_files(ctx, self._reader, rule, record.document)
        else:
            client_field = self._collection.client_field
            customer_id: ObjectId | None = record.document[client_field] if client_field else None
            record.files, problems = await _store_files(ctx, self._reader, rule, record.document, customer_id, stack)
        record.problems += [("fileId", "INVALID_FILE", problem) for problem in problems]
        if "fileId" in self._portable.exported_fields and "fileId" not in record.document:
            record.document = None

    async def _commit(self, records: Sequence[_Record]) -> None:
        documents = [record.document for record in records if record.document is not None]
        errors: list[JobError] = [
            {"entry": f"{self._entry}:{record.line + 1}", "field": field_path, "code": code, "message": message}
            for record in records
            for field_path, code, message in record.problems
        ]
        outcome = Outcome({self._name: len(documents)}, errors, len(records) - len(documents))
        position = (self._progress.position[0], records[-1].line + 1)

        async def write(tx: Context) -> None:
            if documents and not self._progress.work["isDryRun"]:
                await self._collection.import_many(tx, documents)
                if self._portable.after is not None:
                    await self._portable.after(tx, documents)
                for record in records:
                    for file in record.files if record.document is not None else ():
                        await files.attach(tx, file)

        await self._progress.advance(position, len(records), outcome, write)
        if self._accepted is not None:
            self._accepted.add(self._collection, documents, position)


def _parts(records: Sequence[_Record], portable: Portable) -> Iterator[Sequence[_Record]]:
    """Divide records into parts of few files."""
    if portable.files is None:
        yield records
        return
    part: list[_Record] = []
    count = 0
    for record in records:
        own = len(list(file_holders(record.document)))
        if part and count + own > _FILES:
            yield part
            part, count = [], 0
        part.append(record)
        count += own
    if part:
        yield part


# --- files: checked and stored like uploads, before the transaction of their record ----------------------------------


async def _store_files(
    ctx: Context,
    reader: ArchiveReader,
    rule: FileRule,
    document: dict[str, Any],
    customer_id: ObjectId | None,
    stack: AsyncExitStack,
) -> tuple[list[StoredFile], list[str]]:
    """Store the files of a document, and put their identifiers into it; returns them, and the problems.

    A file that is missing or not accepted is taken out of the document; if the document is about that file, it has no
    `fileId` afterwards. Files that no record has attached when `stack` is closed are deleted. Raises InvalidArchive.
    """
    stored: list[StoredFile] = []
    problems: list[str] = []
    limits = ctx.services.upload_limits
    for holder in list(file_holders(document)):
        with reader.open_file(holder["fileId"], limits.max_bytes(rule.size_limit)) as archived:
            if archived is None:
                problems.append("the file is missing in the archive, or too large")
                _remove(document, holder)
                continue
            storage = storing(
                ctx,
                archived[1],
                name=archived[0],
                content_types=rule.content_types,
                customer_id=customer_id,
                max_pixels=limits.photo_pixels,
            )
            try:
                file = await stack.enter_async_context(storage)
            except (InvalidFile, DecodingFailed) as error:
                problems.append(_describe(error))
                _remove(document, holder)
                continue
        stored.append(file)
        _refer(holder, file)
    return stored, problems


async def _check_files(ctx: Context, reader: ArchiveReader, rule: FileRule, document: dict[str, Any]) -> list[str]:
    """Return the problems of the files of a document, and store nothing. Raises InvalidArchive."""
    async with AsyncExitStack() as stack:
        _, problems = await _store_files(ctx, reader, rule, document, None, stack)
    return problems


def _describe(error: InvalidFile | DecodingFailed) -> str:
    if isinstance(error, InvalidFile):
        return f"the file {error.message}"
    return "the picture could not be decoded: it took too long, or the decoder failed"


def _refer(holder: dict[str, Any], file: StoredFile) -> None:
    known = {"contentType": file.content_type, "size": file.size}
    holder.update({name: value for name, value in known.items() if name in holder})
    holder |= {"fileId": file.id, "thumbnailId": file.thumbnail_id}


def _remove(document: dict[str, Any], holder: dict[str, Any]) -> None:
    """Take an object out of the document that contains it."""
    if holder is document:
        del document["fileId"]
        return
    for name, value in document.items():
        if value is holder:
            document[name] = None
        elif isinstance(value, list):
            document[name] = [entry for entry in value if entry is not holder]
        elif isinstance(value, dict):
            document[name] = {key: entry for key, entry in value.items() if entry is not holder}
