"""Uploads: aiohttp's multipart reader streams the file to a temporary file, which is validated and then stored."""

from __future__ import annotations

import asyncio
import hashlib
import unicodedata
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import IO, Any
from urllib.parse import unquote

from aiohttp import BadContentDispositionHeader, BadContentDispositionParam, BodyPartReader, MultipartReader, hdrs, web
from aiohttp.http_exceptions import HttpProcessingError

from coaching_service.core import errors
from coaching_service.core.database import files
from coaching_service.core.database.context import Context, in_transaction
from coaching_service.core.database.files import StoredFile, storing
from coaching_service.core.http.routes import Handler, MultipartBody, ReceivedFile
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import InvalidFile
from coaching_service.core.temporary_files import open_temporary, write_all

UPLOAD_SECONDS = 600.0
_MAX_OTHER_BYTES = 1_000_000  # of all parts that are neither the file nor a known text field
_MAX_PARTS = 20
_MAX_VALUES = 50  # of each list, further parts
_MAX_DRAINED_BYTES = 200_000_000
_CHUNK_BYTES, _PIECE_BYTES = 64 * 1024, 256 * 1024
_MAX_NAME_LENGTH, _MAX_SUFFIX_LENGTH = 200, 10
_MULTIPART_ERRORS = (
    ValueError,
    LookupError,
    AssertionError,
    RuntimeError,
    web.RequestPayloadError,
    HttpProcessingError,
)
_INVISIBLE_CATEGORIES, _JOINERS = ("Cc", "Cf", "Cs", "Zl", "Zp"), "\u200c\u200d"
# aiohttp warns about malformed headers of a client, which must not fill the service's error output.
for _warning in (BadContentDispositionHeader, BadContentDispositionParam):
    warnings.filterwarnings("ignore", category=_warning)


