"""The history of a company: who changed what, when, and through which interface."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal

from coaching_service.core.auth.access import Visibility
from coaching_service.core.changes import history
from coaching_service.core.changes.models import DocumentPatch, StoredChange
from coaching_service.core.changes.numbering import batches
from coaching_service.core.changes.undo import public_values
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter, now
from coaching_service.core.database.models import DocumentFields
from coaching_service.core.database.recording import Action, Interface
from coaching_service.core.errors import NotFound
from coaching_service.core.events import EventType
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import ListPart
from coaching_service.people.account import service
from coaching_service.people.changes.events import RETENTION, wait_for_changes
from coaching_service.people.changes.models import (
    ChangeDetails,
    ChangeList,
    ChangeSummary,
    DocumentReference,
    DocumentValues,
    limit_change,
    limit_values,
    load_visibility,
)
from coaching_service.people.customers.attention_events import RENEWAL

_MAX_READS, _CHANGES_A_READ = 10, 500
_RECENT = timedelta(days=1)
_WAIT_SECONDS, _POLL_SECONDS = 2.0, 0.05
_ACTIONS: tuple[Action, ...] = ("created", "changed", "deleted")
_REVERSED: dict[Action, str] = {"created": "removed", "changed": "changed back", "deleted": "restored"}
_KINDS_WITH_LOADS = {"workout", "template", "personal_record", "training_max", "estimated_max"}
_NAMES = {
    "customer": ("client", "clients"),
    "workout": ("workout", "workouts"),
    "hidden_day": ("hidden day", "hidden days"),
    "group_program": ("program of a group", "programs of groups"),
    "metrics_set": ("metric set", "metric sets"),
    "metrics_assignment": ("metric set of a client", "metric sets of clients"),
    "check_in": ("recurring check-in", "recurring check-ins"),
    "metric_value": ("metric value", "metric values"),
    "form_response": ("form response", "form responses"),
    "personal_record": ("personal record", "personal records"),
    "training_max": ("training maximum", "training maximums"),
    "estimated_max": ("estimated 1RM", "estimated 1RMs"),
    "progress_photo": ("set of progress photos", "sets of progress photos"),
    "nutrition_plan": ("nutrition plan", "nutrition plans"),
}


async def find_removed(
    ctx: Context, customer_id: ObjectId, document_id: ObjectId, list_name: str, element_id: ObjectId
) -> DocumentFields | None:
    """Return a document of a client as it was when it was deleted with an element of a list, or lost that element.

    Of one that still exists without the element, the result is empty. None if it never had the element, or lost it more
    than 30 days ago. Access is not checked.
    """
    patch = await history.find_removed(ctx, customer_id, document_id, list_name, element_id)
    return None if patch is None else patch["before"] or {}


async def list_changes(
    ctx: Context,
    *,
    limit: int,
    after: str | None = None,
    customer_id: ObjectId | None = None,
    via: Interface | None = None,
    actor_id: ObjectId | None = None,
    credential_id: ObjectId | None = None,
    since: datetime | None = None,
    in_feed: Literal[False] | None = None,
    has_documents: bool = False,
) -> ChangeList:
    """Return changes that the caller may see, newest first: at most `limit`, after a cursor.

    The renewal of figures is left out: its changes have only events of attention, and no coach or client made them.
    `credential_id`: made with this key or grant; `in_feed` False: without an entry in the activity feed;
    `has_documents`: without those of proposals and figures, which changed no document. A part may have fewer changes,
    or none, although there are more. Raises InvalidFields for a text that is not a cursor.
    """
    filters: Filter = {"customerId": customer_id, "via": via, "actor._id": actor_id, "credentialId": credential_id}
    where = {name: value for name, value in filters.items() if value is not None}
    if since is not None:
        where["createdAt"] = {"$gte": since}
    where["operation"] = {"$ne": RENEWAL}
    if in_feed is False:
        where["feed"] = {"$not": {"$elemMatch": {"hiddenBy": None}}}
    if has_documents:
        where["documents.0"] = {"$exists": True}
    list_part = ListPart(ctx, "changes", {**filters, "since": since}, history.NEWEST_FIRST, size=limit, after=after)
    visibility = await load_visibility(ctx)
    if not visibility.allows(customer_id=customer_id):
        return {"docs": [], "nextCursor": None, "hasMore": False}
    bound, size = list_part.condition(), limit + 1
    page: list[StoredChange] = []
    last: StoredChange | None = None
    for _ in range(_MAX_READS):
        read = await history.list_newest(ctx, {"$and": [where, bound]}, size)
        limited = (limit_change(visibility, change) for change in read)
        page += [change for change in limited if change is not None]
        last = read[-1] if len(read) == size else None
        if last is None or len(page) > limit:
            break
        bound, size = list_part.condition_after(last), _CHANGES_A_READ
    return list_part.by_cursor(page, lambda change: _summary(ctx, change), last)


async def list_newer(
    ctx: Context, customer_id: ObjectId | None, document_id: ObjectId, version: int, limit: int
) -> list[ChangeSummary]:
    """Return the changes of a document after a version, made within a day, that the caller may see: newest first.

    `customer_id`: the client whose document it is; None for the company's.
    """
    newer: Filter = {"_id": document_id, "toVersion": {"$gt": version}}
    where: Filter = {
        "customerId": customer_id,
        "createdAt": {"$gte": now() - _RECENT},
        "documents": {"$elemMatch": newer},
    }
    visibility = await load_visibility(ctx)
    read = await history.list_newest(ctx, where, limit)
    limited = (limit_change(visibility, change) for change in read)
    return [_summary(ctx, change) for change in limited if change is not None]


get_credentials = history.load_credentials
count_clients = history.count_clients


async def get_summaries(ctx: Context, change_ids: Sequence[ObjectId]) -> dict[ObjectId, ChangeSummary]:
    """Return those changes that the caller may see."""
    visibility = await load_visibility(ctx)
    limited = (limit_change(visibility, change) for change in await history.list_by_ids(ctx, change_ids))
    return {change["_id"]: _summary(ctx, change) for change in limited if change is not None}


async def get_change(ctx: Context, change_id: ObjectId) -> ChangeDetails:
    """Return a change with the values before and after. Raises NotFound if the caller may not see such a change."""
    visibility = await load_visibility(ctx)
    change = await find_visible(ctx, change_id, visibility)
    patch = await history.load_patches(ctx, [change])
    documents = [
        _values(visibility, reference, document, patch)
        for reference, document in zip(_references(change), change["documents"], strict=True)
    ]
    return {**_summary(ctx, change), "documents": documents}


async def find_visible(ctx: Context, change_id: ObjectId, visibility: Visibility | None = None) -> StoredChange:
    """Return what the caller may see of a change, once it is numbered: waits up to two seconds. Raises NotFound."""
    visibility = visibility or await load_visibility(ctx)
    deadline = asyncio.get_running_loop().time() + _WAIT_SECONDS
    while True:
        stored = await history.find_one(ctx, change_id)
        change = None if stored is None else limit_change(visibility, stored)
        if change is None:
            raise NotFound("change")
        if "lastSeq" in change or asyncio.get_running_loop().time() > deadline:
            return change
        await asyncio.sleep(_POLL_SECONDS)


async def list_visible(ctx: Context, change_id: ObjectId) -> list[StoredChange]:
    """Return what the caller may see of a change, or of the changes of a batch. Raises NotFound for nothing."""
    visibility = await load_visibility(ctx)
    if not (batch := await history.list_batch(ctx, change_id)):
        return [await find_visible(ctx, change_id, visibility)]
    limited = (limit_change(visibility, change) for change in batch)
    return [change for change in limited if change is not None]


def describe_undo(changes: Sequence[StoredChange]) -> str:
    """Return what undoing changes does in words, such as `removed 3 workouts and restored 1 client`."""
    references = [reference for change in changes for reference in _references(change)]
    return " and ".join(f"{_REVERSED[action]} {counted}" for action, counted in _count(references))


def _count(references: Iterable[DocumentReference]) -> Iterator[tuple[Action, str]]:
    """Yield each action with a number of documents of one kind, such as `3 workouts`."""
    counts = Counter((each["kind"], each["action"]) for each in references)
    for (kind, action), count in sorted(counts.items(), key=lambda each: _ACTIONS.index(each[0][1])):
        yield action, f"{count} {name_kind(kind, count)}"


def _summary(ctx: Context, change: StoredChange) -> ChangeSummary:
    return {
        "_id": change["_id"],
        "at": change["createdAt"],
        "actor": change["actor"],
        "via": change["via"],
        "approvedBy": change.get("approvedBy"),
        "decidedBy": change.get("approvedBy"),
        "decidedIn": change.get("decidedIn"),
        "operation": change["operation"],
        "summary": _describe_change(change),
        "customerId": change["customerId"],
        "batchId": change.get("batchId"),
        "documents": _references(change),
        "undoableUntil": undoable_until(ctx, change),
        "undoneBy": change["undoneBy"],
    }


def undoable_until(ctx: Context, change: StoredChange) -> datetime | None:
    """Return until when a change can be undone; None if it cannot.

    Its loads are in the unit that the company had then: once they have been converted, they are not restored.
    """
    until, converted_at = change.get("patchUntil"), ctx.caller.company.loads_converted_at
    has_loads = any(document["kind"] in _KINDS_WITH_LOADS for document in change["documents"])
    if has_loads and converted_at is not None and change["createdAt"] < converted_at:
        return None
    return until if change["undoable"] and until is not None and until > now() else None


def _references(change: StoredChange) -> list[DocumentReference]:
    return [
        {
            "kind": document["kind"],
            "_id": document["_id"],
            "action": "deleted" if document.get("softDeleted") else document["action"],
        }
        for document in change["documents"]
    ]


def _describe_change(change: StoredChange) -> str:
    """Return what a change did: first the sessions that it imported or removed, which are not among its documents."""
    documents = ", ".join(f"{counted} {action}" for action, counted in _count(_references(change)))
    described = (_describe_history(change), documents)
    return ", ".join(filter(None, described)) or _describe_proposal(change) or _describe_attention(change)


def _describe_history(change: StoredChange) -> str:
    """Return such as `12 sessions imported (hevy, 2024-01-08 to 2025-03-01)`; empty for other changes."""
    for event in change["events"]:
        if event["type"] in ("history.imported", "history.removed"):
            data = event["data"]
            count = data["sessions"]
            sessions = f"{count} session" if count == 1 else f"{count} sessions"
            verb = "imported" if event["type"] == "history.imported" else "of an import removed"
            source = f"{event['source']}, " if "source" in event else ""
            return f"{sessions} {verb} ({source}{data['from']} to {data['to']})"
    return ""


def _describe_proposal(change: StoredChange) -> str:
    """Return what was done to a proposal of an assistant, such as `1 proposal rejected`; empty for other changes."""
    for event in change["events"]:
        if event["type"] == "proposal.created":
            return "1 proposal created"
        if event["type"] == "proposal.decided":
            return f"1 proposal {event['data']['status']}"
    return ""


def _describe_attention(change: StoredChange) -> str:
    """Return such as `attention raised (inactive), attention cleared (missed_workout)`; empty for other changes."""
    parts = []
    for verb in ("raised", "cleared"):
        reasons = [str(each["data"]["reason"]) for each in change["events"] if each["type"] == f"attention.{verb}"]
        if reasons:
            parts.append(f"attention {verb} ({', '.join(reasons)})")
    return ", ".join(parts)


def name_kind(kind: str, count: int = 1) -> str:
    """Return the name of a kind of documents, such as `metric set`; in the plural unless `count` is 1."""
    singular, plural = _NAMES.get(kind, (kind.replace("_", " "), f"{kind.replace('_', ' ')}s"))
    return singular if count == 1 else plural


def _values(
    visibility: Visibility, reference: DocumentReference, document: Any, patch: dict[ObjectId, DocumentPatch]
) -> DocumentValues:
    kind = reference["kind"]
    before, after = (
        limit_values(visibility, kind, values) for values in public_values(document, patch.get(reference["_id"]))
    )
    return {**reference, "before": before, "after": after}


# --- Pages that follow what others do: requests that are held until there is an event that the page shows -------------
# They share the reads of the requests that wait for events: how many pages are open does not change what is read.


_CHANGES_A_STEP = 500
_CHECK_SECONDS = 5.0  # between two checks whether the page is still open


@dataclass(frozen=True)
class Followed:
    """The number to continue from, and whether there was an event."""

    position: int
    has_event: bool


async def find_position(ctx: Context) -> int:
    """Return the number to continue from for a page that is read afterwards."""
    return await batches.find_last_number(ctx)


async def wait_for_event(
    ctx: Context,
    position: int,
    types: Collection[EventType],
    is_shown: Callable[[ObjectId | None], bool],
    *,
    wait: float,
) -> Followed:
    """Wait up to `wait` seconds for an event of `types` after a number, about a client for whom `is_shown` is true.

    Whether the caller may still see it is checked by reading the page again. Raises CursorExpired for a number that is
    older than 30 days or ahead of the log, TooManyWaiting, CompanySuspended; Unauthorized and Forbidden if the caller's
    access has ended meanwhile.
    """
    deadline = asyncio.get_running_loop().time() + wait
    async with ctx.services.number_signals.hold(ctx.company_id, ctx.caller.credential_id, "page") as listener:
        while True:
            listener.event.clear()
            async with ctx.turn():
                key = (None, position, _CHANGES_A_STEP)
                read = partial(history.list_numbered, ctx, position, _CHANGES_A_STEP, since=now() - RETENTION)
                page = await listener.share(key, read)
                await listener.share("active", partial(service.require_active, ctx.services, ctx.company_id))
            events = (each for change in page.changes for each in change["events"])
            position = page.until
            if any(each["type"] in types and is_shown(each["customerId"]) for each in events):
                return Followed(position, has_event=True)
            has_changes = page.has_more or await wait_for_changes(ctx, listener, deadline, _CHECK_SECONDS)
            ctx = await ctx.with_current_caller()
            if not has_changes:
                return Followed(position, has_event=False)
