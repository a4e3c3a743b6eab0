"""Undo for assistants."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from coaching_service.core.auth import coach
from coaching_service.core.changes import history
from coaching_service.core.changes.models import StoredChange
from coaching_service.core.database.context import Context
from coaching_service.core.database.recording import DocumentChange
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import results
from coaching_service.core.mcp.arguments import Arguments
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.validation import Identifier
from coaching_service.people import jobs
from coaching_service.people.changes import service as undoing
from coaching_service.people.changes.models import UndoFailure
from coaching_service.people.customers import service as customers
from coaching_service.people.jobs import StoredJob

tools = Tools()
_MAX_CLIENTS = 5
_CALL_AGAIN = "Call undo again with the same changeId to see its progress."
_WAIT_SECONDS, _POLL_SECONDS = 2.0, 0.1


class Undo(Arguments):
    """The change to undo."""

    changeId = Identifier(required=True, metadata={"description": "From a result, or get_activity."})


async def _wait(ctx: Context, change_id: ObjectId) -> None:
    """Wait until the change has its number: the transaction could not see it; or for the job that undoes the batch."""
    if not await history.list_batch(ctx, change_id):
        await undoing.find_visible(ctx, change_id)
    else:
        await _wait_for_end(ctx, change_id)


async def _wait_for_end(ctx: Context, change_id: ObjectId) -> None:
    """Wait up to two seconds until the job that undoes a batch, if there is one, has ended."""
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
    confirms=(results.Reason.MANY_DAYS, results.Reason.MANY_CLIENTS),
    prepare=_wait,
)
async def undo(ctx: Context, change_id: ObjectId) -> results.Written:
    """Undo a change that you have made, within 30 days, unless something of it has changed since. An undo can be
    undone. Very many clients are restored by a job: call again for its progress."""
    changes = await undoing.list_visible(ctx, change_id)
    if len(changes) == 1 and (import_id := undoing.find_import(changes[0])) is not None:
        job_id = await undoing.begin_undo_of_import(ctx, changes[0], import_id)
        about = await _describe_clients(ctx, _list_clients(changes))
        line = f"Began to remove what this import has created{about}; what was changed or used since stays."
        return results.Written(line, {"jobId": job_id}, leads_back=True)
    documents = [each for change in changes for each in change["documents"]]
    if created := [each["_id"] for each in documents if (each["kind"], each["action"]) == ("customer", "created")]:
        about = await _describe_clients(ctx, created)
        await undoing.delete_created_clients(ctx, changes, created)
        count = f"{len(created)} new client{'s' if len(created) > 1 else ''}{about.replace(' of ', ' ', 1)}"
        return results.Written(f"Removed {count} for good. This cannot be undone.", leads_back=True)
    if jobs.is_job(ctx, len(changes)):
        about = f"{undoing.describe_undo(changes)}{await _describe_clients(ctx, _list_clients(changes))}"
        return await _begin_or_describe(ctx, change_id, changes, about)
    failed = await undoing.undo_completely(ctx, change_id, changes)
    restored = list(ctx.changes.documents.values())
    clients = list(dict.fromkeys(each.client_id for each in restored if each.client_id is not None))
    about = f"{await _describe_clients(ctx, clients)}{_describe_dates(restored)}"
    undone = [change for change in changes if change["_id"] not in failed]
    return results.Written(
        f"Undid: {undoing.describe_undo(undone)}{about}.{await _describe_failed(ctx, changes, failed)}",
        reasons=results.find_reasons(days=_count_days(restored)),
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
    """Return clients in words."""
    references = await customers.find_references(ctx, ids[:_MAX_CLIENTS])
    names = [reference["name"] for reference in references.values()]
    more = f" and {len(ids) - _MAX_CLIENTS:,} more" if len(ids) > _MAX_CLIENTS else ""
    return f" of {', '.join(map(results.typed, names))}{more}" if names else ""


def _describe_dates(documents: Sequence[DocumentChange]) -> str:
    """Return where the workouts are now, else where they were; of a move from one day to another, both."""
    days = _list_days(documents)
    if len(set(days)) == 1 and None not in days[0] and days[0][0] != days[0][1]:
        return f", moved back from {days[0][0]} to {days[0][1]}"
    dates = sorted({after or before or "" for before, after in days})
    return "" if not dates else f", {dates[0]}" if dates[0] == dates[-1] else f", {dates[0]} to {dates[-1]}"


def _count_days(documents: Sequence[DocumentChange]) -> int:
    """Return the days from the first to the last whose workouts are changed: before or after, whichever are more."""
    days = _list_days(documents)
    return max(results.count_span(filter(None, each)) for each in ((day[0] for day in days), (day[1] for day in days)))


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
) -> results.Written:
    """Begin a job that undoes the complete batch `changes`, or return how far the current job is.

    `described` is what undoing them does. Raises what begin_job raises, and Forbidden.
    """
    job = await jobs.find_last_undo(ctx, change_id)
    if job is not None:
        jobs.require_readable(ctx)
    if job is not None and job["status"] == "done":
        return results.Written(_describe_result(job), _identifiers(job["_id"], job["batchId"]))
    if job is not None and jobs.is_unfinished(job):
        jobs.require_visible(ctx, job)
        line = f"A job is undoing this: {job['done']:,} of {job['total']:,} changes are processed. {_CALL_AGAIN}"
        return results.Written(line, _identifiers(job["_id"], job["batchId"]))
    accepted = await undoing.begin_job(ctx, change_id)
    return results.Written(
        f"Began a job that undoes {len(changes):,} changes: {described}. {_CALL_AGAIN}",
        _identifiers(accepted.job_id, ctx.change_ids[-1]),
        results.find_reasons(clients=len({change["customerId"] for change in changes})),
        details={"progressUrl": f"{ctx.services.base_url}/app/jobs/{accepted.job_id}"},
    )


def _describe_result(job: StoredJob) -> str:
    result = job["result"] or {}
    left = f"; {len(result['failed']):,} could not be, because of later changes" if result["failed"] else ""
    return f"A job has undone this: {result['ok']:,} records are as they were before{left}."


def _identifiers(job_id: ObjectId, batch_id: ObjectId) -> dict[str, ObjectId]:
    return {"changeId": batch_id, "jobId": job_id}
