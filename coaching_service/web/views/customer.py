"""A client's week: the calendar with blocks and items; adding and moving them."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from coaching_service.kernel.auth.access import coach
from coaching_service.kernel.auth.permissions import CUSTOMERS, EXERCISES
from coaching_service.kernel.errors import Forbidden
from coaching_service.kernel.storage.context import Context, together
from coaching_service.kernel.storage.documents import Document
from coaching_service.kernel.storage.ids import ObjectId
from coaching_service.kernel.validation import Day, Identifier, Input, Integer, Number, Text
from coaching_service.library.exercises import service as exercises
from coaching_service.people.customers import service as customers
from coaching_service.training.workouts import item_service
from coaching_service.training.workouts import service as workouts
from coaching_service.training.workouts.item_schemas import NEW_ITEM
from coaching_service.training.workouts.owners import ClientCalendar
from coaching_service.training.workouts.schemas import BlockDetails, BlockPlace
from coaching_service.web.pages import Go, Pages
from coaching_service.web.views.items import described

pages = Pages("/app/customers/{customerId}")
_ONE = ("_id", "name", "surname", "timezone", "customerRoleData")


class Week(Input):
    """The week that holds this day; without one, the present week."""

    week = Day(load_default=None)


class _Move(Input):
    witemId = Identifier(required=True)
    source = Identifier(required=True)
    target = Identifier(required=True)
    place = Integer(least=1, most=1_000, load_default=1_000)


class _Search(Week):
    keywords = Text(blank=True, load_default="")


class _NewItem(Input):
    exerciseId = Identifier(load_default=None)
    sets = Integer(least=1, most=20, load_default=3)
    minPlannedReps = Integer(least=0, most=1_000, load_default=None, allow_none=True)
    maxPlannedReps = Integer(least=0, most=1_000, load_default=None, allow_none=True)
    load = Number(least=0, most=10_000, load_default=None, allow_none=True)  # type: ignore[assignment]  # the wire's
    rest = Number(least=0, most=3_600, load_default=None, allow_none=True)


class _NewTask(Input):
    title = Text(required=True)
    description = Text(longest=2_000, blank=True, allow_none=True, load_default=None)


async def head(ctx: Context, customer_id: ObjectId) -> Document:
    """What the top of each of a client's pages shows. Raises NotFound, Forbidden."""
    return await customers.visible(ctx, customer_id, _ONE)


@pages.get("", access=coach(CUSTOMERS.VIEW), query=Week(), template="customer/week.html")
async def week_page(ctx: Context, customer_id: ObjectId, query: dict[str, Any]) -> dict[str, Any]:
    """A week of the client's calendar."""
    customer = await head(ctx, customer_id)
    today = ctx.who.today(customer["timezone"])
    monday = _monday(date.fromisoformat(query["week"]) if query["week"] else today)
    days = [day for ahead in range(7) if (day := _ahead(monday, ahead))]
    blocks = await workouts.calendar(ctx, ClientCalendar(customer_id), str(days[0]), str(days[-1]))
    unit = ctx.who.company.load_unit
    for block in blocks:
        block["shown"] = [described(item, unit) for item in block["items"]]
    return {
        "customer": customer,
        "days": [(day, [block for block in blocks if block["date"] == str(day)]) for day in days],
        "blocks": [(str(b["_id"]), f"{date.fromisoformat(b['date']):%a}: {b['name']}") for b in blocks],
        "today": today,
        "monday": monday,
        "before": _ahead(monday, -7),
        "after": _ahead(monday, 7),
    }


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _ahead(day: date, days: int) -> date | None:
    """So many days later, or None where the calendar ends: in the years 1 and 9999."""
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return None


def _week_of(customer_id: ObjectId, day: str) -> str:
    return f"/app/customers/{customer_id}?week={day}"


@pages.post("/blocks", access=coach(CUSTOMERS.EDIT), form=BlockDetails(), on=week_page)
async def add_block(ctx: Context, customer_id: ObjectId, form: dict[str, Any]) -> Go:
    """Schedule a workout."""
    block = await workouts.create(ctx, ClientCalendar(customer_id), form)
    if form["isRest"]:
        return Go(_week_of(customer_id, form["date"]), "A day of rest is planned.")
    return Go(f"/app/customers/{customer_id}/blocks/{block['_id']}", f"{block['name']} is planned. Now what is in it?")


@pages.post("/move", access=coach(CUSTOMERS.EDIT), form=_Move(), on=week_page)
async def move_item(ctx: Context, customer_id: ObjectId, form: dict[str, Any]) -> Go:
    """Move an item to a place in this or another workout."""
    block = await item_service.move_item(
        ctx,
        ClientCalendar(customer_id),
        {"wblockId": form["source"], "witemId": form["witemId"]},
        {"wblockId": form["target"], "index": form["place"] - 1},
    )
    return Go(_week_of(customer_id, block["date"]), f"Moved to {block['name']}.")


