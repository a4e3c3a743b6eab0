"""The history of a company: who changed what, when, and through which interface."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Literal

from coaching_service.core import auth, errors, idempotency
from coaching_service.core.changes import history, undo
from coaching_service.core.changes.models import StoredChange
from coaching_service.core.changes.undo import public_values
from coaching_service.core.database.context import Context, transactional
from coaching_service.core.database.declared import Action
from coaching_service.core.database.documents import Filter, now
from coaching_service.core.database.recording import Interface, interface_of
from coaching_service.core.events import Accepted, DomainEvent, EventType
from coaching_service.core.idempotency import Claim
from coaching_service.core.ids import ObjectId
from coaching_service.core.list_selection import ListPart
from coaching_service.core.mcp import typed, typed_line
from coaching_service.people import account, jobs
from coaching_service.people.changes import models as change_models
from coaching_service.people.changes.events import RETENTION, wait_for_changes
from coaching_service.people.customers import bulk
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import RENEWAL
from coaching_service.people.jobs import Outcome, StoredJob

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
    "message_template": ("message template", "message templates"),
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
) -> change_models.ChangeList:
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
    visibility = await change_models.load_visibility(ctx)
    if not visibility.allows(customer_id=customer_id):
        return {"docs": [], "nextCursor": None, "hasMore": False}
    ctx.clients_seen.add(customer_id)
    bound, size = list_part.condition(), limit + 1
    page: list[StoredChange] = []
    last: StoredChange | None = None
    for _ in range(_MAX_READS):
        read = await history.list_newest(ctx, {"$and": [where, bound]}, size)
        limited = (change_models.limit_change(visibility, change) for change in read)
        page += [change for change in limited if change is not None]
        last = read[-1] if len(read) == size else None
        if last is None or len(page) > limit:
            break
        bound, size = list_part.condition_after(last), _CHANGES_A_READ
    return list_part.by_cursor(page, lambda change: _summary(ctx, change), last)


async def list_newer(
    ctx: Context, customer_id: ObjectId | None, document_id: ObjectId, version: int, limit: int
) -> list[change_models.ChangeSummary]:
    """Return the changes of a document after a version, made within a day, that the caller may see: newest first.

    `customer_id`: the client whose document it is; None for the company's.
    """
    newer: Filter = {"_id": document_id, "toVersion": {"$gt": version}}
    where: Filter = {
        "customerId": customer_id,
        "createdAt": {"$gte": now() - _RECENT},
        "documents": {"$elemMatch": newer},
    }
    visibility = await change_models.load_visibility(ctx)
    read = await history.list_newest(ctx, where, limit)
    limited = (change_models.limit_change(visibility, change) for change in read)
    return [_summary(ctx, change) for change in limited if change is not None]


async def get_summaries(ctx: Context, change_ids: Sequence[ObjectId]) -> dict[ObjectId, change_models.ChangeSummary]:
    """Return those changes that the caller may see."""
    visibility = await change_models.load_visibility(ctx)
    limited = (change_models.limit_change(visibility, change) for change in await history.list_by_ids(ctx, change_ids))
    return {change["_id"]: _summary(ctx, change) for change in limited if change is not None}


async def get_change(ctx: Context, change_id: ObjectId) -> change_models.ChangeDetails:
    """Return a change with the values before and after. Raises NotFound if the caller may not see such a change."""
    visibility = await change_models.load_visibility(ctx)
    change = await find_visible(ctx, change_id, visibility)
    ctx.clients_seen.add(change["customerId"])
    patch = await history.load_patches(ctx, [change])
    documents: list[change_models.DocumentValues] = []
    for reference, document in zip(_references(change), change["documents"], strict=True):
        before, after = (
            change_models.limit_values(visibility, reference["kind"], values)
            for values in public_values(document, patch.get(reference["_id"]))
        )
        documents.append({**reference, "before": before, "after": after})
    return {**_summary(ctx, change), "documents": documents}


async def find_visible(ctx: Context, change_id: ObjectId, visibility: auth.Visibility | None = None) -> StoredChange:
    """Return what the caller may see of a change, once it is numbered: waits up to two seconds. Raises NotFound."""
    visibility = visibility or await change_models.load_visibility(ctx)
    deadline = asyncio.get_running_loop().time() + _WAIT_SECONDS
    while True:
        stored = await history.find_one(ctx, change_id)
        change = None if stored is None else change_models.limit_change(visibility, stored)
        if change is None:
            raise errors.NotFound("change")
        if "lastSeq" in change or asyncio.get_running_loop().time() > deadline:
            return change
        await asyncio.sleep(_POLL_SECONDS)


async def list_visible(ctx: Context, change_id: ObjectId) -> list[StoredChange]:
    """Return what the caller may see of a change, or of the changes of a batch. Raises NotFound for nothing."""
    visibility = await change_models.load_visibility(ctx)
    if not (batch := await history.list_batch(ctx, change_id)):
        return [await find_visible(ctx, change_id, visibility)]
    limited = (change_models.limit_change(visibility, change) for change in batch)
    return [change for change in limited if change is not None]


def describe_undo(changes: Sequence[StoredChange]) -> str:
    """Return what undoing changes does in words, such as `removed 3 workouts and restored 1 client`."""
    references = [reference for change in changes for reference in _references(change)]
    return " and ".join(f"{_REVERSED[action]} {counted}" for action, counted in _count(references))


def _count(references: Iterable[change_models.DocumentReference]) -> Iterator[tuple[Action, str]]:
    """Yield each action with a number of documents of one kind, such as `3 workouts`."""
    counts = Counter((each["kind"], each["action"]) for each in references)
    for (kind, action), count in sorted(counts.items(), key=lambda each: _ACTIONS.index(each[0][1])):
        yield action, f"{count} {name_kind(kind, count)}"


def _summary(ctx: Context, change: StoredChange) -> change_models.ChangeSummary:
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


def _references(change: StoredChange) -> list[change_models.DocumentReference]:
    return [
        {
            "kind": document["kind"],
            "_id": document["_id"],
            "action": "deleted" if document.get("softDeleted") else document["action"],
        }
        for document in change["documents"]
    ]


def _describe_change(change: StoredChange) -> str:
    """Return what a change did: first the sessions that it imported or removed, which are not among its documents.

    Such as `12 sessions imported (hevy, 2024-01-08 to 2025-03-01)`, and of changes without documents `1 proposal
    rejected`, or `attention raised (inactive), attention cleared (missed_workout)`.
    """
    proposal, described = "", [f"{counted} {action}" for action, counted in _count(_references(change))]
    for event in change["events"]:
        if event["type"] == "proposal.created":
            proposal = proposal or "1 proposal created"
        elif event["type"] == "proposal.decided":
            proposal = proposal or f"1 proposal {event['data']['status']}"
        elif event["type"] in ("history.imported", "history.removed"):
            data = event["data"]
            count = data["sessions"]
            sessions = f"{count} session" if count == 1 else f"{count} sessions"
            verb = "imported" if event["type"] == "history.imported" else "of an import removed"
            source = f"{event['source']}, " if "source" in event else ""
            described.insert(0, f"{sessions} {verb} ({source}{data['from']} to {data['to']})")
            break
    if described or proposal:
        return ", ".join(described) or proposal
    for verb in ("raised", "cleared"):
        reasons = [str(each["data"]["reason"]) for each in change["events"] if each["type"] == f"attention.{verb}"]
        described += [f"attention {verb} ({', '.join(reasons)})"] if reasons else []
    return ", ".join(described)


def name_kind(kind: str, count: int = 1) -> str:
    """Return the name of a kind of documents, such as `metric set`; in the plural unless `count` is 1."""
    singular, plural = _NAMES.get(kind, (kind.replace("_", " "), f"{kind.replace('_', ' ')}s"))
    return singular if count == 1 else plural


# --- Pages that follow what others do: requests that are held until there is an event that the page shows -------------
# They share the reads of the requests that wait for events: how many pages are open does not change what is read.


_CHANGES_A_STEP = 500
_CHECK_SECONDS = 5.0  # between two checks whether the page is still open


async def wait_for_event(
    ctx: Context,
    position: int,
    types: Collection[EventType],
    is_shown: Callable[[ObjectId | None], bool],
    *,
    wait: float,
) -> tuple[int, bool]:
    """Wait up to `wait` seconds for an event of `types` after a number, about a client for whom `is_shown` is true.

    Returns the number to continue from, and whether there was one. Whether the caller may still see it is checked by
    reading the page again. Raises CursorExpired for a number that is older than 30 days or ahead of the log,
    TooManyWaiting, CompanySuspended; Unauthorized and Forbidden if the caller's access has ended meanwhile.
    """
    deadline = asyncio.get_running_loop().time() + wait
    async with ctx.services.number_signals.hold(ctx.company_id, ctx.caller.credential_id, "page") as listener:
        while True:
            listener.event.clear()
            async with ctx.turn():
                key = (None, position, _CHANGES_A_STEP)
                read = partial(history.list_numbered, ctx, position, _CHANGES_A_STEP, since=now() - RETENTION)
                page = await listener.share(key, read)
                await listener.share("active", partial(account.require_active, ctx.services, ctx.company_id))
            events = (each for change in page.changes for each in change["events"])
            position = page.until
            if any(each["type"] in types and is_shown(each["customerId"]) for each in events):
                return position, True
            has_changes = page.has_more or await wait_for_changes(ctx, listener, deadline, _CHECK_SECONDS)
            ctx = await ctx.with_current_caller()
            if not has_changes:
                return position, False


# --- Undoing a change, or all changes of a bulk operation -------------------------------------------------------------


# What a log writes together with the workout, and other operations alone, with their area.
_LOGGED_KINDS = ((auth.METRICS, {"metrics_assignment", "metric_value"}), (auth.FORMS, {"form_response"}))

# Of a program, of a shared exercise, of the clients of a group, and of conversations.
_PARTS = {"workout", "exercise_override", "group_program", "message_template"}

_LONGEST_NAME, _MAX_NAMED = 120, 5
_CREATION_PERIOD = timedelta(hours=1)  # within which an assistant may delete the clients whom it has created
_AT_ONCE = 100  # changes between two reports of a job's progress
_RECORDS = 100  # clients and documents of one transaction, unless one change has more


@dataclass(frozen=True)
class ImportUndoRequested(DomainEvent):
    """An import is to be undone, by a job with this identifier."""

    import_id: ObjectId
    job_id: ObjectId


async def undo_change(ctx: Context, change_id: ObjectId, claim: Claim | None = None) -> change_models.UndoResult:
    """Restore the documents of a change, or of every change of a batch, as they were before it.

    Each change is undone completely or not at all; changes of a batch that cannot be undone are in `failed`. What was
    undone under the same `claim` is counted and not undone again. Raises
    NotFound if the caller may not see such a change, Forbidden without the permission of the reverse operation,
    Conflict (NOT_UNDOABLE, VERSION_CONFLICT) for a single change that cannot be undone, and for a batch if none can.
    """
    if (batch := await _load_batch(ctx, change_id)) is None:
        await find_visible(ctx, change_id)
        if (change := await history.find_one(ctx, change_id)) is None:  # erased meanwhile
            raise errors.NotFound("change")
        undone_by = change["undoneBy"]
        if claim is None or not await idempotency.find_done_steps(ctx, claim, [change_id]):
            undone_by = await _undo(ctx, [change], claim)
        elif undone_by is not None:
            ctx.change_ids.append(undone_by)
        return {"changeId": undone_by, "ok": len(change["documents"]), "failed": []}
    ctx = replace(ctx, batch_id=ObjectId() if claim is None else jobs.batch_of(claim))
    ok, failed = await _undo_each(ctx, list(reversed(batch)), claim)
    if ok and not ctx.change_ids and ctx.batch_id is not None:
        ctx.change_ids.append(ctx.batch_id)  # of an earlier request with this claim
    return {"changeId": ctx.batch_id if ok else None, "ok": ok, "failed": failed}


async def undo_completely(
    ctx: Context, change_id: ObjectId, changes: Sequence[StoredChange]
) -> dict[ObjectId, change_models.UndoFailure]:
    """Undo a change, or the batch `changes`; returns why some of it stays, such as messages that were read, by change.

    Raises Conflict that names the first document that has been changed since, or says why all stays or that it has been
    undone already, and what undo_change raises.
    """
    with_documents = [change for change in changes if change["documents"]]
    if undone := [change for change in with_documents if change["undoneBy"] is not None]:
        about = "This change" if len(undone) == len(with_documents) else "Part of this change"
        raise errors.Conflict(f"{about} has been undone already", code="VERSION_CONFLICT")
    try:
        result = await undo_change(ctx, change_id)
    except undo.DocumentsMoved as error:
        raise await _name_conflict(ctx, changes, error.details["documents"][0]["_id"]) from None
    failed = {each["documentId"]: each for each in result["failed"]}
    for failure in failed.values():
        if failure["code"] != "NOT_UNDOABLE":
            raise await _name_conflict(ctx, changes, failure["documentId"])
    if failed and not result["ok"]:
        raise errors.Conflict(next(iter(failed.values()))["message"], code="NOT_UNDOABLE")
    documents = [(change["_id"], document["_id"]) for change in changes for document in change["documents"]]
    return {change: failed[document] for change, document in documents if document in failed}


async def _name_conflict(ctx: Context, changes: Sequence[StoredChange], document_id: ObjectId) -> errors.Conflict:
    """Return the error for a document that has been changed since: its kind, and its name and date if known."""
    names = []
    for change in changes:
        if all(document["_id"] != document_id for document in change["documents"]):
            continue
        for document in (await get_change(ctx, change["_id"]))["documents"]:
            values = document["after"] or document["before"] or {}
            if document["_id"] == document_id:
                known = [typed_line(str(values[name]), _LONGEST_NAME) for name in ("name", "title") if values.get(name)]
                day = [f"of {values['date']}"] if isinstance(values.get("date"), str) else []
                names.append(" ".join([name_kind(document["kind"]), *known, *day, f"[{document_id}]"]))
    about = names[0] if names else f"record [{document_id}]"
    message = f"This cannot be undone any more: the {about} has been changed again since"
    return errors.Conflict(message, code="VERSION_CONFLICT")


async def undo_or_begin_job(
    ctx: Context, change_id: ObjectId, claim: Claim | None = None
) -> change_models.UndoResult | Accepted:
    """Undo a change or a batch as `undo_change`, or queue a job that does.

    A job does it for a batch of more than 500 changes, or if the caller prefers one: the job that does it already, if
    there is one. Raises Conflict (JOB_RUNNING) if the caller may not see that job.
    """
    batch = await _load_batch(ctx, change_id)
    if batch is None or not jobs.is_job(ctx, len(batch)):
        return await undo_change(ctx, change_id, claim)
    return await _begin_job(ctx, change_id, batch, claim)


async def begin_job(ctx: Context, change_id: ObjectId) -> Accepted:
    """Queue a job that undoes a batch, or return the current one. Raises as undo_or_begin_job."""
    if (batch := await _load_batch(ctx, change_id)) is None:
        raise errors.NotFound("change")
    return await _begin_job(ctx, change_id, batch, None)


async def _begin_job(ctx: Context, change_id: ObjectId, batch: list[StoredChange], claim: Claim | None) -> Accepted:
    job = await jobs.find_last_undo(ctx, change_id)
    if job is not None and jobs.is_unfinished(job):
        return jobs.join(ctx, job)
    ids = [change["_id"] for change in reversed(batch)]
    needed = {permission for change in batch for permission in _reverse_permissions(change)}
    return await jobs.begin_batch(ctx, "undo", ids, {}, claim, permissions=needed, change_id=change_id)


async def _load_batch(ctx: Context, change_id: ObjectId) -> list[StoredChange] | None:
    """Return the changes of a batch that the caller sees and may undo; None if there is no such batch."""
    batch = await history.list_batch(ctx, change_id)
    if not batch:
        return None
    visibility = await change_models.load_visibility(ctx)
    visible = [change for change in batch if change_models.limit_change(visibility, change) is not None]
    if not visible:
        raise errors.NotFound("change")
    if not any(undoable_until(ctx, change) for change in visible):
        raise _not_undoable()
    for change in visible:
        _require_own(ctx, change)
        _require_permissions(ctx, change)
    return visible


async def delete_created_clients(ctx: Context, changes: Sequence[StoredChange], ids: Sequence[ObjectId]) -> None:
    """Delete the clients whom calls of the caller, an assistant, have created, in the caller's transaction.

    Raises Conflict an hour after their creation, or if one has been used or changed since, NotFound, and Forbidden.
    """
    for change in changes:
        _require_own(ctx, change)
        if change["via"] != "assistant":
            raise _not_undoable()
    auth.require_permission(ctx.caller, auth.CUSTOMERS.DELETE)
    created_at = min(change["createdAt"] for change in changes)
    if created_at < now() - _CREATION_PERIOD:
        raise errors.Conflict("A new client can be deleted within the hour; archive them instead", code="NOT_UNDOABLE")
    await customers.lock_all_visible(ctx, ids)
    used = await bulk.find_used(ctx, ids, created_at)
    used |= {each for each, version in (await customers.list_versions(ctx, ids)).items() if version}
    if used:
        names = [*(await bulk.load_names(ctx, list(used), _MAX_NAMED)).values()]
        message = f"Something was added or changed since: {', '.join(map(typed, names))}; archive them instead"
        raise errors.Conflict(message, code="NOT_UNDOABLE")
    await bulk.erase(ctx, list(ids))


async def begin_undo_of_import(ctx: Context, change: StoredChange) -> ObjectId | None:
    """Queue the job that undoes the import that a change has done, in the caller's transaction, and return it.

    None for another change. Raises Conflict for an import of someone else, and Forbidden.
    """
    imports = [event["data"]["importId"] for event in change["events"] if event["type"] == "history.imported"]
    if not imports or not isinstance(imports[0], ObjectId):
        return None
    _require_own(ctx, change)
    auth.require_permission(ctx.caller, auth.CUSTOMERS.EDIT)
    job_id = ObjectId()
    await ctx.publish(ImportUndoRequested(imports[0], job_id))
    return job_id


async def is_undoable(ctx: Context, change_id: ObjectId) -> bool:
    """Return whether the caller may undo a change or a batch, as far as that is known before its documents are read."""
    change = await history.find_one(ctx, change_id)
    try:
        if change is None:
            return await _load_batch(ctx, change_id) is not None
        if change_models.limit_change(await change_models.load_visibility(ctx), change) is None:
            return False
        _require_undoable(ctx, change)
    except (errors.NotFound, errors.Conflict, errors.Forbidden):
        return False
    return ctx.caller.permissions.issuperset(_reverse_permissions(change))


async def is_batch(ctx: Context, change_id: ObjectId) -> bool:
    """Return whether changes of a batch have this identifier."""
    return bool(await history.list_batch(ctx, change_id))


async def _process(ctx: Context, _: StoredJob, ids: list[ObjectId], claim: Claim) -> Outcome:
    """Undo changes of a job; changes of clients who have been erased meanwhile are gone."""
    changes = await history.list_by_ids(ctx, ids)
    ctx = replace(ctx, batch_id=jobs.batch_of(claim))
    ok, failed = await _undo_each(ctx, changes, claim, is_job=True)
    return Outcome(ok, [dict(each) for each in failed])


async def _undo_each(
    ctx: Context, changes: list[StoredChange], claim: Claim | None, *, is_job: bool = False
) -> tuple[int, list[change_models.UndoFailure]]:
    """Undo changes in this order; returns how many documents were restored, and which were not."""
    steps = [change["_id"] for change in changes]
    done = {} if claim is None else await idempotency.find_done_steps(ctx, claim, steps)
    failed: list[change_models.UndoFailure] = []
    count = sum(len(change["documents"]) for change in changes if change["_id"] in done)
    for group in _group(change for change in changes if change["_id"] not in done):
        restored, failed_of_group = await _undo_group(ctx, group, claim, is_job=is_job)
        count, failed = count + restored, failed + failed_of_group
    return count, failed


def _group(changes: Iterable[StoredChange]) -> Iterator[list[StoredChange]]:
    """Yield changes for one transaction each: of different clients and documents, and not too many."""
    group: list[StoredChange] = []
    records: set[ObjectId | None] = set()
    for change in changes:
        own = {change["customerId"], *(document["_id"] for document in change["documents"])}
        if group and (None in own | records or own & records or len(own) + len(records) > _RECORDS):
            yield group
            group, records = [], set()
        group.append(change)
        records |= own
    if group:
        yield group


async def _undo_group(
    ctx: Context, changes: list[StoredChange], claim: Claim | None, *, is_job: bool
) -> tuple[int, list[change_models.UndoFailure]]:
    """Undo changes in one transaction, or if that fails each half of them; returns what _undo_each returns."""
    try:
        await _undo(ctx, changes, claim)
    except idempotency.IdempotencyKeyReused:
        raise
    except errors.ServiceError as error:
        if is_job and isinstance(error, errors.Unavailable):
            raise
        if len(changes) > 1:
            middle = len(changes) // 2
            first, failed = await _undo_group(ctx, changes[:middle], claim, is_job=is_job)
            second, failed_later = await _undo_group(ctx, changes[middle:], claim, is_job=is_job)
            return first + second, failed + failed_later
        moved = error.details["documents"] if isinstance(error, undo.DocumentsMoved) else changes[0]["documents"]
        code = error.code or error.reason
        return 0, [{"documentId": document["_id"], "code": code, "message": str(error)} for document in moved]
    return sum(len(change["documents"]) for change in changes), []


@transactional
async def _undo(ctx: Context, changes: Sequence[StoredChange], claim: Claim | None) -> ObjectId:
    """Undo changes, all or none, and return the change or batch that does it."""
    clients = {change["_id"]: change["customerId"] for change in changes}
    if of_clients := [client for client in clients.values() if client is not None]:
        await customers.lock_all_visible(ctx, of_clients)
    for change in changes:
        _require_undoable(ctx, change)
        _require_permissions(ctx, change)
    if claim is not None:
        await idempotency.claim_steps(ctx, claim, list(clients), clients.__getitem__)
    await undo.restore(ctx, changes, await history.load_patches(ctx, changes))
    return ctx.batch_id or ctx.changes.id


def _require_undoable(ctx: Context, change: StoredChange) -> None:
    """Raise Conflict if the change cannot be undone at all, or not by the caller."""
    if undoable_until(ctx, change) is None:
        raise _not_undoable()
    _require_own(ctx, change)
    if change["undoneBy"] is not None:
        raise errors.Conflict("This change has been undone already", code="VERSION_CONFLICT")


def _require_own(ctx: Context, change: StoredChange) -> None:
    if interface_of(ctx) == "assistant" and change["credentialId"] != ctx.caller.credential_id:
        raise errors.Conflict("An assistant can undo only what it has changed itself", code="NOT_UNDOABLE")


def _not_undoable() -> errors.Conflict:
    return errors.Conflict("This change cannot be undone", code="NOT_UNDOABLE")


def _require_permissions(ctx: Context, change: StoredChange) -> None:
    for permission in _reverse_permissions(change):
        auth.require_permission(ctx.caller, permission)


def _reverse_permissions(change: StoredChange) -> Iterator[str]:
    kinds = {document["kind"] for document in change["documents"]}
    if change["customerId"] is not None:
        yield next((area.EDIT for area, logged in _LOGGED_KINDS if kinds <= logged), auth.CUSTOMERS.EDIT)
        return
    for document in change["documents"]:
        if document["kind"] != "workout" or "program" not in kinds:  # a program is deleted with its workouts
            area, action = change_models.AREAS[document["kind"]], document["action"]
            is_edited = document["kind"] in _PARTS or (action == "changed" and not document.get("softDeleted"))
            yield area.EDIT if is_edited else area.DELETE if action == "created" else area.CREATE


STEP = jobs.kind_of_step("undo")
run_step = jobs.step_of(_process, _AT_ONCE)
