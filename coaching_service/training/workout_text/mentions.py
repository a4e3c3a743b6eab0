"""Resolving the names in a text: exercises, forms and metric sets of the libraries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rapidfuzz import process

from coaching_service.core.auth.permissions import EXERCISES, FORMS, METRICS, Area
from coaching_service.core.auth.visibility import areas_of
from coaching_service.core.database.context import Context
from coaching_service.core.errors import FieldError, InvalidFields
from coaching_service.core.ids import ObjectId, parse_id
from coaching_service.core.mcp.results import typed
from coaching_service.core.text import normalize
from coaching_service.library.exercises import name_resolution
from coaching_service.library.exercises.name_models import ResolvedExerciseName
from coaching_service.library.exercises.name_resolution import KnownExercises
from coaching_service.library.forms import service as forms
from coaching_service.library.metric_sets import service as metric_sets
from coaching_service.training.workout_text.lines import (
    Kind,
    Mention,
    ParsedWorkout,
    Problem,
    Problems,
    describe_lone_labels,
    error_in_line,
    group_supersets,
    parse_items,
)
from coaching_service.training.workouts.blocks.load_conversion import store_loads
from coaching_service.training.workouts.blocks.owners import ClientCalendar
from coaching_service.training.workouts.items.input_models import ItemInput
from coaching_service.training.workouts.reports.exercises import find_exercise_ids

_MAX_NAMES = 200
_NEAREST, _MIN_SCORE = 4, 60
_AREAS: Mapping[Kind, Area] = {"exercise": EXERCISES, "form": FORMS, "metric set": METRICS}


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
    earlier: Sequence[Problem] = (),
    customer_id: ObjectId | None = None,
) -> ReadTexts:
    """Return the items of texts, each given with the field of the request that has it.

    With a client, names of exercises mean first those on the client's calendar.

    Raises TextError for all lines that cannot be read or name nothing, with their numbers, and for `earlier` problems.
    """
    load_unit = ctx.caller.load_unit
    parsed = [parse_items(text, load_unit, path) for path, text in texts]
    read_as = await resolve_workouts(ctx, [ParsedWorkout(problems=list(earlier)), *parsed], customer_id)
    store_loads([item.item for workout in parsed for item in workout.items], ctx)
    items = [[item.details for item in workout.items] for workout in parsed]
    return ReadTexts(items, read_as + describe_lone_labels(parsed))


async def resolve_workouts(ctx: Context, workouts: Sequence[ParsedWorkout], customer_id: ObjectId | None = None) -> str:
    """Put the identifiers of what workouts mention into their items.

    With a client, names of exercises mean first those on the client's calendar.

    Returns a sentence about names that were read as other names of exercises, with a space before it; empty for none.
    Raises TextError for all lines that cannot be read, and all names that mean nothing or more than one document, with
    the nearest ones.
    """
    problems = Problems([problem for workout in workouts for problem in workout.problems])
    of_kind: dict[Kind, list[Mention]] = {"exercise": [], "form": [], "metric set": []}
    for mention in (mention for workout in workouts for mention in workout.mentions):
        of_kind[mention.kind].append(mention)
    for kind in ("form", "metric set"):
        if of_kind[kind]:
            problems.entries += _match_names(ctx, of_kind[kind], await _list_names(ctx, kind))
    remarks = ""
    if of_kind["exercise"]:
        with problems.collect():
            remarks = await _resolve_exercises(ctx, of_kind["exercise"], customer_id)
            _remove_letters_of_names(workouts, of_kind["exercise"])
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
    read_as = {
        f"{typed(text)} as {typed(name)}"
        for text, name in zip(texts, names, strict=True)
        if _read_id(text) is None and normalize(text) != normalize(name)
    }
    return f" Read {', '.join(sorted(read_as))}." if read_as else ""


async def _resolve_exercises(ctx: Context, mentions: Sequence[Mention], customer_id: ObjectId | None) -> str:
    names = list(dict.fromkeys(name for mention in mentions for name in (mention.name, mention.whole) if name))
    if len(names) > _MAX_NAMES:
        raise error_in_line(mentions[0].field, mentions[0].line, f"expected at most {_MAX_NAMES} different exercises")
    known = None if customer_id is None else exercises_of(customer_id)
    resolved = {about["name"]: about for about in await name_resolution.resolve_names(ctx, names, known)}
    for mention in mentions:
        if mention.whole is not None and _is_name_with_letter(resolved[mention.whole], resolved[mention.name]):
            mention.name = mention.whole
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


def _is_name_with_letter(whole: ResolvedExerciseName, rest: ResolvedExerciseName) -> bool:
    """Return whether an exercise has exactly the whole name, which without its letter means another one or none."""
    return name_resolution.is_exact(whole) and whole["match"] != rest["match"]


def _remove_letters_of_names(workouts: Sequence[ParsedWorkout], mentions: Sequence[Mention]) -> None:
    """Take what is part of a name from the labels of supersets."""
    names = {id(mention.target) for mention in mentions if mention.whole == mention.name}
    for workout in workouts if names else ():
        for parsed in workout.items:
            if id(parsed.item) in names:
                parsed.item["supersetId"] = parsed.superset = None
        group_supersets(workout.items)


def _may_list(ctx: Context, kind: Kind) -> bool:
    """Return whether the caller may see which names there are."""
    return areas_of(ctx.caller).allows(area=_AREAS[kind])


def _match_names(ctx: Context, mentions: Iterable[Mention], names: Mapping[ObjectId, str]) -> Iterator[Problem]:
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
) -> Problem:
    """Return the problem of a name; only names that one document has can be written in its place."""
    counts = Counter(map(normalize, nearest))
    suggestions = [name for name in nearest if counts[normalize(name)] == 1]
    is_shared = counts[normalize(mention.name)] > 1
    description = _describe_problem(mention, is_shared, suggestions, deleted)
    if not _may_list(ctx, mention.kind):
        description = f"“{mention.name}” is not the name of exactly one {mention.kind}"
    return Problem(
        mention.field,
        mention.line,
        message,
        description,
        code="UNKNOWN_NAME",
        name=mention.name,
        suggestions=suggestions,
    )


def _describe_problem(mention: Mention, is_shared: bool, suggestions: Sequence[str], deleted: Sequence[str]) -> str:
    kind = f"{'an' if mention.kind == 'exercise' else 'a'} {mention.kind}"
    if is_shared:
        return f"“{mention.name}” is the name of more than one {mention.kind}. Rename the one you mean"
    problem = f"“{mention.name}” is not the name of {kind}"
    if deleted:
        problem += f". Deleted: {', '.join(f'“{name}”' for name in deleted)}"
    return f"{problem}. Did you mean" if suggestions else f"{problem}, and no name is similar. Create it first"


def _candidates_of(resolved: ResolvedExerciseName) -> list[tuple[str, ObjectId]]:
    candidates = [each for each in (resolved["match"], *resolved["alternatives"]) if each is not None]
    return [(each["name"], each["_id"]) for each in candidates]


def _describe(ctx: Context, kind: Kind, candidates: Sequence[tuple[str, ObjectId]]) -> str:
    """Return what is wrong with a name that means nothing, or several documents, with the nearest that may be seen."""
    if not _may_list(ctx, kind):
        return f"the name does not mean exactly one {kind}; naming the nearest needs {_AREAS[kind].VIEW}"
    if not candidates:
        return f"no {kind} has this name or a similar one"
    nearest = ", ".join(f"{typed(name)} [{identifier}]" for name, identifier in candidates)
    return f"the name does not mean exactly one {kind}; the nearest: {nearest}. Write one of these names, or its [id]"
