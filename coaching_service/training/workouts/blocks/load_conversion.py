"""Converting the planned and done loads of workouts to another unit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document, Filter, now
from coaching_service.core.ids import ObjectId
from coaching_service.people import account
from coaching_service.people.account import Conversion, Convert, LoadCount
from coaching_service.training.workouts import store
from coaching_service.training.workouts.blocks.service import ScheduleOwner, summarize_copy
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.training.workouts.items.service import derive_fields
from coaching_service.training.workouts.sets import MAX_LOAD

T = TypeVar("T")
# What is a load in workouts and in the figures that follow from them.
_LOADS = {"load", "volumeLoad", "estimatedOneRepMax"}


class ConvertedItems(NamedTuple):
    """Items with converted loads, and the number of loads among them."""

    items: list[WorkItem]
    loads: int


def convert_items(items: Sequence[WorkItem], convert: Convert) -> ConvertedItems:
    """Return items with the loads of planned and done sets converted, and the totals that follow from them."""
    converted: list[WorkItem] = []
    total = 0
    for item in items:
        changed, loads = _convert_sets(item, convert)
        if (body_weight := item.get("bodyWeight")) is not None:
            changed["bodyWeight"] = convert(body_weight)
        is_changed = loads or body_weight is not None
        converted.append(cast("WorkItem", {**changed, **derive_fields(changed)}) if is_changed else item)
        total += loads
    return ConvertedItems(converted, total)


def _convert_sets(value: Any, convert: Convert) -> tuple[Any, int]:
    """Return an item, or a part of it, with the loads in its sets converted, and their number."""
    if isinstance(value, list):
        entries = [_convert_sets(entry, convert) for entry in value]
        return [entry for entry, _ in entries], sum(loads for _, loads in entries)
    changed, total = dict(value), 0
    if isinstance(value.get("load"), int | float):
        changed["load"], total = min(convert(value["load"]), float(MAX_LOAD)), 1
    for name in ("exerciseSets", "circuitExercises", "sets", "customerSets"):
        if isinstance(value.get(name), list):
            changed[name], loads = _convert_sets(value[name], convert)
            total += loads
    return changed, total


def show_loads(value: T, ctx: Context, load_unit: str) -> T:
    """Return workouts, items, sets or figures of the company with their loads in a unit of display, rounded to 0.1."""
    if (unit := ctx.caller.company.load_unit) == load_unit:
        return value
    return cast("T", _show(value, partial(account.convert_stored_load, unit=unit, target=load_unit)))


def _show(value: Any, convert: Convert) -> Any:
    if isinstance(value, list):
        return [_show(each, convert) for each in value]
    if not isinstance(value, dict):
        return value
    shown: dict[str, Any] = {}
    for name, each in value.items():
        if name in _LOADS and isinstance(each, int | float):
            shown[name] = convert(each)
        elif name == "estimatedOneRepMax" and each is not None:
            shown[name] = {**each, "value": convert(each["value"])}
        else:
            shown[name] = _show(each, convert)
    return shown


def store_loads(value: T, ctx: Context) -> T:
    """Return items or sets with loads in the caller's unit of display as they are stored, rounded to 0.01.

    They are changed in place, because what a text names is resolved in them later.
    """
    unit, stored_unit = ctx.caller.load_unit, ctx.caller.company.load_unit
    if unit != stored_unit:
        _store(value, partial(account.convert_entered_load, unit=unit, target=stored_unit))
    return value


def _store(value: Any, convert: Convert) -> None:
    for each in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
        _store(each, convert)
    if isinstance(value, dict) and isinstance(value.get("load"), int | float):
        value["load"] = min(convert(value["load"]), float(MAX_LOAD))


async def convert_blocks(ctx: Context, owner: ScheduleOwner, conversion: Conversion) -> LoadCount:
    """Convert the workouts of a client, who is locked, or of a program, in the caller's transaction."""
    writes: list[tuple[Filter, Document | list[Document]]] = []
    total, at = 0, now()
    in_order, private = (owner.day_field, "position", "_id"), ("programCopy", "shiftedDays")
    for block in await store.blocks.find(ctx, owner.block_filter, sort=in_order, including=private):
        items, loads = convert_items(block["items"], conversion.convert)
        if items != block["items"]:
            fields = store.item_fields(items)
            if block.get("programCopy") and block["programCopy"] == summarize_copy(block):
                fields["programCopy"] = summarize_copy({**block, "items": items})
            change = {"$set": {**fields, "updatedAt": at}, "$inc": {"version": 1}}  # that is not one of the history
            writes.append(({"_id": block["_id"]}, change))
            total += loads
    if conversion.is_stored:
        await store.blocks.set_derived_each(ctx, writes)
    return LoadCount(len(writes), total)


async def find_with_load(ctx: Context, without: Sequence[ObjectId]) -> tuple[ObjectId | None] | None:
    """Return the client of a workout with a load, but none of the clients `without`; None if there is none.

    The client is None for a workout of a program.
    """
    sets = ("exerciseSets", "circuitExercises.sets", "customerSets")
    where: Filter = {"$or": [{f"items.{name}.load": {"$type": "number"}} for name in sets]}
    found = await store.blocks.find_one(ctx, where | {"customerId": {"$nin": list(without)}}, ("customerId",))
    return None if found is None else (found["customerId"],)
