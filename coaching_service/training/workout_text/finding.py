"""Arguments of the workout tools, what the names in them and in texts mean, and finding workouts of many clients."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Annotated, Any, Literal, TypedDict, cast

from marshmallow import ValidationError, fields, validates_schema
from rapidfuzz import process

from coaching_service.core import auth, mcp, validation
from coaching_service.core.database.context import Context
from coaching_service.core.errors import FieldError, Forbidden, InvalidFields, NotFound, invalid_field
from coaching_service.core.fields import Default, Description, argument_of, arguments_of, input_of, names_of, take
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.mcp import Answer, Lines, ToolPage, Tools, describe_list, optional, typed
from coaching_service.core.text import normalize, without_hidden
from coaching_service.core.validation import Identifier, Integer, ListOf, Text, sentence
from coaching_service.library import forms, metric_sets
from coaching_service.library.exercises import name_resolution
from coaching_service.library.exercises import service as listing
from coaching_service.library.exercises.models import MUSCLE_IDS
from coaching_service.library.exercises.name_resolution import KnownExercises, ResolvedExerciseName
from coaching_service.people.customers import bulk
from coaching_service.people.customers import service as customers
from coaching_service.people.customers.bulk import MAX_CLIENTS, choose_clients
from coaching_service.training.workout_text import lines
from coaching_service.training.workout_text.lines import DETAILS, Mention, ParsedWorkout, Problems
from coaching_service.training.workouts import sets as workout_sets
from coaching_service.training.workouts.blocks import service
from coaching_service.training.workouts.blocks.items import show_loads, store_loads
from coaching_service.training.workouts.blocks.models import BlockSettings
from coaching_service.training.workouts.blocks.service import ClientCalendar
from coaching_service.training.workouts.items.models import ItemInput
from coaching_service.training.workouts.items.service import planned_exercise_ids
from coaching_service.training.workouts.reports.exercises import find_exercise_ids
from coaching_service.training.workouts.sets import PlannedSet, SetOptions

_MAX_CALENDAR = 93
MAX_DAYS, MAX_TEXT = 31, 20_000
_SETS_TEXT = Text(max_length=2_000)
_ITEM_ID = re.compile(r"#?[0-9a-fA-F]{6,24}", re.ASCII)


class WorkoutPage(mcp.ToolPage):
    """How much of each workout, and a page."""

    pageSize = Integer(minimum=1, maximum=mcp.MAX_TOOL_PAGE, load_default=40)
    detail = validation.Choice(
        *DETAILS,
        load_default="plan",
        metadata={
            "description": "summary: names of items; plan: sets, notes, what was done; full: also answers, times, "
            "loads of percentages, and arrays."
        },
    )


class CalendarDates(mcp.Dates, WorkoutPage, mcp.CustomerArgument):
    """A client, a range of dates (at most three months), how much of each workout, and a page."""

    max_days = _MAX_CALENDAR


class ItemIdentifier(Text):
    """The identifier of an item, or its last 6 characters or more."""

    def __init__(self, **options: Any) -> None:
        options["metadata"] = {"pattern": "^#?[0-9a-fA-F]{6,24}$", **options.pop("metadata", {})}
        super().__init__(max_length=25, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if not _ITEM_ID.fullmatch(text):
            raise ValidationError("must be 6 to 24 hexadecimal characters, from get_workouts")
        return text


class _Quantity(TypedDict):
    reps: Annotated[int | None, Integer(minimum=0, maximum=workout_sets.MAX_REPS)]
    repsMax: Annotated[int | None, Integer(minimum=0, maximum=workout_sets.MAX_REPS)]
    seconds: Annotated[float | None, validation.Number(minimum=0, maximum=workout_sets.MAX_SECONDS)]
    meters: Annotated[float | None, validation.Number(minimum=0, maximum=workout_sets.MAX_METERS)]


class ToolSetArguments(_Quantity, workout_sets.PlannedLoad, workout_sets.SetOptions):
    """A planned set: repetitions, seconds or meters, with a load or without; `count` such sets."""

    count: Annotated[int, Integer(minimum=1, maximum=20), Default(1)]


class _Quantities(mcp.Arguments):
    @validates_schema
    def has_one_quantity(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require exactly one quantity, and a maximum that is not below the minimum."""
        quantities = sum(data[name] is not None for name in ("reps", "seconds", "meters"))
        if quantities != 1 and not (quantities == 0 and data["isAmrap"]):
            raise ValidationError("must have exactly one of reps, seconds and meters")
        if data["repsMax"] is not None and (data["reps"] is None or data["repsMax"] < data["reps"]):
            raise ValidationError("must not be less than reps", "repsMax")
        if data["load"] is not None and data["loadPercent"] is not None:
            raise ValidationError("must not be combined with load", "loadPercent")


