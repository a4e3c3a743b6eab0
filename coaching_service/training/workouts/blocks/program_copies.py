"""What a client's block remembers of the program's block that it is a copy of: enough to see whether it was changed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import date
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import zip_longest
from typing import Any, cast

import orjson

from coaching_service.core.fields import names_of
from coaching_service.training.workouts.blocks.models import PlannedBlock
from coaching_service.training.workouts.items.content import PLANNED_FIELDS, create_item
from coaching_service.training.workouts.items.models import WorkItem


def summarize_plan(block: Mapping[str, Any]) -> str:
    """Return a short text that is the same for blocks in which the same is planned, whatever was done of it.

    A field without a value counts like one that is absent, so that a field added later changes no summary.
    """
    items = [_plan_of_item(item) for item in block["items"]]
    plan = {**{name: block.get(name) for name in names_of(PlannedBlock)}, "items": items}
    return hashlib.sha256(_as_text(plan)).hexdigest()[:24]


def summarize_copy(block: Mapping[str, Any], plan: str | None = None) -> str:
    """Return the program's date and the summary of the plan of a client's block, to be stored with it (`programCopy`).

    `plan`: the summary of its plan, if it is known.
    """
    return f"{find_program_date(block)} {plan or summarize_plan(block)}"


def find_program_date(block: Mapping[str, Any]) -> str:
    """Return the date of a client's block without moves of the client and shifts of the schedule.

    It is the date that the program gave it, unless a coach has moved it by hand.
    """
    planned = date.fromisoformat(block.get("plannedDate") or block["date"]).toordinal()
    day = planned - block.get("shiftedDays", 0)
    return str(date.fromordinal(min(max(day, date.min.toordinal()), date.max.toordinal())))  # an import may have any


def renew_items(copied: Sequence[WorkItem], source: Sequence[WorkItem]) -> list[WorkItem]:
    """Return items with nothing done and the plan of `source`: those that `copied` has too, or a changed one, stay.

    So a device that logs sets of an item without a connection still finds it.
    """
    before, after = ([_as_text(_plan_of_item(item)) for item in items] for items in (copied, source))
    renewed: list[WorkItem] = []
    for tag, first, last, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            renewed += copied[first:last]
        elif tag != "delete":
            pairs = zip_longest(copied[first:last], source[start:end])
            renewed += [_renew_item(old, new) for old, new in pairs if new is not None]
    return renewed


def _renew_item(old: WorkItem | None, source: WorkItem) -> WorkItem:
    new = create_item(source)
    if old is None or old["type"] != source["type"]:
        return new
    return cast("WorkItem", {**new, "_id": old["_id"], "createdAt": old["createdAt"]})


def _plan_of_item(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: item.get(name) for name in ("type", *PLANNED_FIELDS[item["type"]])}


def _as_text(plan: Mapping[str, Any]) -> bytes:
    return _comparable_text(orjson.dumps(plan, default=str))


@lru_cache(4096)  # copies of a program for many clients have the same texts
def _comparable_text(text: bytes) -> bytes:
    return orjson.dumps(_comparable(orjson.loads(text)), option=orjson.OPT_SORT_KEYS)


def _comparable(value: Any) -> Any:
    if isinstance(value, dict):
        fields = ((name, _comparable(each)) for name, each in value.items())
        return {name: each for name, each in fields if each is not None and each is not False and each not in ("", [])}
    if isinstance(value, list):
        return [_comparable(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
