"""The declaration of the pages of a workout, and the pages that change what its items plan."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from itertools import count
from typing import Annotated, Any, NamedTuple, TypedDict, cast

from marshmallow import Schema, ValidationError, fields, validates_schema

from coaching_service.core import validation
from coaching_service.core.auth import Access, coach
from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.database.documents import Document
from coaching_service.core.errors import BadRequest, NotFound, require_by_id
from coaching_service.core.fields import Default, input_of, names_of, take
from coaching_service.core.ids import ObjectId
from coaching_service.library.exercises.models import Exercise
from coaching_service.training.set_text import SetTextError, parse_planned, write_planned
from coaching_service.training.workout_text.lines import Problem, TextError
from coaching_service.training.workouts import sets as workout_sets
from coaching_service.training.workouts.blocks import items as block_items
from coaching_service.training.workouts.blocks import service as workouts
from coaching_service.training.workouts.blocks.models import Block
from coaching_service.training.workouts.items import models as item_models
from coaching_service.training.workouts.items import service as items
from coaching_service.training.workouts.items.descriptions import describe_item, describe_sets
from coaching_service.web.pages import Handler, Pages, Redirect
from coaching_service.web.views.results import Confirmation

BLOCK = "/blocks/{blockId}"
ITEM = f"{BLOCK}/items/{{witemId}}"
CIRCUIT_EXERCISE = f"{ITEM}/exercises/{{exerciseId}}"


@dataclass(frozen=True)
class WorkoutOwnerPages:
    """What the workout pages know about one type of owner.

    `pages` has the owner's identifier at the end of its prefix; `owner_parameter` is its argument name in handlers,
    and `owner_type` makes the owner from it. `view` and `edit` are permissions. `layout` is the template that
    surrounds each page, `layout_variables` reads what it shows. `place_form` is the schema of a date or day,
    `move_range` returns the first and last date or day between which items can be moved, and `overview_path` the
    page that shows a workout among the others. `is_single`: the owner is a workout itself, with the same
    identifier, such as a template; it is on no day, so it has no `place_form` and `move_range`. `is_of_client`: its
    workouts are done, logged and commented on. `declared` are the pages of this owner by their handlers, and by None
    the page of a workout.
    """

    pages: Pages
    owner_type: Callable[[ObjectId], workouts.ScheduleOwner]
    owner_parameter: str
    view: str
    edit: str
    layout: str
    layout_variables: Mapping[str, Callable[[Context, ObjectId], Awaitable[Any]]]
    overview_path: Callable[[ObjectId, Block], str]
    place_form: type[Schema] | None = None
    move_range: Callable[[Block], tuple[str, str] | tuple[int, int]] | None = None
    is_single: bool = False
    is_of_client: bool = False
    declared: dict[Handler | None, Handler] = field(default_factory=dict)


class OpenedWorkout(NamedTuple):
    """The workout that a page is about, with its owner."""

    of: WorkoutOwnerPages
    owner_id: ObjectId
    block_id: ObjectId

    @property
    def owner(self) -> workouts.ScheduleOwner:
        """The owner of the workout."""
        return self.of.owner_type(self.owner_id)

    @property
    def path(self) -> str:
        """The path of the page of the workout."""
        owner_path = f"{self.of.pages.prefix.partition('{')[0]}{self.owner_id}"
        return owner_path if self.of.is_single else f"{owner_path}/blocks/{self.block_id}"

    async def read(self, ctx: Context) -> Block:
        """Return the workout. Raises NotFound, Forbidden."""
        return await workouts.get(ctx, self.owner, self.block_id)

    async def change_item(self, ctx: Context, item_id: ObjectId, change: Mapping[str, object]) -> item_models.WorkItem:
        """Change what an item plans, in the form of a request. Raises NotFound, Conflict and ValidationError."""
        loaded = item_models.ITEM_CHANGE.load(change)
        return await block_items.update_item(ctx, self.owner, self.block_id, item_id, loaded)

    async def load_variables(self, ctx: Context) -> dict[str, Any]:
        """Load the variables that all pages of a workout share. Raises NotFound, Forbidden."""
        layout = self.of.layout_variables
        *shown, block = await gather_reads(ctx, *(read(ctx, self.owner_id) for read in layout.values()), self.read(ctx))
        return {
            **dict(zip(layout, shown, strict=True)),
            "layout": self.of.layout,
            "edit_permission": self.of.edit,
            "overview_path": self.of.overview_path(self.owner_id, block),
            "block": block,
            "block_path": self.path,
        }


class WorkoutPages:
    """Pages and forms of a workout; their handlers receive an OpenedWorkout in place of the identifiers."""

    def __init__(self) -> None:
        self._declared: list[tuple[str, Callable[[WorkoutOwnerPages], Access], dict[str, Any], Handler]] = []

    def get(self, path: str, *, to_view: bool = False, **options: Any) -> Callable[[Handler], Handler]:
        """Declare a page; `to_view`: it needs the permission to view, not that to edit."""
        return self._add(path, lambda of: coach(of.view if to_view else of.edit), options)

    def post(self, path: str, *, permission: str = "", **options: Any) -> Callable[[Handler], Handler]:
        """Declare a form of the page `on`, by default of the page of the workout.

        `permission` is required with that to view, in place of that to edit. `form_of` returns the form for an owner.
        """
        options = {"on": None, **options}
        return self._add(path, lambda of: coach(of.view, permission) if permission else coach(of.edit), options)

    def _add(
        self, path: str, access_of: Callable[[WorkoutOwnerPages], Access], options: dict[str, Any]
    ) -> Callable[[Handler], Handler]:
        def declare(handler: Handler) -> Handler:
            self._declared.append((path, access_of, options, handler))
            return handler

        return declare

    def declare_for(self, of: WorkoutOwnerPages) -> None:
        """Declare these pages for one type of owner."""
        pages_first = sorted(self._declared, key=lambda each: "on" in each[2])
        for path, access_of, declared, handler in pages_first:
            page, own_path = _with_workout(of, handler), path.removeprefix(BLOCK) if of.is_single else path
            options = {**declared, "access": access_of(of)}
            if form_of := options.pop("form_of", None):
                options["form"] = form_of(of)
            if "on" in options:
                of.pages.post(own_path, **{**options, "on": of.declared[options["on"]]})(page)
            else:
                of.declared[None if path == BLOCK else handler] = of.pages.get(own_path, **options)(page)


def _with_workout(of: WorkoutOwnerPages, handler: Handler) -> Handler:
    @wraps(handler)
    async def handle(ctx: Context, **arguments: Any) -> Any:
        owner_id = arguments.pop(of.owner_parameter)
        block_id = owner_id if of.is_single else arguments.pop("block_id")
        return await handler(ctx, OpenedWorkout(of, owner_id, block_id), **arguments)

    return handle


# --- Adding items to a workout and changing what they plan: sets, circuits, tasks and reminders ----------------------


NEW_CIRCUIT = "new"  # in forms, in place of the identifier of a circuit
_NEW_CIRCUIT_ROUNDS = 3


class ExerciseChoice(TypedDict):
    """The exercise to add, and the circuit that it becomes a part of: by identifier, NEW_CIRCUIT, or empty for none."""

    exerciseId: ObjectId
    circuit: Annotated[str, validation.Text(allow_blank=True), Default("")]


class Versioned(TypedDict):
    """The version of the workout that a change is based on."""

    version: Annotated[int, validation.Version()]


class CircuitForm(Versioned):
    """The name and the number of rounds of a circuit."""

    circuitName: str
    rounds: Annotated[int, validation.Integer(minimum=1, maximum=1000)]


def circuits_of(block: Block) -> list[item_models.CircuitItem]:
    """Return the circuits in a workout."""
    return [item for item in block["items"] if item["type"] == "CIRCUIT"]


def exercises_of(circuit: item_models.CircuitItem) -> list[Document]:
    """Return the exercises of a stored circuit in the form of a request; `sets` are those of one round."""
    return [
        {"exerciseId": str(entry["exerciseId"]), "sets": entry["sets"], "instructions": entry["instructions"]}
        for entry in circuit["circuitExercises"]
    ]


def find_circuit(block: Block, item_id: ObjectId) -> item_models.CircuitItem:
    """Return the circuit with this identifier. Raises NotFound."""
    return require_by_id(circuits_of(block), item_id, "circuit")


def position_of(circuit: item_models.CircuitItem, exercise_id: ObjectId) -> int:
    """Return the position of an exercise in a circuit. Raises NotFound."""
    for position, entry in enumerate(circuit["circuitExercises"]):
        if entry["exerciseId"] == exercise_id:
            return position
    raise NotFound("exercise in the circuit")


def with_replaced(
    circuit: item_models.CircuitItem, exercise_id: ObjectId, replacement: Sequence[Document]
) -> list[Document]:
    """Return the exercises of a circuit with one of them replaced. Raises NotFound."""
    position, entries = position_of(circuit, exercise_id), exercises_of(circuit)
    return [*entries[:position], *replacement, *entries[position + 1 :]]


async def replace_exercises(
    ctx: Context,
    workout: OpenedWorkout,
    circuit: item_models.CircuitItem,
    exercises: Sequence[Document],
    version: int,
) -> item_models.CircuitItem:
    """Replace the exercises of a circuit; returns it as it is then.

    Raises BadRequest if there is no exercise or the same one twice (logged sets refer to their exercise), NotFound, and
    Conflict if the workout no longer has this version.
    """
    if not exercises:
        raise BadRequest(["A circuit needs at least one exercise. Remove the circuit instead."])
    if len({entry["exerciseId"] for entry in exercises}) < len(exercises):
        raise BadRequest([f"{circuit['circuitName']} already contains this exercise. Edit its sets there."])
    change = {"circuitExercises": list(exercises), "version": version}
    return cast("item_models.CircuitItem", await workout.change_item(ctx, circuit["_id"], change))


async def add_item(ctx: Context, workout: OpenedWorkout, item: Document) -> item_models.WorkItem:
    """Add an item, in the form of a request, at the end of a workout."""
    new_item = cast("item_models.ItemInput", item_models.NEW_ITEM.load(item))
    return await block_items.create_item(ctx, workout.owner, workout.block_id, new_item)


async def add_exercise(
    ctx: Context, workout: OpenedWorkout, choice: ExerciseChoice, sets: Sequence[Mapping[str, Any]]
) -> item_models.WorkItem:
    """Add an exercise with its sets at the end of a workout, of one of its circuits, or of a new circuit.

    Returns the item that is added, or else the circuit as it was. Raises as replace_exercises.
    """
    exercise_id, circuit_id = str(choice["exerciseId"]), choice["circuit"]
    if not circuit_id:
        item = {"type": "EXERCISE", "exerciseId": exercise_id, "exerciseSets": sets}
        return await add_item(ctx, workout, item)
    entry: Document = {"exerciseId": exercise_id, "sets": sets, "instructions": None}
    if circuit_id == NEW_CIRCUIT:
        details: Document = {"circuitName": "Circuit", "rounds": _NEW_CIRCUIT_ROUNDS, "circuitExercises": [entry]}
        return await add_item(ctx, workout, {"type": "CIRCUIT", **details})
    block = await workout.read(ctx)
    circuit = next((item for item in circuits_of(block) if str(item["_id"]) == circuit_id), None)
    if circuit is None:
        raise NotFound("circuit")
    await replace_exercises(ctx, workout, circuit, [*exercises_of(circuit), entry], block["version"])
    return circuit


class SetsForm(Versioned, Confirmation):
    """The planned sets and instructions of an exercise; the schemas of the forms declare the rows of their `sets`."""

    sets: list[Document]
    instructions: Annotated[str | None, validation.Text(max_length=validation.TEXT_LENGTH, allow_blank=True)]


class ExerciseForm(SetsForm):
    """What is planned of an exercise that is not in a circuit."""

    supersetId: Annotated[str | None, validation.Text()]


def change_of(form: ExerciseForm, sets: list[Document]) -> Document:
    """Return the change of what an exercise plans, to `sets`, in the form of a request."""
    texts = {"exerciseInstructions": form["instructions"], "supersetId": form["supersetId"]}
    return {"exerciseSets": sets, **texts, "version": form["version"]}


async def save_circuit_exercise(
    ctx: Context,
    workout: OpenedWorkout,
    item_id: ObjectId,
    exercise_id: ObjectId,
    form: SetsForm,
    sets: list[Document],
) -> item_models.CircuitItem:
    """Change what an exercise of a circuit plans, to `sets`; returns the circuit. Raises as replace_exercises."""
    circuit = find_circuit(await workout.read(ctx), item_id)
    entry: Document = {"exerciseId": str(exercise_id), "sets": sets, "instructions": form["instructions"]}
    entries = with_replaced(circuit, exercise_id, [entry])
    return await replace_exercises(ctx, workout, circuit, entries, form["version"])


# --- The rows of the form that edits planned sets, whose type says what `low` and `high` count, and proposed sets ----


SET_TYPES = (
    ("reps_load", "reps with load"),
    ("reps", "reps"),
    ("time_load", "seconds with load"),
    ("time", "seconds"),
    ("distance_load", "meters with load"),
    ("distance", "meters"),
)
SET_KINDS = (("normal", "normal"), ("drop", "drop set"), ("failure", "to failure"))
BLANK_ROWS = 2
_RANGE_FIELDS = {
    "reps": ("minPlannedReps", "maxPlannedReps"),
    "time": ("minPlannedSeconds", "maxPlannedSeconds"),
    "distance": ("plannedMeters",),
}
_MAXIMUM = {"reps": workout_sets.MAX_REPS, "time": workout_sets.MAX_SECONDS, "distance": workout_sets.MAX_METERS}
_COMMON_FIELDS = names_of(workout_sets.SetOptions)
_DEFAULT_VALUES = (None, "", False, "normal")


class SetFields(workout_sets.PlannedLoad, workout_sets.SetOptions):
    """A planned set in a form; an existing one has its `index`, `out` removes it."""

    index: Annotated[int | None, validation.Integer(minimum=1, maximum=1_000)]
    out: Annotated[bool, Default(False)]


class _Row(SetFields):
    type: workout_sets.SetType
    low: Annotated[float | None, validation.Number(minimum=0, maximum=workout_sets.MAX_METERS)]
    high: Annotated[float | None, validation.Number(minimum=0, maximum=workout_sets.MAX_METERS)]


class _RangeOfType(validation.Input):
    @validates_schema
    def validate_range(self, data: Mapping[str, Any], **_: Any) -> None:
        """Raise ValidationError for a range or load that does not match the type."""
        measure, low, high = _measure(data["type"]), data["low"], data["high"]
        for name in ("low", "high"):
            if data[name] is not None and data[name] > _MAXIMUM[measure]:
                raise ValidationError(f"must not be greater than {_MAXIMUM[measure]}", name)
            if measure == "reps" and data[name] is not None and data[name] % 1:
                raise ValidationError("must be a whole number", name)
        for name in ("load", "loadPercent"):
            if data["type"] == "distance" and data[name] is not None:
                raise ValidationError("must be empty for a set in meters; choose meters with load", name)
        if data["load"] is not None and data["loadPercent"] is not None:
            raise ValidationError("must be empty if there is a load", "loadPercent")
        if measure == "distance" and high is not None:
            raise ValidationError("must be empty for a set in meters", "high")
        if low is not None and high is not None and high < low:
            raise ValidationError("must not be less than the minimum", "high")


SET_ROW = input_of(_Row, _RangeOfType)


def _measure(set_type: str) -> str:
    """Return what a type of set counts: `reps`, `time` or `distance`."""
    return set_type.partition("_")[0]


def set_rows(sets: Sequence[workout_sets.PlannedSet]) -> list[Document]:
    """Return the rows of planned sets, followed by blank rows of the last set's type."""
    rows: list[Document] = []
    for planned in sets:
        percent, stored = planned.get("loadPercent"), cast("Document", planned)
        low, high, *_ = *map(stored.get, _RANGE_FIELDS[_measure(planned["type"])]), None
        load = planned.get("load") if percent is None else None  # else it is computed, not entered
        options = dict.fromkeys(_COMMON_FIELDS) | take(workout_sets.SetOptions, planned)
        row = {"index": planned["index"], "type": planned["type"], "load": load, "loadPercent": percent, **options}
        rows.append(row | {"low": low, "high": high})
    blank = dict.fromkeys(names_of(_Row)) | {"type": rows[-1]["type"] if rows else "reps_load"}
    return [*rows, *[blank] * BLANK_ROWS]


