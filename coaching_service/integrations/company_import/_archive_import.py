"""Importing an export: first the whole file is checked, then its collections are stored one after another."""

from __future__ import annotations

import asyncio
import hashlib
import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import IO, Any, NotRequired, TypedDict

import orjson

from coaching_service.core.database import files
from coaching_service.core.database import portable as database_portable
from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents, declared_collections
from coaching_service.core.database.files import StoredFile, storing
from coaching_service.core.database.transactions import DocumentExists
from coaching_service.core.errors import Conflict, InvalidFields
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.json_conversion import converter_of
from coaching_service.core.media import DecodingFailed, InvalidFile
from coaching_service.core.temporary_files import open_temporary, write_all
from coaching_service.integrations import company_export
from coaching_service.integrations.history_import.importing import Outcome, Progress
from coaching_service.library.exercises import muscles
from coaching_service.library.exercises import service as exercises
from coaching_service.library.metric_sets import UNITS
from coaching_service.people.account import service as account
from coaching_service.people.account.service import AccountDetails, AccountNotifications, AttentionSettings, LoadUnit
from coaching_service.people.customers import service as customers
from coaching_service.people.identities import models
from coaching_service.people.jobs import JobError
from coaching_service.people.team import service as team

# --- Reading an export that came from outside: with limits on entries, bytes and how much they inflate ----------------


MAX_ENTRIES = 200_000
MAX_RATIO = 100
MAX_RECORD_BYTES = 4_000_000
_RATIO_FROM = 1_000_000  # bytes that an entry, or the whole archive, may have whatever its ratio
_MAX_DIRECTORY_BYTES = 64_000_000
_MAX_OBJECT_BYTES = 10_000_000
_MAX_MANIFEST_BYTES = 100_000_000  # of MAX_ENTRIES entries with long names
_CHUNK_BYTES = 64 * 1024
_END, _END64_LOCATOR = b"PK\x05\x06", b"PK\x06\x07"
_MAX_COMMENT = 65_535
_MAX_SHOWN = 200  # characters of the name of an entry in an error
_ENCRYPTED, _NAME_IS_UTF8 = 0x1, 0x800
_FILE_NAME = re.compile(r"[^\x00-\x1f\x7f/\\]{1,250}")
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    struct.error,
    NotImplementedError,
    RuntimeError,
    OSError,
    ValueError,
    IndexError,
    OverflowError,
)


class InvalidArchive(Exception):
    """The file is not an export that can be imported; nothing more of it is read."""

    def __init__(self, message: str, entry: str = "", code: str = "INVALID_FILE", *, line: int | None = None) -> None:
        super().__init__(message)
        self.message, self.entry, self.code, self.line = message, entry, code, line


