"""Forms with a file: their texts are read like any other form's, the file is REST's upload.

Why a file is not taken is said at its field, and what was typed beside it stays; the file has to be chosen anew.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from aiohttp import web
from marshmallow import ValidationError
from multidict import MultiDict

from coaching_service.core.database.context import Context
from coaching_service.core.http.handlers import UploadLimits
from coaching_service.core.http.uploads import Upload, attach_file, read_upload, store_upload
from coaching_service.web.browser_sessions import CSRF_FIELD
from coaching_service.web.form_idempotency import SUBMISSION_FIELD
from coaching_service.web.forms import FormData, field_names, read_form
from coaching_service.web.pages import Page
from coaching_service.web.rendering import file_size


async def received(page: Page, request: web.Request, limits: UploadLimits | None) -> tuple[FormData, Upload]:
    """What was typed into a form, and the file in it; without `limits` the file is read away. Raises as read_form and
    read_upload."""
    if page.upload is None or request.content_type == "application/x-www-form-urlencoded":
        return await read_form(request), Upload()
    extra_fields = {*field_names(page.schema), CSRF_FIELD, SUBMISSION_FIELD}
    maximum = limits.max_bytes(page.upload) if limits else 0
    upload = await read_upload(request, page.upload, maximum, extra_fields=extra_fields, drain_oversized=True)
    return MultiDict(upload.texts), upload


@asynccontextmanager
async def with_file(
    page: Page, ctx: Context, upload: Upload, arguments: dict[str, Any], limits: UploadLimits
) -> AsyncIterator[Page]:
    """The form with its file stored: `arguments` name it, and the handler keeps it in its own transaction.

    Raises ValidationError, and BadRequest as `store_upload`, for a file that is not taken.
    """
    if page.upload is None:
        yield page
        return
    if upload.too_large:
        raise ValidationError(
            {page.upload.file_field: [f"must not be larger than {file_size(limits.max_bytes(page.upload))}"]}
        )
    if upload.file is None:
        raise ValidationError({page.upload.file_field: ["must be chosen"]})
    async with store_upload(ctx, upload, page.upload, arguments["customer_id"], limits.photo_pixels) as file:
        arguments["file"] = file
        yield replace(page, handler=attach_file(page.handler, file))