def planned_sets(rows: Sequence[Document]) -> list[Document]:
    """Return the planned sets of submitted rows, without removed and blank ones; new sets follow the last index."""
    names: Iterable[str] = ("low", "high", "load", "loadPercent", *_COMMON_FIELDS)
    used = [row for row in rows if row["index"] or any(row[name] not in _DEFAULT_VALUES for name in names)]
    return with_indexes(used)


def with_indexes(rows: Sequence[Document]) -> list[Document]:
    """Return the planned sets of rows, without removed ones; new sets follow the last index."""
    new_indexes = count(max((row["index"] or 0 for row in rows), default=0) + 1)
    planned: list[Document] = []
    for row in rows:
        if row["out"]:
            continue
        set_type, measure = row["type"], _measure(row["type"])
        bounds = [int(each) if measure == "reps" and each is not None else each for each in (row["low"], row["high"])]
        loads: Document = {name: row[name] for name in ("load", "loadPercent")}
        if loads == dict.fromkeys(loads) and not set_type.endswith("_load"):
            loads = {}
        else:
            set_type = f"{measure}_load"
        fields = dict(zip(_RANGE_FIELDS[measure], bounds, strict=False))
        options = take(workout_sets.SetOptions, row)
        planned.append({"type": set_type, **fields, **loads, **options, "index": row["index"] or next(new_indexes)})
    return planned


