"""Sources of copies: days of a calendar, or a program, and whether they have changed since a proposal was made."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Filter
from coaching_service.core.fields import names_of
from coaching_service.core.http.responses import to_json
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.results import CopiedDays, Source
from coaching_service.training.workouts import store
from coaching_service.training.workouts.blocks.models import PlannedBlock
from coaching_service.training.workouts.items import service as items

_PLANNED = (*names_of(PlannedBlock), "items")


async def read_calendar(ctx: Context, customer_id: ObjectId, first: str, last: str) -> Source:
    """Return days of a client whose access has been checked, as what a call copies."""
    return await _read(ctx, {"customerId": customer_id, "programId": None, "first": first, "last": last})


async def read_program(ctx: Context, program_id: ObjectId) -> Source:
    """Return a program that is there, as what a call copies."""
    return await _read(ctx, {"customerId": None, "programId": program_id, "first": None, "last": None})


async def has_changed(ctx: Context, source: Source) -> bool:
    """Return whether what is planned on the days of a source differs; what was done may."""
    if await _digest_versions(ctx, source) == source["versions"]:
        return False
    return await _digest_plans(ctx, source) != source["plans"]


async def _read(ctx: Context, days: CopiedDays) -> Source:
    return {**days, "versions": await _digest_versions(ctx, days), "plans": await _digest_plans(ctx, days)}


def _where(source: CopiedDays) -> Filter:
    owner = {"customerId": source["customerId"], "checkInId": None}
    if source["programId"] is not None:
        return owner | {"programId": source["programId"]}
    return owner | {"date": {"$gte": source["first"], "$lte": source["last"]}}


async def _digest_versions(ctx: Context, source: CopiedDays) -> str:
    found = await store.blocks.find(ctx, _where(source), fields=("version",))
    return _digest(sorted([str(each["_id"]), each["version"]] for each in found))


async def _digest_plans(ctx: Context, source: CopiedDays) -> str:
    found: list[Any] = await store.blocks.find(ctx, _where(source), fields=("date", "day", "position", *_PLANNED))
    planned: list[list[Any]] = [
        [
            *(str(block.get("date")), block.get("day") or 0, block["position"], str(block["_id"])),
            *(block.get(name) for name in names_of(PlannedBlock)),
            [_list_planned(item) for item in block["items"]],
        ]
        for block in found
    ]
    planned.sort(key=lambda each: each[:4])
    return _digest(planned)


def _list_planned(item: Any) -> list[object]:
    planned: Any = items.with_planned_sets(item)
    return [item["type"], *(planned.get(name) for name in items.PLANNED_FIELDS[item["type"]])]


def _digest(values: Iterable[object]) -> str:
    return hashlib.sha256(to_json(list(values))).hexdigest()
