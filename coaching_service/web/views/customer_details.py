"""A client's details, photos, files and notes: editing, inviting, archiving and deleting."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from datetime import date
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias, TypedDict

from markupsafe import escape

from coaching_service.core import validation
from coaching_service.core.auth import CUSTOMERS, METRICS, NUTRITION, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.errors import NotFound, invalid_field, require_by_id
from coaching_service.core.fields import Default, Part, input_of
from coaching_service.core.http.routes import MultipartBody
from coaching_service.core.ids import ObjectId
from coaching_service.core.media import IMAGE_TYPES, PDF
from coaching_service.integrations import calendar_feed
from coaching_service.people import audit_log, customer_access, team
from coaching_service.people.activity import service as activity
from coaching_service.people.activity.models import ActivityEvent
from coaching_service.people.customers import retention
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import CustomerChange, WrittenDetails
from coaching_service.people.sessions import service as sessions
from coaching_service.progress import customer_profile, notes, nutrition_plans, progress_photos
from coaching_service.progress.metrics import service as metrics
from coaching_service.progress.metrics.service import MetricHistoryEntry
from coaching_service.training.workouts.items import descriptions
from coaching_service.training.workouts.reports import blocks as block_reports
from coaching_service.web import formatting
from coaching_service.web.forms import ReceivedFiles
from coaching_service.web.pages import PageQuery, Pages, Redirect
from coaching_service.web.views.customer_layout import customer_path, get_today, load_header, review_path
from coaching_service.web.views.history import group_by_day
from coaching_service.web.views.results import require_past_date

# --- Photos of a client: the form that adds those of a date, and two dates side by side, with the weight at the time


Side = Literal["front", "side", "back"]
SIDES: tuple[Side, ...] = ("front", "side", "back")
_WEIGHT_NAMES, _WEIGHT_UNITS = ("weight", "peso"), ("kg", "lb")
_INDEXES: dict[Side, Literal["1", "2", "3"]] = {"front": "1", "side": "3", "back": "2"}


class PhotosForm(TypedDict):
    """The date of photos."""

    createdAt: Annotated[str, validation.SearchedDate()]


PHOTOS_FORM = MultipartBody("front", IMAGE_TYPES, PhotosForm, more_files=("side", "back"))


async def add_received(
    ctx: Context, customer_id: ObjectId, day: str, files: ReceivedFiles
) -> tuple[progress_photos.ProgressPhoto, str]:
    """Add the photos received to a date, in place of photos of the same sides; return them with a notice.

    The notice names the photos that were saved, and says of each other one that was sent why it was not. Raises what
    `progress_photos.add` raises.
    """
    saved = [side for side in SIDES if side in files.stored]
    for side in saved:
        photos = await progress_photos.create(
            ctx, customer_id, {"createdAt": day, "imageSideIndex": _INDEXES[side]}, files.stored[side]
        )
    named = " and ".join(filter(None, [", ".join(saved[:-1]), saved[-1]]))
    notice = f"{named.capitalize()} photo{'' if len(saved) == 1 else 's'} saved."
    reasons = [f"The {side} photo was not saved: it {why}." for side, why in files.rejected.items()]
    return photos, " ".join([notice, *reasons])


def sides_of(photos: progress_photos.ProgressPhoto) -> list[Side]:
    """Return the sides with a photo on a date."""
    links: dict[str, object] = {**photos["photos"]}
    return [side for side in SIDES if links[f"{side}Key"]]


class Weights(TypedDict):
    """The history of the metric that is the client's weight, by date."""

    name: str
    unit: str
    values: list[MetricHistoryEntry]


async def find_weights(ctx: Context, customer_id: ObjectId) -> Weights | None:
    """Return the history of the first assigned metric that is a client's weight, if there is one.

    Raises NotFound if the company has no such client, Forbidden if the client is outside the caller's scope.
    """
    for assignment in await metrics.list_assigned(ctx, customer_id):
        for entry in assignment["metrics"]:
            metric = entry["metric"]
            unit, name = metric["metricUnit"]["shortName"], metric["name"]
            if unit in _WEIGHT_UNITS and any(word in name.casefold() for word in _WEIGHT_NAMES):
                set_id = assignment["metricsSet"]["_id"]
                values = await metrics.list_history(ctx, customer_id, set_id, metric["_id"])
                return {"name": name, "unit": unit, "values": values}
    return None


