"""Workout blocks and items over REST: declared once, for a client's calendar and for a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from marshmallow import Schema

from coaching_service.core.auth.access import Access
from coaching_service.core.database.context import Context
from coaching_service.core.errors import Conflict, LegacyFailure
from coaching_service.core.http.routes import Routes, list_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.variants import DeferredChange
from coaching_service.training.workouts import item_service, service
from coaching_service.training.workouts.item_schemas import ITEM_CHANGE, NEW_ITEM
from coaching_service.training.workouts.owners import Owner
from coaching_service.training.workouts.schemas import ItemMove, WorkoutBlock, item_answer

ITEM_EXAMPLE = {
    "type": "EXERCISE",
    "exerciseId": "66f0c0ffee0000000000abcd",
    "exerciseSets": [{"type": "reps_load", "index": 1, "minPlannedReps": 8, "maxPlannedReps": 10, "load": 60}],
}


@dataclass(frozen=True)
class Kind:
    """How blocks of one kind of owner are declared.

    `noun` is the first word of the names of the operations (`create{noun}Item`).
    `owner` makes the owner of the identifier in the path; `when` are the names of the query's two ends; `new` and
    `change` are the schemas of a block's body, `example` a block's body; `place` is the schema of where a copy goes.
    """

    noun: str
    owner: Callable[[ObjectId], Owner]
    view: Access
    edit: Access
    between: Schema
    when: tuple[str, str]
    new: Schema
    change: Schema
    place: Schema
    example: dict[str, Any]

    def owner_of(self, path: dict[str, ObjectId]) -> Owner:
        """The owner that the one other identifier in the path names."""
        (identifier,) = path.values()
        return self.owner(identifier)


def declare_blocks(routes: Routes, kind: Kind) -> None:
    """Declare the operations on the blocks of a kind of owner; the routes' prefix ends with the owner's identifier."""
    first, last = kind.when

    @routes.get(
        "/wblock",
        operation_id=f"list{kind.noun}Blocks",
        access=kind.view,
        query=kind.between,
        returns=list_of(WorkoutBlock),
    )
    async def list_blocks(ctx: Context, query: dict[str, Any], **owner: ObjectId) -> list[dict[str, Any]]:
        """Read the calendar.

        Every block from the first to the last day, both included, with its items, in the order they are done.
        """
        return await service.calendar(ctx, kind.owner_of(owner), query[first], query[last])

    @routes.post(
        "/wblocks",
        operation_id=f"create{kind.noun}Block",
        access=kind.edit,
        body=kind.new,
        returns=WorkoutBlock,
        example=kind.example,
    )
    async def create_block(ctx: Context, body: dict[str, Any], **owner: ObjectId) -> dict[str, Any]:
        """Schedule a workout block."""
        return await service.create(ctx, kind.owner_of(owner), body)

    @routes.get("/wblocks/{wblockId}", operation_id=f"get{kind.noun}Block", access=kind.view, returns=WorkoutBlock)
    async def get_block(ctx: Context, wblock_id: ObjectId, **owner: ObjectId) -> dict[str, Any]:
        """Read a workout block with its items."""
        return await service.read(ctx, kind.owner_of(owner), wblock_id)

    @routes.patch(
        "/wblocks/{wblockId}",
        operation_id=f"update{kind.noun}Block",
        access=kind.edit,
        body=kind.change,
        returns=WorkoutBlock,
        example={"name": "Upper body", "version": 0},
    )
    async def update_block(
        ctx: Context, wblock_id: ObjectId, body: dict[str, Any], **owner: ObjectId
    ) -> dict[str, Any]:
        """Change a workout block.

        On another day it goes after the blocks that are there already.
        """
        return await service.change(ctx, kind.owner_of(owner), wblock_id, body)

    @routes.delete("/wblocks/{wblockId}", operation_id=f"delete{kind.noun}Block", access=kind.edit)
    async def delete_block(ctx: Context, wblock_id: ObjectId, **owner: ObjectId) -> None:
        """Delete a workout block with its items."""
        await service.remove(ctx, kind.owner_of(owner), wblock_id)

    @routes.post(
        "/wblocks/{wblockId}/copy",
        operation_id=f"copy{kind.noun}Block",
        access=kind.edit,
        body=kind.place,
        returns=WorkoutBlock,
        example={name: value for name, value in kind.example.items() if name != "name"},
    )
    async def copy_block(ctx: Context, wblock_id: ObjectId, body: dict[str, Any], **owner: ObjectId) -> dict[str, Any]:
        """Copy a workout block to another day.

        The plan is the same, with nothing done.
        """
        (when,) = body.values()
        return await service.copy(ctx, kind.owner_of(owner), wblock_id, when)


def declare_items(routes: Routes, kind: Kind) -> None:
    """Declare the operations on the items in the blocks of a kind of owner."""

    @routes.post(
        "/wblocks/{wblockId}/witems",
        operation_id=f"create{kind.noun}Item",
        access=kind.edit,
        body=NEW_ITEM,
        returns=item_answer(),
        example=ITEM_EXAMPLE,
    )
    async def create_item(ctx: Context, wblock_id: ObjectId, body: dict[str, Any], **owner: ObjectId) -> dict[str, Any]:
        """Add an item to a workout block.

        It goes to the end; the answer is the item. A form is copied as it is now.
        """
        return await item_service.add_item(ctx, kind.owner_of(owner), wblock_id, body)

    @routes.patch(
        "/wblocks/{wblockId}/witems/{witemId}",
        operation_id=f"update{kind.noun}Item",
        access=kind.edit,
        body=ITEM_CHANGE,
        returns=item_answer(),
        example={"exerciseInstructions": "Pause at the bottom", "version": 1},
    )
    async def update_item(
        ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, body: DeferredChange, **owner: ObjectId
    ) -> dict[str, Any]:
        """Change a workout item.

        Its type stays; fields of other types are ignored. `version` is the block's.
        """
        return await item_service.change_item(ctx, kind.owner_of(owner), wblock_id, witem_id, body)

    @routes.delete("/wblocks/{wblockId}/witems/{witemId}", operation_id=f"delete{kind.noun}Item", access=kind.edit)
    async def delete_item(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, **owner: ObjectId) -> None:
        """Take an item out of a workout block."""
        await item_service.remove_item(ctx, kind.owner_of(owner), wblock_id, witem_id)

    @routes.put(
        "/witems/move",
        operation_id=f"move{kind.noun}Item",
        access=kind.edit,
        body=ItemMove(),
        returns=WorkoutBlock,
        errors=(Conflict, LegacyFailure),
        legacy_codes=("WITEM_MOVE_INCOMPLETE",),
        example={
            "source": {"wblockId": "66f0c0ffee0000000000abcd", "witemId": "66f0c0ffee0000000000abce"},
            "target": {"wblockId": "66f0c0ffee0000000000abcf", "index": 0},
        },
    )
    async def move_item(ctx: Context, body: dict[str, Any], **owner: ObjectId) -> dict[str, Any]:
        """Move an item within a block or to another.

        Answers the target block, whose `version` may be sent. An item that is no longer in `source` is 409; without
        `source` or `target`: 500 with `code` WITEM_MOVE_INCOMPLETE.
        """
        moved = body["source"], body["target"], body.get("version")
        return await item_service.move_item(ctx, kind.owner_of(owner), *moved)
