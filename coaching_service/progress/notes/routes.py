"""Notes over REST."""

from __future__ import annotations

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Routes, list_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import patch_of
from coaching_service.progress.notes import models, schemas, service

routes = Routes("/coach/customers/{customerId}/notes", tag="Notes")


@routes.get("", access=coach(CUSTOMERS.VIEW), returns=list_of(schemas.Note))
async def list_notes(ctx: Context, customer_id: ObjectId) -> list[models.Note]:
    """List the notes on a client, newest first."""
    return await service.list_notes(ctx, customer_id)


@routes.post(
    "",
    access=coach(CUSTOMERS.EDIT),
    body=schemas.NewNote(),
    returns=schemas.Note,
    example={"content": "<p>Left knee: go easy.</p>", "isHealth": True},
)
async def create_note(ctx: Context, customer_id: ObjectId, body: models.NewNote) -> models.Note:
    """Add a note on a client."""
    return await service.create(ctx, customer_id, body)


@routes.get("/{noteId}", access=coach(CUSTOMERS.VIEW), returns=schemas.Note)
async def get_note(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> models.Note:
    """Read a note on a client."""
    return await service.read(ctx, customer_id, note_id)


@routes.patch(
    "/{noteId}",
    access=coach(CUSTOMERS.EDIT),
    body=patch_of(schemas.NewNote, name="NoteChange"),
    returns=schemas.Note,
    example={"content": "<p>Knee is fine again.</p>", "version": 0},
)
async def update_note(ctx: Context, customer_id: ObjectId, note_id: ObjectId, body: models.NoteChange) -> models.Note:
    """Change a note."""
    return await service.update(ctx, customer_id, note_id, body)


@routes.delete("/{noteId}", access=coach(CUSTOMERS.EDIT))
async def delete_note(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> None:
    """Delete a note."""
    await service.delete(ctx, customer_id, note_id)
