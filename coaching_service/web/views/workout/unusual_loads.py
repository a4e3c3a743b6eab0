"""Loads that are probably typing errors: saved once the user has confirmed them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from coaching_service.core.database.context import Context
from coaching_service.core.errors import InvalidFields
from coaching_service.progress.metrics.plausibility import FAR_FACTOR
from coaching_service.training.workouts.items.input_models import ItemInput
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.web.formatting import format_number

MOST_USUAL: Final = {"kg": 500, "lb": 1_100}


def require_confirmed_loads(
    ctx: Context,
    loads: Mapping[str, float | None],
    known: Iterable[float | None] = (),
    *,
    confirmed: bool,
    unit: str | None = None,
) -> None:
    """Raise InvalidFields for the fields whose loads are unusual, unless the user has confirmed them.

    Unusual: more than 500 kg or 1,100 lb, or five times the highest of the `known` loads of the exercise, which are
    not asked about again. `loads` are by field, in `unit`, by default the company's. The template shows
    `ui.confirm_values` then.
    """
    if confirmed:
        return
    unit = unit or ctx.caller.company.load_unit
    most, highest = MOST_USUAL[unit], max((load for load in known if load), default=0)
    errors = []
    for field, load in loads.items():
        if load is None or load <= highest:
            continue
        if load > most:
            errors.append((field, f"load of {format_number(load, unit)} is more than {format_number(most, unit)}"))
        elif highest and load > FAR_FACTOR * highest:
            before = f"the highest before, {format_number(highest, unit)}"
            errors.append((field, f"load of {format_number(load, unit)} is more than five times {before}"))
    if errors:
        errors.append(("confirmed", "has to be ticked if the load is right"))
        raise InvalidFields([{"field": field, "code": "UNUSUAL_LOAD", "message": text} for field, text in errors])


def find_highest_usual(known: Iterable[float | None], unit: str) -> float:
    """Return the highest load, in `unit`, that `require_confirmed_loads` does not ask about."""
    highest = max((load for load in known if load), default=0)
    most = MOST_USUAL[unit]
    return max(highest, min(most, FAR_FACTOR * highest)) if highest else most


def row_loads(name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Return the loads of submitted rows of sets by field, without removed rows."""
    return {f"{name}.{at}.load": row["load"] for at, row in enumerate(rows) if not row.get("out")}


def loads_of(sets: Iterable[Mapping[str, Any]]) -> list[float | None]:
    """Return the loads of planned or done sets."""
    return [each.get("load") for each in sets]


def loads_of_item(item: WorkItem | ItemInput) -> list[float | None]:
    """Return the loads of the planned and the done sets of an item."""
    content: Mapping[str, Any] = item
    sets = [*content.get("exerciseSets", ()), *content.get("customerSets", ())]
    for entry in content.get("circuitExercises", ()):
        sets += entry["sets"]
    return loads_of(sets)


def require_confirmed_items(ctx: Context, items: Iterable[ItemInput], field: str, *, confirmed: bool) -> None:
    """Check the loads of new items, which the text in `field` describes, as `require_confirmed_loads` does."""
    highest = max((load for item in items for load in loads_of_item(item) if load), default=None)
    require_confirmed_loads(ctx, {field: highest}, confirmed=confirmed)
