"""The review of a logged session: what was planned and done, the client's notes, records, and the comments on it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, TypedDict

from coaching_service.core.auth.access import coach
from coaching_service.core.auth.permissions import CUSTOMERS
from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.people.availability import service as availability
from coaching_service.progress.attention import service as attention
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.conversation.models import MessageSubjectInput
from coaching_service.progress.logs import own_workouts
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.blocks.owners import ClientCalendar
from coaching_service.training.workouts.blocks.presentation import presented_volume
from coaching_service.training.workouts.items import content as items
from coaching_service.training.workouts.reports.calendar_days import Status
from coaching_service.training.workouts.reports.exercises import add_last_times
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.customer_calendar import days_of_week
from coaching_service.web.views.customer_layout import customer_path, load_header, review_path, week_path
from coaching_service.web.views.customer_messages import is_unread
from coaching_service.web.views.session_review.next_review import find_next
from coaching_service.web.views.session_review.reviewed_items import ReviewedItem, ReviewRow, review_items
from coaching_service.web.views.train.workout.feelings import FEELINGS
from coaching_service.web.views.train.workout.record_texts import describe_records
from coaching_service.web.views.workout.comments import CommentForm

pages = Pages("/app/customers/{customerId}/blocks/{blockId}/review")
_MAX_COMMENTS = 50


class Completion(TypedDict):
    """How much of a session was done, of what was planned; `differing` counts the sets that differ from the plan."""

    doneItems: int
    items: int
    doneSets: int
    sets: int
    extraSets: int
    differing: int
    volume: float


@pages.get("", access=coach(CUSTOMERS.VIEW), template="workout/review.html")
async def session_review_page(ctx: Context, customer_id: ObjectId, block_id: ObjectId) -> dict[str, Any]:
    """A session as it was planned and done, with its comments."""
    customer, stored, comments = await gather_reads(
        ctx,
        load_header(ctx, customer_id),
        workouts.get(ctx, ClientCalendar(customer_id), block_id),
        conversation.list_messages(ctx, customer_id, limit=_MAX_COMMENTS, block_id=block_id),
    )
    [block] = await add_last_times(ctx, customer_id, [stored])
    day = str(block["date"])
    records, following, absences = await gather_reads(
        ctx,
        own_workouts.list_records_of(ctx, customer_id, block),
        find_next(ctx, customer_id, block_id),
        availability.get_absences(ctx, [customer_id], day, day),
    )
    unit = ctx.caller.company.load_unit
    reviewed = review_items(block, unit)
    status = _status_of(block, ctx.caller.today(customer["timezone"]), is_away=day in absences[customer_id])
    return {
        "customer": customer,
        "block": block,
        "block_path": customer_path(customer_id, f"/blocks/{block_id}"),
        "review_path": review_path(customer_id, block_id),
        "week_path": week_path(customer_id, str(block["date"])),
        "monday": days_of_week(date.fromisoformat(str(block["date"])))[0],
        "is_check_in": _is_check_in(block),
        "status": status,
        "is_logged": status in ("done", "part"),
        "items": reviewed,
        "item_options": [(str(item["_id"]), item["title"]) for item in reviewed],
        "completion": _measure(block, reviewed),
        "unit": unit,
        "feeling": dict(FEELINGS).get(block.get("feeling") or 0),
        "times": _times_of(block),
        "records": describe_records(records),
        "comments": comments["docs"][::-1],
        "has_earlier_comments": comments["hasMore"],
        "has_unread": any(map(is_unread, comments["docs"])),
        "next": following,
    }


def _is_check_in(block: Block) -> bool:
    """Return whether a block is of a recurring check-in, or has nothing but forms."""
    has_forms_only = bool(block["items"]) and all(item["type"] == "FORM" for item in block["items"])
    return block.get("checkInId") is not None or has_forms_only


def _status_of(block: Block, today: date, *, is_away: bool) -> Status:
    """Return what became of a session, in the words of the calendar."""
    if block["isRest"]:
        return "rest"
    if block["isCompleted"]:
        return "done"
    if any(map(items.is_recorded, block["items"])):
        return "part"
    if is_away:
        return "away"
    return "missed" if block["items"] and str(block["date"]) < str(today) else "planned"


def _measure(block: Block, reviewed: Sequence[ReviewedItem]) -> Completion:
    rows: list[ReviewRow] = [row for item in reviewed for table in item["tables"] for row in table["rows"]]
    planned = [row for row in rows if row["isPlanned"]]
    return {
        "doneItems": sum(item["isCompleted"] for item in block["items"]),
        "items": len(block["items"]),
        "doneSets": sum(row["isDone"] for row in planned),
        "sets": len(planned),
        "extraSets": len(rows) - len(planned),
        "differing": sum(bool(row["deviations"]) for row in rows),
        "volume": presented_volume(block["items"]),
    }


def _times_of(block: Block) -> list[datetime]:
    """Return when the first and the last set were done (UTC), or else when the last item was completed, if known."""
    logged = [
        each["loggedAt"]
        for item in block["items"]
        if item["type"] == "EXERCISE" or item["type"] == "CIRCUIT"
        for each in item["customerSets"]
        if "loggedAt" in each
    ]
    if logged:
        return [min(logged), max(logged)]
    completed = [item["completedAt"] for item in block["items"] if item["completedAt"] is not None]
    return [max(completed)] if completed else []


@pages.post("/comments", access=coach(CUSTOMERS.EDIT), form=CommentForm, on=session_review_page)
async def answer_session(ctx: Context, customer_id: ObjectId, block_id: ObjectId, form: CommentForm) -> Redirect:
    """Send a comment on the session to the client, whose comments on it count as read."""
    about: MessageSubjectInput = {"wblockId": block_id, "witemId": form["item"]}
    await conversation.mark_read(ctx, customer_id, block_id=block_id)
    await conversation.create(ctx, customer_id, {"text": form["text"], "about": about})
    await attention.renew(ctx, customer_id)
    return Redirect(f"{review_path(customer_id, block_id)}#comments", "Comment sent.")


@pages.post("/read", access=coach(CUSTOMERS.EDIT), on=session_review_page, idempotent=True)
async def mark_session_comments_read(ctx: Context, customer_id: ObjectId, block_id: ObjectId) -> Redirect:
    """Mark the client's comments on the session as read, for the whole company."""
    await conversation.mark_read(ctx, customer_id, block_id=block_id)
    await attention.renew(ctx, customer_id)
    return Redirect(f"{review_path(customer_id, block_id)}#comments", "Marked as read.")
