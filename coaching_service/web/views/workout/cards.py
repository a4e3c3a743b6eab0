"""The exercises and circuits of a workout as cards, whose planned sets are edited in place."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Annotated, Any, TypedDict, cast

from marshmallow import ValidationError, fields, validates_schema

from coaching_service.core import validation
from coaching_service.core.auth import PROGRAMS
from coaching_service.core.database.context import Context
from coaching_service.core.database.documents import Document
from coaching_service.core.fields import Default, input_of, names_of, take
from coaching_service.core.ids import ObjectId
from coaching_service.training import templates
from coaching_service.training.workout_text.finding import read_texts
from coaching_service.training.workouts import sets as workout_sets
from coaching_service.training.workouts.blocks import batches
from coaching_service.training.workouts.blocks import items as block_items
from coaching_service.training.workouts.blocks.models import Block, BlockInput, NewBlock, PlannedBlock
from coaching_service.training.workouts.blocks.service import ScheduleOwner
from coaching_service.training.workouts.items.descriptions import describe_item, write_seconds
from coaching_service.training.workouts.items.models import ExerciseItem, WorkItem
from coaching_service.web.pages import Redirect
from coaching_service.web.views.results import Confirmation
from coaching_service.web.views.workout import editing

# --- The rows of planned sets on the card of an exercise: one field for each quantity, in which `8-10` is a range -----


Bounds = tuple[float | None, float | None]
_NUMBER = r"\d{1,15}(?:[.,]\d{1,15})?"
_TIME = rf"{_NUMBER}|\d{{1,4}}(?::[0-5]\d){{1,2}}"
_RANGE, _RANGE_OF_TIMES = (re.compile(rf"({each})?(?:\s*([-–])\s*({each})?)?", re.ASCII) for each in (_NUMBER, _TIME))
_MEASURES = ("reps", "time", "distance")
# The columns of a card in their order: the name of the field, its label, and the keys that a phone shows.
COLUMNS = (
    ("reps", "Reps", "text"),
    ("time", "Time", "text"),
    ("distance", "Distance, m", "decimal"),
    ("load", "Load", "decimal"),
    ("loadPercent", "% of max", "decimal"),
    ("rest", "Rest, s", "decimal"),
    ("rpe", "RPE", "decimal"),
    ("rir", "RIR", "decimal"),
    ("tempo", "Tempo", "text"),
)
_FIRST_COLUMNS = ("reps", "load", "rest")
_EXAMPLES = "number such as 8, or a range such as 8-10"


class Range(fields.Field[Bounds]):
    """A number or a range: `8`, `8-10`, `-10` for at most ten. `is_integer`: without decimals.

    `is_time`: seconds, which may be written as `27:00`.
    """

    def __init__(self, maximum: float, *, is_integer: bool = False, is_time: bool = False) -> None:
        self.maximum, self.is_integer, self.is_time = maximum, is_integer, is_time
        super().__init__(allow_none=True, load_default=None)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> Bounds:
        pattern = _RANGE_OF_TIMES if self.is_time else _RANGE
        match = pattern.fullmatch(value.strip()) if isinstance(value, str) else None
        if match is None or (match[1] is None and match[3] is None):
            examples = "time such as 45 or 27:00, or a range such as 30-45" if self.is_time else _EXAMPLES
            raise ValidationError(f"must be a {examples}")
        bounds: list[float | None] = []
        for text in (match[1], match[3]):
            seconds = None if text is None else validation.read_clock(text)
            bound = float(text.replace(",", ".")) if text is not None and seconds is None else seconds
            if bound is not None and bound > self.maximum:
                raise ValidationError(f"must not be greater than {self.maximum}")
            if self.is_integer and bound is not None and bound % 1:
                raise ValidationError("must be whole numbers")
            bounds.append(bound)
        low, high = bounds
        if low is not None and high is not None and high < low:
            raise ValidationError("must end with the greater number")
        return low, high


class _Row(editing.SetFields):
    """A planned set on a card, with its stored `type`."""

    type: Annotated[workout_sets.SetType, Default("reps_load")]
    reps: Annotated[Bounds | None, Range(workout_sets.MAX_REPS, is_integer=True)]
    time: Annotated[Bounds | None, Range(workout_sets.MAX_SECONDS, is_time=True)]
    distance: Annotated[float | None, validation.Number(minimum=0, maximum=workout_sets.MAX_METERS)]


class _OneQuantity(validation.Input):
    @validates_schema
    def measures_one_quantity(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError for a set with two of reps, time and distance, or two loads."""
        measures = [name for name in _MEASURES if data[name] is not None]
        if len(measures) > 1:
            raise ValidationError(f"must be empty for a set with {measures[0]}", measures[1])
        if data["load"] is not None and data["loadPercent"] is not None:
            raise ValidationError("must be empty if there is a load", "loadPercent")


