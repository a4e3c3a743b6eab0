"""Storing a file that came from outside: validated first, a picture together with its thumbnail."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from typing import IO

from coaching_service.core.database import files
from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import JPEG, InvalidFile, validate_file


@asynccontextmanager
async def storing(
    ctx: Context,
    source: IO[bytes],
    *,
    name: str,
    content_types: Sequence[str],
    customer_id: ObjectId | None,
    max_pixels: int,
) -> AsyncIterator[StoredFile]:
    """Validate and store a file of one of the `content_types`, of a client or of the company (None).

    Unless a record has attached the file by the end of the block, it is deleted. Raises InvalidFile if the file is
    broken, not of an accepted content type, or an image with too many pixels.
    """
    ids: list[ObjectId] = []
    metrics = ctx.services.metrics
    try:
        validated = await validate_file(ctx.services.media_worker, source, content_types, max_pixels, ctx.company_id)
        with closing(validated) as valid:
            content_type = valid.content_type
            file = await files.store(ctx, valid.file, name=name, content_type=content_type, customer_id=customer_id)
            ids += file.ids
            if valid.thumbnail is not None:
                thumbnail = await files.store(
                    ctx, valid.thumbnail, name=f"thumbnail of {name}", content_type=JPEG, customer_id=customer_id
                )
                ids += thumbnail.ids
                file = replace(file, thumbnail_id=thumbnail.id)
        metrics.uploads.labels("stored").inc()
        metrics.upload_bytes.inc(file.size)
        yield file
    except InvalidFile:
        metrics.uploads.labels("rejected").inc()
        raise
    finally:
        await files.release(ctx.services, ids)