PROPOSED_SETS = 3
_PROPOSED_SETS_PER_ROUND = 1
_PROPOSED_RANGES = {"reps": (8, 10), "time": (30, 45)}
_UNITS = {"reps": "reps", "time": "s"}
_TIMED_TYPES = ("cardio", "stretching")
_TIMED_TAG = "isometric"
_SET_ROW = SET_ROW()


class SetChoice(TypedDict):
    """The equal sets to plan of an exercise; the number of sets and the range are proposed where they are None."""

    sets: Annotated[int | None, validation.Integer(minimum=1, maximum=workout_sets.MAX_SETS)]
    low: Annotated[float | None, validation.Number(minimum=0)]
    high: Annotated[float | None, validation.Number(minimum=0)]
    load: Annotated[float | None, validation.Number(minimum=0, maximum=workout_sets.MAX_LOAD)]
    rest: Annotated[float | None, validation.Number(minimum=0, maximum=workout_sets.MAX_SECONDS)]


def set_type_of(exercise: Mapping[str, Any]) -> str:
    """Return the type of an exercise's sets: `time` for cardio, stretches and isometric holds, else `reps`."""
    is_timed = exercise["type"] in _TIMED_TYPES or _TIMED_TAG in exercise["tags"]
    return "time" if is_timed else "reps"


