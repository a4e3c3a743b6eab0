"""Forms with a file: text fields are read as in any other form, the file as in a REST upload.

A rejected file is an error of its field. The other values stay; the file has to be chosen again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from aiohttp import web
from multidict import MultiDict

from coaching_service.core.database.context import Context
from coaching_service.core.errors import invalid_field
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.http.uploads import Upload, attach_file, read_upload, store_upload
from coaching_service.core.media import GIF, PDF, ZIP, UploadLimits
from coaching_service.core.video import MP4
from coaching_service.web.browser_sessions import CSRF_FIELD
from coaching_service.web.form_idempotency import SUBMISSION_FIELD
from coaching_service.web.formatting import file_size
from coaching_service.web.forms import FormData, field_names, read_form
from coaching_service.web.pages import Page


async def read_submission(page: Page, request: web.Request, limits: UploadLimits | None) -> tuple[FormData, Upload]:
    """Return the text values and the file of a form; without `limits` the file is read and discarded.

    Raises what `read_form` and `read_upload` raise.
    """
    if page.upload is None or request.content_type == "application/x-www-form-urlencoded":
        return await read_form(request), Upload()
    extra_fields = {*field_names(page.schema), CSRF_FIELD, SUBMISSION_FIELD}
    max_bytes = limits.max_bytes(page.upload.size_limit) if limits else 0
    upload = await read_upload(request, page.upload, max_bytes, extra_fields=extra_fields, drain_oversized=True)
    return MultiDict(upload.texts), upload


def file_messages(multipart: MultipartBody | None) -> dict[str, str]:
    """Return the messages by error code of a form's file field."""
    if multipart is None:
        return {}
    if ZIP in multipart.content_types:
        return {"UNSUPPORTED_FILE_TYPE": "must be an export of a company (ZIP), or a CSV file"}
    kinds = ["a PDF"] if PDF in multipart.content_types else []
    kinds += ["an MP4 or WebM video"] if MP4 in multipart.content_types else []
    picture = "a JPEG, PNG, WebP or GIF picture" if GIF in multipart.content_types else "a JPEG, PNG or WebP picture"
    accepted = ", or ".join([*kinds, picture])
    return {"UNSUPPORTED_FILE_TYPE": f"must be {accepted}"}


@asynccontextmanager
async def with_file(
    page: Page, ctx: Context, upload: Upload, arguments: dict[str, Any], limits: UploadLimits
) -> AsyncIterator[Page]:
    """Store the form's file, add it to `arguments`, and yield the page with a handler that keeps the file.

    The file is that of the client in the path, or of the client who sent the form. A form that has no file field is
    yielded unchanged; one that may be sent without a file has None then. Raises InvalidFields for a file that is
    missing, too large or not accepted.
    """
    if page.upload is None:
        yield page
        return
    if upload.too_large:
        max_size = file_size(limits.max_bytes(page.upload.size_limit))
        raise invalid_field(page.upload.file_field, f"must not be larger than {max_size}", code="FILE_TOO_LARGE")
    if upload.file is None and page.file_optional:
        arguments["file"] = None
        yield page
        return
    if upload.file is None:
        raise invalid_field(page.upload.file_field, "must be chosen", code="REQUIRED")
    customer_id = ctx.caller.id if page.access.audience == "customer" else arguments.get("customer_id")
    async with store_upload(ctx, upload, page.upload, customer_id, limits.photo_pixels) as file:
        arguments["file"] = file
        yield replace(page, handler=attach_file(page.handler, file))
