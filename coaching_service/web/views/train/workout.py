"""The page of a client's workout: its sets as rows of forms, its other items, and finishing it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, product, zip_longest
from string import ascii_uppercase
from typing import Annotated, Any, Literal, TypeAlias, TypedDict

from aiohttp import web

from coaching_service.core.auth import customer
from coaching_service.core.database.context import Context
from coaching_service.core.errors import InvalidFields, NotFound
from coaching_service.core.fields import input_of, take
from coaching_service.core.ids import ObjectId
from coaching_service.core.query import LoggedTime
from coaching_service.core.validation import TEXT_LENGTH, Input, Text
from coaching_service.library.exercises import service as exercises
from coaching_service.people import push
from coaching_service.people.account import convert_entered_load, convert_stored_load
from coaching_service.progress import form_checks
from coaching_service.progress.logs import service as logs
from coaching_service.progress.logs.schemas import PAIN_LENGTH, NewSkip, NewSwap, WorkoutBlockLog
from coaching_service.progress.logs.service import LogFields
from coaching_service.training import own_schedule
from coaching_service.training.workouts import plan_changes
from coaching_service.training.workouts.blocks.items import show_loads
from coaching_service.training.workouts.blocks.models import Block, BlockLog
from coaching_service.training.workouts.blocks.service import presented_volume
from coaching_service.training.workouts.items import descriptions
from coaching_service.training.workouts.items import models as item_models
from coaching_service.training.workouts.items import service as items
from coaching_service.training.workouts.sets import CustomerSet, PlannedSet, SetType
from coaching_service.web.browser_sessions import SAVES_PAGE
from coaching_service.web.formatting import label_day
from coaching_service.web.pages import Handler, KeywordQuery, Pages, Redirect
from coaching_service.web.views import results as view_results
from coaching_service.web.views.customer_layout import calendar_path, is_session, item_path, workout_path
from coaching_service.web.views.train import calendar

pages = Pages("/train")

AmountName = Literal["load", "reps", "seconds", "meters", "rpe", "rir"]
AMOUNTS: tuple[AmountName, ...] = ("load", "reps", "seconds", "meters", "rpe", "rir")
_LABELS = {"load": "load", "reps": "reps", "seconds": "time", "meters": "meters", "rpe": "RPE", "rir": "RIR"}
_CAPTIONS = {"reps": "reps", "seconds": "time", "meters": "m", "rpe": "RPE", "rir": "RIR"}
# The amounts of each type of set, and those that a client may add.
_COLUMNS: Mapping[SetType, tuple[AmountName, ...]] = {
    "reps_load": ("load", "reps"),
    "reps": ("reps",),
    "time": ("seconds",),
    "time_load": ("load", "seconds"),
    "distance": ("meters",),
    "distance_load": ("load", "meters"),
}
_ADDITIONAL: Mapping[SetType, tuple[AmountName, ...]] = {
    "reps_load": (),
    "reps": ("load",),
    "time": ("load",),
    "time_load": (),
    "distance": ("seconds", "load"),
    "distance_load": ("seconds",),
}
_EFFORT: tuple[Literal["rpe", "rir"], ...] = ("rpe", "rir")
_MAX_ROWS = 300
Row: TypeAlias = dict[str, Any]
Card: TypeAlias = dict[str, Any]


def _builder_of(
    item_id: ObjectId,
    exercise_id: ObjectId,
    name: str,
    unit: str,
    sets: Sequence[PlannedSet],
    done: Sequence[CustomerSet],
    *,
    facts: Collection[str],
    last: Mapping[int, CustomerSet],
    is_other_exercise: bool = False,
) -> Callable[..., Row]:
    """Return what builds the rows of an exercise in an item: each is a planned set, a logged one or both.

    A row's `label` names it, `number` is its short name. `target` is what is planned, `details` how it is done as far
    as that is not among the `facts` of all sets, `last` what the client did the last time. `logged_at` is the stored
    time (UTC) of a set that has one. `amounts` are always shown, `more` on demand. Above `most_reps` or `most_seconds`
    the client is asked: what is planned is not unusual.
    """
    shown: set[AmountName] = {each for planned in sets for each in _COLUMNS[planned["type"]]}
    shown |= {each for each in _EFFORT if any(planned[each] is not None for planned in sets)}
    shown |= {each for each in AMOUNTS if each not in _EFFORT and any(logged[each] is not None for logged in done)}
    additional = {each for planned in sets for each in _ADDITIONAL[planned["type"]]} | {*_EFFORT}

    def build(
        label: str, planned: PlannedSet | None, logged: CustomerSet | None, index: int, round_number: int | None = None
    ) -> Row:
        plan: Any = planned or {}
        if planned and is_other_exercise:  # the load was meant for the planned one
            plan = {**planned, "load": None, "loadPercent": None}
        bounds = {
            each: [plan.get(field) for field in fields if plan.get(field) is not None]
            for each, fields in view_results.PLANNED_FIELDS.items()
        }

        def show_amount(each: AmountName) -> dict[str, str]:
            value: float | None
            hint = ""
            if logged is not None:
                value = logged[each]
            else:
                value = next(
                    iter(bounds.get(each, ())), last[index]["load"] if each == "load" and index in last else None
                )
                if each == "reps" and plan.get("isAmrap"):
                    hint, value = f"{plain(value)}+" if value is not None else "max", None
            return {
                "name": each,
                "caption": unit if each == "load" else _CAPTIONS[each],
                "label": f"{label}: {_LABELS[each]}" + (f" in {unit}" if each == "load" else ""),
                "value": descriptions.write_seconds(value) if each == "seconds" else plain(value),
                "hint": hint,  # what is shown without a value
            }

        done_id = (logged["exerciseId"] if logged else None) or exercise_id
        amounts = [show_amount(each) for each in AMOUNTS if each in shown]
        return {
            "id": f"set-{item_id}-{done_id}-{round_number or 0}-{index}",
            "item_id": item_id,
            "exercise_id": done_id,
            "exercise_name": name,
            "round": round_number,
            "index": index,
            "number": str(index),
            "label": label,
            "target": " × ".join(descriptions.describe_amounts(plan, unit)) if planned else "",
            "details": [each for each in descriptions.describe_details(planned) if each not in facts]
            if planned
            else (),
            "last": descriptions.describe_done(last[index], unit) if index in last else "",
            "rest": round(plan["rest"]) if plan.get("rest") else None,
            "is_done": bool(logged and logged["isCompleted"]),
            "is_logged": logged is not None,
            "logged_at": logged.get("loggedAt") if logged else None,
            "amounts": amounts,
            "captions": tuple(each["caption"] for each in amounts),
            "more": [show_amount(each) for each in AMOUNTS if each in additional - shown],
            "most_reps": max([plan_changes.MAX_REPS, *bounds["reps"]]),
            "most_seconds": max([plan_changes.MAX_SECONDS, *bounds["seconds"]]),
        }

    return build


def _exercise_rows(item: item_models.ExerciseItem, unit: str) -> dict[str, Any]:
    """Return the rows of an exercise, each with the exercise that was or is to be done; loads are in `unit`.

    `facts` apply to every set, `extra` is a set beyond the plan.
    """
    swap, sets = item.get("swappedFor"), item["exerciseSets"]
    performed = swap or item
    performed_id, name = performed["exerciseId"], performed["exercise"]["name"]
    planned = {each["index"]: each for each in sets}
    logged: dict[int, CustomerSet] = {}  # by index a completed set of any exercise, else one of the exercise done now
    for each in item["customerSets"]:
        is_of_performed, known = (each["exerciseId"] or item["exerciseId"]) == performed_id, logged.get(each["index"])
        if each["isCompleted"] and (known is None or not known["isCompleted"] or is_of_performed):
            logged[each["index"]] = {**each, "exerciseId": each["exerciseId"] or item["exerciseId"]}
        elif is_of_performed and known is None:
            logged[each["index"]] = each
    last_time = item.get("lastTime") if swap is None else None
    last_sets = [each for each in last_time["sets"] if each["isCompleted"]] if last_time else []
    last = {each["index"]: each for each in reversed(last_sets)}  # the first of each
    details = [descriptions.describe_details(each) for each in sets]
    facts = [detail for detail in details[0] if all(detail in other for other in details)] if details else []
    ids, is_other = (item["_id"], performed_id), swap is not None
    build = _builder_of(
        *ids, name, unit, sets, item["customerSets"], facts=facts, last=last, is_other_exercise=is_other
    )
    indexes = sorted(planned.keys() | logged.keys())[:_MAX_ROWS]
    rows = [build(f"{name}, set {index}", planned.get(index), logged.get(index), index) for index in indexes]
    # A set beyond the last one, with the values of that one.
    previous, index = rows[-1], rows[-1]["index"] + 1
    extra = build(f"{name}, set {index}", None, None, index)
    amounts = zip(extra["amounts"], previous["amounts"], strict=True)
    extra |= {"amounts": [new | {"value": old["value"]} for new, old in amounts], "rest": previous["rest"]}
    return {"rows": rows, "facts": facts, "extra": extra}


def _circuit_rows(item: item_models.CircuitItem, unit: str) -> list[Row]:
    """Return the rows of a circuit by round, then in the order of its exercises; loads are in `unit`."""
    entries, rows = [(entry, entry["exercise"]["name"]) for entry in item["circuitExercises"]], list[Row]()
    builders = [
        _builder_of(
            item["_id"],
            entry["exerciseId"],
            name,
            unit,
            entry["sets"],
            [each for each in item["customerSets"] if each["exerciseId"] == entry["exerciseId"]],
            facts=(),
            last={},
        )
        for entry, name in entries
    ]
    for each in view_results.pair_sets(item):
        if each.planned is not None:
            entry, name = entries[each.place]
            label = f"{name}, round {each.round}" + (f", set {each.index}" if len(entry["sets"]) > 1 else "")
            rows.append(builders[each.place](label, each.planned, each.logged, each.index, each.round))
    return rows[:_MAX_ROWS]


def count_sets(rows: Iterable[Row]) -> tuple[int, int]:
    """Return how many sets are done, and how many there are."""
    done = [row["is_done"] for row in rows]
    return sum(done), len(done)


def plain(value: float | None) -> str:
    """Return a number as it is typed into a field, with at most three decimals; empty for None."""
    return "" if value is None else f"{value:.3f}".rstrip("0").rstrip(".")


# --- The items of a client's workout in the order in which they are done: single items, supersets and circuits --------


def group_items(block: Block, unit: str) -> list[dict[str, Any]]:
    """Return the items of a workout in groups of cards, which are done together; loads are in `unit`.

    A group is one item, or a superset with its `letter` and its rows by round: the first sets of its exercises, then
    the second ones, and so on. The rest of a round follows its last set: its own, else the longest of the others.
    """
    supersets: dict[str, list[item_models.ExerciseItem]] = {}
    for item in block["items"]:
        if item["type"] == "EXERCISE" and item["supersetId"]:
            supersets.setdefault(item["supersetId"], []).append(item)
    letters = chain(ascii_uppercase, map("".join, product(ascii_uppercase, repeat=2)))
    groups: list[dict[str, Any]] = []
    for item in block["items"]:
        members = supersets.get(item["supersetId"] or "", []) if item["type"] == "EXERCISE" else []
        if len(members) < 2:
            groups.append({"letter": "", "cards": [_card(item, unit)]})
        elif members[0] is item:
            letter, rounds = next(letters), list[tuple[int, list[Row]]]()
            cards = [_card(member, unit, f"{letter}{at}") for at, member in enumerate(members, start=1)]
            active = [card["rows"] for card in cards if not card["item"].get("skipped")]
            for number, in_round in enumerate(zip_longest(*active), start=1):
                *others, last = [row for row in in_round if row is not None]
                rest = last["rest"] or max((row["rest"] or 0 for row in others), default=0)
                rounds.append((number, [*(row | {"rest": None} for row in others), last | {"rest": rest or None}]))
            groups.append({"letter": letter, "cards": cards, "rounds": rounds})
    return groups


def rows_of(groups: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Return every set that is planned or logged, without sets of skipped items that are not done."""
    return [
        row
        for group in groups
        for card in group["cards"]
        for row in card["rows"]
        if row["is_done"] or not card["item"].get("skipped")
    ]


