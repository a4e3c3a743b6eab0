"""A client's data as a ZIP archive, streamed: records as JSON lines, files, and a manifest with checksums."""

from __future__ import annotations

import asyncio
import hashlib
import io
import zipfile
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NotRequired, TypedDict

from coaching_service.core import audit
from coaching_service.core.auth import CUSTOMERS, FORMS, METRICS, NUTRITION, coach, customer
from coaching_service.core.database import files
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.database.declared import file_holders
from coaching_service.core.database.documents import now, registry
from coaching_service.core.http.responses import Download, to_json
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import file_extension
from coaching_service.people import own_profile
from coaching_service.people.customers import service as customers
from coaching_service.training import visibility

# --- A ZIP archive that is written while it is sent: JSON lines, files, and a manifest with checksums -----------------


_CHUNK_SIZE, _BYTES_AT_ONCE = 64 * 1024, 16 * 1024
_MAX_RATIO = 50
_MAX_SIZE = 2_000_000_000  # of an entry with sizes of 32 bits, for which zipfile has a limit of 2 GiB


class ManifestEntry(TypedDict):
    """An entry of the archive: its size in bytes, the SHA-256 checksum of its content, and how many records it has."""

    name: str
    bytes: int
    sha256: str
    records: NotRequired[int]


class _Buffer(io.RawIOBase):
    """The output of the ZIP writer, from which the bytes written so far are taken."""

    def __init__(self) -> None:
        self._content = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        chunk = bytes(data)  # type: ignore[call-overload]  # zipfile writes bytes-like objects
        self._content += chunk
        return len(chunk)

    def take(self) -> bytes:
        """Return the bytes written since the last call."""
        content = bytes(self._content)
        self._content.clear()
        return content


class _BoundedDeflate:
    """Deflates at most to a fiftieth, so that no reader takes an archive of repetitive data for an attack.

    What would become smaller is stored as it is, in blocks of the same stream.
    """

    def __init__(self) -> None:
        self._deflate, self._store = (zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS) for level in (6, 0))
        self._size = self._compressed_size = 0

    def compress(self, data: bytes) -> bytes:
        """Return the next part of the stream."""
        is_too_small = self._size > _MAX_RATIO * self._compressed_size
        compressor = self._store if is_too_small else self._deflate
        # Nothing after a full flush refers to anything before it, so the parts may come from both.
        part = compressor.compress(data) + compressor.flush(zlib.Z_FULL_FLUSH)
        self._size += len(data)
        self._compressed_size += len(part)
        return part

    def flush(self) -> bytes:
        """Return the end of the stream."""
        return self._deflate.flush()


class Archive:
    """A ZIP archive being written, and the manifest of its entries."""

    def __init__(self) -> None:
        self.buffer = _Buffer()
        self._zip = zipfile.ZipFile(self.buffer, "w", zipfile.ZIP_DEFLATED)
        self.manifest: list[ManifestEntry] = []

    async def add(self, name: str, chunks: AsyncIterator[bytes], *, compressed: bool = False) -> AsyncIterator[bytes]:
        """Write an entry and yield the bytes of the archive so far; `compressed` content is stored as it is.

        Readers of streams, such as Java's ZipInputStream, expect sizes of 32 bits after an entry that needs no more.
        """
        digest, size = hashlib.sha256(), 0
        self._zip.compresslevel = 0 if compressed else None
        with self._zip.open(name, "w") as entry:
            if not compressed:
                vars(entry)["_compressor"] = _BoundedDeflate()  # zipfile has no other way to set it

            def write(chunk: bytes) -> None:
                digest.update(chunk)
                entry.write(chunk)

            async for chunk in chunks:
                await asyncio.to_thread(write, chunk)  # compressing takes longer than other requests should wait
                size += len(chunk)
                if len(output := self.buffer.take()) > 0:
                    yield output
            vars(entry)["_zip64"] = size > _MAX_SIZE  # zipfile would decide it before the size is known
        self.manifest.append({"name": name, "bytes": size, "sha256": digest.hexdigest()})
        yield self.buffer.take()

    async def add_records(self, name: str, documents: AsyncIterator[Mapping[str, Any]]) -> AsyncIterator[bytes]:
        """Write documents as JSON lines; yields the bytes of the archive so far."""
        count = 0

        async def write_lines() -> AsyncIterator[bytes]:
            nonlocal count
            chunk, passed = bytearray(), 0
            async for document in documents:
                count += 1
                chunk += to_json(document) + b"\n"
                if len(chunk) > _CHUNK_SIZE:
                    yield bytes(chunk)
                    chunk.clear()
                    passed = 0
                elif len(chunk) - passed > _BYTES_AT_ONCE:
                    passed = len(chunk)
                    await asyncio.sleep(0)  # other requests continue between documents that are read already
            yield bytes(chunk)

        async for output in self.add(name, write_lines()):
            yield output
        self.manifest[-1]["records"] = count

    def close(self, header: Mapping[str, Any]) -> bytes:
        """Write the manifest, which begins with `header`, and the directory; returns the rest of the archive."""
        self._zip.compresslevel = None
        self._zip.writestr("manifest.json", to_json({**header, "entries": self.manifest}))
        self._zip.close()
        return self.buffer.take()


Records = AsyncIterator[Mapping[str, Any]]


