"""The records of an export: read within limits, and with the identifiers that they get in the company."""

from __future__ import annotations

import hashlib
import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

import orjson

from coaching_service.core.database import declared as database_declarations
from coaching_service.core.database.context import Context, DocumentExists
from coaching_service.core.database.declared import Index
from coaching_service.core.database.documents import Documents, registry
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.temporary_files import open_temporary, write_all
from coaching_service.integrations import company_export
from coaching_service.integrations.history_import.models import ImportRefused

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


class ArchiveReader:
    """An export in a local file."""

    def __init__(self, file: IO[bytes]) -> None:
        """Read the directory. Raises ImportRefused."""
        _check_directory(file)
        with _reading("the archive"):
            self._zip = zipfile.ZipFile(file)
        file.seek(0, 2)
        self._max_bytes = _RATIO_FROM + MAX_RATIO * file.tell()
        self._inflated = 0
        self._entries: dict[str, zipfile.ZipInfo] = {}
        self._files: dict[ObjectId, tuple[str, zipfile.ZipInfo]] = {}
        names = [_decode_name(info) for info in self._zip.infolist()]
        header_entry = f"/{company_export.HEADER}"
        # The export may have been packed again with its folder.
        folders = [name for name in names if name.endswith(header_entry) and name.count("/") == 1]
        is_packed_again = company_export.HEADER not in names and len(folders) == 1
        self._folder = folders[0].removesuffix(company_export.HEADER) if is_packed_again else ""
        for info in self._zip.infolist():
            kind, path = stat.S_IFMT(info.external_attr >> 16), info.filename.replace("\\", "/")
            if ".." in path.split("/") or path.startswith("/") or kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                message = "has an entry that is a link, or outside of the archive"
                raise ImportRefused(message, info.filename[:_MAX_SHOWN])
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
            raise ImportRefused("is not an export of a company", company_export.HEADER)
        if header.get("version") != company_export.VERSION:
            raise ImportRefused(
                f"has another version of the format than {company_export.VERSION}", company_export.HEADER
            )

    def _name_of(self, info: zipfile.ZipInfo) -> str:
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
        """Return the JSON object of an entry. Raises ImportRefused if it is missing, too large or something else."""
        if (info := self._entries.get(entry)) is None:
            raise ImportRefused("is missing", entry)
        content = bytearray()
        for chunk in self._inflate(info):
            content += chunk
            if len(content) > max_bytes:
                raise ImportRefused(f"is larger than {max_bytes} bytes", entry)
        try:
            value = orjson.loads(content)
        except orjson.JSONDecodeError:
            value = None
        if not isinstance(value, dict):
            raise ImportRefused("is not a JSON object", entry)
        return value

    def lines(
        self, entry: str, start: int = 0, update: Callable[[bytes], object] | None = None
    ) -> Iterator[tuple[int, bytes]]:
        """Yield the lines of an entry that are not empty with their numbers from 0, beginning with line `start`.

        `update` is called with all bytes of the entry. Raises ImportRefused, also for a line that is too long.
        """
        number, rest = 0, b""
        for chunk in self._inflate(self._entries[entry]):
            if update is not None:
                update(chunk)
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > MAX_RECORD_BYTES:
                raise ImportRefused(f"has a record that is larger than {MAX_RECORD_BYTES} bytes", entry)
            for line in lines:
                if number >= start and line.strip():
                    yield number, line
                number += 1
        if rest.strip() and number >= start:
            yield number, rest

    def check(self, lists: Collection[str]) -> int:
        """Read all entries of an export to their ends; returns the number of lines of the entries in `lists`.

        Raises ImportRefused if an entry is damaged, inflates too much, or has no checksum or another one in the
        manifest, if an entry of the manifest is missing, and what `lines` raises.
        """
        self.reset_limit()
        manifest = self.read_object(company_export.MANIFEST, _MAX_MANIFEST_BYTES)
        try:
            sums = {
                unicodedata.normalize("NFC", str(entry["name"])): str(entry["sha256"]).lower()
                for entry in manifest["entries"]
            }
        except (KeyError, TypeError):
            raise ImportRefused("is not a list of entries with their checksums", company_export.MANIFEST) from None
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
                raise ImportRefused(f"has no checksum in {company_export.MANIFEST}", info.filename)
            digest = hashlib.sha256()
            if name in lists:
                count += sum(1 for _ in self.lines(name, update=digest.update))
            else:
                for chunk in self._inflate(info):
                    digest.update(chunk)
            if digest.hexdigest() != expected:
                raise ImportRefused(
                    f"is not as it was exported: its checksum is another one in {company_export.MANIFEST}",
                    info.filename,
                )
        if missing := next((entry for entry in sums if entry not in self._entries), None):
            raise ImportRefused(f"is missing, and {company_export.MANIFEST} has it", missing[:_MAX_SHOWN])
        return count

    @contextmanager
    def open_file(self, file_id: ObjectId, max_bytes: int) -> Iterator[tuple[str, IO[bytes]] | None]:
        """Yield the name and a temporary copy of a file; None if the archive does not have it, or it is too large.

        Raises ImportRefused.
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
            raise ImportRefused("is encrypted or compressed in another way than by deflate", info.filename)
        size, limit = 0, _RATIO_FROM + MAX_RATIO * info.compress_size
        with _reading(info.filename), self._zip.open(info) as source:
            while chunk := source.read(_CHUNK_BYTES):
                size += len(chunk)
                self._inflated += len(chunk)
                if size > limit or self._inflated > self._max_bytes:
                    raise ImportRefused(f"inflates to more than {MAX_RATIO} times its size", info.filename)
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


def _add(entries: dict[Any, Any], key: object, value: object, name: str) -> None:
    if key in entries:
        raise ImportRefused("is in the archive twice", name[:_MAX_SHOWN])
    entries[key] = value


@contextmanager
def _reading(entry: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGED:
        raise ImportRefused("is damaged", entry) from None


def _check_directory(file: IO[bytes]) -> None:
    """Raise ImportRefused if the directory is missing or too large, before it is read into memory."""
    file.seek(0, 2)
    size = file.tell()
    start = max(0, size - _MAX_COMMENT - 22 - 20)
    file.seek(start)
    tail = file.read()
    end = tail.rfind(_END)
    if end < 0 or len(tail) < end + 22:
        raise ImportRefused("is not a whole ZIP archive")
    entries, directory_bytes = struct.unpack("<HI", tail[end + 10 : end + 16])
    locator = tail[end - 20 : end] if end >= 20 else b""
    if locator.startswith(_END64_LOCATOR):
        file.seek(min(size, struct.unpack("<Q", locator[8:16])[0]))
        record = file.read(56)
        if len(record) < 56:
            raise ImportRefused("is not a whole ZIP archive")
        entries, directory_bytes = struct.unpack("<QQ", record[32:48])
    if entries > MAX_ENTRIES or directory_bytes > _MAX_DIRECTORY_BYTES:
        raise ImportRefused(f"has more than {MAX_ENTRIES} entries")
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
        self, collection: Documents[dict[str, object]], documents: Sequence[dict[str, Any]], position: tuple[int, int]
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


def referred_to(portables: Collection[database_declarations.Portable]) -> set[str]:
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
    ctx: Context, collection: Documents[dict[str, object]], index: Index, documents: Sequence[dict[str, Any] | None]
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

    async def load(self, portable: database_declarations.Portable, documents: list[dict[str, Any]]) -> None:
        """Look up what documents refer to, in one query for each collection."""
        wanted: dict[str, set[ObjectId]] = {}
        for path, collection in {**portable.references, **portable.optional_references}.items():
            for document in documents:
                values = database_declarations.values_at(document, path.split("."))
                wanted.setdefault(collection, set()).update(value for value in values if value is not None)
        for collection, ids in wanted.items():
            known = self._known.setdefault(collection, set())
            if len(known) > _MAX_KNOWN:
                known.clear()
            if self._accepted is not None:
                known |= ids & self._accepted.ids.get(collection, set())
            if missing := ids - known:
                where = {"_id": {"$in": list(missing)}}
                existing = await registry[collection].find(self._ctx, where, fields=("_id",))
                known |= {document["_id"] for document in existing}

    def find_missing(self, portable: database_declarations.Portable, document: dict[str, Any]) -> str | None:
        """Return the path of a reference to something that does not exist; None if there is none.

        Optional references to something that does not exist become null. Call `load` first.
        """
        for path, collection in portable.references.items():
            known = self._known.get(collection, set())
            values = database_declarations.values_at(document, path.split("."))
            if any(value is not None and value not in known for value in values):
                return path
        for path, collection in portable.optional_references.items():
            names = path.split(".")
            absent = [
                value
                for value in database_declarations.values_at(document, names)
                if value not in self._known.get(collection, set())
            ]
            database_declarations.clear_values(document, names, [value for value in absent if value is not None])
        return None


# The parts of an identifier: the time in seconds, a random value of the process that made it, and a counter.
_PROCESS, _COUNTER = slice(4, 9), slice(9, 12)
_AUTHOR = "author._id"  # of notes, messages, and comments within records


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
        if path.rpartition(".")[2] in database_declarations.FILE_FIELDS:  # replaced when the file is stored
            return identifier
        fixed = (self._authors if path.endswith(_AUTHOR) else self._fixed).get(identifier)
        return self.derive(identifier) if fixed is None else fixed

    def derive(self, identifier: ObjectId) -> ObjectId:
        """Return the new identifier of a record."""
        old = identifier.binary
        process, counter = self._digest(old[_PROCESS])[:5], int.from_bytes(old[_COUNTER])
        moved = (counter + int.from_bytes(self._digest(b"counter")[:3])) % 2**24
        return ObjectId(old[: _PROCESS.start] + process + moved.to_bytes(3))

    def _digest(self, value: bytes) -> bytes:
        return hashlib.sha256(self._seed + value).digest()
