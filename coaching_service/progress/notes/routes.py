"""Notes over REST."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.http.routes import Routes, list_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import patch_of
from coaching_service.progress.notes import service
from coaching_service.progress.notes.schemas import NewNote, Note

routes = Routes("/coach/customers/{customerId}/notes", tag="Notes")


@routes.get("", access=coach(CUSTOMERS.VIEW), returns=list_of(Note))
async def list_notes(ctx: Context, customer_id: ObjectId) -> list[dict[str, Any]]:
    """List the notes on a client, newest first."""
    return await service.of(ctx, customer_id)


@routes.post(
    "", access=coach(CUSTOMERS.EDIT), body=NewNote(), returns=Note, example={"content": "<p>Left knee: go easy.</p>"}
)
async def create_note(ctx: Context, customer_id: ObjectId, body: dict[str, Any]) -> dict[str, Any]:
    """Add a note on a client."""
    return await service.create(ctx, customer_id, body["content"])


@routes.patch(
    "/{noteId}",
    access=coach(CUSTOMERS.EDIT),
    body=patch_of(NewNote, name="NoteChange"),
    returns=Note,
    example={"content": "<p>Knee is fine again.</p>", "version": 0},
)
async def change_note(ctx: Context, customer_id: ObjectId, note_id: ObjectId, body: dict[str, Any]) -> dict[str, Any]:
    """Change a note."""
    return await service.change(ctx, customer_id, note_id, body)


@routes.delete("/{noteId}", access=coach(CUSTOMERS.EDIT))
async def delete_note(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> None:
    """Delete a note."""
    await service.remove(ctx, customer_id, note_id)
