"""Uploads: multipart read by aiohttp's own reader into a temporary file, judged by content, then stored."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
import unicodedata
import warnings
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import IO, Any
from urllib.parse import parse_qsl, unquote

from aiohttp import BadContentDispositionHeader, BadContentDispositionParam, BodyPartReader, MultipartReader, hdrs, web
from aiohttp.http_exceptions import HttpProcessingError

from coaching_service.core.database import files
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import BadRequest, ClientDisconnected, RequestTimeout, TooLarge, UnsupportedMediaType
from coaching_service.core.http.request_parsing import read_bytes
from coaching_service.core.http.routes import Form, Handler
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import JPEG, ValidatedFile, validate_file

UPLOAD_SECONDS = 600.0
_TEXT_BYTES = 10_000
_OTHER_BYTES = 1_000_000  # all that is neither the file nor a field the form knows
_MAX_PARTS = 20
_MAX_READ_AWAY = 200_000_000
_PIECE = 64 * 1024
_MAX_NAME, _MAX_ENDING = 200, 10
_BROKEN = (ValueError, LookupError, AssertionError, RuntimeError, web.RequestPayloadError, HttpProcessingError)
_UNSEEN, _JOINERS = ("Cc", "Cf", "Cs", "Zl", "Zp"), "\u200c\u200d"
# What a client wrote into a header is nothing for our error stream.
for _warning in (BadContentDispositionHeader, BadContentDispositionParam):
    warnings.filterwarnings("ignore", category=_warning)


@dataclass
class Upload:
    """What a multipart body holds: text fields, and the file (if any) in a temporary one.

    `too_large`: there was a file over the limit, and it was read away.
    """

    texts: dict[str, str] = field(default_factory=dict)
    file: IO[bytes] | None = None
    name: str = ""
    sha256: str = ""
    too_large: bool = False

    @property
    def sent(self) -> dict[str, Any]:
        """What tells one body from another."""
        return {"texts": self.texts, "name": self.name, "sha256": self.sha256}

    def close(self) -> None:
        """Let the temporary file go."""
        if self.file is not None:
            self.file.close()


async def read_upload(
    request: web.Request, file: str, texts: Collection[str], limit: int, *, patient: bool = False
) -> Upload:
    """The parts of a multipart body, in any order: the one named `file`, never in memory whole, and those in `texts`.

    A plain form, or no body at all, is one without a file. Raises UnsupportedMediaType, BadRequest for what is no
    multipart body, TooLarge for a file over `limit` bytes, HungUp when it ends too soon. `patient`: such a file is read
    away instead, since a browser listens to no answer before it has sent all; TooLarge is for what never seems to end.
    """
    if not request.body_exists:
        return Upload()
    if request.content_type == "application/x-www-form-urlencoded":
        raw = (await read_bytes(request, _TEXT_BYTES)).decode("utf-8", "replace")
        return Upload({name: value for name, value in parse_qsl(raw) if name in texts})
    if request.content_type != "multipart/form-data":
        raise UnsupportedMediaType("The body must be multipart/form-data")
    maximum = max(limit, _MAX_READ_AWAY) if patient else limit
    if (request.content_length or 0) > maximum + _OTHER_BYTES:
        raise _too_large(limit)
    upload = Upload()
    try:
        async with asyncio.timeout(UPLOAD_SECONDS):
            await _read_parts(await request.multipart(), {file: (limit, maximum)}, texts, upload)
    except TimeoutError:
        upload.close()
        raise RequestTimeout("The body did not arrive in time", {"Connection": "close"}) from None
    except ConnectionError:
        upload.close()
        raise ClientDisconnected from None
    except _BROKEN:
        upload.close()
        raise BadRequest("The body is not valid multipart/form-data") from None
    except BaseException:
        upload.close()
        raise
    return upload


async def _read_parts(
    reader: MultipartReader, file: dict[str, tuple[int, int]], texts: Collection[str], upload: Upload
) -> None:
    """Into `upload`: the file (its field's name, with the bytes to take and to read) and the texts."""
    seen: set[str] = set()
    others = 0
    for _ in range(_MAX_PARTS):
        part = await reader.next()
        if part is None:
            return
        if not isinstance(part, BodyPartReader) or not _is_plain(part):
            raise BadRequest("The parts of the body must be sent as they are, not nested and not encoded")
        if (name := part.name) is None:
            raise BadRequest("Each part of the body needs a Content-Disposition that names its field")
        if name in seen and (name in file or name in texts):
            raise BadRequest([f"{name} must be given only once"])
        seen.add(name)
        if name in file:
            await _take_file(part, *file[name], upload)
        elif name in texts:
            upload.texts[name] = await _text(part)
        else:
            others += await _copy(part, _OTHER_BYTES - others, "The other parts")
    raise BadRequest(f"The body must not have more than {_MAX_PARTS} parts")


def _is_plain(part: BodyPartReader) -> bool:
    transfer = part.headers.get(hdrs.CONTENT_TRANSFER_ENCODING, "binary").lower()
    return transfer in ("binary", "8bit", "7bit") and hdrs.CONTENT_ENCODING not in part.headers


async def _take_file(part: BodyPartReader, limit: int, maximum: int, upload: Upload) -> None:
    upload.name = _plain_name(part.filename or "")
    # Unbuffered: the process that decodes pictures shares its position. Closed with the upload.
    upload.file = tempfile.TemporaryFile(buffering=0, prefix="coaching-upload-")  # noqa: SIM115
    digest = hashlib.sha256()
    try:
        size = await _copy(part, limit, "The file", upload.file.write, digest.update)
    except TooLarge:
        upload.file.close()
        if maximum == limit:
            raise
        upload.file, upload.too_large = None, True
        await _copy(part, maximum, "The file")
        return
    upload.file.seek(0)
    upload.sha256 = digest.hexdigest()
    if size == 0 and not upload.name:  # a file input that was left empty
        upload.file.close()
        upload.file = None


def _plain_name(told: str) -> str:
    """The last part of a path, as it may be stored, sent and shown: nothing unseen, no halves of letters."""
    name = PurePosixPath(unquote(told).replace("\\", "/")).name
    letters = (" " if unicodedata.category(each) in _UNSEEN and each not in _JOINERS else each for each in name)
    shown = "".join(letters).strip()
    ending = PurePosixPath(shown).suffix[:_MAX_ENDING]
    if len(shown) > _MAX_NAME:
        shown = shown[: _MAX_NAME - len(ending)] + ending
    return shown if shown.strip(".") else ""


async def _copy(part: BodyPartReader, limit: int, what: str, *into: Callable[[bytes], object]) -> int:
    size = 0
    while piece := await part.read_chunk(_PIECE):
        size += len(piece)
        if size > limit:
            raise _too_large(limit, what)
        for take in into:
            take(piece)
    return size


def _too_large(limit: int, what: str = "The file") -> TooLarge:
    return TooLarge(f"{what} must not be larger than {limit} bytes", {"Connection": "close"})


async def _text(part: BodyPartReader) -> str:
    raw = bytearray()
    while piece := await part.read_chunk(_PIECE):
        raw += piece
        if len(raw) > _TEXT_BYTES:
            raise BadRequest([f"{part.name} is too long"])
    return raw.decode("utf-8")


@asynccontextmanager
async def stored(
    ctx: Context, upload: Upload, form: Form, customer_id: ObjectId, max_pixels: int
) -> AsyncIterator[StoredFile | None]:
    """The uploaded file, judged and stored, a picture with its thumbnail; None when there is none.

    If no record has come to keep it at the end, it goes. Raises BadRequest when it is not of a kind the form takes,
    broken, or too large a picture.
    """
    if upload.file is None:
        yield None
        return
    ids: list[ObjectId] = []
    try:
        with closing(await _judged(ctx, upload.file, form, max_pixels)) as judged:
            kind = judged.content_type
            file = await files.store(ctx, judged.file, name=upload.name, content_type=kind, customer_id=customer_id)
            ids += file.ids
            if judged.thumbnail is not None:
                name = f"thumbnail of {upload.name}"
                small = await files.store(ctx, judged.thumbnail, name=name, content_type=JPEG, customer_id=customer_id)
                ids += small.ids
                file = replace(file, thumbnail_id=small.id)
        upload.close()
        yield file
    finally:
        await files.give_up(ctx.services, ids)


async def _judged(ctx: Context, file: IO[bytes], form: Form, max_pixels: int) -> ValidatedFile:
    try:
        return await validate_file(ctx.services.pictures, file, form.kinds, max_pixels)
    except BadRequest as error:
        raise BadRequest([f"{form.file} {error.message}"]) from None


def keeping(handler: Handler, file: StoredFile | None) -> Handler:
    """`handler`, whose transaction also keeps `file`."""

    async def handle(ctx: Context, **arguments: Any) -> Any:
        async def work(tx: Context) -> Any:
            result = await handler(tx, **arguments)
            if file is not None:
                await files.keep(tx, file)
            return result

        return await in_transaction(ctx, work)

    return handle