class ArchiveReader:
    """An export in a local file."""

    def __init__(self, file: IO[bytes]) -> None:
        """Read the directory. Raises InvalidArchive."""
        _check_directory(file)
        with _reading("the archive"):
            self._zip = zipfile.ZipFile(file)
        file.seek(0, 2)
        self._max_bytes = _RATIO_FROM + MAX_RATIO * file.tell()
        self._inflated = 0
        self._entries: dict[str, zipfile.ZipInfo] = {}
        self._files: dict[ObjectId, tuple[str, zipfile.ZipInfo]] = {}
        self._folder = _find_folder([_decode_name(info) for info in self._zip.infolist()])
        for info in self._zip.infolist():
            _check_entry(info)
            if info.is_dir():
                continue
            name = self._name_of(info)
            if (file_name := company_export.file_of(name)) is not None:
                if (file_id := parse_id(file_name[0])) is not None and _FILE_NAME.fullmatch(file_name[1]):
                    _add(self._files, file_id, (file_name[1], info), info.filename)
            else:
                _add(self._entries, name, info, info.filename)
        header = self.read_object(company_export.HEADER)
        if header.get("format") != company_export.FORMAT:
            raise InvalidArchive("is not an export of a company", company_export.HEADER)
        if header.get("version") != company_export.VERSION:
            raise InvalidArchive(
                f"has another version of the format than {company_export.VERSION}", company_export.HEADER
            )

    def _name_of(self, info: zipfile.ZipInfo) -> str:
        """Return the name that the entry has in the export."""
        return _decode_name(info).removeprefix(self._folder)

    @property
    def collections(self) -> list[str]:
        """The collections that have records."""
        return [name for entry in self._entries if (name := company_export.collection_of(entry)) is not None]

    @property
    def unknown(self) -> list[str]:
        """The entries that an export does not have."""
        return [entry for entry in self._entries if not company_export.is_known(entry)]

    def has(self, entry: str) -> bool:
        """Return whether there is an entry of that name."""
        return entry in self._entries

    def read_object(self, entry: str, max_bytes: int = _MAX_OBJECT_BYTES) -> dict[str, Any]:
        """Return the JSON object of an entry. Raises InvalidArchive if it is missing, too large or something else."""
        if (info := self._entries.get(entry)) is None:
            raise InvalidArchive("is missing", entry)
        content = bytearray()
        for chunk in self._inflate(info):
            content += chunk
            if len(content) > max_bytes:
                raise InvalidArchive(f"is larger than {max_bytes} bytes", entry)
        try:
            value = orjson.loads(content)
        except orjson.JSONDecodeError:
            value = None
        if not isinstance(value, dict):
            raise InvalidArchive("is not a JSON object", entry)
        return value

    def lines(
        self, entry: str, start: int = 0, update: Callable[[bytes], object] | None = None
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the lines of an entry that are not empty with their numbers from 0, beginning with line `start`.

        `update` is called with all bytes of the entry. Raises InvalidArchive, also for a line that is too long.
        """
        number, rest = 0, b""
        for chunk in self._inflate(self._entries[entry]):
            if update is not None:
                update(chunk)
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > MAX_RECORD_BYTES:
                raise InvalidArchive(f"has a record that is larger than {MAX_RECORD_BYTES} bytes", entry)
            for line in lines:
                if number >= start and line.strip():
                    yield number, line
                number += 1
        if rest.strip() and number >= start:
            yield number, rest

    def check(self, lists: Collection[str]) -> int:
        """Read all entries of an export to their ends; returns the number of lines of the entries in `lists`.

        Raises InvalidArchive if an entry is damaged, inflates too much, or has no checksum or another one in the
        manifest, if an entry of the manifest is missing, and what `lines` raises.
        """
        self.reset_limit()
        sums = _checksums(self.read_object(company_export.MANIFEST, _MAX_MANIFEST_BYTES))
        files = (info for _, info in self._files.values())
        known = (
            info
            for entry, info in self._entries.items()
            if company_export.is_known(entry) and entry != company_export.MANIFEST
        )
        count = 0
        for info in (*known, *files):
            name = self._name_of(info)
            if (expected := sums.pop(name, None)) is None:
                raise InvalidArchive(f"has no checksum in {company_export.MANIFEST}", info.filename)
            digest = hashlib.sha256()
            if name in lists:
                count += sum(1 for _ in self.lines(name, update=digest.update))
            else:
                for chunk in self._inflate(info):
                    digest.update(chunk)
            if digest.hexdigest() != expected:
                raise InvalidArchive(
                    f"is not as it was exported: its checksum is another one in {company_export.MANIFEST}",
                    info.filename,
                )
        if missing := next((entry for entry in sums if entry not in self._entries), None):
            raise InvalidArchive(f"is missing, and {company_export.MANIFEST} has it", missing[:_MAX_SHOWN])
        return count

    @contextmanager
    def open_file(self, file_id: ObjectId, max_bytes: int) -> Iterator[tuple[str, IO[bytes]] | None]:
        """Yield the name and a temporary copy of a file; None if the archive does not have it, or it is too large.

        Raises InvalidArchive.
        """
        entry = self._files.get(file_id)
        if entry is None or entry[1].file_size > max_bytes:
            yield None
            return
        name, info = entry
        with open_temporary("import") as file:
            for chunk in self._inflate(info):
                write_all(file, chunk)
            file.seek(0)
            yield name, file

    def reset_limit(self) -> None:
        """Begin to count the inflated bytes again, before the archive is read once more."""
        self._inflated = 0

    def _inflate(self, info: zipfile.ZipInfo) -> Iterator[bytes]:
        if info.flag_bits & _ENCRYPTED or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InvalidArchive("is encrypted or compressed in another way than by deflate", info.filename)
        size, limit = 0, _RATIO_FROM + MAX_RATIO * info.compress_size
        with _reading(info.filename), self._zip.open(info) as source:
            while chunk := source.read(_CHUNK_BYTES):
                size += len(chunk)
                self._inflated += len(chunk)
                if size > limit or self._inflated > self._max_bytes:
                    raise InvalidArchive(f"inflates to more than {MAX_RATIO} times its size", info.filename)
                yield chunk


def _decode_name(info: zipfile.ZipInfo) -> str:
    """Return the name of an entry.

    Programs that pack folders write UTF-8 without saying so, and macOS letters in parts.
    """
    name = info.filename
    if not info.flag_bits & _NAME_IS_UTF8:
        with suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return unicodedata.normalize("NFC", name)


def _find_folder(names: Collection[str]) -> str:
    """Return the folder that an export has been packed again with, such as `export/`; empty if there is none."""
    if company_export.HEADER in names:
        return ""
    folders = [
        name.removesuffix(company_export.HEADER)
        for name in names
        if name.endswith(f"/{company_export.HEADER}") and name.count("/") == 1
    ]
    return folders[0] if len(folders) == 1 else ""


def _checksums(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return the checksums of a manifest by the names of the entries. Raises InvalidArchive."""
    try:
        return {
            unicodedata.normalize("NFC", str(entry["name"])): str(entry["sha256"]).lower()
            for entry in manifest["entries"]
        }
    except (KeyError, TypeError):
        raise InvalidArchive("is not a list of entries with their checksums", company_export.MANIFEST) from None


def _check_entry(info: zipfile.ZipInfo) -> None:
    """Raise InvalidArchive for an entry that unpacking would store elsewhere, or that is no plain file."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    parts = info.filename.replace("\\", "/").split("/")
    if ".." in parts or info.filename.startswith(("/", "\\")) or kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise InvalidArchive("has an entry that is a link, or outside of the archive", info.filename[:_MAX_SHOWN])


def _add(entries: dict[Any, Any], key: object, value: object, name: str) -> None:
    if key in entries:
        raise InvalidArchive("is in the archive twice", name[:_MAX_SHOWN])
    entries[key] = value


@contextmanager
def _reading(entry: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGED:
        raise InvalidArchive("is damaged", entry) from None


def _check_directory(file: IO[bytes]) -> None:
    """Raise InvalidArchive if the directory is missing or too large, before it is read into memory."""
    file.seek(0, 2)
    size = file.tell()
    start = max(0, size - _MAX_COMMENT - 22 - 20)
    file.seek(start)
    tail = file.read()
    end = tail.rfind(_END)
    if end < 0 or len(tail) < end + 22:
        raise InvalidArchive("is not a whole ZIP archive")
    entries, directory_bytes = struct.unpack("<HI", tail[end + 10 : end + 16])
    locator = tail[end - 20 : end] if end >= 20 else b""
    if locator.startswith(_END64_LOCATOR):
        file.seek(min(size, struct.unpack("<Q", locator[8:16])[0]))
        record = file.read(56)
        if len(record) < 56:
            raise InvalidArchive("is not a whole ZIP archive")
        entries, directory_bytes = struct.unpack("<QQ", record[32:48])
    if entries > MAX_ENTRIES or directory_bytes > _MAX_DIRECTORY_BYTES:
        raise InvalidArchive(f"has more than {MAX_ENTRIES} entries")
    file.seek(0)


# --- What a dry run has accepted so far: later records may refer to it, and may not have the same unique fields -------
# It stays in memory with the import. Another process, which continues the job, goes through the records before its
# position once more.


Key = tuple[Any, ...]


class Accepted:
    """The records that a dry run has accepted, up to `position` in the file.

    `ids` are the identifiers of the current collection, and of those in `lasting`, which others refer to.
    """

    def __init__(self, lasting: Collection[str]) -> None:
        self.position = (0, 0)
        self.ids: dict[str, set[ObjectId]] = {}
        self._lasting, self._keys = lasting, set[bytes]()

    async def find_collisions(
        self, ctx: Context, collection: Documents[dict[str, object]], documents: Sequence[dict[str, Any] | None]
    ) -> dict[int, DocumentExists]:
        """Return the errors that storing documents would raise, by their positions in `documents`."""
        ids, keys = set[ObjectId](), set[bytes]()
        known = self.ids.get(collection.name, set())
        unique = {index.name: index for index in unique_indexes(collection)}
        stored = {name: await _find_stored(ctx, collection, index, documents) for name, index in unique.items()}
        collisions: dict[int, DocumentExists] = {}
        for number, document in enumerate(documents):
            if document is None:
                continue
            own = {name: key for name, index in unique.items() if (key := _key_of(index, document)) is not None}
            digests = {name: _digest(unique[name], key) for name, key in own.items()}
            if document["_id"] in known or document["_id"] in ids:
                collisions[number] = DocumentExists("_id")
            elif taken := [
                name
                for name, digest in digests.items()
                if digest in self._keys or digest in keys or own[name] in stored[name]
            ]:
                collisions[number] = DocumentExists.of_fields(unique[taken[0]].fields)
            else:
                ids.add(document["_id"])
                keys.update(digests.values())
        return collisions

    def add(
        self,
        collection: Documents[dict[str, object]],
        documents: Sequence[dict[str, Any]],
        position: tuple[int, int],
    ) -> None:
        """Remember documents without collisions, and that the dry run is at `position`."""
        self.ids.setdefault(collection.name, set()).update(document["_id"] for document in documents)
        for index in unique_indexes(collection):
            keys = (_key_of(index, document) for document in documents)
            self._keys.update(_digest(index, key) for key in keys if key is not None)
        self.move(position)

    def move(self, position: tuple[int, int]) -> None:
        """Remember the position; after a collection, forget what only matters within it."""
        if position[0] != self.position[0]:
            self._keys.clear()
            self.ids = {name: ids for name, ids in self.ids.items() if name in self._lasting}
        self.position = position


def unique_indexes(collection: Documents[Any]) -> list[Index]:
    """Return the unique indexes of the documents of a company, without the company."""
    return [
        Index(index.fields[1:], partial_filter=index.partial_filter, ignore_case=index.ignore_case)
        for index in collection.indexes
        if index.unique and index.fields[0] == "companyId"
    ]


def referred_to(portables: Collection[database_portable.Portable]) -> set[str]:
    """Return the collections that records of an export refer to."""
    return {name for each in portables for name in (*each.references.values(), *each.optional_references.values())}


def _key_of(index: Index, document: dict[str, Any]) -> Key | None:
    """Return the values of a document in an index; None if it is not in it: partial ones are of fields with a text."""
    if any(not isinstance(document.get(name), str) or not document[name] for name, _ in index.partial_filter):
        return None
    return tuple(document.get(name.removeprefix("-")) for name in index.fields)


def _digest(index: Index, key: Key) -> bytes:
    return hashlib.blake2b(repr((index.fields, key)).encode(), digest_size=16).digest()


async def _find_stored(
    ctx: Context,
    collection: Documents[dict[str, object]],
    index: Index,
    documents: Sequence[dict[str, Any] | None],
) -> set[Key]:
    """Return the values in an index that documents of the company have already."""
    if collection.client_field in index.fields:  # clients of the import are new
        return set()
    wanted = {key[0] for document in documents if document is not None and (key := _key_of(index, document))}
    if not wanted:
        return set()
    fields = tuple(name.removeprefix("-") for name in index.fields)
    hint = collection.index_name(*index.fields)
    existing = await collection.find(ctx, {fields[0]: {"$in": list(wanted)}}, fields=fields, hint=hint, ownership="own")
    return {tuple(each.get(name) for name in fields) for each in existing}


# --- What identifiers of an export become in the company, and whether what records refer to is there ------------------


_MAX_KNOWN = 50_000


class ReferenceCheck:
    """Looks up the documents that records refer to; `accepted` has those that a dry run does not store."""

    def __init__(self, ctx: Context, accepted: Accepted | None) -> None:
        self._ctx, self._accepted = ctx, accepted
        self._known: dict[str, set[ObjectId]] = {}

    async def load(self, portable: database_portable.Portable, documents: list[dict[str, Any]]) -> None:
        """Look up what documents refer to, in one query for each collection."""
        wanted: dict[str, set[ObjectId]] = {}
        for path, collection in {**portable.references, **portable.optional_references}.items():
            for document in documents:
                values = database_portable.values_at(document, path.split("."))
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

    def find_missing(self, portable: database_portable.Portable, document: dict[str, Any]) -> str | None:
        """Return the path of a reference to something that does not exist; None if there is none.

        Optional references to something that does not exist become null. Call `load` first.
        """
        for path, collection in portable.references.items():
            known = self._known.get(collection, set())
            values = database_portable.values_at(document, path.split("."))
            if any(value is not None and value not in known for value in values):
                return path
        for path, collection in portable.optional_references.items():
            names = path.split(".")
            absent = [
                value
                for value in database_portable.values_at(document, names)
                if value not in self._known.get(collection, set())
            ]
            database_portable.clear_values(document, names, [value for value in absent if value is not None])
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
        if path.rpartition(".")[2] in database_portable.FILE_FIELDS:  # replaced when the file is stored
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


# --- Storing the records of an export in batches, each in one transaction with the progress of the import -------------


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
        portable: database_portable.Portable,
        map_id: IdMap,
        references: ReferenceCheck,
        accepted: Accepted | None,
        start: int,
    ) -> None:
        self._progress, self._reader, self._name = progress, reader, name
        self._collection, self._portable, self._map_id, self._references = collection, portable, map_id, references
        self._accepted = accepted
        self._entry = company_export.records_entry(name)
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


def _parts(records: Sequence[_Record], portable: database_portable.Portable) -> Iterator[Sequence[_Record]]:
    """Divide records into parts of few files."""
    if portable.files is None:
        yield records
        return
    part: list[_Record] = []
    count = 0
    for record in records:
        own = len(list(database_portable.file_holders(record.document)))
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
    rule: database_portable.FileRule,
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
    for holder in list(database_portable.file_holders(document)):
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


async def _check_files(
    ctx: Context, reader: ArchiveReader, rule: database_portable.FileRule, document: dict[str, Any]
) -> list[str]:
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


_MAX_COACHES = 10_000
_MAX_UNKNOWN = 10


class ArchiveImport:
    """An import of an export."""

    def __init__(
        self,
        progress: Progress,
        reader: ArchiveReader,
        map_id: IdMap,
        problems: list[JobError],
    ) -> None:
        self._progress, self._reader, self._map_id, self._problems = progress, reader, map_id, problems
        self._current: tuple[int, RecordImport] | None = None
        self._collections = list(company_export.portable_collections())
        self._accepted: Accepted | None = None
        if progress.work["isDryRun"]:
            lasting = referred_to([portable for *_, portable in self._collections])
            self._accepted = Accepted(lasting)
        self._references = ReferenceCheck(progress.ctx, self._accepted)

    @classmethod
    async def open(cls, progress: Progress, file: IO[bytes]) -> ArchiveImport:
        """Read the directory of an export. Raises InvalidArchive."""
        reader = await asyncio.to_thread(ArchiveReader, file)
        fixed, authors, problems = await _find_fixed_ids(progress.ctx, reader)
        map_id = IdMap(progress.work["seed"], fixed, authors)
        return cls(progress, reader, map_id, problems)

    async def prepare(self) -> AsyncIterator[int]:
        """Check the whole file, count its records, and take over the settings of the account.

        Raises InvalidArchive, also if its loads are in another unit than the company's.
        """
        if self._progress.work["isStarted"]:
            return
        yield 0
        known = {name for name, *_ in self._collections}
        for name in self._reader.collections:
            if name not in known:
                self._report(company_export.records_entry(name), "is not a collection of this version")
        for entry in self._reader.unknown[:_MAX_UNKNOWN]:
            self._report(entry[:200], "is not part of an export and is left out")
        lists = [company_export.records_entry(name) for name, *_ in self._collections]
        total = await asyncio.to_thread(self._reader.check, lists)
        settings = read_account(self._reader)
        is_dry_run = self._progress.work["isDryRun"]

        async def write(tx: Context) -> None:
            await apply_account(tx, settings, is_dry_run=is_dry_run)

        try:
            await self._progress.start(total, write, self._problems)
        except (Conflict, InvalidFields) as error:
            raise InvalidArchive(str(error.message), company_export.ACCOUNT) from None

    def _report(self, entry: str, message: str) -> None:
        self._problems.append({"entry": entry, "field": None, "code": "INVALID_FILE", "message": message})

    async def run_batch(self) -> bool:
        """Import the next records; returns False if there are none left. Raises InvalidArchive, Superseded."""
        if self._accepted is not None and self._accepted.position < self._progress.position:
            await self._repeat(self._accepted)
        while (number := self._progress.position[0]) < len(self._collections):
            if self._reader.has(company_export.records_entry(self._collections[number][0])):
                if self._current is None or self._current[0] != number:
                    self._current = (number, self._import_of(number, self._progress.position[1]))
                if await self._current[1].run_batch():
                    return True
            await self._progress.advance((number + 1, 0), 0, Outcome())
            if self._accepted is not None:
                self._accepted.move((number + 1, 0))
        return False

    def _import_of(self, number: int, start: int) -> RecordImport:
        """Return the import of the records of a collection, from the line `start`."""
        name, collection, portable = self._collections[number]
        return RecordImport(
            self._progress,
            self._reader,
            name,
            collection,
            portable,
            self._map_id,
            self._references,
            self._accepted,
            start,
        )

    async def _repeat(self, accepted: Accepted) -> None:
        """Find out again what the dry run has accepted up to the position of its job: another process did that."""
        end = self._progress.position
        while accepted.position < end:
            number, start = accepted.position
            is_last = number == end[0]
            if self._reader.has(company_export.records_entry(self._collections[number][0])):
                await self._import_of(number, start).repeat(accepted, number, end[1] if is_last else None)
            accepted.move(end if is_last else (number + 1, 0))
        self._reader.reset_limit()


async def _find_fixed_ids(
    ctx: Context, reader: ArchiveReader
) -> tuple[dict[ObjectId, ObjectId], dict[ObjectId, ObjectId], list[JobError]]:
    """Return the identifiers that are not mapped to new ones, with what they are mapped to; likewise of authors;
    and coaches not found.

    Muscles, units and shared exercises are the same everywhere. The owner of the export becomes the owner of the
    company, other coaches become those with the same e-mail address. What another person wrote does not become the
    owner's: authors are only those with the same e-mail address.
    """
    shared = await exercises.list_shared_ids(ctx)
    fixed = {identifier: identifier for identifier in (*muscles.NAME_OF, *UNITS, *shared)}
    account = reader.read_object(company_export.ACCOUNT)
    if (company_id := parse_id(account.get("_id"))) is not None:
        fixed[company_id] = ctx.company_id
    own = {models.account_key(coach["email"]): coach["_id"] for coach in await team.list_coaches(ctx)}
    authors: dict[ObjectId, ObjectId] = {}
    problems: list[JobError] = []
    for number, coach in enumerate(await asyncio.to_thread(_read_coaches, reader), 1):
        coach_id, email = parse_id(coach.get("_id")), coach.get("email")
        same = own.get(models.account_key(str(email)))
        target = ctx.caller.id if coach.get("role") == "OWNER" else same
        if coach_id is not None and same is not None:
            authors[coach_id] = same
        if coach_id is not None and target is not None:
            fixed[coach_id] = target
        else:
            message = "is not the e-mail address of a coach of the company: clients of this coach have no trainer"
            problems.append(
                {
                    "entry": f"{company_export.COACHES}:{number}",
                    "field": "email",
                    "code": "COACH_NOT_FOUND",
                    "message": message,
                }
            )
    return fixed, authors, problems


def _read_coaches(reader: ArchiveReader) -> list[dict[str, Any]]:
    if not reader.has(company_export.COACHES):
        return []
    coaches: list[dict[str, Any]] = []
    for line, text in reader.lines(company_export.COACHES):
        try:
            coach = orjson.loads(text)
        except orjson.JSONDecodeError:
            coach = None
        if not isinstance(coach, dict) or line >= _MAX_COACHES:
            raise InvalidArchive("is not a list of coaches", company_export.COACHES)
        coaches.append(coach)
    return coaches


# --- the settings of the account -------------------------------------------------------------------------------------


class AccountSettings(TypedDict):
    """The account of an export."""

    _id: ObjectId
    companyName: str
    timezone: str
    loadUnit: LoadUnit
    hasStoredLoads: bool
    notifications: AccountNotifications
    attention: NotRequired[AttentionSettings]
    clientsMayImport: NotRequired[bool]
    clientsMayMove: NotRequired[bool]
    clientsMayAdd: NotRequired[bool]


def read_account(reader: ArchiveReader) -> AccountSettings:
    """Return the account of an export. Raises InvalidArchive if it is not valid."""
    try:
        settings: AccountSettings = converter_of(AccountSettings)(
            reader.read_object(company_export.ACCOUNT), "", lambda identifier, _: identifier
        )
    except InvalidFields as error:
        raise InvalidArchive(
            f"{error.errors[0]['field']} {error.errors[0]['message']}", company_export.ACCOUNT
        ) from None
    problems = input_of(AccountDetails)().validate(_change_of(settings))
    if problems:
        raise InvalidArchive(f"{next(iter(problems))} is not valid", company_export.ACCOUNT)
    return settings


def _change_of(settings: AccountSettings) -> Any:
    return take(AccountDetails, settings)


async def apply_account(ctx: Context, settings: AccountSettings, *, is_dry_run: bool) -> None:
    """Take over the settings into an empty company, in the caller's transaction; one with clients keeps its own.

    Raises Conflict if the export has loads in another unit than the company's.
    """
    current = await account.get(ctx)
    is_empty = not await customers.has_any(ctx)
    if is_empty and not await account.has_stored_loads(ctx):
        if not is_dry_run:
            await account.update(ctx, _change_of(settings))
    elif settings["hasStoredLoads"] and settings["loadUnit"] != current["loadUnit"]:
        raise Conflict(f"has loads in {settings['loadUnit']}, and the company has loads in {current['loadUnit']}")
    if settings["hasStoredLoads"] and not is_dry_run:
        await account.lock_stored_unit(ctx)
    if not is_dry_run:
        await account.record_overrides(ctx)  # the export may have some