_ToolSet = input_of(ToolSetArguments, _Quantities, name="ToolSet")


class ToolSets(ListOf):
    """Sets as text or as an array: at most 100 in all, each counted `count` times."""

    def __init__(self, **options: Any) -> None:
        super().__init__(fields.Nested(_ToolSet), minimum=1, maximum=50, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        if isinstance(value, str):
            return _SETS_TEXT.deserialize(value)
        return super()._deserialize(value, attr, data, **kwargs)


class ToolExerciseArguments(TypedDict):
    """An exercise of a workout, by identifier or by name, with its sets, as text or as an array."""

    exerciseId: ObjectId | None
    name: str | None
    sets: Annotated[str | list[ToolSetArguments], ToolSets()]
    instructions: Annotated[str | None, Text(max_length=validation.TEXT_LENGTH)]
    superset: Annotated[str | None, Text(max_length=50)]


class _NamedExercise(mcp.Arguments):
    @validates_schema
    def names_one_exercise(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require an identifier or a name."""
        if (data["exerciseId"] is None) == (data["name"] is None):
            raise ValidationError("is required (or a name)", "exerciseId")

    @validates_schema
    def limit_sets(self, data: Mapping[str, Any], **_: Any) -> None:
        """Limit the number of sets."""
        if not isinstance(data["sets"], str) and sum(each["count"] for each in data["sets"]) > workout_sets.MAX_SETS:
            raise ValidationError(f"must not be more than {workout_sets.MAX_SETS} in all", "sets")


_ToolExercise = input_of(ToolExerciseArguments, _NamedExercise, name="ToolExercise")


def workout_text(description: str, **options: Any) -> Text:
    """Return the field of a text with a line for each item."""
    return Text(max_length=MAX_TEXT, metadata={"description": description}, **options)


class BlockArguments(mcp.Arguments):
    """What is set for a workout with a `text`; a day of rest has none."""

    class Meta(mcp.Arguments.Meta):
        include = arguments_of(BlockSettings)

    @validates_schema
    def rests_without_items(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require a day of rest to have no text."""
        if data["isRest"] and data["text"].strip():
            raise ValidationError("must be empty for a day of rest", "text")


class WorkoutDayArguments(BlockSettings):
    """A workout of a date, as text."""

    date: Annotated[str, validation.CalendarDate(), Description("YYYY-MM-DD, the client's local date.")]
    name: Annotated[str, Description("Name of the workout, such as Lower body.")]
    text: Annotated[
        str, Text(max_length=MAX_TEXT, allow_blank=True), Default(""), Description("A line for each item, in order.")
    ]


class WorkoutDay(BlockArguments):
    """A workout of a date, as text."""

    class Meta(BlockArguments.Meta):
        include = arguments_of(WorkoutDayArguments)


class NewWorkouts(mcp.CustomerArgument):
    """Workouts as text; or one with its exercises as an array."""

    days = ListOf(fields.Nested(WorkoutDay), minimum=1, maximum=MAX_DAYS, **mcp.optional("The workouts."))
    date = validation.CalendarDate(load_default=None, allow_none=True, metadata=mcp.UNLISTED)
    name = Text(load_default=None, allow_none=True, metadata=mcp.UNLISTED)
    exercises = ListOf(
        fields.Nested(_ToolExercise),
        minimum=1,
        maximum=50,
        load_default=None,
        allow_none=True,
        metadata=mcp.UNLISTED,
    )

    @validates_schema
    def days_or_exercises(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require days, or one workout with an array of exercises, but not both."""
        array = [data[name] for name in ("date", "name", "exercises")]
        if data["days"] is None and any(value is not None for value in array):
            for name in ("date", "name", "exercises"):
                if data[name] is None:
                    raise ValidationError("is required", name)
        elif data["days"] is None:
            raise ValidationError("is required", "days")
        elif any(value is not None for value in array):
            raise ValidationError("must not be combined with date, name or exercises", "days")


class WorkoutArgument(mcp.CustomerArgument):
    """A workout of a client."""

    workoutId = validation.Identifier(required=True, metadata={"description": "From get_workouts."})


class WorkoutChange(WorkoutArgument):
    """A new name, date, position or other settings of a workout."""

    class Meta(mcp.Arguments.Meta):
        include = {name: argument_of(BlockSettings, name, may_be_absent=True) for name in names_of(BlockSettings)}

    name = Text(**mcp.optional("A new name."))
    date = validation.CalendarDate(**mcp.optional("A new date, YYYY-MM-DD."))
    order = Integer(minimum=0, maximum=1000, **mcp.optional("New position in the day, from 0."))

    @validates_schema(skip_on_field_errors=False)
    def changes_something(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require a change."""
        settings = ("name", "date", "order", *names_of(BlockSettings))
        if all(data.get(name, ...) is None for name in settings):
            raise ValidationError(f"must have {', '.join(settings[:-1])} or {settings[-1]}")


class ItemEditArguments(TypedDict):
    """One change of a workout's items."""

    action: Annotated[Literal["add", "change", "move", "remove"], Description("What to do.")]
    itemId: Annotated[
        str | None, ItemIdentifier(), Description("The item (not for add): the id after # in get_workouts.")
    ]
    text: Annotated[
        str | None,
        Text(max_length=MAX_TEXT),
        Description("add: lines as in create_workout. change: one such item, or only its sets."),
    ]
    index: Annotated[
        int | None, Integer(minimum=0, maximum=1000), Description("add, move: new position from 0. Default: the end.")
    ]
    toWorkoutId: Annotated[ObjectId | None, Description("move: another workout of the client.")]


class ItemEdit(mcp.Arguments):
    """One change of a workout's items."""

    class Meta(mcp.Arguments.Meta):
        include = arguments_of(ItemEditArguments)

    @validates_schema
    def has_what_the_action_needs(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require the item, and the text, where the action needs them."""
        if (action := data["action"]) != "add" and data["itemId"] is None:
            raise ValidationError(f"is required to {action}", "itemId")
        if action in ("add", "change") and data["text"] is None:
            raise ValidationError(f"is required to {action}", "text")


class ItemEdits(WorkoutArgument):
    """Changes of a workout's items, in order."""

    changes = ListOf(
        fields.Nested(ItemEdit), minimum=1, maximum=50, required=True, metadata={"description": "In order."}
    )


# --- Resolving the names in a text: exercises, forms and metric sets of the libraries ---------------------------------


_MAX_NAMES = 200
_NEAREST, _MIN_SCORE = 4, 60
_AREAS: Mapping[lines.Kind, auth.Area] = {
    "exercise": auth.EXERCISES,
    "form": auth.FORMS,
    "metric set": auth.METRICS,
}


@dataclass(frozen=True)
class ReadTexts:
    """The items of texts, in the order of the texts.

    `remarks` are sentences, each with a space before it, about names that were read as other names and about labels
    that make no superset.
    """

    items: list[list[ItemInput]]
    remarks: str


async def read_texts(
    ctx: Context,
    texts: Sequence[tuple[str, str]],
    earlier: Sequence[lines.Problem] = (),
    customer_id: ObjectId | None = None,
) -> ReadTexts:
    """Return the items of texts, each given with the field of the request that has it.

    With a client, names of exercises mean first those on the client's calendar.

    Raises TextError for all lines that cannot be read or name nothing, with their numbers, and for `earlier` problems.
    """
    load_unit = ctx.caller.load_unit
    parsed = [lines.parse_items(text, load_unit, path) for path, text in texts]
    read_as = await resolve_workouts(ctx, [ParsedWorkout(problems=list(earlier)), *parsed], customer_id)
    store_loads([item.item for workout in parsed for item in workout.items], ctx)
    items = [[item.details for item in workout.items] for workout in parsed]
    return ReadTexts(items, read_as + lines.describe_lone_labels(parsed))


async def resolve_workouts(ctx: Context, workouts: Sequence[ParsedWorkout], customer_id: ObjectId | None = None) -> str:
    """Put the identifiers of what workouts mention into their items.

    With a client, names of exercises mean first those on the client's calendar.

    Returns a sentence about names that were read as other names of exercises, with a space before it; empty for none.
    Raises TextError for all lines that cannot be read, and all names that mean nothing or more than one document, with
    the nearest ones.
    """
    problems = Problems([problem for workout in workouts for problem in workout.problems])
    of_kind: dict[lines.Kind, list[Mention]] = {
        "exercise": [],
        "form": [],
        "metric set": [],
    }
    for mention in (mention for workout in workouts for mention in workout.mentions):
        of_kind[mention.kind].append(mention)
    for kind in ("form", "metric set"):
        if of_kind[kind]:
            problems.entries += _match_names(ctx, of_kind[kind], await _list_names(ctx, kind))
    remarks = ""
    if of_kind["exercise"]:
        with problems.collect():
            remarks = await _resolve_exercises(ctx, of_kind["exercise"], customer_id)
            # What is part of a name is no label of a superset.
            names = {id(mention.target) for mention in of_kind["exercise"] if mention.whole == mention.name}
            for workout in workouts if names else ():
                for parsed in workout.items:
                    if id(parsed.item) in names:
                        parsed.item["supersetId"] = parsed.superset = None
                lines.group_supersets(workout.items)
    problems.raise_any()
    return remarks


async def resolve_document(ctx: Context, kind: Literal["form", "metric set"], path: str, text: str) -> ObjectId:
    """Return the form or metric set that a text names, or whose identifier it is.

    `path` is the field of the request that has the text. Raises InvalidFields, with the nearest names, if there is none
    or more than one.
    """
    if (identifier := parse_id(text.strip().lower())) is not None:
        return identifier
    mention = Mention(kind, path, 1, text, {}, "_id")
    problems = _match_names(ctx, [mention], await _list_names(ctx, kind))
    Problems([replace(each, line=None, message=f"is unknown: {each.message}") for each in problems]).raise_any()
    return ObjectId(mention.target["_id"])


async def _list_names(ctx: Context, kind: Literal["form", "metric set"]) -> dict[ObjectId, str]:
    if kind == "form":
        return {form["_id"]: form["name"] for form in await forms.list_all(ctx)}
    return {each["_id"]: each["name"] for each in await metric_sets.list_all(ctx)}


async def resolve_exercises(
    ctx: Context, texts: Mapping[str, str], customer_id: ObjectId | None = None, on_calendar: Collection[str] = ()
) -> list[ObjectId]:
    """Return the exercises that texts name, or whose identifiers they are, with or without brackets, in order.

    The keys are the paths of the texts in the request. With a client, names mean first the exercises on the client's
    calendar; those of the paths `on_calendar` are to be found there. Raises InvalidFields for the texts that do not
    mean exactly one exercise, with the nearest ones.
    """
    identifiers = {path: _read_id(text) for path, text in texts.items()}
    errors: list[FieldError] = []
    for loosely in (True, False):
        names = {path: texts[path] for path, identifier in identifiers.items() if identifier is None}
        names = {path: name for path, name in names.items() if (path in on_calendar) is loosely}
        known = None if customer_id is None else exercises_of(customer_id, loosely=loosely)
        resolved = await name_resolution.resolve_names(ctx, list(names.values()), known)
        for path, about in zip(names, resolved, strict=True):
            if about["match"] is not None:
                identifiers[path] = about["match"]["_id"]
            else:
                message = f"is unknown: {_describe(ctx, 'exercise', _candidates_of(about))}"
                errors.append({"field": path, "code": "UNKNOWN_NAME", "message": message})
    if errors:
        raise InvalidFields(errors)
    return [identifier for identifier in identifiers.values() if identifier is not None]


def _read_id(text: str) -> ObjectId | None:
    return parse_id(text.strip().removeprefix("[").removesuffix("]").lower())


def exercises_of(customer_id: ObjectId, *, loosely: bool = False) -> KnownExercises:
    """Return the exercises on a client's calendar; reading them raises NotFound and Forbidden for the client."""

    async def load(ctx: Context) -> Collection[ObjectId]:
        await ClientCalendar(customer_id).require_access(ctx)
        return await find_exercise_ids(ctx, customer_id)

    return KnownExercises(customer_id, load, loosely)


def describe_readings(texts: Iterable[str], names: Iterable[str]) -> str:
    """Return a sentence about texts that were read as exercises with other names, with a space before it, or nothing.

    The texts are names or identifiers of exercises, `names` the names of these exercises.
    """
    read_as = dict.fromkeys(
        f"{typed(text)} as {typed(name)}"
        for text, name in zip(texts, names, strict=True)
        if _read_id(text) is None and normalize(without_hidden(text)) != normalize(without_hidden(name))
    )
    return f" Read {', '.join(read_as)}." if read_as else ""


async def _resolve_exercises(ctx: Context, mentions: Sequence[Mention], customer_id: ObjectId | None) -> str:
    names = list(dict.fromkeys(name for mention in mentions for name in (mention.name, mention.whole) if name))
    if len(names) > _MAX_NAMES:
        raise lines.error_in_line(
            mentions[0].field, mentions[0].line, f"expected at most {_MAX_NAMES} different exercises"
        )
    known = None if customer_id is None else exercises_of(customer_id)
    resolved = {about["name"]: about for about in await name_resolution.resolve_names(ctx, names, known)}
    for mention in mentions:
        whole = None if mention.whole is None else resolved[mention.whole]
        # An exercise has exactly the whole name, which without its letter means another one or none.
        if whole and name_resolution.is_exact(whole) and whole["match"] != resolved[mention.name]["match"]:
            mention.name = whole["name"]
    resolved = {mention.name: resolved[mention.name] for mention in mentions}
    unknown = [name for name, about in resolved.items() if about["match"] is None]
    deleted_by_name = await name_resolution.find_deleted_names(ctx, unknown) if _may_list(ctx, "exercise") else {}
    problems = Problems()
    for mention in mentions:
        about = resolved[mention.name]
        if about["match"] is not None:
            mention.target[mention.key] = about["match"]["_id"]
            continue
        deleted = deleted_by_name.get(mention.name, ())
        note = f". Deleted: {', '.join(map(typed, deleted))}" if deleted else ""
        candidates = _candidates_of(about) if _may_list(ctx, "exercise") else []
        message = _describe(ctx, "exercise", candidates) + note
        problems.entries.append(_unknown(ctx, mention, message, [name for name, _ in candidates], deleted))
    problems.raise_any()
    matched = {name: about["match"]["name"] for name, about in resolved.items() if about["match"] is not None}
    return describe_readings(matched.keys(), matched.values())


def _may_list(ctx: Context, kind: lines.Kind) -> bool:
    """Return whether the caller may see which names there are."""
    return auth.areas_of(ctx.caller).allows(area=_AREAS[kind])


def _match_names(ctx: Context, mentions: Iterable[Mention], names: Mapping[ObjectId, str]) -> Iterator[lines.Problem]:
    """Put identifiers into mentions by exact names; yields the problems of the others."""
    for mention in mentions:
        wanted = normalize(mention.name)
        matching = [identifier for identifier, name in names.items() if normalize(name) == wanted]
        resolved = ctx.resolved.get(f"{mention.kind} {wanted}")
        matching = [identifier for identifier in matching if identifier == resolved] or matching
        if len(matching) != 1:
            normalized = {identifier: normalize(name) for identifier, name in names.items()}
            near = process.extract(wanted, normalized, limit=_NEAREST) if _may_list(ctx, mention.kind) else []
            message = _describe(ctx, mention.kind, [(names[key], key) for _, _, key in near])
            yield _unknown(ctx, mention, message, [names[key] for _, score, key in near if score >= _MIN_SCORE])
        else:
            mention.target[mention.key] = ctx.resolved[f"{mention.kind} {wanted}"] = matching[0]


def _unknown(
    ctx: Context, mention: Mention, message: str, nearest: Sequence[str], deleted: Sequence[str] = ()
) -> lines.Problem:
    """Return the problem of a name; only names that one document has can be written in its place."""
    counts = Counter(map(normalize, nearest))
    suggestions = [name for name in nearest if counts[normalize(name)] == 1]
    description = f"“{mention.name}” is not the name of {'an' if mention.kind == 'exercise' else 'a'} {mention.kind}"
    if not _may_list(ctx, mention.kind):
        description = f"“{mention.name}” is not the name of exactly one {mention.kind}"
    elif counts[normalize(mention.name)] > 1:
        description = f"“{mention.name}” is the name of more than one {mention.kind}. Rename the one you mean"
    else:
        description += f". Deleted: {', '.join(f'“{name}”' for name in deleted)}" if deleted else ""
        description += ". Did you mean" if suggestions else ", and no name is similar. Create it first"
    return lines.Problem(
        mention.field,
        mention.line,
        message,
        description,
        code="UNKNOWN_NAME",
        name=mention.name,
        suggestions=suggestions,
    )


def _candidates_of(resolved: ResolvedExerciseName) -> list[tuple[str, ObjectId]]:
    candidates = [each for each in (resolved["match"], *resolved["alternatives"]) if each is not None]
    return [(each["name"], each["_id"]) for each in candidates]


def _describe(ctx: Context, kind: lines.Kind, candidates: Sequence[tuple[str, ObjectId]]) -> str:
    """Return what is wrong with a name that means nothing, or several documents, with the nearest that may be seen."""
    if not _may_list(ctx, kind):
        return f"the name does not mean exactly one {kind}; naming the nearest needs {_AREAS[kind].VIEW}"
    if not candidates:
        return f"no {kind} has this name or a similar one"
    nearest = ", ".join(f"{typed(name)} [{identifier}]" for name, identifier in candidates)
    return f"the name does not mean exactly one {kind}; the nearest: {nearest}. Write one of these names, or its [id]"


tools = Tools()
_MAX_ALL, _NEAR_DAYS, _MAX_DAYS, _MAX_FOUND, _MAX_ITEMS = 1_000, 28, 366, 1_000, 6
_MUSCLES = {normalize(name): identifier for name, identifier in MUSCLE_IDS.items()}


class WorkoutSearch(ToolPage):
    """What the workouts have, whose they are and when, and a page."""

    exercise = Text(**optional("A name, or _id."))
    muscle = Text(max_length=40, **optional("Or: trained by an exercise."))
    words = Text(max_length=100, **optional("Or: in names and notes."))
    customerIds = ListOf(Identifier(), minimum=1, maximum=MAX_CLIENTS, **optional("Without: all active clients."))
    groups = ListOf(Text(max_length=100), minimum=1, maximum=MAX_CLIENTS, **optional("Or: clients in these."))
    locals()["from"] = validation.Date(**optional("Without: 28 days ago."))
    to = validation.Date(**optional("Without: in 28 days."))
    status = validation.Choice("planned", "done", **optional("Only what is not done yet, or done."))

    @validates_schema(skip_on_field_errors=False)
    def chooses_once(self, data: Mapping[str, Any], **_: Any) -> None:
        """Require one thing to look for, and one way to choose clients."""
        given = [name for name in ("exercise", "muscle", "words") if data.get(name) is not None]
        if len(given) != 1:
            raise ValidationError("is required, or muscle, or words: one of them", "exercise")
        if data.get("customerIds") and data.get("groups"):
            raise ValidationError("must not be combined with customerIds", "groups")


@tools.tool("Find workouts", access=auth.coach(auth.CUSTOMERS.VIEW), takes=WorkoutSearch(), returns=Lines)
async def find_workouts(
    ctx: Context,
    exercise: str | None,
    muscle: str | None,
    words: str | None,
    customer_ids: list[ObjectId] | None,
    groups: list[str] | None,
    to: str | None,
    status: str | None,
    page: int,
    page_size: int,
    **period: str | None,
) -> Answer:
    """Find workouts of all or some clients by an exercise, muscle or words, by date, with the items that have it."""
    today = ctx.caller.today()
    first = period["from"] or str(today - timedelta(days=_NEAR_DAYS))
    last = to or str(max(today, date.fromisoformat(first)) + timedelta(days=_NEAR_DAYS))
    if not 0 <= (date.fromisoformat(last) - date.fromisoformat(first)).days <= _MAX_DAYS:
        raise invalid_field("to", f"must be at most {_MAX_DAYS} days after from, and not before it", code="INVALID")
    if page * page_size > _MAX_FOUND:
        raise invalid_field("page", f"must end within the first {_MAX_FOUND} workouts", code="TOO_FAR")
    ids = await _choose(ctx, customer_ids, groups)
    exercise_ids = await _find_exercises(ctx, exercise, muscle)
    found = await service.find_of_clients(
        ctx,
        ids,
        (first, last),
        exercise_ids=exercise_ids,
        words=(words or "").split(),
        is_done=None if status is None else status == "done",
        skip=(page - 1) * page_size,
        limit=page_size + 1,
    )
    has_more, unit = len(found) > page_size, ctx.caller.load_unit
    names = await customers.find_references(ctx, list({cast("ObjectId", each["customerId"]) for each in found}))
    listed: list[str] = []
    for block in show_loads(found[:page_size], ctx, unit):
        client = names[cast("ObjectId", block["customerId"])]
        items = block["items"]
        if exercise_ids is not None:
            items = [each for each in items if not set(planned_exercise_ids(each)).isdisjoint(exercise_ids)]
        written = [[*lines.write_item(each, unit), *lines.write_log(each, unit)] for each in items[:_MAX_ITEMS]]
        said = [" ".join(line.strip() for line in each) for each in written]
        said += [f"{len(items) - _MAX_ITEMS} more"] if len(items) > _MAX_ITEMS else []
        about = f"{typed(client['name'])} [{client['_id']}] {typed(block['name'])} [workout {block['_id']}]"
        listed.append(f"{block['date']} {about}: {'; '.join(said)}")
    title = f"Workouts with {typed(exercise or muscle or words or '')}, {first} to {last}, loads in {unit}"
    more = f"; more on page {page + 1}" if has_more else ""
    data = describe_list(title, {"nextPage": page + 1 if has_more else None})
    text = "\n".join([f"{title}: {len(listed) or 'none'}{more}", *listed])
    return Answer(text, {**data, "docs": [{"line": line} for line in listed]})


async def _choose(ctx: Context, customer_ids: list[ObjectId] | None, groups: list[str] | None) -> list[ObjectId]:
    if customer_ids is not None or groups is not None:
        return [each["_id"] for each in await choose_clients(ctx, None, customer_ids, groups)]
    ids: list[ObjectId] = []
    async for part in bulk.iterate_matching(ctx, {"archived": False}, _MAX_ALL + 1):
        ids += part
        if len(ids) > _MAX_ALL:
            raise invalid_field("groups", f"is required: there are more than {_MAX_ALL:,} clients", code="REQUIRED")
    return ids


async def _find_exercises(ctx: Context, exercise: str | None, muscle: str | None) -> Collection[ObjectId] | None:
    """Return the exercises that are named, or train a muscle most; None for neither."""
    if exercise is not None:
        return await resolve_exercises(ctx, {"exercise": exercise})
    if muscle is None:
        return None
    if (muscle_id := _MUSCLES.get(normalize(muscle))) is None:
        raise invalid_field("muscle", f"is unknown. Known are {', '.join(MUSCLE_IDS)}", code="UNKNOWN_NAME")
    return await listing.list_training(ctx, muscle_id)


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


# --- Items from the arrays that tools also accept ---------------------------------------------------------------------


async def to_exercise_items(
    ctx: Context, customer_id: ObjectId, entries: Sequence[ToolExerciseArguments]
) -> list[ItemInput]:
    """Return exercises with their sets as items. Raises InvalidFields for names and sets that cannot be read."""
    exercises = {f"exercises.{index}": each for index, each in enumerate(entries)}  # by their path in the request
    errors: list[FieldError] = []
    sets: dict[str, list[PlannedSet]] = {}
    for path, each in exercises.items():
        try:
            sets[path] = (
                lines.read_planned(each["sets"], ctx.caller.load_unit, f"{path}.sets")
                if isinstance(each["sets"], str)
                else [
                    _planned_set(index, sent)
                    for index, sent in enumerate((some for some in each["sets"] for _ in range(some["count"])), 1)
                ]
            )
        except InvalidFields as error:
            errors += error.errors
    named = {path: str(each["name"]) for path, each in exercises.items() if each["exerciseId"] is None}
    try:
        resolved = await resolve_exercises(ctx, {f"{path}.name": name for path, name in named.items()}, customer_id)
    except InvalidFields as error:
        errors += error.errors
    if errors:
        raise InvalidFields(errors)
    ids = dict(zip(named, resolved, strict=True))
    read: list[ItemInput] = [
        {
            "type": "EXERCISE",
            "exerciseId": each["exerciseId"] or ids[path],
            "exerciseSets": sets[path],
            "exerciseInstructions": each["instructions"],
            "supersetId": each["superset"],
        }
        for path, each in exercises.items()
    ]
    return store_loads(read, ctx)


def _planned_set(index: int, sent: ToolSetArguments) -> PlannedSet:
    planned = cast("PlannedSet", {"index": index, "type": "reps", **take(SetOptions, sent)})
    has_load = sent["load"] is not None or sent["loadPercent"] is not None
    if has_load:
        planned["load"], planned["loadPercent"] = sent["load"], sent["loadPercent"]
    amounts: dict[str, float | None] = {
        "minPlannedReps": sent["reps"],
        "maxPlannedReps": sent["repsMax"] or sent["reps"],
    }
    set_type = "reps"
    if sent["meters"] is not None:
        set_type, amounts = "distance", {"plannedMeters": sent["meters"]}
    elif sent["seconds"] is not None:
        set_type, amounts = "time", {"minPlannedSeconds": sent["seconds"], "maxPlannedSeconds": sent["seconds"]}
    set_type += "_load" if has_load else ""
    return cast("PlannedSet", {**planned, "type": set_type, **amounts})
