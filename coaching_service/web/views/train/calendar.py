"""A client's own calendar: today, by week or by month, what clients change of it, and the workouts that they add."""

from __future__ import annotations

from calendar import monthrange
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from functools import partial
from itertools import groupby
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypedDict, cast
from urllib.parse import urlencode

from marshmallow import fields

from coaching_service.core import validation
from coaching_service.core.auth import EXERCISES, coach, customer
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.errors import FieldError, InvalidFields, invalid_field, require_by_id
from coaching_service.core.fields import Default, input_of
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import Exercise
from coaching_service.people import account, availability
from coaching_service.people.account import convert_entered_load
from coaching_service.progress import nutrition_plans, own_today
from coaching_service.progress.logs import service as logs
from coaching_service.training import own_schedule
from coaching_service.training.workout_text.finding import read_texts
from coaching_service.training.workout_text.lines import parse_items
from coaching_service.training.workouts.blocks.items import show_loads
from coaching_service.training.workouts.blocks.models import SESSION_FIELDS, Block, BlockName
from coaching_service.training.workouts.items.descriptions import describe_items, write_seconds
from coaching_service.training.workouts.items.models import NEW_WORKOUT_ITEM, WORKOUT_TYPES, ItemInput, WorkItem
from coaching_service.training.workouts.items.service import MAX_ITEMS
from coaching_service.training.workouts.sets import MAX_LOAD, MAX_METERS, MAX_REPS, MAX_SECONDS, MAX_SETS
from coaching_service.web import pages as web_pages
from coaching_service.web.browser_sessions import local_path
from coaching_service.web.formatting import label_day, quantity
from coaching_service.web.views import customer_layout
from coaching_service.web.views.results import FEELINGS, PLANNED_FIELDS, Confirmation
from coaching_service.web.views.workout.editing import set_type_of

# --- What a client sees first: the workouts of today, what is due, and the week ---------------------------------------


pages = web_pages.Pages("")
_train = pages.below("/train")

_NOUNS = {"TASK": "task", "FORM": "form", "METRICS": "measurement", "REMINDER": "reminder"}


@_train.get("", access=customer(), template="train/today.html")
async def today_page(ctx: Context) -> dict[str, Any]:
    """The client's day."""
    overview = await own_today.get_overview(ctx)
    today = overview["today"]
    sessions = [block for block in today["blocks"] if customer_layout.is_session(block)]
    rights, days_to_move = await gather_reads(
        ctx, account.get_account(ctx), own_schedule.list_days_to_move(ctx, sessions)
    )
    day, kept = date.fromisoformat(today["date"]), list[str]()
    for block in (*today["blocks"], *overview["tomorrow"]):
        if customer_layout.is_session(block):
            kept.append(customer_layout.workout_path(block["_id"]))
        forms = (item["_id"] for item in block["items"] if item["type"] == "FORM")
        kept += [customer_layout.form_path(block["_id"], item_id) for item_id in forms]
    return {
        "today": today,
        "week": overview["week"],
        "keep": [  # what opens without a connection
            *(["/train/add-workout"] if rights["clientsMayAdd"] else []),
            "/train/calendar",
            *kept,
        ],
        "sessions": [_describe_session(block, days_to_move.get(block["_id"], ())) for block in sessions],
        "is_rest_day": any(block["isRest"] for block in today["blocks"]),
        "may_add": rights["clientsMayAdd"],
        "absence": customer_layout.describe_period(today["availability"], day) if today["availability"] else None,
        **customer_layout.CHOICES,
        "due": list(_list_due(today, day)),
    }


