"""The review of a logged session: what was planned and done, records, comments, and what to review next."""

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
from coaching_service.people.customers import derived_figures
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import ReasonType
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
from coaching_service.web.views.session_review.reviewed_items import ReviewedItem, ReviewRow, review_items
from coaching_service.web.views.train.workout.session_words import FEELINGS, describe_records
from coaching_service.web.views.workout.log_pages import CommentForm

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
        _find_next(ctx, customer_id, block_id),
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


@pages.post("/comments", access=coach(CUSTOMERS.EDIT), on=session_review_page)
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


_MESSAGES = 20
# The reasons with something that a coach reads, so that these clients come next.
_REASONS: tuple[ReasonType, ...] = (
    "health_note",
    "unread_message",
    "check_in_to_review",
    "missed_workout",
    "personal_record",
)


class _NextReview(TypedDict):
    """What comes next, in words, with its page."""

    text: str
    url: str


async def _find_next(ctx: Context, customer_id: ObjectId, block_id: ObjectId) -> _NextReview | None:
    """Return what a coach reviews after a workout of a client, or None.

    Another unread comment of the client on a workout, else the most urgent other client: an unread comment on a workout
    if there is one, or the client's entry of the list of today.
    """
    own, part = await gather_reads(
        ctx,
        _find_commented_block(ctx, customer_id, without=block_id),
        derived_figures.list_attention(ctx, reasons=_REASONS, limit=2),
    )
    if own is not None:
        return {"text": "another comment", "url": review_path(customer_id, own)}
    client = next((each for each in part["docs"] if each["_id"] != customer_id), None)
    if client is None:
        return None
    commented = await _find_commented_block(ctx, client["_id"])
    url = review_path(client["_id"], commented) if commented else f"/app/attention/{client['_id']}"
    return {"text": customers.full_name(client), "url": url}


async def _find_commented_block(
    ctx: Context, customer_id: ObjectId, without: ObjectId | None = None
) -> ObjectId | None:
    """Return the workout of the newest unread comment of a client; `without` one of them."""
    page = await conversation.list_messages(ctx, customer_id, limit=_MESSAGES)
    for message in page["docs"]:
        about = message["about"]
        if is_unread(message) and about is not None and about["wblockId"] != without:
            return about["wblockId"]
    return None
