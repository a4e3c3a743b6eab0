"""The page of a client's workout: its sets as rows of forms, its other items, and finishing it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, product, zip_longest
from string import ascii_uppercase
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

from aiohttp import web

from coaching_service.core.auth import customer
from coaching_service.core.database.context import Context
from coaching_service.core.errors import InvalidFields, NotFound
from coaching_service.core.field_schemas import input_of
from coaching_service.core.fields import take
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
from coaching_service.training.workouts.blocks.load_conversion import show_loads
from coaching_service.training.workouts.blocks.models import Block, BlockLog
from coaching_service.training.workouts.blocks.service import presented_volume
from coaching_service.training.workouts.items import descriptions
from coaching_service.training.workouts.items import models as item_models
from coaching_service.training.workouts.items import service as items
from coaching_service.training.workouts.sets import CustomerSet, PlannedSet, SetType
from coaching_service.web.browser_sessions import SAVES_PAGE
from coaching_service.web.formatting import label_day
from coaching_service.web.pages import KeywordQuery, Pages, Redirect
from coaching_service.web.views import results as view_results
from coaching_service.web.views.customer_layout import calendar_path, is_session, item_path, workout_path
from coaching_service.web.views.train import calendar

pages = Pages("/train")

AmountName = Literal["load", "reps", "seconds", "meters", "rpe", "rir"]
AMOUNTS: tuple[AmountName, ...] = ("load", "reps", "seconds", "meters", "rpe", "rir")
_LABELS: Mapping[AmountName, str] = {
    "load": "load",
    "reps": "reps",
    "seconds": "time",
    "meters": "meters",
    "rpe": "RPE",
    "rir": "RIR",
}
_CAPTIONS: Mapping[AmountName, str] = {"reps": "reps", "seconds": "time", "meters": "m", "rpe": "RPE", "rir": "RIR"}
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
_EFFORT: tuple[AmountName, ...] = ("rpe", "rir")
_MOST_IN_ONE_LINE = 2
_USUAL: tuple[float, float] = (plan_changes.MAX_REPS, plan_changes.MAX_SECONDS)
_MAX_ROWS = 300


class Amount(NamedTuple):
    """One field of a row: its name, the caption above it, its whole label, its value, and what is shown without one."""

    name: AmountName
    caption: str
    label: str
    value: str
    hint: str


@dataclass(frozen=True)
class SetRow:
    """One set with its form.

    `label` names it, `number` is its short name. `target` is what is planned, `details` how it is done as far as that
    differs from the other sets, `last` what the client did the last time. `logged_at` is the stored time (UTC) of a set
    that has one. `amounts` are always shown, `more` on demand. Above `most_reps` or `most_seconds` the client is asked.
    """

    id: str
    item_id: ObjectId
    exercise_id: ObjectId
    exercise_name: str
    round: int | None
    index: int
    number: str
    label: str
    target: str
    details: Sequence[str]
    last: str
    rest: int | None
    is_done: bool
    is_logged: bool
    logged_at: datetime | None
    amounts: Sequence[Amount]
    more: Sequence[Amount]
    most_reps: float = plan_changes.MAX_REPS
    most_seconds: float = plan_changes.MAX_SECONDS

    @property
    def captions(self) -> Sequence[str]:
        """What its fields are, in their order."""
        return [amount.caption for amount in self.amounts]

    @property
    def noted(self) -> str:
        """What was logged in the fields that are shown on demand: `RPE 7`."""
        return ", ".join(f"{each.caption} {each.value}" for each in self.more if each.value and self.is_logged)

    @property
    def is_wide(self) -> bool:
        """Whether there is no room for text in the line of the fields on a phone."""
        return len(self.amounts) > _MOST_IN_ONE_LINE


@dataclass(frozen=True)
class ItemRows:
    """The rows of an exercise or circuit, in order; `facts` apply to every set. `extra` is a set beyond the plan."""

    rows: Sequence[SetRow] = ()
    facts: Sequence[str] = ()
    extra: SetRow | None = None

    @property
    def facts_text(self) -> str:
        """The facts as one phrase."""
        text = ", ".join(self.facts)
        return text[:1].upper() + text[1:]


@dataclass(frozen=True)
class _Series:
    """The sets of one exercise within an item and, in a circuit, a round."""

    item_id: ObjectId
    exercise_id: ObjectId
    name: str
    unit: str
    columns: Sequence[AmountName]
    additional: Sequence[AmountName]
    facts: Sequence[str]
    last: Mapping[int, CustomerSet]
    is_other_exercise: bool = False

    def row(
        self, label: str, planned: PlannedSet | None, logged: CustomerSet | None, index: int, round_number: int | None
    ) -> SetRow:
        exercise_id = (logged["exerciseId"] if logged else None) or self.exercise_id
        amounts = [self._amount(name, label, planned, logged, index) for name in self.columns]
        more = [self._amount(name, label, planned, logged, index) for name in self.additional]
        rest = planned["rest"] if planned else None
        return SetRow(
            id=f"set-{self.item_id}-{exercise_id}-{round_number or 0}-{index}",
            item_id=self.item_id,
            exercise_id=exercise_id,
            exercise_name=self.name,
            round=round_number,
            index=index,
            number=str(index),
            label=label,
            target=" × ".join(descriptions.describe_amounts(self._without_load(planned), self.unit)) if planned else "",
            details=[each for each in descriptions.describe_details(planned) if each not in self.facts]
            if planned
            else (),
            last=descriptions.describe_done(self.last[index], self.unit) if index in self.last else "",
            rest=round(rest) if rest else None,
            is_done=bool(logged and logged["isCompleted"]),
            is_logged=logged is not None,
            logged_at=logged.get("loggedAt") if logged else None,
            amounts=amounts,
            more=more,
            most_reps=_most_usual("reps", planned),
            most_seconds=_most_usual("seconds", planned),
        )

    def _without_load(self, planned: PlannedSet) -> PlannedSet:
        """Return the plan, without its load if another exercise is done: it was meant for the planned one."""
        return {**planned, "load": None, "loadPercent": None} if self.is_other_exercise else planned

    def _amount(
        self, name: AmountName, label: str, planned: PlannedSet | None, logged: CustomerSet | None, index: int
    ) -> Amount:
        caption = self.unit if name == "load" else _CAPTIONS[name]
        full_label = f"{label}: {_LABELS[name]}" + (f" in {self.unit}" if name == "load" else "")
        hint = ""
        if logged is not None:
            value = logged[name]
        else:
            bounds = _bounds(name, self._without_load(planned)) if planned else ()
            value = next((bound for bound in bounds if bound is not None), None)
            if name == "load" and value is None and index in self.last:
                value = self.last[index]["load"]
            if planned and name == "reps" and planned.get("isAmrap"):
                hint = f"{plain(value)}+" if value is not None else "max"
                value = None
        return Amount(
            name, caption, full_label, descriptions.write_seconds(value) if name == "seconds" else plain(value), hint
        )


def _bounds(name: AmountName, planned: PlannedSet) -> Sequence[float | None]:
    """Return what a set plans of an amount: the lowest and the highest value."""
    if name == "reps":
        return planned.get("minPlannedReps"), planned.get("maxPlannedReps")
    if name == "seconds":
        return planned.get("minPlannedSeconds"), planned.get("maxPlannedSeconds")
    if name == "meters":
        return (planned.get("plannedMeters"),)
    return (planned.get("load"),) if name == "load" else ()


def exercise_rows(item: item_models.ExerciseItem, unit: str) -> ItemRows:
    """Return the rows of an exercise, each with the exercise that was or is to be done; loads are in `unit`."""
    swap, sets = item.get("swappedFor"), item["exerciseSets"]
    performed = swap or item
    performed_id, name = performed["exerciseId"], performed["exercise"]["name"]
    planned = {each["index"]: each for each in sets}
    logged = _logged_by_index(item, performed_id)
    last_time = item.get("lastTime") if swap is None else None
    last_sets = [each for each in last_time["sets"] if each["isCompleted"]] if last_time else []
    last = {each["index"]: each for each in reversed(last_sets)}  # the first of each
    details = [descriptions.describe_details(each) for each in sets]
    facts = [detail for detail in details[0] if all(detail in other for other in details)] if details else []
    columns, additional = _columns(sets, item["customerSets"])
    series = _Series(item["_id"], performed_id, name, unit, columns, additional, facts, last, swap is not None)
    indexes = sorted(planned.keys() | logged.keys())[:_MAX_ROWS]
    rows = [series.row(f"{name}, set {index}", planned.get(index), logged.get(index), index, None) for index in indexes]
    # A set beyond the last one, with the values of that one.
    previous, index = rows[-1], rows[-1].index + 1
    extra = series.row(f"{name}, set {index}", None, None, index, None)
    values = {amount.name: amount.value for amount in previous.amounts}
    amounts = [amount._replace(value=values[amount.name]) for amount in extra.amounts]
    return ItemRows(rows, facts, replace(extra, amounts=amounts, rest=previous.rest))


def circuit_rows(item: item_models.CircuitItem, unit: str) -> ItemRows:
    """Return the rows of a circuit by round, then in the order of its exercises; loads are in `unit`."""
    rows = []
    series = []
    for entry in item["circuitExercises"]:
        exercise_id = entry["exerciseId"]
        columns = _columns(entry["sets"], [each for each in item["customerSets"] if each["exerciseId"] == exercise_id])
        series.append(_Series(item["_id"], exercise_id, entry["exercise"]["name"], unit, *columns, (), {}))
    for each in view_results.pair_sets(item):
        if each.planned is not None:
            of_entry = series[each.place]
            label = f"{of_entry.name}, round {each.round}"
            if len(item["circuitExercises"][each.place]["sets"]) > 1:
                label += f", set {each.index}"
            rows.append(of_entry.row(label, each.planned, each.logged, each.index, each.round))
    return ItemRows(rows[:_MAX_ROWS])


def count_sets(rows: Iterable[SetRow]) -> tuple[int, int]:
    """Return how many sets are done, and how many there are."""
    done = [row.is_done for row in rows]
    return sum(done), len(done)


def plain(value: float | None) -> str:
    """Return a number as it is typed into a field, with at most three decimals; empty for None."""
    return "" if value is None else f"{value:.3f}".rstrip("0").rstrip(".")


def _logged_by_index(item: item_models.ExerciseItem, performed_id: ObjectId) -> dict[int, CustomerSet]:
    """Return the logged sets by index: a completed one of any exercise, else one of the exercise done now."""
    by_index: dict[int, CustomerSet] = {}
    for logged in item["customerSets"]:
        is_of_performed = (logged["exerciseId"] or item["exerciseId"]) == performed_id
        known = by_index.get(logged["index"])
        if logged["isCompleted"] and (known is None or not known["isCompleted"] or is_of_performed):
            by_index[logged["index"]] = {**logged, "exerciseId": logged["exerciseId"] or item["exerciseId"]}
        elif is_of_performed and known is None:
            by_index[logged["index"]] = logged
    return by_index


def _columns(
    planned: Sequence[PlannedSet], logged: Sequence[CustomerSet]
) -> tuple[Sequence[AmountName], Sequence[AmountName]]:
    """Return the amounts that every row of an exercise shows, and what it shows on demand."""
    shown: set[AmountName] = {name for each in planned for name in _COLUMNS[each["type"]]}
    if any(each["rpe"] is not None for each in planned):
        shown.add("rpe")
    if any(each["rir"] is not None for each in planned):
        shown.add("rir")
    shown |= {name for name in AMOUNTS if name not in _EFFORT and any(each[name] is not None for each in logged)}
    additional = {name for each in planned for name in _ADDITIONAL[each["type"]]} | set(_EFFORT)
    return [name for name in AMOUNTS if name in shown], [name for name in AMOUNTS if name in additional - shown]


def _most_usual(name: Literal["reps", "seconds"], planned: PlannedSet | None) -> float:
    """Return the most repetitions or seconds of a set that are not asked about: what is planned is not unusual."""
    usual = plan_changes.MAX_REPS if name == "reps" else plan_changes.MAX_SECONDS
    return max([usual, *(bound or 0 for bound in (_bounds(name, planned) if planned else ()))])


def shared_captions(rows: Iterable[SetRow]) -> Sequence[str]:
    """Return what the fields of all rows are, if it is the same in each."""
    captions = {tuple(row.captions) for row in rows}
    return captions.pop() if len(captions) == 1 else ()


# --- The items of a client's workout in the order in which they are done: single items, supersets and circuits --------


@dataclass(frozen=True)
class Guide:
    """An exercise with the coach's instructions, which may be empty."""

    exercise_id: ObjectId
    name: str
    instructions: str