def _describe_session(block: Block, days_to_move: Sequence[str]) -> dict[str, Any]:
    """Return a workout of today in words; `handled` of its items are completed or skipped.

    `days` are those to which the client may move it.
    """
    names, sets, counts = [], 0, Counter[str](item["type"] for item in block["items"])
    for item in block["items"]:
        if item["type"] == "EXERCISE":
            names.append(item["exercise"]["name"])
            sets += len(item["exerciseSets"])
        elif item["type"] == "CIRCUIT":
            names += [entry["exercise"]["name"] for entry in item["circuitExercises"]]
            sets += sum(entry["plannedSetsTotal"] for entry in item["circuitExercises"])
    parts = [(len(names), "exercise"), (sets, "set"), *((counts[kind], noun) for kind, noun in _NOUNS.items())]
    handled = sum(item["isCompleted"] or item.get("skipped") is not None for item in block["items"])
    state = "part" if handled or any(item.get("customerSets") for item in block["items"]) else "planned"
    is_ended = any(block.get(name) is not None for name in SESSION_FIELDS if name != "comment")  # by the client
    if block["isCompleted"] or is_ended or (block["items"] and handled == len(block["items"])):
        state = "done"
    return {
        "path": customer_layout.workout_path(block["_id"]),
        "state": state,
        "facts": " · ".join(quantity(count, noun) for count, noun in parts if count),
        "exercises": names,
        "handled": handled,
        "days": days_to_move,
        "block": block,
    }


def _list_due(today: own_today.Today, day: date) -> Iterator[tuple[str, str, str, str, bool]]:
    """Yield what is due, what is overdue first: forms, measurements and habits of today, and unread messages.

    Each has an icon, a title, a note, its path, and whether it is overdue.
    """
    for form in today["pendingForms"]:
        since = label_day(form["date"], day, within=True)
        note = f"Since {since}" if form["isOverdue"] else "Today"
        path = customer_layout.form_path(form["wblockId"], form["witemId"])
        yield "clipboard-list", form["formName"], note, path, form["isOverdue"]
    for block in today["blocks"]:
        for item in block["items"]:
            if item["isCompleted"] or item.get("skipped") is not None:
                continue
            path = customer_layout.item_path(block["_id"], item["_id"])
            if item["type"] == "METRICS":
                names = ", ".join(metric["name"] for metric in item["metricsFields"]["metrics"])
                yield "ruler", item["metricsFields"]["name"], names, path, False
            elif item["type"] == "TASK" and block.get("checkInId") is not None:
                yield "circle-check", item["taskFields"]["title"], "Today", path, False
    if count := today["unreadMessages"]:
        yield "message-circle", quantity(count, "new message"), "From your coach", "/train/messages", False


# --- A client's own calendar by week or by month, the workouts done, and the nutrition plan ---------------------------

_YEARS = (1900, 2200)
_WEEK = timedelta(days=7)
_PLANS_PER_PAGE = 20


class _CalendarQuery(web_pages.MonthQuery):
    """`week` is any date of the week to show; the current week if there is neither."""

    week: Annotated[str | None, validation.SearchedDate()]


@_train.get("/calendar", access=customer(), template="train/calendar.html")
async def calendar_page(ctx: Context, query: _CalendarQuery) -> dict[str, Any]:
    """The days of a week or month with their workouts."""
    today = ctx.caller.today()
    rights = await account.get_account(ctx)
    if month := query["month"]:
        first = date.fromisoformat(f"{month}-01")
        last = first.replace(day=monthrange(first.year, first.month)[1])
        shown = {
            "view": "month",
            "title": customer_layout.label_month(month),
            "month": month,
            "blank_days": first.weekday(),
            "week": today if first <= today <= last else first,
            "previous": f"month={first - timedelta(days=1):%Y-%m}",
            "next": f"month={last + timedelta(days=1):%Y-%m}",
        }
    else:
        asked = date.fromisoformat(query["week"]) if query["week"] else today
        day = asked if _YEARS[0] < asked.year < _YEARS[1] else today
        first = day - timedelta(days=day.weekday())
        last = first + timedelta(days=6)
        start = f"{first.day}" if first.month == last.month else f"{first.day} {first:%b}"
        shown = {
            "view": "week",
            "title": f"{start} – {last.day} {last:%b %Y}",
            "month": f"{day:%Y-%m}",
            "previous": f"week={first - _WEEK}",
            "next": f"week={first + _WEEK}",
        }
    days = await own_today.list_own_days(ctx, first, last, today=today)
    periods = (await availability.get_periods(ctx, [ctx.caller.id], str(first), str(last)))[ctx.caller.id]
    return shown | {
        "may_add": rights["clientsMayAdd"],
        "this_month": f"{today:%Y-%m}",
        "days": days,
        "bands": customer_layout.list_bands(periods, [each["date"] for each in days]),
        "is_present": first <= today <= last,
    }


