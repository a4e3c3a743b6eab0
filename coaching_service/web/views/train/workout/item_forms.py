"""The forms of an item of a client's workout other than its sets: done, measured, commented or skipped."""

from __future__ import annotations

from typing import Annotated, TypedDict

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import TEXT_LENGTH, Text
from coaching_service.progress.logs import service as logs
from coaching_service.progress.logs.own_changes import LogFields
from coaching_service.progress.logs.schemas import PAIN_LENGTH, NewSkip
from coaching_service.training.workouts.items.models import MetricValue, Skip
from coaching_service.web.pages import Redirect
from coaching_service.web.views.far_values import ValuesForm, require_confirmed_rows
from coaching_service.web.views.train.sessions import item_path
from coaching_service.web.views.train.workout.page import ITEM, pages, workout_page


class _CompletionForm(TypedDict):
    isCompleted: bool


class _CommentForm(TypedDict):
    comment: Annotated[str | None, Text(max_length=TEXT_LENGTH, allow_blank=True)]
    pain: Annotated[str | None, Text(max_length=PAIN_LENGTH, allow_blank=True)]


@pages.post(f"{ITEM}/completion", access=customer(), form=_CompletionForm, on=workout_page)
async def log_completion(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, form: _CompletionForm) -> Redirect:
    """Mark a task or reminder as done, or as not done."""
    return await change_item(ctx, wblock_id, witem_id, {"isCompleted": form["isCompleted"]})


@pages.post(f"{ITEM}/comment", access=customer(), form=_CommentForm, on=workout_page)
async def log_comment(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, form: _CommentForm) -> Redirect:
    """Save what the client says about an item, and where it hurt."""
    given: LogFields = {"comment": form["comment"] or None, "pain": form["pain"] or None}
    return await change_item(ctx, wblock_id, witem_id, given, "Saved. Your coach can read it.")


@pages.post(f"{ITEM}/metrics", access=customer(), form=ValuesForm, on=workout_page)
async def log_metrics(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, form: ValuesForm) -> Redirect:
    """Record measurements; the item is done when at least one is given."""
    await require_confirmed_rows(ctx, ctx.caller.id, wblock_id, form)
    values: list[MetricValue] = [
        {"metricId": row["metricId"], "value": row["value"]} for row in form["values"] if row["value"] is not None
    ]
    return await change_item(ctx, wblock_id, witem_id, {"values": values, "isCompleted": bool(values)}, "Saved.")


@pages.post(f"{ITEM}/skip", access=customer(), form=NewSkip(), on=workout_page)
async def skip_item(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, form: Skip) -> Redirect:
    """Skip an item, for a reason if there is one."""
    return await change_item(ctx, wblock_id, witem_id, {"skipped": {"reason": form["reason"] or None}}, "Skipped.")


@pages.post(f"{ITEM}/skip/undo", access=customer(), on=workout_page)
async def undo_skip(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId) -> Redirect:
    """Do an item after all."""
    return await change_item(ctx, wblock_id, witem_id, {"skipped": None}, "Back in your workout.")


async def change_item(
    ctx: Context, block_id: ObjectId, item_id: ObjectId, change: LogFields, notice: str = ""
) -> Redirect:
    """Change the log of an item of the client, and return to its place in the workout."""
    item = await logs.update_own_log(ctx, block_id, item_id, change)
    data = {"item": {"_id": item_id, "isCompleted": item["isCompleted"]}}
    return Redirect(item_path(block_id, item_id), notice, data=data)