def with_proposed_ranges(exercises: Sequence[Exercise]) -> list[Document]:
    """Return exercises with `proposed_range`, the range proposed for each with its unit, seconds or reps."""
    types = [(exercise, set_type_of(exercise)) for exercise in exercises]
    ranges = {name: "{}–{} {}".format(*_PROPOSED_RANGES[name], unit) for name, unit in _UNITS.items()}
    return [{**exercise, "proposed_range": ranges[set_type]} for exercise, set_type in types]


def plan_sets(exercise: Mapping[str, Any], wanted: SetChoice, *, in_circuit: bool) -> list[Document]:
    """Plan equal sets of an exercise. Raises ValidationError if the range does not match the exercise."""
    set_type = set_type_of(exercise)
    low, high = wanted["low"], wanted["high"]
    if low is None and high is None:
        low, high = _PROPOSED_RANGES[set_type]
    row = _SET_ROW.load({"type": set_type, "low": low, "high": high, "load": wanted["load"], "rest": wanted["rest"]})
    count = wanted["sets"] or (_PROPOSED_SETS_PER_ROUND if in_circuit else PROPOSED_SETS)
    return planned_sets([row] * count)


# --- Editing what an item plans: sets, circuits, tasks and reminders -------------------------------------------------


pages = WorkoutPages()