@dataclass(frozen=True)
class Card:
    """One item: `number` is its place in a superset, such as `A1`; `guides` are its exercises."""

    item: item_models.WorkItem
    title: str
    number: str
    guides: Sequence[Guide]
    sets: ItemRows

    @property
    def rounds(self) -> Sequence[tuple[int, Sequence[SetRow]]]:
        """The rows of a circuit by round."""
        rounds: dict[int, list[SetRow]] = {}
        for row in self.sets.rows:
            rounds.setdefault(row.round or 1, []).append(row)
        return list(rounds.items())


@dataclass(frozen=True)
class Group:
    """Items that are done together: one, or the items of a superset with its `letter`."""

    letter: str
    cards: Sequence[Card]

    @property
    def rounds(self) -> Sequence[tuple[int, Sequence[SetRow]]]:
        """The rows of a superset by round: the first sets of its exercises, then the second ones, and so on.

        The rest of a round follows its last set: its own, else the longest of the others.
        """
        active = [card.sets.rows for card in self.cards if not card.item.get("skipped")]
        rounds = []
        for number, in_round in enumerate(zip_longest(*active), start=1):
            *others, last = [row for row in in_round if row is not None]
            rest = last.rest or max((row.rest or 0 for row in others), default=0)
            rounds.append((number, [*(replace(row, rest=None) for row in others), replace(last, rest=rest or None)]))
        return rounds


