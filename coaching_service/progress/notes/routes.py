"""Notes over REST."""

from __future__ import annotations

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.field_schemas import input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import patch_of
from coaching_service.progress.notes import service
from coaching_service.progress.notes.service import NewNote, Note, NoteChange

routes = Routes("/coach/customers/{customerId}/notes", tag="Notes", locks="customer")


@routes.get("", access=coach(CUSTOMERS.VIEW))
async def list_notes(ctx: Context, customer_id: ObjectId) -> list[Note]:
    """List the notes on a client, newest first."""
    return await service.list_notes(ctx, customer_id)


@routes.post("", access=coach(CUSTOMERS.EDIT), example={"content": "<p>Left knee: go easy.</p>", "isHealth": True})
async def create_note(ctx: Context, customer_id: ObjectId, body: NewNote) -> Note:
    """Add a note on a client."""
    return await service.create(ctx, customer_id, body)


@routes.get("/{noteId}", access=coach(CUSTOMERS.VIEW))
async def get_note(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> Note:
    """Read a note on a client."""
    return await service.get(ctx, customer_id, note_id)


@routes.patch(
    "/{noteId}",
    access=coach(CUSTOMERS.EDIT),
    body=patch_of(input_of(NewNote), name="NoteChange"),
    example={"content": "<p>Knee is fine again.</p>", "version": 0},
)
async def update_note(ctx: Context, customer_id: ObjectId, note_id: ObjectId, body: NoteChange) -> Note:
    """Change a note."""
    return await service.update(ctx, customer_id, note_id, body)


@routes.delete("/{noteId}", access=coach(CUSTOMERS.EDIT))
async def delete_note(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> None:
    """Delete a note."""
    await service.delete(ctx, customer_id, note_id)