class _TaskForm(Versioned, item_models.TaskFields):
    """A task."""


class _ReminderForm(Versioned, item_models.PlannedReminder):
    """A reminder."""


class _SetTextForm(Versioned, Confirmation):
    setText: Annotated[str, validation.Text(max_length=validation.TEXT_LENGTH)]


class _SetRows(validation.Input):
    sets = validation.ListOf(fields.Nested(SET_ROW), maximum=workout_sets.MAX_SETS + BLANK_ROWS, load_default=list)


@pages.get(ITEM, template="workout/item.html")
async def item_page(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId) -> dict[str, Any]:
    """The form that edits an item."""
    variables = await workout.load_variables(ctx)
    block, unit = variables["block"], ctx.caller.company.load_unit
    item = block["items"][items.find_index(block["items"], witem_id)]
    entries = item["circuitExercises"] if item["type"] == "CIRCUIT" else []
    planned = item["exerciseSets"] if item["type"] == "EXERCISE" else []
    return {
        **variables,
        **_set_variables(planned),
        "version": variables["block"]["version"],
        "item": item,
        "entries": [{**entry, "lines": describe_sets(entry["sets"], unit)} for entry in entries],
        "title": describe_item(item, unit)["title"],
        "set_text": write_planned(planned, unit),
    }


