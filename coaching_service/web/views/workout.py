"""The pages of one workout, declared once for a client's calendar and for a program: what is in it, and changing it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from marshmallow import Schema, ValidationError, fields, validates_schema

from coaching_service.kernel.auth.access import coach
from coaching_service.kernel.auth.permissions import EXERCISES
from coaching_service.kernel.storage.context import Context, together
from coaching_service.kernel.storage.documents import Document
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.kernel.validation import Identifier, Input, Integer, Number, Text, patch_of
from coaching_service.library.exercises import service as exercises
from coaching_service.progress.personal_records import service as personal_records
from coaching_service.training.workouts import item_service, items
from coaching_service.training.workouts import service as workouts
from coaching_service.training.workouts.item_schemas import NEW_ITEM
from coaching_service.training.workouts.owners import Owner
from coaching_service.web.pages import Go, Pages
from coaching_service.web.views.done import done
from coaching_service.web.views.events import KINDS
from coaching_service.web.views.items import described

_FOUND = 12


@dataclass(frozen=True)
class Kind:
    """How the workouts of one kind of owner are shown and changed.

    `pages`: their prefix ends with the owner's identifier, of which `owner` makes the owner. `view` and `edit` are
    permissions. `frame` is the template around each page, `top` gives what it shows of the owner. `place` is the schema
    of where a copy goes, `near` the first and the last day between which items are moved, and `seen` the address at
    which a workout is seen among the others.
    """

    pages: Pages
    owner: Callable[[ObjectId], Owner]
    view: str
    edit: str
    frame: str
    top: Callable[[Context, ObjectId], Awaitable[Document]]
    place: type[Schema]
    near: Callable[[Document], tuple[object, object]]
    seen: Callable[[ObjectId, Document], str]

    def address(self, owner: Mapping[str, ObjectId], block_id: ObjectId) -> str:
        """The address of a workout's page."""
        (identifier,) = owner.values()
        return f"{self.pages.prefix.partition('{')[0]}{identifier}/blocks/{block_id}"

    def owner_of(self, owner: Mapping[str, ObjectId]) -> Owner:
        """The owner that the path names."""
        (identifier,) = owner.values()
        return self.owner(identifier)

    async def page(self, ctx: Context, owner: Mapping[str, ObjectId], block_id: ObjectId) -> dict[str, Any]:
        """What every page of a workout shows. Raises NotFound, Forbidden."""
        (identifier,) = owner.values()
        top, block = await together(
            ctx, self.top(ctx, identifier), workouts.read(ctx, self.owner(identifier), block_id)
        )
        more = {"frame": self.frame, "edit": self.edit, "seen": self.seen(identifier, block)}
        return {**top, **more, "block": block, "here": self.address(owner, block_id)}


class _Search(Input):
    keywords = Text(blank=True, load_default="")
    page = Integer(least=1, load_default=1)


class _NewItem(Input):
    exerciseId = Identifier(required=True)
    sets = Integer(least=1, most=100, required=True)
    minPlannedReps = Integer(least=0, most=100_000, load_default=None, allow_none=True)
    maxPlannedReps = Integer(least=0, most=100_000, load_default=None, allow_none=True)
    load = Number(least=0, most=100_000, load_default=None, allow_none=True)  # type: ignore[assignment]  # the wire's
    rest = Number(least=0, most=86_400, load_default=None, allow_none=True)

    @validates_schema
    def ends_in_order(self, data: Mapping[str, Any], **_: Any) -> None:
        """From fewer repetitions to more."""
        fewest, most = data["minPlannedReps"], data["maxPlannedReps"]
        if fewest is not None and most is not None and fewest > most:
            raise ValidationError("must not be more than the repetitions they go up to", "minPlannedReps")


class _NewTask(Input):
    title = Text(required=True)
    description = Text(longest=10_000, blank=True, allow_none=True, load_default=None)


class _Move(Input):
    target = Identifier(required=True)
    place = Integer(least=1, most=1_000, load_default=1_000)


