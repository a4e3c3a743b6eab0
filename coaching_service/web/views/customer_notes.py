"""Notes about a client, with the client's recent activity."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import require_by_id
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Part
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import TEXT_LENGTH, Input, Text, patch_of
from coaching_service.people.activity import service as activity
from coaching_service.progress.notes import service as notes
from coaching_service.progress.notes.models import NewNote, NoteChange
from coaching_service.training.workouts.reports import blocks as queries
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.activity_descriptions import describe_actor, describe_event, event_path
from coaching_service.web.views.customer_layout import customer_path, load_header
from coaching_service.web.views.note_text import is_formatted, to_html, to_text

pages = Pages("/app/customers/{customerId}")
_RECENT_EVENTS = 15


class _PlainText(Input):
    content = Text(max_length=TEXT_LENGTH, required=True)


_NOTE_FORM = input_of(NewNote, _PlainText)
_CHANGE_FORM = patch_of(_NOTE_FORM, name="NoteForm")
_Pin: TypeAlias = Part[NewNote, Literal["isPinned"]]


@pages.get("/notes", access=coach(CUSTOMERS.VIEW), template="customer/notes.html")
async def notes_page(ctx: Context, customer_id: ObjectId) -> dict[str, Any]:
    """The notes about a client, pinned ones first, and the latest events of the activity feed."""
    customer, customer_notes, feed = await gather_reads(
        ctx,
        load_header(ctx, customer_id),
        notes.list_notes(ctx, customer_id),
        activity.list_attributed_events(ctx, customer_id, page=1, size=_RECENT_EVENTS),
    )
    block_ids = {event["data"]["wblockId"] for event in feed["docs"] if "wblockId" in event["data"]}
    existing_ids = await queries.find_existing_ids(ctx, block_ids)
    return {
        "customer": customer,
        "notes": sorted(customer_notes, key=lambda note: not note["isPinned"]),
        "edited": None,
        "events": [
            {
                **event,
                "description": describe_event(event),
                "author": describe_actor(event["actor"]),
                "url": event_path(customer_id, event, existing_ids),
            }
            for event in feed["docs"]
        ],
    }


@pages.post("/notes", access=coach(CUSTOMERS.EDIT), form=_NOTE_FORM(), on=notes_page)
async def add_note(ctx: Context, customer_id: ObjectId, form: NewNote) -> Redirect:
    """Add a note: plain text in which an empty line starts a new paragraph."""
    await notes.create(ctx, customer_id, {**form, "content": to_html(form["content"])})
    return Redirect(_notes_path(customer_id), "Note added.")


@pages.get("/notes/{noteId}", access=coach(CUSTOMERS.EDIT), template="customer/notes.html")
async def edit_note_page(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> dict[str, Any]:
    """The notes about a client, with a form in place of one of them."""
    variables: dict[str, Any] = await notes_page(ctx, customer_id)
    note = require_by_id(variables["notes"], note_id, "note")
    text = to_text(note["content"])
    is_long = len(text) > TEXT_LENGTH
    edited = {"_id": note_id, "text": None if is_long else text, "is_formatted": is_formatted(note["content"])}
    return variables | {"edited": edited, "version": note["version"]}


@pages.post("/notes/{noteId}", access=coach(CUSTOMERS.EDIT), form=_CHANGE_FORM, on=edit_note_page)
async def change_note(ctx: Context, customer_id: ObjectId, note_id: ObjectId, form: NoteChange) -> Redirect:
    """Change the text and the flags of a note; a text that is not changed keeps its formatting."""
    if "content" in form:  # else it is too long for the form
        note = require_by_id(await notes.list_notes(ctx, customer_id), note_id, "note")
        if form["content"] == to_text(note["content"]):
            del form["content"]
        else:
            form["content"] = to_html(form["content"])
    await notes.update(ctx, customer_id, note_id, form)
    return Redirect(_notes_path(customer_id), "Note changed.")


@pages.post("/notes/{noteId}/pin", access=coach(CUSTOMERS.EDIT), form=_Pin, on=notes_page)
async def change_note_pin(ctx: Context, customer_id: ObjectId, note_id: ObjectId, form: _Pin) -> Redirect:
    """Show a note before the others, or no longer."""
    await notes.update(ctx, customer_id, note_id, {"isPinned": form["isPinned"]})
    return Redirect(_notes_path(customer_id), "Note pinned." if form["isPinned"] else "Note unpinned.")


@pages.get("/notes/{noteId}/delete", access=coach(CUSTOMERS.EDIT), template="customer/delete_note.html")
async def delete_note_page(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> dict[str, Any]:
    """Ask for confirmation before a note is deleted."""
    customer, customer_notes = await gather_reads(
        ctx, load_header(ctx, customer_id), notes.list_notes(ctx, customer_id)
    )
    return {"customer": customer, "note": require_by_id(customer_notes, note_id, "note")}


@pages.post("/notes/{noteId}/delete", access=coach(CUSTOMERS.EDIT), on=delete_note_page)
async def delete_note(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> Redirect:
    """Delete a note."""
    await notes.delete(ctx, customer_id, note_id)
    return Redirect(_notes_path(customer_id), "Note deleted.")


def _notes_path(customer_id: ObjectId) -> str:
    return customer_path(customer_id, "/notes")
