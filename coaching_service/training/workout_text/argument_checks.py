"""Checking the names and lines of a call whose other arguments are not valid: an assistant reads all errors at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from coaching_service.core.database.context import Context
from coaching_service.core.errors import FieldError, Forbidden, InvalidFields, NotFound
from coaching_service.core.validation import sentence
from coaching_service.people.customers.bulk import choose_clients
from coaching_service.training.workout_text._edits import check_items, parse_texts
from coaching_service.training.workout_text.finding import resolve_document, resolve_exercises, resolve_workouts
from coaching_service.training.workout_text.lines import ParsedWorkout, parse_items
from coaching_service.training.workouts.blocks.service import ClientCalendar

_NAMES = ("exercise", "withExercise")
_DOCUMENTS: Final = (("form", "form"), ("metric set", "metrics"))


async def check_names(ctx: Context, valid: Mapping[str, Any]) -> None:
    """Raise InvalidFields for names, lines and identifiers among the `valid` arguments of a tool."""
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
    calendar = None if customer_id is None else ClientCalendar(customer_id)
    checks: list[Callable[[], Awaitable[object]]] = [
        *([partial(calendar.require_access, ctx)] if calendar is not None else []),
        partial(resolve_exercises, ctx, names, customer_id, on_calendar),
        partial(resolve_workouts, ctx, workouts, customer_id),
        *(partial(resolve_document, ctx, *each, str(valid[each[1]])) for each in _DOCUMENTS if valid.get(each[1])),
    ]
    if valid.get("customerIds") or valid.get("groups"):
        checks.append(partial(choose_clients, ctx, None, valid.get("customerIds"), valid.get("groups")))
    if calendar is not None and (workout_id := valid.get("workoutId")) is not None:
        edits = {index: edit for index, edit in _entries(valid, "changes") if edit.get("itemId") is not None}
        checks.append(partial(check_items, ctx, calendar, workout_id, edits))
    await run_checks(checks)


async def run_checks(checks: Iterable[Callable[[], Awaitable[object]]]) -> None:
    """Raise InvalidFields for all that the checks find together."""
    errors: dict[str, FieldError] = {}
    for check in checks:
        try:
            await check()
        except InvalidFields as error:
            errors |= {sentence(each): each for each in error.errors}
        except (NotFound, Forbidden) as error:
            errors[str(error)] = {"field": "", "code": str(error.code), "message": str(error)}
    if errors:
        raise InvalidFields(list(errors.values()))


def _entries(valid: Mapping[str, Any], name: str) -> list[tuple[int, Any]]:
    return list(enumerate(valid.get(name) or ()))
