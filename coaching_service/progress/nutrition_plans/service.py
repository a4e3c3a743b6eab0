"""A client's nutrition plans."""

from __future__ import annotations

from coaching_service.core.database import files
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.files import StoredFile
from coaching_service.core.database.transactions import gather_reads, in_transaction
from coaching_service.core.errors import LegacyFailure, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.links import file_url
from coaching_service.core.pagination import Page, page_document, skip_of
from coaching_service.people.activity import service as activity
from coaching_service.people.customers import service as customers
from coaching_service.progress.nutrition_plans import store


async def page(ctx: Context, customer_id: ObjectId, *, page: int, size: int) -> Page[Document]:
    """One page of a client's plan versions, newest first. Raises NotFound, Forbidden."""
    _, (docs, total) = await gather_reads(
        ctx,
        customers.visible(ctx, customer_id),
        store.page(ctx, customer_id, skip=skip_of(page, size), limit=size),
    )
    return page_document([present(ctx, plan) for plan in docs], total, page, size)


async def read(ctx: Context, customer_id: ObjectId, plan_id: ObjectId) -> Document:
    """One version. Raises NotFound, Forbidden."""
    _, plan = await gather_reads(ctx, customers.visible(ctx, customer_id), store.one(ctx, customer_id, plan_id))
    if plan is None:
        raise NotFound("plan version")
    return present(ctx, plan)


async def upload(ctx: Context, customer_id: ObjectId, file: StoredFile | None) -> Document:
    """The next version of a client's plan. Raises NotFound, Forbidden; LegacyFailure without a file."""
    await customers.visible(ctx, customer_id)
    if file is None:
        raise LegacyFailure("NUTRITION_PLAN_FILE_MISSING", "The nutrition plan's file is missing")

    async def added(tx: Context) -> Document:
        plan = await store.add(
            tx,
            {
                "customerId": customer_id,
                "number": await store.next_number(tx, customer_id),
                "fileName": file.name or "plan",
                "contentType": file.content_type,
                "size": file.size,
                "fileId": file.id,
                "thumbnailId": file.thumbnail_id,
            },
        )
        facts = {"planId": plan["_id"], "number": plan["number"], "fileName": plan["fileName"]}
        await activity.happened(tx, "plan_uploaded", customer_id, plan["_id"], **facts)
        return plan

    return present(ctx, await in_transaction(ctx, added))


async def remove(ctx: Context, customer_id: ObjectId, plan_id: ObjectId) -> None:
    """Delete a version with its file. Raises NotFound, Forbidden."""
    await customers.visible(ctx, customer_id)

    async def removed(tx: Context) -> None:
        plan = await store.remove(tx, customer_id, plan_id)
        if plan is None:
            raise NotFound("plan version")
        await activity.undone(tx, customer_id, plan_id, "plan_uploaded")
        await files.discard(tx, [each for each in (plan["fileId"], plan["thumbnailId"]) if each])

    await in_transaction(ctx, removed)


def present(ctx: Context, plan: Document) -> Document:
    """A stored version as it is read, with a link that is good for two hours."""
    shown = ("_id", "customerId", "number", "fileName", "contentType", "size", "createdAt", "updatedAt", "version")
    return {name: plan[name] for name in shown} | {"url": file_url(ctx.services, plan["fileId"])}
