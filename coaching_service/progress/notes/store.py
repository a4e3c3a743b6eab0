"""Notes in the database."""

from __future__ import annotations

from coaching_service.core.database.connection import Index
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Documents
from coaching_service.core.database.recording import History
from coaching_service.core.ids import ObjectId
from coaching_service.progress.notes.models import NewNote, Note, NoteAuthor, NoteChange

notes = Documents[Note](
    "notes", (Index(("customerId", "-createdAt", "-_id")),), client_field="customerId", history=History("note")
)


async def list_notes(ctx: Context, customer_id: ObjectId) -> list[Note]:
    """Return the notes on a client, newest first."""
    return await notes.find(ctx, {"customerId": customer_id}, sort=("-createdAt", "-_id"))


async def insert(ctx: Context, customer_id: ObjectId, author: NoteAuthor, new: NewNote) -> Note:
    """Store a new note, which has no flag unless `new` sets it."""
    flags = {"isPinned": False, "isHealth": False}
    return await notes.insert(ctx, {"customerId": customer_id, "author": author, **flags, **new})


async def update(
    ctx: Context, customer_id: ObjectId, note_id: ObjectId, fields: NoteChange, version: int | None
) -> Note | None:
    """Set `fields` of a note and return it; None if the client has no such note.

    Raises Conflict if the note is no longer at `version`.
    """
    where = {"customerId": customer_id, "_id": note_id}
    return await notes.rewrite(ctx, where, lambda _: fields, version=version)


async def delete(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> bool:
    """Delete a note; returns whether it existed."""
    return await notes.delete(ctx, {"customerId": customer_id, "_id": note_id}) is not None
