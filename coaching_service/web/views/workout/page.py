"""The page of a workout: what is in it, what was done of it, what can be added; and changing, copying, deleting it."""

from __future__ import annotations

from typing import Any

from coaching_service.core.auth.access import coach
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import Input, Text, patch_of
from coaching_service.training.workouts import items
from coaching_service.training.workouts import service as workouts
from coaching_service.web.pages import Redirect
from coaching_service.web.views.done import done
from coaching_service.web.views.items import described
from coaching_service.web.views.workout import circuits
from coaching_service.web.views.workout.additions import Search, more_of, offered
from coaching_service.web.views.workout.kind import BLOCK, Handler, Kind


class _Named(Input):
    name = Text(required=True)


def declare(kind: Kind) -> Handler:
    """Declare the page of a workout, and its forms that concern the whole; gives the page."""

    @kind.pages.get(BLOCK, access=coach(kind.view), query=Search(), template="workout/workout.html")
    async def workout_page(ctx: Context, block_id: ObjectId, query: dict[str, Any], **owner: ObjectId) -> Document:
        """A workout with its items, what was done of them, and what can be added to it."""
        shown = await kind.page(ctx, owner, block_id)
        block, unit = shown["block"], ctx.caller.company.load_unit
        may_change = kind.edit in ctx.caller.permissions
        near, (first, last) = [block], kind.near(block)
        if may_change and block["items"]:
            around = await workouts.calendar(ctx, kind.owner_of(owner), first, last)
            near = [other for other in around if not other["isRest"] or other["_id"] == block_id]

        return {
            **shown,
            **(await offered(ctx, query) if may_change and not block["isRest"] else {}),
            "version": block["version"],
            "shown": [described(item, unit) | {"log": done(item, unit)} for item in block["items"]],
            "places": [(str(circuit["_id"]), f"In {circuit['circuitName']}") for circuit in circuits.of(block)],
            "near": near,
            "first": first,
            "query": query,
            "address": lambda page: more_of(shown["here"], query | {"page": page}),
            "unit": unit,
        }

    _declare_changes(kind, workout_page)
    return workout_page


def _declare_changes(kind: Kind, workout_page: Handler) -> None:
    edit = coach(kind.edit)
    change = patch_of(_Named, kind.place, name="WorkoutForm")

    @kind.pages.post(BLOCK, access=edit, form=change, on=workout_page)
    async def change_workout(ctx: Context, block_id: ObjectId, form: dict[str, Any], **owner: ObjectId) -> Redirect:
        """Name a workout anew, or put it on another day."""
        plan_owner = kind.owner_of(owner)
        before = await workouts.read(ctx, plan_owner, block_id)
        if form.get(plan_owner.slot) == before[plan_owner.slot]:
            del form[plan_owner.slot]  # its place on the day stays
        await workouts.change(ctx, plan_owner, block_id, form)
        return Redirect(kind.address(owner, block_id), "The changes are kept.")

    @kind.pages.post(f"{BLOCK}/copy", access=edit, form=kind.place(), on=workout_page)
    async def copy_workout(ctx: Context, block_id: ObjectId, form: dict[str, Any], **owner: ObjectId) -> Redirect:
        """The same plan on another day."""
        (identifier,), (when,) = owner.values(), form.values()
        block = await workouts.copy(ctx, kind.owner_of(owner), block_id, when)
        return Redirect(kind.seen(identifier, block), f"{block['name']} is copied.")

    @kind.pages.get(f"{BLOCK}/delete", access=edit, template="workout/delete.html")
    async def delete_workout_page(ctx: Context, block_id: ObjectId, **owner: ObjectId) -> Document:
        """What is lost with a workout."""
        shown = await kind.page(ctx, owner, block_id)
        return {**shown, "recorded": sum(map(items.is_recorded, shown["block"]["items"]))}

    @kind.pages.post(f"{BLOCK}/delete", access=edit, on=delete_workout_page)
    async def delete_workout(ctx: Context, block_id: ObjectId, **owner: ObjectId) -> Redirect:
        """Delete a workout with its items."""
        (identifier,) = owner.values()
        block = await workouts.read(ctx, kind.owner_of(owner), block_id)
        await workouts.remove(ctx, kind.owner_of(owner), block_id)
        return Redirect(kind.seen(identifier, block), f"{block['name']} is deleted.")
