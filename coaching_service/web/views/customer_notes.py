"""Notes about a client, with the client's recent activity."""

from __future__ import annotations

from typing import Any

from markupsafe import escape
from marshmallow import fields

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import TEXT_LENGTH, Input, Text, Version
from coaching_service.people.activity import service as activity
from coaching_service.progress.notes import service as notes
from coaching_service.progress.notes.models import NoteChange
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.activity_descriptions import describe_actor, describe_event
from coaching_service.web.views.customer_layout import customer_path, load_header

pages = Pages("/app/customers/{customerId}")
_RECENT_EVENTS = 15


class _NoteForm(Input):
    content = Text(max_length=TEXT_LENGTH, required=True)
    isPinned = fields.Boolean(load_default=False)
    isHealth = fields.Boolean(load_default=False)


class _FlagsForm(Input):
    isPinned = fields.Boolean(load_default=False)
    isHealth = fields.Boolean(load_default=False)
    version = Version()


@pages.get("/notes", access=coach(CUSTOMERS.VIEW), template="customer/notes.html")
async def notes_page(ctx: Context, customer_id: ObjectId) -> dict[str, Any]:
    """The notes about a client, pinned ones first, and the latest events of the activity feed."""
    customer, customer_notes, feed = await gather_reads(
        ctx,
        load_header(ctx, customer_id),
        notes.list_notes(ctx, customer_id),
        activity.list_attributed_events(ctx, customer_id, page=1, size=_RECENT_EVENTS),
    )
    return {
        "customer": customer,
        "notes": sorted(customer_notes, key=lambda note: not note["isPinned"]),
        "events": [
            {**event, "description": describe_event(event), "author": describe_actor(event["actor"])}
            for event in feed["docs"]
        ],
    }


@pages.post("/notes", access=coach(CUSTOMERS.EDIT), form=_NoteForm(), on=notes_page)
async def add_note(ctx: Context, customer_id: ObjectId, form: dict[str, Any]) -> Redirect:
    """Add a note: plain text in which an empty line starts a new paragraph."""
    paragraphs = form["content"].replace("\r\n", "\n").split("\n\n")
    html = "".join(f"<p>{str(escape(text)).replace(chr(10), '<br>')}</p>" for text in paragraphs if text.strip())
    await notes.create(ctx, customer_id, {"content": html, "isPinned": form["isPinned"], "isHealth": form["isHealth"]})
    return Redirect(_notes_path(customer_id), "Note added.")


@pages.post("/notes/{noteId}/flags", access=coach(CUSTOMERS.EDIT), form=_FlagsForm(), on=notes_page)
async def change_note_flags(ctx: Context, customer_id: ObjectId, note_id: ObjectId, form: NoteChange) -> Redirect:
    """Pin a note, or mark it as one about the client's health."""
    await notes.update(ctx, customer_id, note_id, form)
    return Redirect(_notes_path(customer_id), "Note changed.")


@pages.get("/notes/{noteId}/delete", access=coach(CUSTOMERS.EDIT), template="customer/delete_note.html")
async def delete_note_page(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> dict[str, Any]:
    """Ask for confirmation before a note is deleted."""
    customer, customer_notes = await gather_reads(
        ctx, load_header(ctx, customer_id), notes.list_notes(ctx, customer_id)
    )
    note = next((note for note in customer_notes if note["_id"] == note_id), None)
    if note is None:
        raise NotFound("note")
    return {"customer": customer, "note": note}


@pages.post("/notes/{noteId}/delete", access=coach(CUSTOMERS.EDIT), on=delete_note_page)
async def delete_note(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> Redirect:
    """Delete a note."""
    await notes.delete(ctx, customer_id, note_id)
    return Redirect(_notes_path(customer_id), "Note deleted.")


def _notes_path(customer_id: ObjectId) -> str:
    return customer_path(customer_id, "/notes")