def _declare_change(path: str, name: str, form: Any, to_change: Callable[[Any], Mapping[str, object]]) -> None:
    """Declare the form `name` of an item, with what it changes in the form of a request."""

    async def change(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, form: Any) -> Redirect:
        await workout.change_item(ctx, witem_id, to_change(form))
        return Redirect(workout.path, "Changes saved.")

    change.__name__ = name
    pages.post(f"{ITEM}/{path}", form=form, on=item_page)(change)


def _to_task(form: _TaskForm) -> Document:
    return {"version": form["version"], "taskFields": take(item_models.TaskFields, form)}


def _to_reminder(form: _ReminderForm) -> Document:
    return {"version": form["version"], "reminderFields": take(item_models.PlannedReminder, form)}


_declare_change("circuit", "change_circuit", CircuitForm, lambda form: form)
_declare_change("task", "change_task", _TaskForm, _to_task)
_declare_change("reminder", "change_reminder", _ReminderForm, _to_reminder)
_SETS_FORM = input_of(ExerciseForm, _SetRows)()
_declare_change("sets", "change_sets", _SETS_FORM, lambda form: change_of(form, planned_sets(form["sets"])))


@pages.post(f"{ITEM}/set-text", form=_SetTextForm, on=item_page)
async def change_set_text(ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, form: _SetTextForm) -> Redirect:
    """Replace the planned sets of an exercise by the sets of a text."""
    try:
        sets = parse_planned(form["setText"], ctx.caller.company.load_unit)
    except SetTextError as error:
        raise TextError([Problem("setText", None, str(error), error.problem)]) from None
    await workout.change_item(ctx, witem_id, {"exerciseSets": sets, "version": form["version"]})
    return Redirect(workout.path, "Changes saved.")


@pages.get(CIRCUIT_EXERCISE, template="workout/circuit_exercise.html")
async def circuit_exercise_page(
    ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, exercise_id: ObjectId
) -> dict[str, Any]:
    """The form that edits an exercise of a circuit."""
    variables = await workout.load_variables(ctx)
    circuit = find_circuit(variables["block"], witem_id)
    entry = circuit["circuitExercises"][position_of(circuit, exercise_id)]
    return {
        **variables,
        **_set_variables(entry["sets"]),
        "version": variables["block"]["version"],
        "circuit": circuit,
        "entry": entry,
    }


@pages.post(CIRCUIT_EXERCISE, form=input_of(SetsForm, _SetRows)(), on=circuit_exercise_page)
async def change_circuit_exercise(
    ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, exercise_id: ObjectId, form: SetsForm
) -> Redirect:
    """Change the sets and instructions of an exercise in a circuit."""
    await save_circuit_exercise(ctx, workout, witem_id, exercise_id, form, planned_sets(form["sets"]))
    return Redirect(f"{workout.path}/items/{witem_id}", "Changes saved.")


@pages.post(f"{CIRCUIT_EXERCISE}/remove", on=item_page, deletes=True)
async def remove_circuit_exercise(
    ctx: Context, workout: OpenedWorkout, witem_id: ObjectId, exercise_id: ObjectId
) -> Redirect:
    """Remove an exercise from a circuit; its logged sets are not deleted."""
    block = await workout.read(ctx)
    circuit = find_circuit(block, witem_id)
    await replace_exercises(ctx, workout, circuit, with_replaced(circuit, exercise_id, []), block["version"])
    return Redirect(f"{workout.path}/items/{witem_id}", "Exercise removed.", part=workout.path)


def _set_variables(sets: Sequence[workout_sets.PlannedSet]) -> dict[str, Any]:
    return {"rows": set_rows(sets), "set_types": SET_TYPES, "set_kinds": SET_KINDS}