async def write_archive(
    ctx: Context, customer_id: ObjectId, records: Iterable[tuple[str, Records]], has_file: Callable[[ObjectId], bool]
) -> AsyncGenerator[bytes, None]:
    """Yield an archive of a client: records by the name of their entry, and then those files that it has."""
    archive = Archive()
    for name, documents in records:
        async for output in archive.add_records(f"records/{name}.jsonl", documents):
            yield output
    async for file in files.iterate_files_of_client(ctx, customer_id):
        # One that was replaced since the list was read is not stored any more.
        if has_file(file["_id"]) and await files.find(ctx.services, file["_id"]) is not None:
            content = files.read(ctx.services, file, 0, file["length"])
            name = f"files/{file['_id']}{file_extension(file['contentType'])}"
            async for output in archive.add(name, content, compressed=True):
                yield output
    yield archive.close({"customerId": customer_id, "exportedAt": now()})


# --- A client's own export: what the client may read, as a ZIP archive ------------------------------------------------


# The collections whose records a client may read. Notes, the history of changes, reasons for attention, check-ins and
# programs planned ahead, and what the service needs for itself are for coaches only.
COLLECTIONS = (
    "availability",
    "formResponses",
    "messages",
    "metricAssignments",
    "metricEntries",
    "personalRecords",
    "planVersions",
    "progressPhotos",
    "trainingMaxes",
    "workoutBlocks",
    "setMedia",  # after the workouts, which say the items of hidden days
)
# Collections whose records are on days of the calendar, which can be hidden; a record that a coach entered (`manual`)
# is not part of a day.
_BY_DAY = ("formResponses", "personalRecords", "workoutBlocks")
# What coaches and their systems store with a record.
_PRIVATE = ("customerId", "externalId", "metadata", "reviewedAt", "reviewedBy", "clientTexts")


def _without_private(value: Any) -> Any:
    """Return a record without what is only for coaches, in nested documents too."""
    if isinstance(value, Mapping):
        return {name: _without_private(inner) for name, inner in value.items() if name not in _PRIVATE}
    return [_without_private(inner) for inner in value] if isinstance(value, list) else value


# --- A client's export over REST --------------------------------------------------------------------------------------


routes = Routes("/coach/customers/{customerId}/export", tag="Export")
own_routes = Routes("/customer/export", tag="The client's own")


@routes.get(
    "",
    access=coach(CUSTOMERS.VIEW, FORMS.VIEW, METRICS.VIEW, NUTRITION.VIEW),
    returns=bytes,
    media_types=("application/zip",),
    request_class="bulk",
)
async def export_customer(ctx: Context, customer_id: ObjectId) -> Download:
    """Export all data of a client.

    A streamed ZIP archive: every record as JSON lines, every file, and `manifest.json` with sizes and SHA-256
    checksums. It contains data of all areas, so it needs the permission to view each of them.
    """
    # Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    await customers.get_visible(ctx, customer_id)
    await audit.record(ctx, "client.exported", customer_id, customer_id=customer_id)

    def read_records() -> Iterator[tuple[str, Records]]:
        for name, collection in sorted(registry.items()):
            if collection.client_field and not collection.secret:
                where = {collection.client_field: customer_id}
                yield name, collection.stream(ctx, where, ("_id",), hint=collection.by_client)

    def read_all(_start: int, _end: int) -> AsyncGenerator[bytes, None]:
        return write_archive(ctx, customer_id, read_records(), lambda _: True)

    return Download("application/zip", f"client-{customer_id}.zip", read_all)


@own_routes.get("", access=customer(), returns=bytes, media_types=("application/zip",), request_class="bulk")
async def export_own_data(ctx: Context) -> Download:
    """Export my data.

    A streamed ZIP archive: the profile, workouts, logs, measurements, photos, plans, forms and messages as JSON lines,
    their files, and `manifest.json` with sizes and SHA-256 checksums. Hidden days and notes of coaches are left out.
    """
    profile, customer, hidden = await gather_reads(
        ctx,
        own_profile.get_own_profile(ctx),
        customers.get_visible(ctx, ctx.caller.id, ("profilePhoto",)),
        visibility.find_days_hidden_from_caller(ctx, ctx.caller.id),
    )

    async def read_profile() -> Records:
        yield {name: value for name, value in profile.items() if name != "profilePhotoUrl"}

    def read_all(_start: int, _end: int) -> AsyncGenerator[bytes, None]:
        file_ids = {each["fileId"] for each in file_holders(customer)}  # those of records are added as these are read
        hidden_items: set[ObjectId] = set()

        async def read(name: str) -> Records:
            collection = registry[name]
            where = {str(collection.client_field): ctx.caller.id}
            async for document in collection.stream(ctx, where, ("_id",), hint=collection.by_client):
                if name in _BY_DAY and document["date"] in hidden and document.get("source") != "manual":
                    hidden_items.update(item["_id"] for item in document.get("items", ()))
                elif document.get("witemId") not in hidden_items:
                    file_ids.update(each["fileId"] for each in file_holders(document))
                    yield _without_private(document)

        records = ((name, read(name)) for name in COLLECTIONS)
        return write_archive(ctx, ctx.caller.id, chain([("profile", read_profile())], records), file_ids.__contains__)

    return Download("application/zip", "my-training.zip", read_all)
