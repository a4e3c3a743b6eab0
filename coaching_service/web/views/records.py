"""What is kept of a client: photos, plans, notes, records."""

from __future__ import annotations

from typing import Any

from markupsafe import escape

from coaching_service.kernel.auth.access import coach
from coaching_service.kernel.auth.permissions import CUSTOMERS, NUTRITION
from coaching_service.kernel.errors import not_found
from coaching_service.kernel.storage.context import Context, together
from coaching_service.kernel.storage.documents import Document
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.kernel.validation import TEXT_LENGTH, Input, Integer, Text
from coaching_service.people.activity import service as activity
from coaching_service.progress.notes import service as notes
from coaching_service.progress.nutrition_plans import service as nutrition_plans
from coaching_service.progress.personal_records import service as personal_records
from coaching_service.progress.progress_photos import service as progress_photos
from coaching_service.web.pages import Go, Pages
from coaching_service.web.views.customer import head
from coaching_service.web.views.events import KINDS, told

pages = Pages("/app/customers/{customerId}")


class _Dates(Input):
    left = Text(blank=True, load_default="")
    right = Text(blank=True, load_default="")


class _Page(Input):
    page = Integer(least=1, load_default=1)


class _NewNote(Input):
    content = Text(longest=TEXT_LENGTH, required=True)


@pages.get("/photos", access=coach(CUSTOMERS.VIEW), query=_Dates(), template="customer/photos.html")
async def photos_page(ctx: Context, customer_id: ObjectId, query: dict[str, Any]) -> dict[str, Any]:
    """Two dates side by side: the first and the latest unless others are chosen."""
    customer, page = await together(
        ctx, head(ctx, customer_id), progress_photos.page(ctx, customer_id, page=1, size=50)
    )
    records = page["docs"]
    by_date = {record["createdAt"]: record for record in records}
    pair: list[Document] = []
    if records:
        seen = [record for record in records if any(record["photos"].values())] or records
        pair = [by_date.get(query["left"], seen[-1]), by_date.get(query["right"], seen[0])]
    return {"customer": customer, "dates": list(by_date), "pair": pair, "sides": ("front", "side", "back")}


@pages.get("/plans", access=coach(NUTRITION.VIEW), query=_Page(), template="customer/plans.html")
async def plans_page(ctx: Context, customer_id: ObjectId, query: dict[str, Any]) -> dict[str, Any]:
    """The versions of a client's plan."""
    customer, page = await together(
        ctx, head(ctx, customer_id), nutrition_plans.page(ctx, customer_id, page=query["page"], size=25)
    )
    here = f"/app/customers/{customer_id}/plans"
    return {"customer": customer, "page": page, "address": lambda page: f"{here}?page={page}"}


@pages.get("/notes", access=coach(CUSTOMERS.VIEW), template="customer/notes.html")
async def notes_page(ctx: Context, customer_id: ObjectId) -> dict[str, Any]:
    """The notes on a client, and what happened lately."""
    customer, written, feed = await together(
        ctx, head(ctx, customer_id), notes.of(ctx, customer_id), activity.page(ctx, customer_id, page=1, size=15)
    )
    return {"customer": customer, "notes": written, "feed": feed["docs"], "told": told}


@pages.post("/notes", access=coach(CUSTOMERS.EDIT), form=_NewNote(), on=notes_page)
async def add_note(ctx: Context, customer_id: ObjectId, form: dict[str, Any]) -> Go:
    """Keep a note: plain text, an empty line begins another paragraph."""
    paragraphs = form["content"].replace("\r\n", "\n").split("\n\n")
    html = "".join(f"<p>{escape(each).replace(chr(10), '<br>')}</p>" for each in paragraphs if each.strip())
    await notes.create(ctx, customer_id, html)
    return Go(f"/app/customers/{customer_id}/notes", "The note is kept.")


@pages.get("/notes/{noteId}/delete", access=coach(CUSTOMERS.EDIT), template="customer/delete_note.html")
async def delete_note_page(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> dict[str, Any]:
    """The note that will be lost."""
    customer, written = await together(ctx, head(ctx, customer_id), notes.of(ctx, customer_id))
    note = next((note for note in written if note["_id"] == note_id), None)
    if note is None:
        raise not_found("Note")
    return {"customer": customer, "note": note}


@pages.post("/notes/{noteId}/delete", access=coach(CUSTOMERS.EDIT), on=delete_note_page)
async def delete_note(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> Go:
    """Delete a note."""
    await notes.remove(ctx, customer_id, note_id)
    return Go(f"/app/customers/{customer_id}/notes", "The note is deleted.")


@pages.get("/records", access=coach(CUSTOMERS.VIEW), template="customer/records.html")
async def records_page(ctx: Context, customer_id: ObjectId) -> dict[str, Any]:
    """A client's bests."""
    customer, records = await together(ctx, head(ctx, customer_id), personal_records.of(ctx, customer_id))
    return {"customer": customer, "records": records, "kinds": KINDS}
