"""A coach's notes on a client: HTML, made harmless on the way in."""

from __future__ import annotations

import re
from html import unescape

import nh3

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.database.transactions import in_transaction
from coaching_service.core.errors import BadRequest, NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.people.activity import service as activity
from coaching_service.people.customers import service as customers
from coaching_service.progress.notes import store

_TOLD = 200  # characters of a note in the activity feed
_NEW_WORD = re.compile(r"<(?!/?(a|b|code|em|i|s|span|strong|sub|sup|u)\b)")  # other tags end a line, and so a word
_TAGS = {
    *("p", "br", "div", "span", "b", "strong", "i", "em", "u", "s", "sub", "sup", "code", "pre", "blockquote", "hr"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "a"),
}


async def of(ctx: Context, customer_id: ObjectId) -> list[Document]:
    """The notes on a client, newest first. Raises NotFound, Forbidden."""
    await customers.visible(ctx, customer_id)
    return await store.of(ctx, customer_id)


async def create(ctx: Context, customer_id: ObjectId, content: str) -> Document:
    """A new note. Raises NotFound, Forbidden; BadRequest when nothing harmless is left of `content`."""
    await customers.visible(ctx, customer_id)
    clean = harmless(content)

    async def added(tx: Context) -> Document:
        note = await store.add(tx, customer_id, clean)
        await activity.happened(tx, "note_added", customer_id, note["_id"], **_told(note))
        return note

    return await in_transaction(ctx, added)


async def change(ctx: Context, customer_id: ObjectId, note_id: ObjectId, details: Document) -> Document:
    """Change a note. Raises NotFound, Forbidden, BadRequest; Conflict when it has moved on since `version`."""
    await customers.visible(ctx, customer_id)
    fields = {"content": harmless(details["content"])} if "content" in details else {}

    async def changed(tx: Context) -> Document:
        note = await store.change(tx, customer_id, note_id, fields, details.get("version"))
        if note is None:
            raise NotFound("note")
        await activity.corrected(tx, "note_added", customer_id, note_id, **_told(note))
        return note

    return await in_transaction(ctx, changed)


async def remove(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> None:
    """Delete a note and its event. Raises NotFound, Forbidden."""
    await customers.visible(ctx, customer_id)

    async def removed(tx: Context) -> None:
        if not await store.remove(tx, customer_id, note_id):
            raise NotFound("note")
        await activity.undone(tx, customer_id, note_id, "note_added")

    await in_transaction(ctx, removed)


def harmless(html: str) -> str:
    """`html` with nothing left that a browser would run or load. Raises BadRequest when no text is left."""
    clean = nh3.clean(
        html,
        tags=_TAGS,
        attributes={"a": {"href"}},
        url_schemes={"http", "https", "mailto", "tel"},
        link_rel="noopener noreferrer nofollow",
    ).strip()
    if not _text(clean):
        raise BadRequest(["content should not be empty"])
    return clean


def _told(note: Document) -> Document:
    """What the activity feed tells of a note."""
    return {"noteId": note["_id"], "text": _text(note["content"])[:_TOLD]}


def _text(clean: str) -> str:
    """The words of a note, in one line."""
    return " ".join(unescape(nh3.clean(_NEW_WORD.sub(" <", clean), tags=set())).split())
