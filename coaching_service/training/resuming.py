"""The return of a client from an absence: its end, and what was planned meanwhile moved or removed, in one change."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import partial
from typing import Annotated, Any, Literal, TypedDict, cast, get_args

from marshmallow import ValidationError, validates_schema

from coaching_service.core import mcp, validation
from coaching_service.core.auth import CUSTOMERS, coach
from coaching_service.core.database.context import Context, transactional
from coaching_service.core.dates import name_days
from coaching_service.core.errors import Conflict, invalid_field
from coaching_service.core.fields import Description, input_of
from coaching_service.core.http.routes import Routes
from coaching_service.core.ids import ObjectId
from coaching_service.core.mcp import CustomerArgument, Tools, Written, optional
from coaching_service.people import availability
from coaching_service.people.availability import (
    LIMITED,
    Availability,
    AvailabilityKind,
    NewAvailability,
    includes,
    is_absence,
    write_period,
)
from coaching_service.people.customers import service as customers
from coaching_service.training.schedule import service as schedule
from coaching_service.training.schedule.models import ClearedSchedule
from coaching_service.training.schedule.service import MAX_BLOCKS, add_days, days_between, join_some
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks.service import ClientCalendar, has_nothing_done, regular_blocks

# --- Returns from absences as they are sent, and their results --------------------------------------------------------


# What becomes of what was planned in an absence: it is moved, with everything later, or removed.
ResumeMode = Literal["shift", "weeks", "drop"]


# `from` is a keyword of Python, so this type has the functional form.
_Return = TypedDict(
    "_Return",
    {
        "mode": Annotated[
            ResumeMode,
            Description(
                "`shift`: what was planned in the absence, and everything later, moves by its length. `weeks`: by "
                "whole weeks, rounded up, so that weekdays stay. `drop`: what was planned in the absence is removed."
            ),
        ],
        "from": Annotated[str, validation.AbsenceDate(), Description("The first day on which the client trains.")],
    },
)


class ScheduleResumption(validation.DryRunField, _Return):
    """The return of a client from an absence."""


class ResumedSchedule(ClearedSchedule):
    """What a return from an absence changed of a calendar."""

    availability: Annotated[Availability, Description("The absence, which ends before the first day.")]


_LAST_DATE, _WEEK = "9999-12-31", 7


@transactional
async def resume(
    ctx: Context,
    customer_id: ObjectId,
    back: str,
    mode: ResumeMode | None,
    *,
    dry_run: bool = False,
    field: str = "from",
) -> ResumedSchedule:
    """End the latest absence of a client before the date `back`, the first day of training.

    `shift` moves what was planned in the absence and later by its length, `weeks` by whole weeks, `drop` removes what
    was planned in it, None leaves it; what is done stays. Raises Conflict if there is no absence to return from (see
    availability.find_absence_before), NotFound, Forbidden, and InvalidFields if there are more than 500 blocks, or if a
    date would leave the calendar; `field` is the field of the request that has the date `back`.
    """
    calendar = ClientCalendar(customer_id)
    await (calendar.require_access(ctx) if dry_run else calendar.authorize_and_lock(ctx))
    if (absence := await availability.find_absence_before(ctx, customer_id, back)) is None:
        raise Conflict("The client has no absence to return from on this day", code="NO_ABSENCE")
    last = str(add_days(back, -1, field))
    if dry_run:
        ended: Availability = absence if availability.has_ended(absence, last) else {**absence, "until": last}
    else:
        ended = await availability.end(ctx, absence, last, is_resumed=mode is not None)
    if mode == "drop":
        period = absence["from"], ended["until"] or last
        cleared = await schedule.clear(ctx, calendar, *period, dry_run=dry_run, field=field)
        return {**cleared.result, "availability": ended}
    blocks = await schedule.get_regular_blocks(ctx, calendar, absence["from"], _LAST_DATE, field) if mode else []
    moved = [block for block in blocks if has_nothing_done(block)]
    days = count_days(absence["from"], back, mode)
    changed = await batches.shift(ctx, calendar, moved, absence["from"], days, field, dry_run=dry_run)
    return {
        "dryRun": dry_run,
        "changeId": None if dry_run else ctx.change_id,
        "created": [],
        "changed": changed,
        "removed": [],
        "kept": len(blocks) - len(moved),
        "availability": ended,
    }


def count_days(first: str, back: str, mode: ResumeMode | None) -> int:
    """Return by how many days a return on the date `back` moves what was planned from `first` on."""
    days = days_between(first, back)
    return days if mode != "weeks" else -(-days // _WEEK) * _WEEK


# --- Returns from absences over REST ----------------------------------------------------------------------------------


routes = Routes("/coach/customers/{customerId}/schedule/resume", tag="Schedule", locks="customer")


@routes.post(
    "",
    access=coach(CUSTOMERS.EDIT),
    status=200,
    body=input_of(ScheduleResumption, validation.DryRun)(),
    errors=(Conflict,),
    example={"from": "2026-05-06", "mode": "weeks"},
)
async def resume_schedule(ctx: Context, customer_id: ObjectId, body: ScheduleResumption) -> ResumedSchedule:
    """Resume training after an absence.

    Ends the latest absence that began before `from` on the day before, unless it has ended, and moves or removes the
    blocks with nothing done. `kept` counts the blocks that stay because work was done. 409 `NO_ABSENCE` without one, if
    it ended more than 14 days before, and if this was done before.
    """
    return await resume(ctx, customer_id, body["from"], body["mode"], dry_run=body["dryRun"])


# --- The availability of clients for assistants: absences, and the return from one ------------------------------------


tools = Tools()
_BACK = "back"
_MAX_NAMED = 10


class AvailabilityToSet(CustomerArgument):
    """Why and when a client does not train, or the return."""

    kind = validation.Choice(
        *get_args(AvailabilityKind),
        _BACK,
        required=True,
        metadata={"description": "limited: no effect; back: ends the absence before startDate."},
    )
    startDate = validation.AbsenceDate(**optional("First day. Default: the client's today."))
    until = validation.AbsenceDate(**optional("Last day. Default: no end."))
    note = validation.Text(max_length=500, **optional("Shown to the client."))
    planned = validation.Choice(
        *get_args(ResumeMode),
        **optional("With back: shift what was planned since (weeks: by whole weeks), or drop it. Default: neither."),
    )

    @validates_schema(skip_on_field_errors=False)
    def validate_combination(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError unless only a return has `planned`, and only a period an end and a note."""
        others = ("until", "note") if data.get("kind") == _BACK else ("planned",)
        errors = {
            name: [validation.Message(f"must not be combined with kind {data.get('kind')}", "NOT_ALLOWED")]
            for name in others
            if data.get(name) is not None
        }
        first, last = data.get("startDate"), data.get("until")
        if first is not None and last is not None and last < first:
            errors.setdefault("until", []).append(validation.BEFORE_START)
        if errors:
            raise ValidationError(errors)