@pages.get("/blocks/{blockId}", access=coach(CUSTOMERS.VIEW), query=_Search(), template="customer/block.html")
async def block_page(ctx: Context, customer_id: ObjectId, block_id: ObjectId, query: dict[str, Any]) -> dict[str, Any]:
    """A workout with its items, and what can be added to it."""
    customer, block = await together(
        ctx, head(ctx, customer_id), workouts.read(ctx, ClientCalendar(customer_id), block_id)
    )
    found: list[Document] = []
    if EXERCISES.VIEW in ctx.who.permissions:
        found = (await exercises.page(ctx, page=1, size=12, keywords=query["keywords"]))["docs"]
    unit = ctx.who.company.load_unit
    block["shown"] = [described(item, unit) for item in block["items"]]
    return {"customer": customer, "block": block, "found": found, "query": query, "unit": unit}


@pages.post("/blocks/{blockId}/items", access=coach(CUSTOMERS.EDIT), form=_NewItem(), on=block_page)
async def add_exercise(ctx: Context, customer_id: ObjectId, block_id: ObjectId, form: dict[str, Any]) -> Go:
    """Put an exercise at the end of a workout."""
    planned = {name: form[name] for name in ("minPlannedReps", "maxPlannedReps", "load", "rest")}
    kind = "reps" if planned["load"] is None else "reps_load"
    if planned["load"] is None:
        del planned["load"]
    sets = [{"type": kind, "index": at + 1, **planned} for at in range(form["sets"])]
    item = {"type": "EXERCISE", "exerciseId": str(form["exerciseId"] or ""), "exerciseSets": sets}
    return await _added(ctx, customer_id, block_id, item)


@pages.post("/blocks/{blockId}/tasks", access=coach(CUSTOMERS.EDIT), form=_NewTask(), on=block_page)
async def add_task(ctx: Context, customer_id: ObjectId, block_id: ObjectId, form: dict[str, Any]) -> Go:
    """Put a task at the end of a workout."""
    return await _added(ctx, customer_id, block_id, {"type": "TASK", "taskFields": form})


async def _added(ctx: Context, customer_id: ObjectId, block_id: ObjectId, item: Document) -> Go:
    stored = await item_service.add_item(ctx, ClientCalendar(customer_id), block_id, NEW_ITEM.load(item))
    title = described(stored, ctx.who.company.load_unit)["title"]
    return Go(f"/app/customers/{customer_id}/blocks/{block_id}", f"{title} is added.")


@pages.post("/blocks/{blockId}/items/{witemId}/delete", access=coach(CUSTOMERS.EDIT), on=None)
async def delete_item(ctx: Context, customer_id: ObjectId, block_id: ObjectId, witem_id: ObjectId) -> Go:
    """Take an item out of a workout."""
    await item_service.remove_item(ctx, ClientCalendar(customer_id), block_id, witem_id)
    return Go(f"/app/customers/{customer_id}/blocks/{block_id}", "The item is removed.")


@pages.post("/blocks/{blockId}/copy", access=coach(CUSTOMERS.EDIT), form=BlockPlace(), on=block_page)
async def copy_block(ctx: Context, customer_id: ObjectId, block_id: ObjectId, form: dict[str, Any]) -> Go:
    """The same plan on another day."""
    block = await workouts.copy(ctx, ClientCalendar(customer_id), block_id, form["date"])
    return Go(_week_of(customer_id, block["date"]), f"{block['name']} is copied.")


@pages.get("/blocks/{blockId}/delete", access=coach(CUSTOMERS.VIEW), template="customer/delete_block.html")
async def delete_block_page(ctx: Context, customer_id: ObjectId, block_id: ObjectId) -> dict[str, Any]:
    """What is lost with a workout."""
    if CUSTOMERS.EDIT not in ctx.who.permissions:
        raise Forbidden(f"The permission {CUSTOMERS.EDIT} is missing")
    customer, block = await together(
        ctx, head(ctx, customer_id), workouts.read(ctx, ClientCalendar(customer_id), block_id)
    )
    return {"customer": customer, "block": block, "done": sum(item["isCompleted"] for item in block["items"])}


@pages.post("/blocks/{blockId}/delete", access=coach(CUSTOMERS.EDIT), on=delete_block_page)
async def delete_block(ctx: Context, customer_id: ObjectId, block_id: ObjectId) -> Go:
    """Delete a workout with its items."""
    owner = ClientCalendar(customer_id)
    block = await workouts.read(ctx, owner, block_id)
    await workouts.remove(ctx, owner, block_id)
    return Go(_week_of(customer_id, block["date"]), f"{block['name']} is deleted.")