@dataclass
class Upload:
    """The contents of a multipart body: text fields, and the file, if any, as a temporary file.

    `too_large`: the file was over the limit and has been discarded. `other_names`: the parts that were ignored.
    `more_files`: the files of further fields, by field.
    """

    texts: dict[str, str] = field(default_factory=dict)
    file: IO[bytes] | None = None
    name: str = ""
    sha256: str = ""
    too_large: bool = False
    other_names: list[str] = field(default_factory=list)
    more_files: dict[str, Upload] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """What distinguishes the files of one body from the files of another."""
        return " ".join([self.sha256, *(f"{name}:{each.sha256}" for name, each in sorted(self.more_files.items()))])

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What distinguishes one body from another."""
        return {"texts": self.texts, "name": self.name, "sha256": self.sha256}

    def close(self) -> None:
        """Remove the temporary files."""
        for upload in (self, *self.more_files.values()):
            if upload.file is not None:
                upload.file.close()


@dataclass(frozen=True)
class _FileLimits:
    """The largest file to accept, and how much of a larger one to read and discard."""

    accepted: int
    drained: int


async def read_upload(
    ctx: Context,
    request: web.Request,
    multipart: MultipartBody,
    limit: int,
    *,
    extra_fields: Collection[str] = (),
    drain_oversized: bool = False,
) -> Upload:
    """Return the parts of a multipart body, which may come in any order. The file is never read into memory.

    `limit`: bytes of the file. `extra_fields`: text fields to read in addition to the schema's.
    `drain_oversized`: read a larger file to its end and discard it, instead of raising TooLarge at once: a browser
    shows no response before it has sent the whole body.

    A request without a body is an upload without a file. Raises UnsupportedMediaType for other content
    types, BadRequest for malformed multipart bodies, TooLarge, RequestTimeout, Unavailable if there is no space for
    the file, and ClientDisconnected when the connection closes before the end.
    """
    text_fields = multipart.text_fields | set(extra_fields)
    if not request.body_exists:
        return Upload()
    if request.content_type != "multipart/form-data":
        raise errors.UnsupportedMediaType("The body must be multipart/form-data")
    limits = _FileLimits(limit, max(limit, _MAX_DRAINED_BYTES) if drain_oversized else limit)
    if (request.content_length or 0) > limits.drained * len(multipart.file_fields) + _MAX_OTHER_BYTES:
        raise _too_large(limit)
    upload = Upload()
    try:
        async with asyncio.timeout(UPLOAD_SECONDS):
            await _read_parts(ctx, await request.multipart(), multipart, limits, text_fields, upload)
    except TimeoutError:
        upload.close()
        raise errors.RequestTimeout("The body did not arrive in time", {"Connection": "close"}) from None
    except ConnectionError:
        upload.close()
        raise errors.ClientDisconnected from None
    except _MULTIPART_ERRORS:
        upload.close()
        raise errors.BadRequest("The body is not valid multipart/form-data", code="MALFORMED_MULTIPART") from None
    except BaseException:
        upload.close()
        raise
    return upload


async def _read_parts(
    ctx: Context,
    reader: MultipartReader,
    multipart: MultipartBody,
    limits: _FileLimits,
    text_fields: Collection[str],
    upload: Upload,
) -> None:
    """Read the files and the text fields into `upload`."""
    names: set[str] = set()
    count = other_bytes = 0
    most = _MAX_PARTS + _MAX_VALUES * len(multipart.list_fields)
    while (part := await reader.next()) is not None:
        count += 1
        if count > most:
            raise errors.BadRequest(f"The body must not have more than {most} parts", code="TOO_MANY_PARTS")
        if not isinstance(part, BodyPartReader) or not _is_unencoded(part):
            raise errors.BadRequest("The parts of the body must not be nested or encoded", code="MALFORMED_MULTIPART")
        if (name := part.name) is None:
            message = "Each part of the body needs a Content-Disposition that names its field"
            raise errors.BadRequest(message, code="MALFORMED_MULTIPART")
        if (
            name in names
            and (name in multipart.file_fields or name in text_fields)
            and name not in multipart.list_fields
        ):
            raise errors.invalid_field(name, "must be given only once", code="REPEATED")
        names.add(name)
        if name == multipart.file_field:
            await _read_file(ctx, part, limits, upload)
        elif name in multipart.more_files:
            upload.more_files[name] = Upload()
            await _read_file(ctx, part, limits, upload.more_files[name])
        elif name in text_fields:
            text = await _read_text(part, multipart.text_bytes)
            # A form has the checked boxes of a list as one text, with a value in each line.
            upload.texts[name] = f"{upload.texts[name]}\n{text}" if name in upload.texts else text
        else:
            upload.other_names.append(name)
            other_bytes += await _copy(part, _MAX_OTHER_BYTES - other_bytes, "The other parts")


def _is_unencoded(part: BodyPartReader) -> bool:
    transfer_encoding = part.headers.get(hdrs.CONTENT_TRANSFER_ENCODING, "binary").lower()
    return transfer_encoding in ("binary", "8bit", "7bit") and hdrs.CONTENT_ENCODING not in part.headers


async def _read_file(ctx: Context, part: BodyPartReader, limits: _FileLimits, upload: Upload) -> None:
    upload.name = clean_file_name(part.filename or "")
    upload.file = open_temporary("upload")  # closed with the upload
    writer = _Writer(ctx, upload.file)
    try:
        size = await _copy(part, limits.accepted, "The file", writer.write)
        await writer.flush()
    except errors.TooLarge:
        upload.file.close()
        if limits.drained == limits.accepted:
            raise
        upload.file, upload.too_large = None, True
        await _copy(part, limits.drained, "The file")
        return
    upload.file.seek(0)
    upload.sha256 = writer.digest.hexdigest()
    if size == 0 and not upload.name:  # an empty file input of a browser form
        upload.file.close()
        upload.file = None


def clean_file_name(sent: str) -> str:
    """Return the last part of the path `sent` without invisible characters, at most 200 characters; "" if none."""
    name = PurePosixPath(unquote(sent).replace("\\", "/")).name
    visible = "".join(
        " " if unicodedata.category(character) in _INVISIBLE_CATEGORIES and character not in _JOINERS else character
        for character in name
    ).strip()
    suffix = PurePosixPath(visible).suffix[:_MAX_SUFFIX_LENGTH]
    if len(visible) > _MAX_NAME_LENGTH:
        visible = visible[: _MAX_NAME_LENGTH - len(suffix)] + suffix
    return visible if visible.strip(".") else ""


class _Writer:
    """Writes a file and its checksum in pieces, on a thread: companies take turns, and no other request waits."""

    def __init__(self, ctx: Context, file: IO[bytes]) -> None:
        self.digest = hashlib.sha256()
        self._ctx, self._file, self._piece = ctx, file, bytearray()

    async def write(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._piece += chunk
        if len(self._piece) >= _PIECE_BYTES:
            await self.flush()

    async def flush(self) -> None:
        """Write what is left."""
        piece, self._piece = self._piece, bytearray()
        if len(piece) <= _CHUNK_BYTES:
            self._write(piece)
            return
        async with self._ctx.services.work_slots.pieces.paced(self._ctx.slot_holder):
            writing = asyncio.get_running_loop().run_in_executor(None, self._write, piece)
            try:
                await asyncio.shield(writing)
            finally:
                await asyncio.wait([writing])  # also when cancelled: the file must not be closed before

    def _write(self, piece: bytearray) -> None:
        write_all(self._file, piece)
        self.digest.update(piece)


async def _copy(
    part: BodyPartReader, limit: int, description: str, write: Callable[[bytes], Awaitable[None]] | None = None
) -> int:
    """Pass the bytes of a part to `write` and return their number. Raises TooLarge over `limit` bytes."""
    size = 0
    while chunk := await part.read_chunk(_CHUNK_BYTES):
        size += len(chunk)
        if size > limit:
            raise _too_large(limit, description)
        if write is not None:
            await write(chunk)
    return size


def _too_large(limit: int, description: str = "The file") -> errors.TooLarge:
    return errors.TooLarge(f"{description} must not be larger than {limit} bytes", {"Connection": "close"})


async def _read_text(part: BodyPartReader, limit: int) -> str:
    raw = bytearray()
    while chunk := await part.read_chunk(_CHUNK_BYTES):
        raw += chunk
        if len(raw) > limit:
            raise errors.invalid_field(str(part.name), "is too long", code="TOO_LONG")
    return raw.decode("utf-8")


@asynccontextmanager
async def store_upload(
    ctx: Context, upload: Upload, multipart: MultipartBody, customer_id: ObjectId | None, max_pixels: int
) -> AsyncIterator[StoredFile | ReceivedFile | None]:
    """Validates and stores the uploaded file, an image together with its thumbnail; None when there is no file.

    A file that is not to be stored is left as it is.

    `customer_id`: the client whose file it is, or None for a file of the company.
    Unless a record has attached the file by the end of the block, it is deleted. Raises InvalidFields if the
    file is broken, not of an accepted content type, or an image with too many pixels.
    """
    if upload.file is None:
        yield None
        return
    if not multipart.is_stored:
        yield ReceivedFile(upload.name, upload.file)
        return
    try:
        async with storing(
            ctx,
            upload.file,
            name=upload.name,
            content_types=multipart.content_types,
            customer_id=customer_id,
            max_pixels=max_pixels,
        ) as file:
            upload.file.close()
            yield file
    except InvalidFile as error:
        raise errors.invalid_field(multipart.file_field, error.message, code=error.code) from None


def attach_files(handler: Handler, *files_of_body: StoredFile | ReceivedFile | None) -> Handler:
    """Return `handler` running in a transaction that also attaches the stored files to their records."""
    stored = [file for file in files_of_body if isinstance(file, StoredFile)]
    if not stored and any(files_of_body):
        return handler

    async def handle(ctx: Context, **arguments: Any) -> Any:
        async def work(tx: Context) -> Any:
            result = await handler(tx, **arguments)
            for file in stored:
                await files.attach(tx, file)
            return result

        return await in_transaction(ctx, work)

    return handle
