"""A client's data as a ZIP archive, streamed: records as JSON lines, files, and a manifest with checksums."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from coaching_service.core.database import files
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, declared_collections, now
from coaching_service.core.http.downloads import Download
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import file_extension
from coaching_service.lifecycle.export.archive import Archive
from coaching_service.people.customers import service as customers


async def export(ctx: Context, customer_id: ObjectId) -> Download:
    """Return the export of a client.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    await customers.get_visible(ctx, customer_id)

    def read_all(_start: int, _end: int) -> AsyncGenerator[bytes, None]:
        return _zip(ctx, customer_id)

    return Download("application/zip", f"client-{customer_id}.zip", read_all)


async def _zip(ctx: Context, customer_id: ObjectId) -> AsyncGenerator[bytes, None]:
    archive = Archive()
    for name, collection in sorted(declared_collections().items()):
        if collection.client_field and not collection.secret:
            where = {collection.client_field: customer_id}
            documents = collection.stream(ctx, where, ("_id",), hint=collection.by_client)
            async for output in archive.add_records(f"records/{name}.jsonl", documents):
                yield output
    async for file in files.iterate_files_of_client(ctx, customer_id):
        async for output in add_file(ctx, archive, file):
            yield output
    yield archive.close({"customerId": customer_id, "exportedAt": now()})


async def add_file(ctx: Context, archive: Archive, file: Document) -> AsyncGenerator[bytes, None]:
    """Write a file that is still stored, and yield the bytes of the archive so far."""
    if await files.find(ctx.services, file["_id"]) is None:  # replaced since the list was read
        return
    content = files.read(ctx.services, file, 0, file["length"])
    name = f"files/{file['_id']}{file_extension(file['contentType'])}"
    async for output in archive.add(name, content, compressed=True):
        yield output