def group_items(block: Block, unit: str) -> list[Group]:
    """Return the items of a workout in groups; loads are in `unit`."""
    supersets: dict[str, list[item_models.ExerciseItem]] = {}
    for item in block["items"]:
        if item["type"] == "EXERCISE" and item["supersetId"]:
            supersets.setdefault(item["supersetId"], []).append(item)
    letters = chain(ascii_uppercase, map("".join, product(ascii_uppercase, repeat=2)))
    groups: list[Group] = []
    for item in block["items"]:
        members = supersets.get(item["supersetId"] or "", []) if item["type"] == "EXERCISE" else []
        if len(members) < 2:
            groups.append(Group("", [_card(item, unit)]))
        elif members[0] is item:
            letter = next(letters)
            cards = [_card(member, unit, f"{letter}{at}") for at, member in enumerate(members, start=1)]
            groups.append(Group(letter, cards))
    return groups


def rows_of(groups: Sequence[Group]) -> list[SetRow]:
    """Return every set that is planned or logged, without sets of skipped items that are not done."""
    return [
        row
        for group in groups
        for card in group.cards
        for row in card.sets.rows
        if row.is_done or not card.item.get("skipped")
    ]


def _card(item: item_models.WorkItem, unit: str, number: str = "") -> Card:
    title = descriptions.describe_item(item, unit)["title"]
    if item["type"] == "EXERCISE":
        swap = item.get("swappedFor")
        name = swap["exercise"] if swap else item["exercise"]
        instructions = (None if swap else item["exerciseInstructions"]) or name["defaultInstructions"] or ""
        sets = exercise_rows(item, unit)
        if number:
            sets = replace(sets, rows=[replace(row, number=number) for row in sets.rows])
        return Card(item, name["name"], number, [Guide(name["_id"], name["name"], instructions)], sets)
    if item["type"] == "CIRCUIT":
        guides = [
            Guide(
                entry["exerciseId"],
                entry["exercise"]["name"],
                entry["instructions"] or entry["exercise"]["defaultInstructions"] or "",
            )
            for entry in item["circuitExercises"]
        ]
        return Card(item, item["circuitName"], "", guides, circuit_rows(item, unit))
    return Card(item, title, "", (), ItemRows())


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
    heaviest = await plan_changes.find_heaviest(ctx, ctx.caller.id, {row.exercise_id for row in rows_of(groups)})
    stored = ctx.caller.company.load_unit
    with_media = [item["_id"] for item in block["items"] if item.get("mediaCount")]
    is_shown, saved = SAVES_PAGE not in request.headers, block["durationMinutes"]

    def highest_usual(row: SetRow) -> float:
        return convert_stored_load(plan_changes.find_limit(heaviest.get(row.exercise_id), stored), stored, unit)

    return {
        "block": block,
        "unit": unit,
        "groups": groups,
        "shared_captions": shared_captions,
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
    stored = show_loads(_find_set(block, witem_id, done), ctx, unit)
    texts = view_results.describe_new_records(view_results.show_records(ctx, records))
    completed, planned = count_sets(rows_of(group_items(block, ctx.caller.load_unit)))
    item = next(each for each in block["items"] if each["_id"] == witem_id)
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
    place = (witem_id, form["exerciseId"], form["round"], form["index"])
    rows = [each for each in rows_of(groups) if (each.item_id, each.exercise_id, each.round, each.index) == place]
    most_reps, most_seconds = (rows[0].most_reps, rows[0].most_seconds) if rows else _USUAL
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
    may_subscribe = block["isCompleted"] and not await push.has_own_device(ctx)
    return {
        "block": block,
        "unit": unit,
        "records": view_results.describe_new_records(
            view_results.show_records(ctx, await logs.list_records_of(ctx, ctx.caller.id, stored))
        ),
        "done_sets": done,
        "planned_sets": planned,
        "volume": presented_volume(block["items"]),
        "feeling": dict(view_results.FEELINGS).get(block.get("feeling") or 0),
        # With which this device can subscribe to notifications, unless it has.
        "push_key": (await push.get_public_key(ctx.services))["key"] if may_subscribe else None,
        "cards": [card for group in groups for card in group.cards],
        "workout_path": workout_path(wblock_id),
    }


# --- The forms of an item of a client's workout other than its sets: done, measured, commented, skipped or swapped ----


class _CompletionForm(TypedDict):
    isCompleted: bool


class _CommentForm(TypedDict):
    comment: Annotated[str | None, Text(max_length=TEXT_LENGTH, allow_blank=True)]
    pain: Annotated[str | None, Text(max_length=PAIN_LENGTH, allow_blank=True)]


@pages.post(f"{ITEM}/completion", access=customer(), form=_CompletionForm, on=workout_page)
async def log_completion(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, form: _CompletionForm) -> Redirect:
    """Mark a task or reminder as done, or as not done."""
    return await change_item(ctx, wblock_id, witem_id, {"isCompleted": form["isCompleted"]})


@pages.post(f"{ITEM}/comment", access=customer(), form=_CommentForm, on=workout_page)
async def log_comment(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, form: _CommentForm) -> Redirect:
    """Save what the client says about an item, and where it hurt."""
    given: LogFields = {"comment": form["comment"] or None, "pain": form["pain"] or None}
    return await change_item(ctx, wblock_id, witem_id, given, "Saved. Your coach can read it.")


@pages.post(f"{ITEM}/metrics", access=customer(), form=view_results.ValuesForm, on=workout_page)
async def log_metrics(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, form: view_results.ValuesForm) -> Redirect:
    """Record measurements; the item is done when at least one is given."""
    await view_results.require_confirmed_rows(ctx, ctx.caller.id, wblock_id, form)
    values = view_results.given_values(form)
    return await change_item(ctx, wblock_id, witem_id, {"values": values, "isCompleted": bool(values)}, "Saved.")


@pages.post(f"{ITEM}/skip", access=customer(), form=NewSkip(), on=workout_page)
async def skip_item(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, form: item_models.Skip) -> Redirect:
    """Skip an item, for a reason if there is one."""
    return await change_item(ctx, wblock_id, witem_id, {"skipped": {"reason": form["reason"] or None}}, "Skipped.")


@pages.post(f"{ITEM}/skip/undo", access=customer(), on=workout_page)
async def undo_skip(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId) -> Redirect:
    """Do an item after all."""
    return await change_item(ctx, wblock_id, witem_id, {"skipped": None}, "Back in your workout.")


async def change_item(
    ctx: Context, block_id: ObjectId, item_id: ObjectId, change: LogFields, notice: str = ""
) -> Redirect:
    """Change the log of an item of the client, and return to its place in the workout."""
    item = await logs.update_own_log(ctx, block_id, item_id, change)
    data = {"item": {"_id": item_id, "isCompleted": item["isCompleted"]}}
    return Redirect(item_path(block_id, item_id), notice, data=data)


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
        "query": query,
        "offered": offered,
        "swap_path": f"{workout_path(wblock_id)}/items/{witem_id}/swap",
        "back": item_path(wblock_id, witem_id),
    }


@pages.post(f"{ITEM}/swap", access=customer(), form=NewSwap(), on=swap_page)
async def swap_exercise(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId, form: item_models.Swap) -> Redirect:
    """Do another exercise in place of the planned one."""
    swap: item_models.Swap = {"exerciseId": form["exerciseId"], "reason": form["reason"] or None}
    return await change_item(ctx, wblock_id, witem_id, {"swappedFor": swap}, "Exercise swapped.")


@pages.post(f"{ITEM}/swap/undo", access=customer(), on=workout_page)
async def undo_swap(ctx: Context, wblock_id: ObjectId, witem_id: ObjectId) -> Redirect:
    """Do the planned exercise after all."""
    return await change_item(ctx, wblock_id, witem_id, {"swappedFor": None}, "Back to the planned exercise.")