CARD_ROW = input_of(_Row, _OneQuantity)


def used_columns(rows: Sequence[Mapping[str, Any]], wrong: Collection[str] = ()) -> set[str]:
    """Return the columns with a value in one of the `rows`, or an error: `wrong` has the names of invalid fields."""
    names = {name for name, _, _ in COLUMNS}
    used = {name for name in names if any(row.get(name) for row in rows)}
    used |= names & {field.rpartition(".")[2] for field in wrong}
    return used if used & {*_MEASURES} else {*used, "reps"} if used else {*_FIRST_COLUMNS}


def _row(planned: workout_sets.PlannedSet) -> Document:
    """Return the row of a planned set, each value as the text in its field."""
    percent = planned.get("loadPercent")
    options: Document = dict.fromkeys(names_of(workout_sets.SetOptions)) | take(workout_sets.SetOptions, planned)
    return {
        **options,
        **{name: number_text(options[name]) for name in ("rest", "rpe", "rir")},
        "tempo": options["tempo"] or "",
        "index": planned["index"],
        "type": planned["type"],
        "loadPercent": number_text(percent),
        "resultingLoad": resulting_load(planned),
        "load": number_text(planned.get("load") if percent is None else None),  # else it is computed, not entered
        "reps": _range_text(planned.get("minPlannedReps"), planned.get("maxPlannedReps")),
        "time": _range_text(planned.get("minPlannedSeconds"), planned.get("maxPlannedSeconds"), write_seconds),
        "distance": number_text(planned.get("plannedMeters")),
    }


def resulting_load(planned: workout_sets.PlannedSet) -> str:
    """Return the load that the percentage of a set means for its client; empty without a percentage or a maximum."""
    return "" if planned.get("loadPercent") is None else number_text(planned.get("load"))


def number_text(value: float | None) -> str:
    """Return a number as a person types it, without thousands separators; empty for None."""
    if value is None:
        return ""
    return str(int(value)) if value == int(value) else str(value)


def _range_text(low: float | None, high: float | None, write: Callable[[float | None], str] = number_text) -> str:
    return write(low) + (f"-{write(high)}" if high is not None else "")


def planned_sets_of(rows: Sequence[Document]) -> list[Document]:
    """Return the planned sets of submitted rows, without removed ones; new sets follow the last index."""
    with_ranges = []
    for row in rows:  # as the form of the page has it: with `low` and `high` of what its type counts
        stored_measure = row["type"].partition("_")[0]
        measure = next((name for name in _MEASURES if row[name] is not None), stored_measure)
        low, high = (row["distance"], None) if measure == "distance" else row[measure] or (None, None)
        set_type = row["type"] if measure == stored_measure else measure
        with_ranges.append({**row, "type": set_type, "low": low, "high": high})
    return editing.with_indexes(with_ranges)


pages = editing.WorkoutPages()
# More sets are edited on the page of the item: each set has fourteen fields.
_MAX_ROWS_OF_CARD, _MAX_ROWS_OF_PAGE = 30, 240


class CardForm(editing.SetsForm):
    """The card of an exercise; `add` repeats its last set."""

    add: Annotated[bool, Default(False)]


class _ExerciseCardForm(CardForm, editing.ExerciseForm):
    """The card of an exercise that is not in a circuit."""


class CardRows(validation.Input):
    """The rows of planned sets on a card."""

    sets = validation.ListOf(fields.Nested(CARD_ROW), maximum=2 * workout_sets.MAX_SETS, load_default=list)