@_train.get("/history", access=customer(), template="train/history.html")
async def history_page(ctx: Context, query: web_pages.MonthQuery) -> dict[str, Any]:
    """The workouts done in a month, the latest one that has any if none is named."""
    return {
        "done": await own_today.get_done_month(ctx, query["month"]),
        "label_month": customer_layout.label_month,
        "feelings": dict(FEELINGS),
    }


@_train.get("/plan", access=customer(), template="train/plan.html")
async def plan_page(ctx: Context, query: web_pages.PageQuery) -> dict[str, Any]:
    """The versions of the nutrition plan, the latest first."""
    page = await nutrition_plans.list_plans(ctx, ctx.caller.id, page=query["page"], size=_PLANS_PER_PAGE)
    return {"page": page, "address": web_pages.list_url("/train/plan", query)}


# --- What clients change of their calendar: moving a workout, and when they cannot train ------------------------------

_absences = _train.below("/availability")
_PERIOD = "/{availabilityId}"


@_absences.get("", access=customer(), template="train/availability.html")
async def own_availability_page(ctx: Context) -> dict[str, Any]:
    """The periods in which the client cannot train as planned, the latest first, and a form for a new one."""
    today, periods = ctx.caller.today(), await availability.list_availability(ctx, ctx.caller.id)
    return {
        **customer_layout.CHOICES,
        "periods": [customer_layout.describe_period(period, today) for period in reversed(periods)],
    }


@_absences.post("", access=customer(), on=own_availability_page)
async def add_own_absence(ctx: Context, form: customer_layout.AbsenceForm) -> web_pages.Redirect:
    """Say that the client is away, ill, injured or trains with limits."""
    period = await availability.create_availability(ctx, ctx.caller.id, customer_layout.to_period(form))
    return web_pages.Redirect(
        "/train", f"{customer_layout.describe_saved(period, ctx.caller.today())} Your coach sees it."
    )


@_absences.get(_PERIOD, access=customer(), template="train/change_availability.html")
async def change_own_availability_page(ctx: Context, availability_id: ObjectId) -> dict[str, Any]:
    """One period in which the client cannot train as planned."""
    periods = await availability.list_availability(ctx, ctx.caller.id)
    period = require_by_id(periods, availability_id, "availability")
    return {
        "period": customer_layout.describe_period(period, ctx.caller.today()),
        "version": period["version"],
        "kinds": customer_layout.KINDS,
    }


_act = partial(_absences.act, access=customer(), on=change_own_availability_page, to=_absences.prefix)
_act(
    _PERIOD,
    "change_own_absence",
    web_pages.own(availability.update_availability),
    "Saved.",
    form=customer_layout.PERIOD_CHANGE,
)
_act(
    f"{_PERIOD}/delete", "delete_own_absence", web_pages.own(availability.delete_availability), "Deleted.", deletes=True
)


# --- A client's own workout as rows, an exercise with equal sets in each: in its form, and to repeat past ones -------


Measure = Literal["reps", "time", "distance"]
MEASURES: tuple[tuple[Measure, str], ...] = (("reps", "Reps"), ("time", "Time"), ("distance", "Metres"))
_LATEST = 30  # workouts from which exercises and their sets are proposed
_MAX_AMOUNT: Mapping[Measure, int] = {"reps": MAX_REPS, "time": MAX_SECONDS, "distance": MAX_METERS}
_AMOUNT_OF = {"reps": "reps", "time": "seconds", "distance": "meters"}
_EXAMPLES = {"reps": "a whole number", "time": "a time such as 27:00, or seconds", "distance": "metres"}
_PROPOSED: Mapping[str, tuple[str, Measure, str]] = {"reps": ("3", "reps", "8"), "time": ("3", "time", "30")}
_CARDIO: tuple[str, Measure, str] = ("1", "time", "20:00")


