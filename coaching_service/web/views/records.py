"""What is written of a client: notes, what happened lately, records."""

from __future__ import annotations

from typing import Any

from markupsafe import escape

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import TEXT_LENGTH, Input, Text
from coaching_service.people.activity import service as activity
from coaching_service.progress.notes import service as notes
from coaching_service.progress.personal_records import service as personal_records
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.customer import head
from coaching_service.web.views.events import KINDS, told

pages = Pages("/app/customers/{customerId}")


class _NewNote(Input):
    content = Text(max_length=TEXT_LENGTH, required=True)


@pages.get("/notes", access=coach(CUSTOMERS.VIEW), template="customer/notes.html")
async def notes_page(ctx: Context, customer_id: ObjectId) -> dict[str, Any]:
    """The notes on a client, and what happened lately."""
    customer, written, feed = await gather_reads(
        ctx,
        head(ctx, customer_id),
        notes.list_notes(ctx, customer_id),
        activity.list_events(ctx, customer_id, page=1, size=15),
    )
    return {"customer": customer, "notes": written, "feed": feed["docs"], "told": told}


@pages.post("/notes", access=coach(CUSTOMERS.EDIT), form=_NewNote(), on=notes_page)
async def add_note(ctx: Context, customer_id: ObjectId, form: dict[str, Any]) -> Redirect:
    """Keep a note: plain text, an empty line begins another paragraph."""
    paragraphs = form["content"].replace("\r\n", "\n").split("\n\n")
    html = "".join(f"<p>{str(escape(each)).replace(chr(10), '<br>')}</p>" for each in paragraphs if each.strip())
    await notes.create(ctx, customer_id, html)
    return Redirect(f"/app/customers/{customer_id}/notes", "The note is kept.")


@pages.get("/notes/{noteId}/delete", access=coach(CUSTOMERS.EDIT), template="customer/delete_note.html")
async def delete_note_page(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> dict[str, Any]:
    """The note that will be lost."""
    customer, written = await gather_reads(ctx, head(ctx, customer_id), notes.list_notes(ctx, customer_id))
    note = next((note for note in written if note["_id"] == note_id), None)
    if note is None:
        raise NotFound("note")
    return {"customer": customer, "note": note}


@pages.post("/notes/{noteId}/delete", access=coach(CUSTOMERS.EDIT), on=delete_note_page)
async def delete_note(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> Redirect:
    """Delete a note."""
    await notes.delete(ctx, customer_id, note_id)
    return Redirect(f"/app/customers/{customer_id}/notes", "The note is deleted.")


@pages.get("/records", access=coach(CUSTOMERS.VIEW), template="customer/records.html")
async def records_page(ctx: Context, customer_id: ObjectId) -> dict[str, Any]:
    """A client's bests."""
    customer, records = await gather_reads(ctx, head(ctx, customer_id), personal_records.of(ctx, customer_id))
    return {"customer": customer, "records": records, "kinds": KINDS}
