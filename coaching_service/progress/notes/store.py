"""Notes in the database."""

from __future__ import annotations

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Documents
from coaching_service.core.ids import ObjectId

notes = Documents[Document]("notes", (Index(("customerId", "-createdAt", "-_id")),), client_field="customerId")


async def of(ctx: Context, customer_id: ObjectId) -> list[Document]:
    """The notes on a client, newest first."""
    return await notes.find(ctx, {"customerId": customer_id}, sort=("-createdAt", "-_id"))


async def add(ctx: Context, customer_id: ObjectId, content: str) -> Document:
    """Store a new note."""
    return await notes.insert(ctx, {"customerId": customer_id, "content": content})


async def change(
    ctx: Context, customer_id: ObjectId, note_id: ObjectId, fields: Document, version: int | None
) -> Document | None:
    """Set fields of a note; None when the client has no such note."""
    where = {"customerId": customer_id, "_id": note_id}
    return await notes.rewrite(ctx, where, lambda _: fields, version=version)


async def remove(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> bool:
    """Remove a note; whether there was one."""
    return await notes.delete(ctx, {"customerId": customer_id, "_id": note_id}) is not None
