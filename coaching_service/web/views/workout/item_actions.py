"""Moving, duplicating and removing the items of a workout."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict, cast

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Integer
from coaching_service.progress.personal_records import service as personal_records
from coaching_service.training.workouts.items import content as items
from coaching_service.training.workouts.items import service as item_service
from coaching_service.training.workouts.items.descriptions import describe_item
from coaching_service.training.workouts.items.models import ItemMoveSource, ItemMoveTarget, WorkItem
from coaching_service.web.pages import Redirect
from coaching_service.web.views.item_results import describe_results
from coaching_service.web.views.workout.item_changes import add_item, exercises_of
from coaching_service.web.views.workout.owner_pages import ITEM, OpenedWorkout, WorkoutPages

pages = WorkoutPages()


class Place(TypedDict):
    """The position to move something to, from 1; at the end by default."""

    place: Annotated[int, Integer(minimum=1, maximum=1000), Default(1000)]


class MoveForm(Place):
    """The workout to move an item to, and the position there."""

    target: ObjectId


class _RemoveForm(TypedDict):
    confirmed: Annotated[bool, Default(False)]


@pages.post(f"{ITEM}/move", form=MoveForm)
async def place_item(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, form: MoveForm) -> Redirect:
    """Move an item to a position in this or another workout, and open that workout."""
    source: ItemMoveSource = {"wblockId": workout.block_id, "witemId": witem_id}
    target: ItemMoveTarget = {"wblockId": form["target"], "index": form["place"] - 1}
    block = await item_service.move_item(ctx, workout.owner, source, target)
    notice = "Moved." if block["_id"] == workout.block_id else f"Moved to {block['name']}."
    return Redirect(f"{workout._replace(block_id=block['_id']).path}#item-{witem_id}", notice)


@pages.post(f"{ITEM}/duplicate")
async def duplicate_item(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId) -> Redirect:
    """Add a copy of an item after it, with nothing done."""
    block = await workout.read(ctx)
    at = items.find_index(block["items"], witem_id)
    added = await add_item(ctx, workout, _planned_fields(block["items"][at]))
    if at + 1 < len(block["items"]):
        source: ItemMoveSource = {"wblockId": workout.block_id, "witemId": added["_id"]}
        await item_service.move_item(ctx, workout.owner, source, {"wblockId": workout.block_id, "index": at + 1})
    title = describe_item(added, ctx.caller.company.load_unit)["title"]
    return Redirect(f"{workout.path}#item-{added['_id']}", f"{title} duplicated.")


@pages.get(f"{ITEM}/delete", template="workout/delete_item.html")
async def delete_item_page(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId) -> dict[str, Any]:
    """Ask for confirmation before an item is removed with its results and personal records."""
    variables = await workout.load_variables(ctx)
    block, unit = variables["block"], ctx.caller.company.load_unit
    item = block["items"][items.find_index(block["items"], witem_id)]
    records = await personal_records.list_records(ctx, block["customerId"]) if block["customerId"] else []
    return {
        **variables,
        "item": {**describe_item(item, unit), "results": describe_results(item, unit)},
        "records": [record for record in records if record["witemId"] == witem_id],
    }


@pages.post(f"{ITEM}/delete", form=_RemoveForm, on=delete_item_page, deletes=True)
async def delete_item(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, form: _RemoveForm) -> Redirect:
    """Remove an item from a workout; one with results only after confirmation."""
    block = await workout.read(ctx)
    item = block["items"][items.find_index(block["items"], witem_id)]
    if items.is_recorded(item) and not form["confirmed"]:
        return Redirect(f"{workout.path}/items/{witem_id}/delete")
    await item_service.delete_item(ctx, workout.owner, workout.block_id, witem_id)
    return Redirect(workout.path, "Item removed.")


def _planned_fields(item: WorkItem) -> Document:
    """Return what an item plans, in the form of a request."""
    stored, planned = cast("Document", item), items.PLANNED_FIELDS[item["type"]]
    fields: Document = {name: stored[name] for name in planned if name in stored}
    if item["type"] == "EXERCISE":
        fields["exerciseId"] = str(item["exerciseId"])
    elif item["type"] == "CIRCUIT":
        fields["circuitExercises"] = exercises_of(item)
    elif item["type"] == "METRICS":
        fields["metricsFields"] = {"metricsSetId": str(item["metricsFields"]["metricsSetId"])}
    elif item["type"] == "FORM" and item["form"]["formId"] is not None:
        fields["form"] = {"formId": str(item["form"]["formId"])}
    elif item["type"] == "FORM":
        questions = [
            {name: value for name, value in each.items() if name != "_id"} for each in item["form"]["questions"]
        ]
        fields["form"] = {"name": item["form"]["name"], "questions": questions}
    return {"type": item["type"], **fields}
