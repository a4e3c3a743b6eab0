"""Comments on a client's workout: the messages of the conversation that are about it."""

from __future__ import annotations

from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.progress.conversation import service as conversation
from coaching_service.progress.conversation.models import MessageSubjectInput, MessageText
from coaching_service.web.pages import Redirect
from coaching_service.web.views.workout.owner_pages import BLOCK, Handler, WorkoutOwnerPages

_MAX_COMMENTS = 50


class CommentForm(MessageText):
    """A comment on the workout, or on one of its items."""

    item: ObjectId | None


async def load_comments(ctx: Context, customer_id: ObjectId, block_id: ObjectId) -> dict[str, Any]:
    """Load the newest comments on a client's workout, oldest first."""
    page = await conversation.list_messages(ctx, customer_id, limit=_MAX_COMMENTS, block_id=block_id)
    return {"comments": page["docs"][::-1], "has_more_comments": page["hasMore"]}


def declare(owner_pages: WorkoutOwnerPages, workout_page: Handler) -> None:
    """Declare the form that comments on a workout."""

    @owner_pages.post(f"{BLOCK}/comments", form=CommentForm, on=workout_page)
    async def add_comment(ctx: Context, owner_id: ObjectId, block_id: ObjectId, form: CommentForm) -> Redirect:
        """Send a message about the workout to the client."""
        about: MessageSubjectInput = {"wblockId": block_id, "witemId": form["item"]}
        await conversation.create(ctx, owner_id, {"text": form["text"], "about": about})
        return Redirect(f"{owner_pages.block_path(owner_id, block_id)}#comments", "Comment sent.")