async def load_weights(ctx: Context, customer_id: ObjectId) -> Weights | None:
    """Return what `find_weights` returns, for a coach who may see metrics; None for any other."""
    return await find_weights(ctx, customer_id) if METRICS.VIEW in ctx.caller.permissions else None


def weight_at(weights: Weights | None, day: str) -> MetricHistoryEntry | None:
    """Return the latest weight up to a date (YYYY-MM-DD), which may be long before; None without one."""
    values = weights["values"] if weights else []
    at = bisect_right(values, day, key=lambda entry: entry["date"])
    return values[at - 1] if at else None


def pair_photos(
    left: progress_photos.ProgressPhoto, right: progress_photos.ProgressPhoto, name: str, weights: Weights | None
) -> list[dict[str, Any]]:
    """Return the pairs of the sides with a photo on one of two dates; `name` is the client's."""
    pairs: list[dict[str, Any]] = []
    for side in SIDES:
        pair: dict[str, Any] = {"side": side, "left": None, "right": None}
        for place, record in (("left", left), ("right", right)):
            links: dict[str, Any] = {**record["photos"]}
            if full := links[f"{side}Url"]:
                small = formatting.relative_url(links[f"{side}ThumbnailUrl"] or full)
                of = f"{name}, {side}"
                pair[place] = show_photo(small, formatting.relative_url(full), of, record["createdAt"], weights)
        pairs.append(pair)
    return [pair for pair in pairs if pair["left"] or pair["right"]]


def show_photo(small: str, full: str, of: str, day: str, weights: Weights | None) -> dict[str, Any]:
    """Return a photo of a date as it is compared: addresses of both sizes, and the weight, with its date if older."""
    date, note, entry = formatting.format_date(day), "", weight_at(weights, day)
    if weights is not None and entry is not None:
        note = f"{weights['name']}: {formatting.format_number(entry['value'], weights['unit'])}"
        note += "" if entry["date"] == day else f", on {formatting.format_date(entry['date'])}"
    return {"src": small, "full": full, "alt": f"{of}, {date}", "caption": date, "note": note}


def compare_over_period(
    records: Sequence[progress_photos.ProgressPhoto], first: date, last: date
) -> list[progress_photos.ProgressPhoto]:
    """Return the photos taken closest to the first day of a period, and the latest ones up to its last day.

    `records`: the photos of a client by date. Empty without two dates that have photos.
    """
    until = [record for record in records if sides_of(record) and record["createdAt"] <= str(last)]
    if len(until) < 2:
        return []
    latest = max(until, key=lambda record: record["createdAt"])
    earlier = [record for record in until if record is not latest]
    return [min(earlier, key=lambda record: abs((date.fromisoformat(record["createdAt"]) - first).days)), latest]


# --- A client's details and files: editing, inviting, archiving and deleting; photos by date, and nutrition plans -----


pages = Pages("/app/customers/{customerId}", locks="customer")
_MAX_PHOTO_DATES, _DAYS_SHOWN = 50, 7
_PLANS_PER_PAGE = 25
_DETAILS_FORM = validation.patch_of(input_of(WrittenDetails), name="CustomerForm")


@pages.get("/details", access=coach(CUSTOMERS.VIEW), template="customer/details.html")
async def details_page(ctx: Context, customer_id: ObjectId) -> dict[str, Any]:
    """A client's details."""
    header, customer, groups, coaches, last_use, looked = await gather_reads(
        ctx,
        load_header(ctx, customer_id),
        customer_profile.get(ctx, customer_id),
        customers.list_groups(ctx),
        team.list_coaches(ctx),
        sessions.find_last_use(ctx, customer_id),
        audit_log.list_access(ctx, customer_id),
    )
    times = [time for time in (customer["lastActivityDate"], last_use) if time is not None]
    may_share = CUSTOMERS.EDIT in ctx.caller.permissions
    return {
        "customer": header,
        "details": customer,
        "version": customer["version"],
        "groups": groups,
        "coaches": coaches,
        "who_looked": group_by_day(looked, _DAYS_SHOWN),
        "last_seen": max(times, default=None),
        "retention_months": ctx.services.archived_retention_months,
        "erasure_day": (await retention.find_erasure_days(ctx, [customer_id])).get(customer_id),
        "calendar_url": await calendar_feed.find_url(ctx, customer_id) if may_share else None,
    }


