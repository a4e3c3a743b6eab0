"""A coach's notes on a client: HTML, sanitised before it is stored."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape, unescape
from typing import Annotated, Any, TypeAlias, TypedDict

import nh3

from coaching_service.core import mcp
from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database import declared
from coaching_service.core.database.context import Context, gather_reads, transactional
from coaching_service.core.database.documents import Documents, Filter, PipelineStage
from coaching_service.core.errors import invalid_field, require_found
from coaching_service.core.events import EventType
from coaching_service.core.fields import Change, Default, Description, Label, argument_of, input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import Answer, Tools, Written, typed
from coaching_service.core.validation import Text, patch_of
from coaching_service.people.activity import service as activity
from coaching_service.people.customers import derived_figures
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import ClientText, DatedCount

# --- Notes as they are sent, stored and returned ----------------------------------------------------------------------


CONTENT_LENGTH = 50_000


class NoteAuthor(TypedDict):
    """Who wrote a note."""

    _id: ObjectId
    name: str


class NewNote(TypedDict):
    """A note to add."""

    content: Annotated[
        str,
        Text(max_length=CONTENT_LENGTH),
        Description(
            request="HTML; sanitised before it is stored.",
            response="HTML without scripts, styles, pictures or forms.",
        ),
        Label("Text"),
    ]
    isPinned: Annotated[
        bool,
        Default(False),
        Description("Whether the note is shown first.", argument="Show it first."),
        Label("Shown first"),
    ]
    isHealth: Annotated[
        bool,
        Default(False),
        Description(
            "Whether the note is about the client's health.",
            argument="It is about health, such as pain or an injury: needs attention.",
        ),
        Label("About health"),
    ]


class NoteSubject(TypedDict):
    """Whom a note is about, and who wrote it."""

    customerId: ObjectId
    author: Annotated[NoteAuthor | None, Description("Who wrote it; null for notes older than this field.")]


class Note(NoteSubject, NewNote, declared.Stored):
    """A coach's note on a client."""


NoteChange: TypeAlias = Change[NewNote]


# --- The HTML of notes: sanitised before it is stored -----------------------------------------------------------------


_BLOCK_TAG = re.compile(r"<(?!/?(a|b|code|em|i|s|span|strong|sub|sup|u)\b)")  # every other tag separates words
_ALLOWED_TAGS = {
    *("p", "br", "div", "span", "b", "strong", "i", "em", "u", "s", "sub", "sup", "code", "pre", "blockquote", "hr"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "a"),
}


def sanitise(html: str) -> str:
    """Return `html` without anything a browser would run or load.

    Raises InvalidFields if no text is left, or if it is too long then: characters are escaped, and open tags closed.
    """
    clean = nh3.clean(
        html,
        tags=_ALLOWED_TAGS,
        attributes={"a": {"href"}},
        url_schemes={"http", "https", "mailto", "tel"},
        link_rel="noopener noreferrer nofollow",
    ).strip()
    if not plain_text(clean):
        raise invalid_field("content", "should not be empty", code="EMPTY")
    if len(clean) > CONTENT_LENGTH:
        message = f"must not be longer than {CONTENT_LENGTH} characters as HTML with escaped characters and closed tags"
        raise invalid_field("content", message, code="TOO_LONG")
    return clean


def plain_text(clean_html: str) -> str:
    """Return the text of sanitised HTML in one line."""
    return " ".join(remove_tags(_BLOCK_TAG.sub(" <", clean_html)).split())


def remove_tags(clean_html: str) -> str:
    """Return the text between the tags of sanitised HTML."""
    return unescape(nh3.clean(clean_html, tags=set()))


# --- Notes in the database --------------------------------------------------------------------------------------------


_EVENT_TYPES: dict[declared.Action, EventType] = {
    "created": "note.created",
    "changed": "note.updated",
    "deleted": "note.deleted",
}


def _texts(note: Mapping[str, Any]) -> Iterator[declared.SearchedText]:
    yield declared.SearchedText(
        "notes", "Note", plain_text(note.get("content", "")), note.get("createdAt"), is_named=False
    )


notes = Documents[Note](
    "notes",
    (
        declared.Index(("customerId", "-createdAt", "-_id")),
        declared.Index(("customerId", "createdAt"), partial_filter=(("isHealth", {"$eq": True}),)),
    ),
    client_field="customerId",
    history=declared.History(
        "note", lambda action, known, _: {"type": _EVENT_TYPES[action], "data": {"noteId": known["_id"]}}
    ),
    transfer=declared.Portable(
        Note,
        declared.RECORDS,
        references={"customerId": "customers"},
        complete=lambda note: {**note, "content": sanitise(note["content"])},
    ),
    searched=declared.Searched(("notes",), ("content", "createdAt"), _texts),
)
_HEALTH_NOTES = notes.index_name("customerId", "createdAt")


async def count_health_notes(ctx: Context, customer_ids: Sequence[ObjectId]) -> list[DatedCount]:
    """Return how many notes with the health flag there are, of clients with any. Access is not checked."""
    where: Filter = {"customerId": {"$in": list(customer_ids)}, "isHealth": True}
    group = {"_id": "$customerId", "count": {"$sum": 1}, "newest": {"$max": "$createdAt"}}
    return await notes.aggregate(ctx, where, {"$group": group}, hint=_HEALTH_NOTES)


_FEED_TEXT_LENGTH = 200
routes = Routes("/coach/customers/{customerId}/notes", tag="Notes", locks="customer")


@routes.get("", access=coach(CUSTOMERS.VIEW), operation_id="listNotes")
async def list_of_client(ctx: Context, customer_id: ObjectId) -> list[Note]:
    """List the notes on a client, newest first."""
    await customers.get_visible(ctx, customer_id)
    return await notes.find(ctx, {"customerId": customer_id}, sort=("-createdAt", "-_id"))


