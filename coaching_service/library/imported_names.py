"""Names of exercises in files: what they mean, what the company has answered about them, and new exercises."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypedDict

from coaching_service.core.auth import EXERCISES
from coaching_service.core.database.context import Context, gather_reads, transactional
from coaching_service.core.database.declared import TEMPLATES, Index, Portable, Stored
from coaching_service.core.database.documents import Documents
from coaching_service.core.errors import PermissionMissing, invalid_field
from coaching_service.core.fields import Description
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.core.validation import NAME_LENGTH, Text
from coaching_service.library.exercises import name_resolution
from coaching_service.library.exercises import service as exercises
from coaching_service.library.exercises.models import LOAD, ExerciseName, NewExercise
from coaching_service.library.exercises.name_resolution import ExerciseMatch, ResolvedExerciseName, muscles_in_name

NewOrSkipped = Literal["create", "skip"]
CREATE: NewOrSkipped = "create"
SKIP: NewOrSkipped = "skip"
# What becomes of a name: an exercise, a new exercise with this name, or nothing.
NameAnswer: TypeAlias = ObjectId | NewOrSkipped


class ImportedName(Stored):
    """What a company has answered about a name in files; `exerciseId` is None if its sets are left out.

    `name` is normalized.
    """

    name: Annotated[str, Text(max_length=NAME_LENGTH)]
    exerciseId: ObjectId | None


class NameInFile(TypedDict):
    """A name of an exercise in a file, and what it means."""

    name: Annotated[str, Description("The name as the file has it.")]
    sets: Annotated[int, Description("How many sets, or rows of a plan, have this name.")]
    match: Annotated[
        ExerciseMatch | None,
        Description(
            "The exercise that the name means: the one answered for it now or in an earlier import, else the one that "
            "is meant for sure; null without one."
        ),
    ]
    alternatives: Annotated[list[ExerciseMatch], Description("Up to three other exercises, the best first.")]
    answer: Annotated[
        NewOrSkipped | None,
        Description(
            "`create` if an exercise with this name is created, `skip` if what has this name is left out; null with a "
            "match, and without the permission to create exercises."
        ),
    ]


@dataclass(frozen=True)
class ResolvedNames:
    """What the names of a file mean.

    `names`: for the result of the import, the most frequent first. `decisions` are by the normalized name, and so are
    `spellings`, the names as the file first has them; None: an exercise that the caller may not create. `answered` are
    the decisions that the caller has sent now.
    """

    names: list[NameInFile]
    decisions: Mapping[str, NameAnswer | None]
    spellings: Mapping[str, str]
    answered: frozenset[str]

    @property
    def new_names(self) -> list[str]:
        """The names for which exercises have to be created, as the file has them."""
        return [self.spellings[key] for key, decision in self.decisions.items() if decision == CREATE]

    def without_new(self) -> ResolvedNames:
        """Return what the names mean for a caller who may not create exercises: some mean nothing."""
        new = {key for key, decision in self.decisions.items() if decision == CREATE}
        return self._with_answer(new, None)

    def for_use(self, keys: Container[str]) -> ResolvedNames:
        """Return what the names mean if only some, by the normalized name, are used: no exercise for another one."""
        unused = {key for key, decision in self.decisions.items() if decision == CREATE and key not in keys}
        return self._with_answer(unused, SKIP)

    def _with_answer(self, keys: Set[str], answer: NewOrSkipped | None) -> ResolvedNames:
        names = list[NameInFile]()
        for each in self.names:
            names.append({**each, "answer": answer} if key_of(each["name"]) in keys else each)
        decisions = {key: answer if key in keys else decision for key, decision in self.decisions.items()}
        return replace(self, names=names, decisions=decisions, answered=self.answered - keys)

    def decide(self, name: str) -> NameAnswer | None:
        """Return the exercise that a name of the file means, or what becomes of what has it."""
        return self.decisions[key_of(name)]


def key_of(name: str) -> str:
    """Return a name as names are compared and stored."""
    return normalize(name)[:NAME_LENGTH]


def read_answers(sent: Mapping[str, Any], field: Literal["names", "customers"] = "names") -> dict[str, NameAnswer]:
    """Return answers about names as a request sends them: identifiers, `create` or `skip`. Raises InvalidFields."""
    kind = "an exercise" if field == "names" else "a client"
    answers: dict[str, NameAnswer] = {}
    for name, answer in sent.items():
        if answer in (CREATE, SKIP):
            answers[name] = CREATE if answer == CREATE else SKIP
        elif isinstance(answer, str) and ObjectId.is_valid(answer) and len(answer) == 24:
            answers[name] = ObjectId(answer)
        else:
            message = f"{name[:50]}: must be the identifier of {kind}, create or skip"
            raise invalid_field(field, message, code="INVALID_ANSWER")
    return answers


MAX_NAMES = 2_000
IMPORTED = "imported"
_SCORE_OF_ANSWER = 100.0
_NAMED = 10
ASK = "ask"
_STOCK_NAMES = Path(__file__).with_name("stock_names.txt")

# What companies have answered about names: one document for a company and name.
imported_names = Documents[ImportedName](
    "importedNames",
    (Index(("name",), unique=True),),
    no_history_reason="answers to questions of imports, which change no record",
    transfer=Portable(ImportedName, TEMPLATES, references={"exerciseId": "exercises"}),
)
BY_NAME = imported_names.index_name("name")


class ExercisesMissing(PermissionMissing):
    """Names of a file are not in the library, and the caller may not create exercises."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(EXERCISES.CREATE)
        self.message = f"The file {describe_missing(names)}"


