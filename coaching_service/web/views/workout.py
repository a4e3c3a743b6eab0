"""One workout of a client: what is planned, what was done of it, and changing it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.kernel.auth.access import coach
from coaching_service.kernel.auth.permissions import CUSTOMERS, EXERCISES
from coaching_service.kernel.storage.context import Context, together
from coaching_service.kernel.storage.documents import Document
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.kernel.validation import Identifier, Input, Integer, Number, Text
from coaching_service.library.exercises import service as exercises
from coaching_service.progress.personal_records import service as personal_records
from coaching_service.training.workouts import item_service, items
from coaching_service.training.workouts import service as workouts
from coaching_service.training.workouts.item_schemas import NEW_ITEM
from coaching_service.training.workouts.owners import ClientCalendar
from coaching_service.training.workouts.schemas import BlockPlace
from coaching_service.web.pages import Go, Pages
from coaching_service.web.views.customer import head, week_of
from coaching_service.web.views.done import done
from coaching_service.web.views.events import KINDS
from coaching_service.web.views.items import described

pages = Pages("/app/customers/{customerId}/blocks/{blockId}")
_FOUND = 12


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


class _Removal(Input):
    confirmed = fields.Boolean(load_default=False)


def _here(customer_id: ObjectId, block_id: ObjectId) -> str:
    return f"/app/customers/{customer_id}/blocks/{block_id}"


@pages.get("", access=coach(CUSTOMERS.VIEW), query=_Search(), template="customer/block.html")
async def block_page(ctx: Context, customer_id: ObjectId, block_id: ObjectId, query: dict[str, Any]) -> dict[str, Any]:
    """A workout with its items, what was done of them, and what can be added to it."""
    customer, block = await _both(ctx, customer_id, block_id)
    found: Document = {"docs": []}
    if EXERCISES.VIEW in ctx.who.permissions:
        found = await exercises.page(ctx, page=query["page"], size=_FOUND, keywords=query["keywords"])
    unit = ctx.who.company.load_unit
    here = _here(customer_id, block_id)

    def address(page: int) -> str:
        return f"{here}?{urlencode({'keywords': query['keywords'], 'page': page})}#more"

    shown = [described(item, unit) | {"log": done(item, unit)} for item in block["items"]]
    return {
        "customer": customer,
        "block": block,
        "shown": shown,
        "found": found,
        "query": query,
        "address": address,
        "unit": unit,
    }


async def _both(ctx: Context, customer_id: ObjectId, block_id: ObjectId) -> tuple[Document, Document]:
    customer, block = await together(
        ctx, head(ctx, customer_id), workouts.read(ctx, ClientCalendar(customer_id), block_id)
    )
    return customer, block


@pages.post("/items", access=coach(CUSTOMERS.EDIT), form=_NewItem(), on=block_page)
async def add_exercise(ctx: Context, customer_id: ObjectId, block_id: ObjectId, form: dict[str, Any]) -> Go:
    """Put an exercise at the end of a workout."""
    planned = {name: form[name] for name in ("minPlannedReps", "maxPlannedReps", "load", "rest")}
    kind = "reps" if planned["load"] is None else "reps_load"
    if planned["load"] is None:
        del planned["load"]
    sets = [{"type": kind, "index": at + 1, **planned} for at in range(form["sets"])]
    item = {"type": "EXERCISE", "exerciseId": str(form["exerciseId"]), "exerciseSets": sets}
    return await _added(ctx, customer_id, block_id, item)


@pages.post("/tasks", access=coach(CUSTOMERS.EDIT), form=_NewTask(), on=block_page)
async def add_task(ctx: Context, customer_id: ObjectId, block_id: ObjectId, form: dict[str, Any]) -> Go:
    """Put a task at the end of a workout."""
    return await _added(ctx, customer_id, block_id, {"type": "TASK", "taskFields": form})


async def _added(ctx: Context, customer_id: ObjectId, block_id: ObjectId, item: Document) -> Go:
    stored = await item_service.add_item(ctx, ClientCalendar(customer_id), block_id, NEW_ITEM.load(item))
    title = described(stored, ctx.who.company.load_unit)["title"]
    return Go(_here(customer_id, block_id), f"{title} is added.")


@pages.get("/items/{witemId}/delete", access=coach(CUSTOMERS.EDIT), template="customer/delete_item.html")
async def delete_item_page(
    ctx: Context, customer_id: ObjectId, block_id: ObjectId, witem_id: ObjectId
) -> dict[str, Any]:
    """What is lost with an item: its log, and the records that were found in it."""
    customer, block = await _both(ctx, customer_id, block_id)
    item = block["items"][items.find(block["items"], witem_id)]
    unit = ctx.who.company.load_unit
    records = await personal_records.of(ctx, customer_id)
    return {
        "customer": customer,
        "block": block,
        "item": described(item, unit) | {"log": done(item, unit)},
        "kinds": KINDS,
        "records": [record for record in records if record["witemId"] == witem_id],
    }


@pages.post("/items/{witemId}/delete", access=coach(CUSTOMERS.EDIT), form=_Removal(), on=delete_item_page)
async def delete_item(
    ctx: Context, customer_id: ObjectId, block_id: ObjectId, witem_id: ObjectId, form: dict[str, Any]
) -> Go:
    """Take an item out of a workout; one with a log only after its coach has seen what goes with it."""
    owner, here = ClientCalendar(customer_id), _here(customer_id, block_id)
    block = await workouts.read(ctx, owner, block_id)
    if items.is_recorded(block["items"][items.find(block["items"], witem_id)]) and not form["confirmed"]:
        return Go(f"{here}/items/{witem_id}/delete")
    await item_service.remove_item(ctx, owner, block_id, witem_id)
    return Go(here, "The item is removed.")


@pages.post("/copy", access=coach(CUSTOMERS.EDIT), form=BlockPlace(), on=block_page)
async def copy_block(ctx: Context, customer_id: ObjectId, block_id: ObjectId, form: dict[str, Any]) -> Go:
    """The same plan on another day."""
    block = await workouts.copy(ctx, ClientCalendar(customer_id), block_id, form["date"])
    return Go(week_of(customer_id, block["date"]), f"{block['name']} is copied.")


@pages.get("/delete", access=coach(CUSTOMERS.EDIT), template="customer/delete_block.html")
async def delete_block_page(ctx: Context, customer_id: ObjectId, block_id: ObjectId) -> dict[str, Any]:
    """What is lost with a workout."""
    customer, block = await _both(ctx, customer_id, block_id)
    return {"customer": customer, "block": block, "recorded": sum(map(items.is_recorded, block["items"]))}


@pages.post("/delete", access=coach(CUSTOMERS.EDIT), on=delete_block_page)
async def delete_block(ctx: Context, customer_id: ObjectId, block_id: ObjectId) -> Go:
    """Delete a workout with its items."""
    owner = ClientCalendar(customer_id)
    block = await workouts.read(ctx, owner, block_id)
    await workouts.remove(ctx, owner, block_id)
    return Go(week_of(customer_id, block["date"]), f"{block['name']} is deleted.")