@routes.get("/{noteId}", access=coach(CUSTOMERS.VIEW), operation_id="getNote")
async def get(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> Note:
    """Read a note on a client."""
    await customers.get_visible(ctx, customer_id)
    return require_found(await notes.find_one(ctx, {"customerId": customer_id, "_id": note_id}), "note")


@routes.post(
    "",
    access=coach(CUSTOMERS.EDIT),
    example={"content": "<p>Left knee: go easy.</p>", "isHealth": True},
    operation_id="createNote",
)
@transactional
async def create(ctx: Context, customer_id: ObjectId, body: NewNote) -> Note:
    """Add a note on a client."""
    await customers.get_visible(ctx, customer_id)
    return await _insert(ctx, customer_id, {**body, "content": sanitise(body["content"])})


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


@routes.patch(
    "/{noteId}",
    access=coach(CUSTOMERS.EDIT),
    body=patch_of(input_of(NewNote), name="NoteChange"),
    example={"content": "<p>Knee is fine again.</p>", "version": 0},
    operation_id="updateNote",
)
@transactional
async def update(ctx: Context, customer_id: ObjectId, note_id: ObjectId, body: NoteChange) -> Note:
    """Change a note."""
    await customers.get_visible(ctx, customer_id)
    fields: NoteChange = {**body, "content": sanitise(body["content"])} if "content" in body else {**body}
    version = fields.pop("version", None)
    where = {"customerId": customer_id, "_id": note_id}
    note = require_found(await notes.rewrite(ctx, where, lambda _: fields, version=version), "note")
    if "isHealth" in fields:
        await derived_figures.mark_due(ctx, [customer_id])
    await activity.correct_events(ctx, ["note_added"], customer_id, [note_id], **_feed_data(note))
    return note


@routes.delete("/{noteId}", access=coach(CUSTOMERS.EDIT), operation_id="deleteNote")
@transactional
async def delete(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> None:
    """Delete a note."""
    await customers.get_visible(ctx, customer_id)
    note = require_found(await notes.delete(ctx, {"customerId": customer_id, "_id": note_id}), "note")
    if note["isHealth"]:
        await derived_figures.mark_due(ctx, [customer_id])
    await activity.delete_events(ctx, customer_id, note_id, "note_added")


async def find_newest_health_texts(ctx: Context, customer_ids: Sequence[ObjectId]) -> dict[ObjectId, str]:
    """Return the newest health note as plain text, of clients with any. Access is not checked."""
    where: Filter = {"customerId": {"$in": list(customer_ids)}, "isHealth": True}
    order: PipelineStage = {"$sort": {"customerId": 1, "createdAt": 1}}
    group = {"_id": "$customerId", "text": {"$last": "$content"}}
    newest: list[ClientText] = await notes.aggregate(ctx, where, order, {"$group": group}, hint=_HEALTH_NOTES)
    return {each["_id"]: plain_text(each["text"]) for each in newest}


def _feed_data(note: Note) -> dict[str, ObjectId | str]:
    """Return what the activity feed shows of a note: its identifier and the beginning of its text."""
    return {"noteId": note["_id"], "text": plain_text(note["content"])[:_FEED_TEXT_LENGTH]}


# --- Notes for assistants ---------------------------------------------------------------------------------------------


tools = Tools()
_LONGEST_IN_LIST, _LONGEST_IN_LINE = 1_500, 200


class ListNotes(mcp.CustomerArgument, mcp.ToolPage):
    """The client, and the page of notes."""


class AddNote(mcp.CustomerArgument):
    """The client, and the new note."""

    text = Text(max_length=10_000, required=True, metadata={"description": "Plain text."})
    isHealth = argument_of(NewNote, "isHealth")
    isPinned = argument_of(NewNote, "isPinned")


@tools.tool("List notes", access=coach(CUSTOMERS.VIEW), takes=ListNotes(), returns=mcp.Lines)
async def list_notes(ctx: Context, customer_id: ObjectId, page: int, page_size: int) -> Answer:
    """List the coaches' notes on a client, newest first; clients do not see them."""
    customer, on_client = await gather_reads(
        ctx, customers.get_visible_reference(ctx, customer_id), list_of_client(ctx, customer_id)
    )
    listed = mcp.paged(on_client, page, page_size)
    lines = []
    for note in listed["docs"]:
        facts = mcp.join_facts(
            mcp.format_time(note["createdAt"]),
            note["author"] and f"by {typed(note['author']['name'])}",
            note["isHealth"] and "health",
            note["isPinned"] and "pinned",
        )
        lines.append(f"{facts}: {mcp.typed_line(plain_text(note['content']), _LONGEST_IN_LIST)}")
    return mcp.list_answer(f"Notes on {typed(customer['name'])}", listed, lines)


@tools.tool("Add a note", access=coach(CUSTOMERS.EDIT), takes=AddNote(), writes=True, locks="customer")
async def add_note(ctx: Context, customer_id: ObjectId, text: str, *, is_health: bool, is_pinned: bool) -> Written:
    """Add a note on a client, which only coaches see, never the client."""
    content = escape(text).replace("\n", "<br>")
    note = await create(ctx, customer_id, {"content": content, "isHealth": is_health, "isPinned": is_pinned})
    customer = await customers.get_visible_reference(ctx, customer_id)
    kind = "health note" if is_health else "note"
    return Written(
        f"Added a {kind} on {typed(customer['name'])}: {mcp.typed_line(text, _LONGEST_IN_LINE)}.",
        {"customerId": customer_id, "noteId": note["_id"]},
    )