def describe_missing(names: Sequence[str]) -> str:
    """Return what to do about names for which the caller may not create exercises."""
    listed = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    return (
        f"has names of exercises that are not in the library: {listed}. Answer with an exercise or `skip` for each, or "
        f"create them, which needs the permission {EXERCISES.CREATE}"
    )


async def resolve_names(
    ctx: Context, counts: Mapping[str, int], answers: Mapping[str, NameAnswer] | None = None
) -> ResolvedNames:
    """Return what the names of a file mean; `counts` are their numbers of sets, by name.

    An answer of the caller counts first, then one to an earlier import of the company, then the exercise that the name
    means for sure. A name without one becomes an exercise. Nothing is stored. Raises NotFound for an answer with an
    unknown exercise, and InvalidFields for a file with more than 2,000 names.
    """
    sets: Counter[str] = Counter()
    spellings: dict[str, str] = {}  # the first of each normalized name
    for name, count in counts.items():
        sets[key_of(name)] += count
        spellings.setdefault(key_of(name), " ".join(name.split())[:NAME_LENGTH])
    if len(sets) > MAX_NAMES:
        raise invalid_field("file", f"has more than {MAX_NAMES:,} names of exercises", code="TOO_MANY")
    sent = {key: answer for name, answer in (answers or {}).items() if (key := key_of(name)) in sets}
    await exercises.require(ctx, _exercises_in(sent.values()))
    # Answers to earlier imports count but for exercises that were deleted since.
    where = {"name": {"$in": list(sets.keys() - sent.keys())}}
    found = await imported_names.find(ctx, where, fields=("name", "exerciseId"), hint=BY_NAME)
    usable = await exercises.get_names(
        ctx, [each["exerciseId"] for each in found if each["exerciseId"]], only_usable=True
    )
    answered: dict[str, NameAnswer] = {
        each["name"]: each["exerciseId"] or SKIP
        for each in found
        if each["exerciseId"] is None or each["exerciseId"] in usable
    }
    answered |= sent
    resolved, names = await gather_reads(
        ctx,
        _resolve(ctx, list(spellings.values())),
        exercises.get_names(ctx, _exercises_in(answered.values()), only_usable=True),
    )
    described = [
        _describe(each, sets[key], answered.get(key), names) for key, each in zip(spellings, resolved, strict=True)
    ]
    decisions = {
        key: each["match"]["_id"] if each["match"] is not None else each["answer"] or CREATE
        for key, each in zip(spellings, described, strict=True)
    }
    described.sort(key=lambda each: (-each["sets"], each["name"]))
    return ResolvedNames(described, decisions, spellings, frozenset(sent))


