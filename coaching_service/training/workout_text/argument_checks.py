"""Checking the names and lines of a call whose other arguments are not valid: an assistant reads all errors at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from coaching_service.core.database.context import Context
from coaching_service.core.errors import FieldError, InvalidFields
from coaching_service.training.workout_text.edits import parse_texts
from coaching_service.training.workout_text.lines import ParsedWorkout, parse_items
from coaching_service.training.workout_text.mentions import resolve_exercises, resolve_workouts

_NAMES = ("exercise", "withExercise")


async def check_names(ctx: Context, valid: Mapping[str, Any]) -> None:
    """Raise InvalidFields for names and lines among the `valid` arguments of a tool; NotFound, Forbidden."""
    customer_id, unit = valid.get("customerId"), ctx.caller.load_unit
    names = {name: str(valid[name]) for name in _NAMES if valid.get(name) is not None}
    names |= {f"exercises.{index}": each for index, each in _entries(valid, "exercises") if isinstance(each, str)}
    workouts: list[ParsedWorkout] = [
        parse_items(str(day["text"]), unit, f"days.{index}.text")
        for index, day in _entries(valid, "days")
        if day.get("text") is not None
    ]
    edits = {index: edit for index, edit in _entries(valid, "changes") if {"action", "text"} <= edit.keys()}
    workouts += parse_texts(edits, unit)
    on_calendar = [path for path in names if path != "withExercise"]
    checks: list[Callable[[], Awaitable[object]]] = [
        partial(resolve_exercises, ctx, names, customer_id, on_calendar),
        partial(resolve_workouts, ctx, workouts, customer_id),
    ]
    errors: list[FieldError] = []
    for check in checks:
        try:
            await check()
        except InvalidFields as error:
            errors += error.errors
    if errors:
        raise InvalidFields(errors)


def _entries(valid: Mapping[str, Any], name: str) -> list[tuple[int, Any]]:
    return list(enumerate(valid.get(name) or ()))
