"""The files of an import: checked and stored like uploads, before the transaction of the record they belong to."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile, storing
from coaching_service.core.database.portable import FileRule, file_holders
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import DecodingFailed, InvalidFile
from coaching_service.integrations.company_import._archive_reader import ArchiveReader


async def store_files(
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


async def check_files(ctx: Context, reader: ArchiveReader, rule: FileRule, document: dict[str, Any]) -> list[str]:
    """Return the problems of the files of a document, and store nothing. Raises InvalidArchive."""
    async with AsyncExitStack() as stack:
        _, problems = await store_files(ctx, reader, rule, document, None, stack)
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