def card_variables(items: Sequence[WorkItem]) -> dict[str, Any]:
    """Return the cards of a workout by item (a list for a circuit), and the columns of cards."""
    cards: dict[ObjectId, Document] = {}
    circuit_cards: dict[ObjectId, list[Document]] = {}
    remaining = _MAX_ROWS_OF_PAGE
    for item in items:
        entries = item["circuitExercises"] if item["type"] == "CIRCUIT" else []
        count = len(item["exerciseSets"]) if item["type"] == "EXERCISE" else sum(len(each["sets"]) for each in entries)
        if not 0 < count <= min(_MAX_ROWS_OF_CARD, remaining):
            continue
        remaining -= count
        if item["type"] == "EXERCISE":
            rows, instructions = list(map(_row, item["exerciseSets"])), item["exerciseInstructions"]
            cards[item["_id"]] = {"rows": rows, "instructions": instructions, "supersetId": item["supersetId"]}
        else:
            circuit_cards[item["_id"]] = [
                {**each, "name": each["exercise"]["name"], "rows": list(map(_row, each["sets"]))} for each in entries
            ]
    ids = [f"i{item_id}" for item_id in cards]
    ids += [f"i{item_id}x{card['exerciseId']}" for item_id, entries in circuit_cards.items() for card in entries]
    return {"cards": cards, "circuit_cards": circuit_cards, "card_ids": ids, "columns": COLUMNS}


def planned_on_card(form: CardForm) -> list[Document]:
    """Return the sets that a card plans; with `add` the last one again."""
    sets = planned_sets_of(form["sets"])
    last = {**sets[-1], "index": max(planned["index"] for planned in sets) + 1} if sets and form["add"] else None
    return [*sets, last] if last else sets


def redirect_to_card(
    ctx: Context, path: str, form: CardForm, item: WorkItem, stored: Sequence[workout_sets.PlannedSet]
) -> Redirect:
    """Redirect after saving; a script receives the `indexes` and `loads` of the rows that were sent and remain.

    `stored` are the sets of the exercise in the item.
    """
    loads, unit = {each["index"]: resulting_load(each) for each in stored}, ctx.caller.company.load_unit
    indexes = [planned["index"] for planned in planned_sets_of(form["sets"])]
    data = {
        "version": cast("Document", item)["version"],
        "indexes": indexes,
        "loads": [f"= {loads[index]} {unit}" if loads.get(index) else "" for index in indexes],
        "lines": describe_item(item, unit)["lines"],
    }
    return Redirect(f"{path}#item-{item['_id']}", "Set added." if form["add"] else "Changes saved.", data=data)


@pages.post(f"{editing.ITEM}/card", form=input_of(_ExerciseCardForm, CardRows)())
async def change_card(
    ctx: Context, workout: editing.OpenedWorkout, witem_id: ObjectId, form: _ExerciseCardForm
) -> Redirect:
    """Change the sets, instructions and superset of an exercise; `add` repeats its last set."""
    item = await workout.change_item(ctx, witem_id, editing.change_of(form, planned_on_card(form)))
    return redirect_to_card(ctx, workout.path, form, item, cast("ExerciseItem", item)["exerciseSets"])


class _PlaceForm(TypedDict):
    place: Annotated[int, validation.Integer(minimum=1, maximum=1000)]


@pages.post(f"{editing.ITEM}/rounds", form=editing.CircuitForm)
async def change_rounds(
    ctx: Context, workout: editing.OpenedWorkout, witem_id: ObjectId, form: editing.CircuitForm
) -> Redirect:
    """Change the name and the number of rounds of a circuit."""
    item = await workout.change_item(ctx, witem_id, form)
    title = describe_item(item, ctx.caller.company.load_unit)["title"]
    data = {"version": cast("Document", item)["version"], "indexes": [], "loads": [], "lines": [], "title": title}
    return Redirect(f"{workout.path}#item-{witem_id}", "Changes saved.", data=data)


@pages.post(f"{editing.CIRCUIT_EXERCISE}/card", form=input_of(CardForm, CardRows)())
async def change_circuit_card(
    ctx: Context, workout: editing.OpenedWorkout, witem_id: ObjectId, exercise_id: ObjectId, form: CardForm
) -> Redirect:
    """Change the sets and instructions of an exercise in a circuit; `add` repeats its last set."""
    changed = await editing.save_circuit_exercise(ctx, workout, witem_id, exercise_id, form, planned_on_card(form))
    stored = changed["circuitExercises"][editing.position_of(changed, exercise_id)]["sets"]
    return redirect_to_card(ctx, workout.path, form, changed, stored)