class _Removal(Input):
    confirmed = fields.Boolean(load_default=False)


class _Named(Input):
    name = Text(required=True)


def declare(kind: Kind) -> None:
    """Declare the pages of the workouts of a kind of owner."""
    workout_page = _declare_page(kind)
    _declare_additions(kind, workout_page)
    _declare_item_changes(kind, workout_page)
    _declare_changes(kind, workout_page)


_BLOCK = "/blocks/{blockId}"
_ITEM = f"{_BLOCK}/items/{{witemId}}"
_Handler = Callable[..., Awaitable[Any]]


def _declare_page(kind: Kind) -> _Handler:
    @kind.pages.get(_BLOCK, access=coach(kind.view), query=_Search(), template="workout/workout.html")
    async def workout_page(ctx: Context, block_id: ObjectId, query: dict[str, Any], **owner: ObjectId) -> Document:
        """A workout with its items, what was done of them, and what can be added to it."""
        shown = await kind.page(ctx, owner, block_id)
        block, unit = shown["block"], ctx.who.company.load_unit
        found: Document = {"docs": []}
        if EXERCISES.VIEW in ctx.who.permissions:
            found = await exercises.page(ctx, page=query["page"], size=_FOUND, keywords=query["keywords"])
        near = [block]
        if kind.edit in ctx.who.permissions and block["items"]:
            near = await workouts.calendar(ctx, kind.owner_of(owner), *kind.near(block))

        def address(page: int) -> str:
            return f"{shown['here']}?{urlencode({'keywords': query['keywords'], 'page': page})}#more"

        return {
            **shown,
            "version": block["version"],
            "shown": [described(item, unit) | {"log": done(item, unit)} for item in block["items"]],
            "near": near,
            "found": found,
            "query": query,
            "address": address,
            "unit": unit,
        }

    return workout_page


def _declare_additions(kind: Kind, workout_page: _Handler) -> None:
    edit = coach(kind.edit)

    @kind.pages.post(f"{_BLOCK}/items", access=edit, form=_NewItem(), on=workout_page)
    async def add_exercise(ctx: Context, block_id: ObjectId, form: dict[str, Any], **owner: ObjectId) -> Go:
        """Put an exercise at the end of a workout."""
        planned = {name: form[name] for name in ("minPlannedReps", "maxPlannedReps", "load", "rest")}
        kind_of_set = "reps" if planned["load"] is None else "reps_load"
        if planned["load"] is None:
            del planned["load"]
        sets = [{"type": kind_of_set, "index": at + 1, **planned} for at in range(form["sets"])]
        return await added(
            ctx, owner, block_id, {"type": "EXERCISE", "exerciseId": str(form["exerciseId"]), "exerciseSets": sets}
        )

    @kind.pages.post(f"{_BLOCK}/tasks", access=edit, form=_NewTask(), on=workout_page)
    async def add_task(ctx: Context, block_id: ObjectId, form: dict[str, Any], **owner: ObjectId) -> Go:
        """Put a task at the end of a workout."""
        return await added(ctx, owner, block_id, {"type": "TASK", "taskFields": form})

    async def added(ctx: Context, owner: Mapping[str, ObjectId], block_id: ObjectId, item: Document) -> Go:
        stored = await item_service.add_item(ctx, kind.owner_of(owner), block_id, NEW_ITEM.load(item))
        title = described(stored, ctx.who.company.load_unit)["title"]
        return Go(kind.address(owner, block_id), f"{title} is added.")


