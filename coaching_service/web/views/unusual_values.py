"""Measured values far from the last and loads that are probably typing errors, which the user has to confirm."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.errors import InvalidFields, invalid_field
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import CalendarDate, Number, SearchedDate
from coaching_service.progress.metrics.plausibility import FAR_FACTOR, find_far_values
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.owners import ClientCalendar
from coaching_service.training.workouts.items.input_models import ItemInput
from coaching_service.training.workouts.items.models import WorkItem
from coaching_service.web.formatting import format_date, format_number


class Confirmation(TypedDict):
    """Whether the user has confirmed values that are far from the last ones."""

    confirmed: Annotated[bool, Default(False)]


class ValueRow(TypedDict):
    """The value of a metric, if one was entered."""

    metricId: ObjectId
    value: Annotated[float | None, Number(minimum=-1e12)]


class ValuesForm(Confirmation):
    """The values of the metrics of an item."""

    values: Annotated[list[ValueRow], Default(list)]


class ValueDate(TypedDict):
    """The date of the value to delete."""

    date: Annotated[str, SearchedDate()]


async def require_confirmed_rows(ctx: Context, customer_id: ObjectId, block_id: ObjectId, form: ValuesForm) -> None:
    """Check the rows `values` of the log of an item, in a workout of a client, as `require_confirmed_values` does.

    Raises what it raises, and NotFound if the client has no such workout.
    """
    date = await workouts.get_date(ctx, ClientCalendar(customer_id), block_id)
    values = entered_values(form["values"])
    await require_confirmed_values(ctx, customer_id, str(date), values, confirmed=form["confirmed"])


def entered_values(rows: Iterable[ValueRow]) -> dict[str, tuple[ObjectId, float]]:
    """Return the metrics of the rows `values` with the values that were entered, by field."""
    return {
        f"values.{index}.value": (row["metricId"], row["value"])
        for index, row in enumerate(rows)
        if row["value"] is not None
    }


async def require_confirmed_values(
    ctx: Context,
    customer_id: ObjectId,
    date: str,
    values: Mapping[str, tuple[ObjectId, float]],
    *,
    confirmed: bool,
) -> None:
    """Raise InvalidFields for the fields whose values are far from the last, unless the user has confirmed them.

    `values`: metrics with their new values, by field. The template shows `ui.confirm_values` then.
    """
    if confirmed:
        return
    far = await find_far_values(ctx, customer_id, date, dict(values.values()))
    errors = [
        (field, f"is far from the last value: {format_number(last['value'])} on {format_date(last['date'])}")
        for field, (metric_id, _) in values.items()
        if (last := far.get(metric_id))
    ]
    if errors:
        errors.append(("confirmed", "has to be ticked if the value is right"))
        raise InvalidFields([{"field": field, "code": "FAR_FROM_LAST", "message": text} for field, text in errors])


def require_past_date(field: str, date: str, today: datetime.date, *, or_tomorrow: bool = False) -> None:
    """Raise InvalidFields for `field` unless a date is from 1950 on and not after the client's `today`, or tomorrow."""
    last, word = (today + datetime.timedelta(days=1), "tomorrow") if or_tomorrow else (today, "today")
    if not CalendarDate.first <= date <= str(last):
        raise invalid_field(field, f"must be a date from {CalendarDate.first[:4]} on and not after {word}")


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