@pages.post("/details", access=coach(CUSTOMERS.EDIT), form=_DETAILS_FORM, on=details_page)
async def change_details(ctx: Context, customer_id: ObjectId, form: CustomerChange) -> Redirect:
    """Change a client's details."""
    await customers.get_visible(ctx, customer_id)
    try:
        customer = await customers.update(ctx, customer_id, form)
    except NotFound:
        raise invalid_field("assignedTo", "must be a coach of your team; this coach has left it") from None
    trainer_id = customer["customerRoleData"]["assignedTo"]
    if ctx.caller.customers_scope == "assigned" and trainer_id != ctx.caller.id:
        return Redirect("/app/customers", f"Changes saved. {customer['name']} is no longer assigned to you.")
    return Redirect(customer_path(customer_id, "/details"), "Changes saved.")


_confirm = partial(pages.confirm, access=coach(CUSTOMERS.EDIT))
_act = partial(pages.act, access=coach(CUSTOMERS.EDIT), on=details_page)
_archive, _restore = (partial(customers.set_archived, archived=archived) for archived in (True, False))
_act("/invite", "invite", customer_access.invite, "Invitation sent.")
_act("/calendar-link", "create_calendar_link", calendar_feed.create, "Calendar link created.", idempotent=True)
_act("/calendar-link/revoke", "delete_calendar_link", calendar_feed.revoke, "Calendar link revoked.", deletes=True)
_act("/archive", "archive", _archive, "{name} is archived and cannot sign in.", idempotent=True)
_act("/restore", "restore", _restore, "{name} is active again.", idempotent=True)
_photo = MultipartBody("profilePhotoFile", IMAGE_TYPES)
_act("/profile-photo", "set_profile_photo", customers.set_profile_photo, "Photo saved.", form=_photo)


@pages.confirm(
    "/delete",
    customers.erase,
    "{customer[name]} deleted.",
    to="/app/customers",
    access=coach(CUSTOMERS.DELETE),
    template="customer/delete.html",
    deletes_customer=True,
)
async def delete(ctx: Context, customer_id: ObjectId) -> dict[str, Any]:
    """Permanently delete a client with all of their data."""
    return {"customer": await load_header(ctx, customer_id)}


class _CompareQuery(TypedDict):
    """The two dates to compare; the first and the latest if absent."""

    left: Annotated[str, validation.Text(allow_blank=True), Default("")]
    right: Annotated[str, validation.Text(allow_blank=True), Default("")]


@pages.get("/photos", access=coach(CUSTOMERS.VIEW), template="customer/photos.html")
async def photos_page(ctx: Context, customer_id: ObjectId, query: _CompareQuery) -> dict[str, Any]:
    """Compare the photos of two dates, with the weight at the time."""
    customer, page, weights = await gather_reads(
        ctx,
        load_header(ctx, customer_id),
        progress_photos.list_photos(ctx, customer_id, page=1, size=_MAX_PHOTO_DATES),
        load_weights(ctx, customer_id),
    )
    records = page["docs"]
    by_date = {record["createdAt"]: record for record in records}
    compared: list[progress_photos.ProgressPhoto] = []
    if records:
        with_photos = [record for record in records if sides_of(record)] or records
        compared = [by_date.get(query["left"], with_photos[-1]), by_date.get(query["right"], with_photos[0])]
    return {
        "customer": customer,
        "dates": list(by_date),
        "compared": compared,
        "pairs": pair_photos(compared[0], compared[1], customer["name"], weights) if compared else [],
        "today": ctx.caller.today(customer["timezone"]),
    }


