"""Measured values far from the last, which the user has to confirm; form_idempotency.py asks about loads."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Annotated, TypedDict

from coaching_service.core.database.context import Context
from coaching_service.core.errors import InvalidFields, invalid_field
from coaching_service.core.fields import Default
from coaching_service.core.ids import ObjectId
from coaching_service.core.validation import CalendarDate, Number, SearchedDate
from coaching_service.progress.metrics.service import find_far_values
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.owners import ClientCalendar
from coaching_service.web.formatting import format_date, format_number


class Confirmation(TypedDict):
    """Whether the user has confirmed values, loads and amounts that are far from the last ones."""

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
