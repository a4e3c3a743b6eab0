"""The page of a client's workout, the form of each set, and finishing the workout with a summary."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from aiohttp import web

from coaching_service.core.auth.access import customer
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.errors import InvalidFields
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import take
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import LoggedTime
from coaching_service.core.validation import Input
from coaching_service.people.account.service import convert_entered_load, convert_stored_load
from coaching_service.people.push import keys as push_keys
from coaching_service.people.push import service as push
from coaching_service.progress.logs import service
from coaching_service.progress.logs import service as logs
from coaching_service.progress.logs.schemas import WorkoutBlockLog
from coaching_service.training import own_schedule
from coaching_service.training.workouts import usual_loads
from coaching_service.training.workouts.blocks.load_conversion import show_loads
from coaching_service.training.workouts.blocks.models import Block, BlockLog
from coaching_service.training.workouts.blocks.presentation import presented_volume
from coaching_service.training.workouts.sets import CustomerSet
from coaching_service.web.pages import Pages, Redirect
from coaching_service.web.views.train.layout import is_session, label_day, workout_path
from coaching_service.web.views.train.lift_words import show_records
from coaching_service.web.views.train.workout.groups import group_items, rows_of
from coaching_service.web.views.train.workout.rows import AMOUNTS, SetRow, count_sets, plain
from coaching_service.web.views.train.workout.session_words import FEELINGS, describe_records, measure_minutes
from coaching_service.web.views.unusual_values import Confirmation

WORKOUT = "/workouts/{wblockId}"
ITEM = f"{WORKOUT}/items/{{witemId}}"
# What a script shows of a set after it was sent.
_SHOWN = frozenset({"index", "round", "exerciseId", "isCompleted", "loggedAt", *AMOUNTS})
pages = Pages("/train")


class _Time(Input):
    loggedAt = LoggedTime(allow_none=True, load_default=None)  # without a script that states it, the time is now


class _SetForm(CustomerSet, Confirmation):
    """A set; `loadUnit` is the unit of the page with the form."""

    loadUnit: Literal["kg", "lb"] | None


# Without the kind of the set, for which the page has no field: it stays as it was logged.
_SET_FORM = input_of(_SetForm, _Time)(exclude=("isWarmup", "setKind"))


@pages.get(WORKOUT, access=customer(), template="train/workout/workout.html", with_request=True)
async def workout_page(ctx: Context, wblock_id: ObjectId, request: web.Request) -> dict[str, Any]:
    """A workout: its sets and other items, and what was done of them."""
    unit = ctx.caller.load_unit
    block = show_loads(await service.read_own_workout(ctx, wblock_id), ctx, unit)
    days_to_move = await own_schedule.list_days_to_move(ctx, [block])
    groups = group_items(block, unit)
    heaviest = await usual_loads.find_heaviest(ctx, ctx.caller.id, {row.exercise_id for row in rows_of(groups)})
    stored = ctx.caller.company.load_unit

    def highest_usual(row: SetRow) -> float:
        return convert_stored_load(usual_loads.find_limit(heaviest.get(row.exercise_id), stored), stored, unit)

    return {
        "block": block,
        "unit": unit,
        "groups": groups,
        "highest_usual": highest_usual,
        "progress": count_sets(rows_of(groups)),
        "is_session": is_session(block),
        "feelings": FEELINGS,
        "plain": plain,
        "minutes": _proposed_minutes(block),
        "workout_path": workout_path(wblock_id),
        "days_to_move": days_to_move.get(block["_id"], ()),
        "label_day": partial(label_day, today=ctx.caller.today()),
        "rejected_item": request.match_info.get("witemId", ""),
    }


@pages.post(f"{ITEM}/sets", access=customer(), form=_SET_FORM, on=workout_page, idempotent=True)
async def log_set(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, form: _SetForm) -> Redirect:
    """Log one set, or take it back."""
    done = take(CustomerSet, form)
    unit = form["loadUnit"] or ctx.caller.load_unit
    if done.get("loggedAt") is None:
        del done["loggedAt"]
        if done["isCompleted"]:  # a script has asked before it stored the set on the device
            await _require_confirmed_load(ctx, wblock_id, witem_id, form, unit)
    if done["load"] is not None:
        done["load"] = convert_entered_load(done["load"], unit, ctx.caller.company.load_unit)
    block, records = await service.log_set(ctx, wblock_id, witem_id, done)
    stored = show_loads(_find_set(block, witem_id, done), ctx, unit)
    texts = describe_records(show_records(ctx, records))
    notice = " ".join(f"New record: {each['exercise']}, {each['text']}." for each in texts)
    data = {
        "set": {name: value for name, value in stored.items() if name in _SHOWN},
        "records": texts,
        **_progress(ctx, block, witem_id),
    }
    anchor = f"set-{witem_id}-{stored['exerciseId']}-{stored['round'] or 0}-{stored['index']}"
    return Redirect(f"{workout_path(wblock_id)}#{anchor}", notice, data=data)


async def _require_confirmed_load(
    ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, form: _SetForm, unit: str
) -> None:
    """Raise InvalidFields if the load of a set is unusual and not confirmed."""
    if form["load"] is None or form["confirmed"]:
        return
    block = await service.read_own_workout(ctx, wblock_id)
    item = next((each for each in block["items"] if each["_id"] == witem_id), None)
    swap = item.get("swappedFor") if item is not None else None
    planned = item.get("exerciseId") if item is not None else None
    exercise_id = form["exerciseId"] or (swap["exerciseId"] if swap else planned)
    if not isinstance(exercise_id, ObjectId):
        return
    stored = ctx.caller.company.load_unit
    load = convert_entered_load(form["load"], unit, stored)
    heaviest = (await usual_loads.find_heaviest(ctx, ctx.caller.id, [exercise_id])).get(exercise_id)
    if usual_loads.is_far(load, heaviest, stored):
        described = usual_loads.describe_far(ctx, load, heaviest)
        raise InvalidFields(
            [
                {"field": "load", "code": "UNUSUAL_AMOUNT", "message": f"is unusual: {described}"},
                {"field": "confirmed", "code": "UNUSUAL_AMOUNT", "message": "has to be ticked if the load is right"},
            ]
        )


def _proposed_minutes(block: Block) -> float | None:
    """Return the duration to propose: as saved, or once all is done as measured."""
    if block["durationMinutes"] is not None:
        return block["durationMinutes"]
    return measure_minutes(block) if block["isCompleted"] else None


def _find_set(block: Block, item_id: ObjectId, sent: CustomerSet) -> CustomerSet:
    """Return the logged set in the place of one that was sent, with its exercise; another one if that was later."""
    item = next(item for item in block["items"] if item["_id"] == item_id)
    if item["type"] != "EXERCISE" and item["type"] != "CIRCUIT":
        raise ValueError("only exercises and circuits have sets")
    swap = item.get("swappedFor")
    own_id = None if item["type"] == "CIRCUIT" else swap["exerciseId"] if swap else item["exerciseId"]
    sets: list[CustomerSet] = [{**each, "exerciseId": each["exerciseId"] or own_id} for each in item["customerSets"]]
    place = (sent["exerciseId"] or own_id, sent["round"] or 1, sent["index"])
    if item["type"] == "EXERCISE":  # a round means nothing there
        return next(each for each in sets if (each["exerciseId"], each["index"]) == (place[0], place[2]))
    return next(each for each in sets if (each["exerciseId"], each["round"] or 1, each["index"]) == place)


def _progress(ctx: Context, block: Block, item_id: ObjectId) -> Document:
    """Return how far an item and its workout are, for the script of the page."""
    done, planned = count_sets(rows_of(group_items(block, ctx.caller.load_unit)))
    item = next(item for item in block["items"] if item["_id"] == item_id)
    return {
        "item": {"_id": item_id, "isCompleted": item["isCompleted"]},
        "workout": {"completedSets": done, "plannedSets": planned, "isCompleted": block["isCompleted"]},
    }


@pages.post(f"{WORKOUT}/finish", access=customer(), form=WorkoutBlockLog(), on=workout_page)
async def finish_workout(ctx: Context, wblock_id: ObjectId, form: BlockLog) -> Redirect:
    """Save how long and how hard the workout was; without a duration, the time from the first to the last set."""
    log: BlockLog = {"feeling": None, **form}
    if log["durationMinutes"] is None:
        log["durationMinutes"] = measure_minutes(await logs.get_own_block(ctx, wblock_id))
    await logs.log_block(ctx, ctx.caller.id, wblock_id, log)
    return Redirect(f"{workout_path(wblock_id)}/summary")


@pages.get(f"{WORKOUT}/summary", access=customer(), template="train/workout/summary.html")
async def summary_page(ctx: Context, wblock_id: ObjectId) -> dict[str, Any]:
    """What was done in a workout, and the records set in it."""
    unit = ctx.caller.load_unit
    stored = await service.read_own_workout(ctx, wblock_id)
    block = show_loads(stored, ctx, unit)
    groups = group_items(block, unit)
    done, planned = count_sets(rows_of(groups))
    return {
        "block": block,
        "unit": unit,
        "records": describe_records(show_records(ctx, await service.list_records_of(ctx, ctx.caller.id, stored))),
        "done_sets": done,
        "planned_sets": planned,
        "volume": presented_volume(block["items"]),
        "feeling": dict(FEELINGS).get(block.get("feeling") or 0),
        "push_key": await _find_push_key(ctx) if block["isCompleted"] else None,
        "cards": [card for group in groups for card in group.cards],
        "workout_path": workout_path(wblock_id),
    }


async def _find_push_key(ctx: Context) -> str | None:
    """Return the key with which this device can subscribe to notifications, unless it has."""
    return None if await push.has_own_device(ctx) else (await push_keys.get_public_key(ctx.services))["key"]