def _card(item: item_models.WorkItem, unit: str, number: str = "") -> Card:
    """Return one item: `number` is its place in a superset, such as `A1`; `guides` are its exercises."""
    card: Card = {"item": item, "title": "", "number": number, "guides": (), "rows": (), "facts": (), "extra": None}
    if item["type"] == "EXERCISE":
        swap = item.get("swappedFor")
        name = swap["exercise"] if swap else item["exercise"]
        instructions = (None if swap else item["exerciseInstructions"]) or name["defaultInstructions"] or ""
        guide = {"exercise_id": name["_id"], "name": name["name"], "instructions": instructions}
        card |= {"title": name["name"], "guides": [guide], **_exercise_rows(item, unit)}
        for row in card["rows"] if number else ():
            row["number"] = number
    elif item["type"] == "CIRCUIT":
        guides = [
            {
                "exercise_id": entry["exerciseId"],
                "name": entry["exercise"]["name"],
                "instructions": entry["instructions"] or entry["exercise"]["defaultInstructions"] or "",
            }
            for entry in item["circuitExercises"]
        ]
        card |= {"title": item["circuitName"], "guides": guides, "rows": _circuit_rows(item, unit)}
    else:
        card["title"] = descriptions.describe_item(item, unit)["title"]
    return card


# --- The page of a client's workout, the form of each set, and finishing the workout with a summary -------------------