@pages.post("/photos", access=coach(CUSTOMERS.EDIT), form=PHOTOS_FORM, on=photos_page)
async def add_photos(ctx: Context, customer_id: ObjectId, form: PhotosForm, files: ReceivedFiles) -> Redirect:
    """Add the photos of a date, replacing the photos of the same sides."""
    require_past_date("createdAt", form["createdAt"], await get_today(ctx, customer_id), or_tomorrow=True)
    _, notice = await add_received(ctx, customer_id, form["createdAt"], files)
    return Redirect(f"{customer_path(customer_id, '/photos')}?right={form['createdAt']}", notice)


@_confirm("/photos/{photoId}/delete", progress_photos.delete, "Photos deleted.", template="customer/delete_photos.html")
async def delete_photos(ctx: Context, customer_id: ObjectId, photo_id: ObjectId) -> dict[str, Any]:
    """Delete the photos of a date."""
    customer, record = await gather_reads(
        ctx, load_header(ctx, customer_id), progress_photos.get(ctx, customer_id, photo_id)
    )
    return {"customer": customer, "record": record, "sides": sides_of(record)}


@pages.get("/plans", access=coach(NUTRITION.VIEW), template="customer/plans.html")
async def plans_page(ctx: Context, customer_id: ObjectId, query: PageQuery) -> dict[str, Any]:
    """The versions of a client's nutrition plan."""
    customer, page = await gather_reads(
        ctx,
        load_header(ctx, customer_id),
        nutrition_plans.list_plans(ctx, customer_id, page=query["page"], size=_PLANS_PER_PAGE),
    )
    path = customer_path(customer_id, "/plans")
    return {"customer": customer, "page": page, "address": lambda page: f"{path}?page={page}"}


pages.act(
    "/plans",
    "upload_plan",
    nutrition_plans.upload,
    "{fileName} saved as version {number}.",
    access=coach(NUTRITION.CREATE),
    form=MultipartBody("file", (PDF, *IMAGE_TYPES), size_limit="plan"),
    on=plans_page,
)


@pages.confirm(
    "/plans/{planId}/delete",
    nutrition_plans.delete,
    "Version deleted.",
    access=coach(NUTRITION.DELETE),
    template="customer/delete_plan.html",
)
async def delete_plan(ctx: Context, customer_id: ObjectId, plan_id: ObjectId) -> dict[str, Any]:
    """Delete a version of the client's nutrition plan."""
    customer, plan = await gather_reads(
        ctx, load_header(ctx, customer_id), nutrition_plans.get(ctx, customer_id, plan_id)
    )
    return {"customer": customer, "plan": plan}


# --- Notes about a client, with the client's recent activity ----------------------------------------------------------

_RECENT_EVENTS = 15


class _PlainText(validation.Input):
    content = validation.Text(max_length=validation.TEXT_LENGTH, required=True)


_NOTE_FORM = input_of(notes.NewNote, _PlainText)
_CHANGE_FORM = validation.patch_of(_NOTE_FORM, name="NoteForm")
_Pin: TypeAlias = Part[notes.NewNote, Literal["isPinned"]]


@pages.get("/notes", access=coach(CUSTOMERS.VIEW), template="customer/notes.html")
async def notes_page(ctx: Context, customer_id: ObjectId) -> dict[str, Any]:
    """The notes about a client, pinned ones first, and the latest events of the activity feed."""
    customer, customer_notes, feed = await gather_reads(
        ctx,
        load_header(ctx, customer_id),
        notes.list_of_client(ctx, customer_id),
        activity.list_attributed_events(ctx, customer_id, page=1, size=_RECENT_EVENTS),
    )
    block_ids = {event["data"]["wblockId"] for event in feed["docs"] if "wblockId" in event["data"]}
    existing_ids = await block_reports.find_existing_ids(ctx, block_ids)
    return {
        "customer": customer,
        "notes": sorted(customer_notes, key=lambda note: not note["isPinned"]),
        "edited": None,
        "events": [
            {
                **event,
                "description": _describe_event(event),
                "author": actor["name"] + _VIA.get(actor["type"], "") if (actor := event["actor"]) else "",
                # Of the review of its workout, unless that was deleted since.
                "url": review_path(customer_id, block_id) if block_id in existing_ids else "",
            }
            for event in feed["docs"]
            for block_id in [event["data"].get("wblockId")]
        ],
    }


