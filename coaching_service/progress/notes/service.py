"""A coach's notes on a client: HTML, sanitised before it is stored."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import transactional
from coaching_service.core.errors import require_found
from coaching_service.core.ids import ObjectId
from coaching_service.people.activity import service as activity
from coaching_service.people.customers import derived_figures
from coaching_service.people.customers import service as customers
from coaching_service.progress.notes import store
from coaching_service.progress.notes.html import plain_text, sanitise
from coaching_service.progress.notes.models import NewNote, Note, NoteAuthor, NoteChange
from coaching_service.progress.notes.store import notes

_FEED_TEXT_LENGTH = 200


async def list_notes(ctx: Context, customer_id: ObjectId) -> list[Note]:
    """Return the notes on a client, newest first.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    await customers.get_visible(ctx, customer_id)
    return await notes.find(ctx, {"customerId": customer_id}, sort=("-createdAt", "-_id"))


async def get(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> Note:
    """Return a note on a client. Raises NotFound if the client has no such note, and what `list_notes` raises."""
    await customers.get_visible(ctx, customer_id)
    return require_found(await notes.find_one(ctx, {"customerId": customer_id, "_id": note_id}), "note")


@transactional
async def create(ctx: Context, customer_id: ObjectId, new: NewNote) -> Note:
    """Add a note on a client.

    Raises InvalidFields if no text is left of its content once it is sanitised, and what `list_notes` raises.
    """
    await customers.get_visible(ctx, customer_id)
    return await _insert(ctx, customer_id, {**new, "content": sanitise(new["content"])})


async def _insert(ctx: Context, customer_id: ObjectId, new: NewNote) -> Note:
    author: NoteAuthor = {"_id": ctx.caller.id, "name": ctx.caller.name}
    note = await notes.insert(ctx, {"customerId": customer_id, "author": author, **new})
    if note["isHealth"]:
        await derived_figures.mark_due(ctx, [customer_id])
    await activity.record_event(ctx, "note_added", customer_id, note["_id"], **_feed_data(note))
    return note


async def create_health_note(ctx: Context, customer_id: ObjectId, text: str) -> None:
    """Add a health note with plain text, by the caller, in the transaction of the log that the text is from."""
    content = escape(text).replace("\n", "<br>")
    await _insert(ctx, customer_id, {"content": content, "isPinned": False, "isHealth": True})


@transactional
async def update(ctx: Context, customer_id: ObjectId, note_id: ObjectId, change: NoteChange) -> Note:
    """Change a note and return it.

    Raises NotFound if the client has no such note, Conflict if the note has changed since `change["version"]`, and
    what `create` raises.
    """
    await customers.get_visible(ctx, customer_id)
    fields: NoteChange = {**change, "content": sanitise(change["content"])} if "content" in change else {**change}
    version = fields.pop("version", None)
    where = {"customerId": customer_id, "_id": note_id}
    note = require_found(await notes.rewrite(ctx, where, lambda _: fields, version=version), "note")
    if "isHealth" in fields:
        await derived_figures.mark_due(ctx, [customer_id])
    await activity.correct_event(ctx, "note_added", customer_id, note_id, **_feed_data(note))
    return note


@transactional
async def delete(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> None:
    """Delete a note and its entry in the activity feed. Raises NotFound if the client has no such note."""
    await customers.get_visible(ctx, customer_id)
    note = require_found(await notes.delete(ctx, {"customerId": customer_id, "_id": note_id}), "note")
    if note["isHealth"]:
        await derived_figures.mark_due(ctx, [customer_id])
    await activity.delete_events(ctx, customer_id, note_id, "note_added")


count_health_notes = store.count_health_notes


async def find_newest_health_texts(ctx: Context, customer_ids: Sequence[ObjectId]) -> dict[ObjectId, str]:
    """Return the newest health note as plain text, of clients with any. Access is not checked."""
    newest = await store.find_newest_health_notes(ctx, customer_ids)
    return {each["_id"]: plain_text(each["text"]) for each in newest}


def _feed_data(note: Note) -> dict[str, ObjectId | str]:
    """Return what the activity feed shows of a note: its identifier and the beginning of its text."""
    return {"noteId": note["_id"], "text": plain_text(note["content"])[:_FEED_TEXT_LENGTH]}
