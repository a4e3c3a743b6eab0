"""The forms of an item of a client's workout other than its sets: done, measured, commented, skipped or swapped."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import TEXT_LENGTH, Text
from coaching_service.library.exercises import listing
from coaching_service.progress.logs import service as logs
from coaching_service.progress.logs.own_changes import LogFields
from coaching_service.progress.logs.schemas import PAIN_LENGTH, NewSkip, NewSwap
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.items import content as items
from coaching_service.training.workouts.items.models import ExerciseItem, MetricValue, Skip, Swap
from coaching_service.web.page_queries import KeywordQuery
from coaching_service.web.pages import Redirect
from coaching_service.web.views.train.layout import item_path, workout_path
from coaching_service.web.views.train.workout.page import ITEM, pages, workout_page
from coaching_service.web.views.unusual_values import ValuesForm, require_confirmed_rows


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


_SUGGESTIONS, _RESULTS = 12, 20


@pages.get(f"{ITEM}/swap", access=customer(), query=KeywordQuery, template="train/workout/swap.html")
async def swap_page(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, query: KeywordQuery) -> dict[str, Any]:
    """Exercises to do in place of a planned one: similar ones, or those that match a search."""
    block, item = await _read_exercise(ctx, wblock_id, witem_id)
    swap = item.get("swappedFor")
    taken = {item["exerciseId"]} | ({swap["exerciseId"]} if swap else set())
    if query["keywords"]:
        results = await listing.list_exercises(ctx, page=1, size=_RESULTS, keywords=query["keywords"])
        offered = [{"_id": each["_id"], "name": each["name"]} for each in results["docs"] if each["_id"] not in taken]
    else:
        similar = await listing.list_alternatives(ctx, item["exerciseId"], _SUGGESTIONS)
        offered = [{"_id": each["_id"], "name": each["name"]} for each in similar if each["_id"] not in taken]
    return {
        "block": block,
        "item": item,
        "query": query,
        "offered": offered,
        "swap_path": f"{workout_path(wblock_id)}/items/{witem_id}/swap",
        "back": item_path(wblock_id, witem_id),
    }


@pages.post(f"{ITEM}/swap", access=customer(), form=NewSwap(), on=swap_page)
async def swap_exercise(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, form: Swap) -> Redirect:
    """Do another exercise in place of the planned one."""
    swap: Swap = {"exerciseId": form["exerciseId"], "reason": form["reason"] or None}
    return await change_item(ctx, wblock_id, witem_id, {"swappedFor": swap}, "Exercise swapped.")


@pages.post(f"{ITEM}/swap/undo", access=customer(), on=workout_page)
async def undo_swap(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId) -> Redirect:
    """Do the planned exercise after all."""
    return await change_item(ctx, wblock_id, witem_id, {"swappedFor": None}, "Back to the planned exercise.")


async def _read_exercise(ctx: Context, block_id: ObjectId, item_id: ObjectId) -> tuple[Block, ExerciseItem]:
    """Return a workout of the client and its exercise. Raises NotFound, also for an item of another type."""
    block = await logs.get_own_block(ctx, block_id)
    item = block["items"][items.find_index(block["items"], item_id)]
    if item["type"] != "EXERCISE":
        raise NotFound("exercise")
    return block, item
