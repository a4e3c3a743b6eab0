"""Another exercise in place of the planned one: suggestions, a search, and taking it back."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.errors import NotFound
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import alternatives, listing
from coaching_service.progress.logs import service as logs
from coaching_service.progress.logs.schemas import NewSwap
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.items import content as items
from coaching_service.training.workouts.items.models import ExerciseItem, Swap
from coaching_service.web.pages import Redirect
from coaching_service.web.search_fields import KeywordQuery
from coaching_service.web.views.train.sessions import item_path, workout_path
from coaching_service.web.views.train.workout.item_forms import change_item
from coaching_service.web.views.train.workout.page import ITEM, pages, workout_page

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
        similar = await alternatives.list_alternatives(ctx, item["exerciseId"], _SUGGESTIONS)
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