@pages.post("/notes", access=coach(CUSTOMERS.EDIT), form=_NOTE_FORM(), on=notes_page)
async def add_note(ctx: Context, customer_id: ObjectId, form: notes.NewNote) -> Redirect:
    """Add a note: plain text in which an empty line starts a new paragraph."""
    await notes.create(ctx, customer_id, {**form, "content": _to_html(form["content"])})
    return Redirect(_notes_path(customer_id), "Note added.")


@pages.get("/notes/{noteId}", access=coach(CUSTOMERS.EDIT), template="customer/notes.html")
async def edit_note_page(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> dict[str, Any]:
    """The notes about a client, with a form in place of one of them."""
    variables: dict[str, Any] = await notes_page(ctx, customer_id)
    note = require_by_id(variables["notes"], note_id, "note")
    text = _to_text(note["content"])
    # More than paragraphs, such as bold words or a list, which its text does not have.
    is_formatted = note["content"] not in {notes.sanitise(_to_html(text)), str(escape(text)).replace("\n", "<br>")}
    is_long = len(text) > validation.TEXT_LENGTH
    edited = {"_id": note_id, "text": None if is_long else text, "is_formatted": is_formatted}
    return variables | {"edited": edited, "version": note["version"]}


@pages.post("/notes/{noteId}", access=coach(CUSTOMERS.EDIT), form=_CHANGE_FORM, on=edit_note_page)
async def change_note(ctx: Context, customer_id: ObjectId, note_id: ObjectId, form: notes.NoteChange) -> Redirect:
    """Change the text and the flags of a note; a text that is not changed keeps its formatting."""
    if "content" in form:  # else it is too long for the form
        note = require_by_id(await notes.list_of_client(ctx, customer_id), note_id, "note")
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


@_confirm("/notes/{noteId}/delete", notes.delete, "Note deleted.", template="customer/delete_note.html")
async def delete_note(ctx: Context, customer_id: ObjectId, note_id: ObjectId) -> dict[str, Any]:
    """Delete a note."""
    customer, customer_notes = await gather_reads(
        ctx, load_header(ctx, customer_id), notes.list_of_client(ctx, customer_id)
    )
    return {"customer": customer, "note": require_by_id(customer_notes, note_id, "note")}


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
    lines = "\n".join(line.strip() for line in notes.remove_tags(marked).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", lines).strip()


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
_VIA = {"key": " (API key)", "assistant": " (assistant)", "application": " (application)"}


def _describe_event(event: ActivityEvent) -> str:
    """Describe an event in one line, such as `Personal record in Squat. Heaviest load: 80 kg`."""
    data, kind = event["data"], event["type"]
    if kind == "metric_recorded" and "metricName" not in data:
        return f"Recorded {data.get('itemName', 'metrics')} in {data['blockName']}"
    if kind == "form_submitted" and "itemName" not in data:
        return f"Completed a form in {data['blockName']}"
    count, value, unit = data.get("blocks", 0), data.get("value"), data.get("unit", "")
    values = {
        # Entries recorded before names were stored only have its type.
        "item": data.get("itemName") or _UNNAMED_ITEMS.get(data.get("itemType", ""), "an item"),
        "amount": descriptions.format_number(value, "" if unit == "count" else unit),
        "workouts": f"{count} workout{'' if count == 1 else 's'}",
        "planned": formatting.format_date(data.get("plannedDate")),
        "date": formatting.format_date(data.get("day")),
    }
    if kind == "personal_record":
        values["amount"] = formatting.format_record_value(data["recordType"], data["value"], unit)
        values["record"] = formatting.record_name({"type": data["recordType"], "meters": data.get("meters")})
    template = _FIRST_RESULT if data.get("isFirst") else _EVENTS.get(kind, kind)
    return str(template).format_map(data | values)