WORKOUT = "/workouts/{wblockId}"
ITEM = f"{WORKOUT}/items/{{witemId}}"
# What a script shows of a set after it was sent.
_SHOWN = frozenset({"index", "round", "exerciseId", "isCompleted", "loggedAt", *AMOUNTS})


class _Time(Input):
    loggedAt = LoggedTime(allow_none=True, load_default=None)  # without a script that states it, the time is now


class _SetForm(CustomerSet, view_results.Confirmation):
    """A set; `loadUnit` is the unit of the page with the form."""

    loadUnit: Literal["kg", "lb"] | None


# Without the kind of the set, for which the page has no field: it stays as it was logged.
_SET_FORM = input_of(_SetForm, _Time)(exclude=("isWarmup", "setKind"))


@pages.get(WORKOUT, access=customer(), template="train/workout/workout.html", with_request=True)
async def workout_page(ctx: Context, wblock_id: ObjectId, request: web.Request) -> dict[str, Any]:
    """A workout: its sets and other items, and what was done of them."""
    unit = ctx.caller.load_unit
    block = show_loads(await logs.read_own_workout(ctx, wblock_id), ctx, unit)
    days_to_move = await own_schedule.list_days_to_move(ctx, [block])
    groups = group_items(block, unit)
    heaviest = await plan_changes.find_heaviest(ctx, ctx.caller.id, {row["exercise_id"] for row in rows_of(groups)})
    stored = ctx.caller.company.load_unit
    with_media = [item["_id"] for item in block["items"] if item.get("mediaCount")]
    is_shown, saved = SAVES_PAGE not in request.headers, block["durationMinutes"]

    def highest_usual(row: Row) -> float:
        return convert_stored_load(plan_changes.find_limit(heaviest.get(row["exercise_id"]), stored), stored, unit)

    return {
        "block": block,
        "groups": groups,
        "highest_usual": highest_usual,
        "media": await form_checks.show_of_items(ctx, ctx.caller.id, with_media, seen=is_shown) if with_media else {},
        "progress": count_sets(rows_of(groups)),
        "is_session": is_session(block),
        "feelings": view_results.FEELINGS,
        "plain": plain,
        # As saved, or once all is done as measured.
        "minutes": view_results.measure_minutes(block) if saved is None and block["isCompleted"] else saved,
        "workout_path": workout_path(wblock_id),
        "days_to_move": days_to_move.get(block["_id"], ()),
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
            await _require_confirmed(ctx, wblock_id, witem_id, form, unit)
    if done["load"] is not None:
        done["load"] = convert_entered_load(done["load"], unit, ctx.caller.company.load_unit)
    block, records = await logs.log_set(ctx, wblock_id, witem_id, done)
    item = next(each for each in block["items"] if each["_id"] == witem_id)
    if item["type"] != "EXERCISE" and item["type"] != "CIRCUIT":
        raise ValueError("only exercises and circuits have sets")
    swap, is_exercise = item.get("swappedFor"), item["type"] == "EXERCISE"
    own_id = None if item["type"] == "CIRCUIT" else swap["exerciseId"] if swap else item["exerciseId"]

    def place_of(each: CustomerSet) -> tuple[ObjectId | None, int, int]:  # a round means nothing in an exercise
        return each["exerciseId"] or own_id, 1 if is_exercise else each["round"] or 1, each["index"]

    logged = next(each for each in item["customerSets"] if place_of(each) == place_of(done))
    stored = show_loads({**logged, "exerciseId": logged["exerciseId"] or own_id}, ctx, unit)
    texts = view_results.describe_new_records(view_results.show_records(ctx, records))
    completed, planned = count_sets(rows_of(group_items(block, ctx.caller.load_unit)))
    notice = " ".join(f"New record: {each['exercise']}, {each['text']}." for each in texts)
    data = {
        "set": {name: value for name, value in stored.items() if name in _SHOWN},
        "records": texts,
        "item": {"_id": witem_id, "isCompleted": item["isCompleted"]},
        "workout": {"completedSets": completed, "plannedSets": planned, "isCompleted": block["isCompleted"]},
    }
    anchor = f"set-{witem_id}-{stored['exerciseId']}-{stored['round'] or 0}-{stored['index']}"
    return Redirect(f"{workout_path(wblock_id)}#{anchor}", notice, data=data)


async def _require_confirmed(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, form: _SetForm, unit: str) -> None:
    """Raise InvalidFields if the load, repetitions or time of a set are unusual and not confirmed."""
    if form["confirmed"]:
        return
    block = await logs.read_own_workout(ctx, wblock_id)
    groups = group_items(block, unit)
    place = {"item_id": witem_id, "exercise_id": form["exerciseId"], "round": form["round"], "index": form["index"]}
    row: Row = next((each for each in rows_of(groups) if each.items() >= place.items()), {})
    most_reps, most_seconds = (
        row.get("most_reps", plan_changes.MAX_REPS),
        row.get("most_seconds", plan_changes.MAX_SECONDS),
    )
    unusual: dict[str, str] = {}
    if (form["reps"] or 0) > most_reps:
        unusual["reps"] = f"is unusual: more than {most_reps:,.0f}"
    if (form["seconds"] or 0) > most_seconds:
        unusual["seconds"] = f"is unusual: more than {descriptions.format_clock(most_seconds)}"
    item = next((each for each in block["items"] if each["_id"] == witem_id), None)
    swap = item.get("swappedFor") if item is not None else None
    planned = item.get("exerciseId") if item is not None else None
    exercise_id = form["exerciseId"] or (swap["exerciseId"] if swap else planned)
    if form["load"] is not None and isinstance(exercise_id, ObjectId):
        stored = ctx.caller.company.load_unit
        load = convert_entered_load(form["load"], unit, stored)
        heaviest = (await plan_changes.find_heaviest(ctx, ctx.caller.id, [exercise_id])).get(exercise_id)
        if load > plan_changes.find_limit(heaviest, stored):
            unusual["load"] = f"is unusual: {plan_changes.describe_far(ctx, load, heaviest)}"
    if unusual:
        unusual["confirmed"] = "has to be ticked if this is right"
        raise InvalidFields(
            [{"field": name, "code": "UNUSUAL_AMOUNT", "message": message} for name, message in unusual.items()]
        )


@pages.post(f"{WORKOUT}/move", access=customer(), on=workout_page, idempotent=True)
async def move_own_workout(ctx: Context, wblock_id: ObjectId, form: own_schedule.WorkoutDate) -> Redirect:
    """Move a workout to another day."""
    block = await own_schedule.move(ctx, wblock_id, {"date": form["date"]})
    day = label_day(str(block["date"]), ctx.caller.today(), within=True)
    return Redirect(calendar_path(str(block["date"])), f"{block['name']} moved to {day}.")


@pages.post(f"{WORKOUT}/finish", access=customer(), form=WorkoutBlockLog(), on=workout_page)
async def finish_workout(ctx: Context, wblock_id: ObjectId, form: BlockLog) -> Redirect:
    """Save how long and how hard the workout was; without a duration, the time from the first to the last set."""
    log: BlockLog = {"feeling": None, **form}
    if log["durationMinutes"] is None:
        log["durationMinutes"] = view_results.measure_minutes(await logs.get_own_block(ctx, wblock_id))
    await logs.log_block(ctx, ctx.caller.id, wblock_id, log)
    return Redirect(f"{workout_path(wblock_id)}/summary")


@pages.get(f"{WORKOUT}/summary", access=customer(), template="train/workout/summary.html")
async def summary_page(ctx: Context, wblock_id: ObjectId) -> dict[str, Any]:
    """What was done in a workout, and the records set in it."""
    unit = ctx.caller.load_unit
    stored = await logs.read_own_workout(ctx, wblock_id)
    block = show_loads(stored, ctx, unit)
    groups = group_items(block, unit)
    done, planned = count_sets(rows_of(groups))
    may_subscribe = block["isCompleted"] and not any(each["isCurrent"] for each in await push.list_own_devices(ctx))
    return {
        "block": block,
        "records": view_results.describe_new_records(
            view_results.show_records(ctx, await logs.list_records_of(ctx, ctx.caller.id, stored))
        ),
        "done_sets": done,
        "planned_sets": planned,
        "volume": presented_volume(block["items"]),
        "feeling": dict(view_results.FEELINGS).get(block.get("feeling") or 0),
        # With which this device can subscribe to notifications, unless it has.
        "push_key": (await push.get_push_public_key(ctx))["key"] if may_subscribe else None,
        "cards": [card for group in groups for card in group["cards"]],
        "workout_path": workout_path(wblock_id),
    }


# --- The forms of an item of a client's workout other than its sets: done, measured, commented, skipped or swapped ----


class _CompletionForm(TypedDict):
    isCompleted: bool


class _CommentForm(TypedDict):
    comment: Annotated[str | None, Text(max_length=TEXT_LENGTH, allow_blank=True)]
    pain: Annotated[str | None, Text(max_length=PAIN_LENGTH, allow_blank=True)]


@pages.post(f"{ITEM}/metrics", access=customer(), form=view_results.ValuesForm, on=workout_page)
async def log_metrics(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, form: view_results.ValuesForm) -> Redirect:
    """Record measurements; the item is done when at least one is given."""
    await view_results.require_confirmed_rows(ctx, ctx.caller.id, wblock_id, form)
    values = view_results.given_values(form)
    return await change_item(ctx, wblock_id, witem_id, {"values": values, "isCompleted": bool(values)}, "Saved.")


async def change_item(
    ctx: Context, block_id: ObjectId, item_id: ObjectId, change: LogFields, notice: str = ""
) -> Redirect:
    """Change the log of an item of the client, and return to its place in the workout."""
    item = await logs.update_own_log(ctx, block_id, item_id, change)
    data = {"item": {"_id": item_id, "isCompleted": item["isCompleted"]}}
    return Redirect(item_path(block_id, item_id), notice, data=data)


def _declare_change(
    path: str,
    name: str,
    to_log: Callable[[Any], LogFields],
    notice: str = "",
    on: Handler = workout_page,
    **options: Any,
) -> None:
    """Declare the form `name` that changes the log of an item to what a function makes of the form."""

    async def change(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, **sent: Any) -> Redirect:
        return await change_item(ctx, wblock_id, witem_id, to_log(sent.get("form")), notice)

    change.__name__ = name
    pages.post(f"{ITEM}/{path}", access=customer(), on=on, **options)(change)


def _to_comment(form: _CommentForm) -> LogFields:
    return {"comment": form["comment"] or None, "pain": form["pain"] or None}


_declare_change("completion", "log_completion", lambda form: form, form=_CompletionForm)
_declare_change("comment", "log_comment", _to_comment, "Saved. Your coach can read it.", form=_CommentForm)
_declare_change(
    "skip", "skip_item", lambda form: {"skipped": {"reason": form["reason"] or None}}, "Skipped.", form=NewSkip()
)
_declare_change("skip/undo", "undo_skip", lambda _: {"skipped": None}, "Back in your workout.")
_declare_change("swap/undo", "undo_swap", lambda _: {"swappedFor": None}, "Back to the planned exercise.")


_SUGGESTIONS, _RESULTS = 12, 20


@pages.get(f"{ITEM}/swap", access=customer(), query=KeywordQuery, template="train/workout/swap.html")
async def swap_page(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, query: KeywordQuery) -> dict[str, Any]:
    """Exercises to do in place of a planned one: similar ones, or those that match a search."""
    block = await logs.get_own_block(ctx, wblock_id)
    item = block["items"][items.find_index(block["items"], witem_id)]
    if item["type"] != "EXERCISE":
        raise NotFound("exercise")
    swap = item.get("swappedFor")
    taken = {item["exerciseId"]} | ({swap["exerciseId"]} if swap else set())
    if query["keywords"]:
        results = await exercises.list_exercises(ctx, page=1, size=_RESULTS, keywords=query["keywords"])
        offered = [{"_id": each["_id"], "name": each["name"]} for each in results["docs"] if each["_id"] not in taken]
    else:
        known = list(calendar.last_plans(await calendar.list_latest(ctx)))
        similar = await exercises.list_alternatives(ctx, item["exerciseId"], _SUGGESTIONS, known)
        offered = [{"_id": each["_id"], "name": each["name"]} for each in similar if each["_id"] not in taken]
    return {
        "block": block,
        "item": item,
        "offered": offered,
    }


@pages.post(f"{ITEM}/swap", access=customer(), form=NewSwap(), on=swap_page)
async def swap_exercise(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, form: item_models.Swap) -> Redirect:
    """Do another exercise in place of the planned one."""
    swap: item_models.Swap = {"exerciseId": form["exerciseId"], "reason": form["reason"] or None}
    return await change_item(ctx, wblock_id, witem_id, {"swappedFor": swap}, "Exercise swapped.")