@tools.tool(
    "Set an absence",
    access=coach(CUSTOMERS.EDIT),
    takes=AvailabilityToSet(),
    writes=True,
    locks="customer",
    destructive=True,
    confirms=(mcp.Reason.MANY_DAYS, mcp.Reason.FAR_DATE),
)
async def set_availability(
    ctx: Context,
    customer_id: ObjectId,
    kind: AvailabilityKind | Literal["back"],
    start_date: str | None,
    until: str | None,
    note: str | None,
    planned: ResumeMode | None,
) -> Written:
    """Enter or change when a client is away, injured or ill: nothing is missed then, and check-ins pause; or end it."""
    today = await customers.get_local_date(ctx, customer_id)
    if kind == _BACK:
        back = start_date or await customers.resolve_today(ctx, customer_id)
        return await _resume(ctx, customer_id, today, back, planned)
    why = cast("AvailabilityKind", kind)
    if start_date is None:
        find = partial(_find_beginning, ctx, customer_id, today, why)
        start_date = await ctx.resolve(f"beginning of {customer_id}", find)
    new: NewAvailability = {"kind": why, "from": start_date, "until": until, "note": note}
    if until is not None and until < new["from"]:
        raise invalid_field("until", f"must not be before {new['from']}", code="BEFORE_START")
    before, period = await availability.put(ctx, customer_id, new)
    name = await _name(ctx, customer_id)
    if before == period:
        line = f"Nothing changed: {name} is {write_period(period)} already."
        return Written(line, {"customerId": customer_id, "availabilityId": period["_id"]})
    was = f"{write_period(before)} → " if before is not None else ""
    now = await customers.resolve_today(ctx, customer_id)
    days = [period["from"]] if period["until"] is None else [period["from"], period["until"]]
    return Written(
        f"Set {name} {was}{write_period(period)}.{_describe_check_ins(ctx, now)}"
        f"{await _name_planned(ctx, period, now)}",
        {"customerId": customer_id, "availabilityId": period["_id"]},
        mcp.find_reasons(
            today=today, dates=days, days=mcp.MAX_DAYS + 1 if period["until"] is None else mcp.count_span(days)
        ),
    )


