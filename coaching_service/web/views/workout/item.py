"""One item of a workout: moving it, changing what is planned, and taking it out."""

from __future__ import annotations

from typing import Any

from marshmallow import fields

from coaching_service.core.auth.access import coach
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Identifier, Input, Integer
from coaching_service.progress.personal_records import service as personal_records
from coaching_service.training.workouts import item_service, items
from coaching_service.training.workouts import service as workouts
from coaching_service.web.pages import Redirect
from coaching_service.web.views.done import done
from coaching_service.web.views.events import KINDS
from coaching_service.web.views.items import described
from coaching_service.web.views.workout.kind import ITEM, Handler, Kind


class _Move(Input):
    target = Identifier(required=True)
    place = Integer(minimum=1, maximum=1_000, load_default=1_000)


class _Removal(Input):
    confirmed = fields.Boolean(load_default=False)


def declare(kind: Kind, workout_page: Handler) -> None:
    """Declare what is done with an item of a workout, from `workout_page`."""
    edit = coach(kind.edit)

    @kind.pages.post(f"{ITEM}/move", access=edit, form=_Move(), on=workout_page)
    async def place_item(
        ctx: Context, block_id: ObjectId, witem_id: ObjectId, form: dict[str, Any], **owner: ObjectId
    ) -> Redirect:
        """Move an item to a place in this or another workout, and go there."""
        source = {"wblockId": block_id, "witemId": witem_id}
        target = {"wblockId": form["target"], "index": form["place"] - 1}
        block = await item_service.move_item(ctx, kind.owner_of(owner), source, target)
        here = block["_id"] == block_id
        return Redirect(
            kind.address(owner, block["_id"]), "It is moved." if here else f"It is moved to {block['name']}."
        )

    @kind.pages.get(f"{ITEM}/delete", access=edit, template="workout/delete_item.html")
    async def delete_item_page(ctx: Context, block_id: ObjectId, witem_id: ObjectId, **owner: ObjectId) -> Document:
        """What is lost with an item: its log, and the records that were found in it."""
        shown = await kind.page(ctx, owner, block_id)
        block, unit = shown["block"], ctx.caller.company.load_unit
        item = block["items"][items.find(block["items"], witem_id)]
        records = await personal_records.of(ctx, block["customerId"]) if block["customerId"] else []
        return {
            **shown,
            "item": described(item, unit) | {"log": done(item, unit)},
            "kinds": KINDS,
            "records": [record for record in records if record["witemId"] == witem_id],
        }

    @kind.pages.post(f"{ITEM}/delete", access=edit, form=_Removal(), on=delete_item_page)
    async def delete_item(
        ctx: Context, block_id: ObjectId, witem_id: ObjectId, form: dict[str, Any], **owner: ObjectId
    ) -> Redirect:
        """Take an item out of a workout; one with a log only after its coach has seen what goes with it."""
        plan_owner, here = kind.owner_of(owner), kind.address(owner, block_id)
        block = await workouts.read(ctx, plan_owner, block_id)
        if items.is_recorded(block["items"][items.find(block["items"], witem_id)]) and not form["confirmed"]:
            return Redirect(f"{here}/items/{witem_id}/delete")
        await item_service.remove_item(ctx, plan_owner, block_id, witem_id)
        return Redirect(here, "The item is removed.")
