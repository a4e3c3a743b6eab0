"""Forms with files: text fields are read as in any other form, a file as in a REST upload.

A rejected file is an error of its field. The other values stay; the file has to be chosen again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from aiohttp import web
from multidict import MultiDict

from coaching_service.core.database.context import Context
from coaching_service.core.database.files import StoredFile
from coaching_service.core.errors import BadRequest, FieldError, InvalidFields, invalid_field
from coaching_service.core.http.routes import MultipartBody, ReceivedFile
from coaching_service.core.http.uploads import Upload, attach_files, read_upload, store_upload
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import CSV, GIF, JPEG, MP4, PDF, PNG, WEBP, ZIP, UploadLimits, sendable_types
from coaching_service.web.browser_sessions import CSRF_FIELD
from coaching_service.web.form_idempotency import SUBMISSION_FIELD
from coaching_service.web.formatting import file_size
from coaching_service.web.forms import FIELD_MESSAGES, FormData, field_names, read_form
from coaching_service.web.pages import Page

_PICTURE_NAMES = {JPEG: "JPEG", PNG: "PNG", WEBP: "WebP", "image/heic": "HEIC", GIF: "GIF"}


async def read_submission(
    ctx: Context, page: Page, request: web.Request, limits: UploadLimits | None
) -> tuple[FormData, Upload]:
    """Return the text values and the file of a form; without `limits` the file is read and discarded.

    Raises what `read_form` and `read_upload` raise.
    """
    if page.upload is None or request.content_type == "application/x-www-form-urlencoded":
        return await read_form(request, has_table=page.has_table), Upload()
    extra_fields = {*field_names(page.schema), CSRF_FIELD, SUBMISSION_FIELD}
    max_bytes = limits.max_bytes(page.upload.size_limit) if limits else 0
    upload = await read_upload(ctx, request, page.upload, max_bytes, extra_fields=extra_fields, drain_oversized=True)
    return MultiDict(upload.texts), upload


def limited(ctx: Context, page: Page) -> AbstractAsyncContextManager[None]:
    """Return the context to read and store the files of a form in: as many at once as a company may send."""
    return nullcontext() if page.upload is None else ctx.services.work_slots.uploads.holding(ctx.slot_holder)


def file_messages(multipart: MultipartBody | None) -> dict[str, str]:
    """Return the messages by error code of a form's file field."""
    if multipart is None:
        return {}
    if ZIP in multipart.content_types:
        return {"UNSUPPORTED_FILE_TYPE": "must be an export of a company (ZIP), or a table (CSV or XLSX)"}
    if CSV in multipart.content_types:
        return {"UNSUPPORTED_FILE_TYPE": "must be a table: a CSV or XLSX file"}
    return {"UNSUPPORTED_FILE_TYPE": f"must be {accepted_files(multipart.content_types).sentence}"}


@dataclass(frozen=True)
class AcceptedFiles:
    """What a file field accepts: the types for the browser, the formats of pictures, and all of it in a sentence."""

    types: str
    pictures: str
    sentence: str


def accepted_files(content_types: Sequence[str]) -> AcceptedFiles:
    """Return what to say next to a field for files that are stored with these content types."""
    types = sendable_types(content_types)
    *formats, last = (name for content_type, name in _PICTURE_NAMES.items() if content_type in types)
    pictures = f"{', '.join(formats)} or {last}"
    kinds = ["a PDF"] if PDF in types else []
    kinds += ["an MP4, MOV or WebM video"] if MP4 in types else []
    return AcceptedFiles(",".join(types), pictures, ", or ".join([*kinds, f"a {pictures} picture"]))


@dataclass(frozen=True)
class ReceivedFiles:
    """The files of a form with several file fields: those stored, and why others were not, by field."""

    stored: Mapping[str, StoredFile]
    rejected: Mapping[str, str]


@asynccontextmanager
async def with_file(
    page: Page, ctx: Context, upload: Upload, arguments: dict[str, Any], limits: UploadLimits
) -> AsyncIterator[Page]:
    """Store the form's files, add them to `arguments`, and yield the page with a handler that keeps them.

    They belong to the client in the path, or of the client who sent the form. A form that has no file field is
    yielded unchanged; one that may be sent without a file has None then. Of several files those that are accepted are
    stored, as `files` (ReceivedFiles). Raises InvalidFields for a file that is missing, too large or not accepted; of
    several if none is accepted.
    """
    if page.upload is None:
        yield page
        return
    customer_id = ctx.caller.id if page.access.audience == "customer" else arguments.get("customer_id")
    async with AsyncExitStack() as stack:
        store = partial(_store, ctx, page.upload, customer_id, limits, stack)
        if page.upload.more_files:
            arguments["files"] = files = await _store_each(page.upload, upload, store)
            yield replace(page, handler=attach_files(page.handler, *files.stored.values()))
        elif upload.file is None and not upload.too_large and page.file_optional:
            arguments["file"] = None
            yield page
        else:
            arguments["file"] = file = await store(page.upload.file_field, upload)
            yield replace(page, handler=attach_files(page.handler, file))


async def _store(
    ctx: Context,
    multipart: MultipartBody,
    customer_id: ObjectId | None,
    limits: UploadLimits,
    stack: AsyncExitStack,
    field: str,
    upload: Upload,
) -> StoredFile | ReceivedFile:
    """Store the file of a field, until `stack` ends unless it is attached by then. Raises InvalidFields."""
    if upload.too_large:
        max_size = file_size(limits.max_bytes(multipart.size_limit))
        raise invalid_field(field, f"must not be larger than {max_size}", code="FILE_TOO_LARGE")
    of_field = replace(multipart, file_field=field)
    storing = store_upload(ctx, upload, of_field, customer_id, limits.photo_pixels)
    file = await stack.enter_async_context(storing)
    if file is None:
        raise invalid_field(field, "must be chosen", code="REQUIRED")
    return file


async def _store_each(
    multipart: MultipartBody, upload: Upload, store: Callable[[str, Upload], Awaitable[StoredFile | ReceivedFile]]
) -> ReceivedFiles:
    """Store the files that were chosen. Raises InvalidFields with the error of each if none is accepted."""
    received = {multipart.file_field: upload, **upload.more_files}
    stored: dict[str, StoredFile] = {}
    errors: list[FieldError] = []
    for field, each in received.items():
        if each.file is not None or each.too_large:
            try:
                stored[field] = cast("StoredFile", await store(field, each))  # several files are always stored
            except InvalidFields as error:
                errors += error.errors
    if errors and not stored:
        raise InvalidFields(errors)
    if not stored:
        raise BadRequest("Choose at least one file.")
    messages = {**FIELD_MESSAGES, **file_messages(multipart)}
    return ReceivedFiles(stored, {each["field"]: messages.get(each["code"], each["message"]) for each in errors})
