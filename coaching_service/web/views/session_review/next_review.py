"""Where a coach goes on after a session: the next comment on a workout, or the next client who needs a coach."""

from __future__ import annotations

from typing import TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.database.transactions import gather_reads
from coaching_service.core.ids import ObjectId
from coaching_service.people.customers import derived_figures
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.models import ReasonType
from coaching_service.progress.conversation import service as conversation
from coaching_service.web.views.customer_layout import review_path

_MESSAGES = 20
# The reasons with something that a coach reads, so that these clients come next.
_REASONS: tuple[ReasonType, ...] = (
    "health_note",
    "unread_message",
    "check_in_to_review",
    "missed_workout",
    "personal_record",
)


class NextReview(TypedDict):
    """What comes next, in words, with its page."""

    text: str
    url: str


async def find_next(ctx: Context, customer_id: ObjectId, block_id: ObjectId) -> NextReview | None:
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
        is_unread = message["author"]["type"] == "client" and message["readAt"] is None and message["text"] is not None
        if is_unread and about is not None and about["wblockId"] != without:
            return about["wblockId"]
    return None
