"""The activity feed of a client."""

from __future__ import annotations

from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, now
from coaching_service.core.ids import ObjectId
from coaching_service.core.pagination import Page, page_document, skip_of
from coaching_service.people.activity import store
from coaching_service.people.customers import service as customers


async def record_event(ctx: Context, kind: str, customer_id: ObjectId, source_id: ObjectId, **data: Any) -> None:
    """Tell, in the caller's transaction, that something happened with a client just now.

    `source_id` names what it happened to: telling it again replaces it, `undone` takes it back.
    """
    await store.put(ctx, customer_id, source_id, kind, now(), data)


async def correct_event(ctx: Context, kind: str, customer_id: ObjectId, source_id: ObjectId, **data: Any) -> None:
    """Put right, in the caller's transaction, what was told of a source; when it was told stays."""
    await store.correct(ctx, customer_id, source_id, kind, data)


async def remove_events(ctx: Context, customer_id: ObjectId, source_id: ObjectId, *kinds: str) -> None:
    """Take back what was told of a source, in the caller's transaction."""
    await store.drop(ctx, customer_id, source_id, kinds)


async def list_events(ctx: Context, customer_id: ObjectId, *, page: int, size: int) -> Page[Document]:
    """One page of a client's feed, newest first. Raises NotFound, Forbidden."""
    await customers.get_visible(ctx, customer_id)
    docs, total = await store.page(ctx, customer_id, skip=skip_of(page, size), limit=size)
    return page_document(docs, total, page, size)
