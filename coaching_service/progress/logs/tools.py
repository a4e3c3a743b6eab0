"""MCP tools for what was done in a workout."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from marshmallow import ValidationError, validates_schema

from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context
from coaching_service.core.dates import name_days
from coaching_service.core.errors import invalid_field
from coaching_service.core.field_schemas import arguments_of
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp.arguments import CustomerArgument, optional, typed_line
from coaching_service.core.mcp.results import Reason, Written, find_reasons, typed
from coaching_service.core.mcp.tools import Tools
from coaching_service.core.text import snake_case
from coaching_service.core.validation import Identifier, SearchedDate, Text
from coaching_service.library.exercises import name_resolution
from coaching_service.people.customers import service as customers
from coaching_service.progress.logs import service
from coaching_service.progress.logs._log_text import ItemText, describe_logged, list_other_names, parse_log
from coaching_service.training.workout_text.finding import describe_readings
from coaching_service.training.workout_text.tool_schemas import MAX_TEXT
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import SESSION_FIELDS, Block, BlockLog, SessionFields
from coaching_service.training.workouts.blocks.service import ClientCalendar, regular_blocks
from coaching_service.training.workouts.items.service import is_recorded
from coaching_service.training.workouts.items.totals import planned_exercise_ids

tools = Tools()
_MAX_NAMES, _MAX_SHOWN = 50, 120
_NEAR_DAYS = 7


class WorkoutLog(CustomerArgument):
    """What was done in a workout."""

    workoutId = Identifier(**optional("From get_workouts."))
    date = SearchedDate(**optional("Instead: the workout of this day."))
    text = Text(max_length=MAX_TEXT, **optional("A line for each item done: NAME: SETS | comment."))

    class Meta(CustomerArgument.Meta):
        include = arguments_of(SessionFields)

    @validates_schema(skip_on_field_errors=False)
    def names_one_workout(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require a workout or a date."""
        if {"workoutId", "date"} <= data.keys() and (data["workoutId"] is None) == (data["date"] is None):
            is_missing = data["date"] is None
            raise ValidationError(
                "is required, or date" if is_missing else "must not be combined with date", "workoutId"
            )

    @validates_schema(skip_on_field_errors=False)
    def logs_something(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require something to log."""
        if all(data.get(name, ...) is None for name in ("text", *SESSION_FIELDS)):
            raise ValidationError("is required, or durationMinutes, sessionRpe, feeling or comment", "text")


async def _check(ctx: Context, valid: Mapping[str, Any]) -> None:
    """Raise InvalidFields for the lines and the date among the valid arguments; NotFound, Forbidden."""
    if (customer_id := valid.get("customerId")) is None:
        return
    workout_id, owner = valid.get("workoutId"), ClientCalendar(customer_id)
    if workout_id is None and valid.get("date") is not None:
        workout_id = await _find_workout(ctx, owner, str(valid["date"]))
    if workout_id is not None:
        await _read_logs(ctx, valid.get("text") or "", await workouts.get(ctx, owner, workout_id))


@tools.tool(
    "Log a workout",
    access=coach(CUSTOMERS.EDIT),
    takes=WorkoutLog(),
    writes=True,
    locks="customer",
    destructive=True,
    confirms=(Reason.DONE_WORK,),
    check=_check,
)
async def log_workout(
    ctx: Context,
    customer_id: ObjectId,
    workout_id: ObjectId | None,
    date: str | None,
    text: str | None,
    **session: Any,
) -> Written:
    """Record what a client did of a workout: `8, 8, 7 @60kg` is three sets, a load counts for the sets before it; also
    `30s`, `400m`, `RPE8`, `RIR2`. `NAME: done` and `NAME: skipped | reason` are without sets; `| pain KNEE` records
    pain. NAME is an item of the workout, or an exercise of its circuit, with its sets round by round. Items not named
    stay; an existing log is replaced after confirmation."""
    if workout_id is None:
        find = partial(_find_workout, ctx, ClientCalendar(customer_id), str(date))
        workout_id = await ctx.resolve(f"workout of {customer_id} on {date}", find)
    block = await workouts.get(ctx, ClientCalendar(customer_id), workout_id)
    _require_past(block, await customers.get_local_date(ctx, customer_id))
    before: Mapping[str, Any] = {**block}
    logs = await _read_logs(ctx, text, block) if text is not None else []
    sentences: list[str] = []
    for logged in logs:
        item = await service.log_item(ctx, customer_id, workout_id, logged.item["_id"], logged.log)
        sentences += describe_logged(ctx, logged, item)
    names = [name for logged in logs for name in logged.names]
    targets = [target.name for logged in logs for target in logged.targets]
    given = {name: session[snake_case(name)] for name in SESSION_FIELDS if session[snake_case(name)] is not None}
    if given:
        log = cast("BlockLog", {name: given.get(name, before[name]) for name in SESSION_FIELDS})
        await service.log_block(ctx, customer_id, workout_id, log)
    customer = await customers.get_visible_reference(ctx, customer_id)
    replaced = any(before[name] not in (None, "") for name in given)
    sentences += _describe_session(given, before)
    day = name_days([str(block["date"])], await customers.resolve_today(ctx, customer_id))
    return Written(
        f"Logged {typed(block['name'])} of {typed(customer['name'])} on {day}: {'; '.join(sentences)}."
        f"{describe_readings(names, targets)}",
        {"workoutId": workout_id},
        find_reasons(done_work=replaced or any(is_recorded(logged.item) for logged in logs)),
    )


async def _read_logs(ctx: Context, text: str, block: Block) -> list[ItemText]:
    """Return the logs that a text describes; exercises may also have other names that mean them."""
    items = block["items"]

    async def list_planned(_: Context) -> Sequence[ObjectId]:
        return [exercise_id for item in items for exercise_id in planned_exercise_ids(item)]

    names = list_other_names(text, items)[:_MAX_NAMES]
    known = name_resolution.KnownExercises(block["_id"], list_planned, loosely=True)
    resolved = await name_resolution.resolve_names(ctx, names, known)
    other_names = {about["name"]: about["match"]["_id"] for about in resolved if about["match"] is not None}
    return parse_log(ctx, text, items, other_names)


async def _find_workout(ctx: Context, owner: ClientCalendar, day: str) -> ObjectId:
    """Return the workout of a day. Raises InvalidFields, naming the workouts, if there is none or more than one."""
    first, last = (workouts.shift_date(day, days, "date") for days in (-_NEAR_DAYS, _NEAR_DAYS))
    near = [
        block for block in regular_blocks(await workouts.list_blocks(ctx, owner, first, last)) if not block["isRest"]
    ]
    of_day = [block for block in near if block["date"] == day]
    if len(of_day) == 1:
        return of_day[0]["_id"]
    named = ", ".join(f"{typed(block['name'])} on {block['date']} [{block['_id']}]" for block in of_day or near)
    if not of_day:
        raise invalid_field("date", f"has no workout; within a week of it: {named or 'none'}", code="NO_WORKOUT")
    message = f"has {len(of_day)} workouts: {named}. Send the workoutId of one of them"
    raise invalid_field("date", message, code="AMBIGUOUS")


def _require_past(block: Block, today: datetime.date) -> None:
    """Raise InvalidFields for a workout of a day after tomorrow: in no time zone was it done."""
    if str(block["date"]) > str(today + datetime.timedelta(days=1)):
        message = f"is a workout of {block['date']}, which is in the future; move it with update_workout first"
        raise invalid_field("workoutId", message, code="INVALID")


def _describe_session(given: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    words = {"durationMinutes": "{:g} min", "sessionRpe": "session RPE {:g}", "feeling": "feeling {:g} of 5"}

    def describe(name: str, value: Any) -> str:
        return words[name].format(value) if name in words else typed_line(value, _MAX_SHOWN)

    return [
        describe(name, value)
        if before[name] in (None, "")
        else f"{describe(name, before[name])} → {describe(name, value)}"
        for name, value in given.items()
    ]
