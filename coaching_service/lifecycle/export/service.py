"""A client's data as a ZIP archive, streamed: records as JSON lines, files, and a manifest with checksums."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any

from coaching_service.core.database import files
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, declared_collections, now
from coaching_service.core.http.downloads import Download
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import file_extension
from coaching_service.lifecycle.export.archive import Archive
from coaching_service.people.customers import service as customers

Records = AsyncIterator[Mapping[str, Any]]


async def export(ctx: Context, customer_id: ObjectId) -> Download:
    """Return the export of a client.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    await customers.get_visible(ctx, customer_id)

    def read_all(_start: int, _end: int) -> AsyncGenerator[bytes, None]:
        return write_archive(ctx, customer_id, _read_records(ctx, customer_id), lambda _: True)

    return Download("application/zip", f"client-{customer_id}.zip", read_all)


def _read_records(ctx: Context, customer_id: ObjectId) -> Iterator[tuple[str, Records]]:
    for name, collection in sorted(declared_collections().items()):
        if collection.client_field and not collection.secret:
            where = {collection.client_field: customer_id}
            yield name, collection.stream(ctx, where, ("_id",), hint=collection.by_client)


async def write_archive(
    ctx: Context, customer_id: ObjectId, records: Iterable[tuple[str, Records]], has_file: Callable[[ObjectId], bool]
) -> AsyncGenerator[bytes, None]:
    """Yield an archive of a client: records by the name of their entry, and then those files that it has."""
    archive = Archive()
    for name, documents in records:
        async for output in archive.add_records(f"records/{name}.jsonl", documents):
            yield output
    async for file in files.iterate_files_of_client(ctx, customer_id):
        if has_file(file["_id"]):
            async for output in _add_file(ctx, archive, file):
                yield output
    yield archive.close({"customerId": customer_id, "exportedAt": now()})


async def _add_file(ctx: Context, archive: Archive, file: Document) -> AsyncGenerator[bytes, None]:
    """Write a file that is still stored, and yield the bytes of the archive so far."""
    if await files.find(ctx.services, file["_id"]) is None:  # replaced since the list was read
        return
    content = files.read(ctx.services, file, 0, file["length"])
    name = f"files/{file['_id']}{file_extension(file['contentType'])}"
    async for output in archive.add(name, content, compressed=True):
        yield output
