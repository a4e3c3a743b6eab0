"""Uploads: multipart read by aiohttp's own reader into a temporary file, judged by content, then stored."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import IO
from urllib.parse import parse_qsl, unquote

from aiohttp import BodyPartReader, MultipartReader, web

from coaching_service.kernel.errors import BadRequest, RequestTimeout, TooLarge, UnsupportedMediaType
from coaching_service.kernel.media import Judged, judge
from coaching_service.kernel.rest.inputs import read_bytes
from coaching_service.kernel.rest.routes import Form
from coaching_service.kernel.storage import files
from coaching_service.kernel.storage.context import Context
from coaching_service.kernel.storage.files import StoredFile
from coaching_service.kernel.storage.ids import ObjectId

UPLOAD_SECONDS = 600.0
_TEXT_BYTES = 10_000
_MOST_PARTS = 20
_PIECE = 64 * 1024


@dataclass
class Upload:
    """What a multipart body holds: text fields, and the file (if any) in a temporary one."""

    texts: dict[str, str] = field(default_factory=dict)
    file: IO[bytes] | None = None
    name: str = ""

    def close(self) -> None:
        """Let the temporary file go."""
        if self.file is not None:
            self.file.close()


async def read_upload(request: web.Request, form: Form, limit: int) -> Upload:
    """The parts of a multipart body, in any order; the file is never in memory whole.

    A plain form, or no body at all, is one without a file. Raises UnsupportedMediaType, BadRequest for what is no
    multipart body, TooLarge for a file over `limit` bytes.
    """
    if not request.body_exists:
        return Upload()
    if request.content_type == "application/x-www-form-urlencoded":
        raw = (await read_bytes(request, _TEXT_BYTES)).decode("utf-8", "replace")
        return Upload({name: value for name, value in parse_qsl(raw) if name in form.texts})
    if request.content_type != "multipart/form-data":
        raise UnsupportedMediaType("The body must be multipart/form-data")
    upload = Upload()
    try:
        async with asyncio.timeout(UPLOAD_SECONDS):
            await _read_parts(await request.multipart(), form, limit, upload)
    except TimeoutError:
        upload.close()
        raise RequestTimeout("The body did not arrive in time", {"Connection": "close"}) from None
    except (ValueError, LookupError, AssertionError, web.RequestPayloadError):
        upload.close()
        raise BadRequest("The body is not valid multipart/form-data") from None
    except BaseException:
        upload.close()
        raise
    return upload


async def _read_parts(reader: MultipartReader, form: Form, limit: int, upload: Upload) -> None:
    for _ in range(_MOST_PARTS):
        part = await reader.next()
        if part is None:
            return
        if not isinstance(part, BodyPartReader):
            raise BadRequest("The body is not valid multipart/form-data")
        if part.name == form.file and upload.file is None:
            upload.name = PurePosixPath(unquote(part.filename or "").replace("\\", "/")).name[:200]
            upload.file = tempfile.TemporaryFile(prefix="coaching-upload-")  # noqa: SIM115 - closed with the upload
            if await _copy(part, upload.file, limit) == 0 and not upload.name:
                upload.file.close()
                upload.file = None
        elif part.name in form.texts:
            upload.texts[part.name] = await _text(part)
        else:
            await _copy(part, None, limit)
    raise BadRequest(f"The body must not have more than {_MOST_PARTS} parts")


async def _copy(part: BodyPartReader, into: IO[bytes] | None, limit: int) -> int:
    size = 0
    while piece := await part.read_chunk(_PIECE):
        size += len(piece)
        if size > limit:
            raise TooLarge(f"The file must not be larger than {limit} bytes", {"Connection": "close"})
        if into is not None:
            into.write(piece)
    if into is not None:
        into.seek(0)
    return size


async def _text(part: BodyPartReader) -> str:
    raw = bytearray()
    while piece := await part.read_chunk(_PIECE):
        raw += piece
        if len(raw) > _TEXT_BYTES:
            raise BadRequest([f"{part.name} is too long"])
    return raw.decode("utf-8")


async def keep(ctx: Context, upload: Upload, form: Form, customer_id: ObjectId, max_pixels: int) -> StoredFile | None:
    """Judge the uploaded file and store it, a picture with its thumbnail; None when there is none.

    Raises BadRequest when it is not of a kind the form takes, broken, or too large a picture.
    """
    if upload.file is None:
        return None
    judged: Judged = await judge(upload.file, form.kinds, max_pixels)
    try:
        stored = await files.store(
            ctx, judged.file, name=upload.name, content_type=judged.content_type, customer_id=customer_id
        )
        if judged.thumbnail is None:
            return stored
        try:
            small = await files.store(
                ctx,
                judged.thumbnail,
                name=f"thumbnail of {upload.name}",
                content_type="image/jpeg",
                customer_id=customer_id,
            )
        except BaseException:
            await asyncio.shield(files.discard(ctx.services, stored.ids))
            raise
        return replace(stored, thumbnail_id=small.id)
    finally:
        judged.close()
