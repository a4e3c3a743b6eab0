"""Notes on a client for assistants."""

from __future__ import annotations

from html import escape

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.field_schemas import argument_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import arguments
from coaching_service.core.mcp.results import Answer, Written, typed
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Text
from coaching_service.people.customers import service as customers
from coaching_service.progress.notes import service
from coaching_service.progress.notes.service import NewNote, plain_text

tools = Tools()
_LONGEST_IN_LIST, _LONGEST_IN_LINE = 1_500, 200


class ListNotes(arguments.CustomerArgument, arguments.ToolPage):
    """The client, and the page of notes."""


class AddNote(arguments.CustomerArgument):
    """The client, and the new note."""

    text = Text(max_length=10_000, required=True, metadata={"description": "Plain text."})
    isHealth = argument_of(NewNote, "isHealth")
    isPinned = argument_of(NewNote, "isPinned")


@tools.tool("List notes", access=coach(CUSTOMERS.VIEW), takes=ListNotes(), returns=arguments.Lines)
async def list_notes(ctx: Context, customer_id: ObjectId, page: int, page_size: int) -> Answer:
    """List the coaches' notes on a client, newest first; clients do not see them."""
    customer, notes = await gather_reads(
        ctx, customers.get_visible_reference(ctx, customer_id), service.list_notes(ctx, customer_id)
    )
    listed = arguments.paged(notes, page, page_size)
    lines = []
    for note in listed["docs"]:
        facts = arguments.join_facts(
            arguments.format_time(note["createdAt"]),
            note["author"] and f"by {typed(note['author']['name'])}",
            note["isHealth"] and "health",
            note["isPinned"] and "pinned",
        )
        lines.append(f"{facts}: {arguments.typed_line(plain_text(note['content']), _LONGEST_IN_LIST)}")
    return arguments.list_answer(f"Notes on {typed(customer['name'])}", listed, lines)


@tools.tool("Add a note", access=coach(CUSTOMERS.EDIT), takes=AddNote(), writes=True, locks="customer")
async def add_note(ctx: Context, customer_id: ObjectId, text: str, *, is_health: bool, is_pinned: bool) -> Written:
    """Add a note on a client, which only coaches see, never the client."""
    content = escape(text).replace("\n", "<br>")
    note = await service.create(ctx, customer_id, {"content": content, "isHealth": is_health, "isPinned": is_pinned})
    customer = await customers.get_visible_reference(ctx, customer_id)
    kind = "health note" if is_health else "note"
    return Written(
        f"Added a {kind} on {typed(customer['name'])}: {arguments.typed_line(text, _LONGEST_IN_LINE)}.",
        {"customerId": customer_id, "noteId": note["_id"]},
    )
