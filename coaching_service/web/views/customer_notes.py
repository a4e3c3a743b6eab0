"""Notes about a client, with the client's recent activity."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import partial
from typing import Any, Literal, TypeAlias

from markupsafe import escape

from coaching_service.core.auth.access import CUSTOMERS, coach
from coaching_service.core.changes.models import FeedData
from coaching_service.core.database.context import Context
from coaching_service.core.database.recording import Actor
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.errors import require_by_id
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import Part
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import TEXT_LENGTH, Input, Text, patch_of
from coaching_service.people.activity import service as activity
from coaching_service.people.activity.models import ActivityEvent
from coaching_service.progress.notes import service as notes
from coaching_service.progress.notes.html import remove_tags, sanitise
from coaching_service.progress.notes.models import NewNote, NoteChange
from coaching_service.training.workouts.items.descriptions import format_number
from coaching_service.training.workouts.reports import blocks as queries
from coaching_service.web.formatting import format_date, format_record_value, record_name
from coaching_service.web.pages import ConfirmedAction, Pages, Redirect
from coaching_service.web.views.customer_layout import customer_path, load_header, review_path

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
                "description": _describe_event(event),
                "author": _describe_actor(event["actor"]),
                "url": _event_path(customer_id, event, existing_ids),
            }
            for event in feed["docs"]
        ],
    }


@pages.post("/notes", access=coach(CUSTOMERS.EDIT), form=_NOTE_FORM(), on=notes_page)
async def add_note(ctx: Context, customer_id: ObjectId, form: NewNote) -> Redirect:
    """Add a note: plain text in which an empty line starts a new paragraph."""
    await notes.create(ctx, customer_id, {**form, "content": _to_html(form["content"])})
    return Redirect(_notes_path(customer_id), "Note added.")


@pages.get("/notes/{noteId}", access=coach(CUSTOMERS.EDIT), template="customer/notes.html")
async def edit_note_page(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> dict[str, Any]:
    """The notes about a client, with a form in place of one of them."""
    variables: dict[str, Any] = await notes_page(ctx, customer_id)
    note = require_by_id(variables["notes"], note_id, "note")
    text = _to_text(note["content"])
    is_long = len(text) > TEXT_LENGTH
    edited = {"_id": note_id, "text": None if is_long else text, "is_formatted": _is_formatted(note["content"])}
    return variables | {"edited": edited, "version": note["version"]}


@pages.post("/notes/{noteId}", access=coach(CUSTOMERS.EDIT), form=_CHANGE_FORM, on=edit_note_page)
async def change_note(ctx: Context, customer_id: ObjectId, note_id: ObjectId, form: NoteChange) -> Redirect:
    """Change the text and the flags of a note; a text that is not changed keeps its formatting."""
    if "content" in form:  # else it is too long for the form
        note = require_by_id(await notes.list_notes(ctx, customer_id), note_id, "note")
        if form["content"] == _to_text(note["content"]):
            del form["content"]
        else:
            form["content"] = _to_html(form["content"])
    await notes.update(ctx, customer_id, note_id, form)
    return Redirect(_notes_path(customer_id), "Note changed.")


@pages.post("/notes/{noteId}/pin", access=coach(CUSTOMERS.EDIT), on=notes_page)
async def change_note_pin(ctx: Context, customer_id: ObjectId, note_id: ObjectId, form: _Pin) -> Redirect:
    """Show a note before the others, or no longer."""
    await notes.update(ctx, customer_id, note_id, {"isPinned": form["isPinned"]})
    return Redirect(_notes_path(customer_id), "Note pinned." if form["isPinned"] else "Note unpinned.")


@pages.confirm(
    "/notes/{noteId}/delete", access=coach(CUSTOMERS.EDIT), template="customer/delete_note.html", deletes=True
)
async def delete_note(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> ConfirmedAction:
    """Delete a note."""
    customer, customer_notes = await gather_reads(
        ctx, load_header(ctx, customer_id), notes.list_notes(ctx, customer_id)
    )
    shown = {"customer": customer, "note": require_by_id(customer_notes, note_id, "note")}
    done = Redirect(_notes_path(customer_id), "Note deleted.")
    return ConfirmedAction(shown, partial(notes.delete, ctx, customer_id, note_id), done)


def _notes_path(customer_id: ObjectId) -> str:
    return customer_path(customer_id, "/notes")


_LINE_END = re.compile(r"<br>|</li>|</tr>")
_BLOCK_END = re.compile(r"</(p|div|h[1-6]|ul|ol|table|pre|blockquote)>|<hr>")


def _to_html(text: str) -> str:
    """Return plain text as paragraphs of HTML."""
    paragraphs = re.split(r"\n{2,}", text.replace("\r\n", "\n"))
    return "".join(f"<p>{str(escape(part)).replace(chr(10), '<br>')}</p>" for part in paragraphs if part.strip())


def _to_text(html: str) -> str:
    """Return the text of a note's sanitised HTML, with a line for each line, and an empty line between paragraphs."""
    marked = _BLOCK_END.sub("\n\n", _LINE_END.sub("\n", html.replace("\n", " ").replace("<li>", "- ")))
    lines = "\n".join(line.strip() for line in remove_tags(marked).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", lines).strip()


def _is_formatted(html: str) -> bool:
    """Return whether a note has more than paragraphs, such as bold words or a list, which its text does not have."""
    text = _to_text(html)
    return html not in {sanitise(_to_html(text)), str(escape(text)).replace("\n", "<br>")}


_EVENTS = {
    "workout_completed": "Completed {blockName}",
    "item_logged": "Logged {item} in {blockName}",
    "form_submitted": "Completed form: {item}",
    "metric_recorded": "{metricName}: {amount}",
    "photo_added": "Progress photo added ({side})",
    "plan_uploaded": "Nutrition plan version {number}: {fileName}",
    "personal_record": "Personal record in {exerciseName}. {record}: {amount}",
    "note_added": "Note added",
    "program_assigned": "Program {programName} assigned, {workouts}",
    "workout_moved": "Moved {blockName} from {planned} to {date}",
    "workout_added": "Added an own workout: {blockName}",
}
_FIRST_RESULT = "First time: {exerciseName}. {record}: {amount}"
_UNNAMED_ITEMS = {
    "EXERCISE": "an exercise",
    "CIRCUIT": "a circuit",
    "TASK": "a task",
    "REMINDER": "a reminder",
}
_VIA = {"key": " (API key)", "assistant": " (assistant)"}


def _describe_actor(actor: Actor | None) -> str:
    """Describe the author of an event, such as `Olga Owner (assistant)`; empty if unknown."""
    return actor["name"] + _VIA.get(actor["type"], "") if actor else ""


def _describe_event(event: ActivityEvent) -> str:
    """Describe an event in one line, such as `Personal record in Squat. Heaviest load: 80 kg`."""
    data, kind = event["data"], event["type"]
    if kind == "metric_recorded" and "metricName" not in data:
        return f"Recorded {data.get('itemName', 'metrics')} in {data['blockName']}"
    if kind == "form_submitted" and "itemName" not in data:
        return f"Completed a form in {data['blockName']}"
    count, value, unit = data.get("blocks", 0), data.get("value"), data.get("unit", "")
    values = {
        "item": _describe_item(data),
        "amount": format_number(value, "" if unit == "count" else unit),
        "workouts": f"{count} workout{'' if count == 1 else 's'}",
        "planned": format_date(data.get("plannedDate")),
        "date": format_date(data.get("day")),
    }
    if kind == "personal_record":
        values["amount"] = format_record_value(data["recordType"], data["value"], unit)
        values["record"] = record_name({"type": data["recordType"], "meters": data.get("meters")})
    template = _FIRST_RESULT if data.get("isFirst") else _EVENTS.get(kind, kind)
    return str(template).format_map(data | values)


def _event_path(customer_id: ObjectId, event: ActivityEvent, existing_ids: Collection[ObjectId]) -> str:
    """Return the path of the review of the workout that an event is about; empty for any other event.

    `existing_ids`: the workouts that were not deleted since.
    """
    block_id = event["data"].get("wblockId")
    return review_path(customer_id, block_id) if block_id and block_id in existing_ids else ""


def _describe_item(data: FeedData) -> str:
    """Name the item of an event; entries recorded before names were stored only have its type."""
    name, item_type = data.get("itemName"), data.get("itemType", "")
    if name is None:
        return _UNNAMED_ITEMS.get(item_type, "an item")
    return str(name)