async def _find_beginning(ctx: Context, customer_id: ObjectId, today: date, kind: AvailabilityKind) -> str:
    """Return when the present period began, if another kind may take its place; else today's date."""
    current = await availability.find_present_or_next(ctx, customer_id, today)
    if current is None or not includes(current, str(today)) or (kind == LIMITED) == is_absence(current):
        return str(today)
    return current["from"]


async def _resume(ctx: Context, customer_id: ObjectId, today: date, back: str, planned: ResumeMode | None) -> Written:
    result = await resume(ctx, customer_id, back, planned, field="startDate")
    period, moved = result["availability"], result["changed"]
    dates = [str(block["date"]) for block in moved]
    now = await customers.resolve_today(ctx, customer_id)
    sentences = [f"Set {await _name(ctx, customer_id)} back from {name_days([back], now)}: {write_period(period)}"]
    if planned in ("shift", "weeks"):
        shifted = f" by {count_days(period['from'], back, planned)} days, to {name_days(dates, now)}" if dates else ""
        sentences.append(f"moved {_count(len(moved))}{shifted}")
    elif planned == "drop":
        sentences.append(f"removed {_count(len(result['removed']))}")
    if result["kept"]:
        sentences.append(f"kept {_count(result['kept'])} with something done")
    return Written(
        f"{'; '.join(sentences)}.{_describe_check_ins(ctx, now)}",
        {"customerId": customer_id, "availabilityId": period["_id"]},
        mcp.find_reasons(
            today=today,
            dates=(back, *dates),
            days=max(mcp.count_span(dates), len(result["removed"]) and days_between(period["from"], back)),
        ),
    )


def _describe_check_ins(ctx: Context, today: str) -> str:
    """Return sentences about the check-ins that an absence removes or adds, each with a space before it."""
    sentences = []
    for action, words in (("deleted", "removed"), ("created", "added")):
        changed = [each for each in ctx.changes.documents.values() if each.action == action]
        versions = [each.before or each.after or {} for each in changed if each.history.kind == "workout"]
        check_ins = sorted((each["date"], each["name"]) for each in versions if each.get("checkInId") is not None)
        if check_ins:
            words_of = [f"{mcp.typed(name)} on {name_days([day], today)}" for day, name in check_ins]
            named = join_some(words_of, _MAX_NAMED)
            count = f"{len(check_ins)} check-in{'' if len(check_ins) == 1 else 's'}"
            sentences.append(f" {count} {words}: {named}.")
    return "".join(sentences)


async def _name_planned(ctx: Context, period: Availability, today: str) -> str:
    """Return a sentence about the workouts with nothing done that an absence has, and a space before it."""
    if not is_absence(period):
        return ""
    days = {"$gte": period["from"]} | ({"$lte": period["until"]} if period["until"] else {})
    blocks = await batches.read_days(ctx, ClientCalendar(period["customerId"]), days, MAX_BLOCKS)
    if not (planned := [block for block in regular_blocks(blocks) if has_nothing_done(block)]):
        return " Nothing is planned in it."
    named = join_some(
        [f"{mcp.typed(block['name'])} on {name_days([str(block['date'])], today)}" for block in planned], _MAX_NAMED
    )
    return f" {_count(len(planned))} planned in it: {named}. With back, shift or drop them."


async def _name(ctx: Context, customer_id: ObjectId) -> str:
    return mcp.typed((await customers.get_visible_reference(ctx, customer_id))["name"])


def _count(number: int) -> str:
    return f"{number} workout{'' if number == 1 else 's'}"