@transactional
async def create_missing(
    ctx: Context,
    resolved: ResolvedNames,
    *,
    assistance: Iterable[str] = (),
    remember: bool = True,
) -> dict[str, ObjectId | None]:
    """Create the exercises that names of a file need, and return the exercise of each normalized name.

    A name that is left out has None. `assistance`: names whose loads are help. The answers of the caller are
    remembered for the next import unless `remember` is False: a client imports, who needs no permission to create
    exercises. Raises ExercisesMissing.
    """
    if remember and resolved.new_names and EXERCISES.CREATE not in ctx.caller.permissions:
        raise ExercisesMissing(resolved.new_names)
    helped = {key_of(name) for name in assistance}
    ids: dict[str, ObjectId | None] = {}
    for key, decision in resolved.decisions.items():
        if decision == CREATE:
            new: NewExercise = {
                "name": resolved.spellings[key],
                "aliases": [],
                "type": "strength",
                "level": None,
                "defaultInstructions": None,
                "videoLink": None,
                "tags": [IMPORTED],
                "muscleGroups": muscles_in_name(resolved.spellings[key]),
                "equipment": None,
                "loadType": "assistance" if key in helped else LOAD,
                "media": [],
            }
            ids[key] = (await exercises.create(ctx, new))["_id"]
        else:
            ids[key] = decision if isinstance(decision, ObjectId) else None
    if remember and resolved.answered:
        answered = [{"name": key, "exerciseId": ids[key]} for key in sorted(resolved.answered)]
        await imported_names.upsert_many(ctx, ("name",), answered)
    return ids


async def _resolve(ctx: Context, names: Sequence[str]) -> list[ResolvedExerciseName]:
    """Return what names mean: the exercise with exactly this name, else what applications call so."""
    stock = {name: meant for name in names if (meant := stock_names().get(_stock_key(name))) is not None}
    english = [each for each in dict.fromkeys(stock.values()) if each != ASK]
    resolved = await name_resolution.resolve_names(ctx, [*names, *english])
    by_name = {each["name"]: each for each in resolved[len(names) :]}
    meant_names: list[ResolvedExerciseName] = []
    for each in resolved[: len(names)]:
        match, known = each["match"], stock.get(each["name"])
        if known is not None and (match is None or _stock_key(match["name"]) != _stock_key(each["name"])):
            others = [*([match] if match else []), *each["alternatives"]][:3]
            asked: ResolvedExerciseName = {**each, "match": None, "alternatives": others}
            meant_names.append(asked if known == ASK else {**by_name[known], "name": each["name"]})
        else:
            meant_names.append(each)
    return meant_names


@cache
def stock_names() -> Mapping[str, str]:
    """Return the names of exercises of applications in other languages: shared exercises by key, or `ask`."""
    rows = [row.split("|") for row in _STOCK_NAMES.read_text("utf-8").splitlines() if not row.startswith("#")]
    return {
        _stock_key(name): row[0].strip()
        for row in rows
        for names in row[1:]
        for name in names.split(";")
        if name.strip()
    }


def _stock_key(name: str) -> str:
    """Return a name without accents and signs: applications change these in their exports."""
    letters = unicodedata.normalize("NFKD", normalize(name))
    return " ".join(re.sub(r"[^\w\s]|_", lambda sign: "" if unicodedata.combining(sign[0]) else " ", letters).split())


def _exercises_in(answers: Iterable[NameAnswer]) -> list[ObjectId]:
    return [each for each in answers if isinstance(each, ObjectId)]


def _describe(
    resolved: ResolvedExerciseName,
    sets: int,
    answer: NameAnswer | None,
    names: Mapping[ObjectId, ExerciseName],
) -> NameInFile:
    match, alternatives, decision = resolved["match"], resolved["alternatives"], None
    candidates = [each for each in (match, *alternatives) if each is not None]
    others = sorted(candidates, key=lambda each: -each["score"])
    if isinstance(answer, ObjectId):
        known = next((each for each in others if each["_id"] == answer), None)
        match = known or {"_id": answer, "name": names[answer]["name"], "score": _SCORE_OF_ANSWER}
        alternatives = [each for each in others if each["_id"] != answer]
    elif answer is not None or match is None:
        decision = answer or CREATE
        match, alternatives = None, others
    else:
        alternatives = [each for each in others if each is not match]
    return {
        "name": resolved["name"],
        "sets": sets,
        "match": match,
        "alternatives": alternatives[:3],
        "answer": decision,
    }
