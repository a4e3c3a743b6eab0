"""Undo for assistants; the history, events and undo over REST."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from coaching_service.core.auth import CUSTOMERS, WEBHOOKS, coach, coach_with_any
from coaching_service.core.changes import history
from coaching_service.core.changes.models import StoredChange
from coaching_service.core.database.context import Context
from coaching_service.core.database.recording import DocumentChange
from coaching_service.core.errors import Conflict, CursorExpired, NotFound
from coaching_service.core.events import EVENT_TYPES, Accepted
from coaching_service.core.http.routes import Routes, list_of
from coaching_service.core.idempotency import Claim
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import Arguments, Reason, Tools, Written, count_span, find_reasons, typed
from coaching_service.core.validation import Identifier
from coaching_service.people import jobs
from coaching_service.people.changes import events, models, service
from coaching_service.people.changes.events import EVENT, EventList
from coaching_service.people.changes.models import UndoFailure
from coaching_service.people.customers import service as customers

tools = Tools()
_MAX_CLIENTS = 5
_CALL_AGAIN = "Call undo again with the same changeId to see its progress."
_WAIT_SECONDS, _POLL_SECONDS = 2.0, 0.1


class Undo(Arguments):
    """The change to undo."""

    changeId = Identifier(required=True, metadata={"description": "From a result, or get_activity."})


async def _wait(ctx: Context, change_id: ObjectId) -> None:
    """Wait up to two seconds until the change has its number, or the job that undoes the batch, if any, has ended."""
    if not await history.list_batch(ctx, change_id):
        await service.find_visible(ctx, change_id)
        return
    deadline = asyncio.get_running_loop().time() + _WAIT_SECONDS
    while asyncio.get_running_loop().time() < deadline:
        job = await jobs.find_last_undo(ctx, change_id)
        if job is None or not jobs.is_unfinished(job):
            return
        await asyncio.sleep(_POLL_SECONDS)


@tools.tool(
    "Undo a change",
    access=coach(),
    takes=Undo(),
    writes=True,
    destructive=True,
    confirms=(Reason.MANY_DAYS, Reason.MANY_CLIENTS),
    prepare=_wait,
)
async def undo(ctx: Context, change_id: ObjectId) -> Written:
    """Undo a change that you have made, within 30 days, unless something of it has changed since. An undo can be
    undone. Very many clients are restored by a job: call again for its progress."""
    changes = await service.list_visible(ctx, change_id)
    if len(changes) == 1 and (job_id := await service.begin_undo_of_import(ctx, changes[0])) is not None:
        about = await _describe_clients(ctx, _list_clients(changes))
        line = f"Began to remove what this import has created{about}; what was changed or used since stays."
        return Written(line, {"jobId": job_id}, leads_back=True)
    documents = [each for change in changes for each in change["documents"]]
    if created := [each["_id"] for each in documents if (each["kind"], each["action"]) == ("customer", "created")]:
        about = await _describe_clients(ctx, created)
        await service.delete_created_clients(ctx, changes, created)
        count = f"{len(created)} new client{'s' if len(created) > 1 else ''}{about.replace(' of ', ' ', 1)}"
        return Written(f"Removed {count} for good. This cannot be undone.", leads_back=True)
    if jobs.is_job(ctx, len(changes)):
        about = f"{service.describe_undo(changes)}{await _describe_clients(ctx, _list_clients(changes))}"
        return await _begin_or_describe(ctx, change_id, changes, about)
    failed = await service.undo_completely(ctx, change_id, changes)
    restored = list(ctx.changes.documents.values())
    clients = list(dict.fromkeys(each.client_id for each in restored if each.client_id is not None))
    days = _list_days(restored)
    about = f"{await _describe_clients(ctx, clients)}{_describe_dates(days)}"
    # The days from the first to the last whose workouts are changed: before or after, whichever are more.
    day_count = max(count_span(filter(None, each)) for each in ([day[0] for day in days], [day[1] for day in days]))
    undone = [change for change in changes if change["_id"] not in failed]
    return Written(
        f"Undid: {service.describe_undo(undone)}{about}.{await _describe_failed(ctx, changes, failed)}",
        reasons=find_reasons(days=day_count),
        leads_back=all(change["via"] == "assistant" for change in changes),
    )


async def _describe_failed(
    ctx: Context, changes: Sequence[StoredChange], failed: Mapping[ObjectId, UndoFailure]
) -> str:
    """Return in words what could not be undone, by reason; empty if nothing."""
    sentences = []
    for message in dict.fromkeys(failure["message"] for failure in failed.values()):
        of_reason = [each for each in changes if each["_id"] in failed and failed[each["_id"]]["message"] == message]
        clients = await _describe_clients(ctx, _list_clients(of_reason))
        sentences.append(f" What was done{clients.replace(' of ', ' for ', 1)} stays: {message}.")
    return "".join(sentences)


def _list_clients(changes: Sequence[StoredChange]) -> list[ObjectId]:
    return list(dict.fromkeys(each["customerId"] for each in changes if each["customerId"] is not None))


async def _describe_clients(ctx: Context, ids: Sequence[ObjectId]) -> str:
    references = await customers.find_references(ctx, ids[:_MAX_CLIENTS])
    names = [reference["name"] for reference in references.values()]
    more = f" and {len(ids) - _MAX_CLIENTS:,} more" if len(ids) > _MAX_CLIENTS else ""
    return f" of {', '.join(map(typed, names))}{more}" if names else ""


def _describe_dates(days: Sequence[tuple[str | None, str | None]]) -> str:
    """Return where the workouts are now, else where they were; of a move from one day to another, both."""
    if len(set(days)) == 1 and None not in days[0] and days[0][0] != days[0][1]:
        return f", moved back from {days[0][0]} to {days[0][1]}"
    dates = sorted({after or before or "" for before, after in days})
    return "" if not dates else f", {dates[0]}" if dates[0] == dates[-1] else f", {dates[0]} to {dates[-1]}"


def _list_days(documents: Sequence[DocumentChange]) -> list[tuple[str | None, str | None]]:
    """Return the date of each workout that is changed, before and after; None where it was not, or is not any more."""
    days = []
    for workout in documents:
        if workout.history.kind != "workout":
            continue
        before, after = workout.values.get("date", (workout.known["date"],) * 2)
        was = before if workout.action != "created" and isinstance(before, str) else None
        now = after if workout.action != "deleted" and isinstance(after, str) else None
        if was or now:
            days.append((was, now))
    return days


async def _begin_or_describe(
    ctx: Context, change_id: ObjectId, changes: Sequence[StoredChange], described: str
) -> Written:
    """Begin a job that undoes the complete batch `changes`, or return how far the current job is.

    `described` is what undoing them does. Raises what begin_job raises, and Forbidden.
    """
    job = await jobs.find_last_undo(ctx, change_id)
    if job is not None:
        jobs.require_readable(ctx)
        identifiers = {"changeId": job["batchId"], "jobId": job["_id"]}
    if job is not None and job["status"] == "done":
        result = job["result"] or {}
        left = f"; {len(result['failed']):,} could not be, because of later changes" if result["failed"] else ""
        line = f"A job has undone this: {result['ok']:,} records are as they were before{left}."
        return Written(line, identifiers)
    if job is not None and jobs.is_unfinished(job):
        jobs.require_visible(ctx, job)
        line = f"A job is undoing this: {job['done']:,} of {job['total']:,} changes are processed. {_CALL_AGAIN}"
        return Written(line, identifiers)
    accepted = await service.begin_job(ctx, change_id)
    return Written(
        f"Began a job that undoes {len(changes):,} changes: {described}. {_CALL_AGAIN}",
        {"changeId": ctx.change_ids[-1], "jobId": accepted.job_id},
        find_reasons(clients=len({change["customerId"] for change in changes})),
        details={"progressUrl": f"{ctx.services.base_url}/app/jobs/{accepted.job_id}"},
    )


# --- The history, events and undo over REST ---------------------------------------------------------------------------


_PATHS = {"changeId": "The change, or the batch of a bulk operation."}
routes = Routes("/coach", tag="Changes", path_descriptions=_PATHS)


@routes.get("/changes", access=coach(CUSTOMERS.VIEW))
async def list_changes(ctx: Context, query: models.HistoryQuery) -> models.ChangeList:
    """List what was changed, newest first.

    Changes about clients or areas that the caller may not see are left out.
    """
    return await service.list_changes(
        ctx,
        limit=query["limit"],
        after=query["after"],
        customer_id=query["customerId"],
        via=query["via"],
        actor_id=query["actorId"],
        since=query["since"],
        credential_id=ctx.caller.credential_id if query["mine"] else None,
    )


@routes.get("/changes/{changeId}", access=coach(CUSTOMERS.VIEW), errors=(NotFound,))
async def get_change(ctx: Context, change_id: ObjectId) -> models.ChangeDetails:
    """Read a change with the values before and after.

    Values are stored for 30 days, and only for changes that can be undone.
    """
    return await service.get_change(ctx, change_id)


@routes.post(
    "/changes/{changeId}/undo",
    access=coach(),
    status=200,
    returns=models.UndoResult,
    errors=(NotFound, Conflict),
    request_class="bulk",
    resumable=True,
)
async def undo_change(ctx: Context, change_id: ObjectId, claim: Claim | None) -> models.UndoResult | Accepted:
    """Undo a change, or all changes of a bulk operation by their `batchId`.

    Documents are restored unless they have been changed since. The undo is a change itself and can be undone. It needs
    the permission of the operation that reverses the change. Creating and deleting a client, uploads, messages, mail,
    keys and the team cannot be undone. A batch of more than 500 changes is undone by a job.
    """
    return await service.undo_or_begin_job(ctx, change_id, claim)


@routes.get("/events/samples", access=coach_with_any(CUSTOMERS.VIEW, WEBHOOKS), returns=list_of(EVENT))
async def list_event_samples(_: Context, query: models.SampleQuery) -> list[models.Event]:
    """List a sample of each type of event.

    All fields that its data can have, with invented identifiers that are always the same: for programs that have to
    know what they will receive.
    """
    return [events.sample_of(each) for each in dict.fromkeys(query["types"] or EVENT_TYPES)]


@routes.get("/events", access=coach(CUSTOMERS.VIEW), returns=EventList, errors=(CursorExpired,), request_class="held")
async def list_events(ctx: Context, query: models.EventQuery) -> models.EventPage:
    """List events, oldest first; with `wait`, wait for the next one.

    Events are available for 30 days. Those about clients or areas that the caller may not see are left out.
    """
    page = await events.list_events(
        ctx,
        limit=query["limit"],
        after=query["after"],
        types=query["types"],
        customer_id=query["customerId"],
        wait=query["wait"],
    )
    if page["docs"]:
        ctx.clients_seen.add(query["customerId"])
    return page