class OwnRow(TypedDict):
    """An exercise in the form: equal sets, of whose `amount` the `measure` says what it is. `name` is shown again."""

    exerciseId: ObjectId
    name: Annotated[str, validation.Text(max_length=500, allow_blank=True), Default("")]
    sets: Annotated[int, validation.Integer(minimum=1, maximum=MAX_SETS)]
    measure: Annotated[Measure, Default("reps")]
    amount: Annotated[str, validation.Text(max_length=20, allow_blank=True), Default("")]
    load: Annotated[float | None, validation.Number(minimum=0, maximum=MAX_LOAD)]


async def list_latest(ctx: Context) -> list[Block]:
    """Return the latest workouts that the caller, a client, has done, with loads in their unit."""
    latest = await own_today.list_latest_done(ctx, _LATEST)
    return show_loads(latest, ctx, ctx.caller.load_unit)


def last_plans(latest: Sequence[Block]) -> dict[ObjectId, dict[str, Any]]:
    """Return what a client did of each exercise in the latest workout with it, as one row."""
    plans: dict[ObjectId, dict[str, Any]] = {}
    for block in latest:
        for exercise_id, values in [part for item in block["items"] for part in _parts_of(item)]:
            if rows := _group(exercise_id, values):
                plans.setdefault(exercise_id, {**rows[0], "sets": str(len(values))})
    return plans