@pages.post(f"{editing.CIRCUIT_EXERCISE}/move", form=_PlaceForm)
async def place_circuit_exercise(
    ctx: Context, workout: editing.OpenedWorkout, witem_id: ObjectId, exercise_id: ObjectId, form: _PlaceForm
) -> Redirect:
    """Move an exercise to another position in its circuit."""
    block = await workout.read(ctx)
    circuit = editing.find_circuit(block, witem_id)
    moved = editing.exercises_of(circuit)[editing.position_of(circuit, exercise_id)]
    others, at = editing.with_replaced(circuit, exercise_id, []), form["place"] - 1
    await editing.replace_exercises(ctx, workout, circuit, [*others[:at], moved, *others[at:]], block["version"])
    return Redirect(f"{workout.path}#item-{witem_id}", "Moved.")


# --- Items of workouts as text, one in each line: forms, and creating what they describe ------------------------------


FIELD = "text"
MAX_TEXT_LENGTH = 20_000
_SUGGESTED_TEMPLATES = 200


class ItemsText(Confirmation):
    """Items as text, and whether the user has confirmed loads in it that are unusual."""

    text: Annotated[str, validation.Text(max_length=MAX_TEXT_LENGTH, allow_blank=True), Default("")]


class NewWorkoutText(ItemsText):
    """The items of a new workout, and the name of a template that it is made from; a rest day has neither."""

    template: Annotated[str, validation.Text(allow_blank=True), Default("")]


class NewWorkout(PlannedBlock, NewWorkoutText):
    """A new workout of a client or program."""


class NewWorkoutForm(validation.Input):
    """The name of a new workout, which may be empty, and the checks of its form."""

    name = validation.Text(allow_blank=True, load_default="")

    @validates_schema
    def require_name(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError for a workout without a name that is not a rest day and not from a template."""
        if not data["name"] and not data["isRest"] and not data["template"]:
            raise ValidationError("should not be empty", "name")

    @validates_schema
    def rests_without_items(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError for a rest day with items."""
        for name in (FIELD, "template"):
            if data["isRest"] and data[name].strip():
                raise ValidationError("must be empty for a rest day", name)


async def create_with_text(ctx: Context, owner: ScheduleOwner, form: NewWorkout) -> tuple[Block, str]:
    """Create a block with the items of the template of that name, if any, and of a text.

    Returns it, and remarks on how the text was read. Raises InvalidFields for `text`, with the line, and for
    `template`; NotFound and Forbidden for the owner.
    """
    text = form["text"]
    new_block: BlockInput = {**take(BlockInput, form), "name": form["name"] or ("Rest" if form["isRest"] else "")}
    if template := form["template"]:
        day = new_block["date"] if owner.day_field == "date" else new_block["day"]
        applied = await templates.apply_named(ctx, template, owner, day, new_block)
        _, remarks = await add_text(ctx, owner, applied["_id"], text)
        return applied, remarks
    read = await read_texts(ctx, [(FIELD, text)], customer_id=owner.block_filter.get("customerId"))
    block: NewBlock = {**new_block, "items": read.items[0]}
    return await batches.create_block(ctx, owner, block), read.remarks


async def add_text(ctx: Context, owner: ScheduleOwner, block_id: ObjectId, text: str) -> tuple[int, str]:
    """Add the items of a text at the end of a block; returns how many, and remarks on how the text was read.

    Raises as create_with_text, and NotFound for the block.
    """
    read = await read_texts(ctx, [(FIELD, text)], customer_id=owner.block_filter.get("customerId"))
    for item in read.items[0]:
        await block_items.create_item(ctx, owner, block_id, item)
    return len(read.items[0]), read.remarks


async def list_template_names(ctx: Context) -> list[str]:
    """Return the names of templates to suggest: the first by name, none without permission to view programs."""
    if PROGRAMS.VIEW not in ctx.caller.permissions:
        return []
    return [template["name"] for template in await templates.list_names(ctx, _SUGGESTED_TEMPLATES)]
