"""Files of messages: uploaded first, then sent with a message. One that is in no message after a day is deleted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

from coaching_service.core import errors
from coaching_service.core.database import files
from coaching_service.core.database.context import Context, Services, gather_reads, transactional
from coaching_service.core.database.files import StoredFile
from coaching_service.core.fields import take as take_fields
from coaching_service.core.file_links import file_url
from coaching_service.core.http.responses import Download
from coaching_service.core.ids import ObjectId
from coaching_service.core.jobs import queue
from coaching_service.core.jobs.queue import Job
from coaching_service.core.media import IMAGE_TYPES, PDF, VIDEO_TYPES
from coaching_service.people import files as stored_files
from coaching_service.people import team
from coaching_service.people.customers import service as customers
from coaching_service.progress.conversation import store
from coaching_service.progress.conversation.models import AttachedFile, AttachmentKind, MessageAttachment

CONTENT_TYPES = (*IMAGE_TYPES, *VIDEO_TYPES, PDF)
DISCARD = "discard_attachment"
_KEPT_FOR = timedelta(days=1)


@transactional
async def add(ctx: Context, customer_id: ObjectId, file: StoredFile | None) -> MessageAttachment:
    """Store an uploaded file for a message that the caller sends within a day, and return it.

    Raises InvalidFields without a file, NotFound if the company has no such client, Forbidden if the client is outside
    the caller's scope or in an impersonation session.
    """
    if ctx.caller.impersonated_by is not None:
        raise errors.Forbidden("An impersonation session cannot send or change messages", code="IMPERSONATED")
    await customers.get_visible(ctx, customer_id)
    if file is None:
        raise errors.invalid_field("file", "is required", code="REQUIRED")
    attached: AttachedFile = {
        "_id": ObjectId(),
        "kind": _kind_of(file.content_type),
        "contentType": file.content_type,
        "size": file.size,
        "fileId": file.id,
        "thumbnailId": file.thumbnail_id,
    }
    await customers.lock_and_mark_figures(ctx, customer_id)
    upload = {"customerId": customer_id, "uploadedBy": ctx.caller.id}
    await store.pending_attachments.insert(ctx, {**upload, "_id": attached["_id"], "file": attached})
    arguments = {"companyId": ctx.company_id, **upload}
    await queue.enqueue(
        ctx, DISCARD, {**arguments, "attachmentId": attached["_id"]}, after=_KEPT_FOR, about=customer_id
    )
    return present(ctx, attached)


def _kind_of(content_type: str) -> AttachmentKind:
    if content_type in IMAGE_TYPES:
        return "picture"
    return "video" if content_type in VIDEO_TYPES else "document"


async def take(ctx: Context, customer_id: ObjectId, ids: Sequence[ObjectId]) -> list[AttachedFile]:
    """Return uploaded files for a message in their order, in the transaction that stores the message.

    Raises NotFound if the caller has not uploaded one of them for this client, or it is in a message already.
    """
    upload = {"customerId": customer_id, "uploadedBy": ctx.caller.id}
    pending = [await store.pending_attachments.delete(ctx, {**upload, "_id": each}) for each in ids]
    return [errors.require_found(each, "attachment")["file"] for each in pending]


async def discard_unsent(services: Services, job: Job) -> None:
    """Delete an attachment with its file if no message has it."""
    with suppress(errors.NotFound):  # the company is deleted
        owner = await team.get_owner(services, job.arguments["companyId"])
        await _discard(Context(services, owner), job)


@transactional
async def _discard(ctx: Context, job: Job) -> None:
    upload = {name: job.arguments[name] for name in ("customerId", "uploadedBy")}
    pending = await store.pending_attachments.delete(ctx, {**upload, "_id": job.arguments["attachmentId"]})
    if pending is not None:
        await files.discard(ctx, file_ids(pending["file"]))


async def read(
    ctx: Context, customer_id: ObjectId, message_id: ObjectId, attachment_id: ObjectId, *, small: bool
) -> Download:
    """Return the file of a message, or the small version of a picture if it has one. It must not be cached.

    Raises NotFound if the client's conversation has no such message or the message no such file, and what
    `customers.get_visible` raises.
    """
    _, attached = await gather_reads(
        ctx, customers.get_visible(ctx, customer_id), store.find_files(ctx, customer_id, message_id)
    )
    file = errors.require_by_id(attached, attachment_id, "attachment")
    return await stored_files.open_file(ctx, (file["thumbnailId"] if small else None) or file["fileId"])


def file_ids(file: AttachedFile) -> list[ObjectId]:
    """Return the identifiers of an attachment's file and its thumbnail."""
    return [file_id for file_id in (file["fileId"], file["thumbnailId"]) if file_id]


def present(ctx: Context, file: AttachedFile) -> MessageAttachment:
    """Return an attachment with a signed link to its file."""
    return {**take_fields(MessageAttachment, file), "url": str(file_url(ctx, file["fileId"]))}