def _declare_item_changes(kind: Kind, workout_page: _Handler) -> None:
    edit = coach(kind.edit)

    @kind.pages.post(f"{_ITEM}/move", access=edit, form=_Move(), on=workout_page)
    async def place_item(
        ctx: Context, block_id: ObjectId, witem_id: ObjectId, form: dict[str, Any], **owner: ObjectId
    ) -> Go:
        """Move an item to a place in this or another workout, and go there."""
        source = {"wblockId": block_id, "witemId": witem_id}
        target = {"wblockId": form["target"], "index": form["place"] - 1}
        block = await item_service.move_item(ctx, kind.owner_of(owner), source, target)
        here = block["_id"] == block_id
        return Go(kind.address(owner, block["_id"]), "It is moved." if here else f"It is moved to {block['name']}.")

    @kind.pages.get(f"{_ITEM}/delete", access=edit, template="workout/delete_item.html")
    async def delete_item_page(ctx: Context, block_id: ObjectId, witem_id: ObjectId, **owner: ObjectId) -> Document:
        """What is lost with an item: its log, and the records that were found in it."""
        shown = await kind.page(ctx, owner, block_id)
        block, unit = shown["block"], ctx.who.company.load_unit
        item = block["items"][items.find(block["items"], witem_id)]
        records = await personal_records.of(ctx, block["customerId"]) if block["customerId"] else []
        return {
            **shown,
            "item": described(item, unit) | {"log": done(item, unit)},
            "kinds": KINDS,
            "records": [record for record in records if record["witemId"] == witem_id],
        }

    @kind.pages.post(f"{_ITEM}/delete", access=edit, form=_Removal(), on=delete_item_page)
    async def delete_item(
        ctx: Context, block_id: ObjectId, witem_id: ObjectId, form: dict[str, Any], **owner: ObjectId
    ) -> Go:
        """Take an item out of a workout; one with a log only after its coach has seen what goes with it."""
        whose, here = kind.owner_of(owner), kind.address(owner, block_id)
        block = await workouts.read(ctx, whose, block_id)
        if items.is_recorded(block["items"][items.find(block["items"], witem_id)]) and not form["confirmed"]:
            return Go(f"{here}/items/{witem_id}/delete")
        await item_service.remove_item(ctx, whose, block_id, witem_id)
        return Go(here, "The item is removed.")


def _declare_changes(kind: Kind, workout_page: _Handler) -> None:
    edit = coach(kind.edit)
    change = patch_of(_Named, kind.place, name="WorkoutForm")

    @kind.pages.post(_BLOCK, access=edit, form=change, on=workout_page)
    async def change_workout(ctx: Context, block_id: ObjectId, form: dict[str, Any], **owner: ObjectId) -> Go:
        """Name a workout anew, or put it on another day."""
        whose = kind.owner_of(owner)
        before = await workouts.read(ctx, whose, block_id)
        if form.get(whose.slot) == before[whose.slot]:
            del form[whose.slot]  # its place on the day stays
        await workouts.change(ctx, whose, block_id, form)
        return Go(kind.address(owner, block_id), "The changes are kept.")

    @kind.pages.post(f"{_BLOCK}/copy", access=edit, form=kind.place(), on=workout_page)
    async def copy_workout(ctx: Context, block_id: ObjectId, form: dict[str, Any], **owner: ObjectId) -> Go:
        """The same plan on another day."""
        (identifier,), (when,) = owner.values(), form.values()
        block = await workouts.copy(ctx, kind.owner_of(owner), block_id, when)
        return Go(kind.seen(identifier, block), f"{block['name']} is copied.")

    @kind.pages.get(f"{_BLOCK}/delete", access=edit, template="workout/delete.html")
    async def delete_workout_page(ctx: Context, block_id: ObjectId, **owner: ObjectId) -> Document:
        """What is lost with a workout."""
        shown = await kind.page(ctx, owner, block_id)
        return {**shown, "recorded": sum(map(items.is_recorded, shown["block"]["items"]))}

    @kind.pages.post(f"{_BLOCK}/delete", access=edit, on=delete_workout_page)
    async def delete_workout(ctx: Context, block_id: ObjectId, **owner: ObjectId) -> Go:
        """Delete a workout with its items."""
        (identifier,) = owner.values()
        block = await workouts.read(ctx, kind.owner_of(owner), block_id)
        await workouts.remove(ctx, kind.owner_of(owner), block_id)
        return Go(kind.seen(identifier, block), f"{block['name']} is deleted.")