def propose(exercise: Exercise, last: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return the fields to begin a row of an exercise with: those of the last time, else usual ones."""
    names = ("sets", "measure", "amount", "load")
    if last is not None:
        return {name: last[name] for name in names}
    proposed = _CARDIO if exercise["type"] == "cardio" else _PROPOSED[set_type_of(exercise)]
    return dict(zip(names, (*proposed, ""), strict=True))


def to_items(ctx: Context, rows: Sequence[OwnRow]) -> list[ItemInput]:
    """Return the exercises that rows describe; rows of one exercise after each other are one. Raises InvalidFields."""
    errors, sets, items = list[FieldError](), list[list[dict[str, Any]]](), []
    for at, row in enumerate(rows):
        measure, text, load = row["measure"], row["amount"].strip(), row["load"]
        amount: float | None = validation.read_clock(text) if measure == "time" else None
        if text and amount is None:
            with suppress(ValueError):
                amount = float(text.replace(",", "."))
            if measure == "reps" and amount is not None:
                amount = int(amount) if amount.is_integer() else None
        if text and (amount is None or not 0 <= amount <= _MAX_AMOUNT[measure]):
            message = f"must be {_EXAMPLES[measure]}"
            errors.append({"field": f"rows.{at}.amount", "code": "INVALID", "message": message})
        if load is not None:
            load = convert_entered_load(load, ctx.caller.load_unit, ctx.caller.company.load_unit)
        planned: dict[str, Any] = dict.fromkeys(PLANNED_FIELDS[_AMOUNT_OF[measure]], amount)
        planned |= {"type": measure} if load is None else {"type": f"{measure}_load", "load": load}
        sets.append([planned] * row["sets"])
    if errors:
        raise InvalidFields(errors)
    for exercise_id, group in groupby(zip(rows, sets, strict=True), key=lambda each: each[0]["exerciseId"]):
        all_sets = [each for _, of_row in group for each in of_row]
        items.append({"type": "EXERCISE", "exerciseId": str(exercise_id), "exerciseSets": all_sets[:MAX_SETS]})
    return [cast("ItemInput", NEW_WORKOUT_ITEM.load(item)) for item in items]


_Values = tuple[Measure, str, str]


def _parts_of(item: WorkItem) -> Iterator[tuple[ObjectId, list[_Values]]]:
    """Yield the exercises of an item with the values of each set: as done, or as planned if nothing is."""
    if item["type"] == "EXERCISE":
        swap = item.get("swappedFor")
        yield (
            swap["exerciseId"] if swap else item["exerciseId"],
            [_values(each) for each in item.get("customerSets", ()) if each["isCompleted"]]
            or [_values(each, PLANNED_FIELDS) for each in item["exerciseSets"]],
        )
    elif item["type"] == "CIRCUIT":
        for entry in item["circuitExercises"]:
            done = [each for each in item.get("customerSets", ()) if each["exerciseId"] == entry["exerciseId"]]
            yield (
                entry["exerciseId"],
                [_values(each) for each in done if each["isCompleted"]]
                or [_values(each, PLANNED_FIELDS) for each in entry["sets"]] * item["rounds"],
            )


def _values(done: Mapping[str, Any], fields: Mapping[str, Sequence[str]] = MappingProxyType({})) -> _Values:
    """Return the values of a logged set, or of one whose values are in `fields`."""
    reps, seconds, meters, load = (
        next((done[field] for field in fields.get(name, (name,)) if done.get(field) is not None), None)
        for name in PLANNED_FIELDS
    )
    shown_load = _plain(load or None)
    if reps is None and meters is not None:
        return "distance", _plain(meters), shown_load
    if reps is None and seconds is not None:
        return "time", write_seconds(seconds), shown_load
    return "reps", _plain(reps), shown_load


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


def _group(exercise_id: ObjectId, values: Sequence[_Values]) -> list[dict[str, Any]]:
    return [
        {
            "exerciseId": str(exercise_id),
            "name": "",
            "sets": str(len(list(group))),
            "measure": measure,
            "amount": amount,
            "load": load,
        }
        for (measure, amount, load), group in groupby(values)
    ]


# --- Picking an exercise: what its field (`exercise_picker`) suggests, and a page to search without script ------------
# Both are one page for coaches and one for clients. Without a text it has what was used last: by a client in workouts,
# and by a coach in this browser.


_SUGGESTIONS = 12


class _PickerQuery(web_pages.KeywordQuery, web_pages.ReturnTo):
    """What is searched; `recent` are the exercises that this browser has picked last."""

    recent: Annotated[list[ObjectId], validation.ListOf(validation.Identifier(), maximum=20), Default(list)]


@pages.get("/app/pick-exercise", access=coach(EXERCISES.VIEW), template="exercise_picker.html")
async def pick_exercise_page(ctx: Context, query: _PickerQuery) -> dict[str, Any]:
    """Exercises of the library to pick."""
    options = await list_options(ctx, query["keywords"], query["recent"], query["next"])
    return {"options": options}


@pages.get("/train/pick-exercise", access=customer(), template="exercise_picker.html")
async def pick_own_exercise_page(ctx: Context, query: _PickerQuery) -> dict[str, Any]:
    """Exercises of the library to pick, for a client."""
    latest = await list_latest(ctx)
    return {"options": await list_own_options(ctx, latest, query["keywords"], query["next"])}


async def list_own_options(
    ctx: Context, latest: Sequence[Block], keywords: str = "", next_path: str | None = None
) -> list[dict[str, Any]]:
    """Return what a client may pick, first what is in their `latest` workouts, with what they did of it."""
    plans = last_plans(latest)
    options = await list_options(ctx, keywords, [*plans], next_path)
    return [{**each, "plan": propose(each["exercise"], plans.get(each["exercise"]["_id"]))} for each in options]


async def list_options(
    ctx: Context, keywords: str, recent: Collection[ObjectId], next_path: str | None = None
) -> list[dict[str, Any]]:
    """Return exercises that match `keywords`, `recent` ones first; `next_path`: where a link to one leads."""
    found = await exercises.suggest_exercises(ctx, keywords, _SUGGESTIONS, recent)
    target = local_path(next_path, "")
    linked = f"{target}{'&' if '?' in target else '?'}" if target else ""
    return [describe_option(ctx, each, linked and f"{linked}{urlencode({'picked': each['_id']})}") for each in found]


def describe_option(ctx: Context, exercise: Exercise, path: str) -> dict[str, Any]:
    """Return an exercise as a page shows it to pick or open; pictures of other sites are left out.

    Its facts are the muscles that it trains most and its equipment: `Quadriceps · Barbell`. `plan`: what to propose of
    it, where a client plans a workout.
    """
    thumbnail = exercise["thumbnail"]
    is_own = (thumbnail or "").startswith(f"{ctx.services.base_url}/files/")
    muscles = ", ".join(each["name"] for each in exercise["muscleGroups"] if each["role"] == "primary")
    return {
        "exercise": exercise,
        "facts": " · ".join(filter(None, (muscles, (exercise["equipment"] or "").capitalize()))),
        "thumbnail": thumbnail if is_own else None,
        "path": path,
        "plan": {},
    }


# --- Workouts that clients add to their own calendar: picked from the library, repeated, or written as text ----------


_OWN = "/own-workouts/{ownWorkoutId}"
_TEXT_LENGTH = 10_000
_REPEATABLE = 6


class _Picked(TypedDict):
    """The exercises that were picked on the page that searches."""

    picked: Annotated[list[ObjectId], validation.ListOf(validation.Identifier(), maximum=MAX_ITEMS), Default(list)]


class _NewQuery(_Picked):
    """The day of the workout, and the workout to repeat."""

    date: Annotated[str | None, validation.CalendarDate()]
    repeat: ObjectId | None


class _Details(BlockName, own_schedule.WorkoutDate):
    """The name and the day of a workout of the client's own."""


class _ItemsForm(Confirmation):
    """Exercises to add: rows that were picked, and a text. `unpicked` is what remains in the field that searches."""

    rows: Annotated[list[OwnRow], validation.ListOf(fields.Nested(input_of(OwnRow)), maximum=MAX_ITEMS), Default(list)]
    text: Annotated[str, validation.Text(max_length=_TEXT_LENGTH, allow_blank=True), Default("")]
    unpicked: Annotated[str, validation.Text(max_length=validation.NAME_LENGTH, allow_blank=True), Default("")]


class _NewWorkoutForm(_Details, _ItemsForm):
    """A workout of the client's own with its exercises."""


@_train.get("/add-workout", access=customer(), template="train/add_workout.html")
async def add_workout_page(ctx: Context, query: _NewQuery) -> dict[str, Any]:
    """A workout that the client adds."""
    rights = await account.get_account(ctx)
    variables = await _load_picker(ctx, query["picked"])
    repeated: Block | None = None
    if query["repeat"] is not None:
        repeated = show_loads(await logs.get_own_block(ctx, query["repeat"]), ctx, ctx.caller.load_unit)
        parts = [part for item in repeated["items"] for part in _parts_of(item)]
        names = await exercises.get_names(ctx, [exercise_id for exercise_id, _ in parts], only_usable=True)
        variables["rows"] = [
            {**row, "name": names[exercise_id]["name"]}
            for exercise_id, values in parts
            if exercise_id in names
            for row in _group(exercise_id, values)
        ]
    day = query["date"] or str(ctx.caller.today())
    return {
        **variables,
        "may_add": rights["clientsMayAdd"],
        "day": day,
        "name": repeated["name"] if repeated else "My workout",
        "add_path": "/train/add-workout",
    }


async def _load_picker(ctx: Context, picked: Sequence[ObjectId]) -> dict[str, Any]:
    """Return what the form that picks exercises shows: rows, exercises to pick without a text, and past workouts."""
    latest = await list_latest(ctx)
    plans = last_plans(latest)
    chosen = [await exercises.get(ctx, each) for each in picked]
    return {
        "options": await list_own_options(ctx, latest),
        "rows": [
            {**propose(each, plans.get(each["_id"])), "exerciseId": str(each["_id"]), "name": each["name"]}
            for each in chosen
        ],
        "measures": MEASURES,
        "past": latest[:_REPEATABLE],
    }


@_train.post("/add-workout", access=customer(), on=add_workout_page)
async def add_workout(ctx: Context, form: _NewWorkoutForm) -> web_pages.Redirect:
    """Add a workout of the client's own."""
    items, remarks = await _read_items(ctx, form)
    workout: own_schedule.NewOwnWorkout = {"name": form["name"], "date": form["date"], "items": items}
    block = await own_schedule.create(ctx, workout)
    target = customer_layout.workout_path(block["_id"]) if items else change_path(block["_id"])
    return web_pages.Redirect(target, f"{block['name']} added.{remarks}")


@_train.get(_OWN, access=customer(), template="train/change_workout.html")
async def change_workout_page(ctx: Context, own_workout_id: ObjectId, query: _Picked) -> dict[str, Any]:
    """A workout that the client has added: its name, day and exercises."""
    block = show_loads(await own_schedule.get_own(ctx, own_workout_id), ctx, ctx.caller.load_unit)
    return {
        **await _load_picker(ctx, query["picked"]),
        "block": block,
        "version": block["version"],
        "items": describe_items(block["items"], ctx.caller.load_unit),
        "page_path": change_path(own_workout_id),
        "workout_path": customer_layout.workout_path(own_workout_id),
    }


_train.act(
    _OWN,
    "change_own_workout",
    own_schedule.update,
    "{name} saved.",
    access=customer(),
    on=change_workout_page,
    to="/train/workouts/{ownWorkoutId}",
    form=validation.patch_of(input_of(_Details), name="OwnWorkoutForm"),
)


@_train.post(f"{_OWN}/text", access=customer(), on=change_workout_page)
async def add_own_items(ctx: Context, own_workout_id: ObjectId, form: _ItemsForm) -> web_pages.Redirect:
    """Add exercises to a workout of the client's own."""
    items, remarks = await _read_items(ctx, form)
    if not items:
        raise invalid_field("text", "must name an exercise: pick one, or write one", code="REQUIRED")
    await own_schedule.add_items(ctx, own_workout_id, items)
    return web_pages.Redirect(change_path(own_workout_id), f"{quantity(len(items), 'item')} added.{remarks}")


_train.act(
    f"{_OWN}/items/{{witemId}}/remove",
    "remove_own_item",
    own_schedule.delete_item,
    "Removed.",
    access=customer(),
    on=change_workout_page,
    deletes=True,
)


@_train.post(f"{_OWN}/delete", access=customer(), on=change_workout_page, deletes=True)
async def delete_own_workout(ctx: Context, own_workout_id: ObjectId) -> web_pages.Redirect:
    """Delete a workout of the client's own."""
    block = await own_schedule.get_own(ctx, own_workout_id)
    await own_schedule.delete(ctx, own_workout_id)
    return web_pages.Redirect(customer_layout.calendar_path(str(block["date"])), "Workout deleted.")


def change_path(block_id: ObjectId) -> str:
    """Return the path of the page that changes a workout of the client's own."""
    return f"/train/own-workouts/{block_id}"


async def _read_items(ctx: Context, form: _ItemsForm) -> tuple[list[ItemInput], str]:
    """Return the exercises that were picked and those that a text describes, and remarks on how it was read."""
    picked = to_items(ctx, form["rows"])
    if form["unpicked"].strip():
        raise invalid_field("unpicked", "must be empty: pick an exercise of the list, or clear the field")
    if not form["text"].strip():
        return picked, ""
    for item in parse_items(form["text"], ctx.caller.load_unit, "text").items:
        if item.details["type"] not in WORKOUT_TYPES:
            raise invalid_field("text", "must have only exercises, circuits and tasks")
    read = await read_texts(ctx, [("text", form["text"])], customer_id=ctx.caller.id)
    return [*picked, *read.items[0]], read.remarks
