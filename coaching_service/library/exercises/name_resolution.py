"""Which exercises names mean, in English and Spanish.

A name means, in this order: the exercise that has exactly this name, in any order of its words; the one that has it as
an alias, unless one on the client's calendar has all its words; the only one there that has them; and the only one of
the library, where one that differs only by typing errors and its equipment comes first. Where several do, it means
none. One word of a name, or some of an alias, mean only what is on the calendar. Words of muscles and tags name no
exercise. Leg curl and biceps curl resemble each other, and so do 45 and 30 degrees, but mean other exercises: numbers
and units have to be the same, and no part of the body may be missing.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property, lru_cache, reduce
from itertools import islice, pairwise
from operator import and_, or_
from typing import Annotated, TypedDict, cast

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from coaching_service.core.database.context import Context, Unprepared, gather_reads
from coaching_service.core.fields import Description
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize, without_apostrophes, without_hidden
from coaching_service.core.validation import ListOf, Text
from coaching_service.library.exercises import _search_index, service, store
from coaching_service.library.exercises._search_index import ABBREVIATIONS, SearchIndex, singular, split_words
from coaching_service.library.exercises.models import MUSCLE_IDS, MUSCLES, MuscleRole

# --- The words of exercise names that tell exercises apart: parts of the body, and numbers with their units -----------


_PUNCTUATION = re.compile(r"[^\w\s-]|_")
_DEGREES = re.compile("[°º˚]")
_NUMBER = re.compile(r"(?<![a-z0-9])(\d+(?:[.,]\d+)?)(?:[\s-]*([a-z]+|%))?")
# Words that may be left out of a name.
_FILLERS = "a an and at for from in of on the to w with al con de del el en la para por un una y"
FILLERS = frozenset(_FILLERS.split())
# The equipment of exercises, which their names may have or not.
_EQUIPMENT = "ball band bar barbell bodyweight bw cable dumbbell ez kettlebell machine plate resistance smith weight"
EQUIPMENT = frozenset(_EQUIPMENT.split())
_ONE_LIMB = re.compile(r"\b(?:1|one)[\s-]*(?=(?:arm|leg)\b)")
_UNITS: Mapping[str, str] = {
    spelling: unit
    for unit, spellings in {
        "centimeter": "cm centimeter centimetre centimetro",
        "degree": "deg degree grado",
        "foot": "ft foot feet pie",
        "inch": "in inch inche pulgada",
        "kilogram": "kg kilo kilogram kilogramo",
        "kilometer": "km kilometer kilometre kilometro",
        "meter": "m meter metre metro",
        "minute": "min minute minuto",
        "percent": "% percent",
        "pound": "lb pound libra",
        "second": "s sec second segundo",
    }.items()
    for spelling in spellings.split()
}
# Other words for the same part of the body, in the singular, in English and Spanish.
_SAME_PARTS = (
    *("ab abdominal abdomen", "abduction abductor abduccion", "adduction adductor aduccion aductor", "ankle tobillo"),
    *(
        "arm brazo",
        "back espalda",
        "bicep bi",
        "calf calve gemelo pantorrilla gastrocnemius",
        "chest pec pecho pectoral",
    ),
    *("delt deltoid deltoide", "elbow codo", "finger", "foot feet pie", "forearm antebrazo", "glute gluteo butt"),
    *("groin ingle", "hamstring ham hammy isquio isquiotibial femoral", "hand mano", "head cabeza", "heel talon"),
    *("hip cadera", "knee rodilla", "lat latissimu dorsal", "leg pierna", "lumbar lumbare", "neck cuello cervical"),
    *("oblique oblicuo", "palm palma", "piriformis piriforme", "psoa", "quad quadricep cuadricep", "rhomboid romboide"),
    *("scap scapulae scapular escapula escapular", "serratus serrato", "shin espinilla", "shoulder hombro"),
    *("soleus soleo", "spine spinal columna", "tfl", "thigh muslo", "thoracic toracica", "tib tibialis tibial"),
    *("toe", "trap trapezius trapecio", "tricep tri", "vmo vasto", "wrist muneca"),
)
# Other words for the same, which are no part of the body.
_SAME_WORDS = ("band banded", "fly flye", "leg legged", "pause paused")
_OF_MUSCLES = {word for name in MUSCLES for word in split_words(normalize(name))}
_NOT_PARTS = {"front", "side", "rear", "upper", "lower", "dorsi", "anterior"}  # words of muscles that name no part
# Words in the singular that name a part of the body or a muscle.
_PARTS = (_OF_MUSCLES - _NOT_PARTS) | {word for words in _SAME_PARTS for word in words.split()}
_SPELLINGS: Mapping[str, Sequence[str]] = {
    word: words.split() for words in (*_SAME_PARTS, *_SAME_WORDS) for word in words.split()
}


@dataclass(frozen=True)
class NameWords:
    """The words of a name without its numbers, as they are and in the singular; `units` has those of numbers."""

    raw: tuple[str, ...]
    typed: tuple[str, ...]
    numbers: Counter[str]
    units: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, name: str) -> NameWords:
        """Return the words of a name as a person writes it, or of a normalized one."""
        seen = without_apostrophes(without_hidden(name))
        text = _ONE_LIMB.sub("single ", normalize(_DEGREES.sub(" degrees ", seen)))
        numbers: Counter[str] = Counter()
        units: dict[str, frozenset[str]] = {}

        def take_number(match: re.Match[str]) -> str:
            number, word = match[1].replace(",", "."), match[2]
            unit = _UNITS.get(split_words(word)[0]) if word else None
            numbers[number] += 1
            if unit is not None:
                units[number] = units.get(number, frozenset()) | {unit}
            return " " if unit is not None or not word else f" {word}"

        words = _PUNCTUATION.sub(" ", _NUMBER.sub(take_number, text)).replace("-", " ").split()
        return cls(tuple(words), tuple(map(singular, words)), numbers, units)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words, with one spelling for each part of the body: calf for calves and gemelos."""
        return tuple(one_spelling(word) for word in self.typed)

    @cached_property
    def all_words(self) -> tuple[str, ...]:
        """The words, and after them the numbers with their units."""
        return (*self.words, *self.measures)

    @cached_property
    def measures(self) -> tuple[str, ...]:
        """The numbers, and after them their units."""
        units = (unit for number in sorted(self.units) for unit in sorted(self.units[number]))
        return (*sorted(self.numbers.elements()), *units)

    @cached_property
    def parts(self) -> frozenset[str]:
        """The parts of the body that the words name."""
        return frozenset(self.words) & _PARTS

    def has_same_numbers(self, other: NameWords) -> bool:
        """Return whether both have the same numbers, and the same units where both have one."""
        return self.numbers == other.numbers and all(
            self.units[number] == other.units[number] for number in self.units.keys() & other.units.keys()
        )


def one_spelling(word: str) -> str:
    """Return a word in the spelling in which it is compared: calf for calves and gemelo, band for banded."""
    return _SPELLINGS.get(word, (word,))[0]


# --- Comparing names --------------------------------------------------------------------------------------------------


MAX_NAME_LENGTH = 80  # longer names mean only the exercise that has exactly this name
MAX_ALTERNATIVES = 3
_MIN_SCORE_OF_ALTERNATIVE, _MIN_SCORE_OF_SIMILAR = 40.0, 60.0
_MAX_FOUND, _MAX_COMPARED, _MAX_SCORED = 12, 300, 12
_SAME_MOVEMENT, _OTHER_PART = 10.0, 10.0  # in points of the score
EXACT_SCORE, _MAX_OTHER_SCORE = 100.0, 99.9
_CACHED_NAMES = 8192


class Fit(IntEnum):
    """How the words of a name are those of an exercise, the best first.

    `TYPED`: exactly. `SAME`: in another order, or but for small words such as "with". `NEAR`: but for typing errors and
    the equipment of the exercise. `WORDS`: the exercise has more. `UNSURE`: among these is a part of the body, or there
    are typing errors too. `OTHER`: the exercise does not have all words of the name.
    """

    TYPED, SAME, NEAR, WORDS, UNSURE, OTHER = range(6)


@dataclass(frozen=True)
class Candidate:
    """An exercise that a name may mean; `score` from 0 to 100 states how much its name or an alias resembles it.

    `name_fit` is of its name (in each language), `fit` of the best of its name and aliases.
    """

    exercise_id: ObjectId
    score: float
    fit: Fit
    name_fit: Fit
    is_own: bool
    name: str


@dataclass(frozen=True)
class Resolution:
    """The exercise that a name means, or None if that is not sure, and others that it may mean, the best first."""

    match: Candidate | None
    alternatives: list[Candidate]


@dataclass(frozen=True)
class _Name:
    """A name that a person has written: as typed, and with its abbreviations written out."""

    text: str
    spellings: tuple[NameWords, ...]

    @classmethod
    def of(cls, name: str) -> _Name:
        typed = NameWords.of(name)
        expanded = tuple(_search_index.expand(typed.raw))
        spellings = (typed,) if expanded == typed.typed else (typed, replace(typed, typed=expanded))
        return cls(" ".join((*typed.typed, *typed.measures)), spellings)


def resolve_name(
    index: SearchIndex,
    text: str,
    use_counts: Mapping[ObjectId, int],
    known: Collection[int] = (),
    *,
    loosely: bool = False,
) -> Resolution:
    """Return what a name means among the exercises; `use_counts` states how often the company uses an exercise.

    `known` are the numbers in the index of the exercises on the client's calendar. `loosely`: the name is of one of
    these, so they come before the rest of the library. Of several exercises with one name, it means the company's own.
    """
    name = _Name.of(text)
    if not name.text:
        return Resolution(None, [])
    if len(text) > MAX_NAME_LENGTH:
        joined = _search_index.Line.of(without_apostrophes(normalize(text)).replace("-", " ")).joined
        exact = [_compare(index, number, name) for number in index.named(joined)]
        return Resolution(_choose([each for each in exact if each.fit <= Fit.SAME]), [])
    found = _search_index.search(index, name.text, use_counts).numbers[:_MAX_FOUND]
    numbers = dict.fromkeys([*found, *islice(_find_with_words(index, name), _MAX_COMPARED), *known])
    compared = [each for number in numbers if (each := _compare(index, number, name)).fit < Fit.OTHER]
    known_ids = {index.entries[number]["_id"] for number in known}
    planned = [each for each in compared if each.exercise_id in known_ids]
    match, candidates = _decide(compared, planned, is_one_word=len(name.spellings[-1].typed) == 1, loosely=loosely)
    ranked = [*candidates]
    if len(ranked) <= MAX_ALTERNATIVES and match is None:
        ranked += _find_similar(index, name)
    listed = dict.fromkeys(
        each.exercise_id for each in ranked if match is None or each.exercise_id != match.exercise_id
    )
    by_id = {each.exercise_id: each for each in ranked if each.score >= _MIN_SCORE_OF_ALTERNATIVE}
    return Resolution(match, [by_id[each] for each in listed if each in by_id][:MAX_ALTERNATIVES])


def _decide(
    compared: Sequence[Candidate], planned: Sequence[Candidate], *, is_one_word: bool, loosely: bool
) -> tuple[Candidate | None, Sequence[Candidate]]:
    """Return the exercise that a name means, if any, and those that it may mean."""
    if loosely and planned:
        usable = [each for each in planned if each.fit <= Fit.SAME] or planned
        return _choose(_alike(usable)), planned
    if named := [each for each in compared if each.name_fit <= Fit.SAME]:
        return _choose(named), compared
    planned = [each for each in planned if each.fit <= Fit.WORDS]
    if named := [each for each in compared if each.fit <= Fit.SAME]:
        meant = planned
        if any(each.name_fit == Fit.NEAR for each in named):
            # Deadlift is the Barbell Deadlift without its equipment: a Romanian Deadlift is another movement.
            meant = [each for each in planned if each.is_own or each.fit <= Fit.NEAR]
        # Without one of these, two on the calendar are a question: Curl, of a client with two other curls.
        named = [each for each in named if each in planned] or meant or (named if len(planned) < 2 else [])
        return _choose(named), [*(named or planned), *compared]
    usable = planned or [each for each in compared if each.fit <= Fit.WORDS]
    if is_one_word:  # several have it and only differ in more than their equipment: press, curl
        usable = _alike(usable)
    match = _choose(usable)
    # Beyond the calendar, a part of an alias means nothing, nor does one word that is only a part of a name.
    if match is not None and not planned and match.fit > Fit.NEAR:
        match = match if match.name_fit <= (Fit.NEAR if is_one_word else Fit.UNSURE) else None
    return match, [*planned, *compared]


def _alike(candidates: Iterable[Candidate]) -> list[Candidate]:
    return [each if each.fit <= Fit.SAME else replace(each, fit=Fit.WORDS) for each in candidates]


def _choose(candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the only candidate that fits best, or the own one of several with one name; None for several."""
    best = min((each.fit for each in candidates), default=None)
    fitting = [each for each in candidates if each.fit == best]
    if len(fitting) > 1 and len({each.name for each in fitting if each.is_own} | {fitting[0].name}) == 1:
        fitting = [each for each in fitting if each.is_own]
    return fitting[0] if len(fitting) == 1 else None


def _find_with_words(index: SearchIndex, name: _Name) -> Iterable[int]:
    """Return the numbers of the exercises that may have all words of a name."""

    def find(word: str) -> int:
        words = {*_SPELLINGS.get(word, (word,))} | ({*index.with_one_typo(word)} if not word.isdigit() else set())
        return reduce(or_, map(index.containing, words), 0)

    matching = 0
    for spelling in name.spellings:
        words = [word for word in spelling.typed if word not in FILLERS] or spelling.typed
        matching |= reduce(and_, map(find, (*words, *spelling.numbers)), index.all)
    return _search_index.numbers_of(matching)


def _find_similar(index: SearchIndex, name: _Name) -> list[Candidate]:
    """Return exercises with names that resemble a name, the best first.

    The last word, such as curl or press, counts more than others, and so does a part of the body that was not named.
    """
    words = {word for spelling in name.spellings for word in (*spelling.typed, *spelling.measures)}
    numbers = [
        *islice(_search_index.numbers_of(index.with_most(map(index.resembling, words), _MAX_SCORED)), _MAX_COMPARED)
    ]
    if numbers:
        lines = {(number, at): line.sorted for number in numbers for at, line in enumerate(index.lines(number))}
        targets = {" ".join(sorted(spelling.all_words)) for spelling in name.spellings}
        near = [
            each for target in targets for each in process.extract(target, lines, scorer=fuzz.ratio, limit=_MAX_SCORED)
        ]
        scored = {number for _, _, (number, _) in near}
    else:  # perhaps a typing error in words that are written as one
        joined = process.extract(
            "".join(name.spellings[0].typed),
            index.joined_names,
            scorer=fuzz.ratio,
            score_cutoff=_MIN_SCORE_OF_SIMILAR,
            limit=_MAX_SCORED,
        )
        scored = {number for each, _, _ in joined for number in index.named(each)}
    candidates = [_compare(index, number, name) for number in scored]
    similar = [each for each in candidates if each.score >= _MIN_SCORE_OF_SIMILAR]
    parts = {part for spelling in name.spellings for part in spelling.parts}
    last_words = {spelling.words[-1] for spelling in name.spellings if spelling.words}

    def rank(candidate: Candidate) -> tuple[float, str]:
        written = _name_words_of(candidate.name)
        bonus = 0 if last_words.isdisjoint(written.words) else _SAME_MOVEMENT
        return (_OTHER_PART if written.parts - parts else 0) - bonus - candidate.score, candidate.name

    return sorted(similar, key=rank)


def _compare(index: SearchIndex, number: int, name: _Name) -> Candidate:
    """Compare an exercise with a name: the best of its names and aliases counts."""
    entry, lines = index.entries[number], index.lines(number)
    equipment = {one_spelling(word) for word in index.other_words(number)} & EQUIPMENT
    fits, score = [], 0.0
    for line in lines:
        written = _name_words_of(line.text)
        fits.append(min(_fit(each, written, equipment, index) for each in name.spellings))
        for spelling in name.spellings:
            words = [word for word in spelling.all_words if word in written.all_words or word not in equipment]
            spaced = sorted(_join_like(words, written.all_words)), sorted(_join_like(written.all_words, words))
            sorted_ratio = fuzz.ratio(" ".join(spaced[0]), " ".join(spaced[1]))
            score = max(score, round(max(sorted_ratio, fuzz.ratio("".join(words), "".join(written.all_words))), 1))
    fit = min(fits)
    score = EXACT_SCORE if fit <= Fit.SAME else min(score, _MAX_OTHER_SCORE)
    return Candidate(entry["_id"], score, fit, min(fits[: entry["names"]]), entry["isOwn"], lines[0].text)


def _fit(name: NameWords, written: NameWords, equipment: Collection[str], index: SearchIndex) -> Fit:
    """Return how a name fits a name or alias of an exercise; hyphens and spaces within words are left out."""
    if not name.has_same_numbers(written):
        return Fit.OTHER
    missing, added = Counter(written.words), Counter(name.words)
    missing.subtract(name.words)
    added.subtract(written.words)
    _remove_joined(missing, added, written.words)
    _remove_joined(added, missing, name.words)
    if name.typed != written.typed and name.words and _PARTS.issuperset(name.words):
        return Fit.UNSURE if {*name.words} <= {*written.words} else Fit.OTHER  # biceps is no biceps curl
    if name.words == written.words:
        return Fit.TYPED
    unlike = [word for word in (+added).elements() if word not in FILLERS]
    typos = {word: same for word in unlike for same in +missing if _is_typo(word, same, index)}
    missing.subtract(typos.values())
    if any(word not in typos and word not in equipment for word in unlike):
        return Fit.OTHER
    if len(name.words) - (+added).total() + len(typos) <= 0:
        return Fit.OTHER
    extra = {word for word in +missing if word not in FILLERS or len(word) == 1}  # the A-Skip is no other skip
    if not _PARTS.isdisjoint(extra) or (extra and typos):
        return Fit.UNSURE
    if extra - set(equipment):
        return Fit.WORDS
    return Fit.NEAR if extra or unlike else Fit.SAME


_name_words_of = lru_cache(_CACHED_NAMES)(NameWords.of)


def _join_like(words: Sequence[str], other: Collection[str]) -> list[str]:
    """Return the words, with successive ones as one word where the other name writes them so (skull crusher)."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] + word in other:
            joined[-1] += word
        else:
            joined.append(word)
    return joined


def _remove_joined(separate: Counter[str], joined: Counter[str], words: Sequence[str]) -> None:
    """Remove successive words that the other name writes as one (push up and pushup)."""
    for first, second in pairwise(words):
        if joined[first + second] > 0 and separate[first] > 0 and separate[second] > 0:
            joined[first + second] -= 1
            separate.subtract((first, second))


def _is_typo(word: str, other: str, index: SearchIndex) -> bool:
    """Return whether a word that is in no exercise is another one with one typing error."""
    if word in _PARTS or index.has_word(word):
        return False
    spellings = (word, f"{word}s")  # as typed, perhaps: its ending was taken for a plural
    return any(
        len(each) >= _search_index.MIN_TYPO_LENGTH and OSA.distance(each, other, score_cutoff=1) <= 1
        for each in spellings
    )


# --- What names mean, as it is asked for and returned -----------------------------------------------------------------


class ExerciseNames(TypedDict):
    """Names of exercises, as people write them."""

    names: Annotated[
        list[str],
        ListOf(Text(max_length=MAX_NAME_LENGTH), minimum=1, maximum=50),
        Description("1 to 50 names or abbreviations, each of at most 80 characters."),
    ]


class ExerciseMatch(TypedDict):
    """An exercise that a name may mean."""

    _id: ObjectId
    name: str
    score: Annotated[
        float, Description("How much the name or an alias of the exercise resembles the name sent: 0 to 100.")
    ]


class ResolvedExerciseName(TypedDict):
    """The exercise that a name means."""

    name: Annotated[str, Description("The name as it was sent.")]
    match: Annotated[
        ExerciseMatch | None,
        Description(
            "null if no exercise is meant for sure: with exactly this name, in any order of its words, or else this "
            "alias, or else as the only one with all its words and numbers."
        ),
    ]
    alternatives: Annotated[list[ExerciseMatch], Description("Up to three other exercises, the best first.")]


class ResolvedExerciseNames(TypedDict):
    """What names mean, in the order of the request."""

    results: Annotated[list[ResolvedExerciseName], Description("One result for each name.")]


# --- Which exercises of a company names mean --------------------------------------------------------------------------


@dataclass(frozen=True)
class KnownExercises:
    """The exercises of a client or workout, which `load` returns: names mean these first (see `resolve_known`)."""

    owner_id: ObjectId
    load: Callable[[Context], Awaitable[Collection[ObjectId]]]
    loosely: bool

    def key(self, name: str) -> str:
        """Return what the meaning of a name is remembered by."""
        return f"{self.owner_id} {self.loosely} {name}"


async def resolve_names(
    ctx: Context, names: Sequence[str], known: KnownExercises | None = None
) -> list[ResolvedExerciseName]:
    """Return what names of exercises mean, in the same order, first among `known` exercises.

    A transaction ends, and is repeated when they are resolved (see Unprepared): it holds nothing meanwhile.
    """
    if not names:
        return []
    if ctx.session is None:
        return await _resolve(ctx, names, known)
    keys = [name if known is None else known.key(name) for name in names]
    if missing := {key: name for key, name in zip(keys, names, strict=True) if key not in ctx.resolved}:
        raise Unprepared(lambda outside: _prepare(outside, missing, known))
    return [cast("ResolvedExerciseName", ctx.resolved[key]) for key in keys]


def is_exact(about: ResolvedExerciseName) -> bool:
    """Return whether a name is the name or an alias of the exercise that it means."""
    return about["match"] is not None and about["match"]["score"] == EXACT_SCORE


async def _prepare(ctx: Context, names: Mapping[str, str], known: KnownExercises | None) -> None:
    ctx.resolved.update(zip(names, await _resolve(ctx, [*names.values()], known), strict=True))


async def _resolve(ctx: Context, names: Sequence[str], known: KnownExercises | None) -> list[ResolvedExerciseName]:
    index, use_counts = await gather_reads(ctx, _search_index.load_index(ctx, {}, "all"), service.load_use_counts(ctx))
    known_ids = frozenset(await known.load(ctx)) if known is not None else frozenset()

    def resolve_each() -> list[Resolution]:
        numbers = [number for number, entry in enumerate(index.entries) if entry["_id"] in known_ids]
        loosely = known is not None and known.loosely
        return [resolve_name(index, name, use_counts, numbers, loosely=loosely) for name in names]

    # A millisecond for each name: in a thread, other requests continue meanwhile.
    resolutions = resolve_each() if ctx.thread is not None else await asyncio.to_thread(resolve_each)
    candidates = [each for resolution in resolutions for each in (resolution.match, *resolution.alternatives) if each]
    names_by_id = await service.get_names(ctx, [candidate.exercise_id for candidate in candidates])

    def describe(candidate: Candidate) -> ExerciseMatch:
        exercise = names_by_id[candidate.exercise_id]
        return {"_id": exercise["_id"], "name": exercise["name"], "score": candidate.score}

    return [
        {
            "name": name,
            "match": describe(resolution.match) if resolution.match else None,
            "alternatives": [describe(candidate) for candidate in resolution.alternatives],
        }
        for name, resolution in zip(names, resolutions, strict=True)
    ]


async def find_deleted_names(ctx: Context, names: Sequence[str]) -> dict[str, list[str]]:
    """Return, for each of `names`, the company's own exercises that were deleted and have all its words.

    At most 1,000 deleted ones are compared.
    """
    if not names:
        return {}
    where = {"deletedAt": {"$ne": None}}
    found = await store.exercises.find(ctx, where, fields=("name",), limit=1_000, ownership="own", hint=store.BY_NAME)
    deleted = {each["name"]: _words_of(each["name"]) for each in found}
    return {name: [each for each, words in deleted.items() if _words_of(name) <= words] for name in names}


def _words_of(name: str) -> set[str]:
    return set(normalize(without_apostrophes(name)).split())


# --- The muscles that the name of an exercise says it trains, in English and Spanish ----------------------------------


# Words of names (several spellings of the same separated by a semicolon), and the muscles: the first one does most of
# the work. The first line of whose words all are in a name counts, so that a leg curl is no biceps curl.
_MUSCLES_BY_WORDS: tuple[tuple[str, str], ...] = (
    ("leg curl; hamstring curl; nordic; curl femoral; curl pierna", "Hamstrings"),
    ("wrist; forearm; reverse curl; farmer; muneca", "Forearms"),
    ("hammer curl; curl martillo", "Biceps, Forearms"),
    ("leg extension; quad extension; extension pierna; extension cuadricep", "Quadriceps"),
    ("back extension; hyperextension; superman; extension lumbar", "Lower Back, Glutes, Hamstrings"),
    ("hip thrust; glute bridge; kickback glute; puente gluteo; empuje cadera", "Glutes, Hamstrings"),
    ("triceps kickback; tricep", "Triceps"),
    ("tibialis", "Tibialis Anterior"),
    ("calf", "Calves"),
    ("adductor", "Adductors"),
    ("abductor; clamshell", "Abductors, Glutes"),
    ("leg press; prensa", "Quadriceps, Glutes"),
    ("leg raise; knee raise; toe to bar; elevacion pierna; elevacion rodilla", "Abdominals, Hip Flexors"),
    ("lateral raise; side raise; elevacion lateral", "Side Deltoids"),
    ("front raise; elevacion frontal", "Front Deltoids"),
    ("rear delt; reverse fly; rear fly; face pull; pajaro", "Rear Deltoids, Upper Back"),
    ("rotator cuff; external rotation; internal rotation; rotacion externa; rotacion interna", "Rotator Cuff"),
    ("close grip bench", "Triceps, Chest"),
    ("overhead press; shoulder press; military press; arnold; press militar; press hombro", "Front Deltoids, Triceps"),
    ("upright row", "Side Deltoids, Trapezius"),
    ("bench press; floor press; chest press; press banca; press plano", "Chest, Triceps, Front Deltoids"),
    ("push up; pushup; flexion pecho; flexion brazo", "Chest, Triceps"),
    ("skull crusher; skullcrusher; pushdown; pressdown; french press; press frances", "Triceps"),
    ("dip; fondo", "Triceps, Chest"),
    ("fly; flye; pec deck; crossover; apertura; chest", "Chest"),
    ("pull up; pullup; chin up; chinup; dominada", "Latissimus Dorsi, Biceps"),
    ("pulldown; pull down; pullover; lat; jalon", "Latissimus Dorsi"),
    ("shrug; trap; encogimiento", "Trapezius"),
    ("row; remo; upper back", "Upper Back, Latissimus Dorsi, Biceps"),
    ("split squat; lunge; step up; zancada; estocada", "Quadriceps, Glutes"),
    ("squat; sentadilla", "Quadriceps, Glutes"),
    ("romanian; stiff leg; straight leg; good morning; rumano", "Hamstrings, Glutes"),
    ("deadlift; peso muerto; rack pull", "Glutes, Hamstrings, Lower Back"),
    ("kettlebell swing", "Glutes, Hamstrings"),
    ("twist; oblique; side bend; woodchop; wood chop; pallof; side plank", "Obliques, Abdominals"),
    ("crunch; sit up; situp; plank; plancha; ab; rollout; hollow; dead bug", "Abdominals"),
    ("curl; bicep", "Biceps"),
    ("hamstring", "Hamstrings"),
    ("quad", "Quadriceps"),
    ("glute", "Glutes"),
    ("shoulder; delt", "Front Deltoids"),
    ("neck", "Neck"),
    ("back", "Upper Back"),
)


def _words_in(text: str) -> frozenset[str]:
    words = split_words(normalize(without_apostrophes(text)).replace("(", " ").replace(")", " "))
    return frozenset(one_spelling(part) for word in words for part in (word, *ABBREVIATIONS.get(word, ())))


_RULES = tuple(
    ([_words_in(words) for words in line.split("; ")], names.split(", ")) for line, names in _MUSCLES_BY_WORDS
)


def muscles_in_name(name: str) -> list[MuscleRole]:
    """Return the muscles that a name says its exercise trains; none if it does not say it."""
    words = _words_in(name)
    for spellings, muscles in _RULES:
        if any(each <= words for each in spellings):
            return [
                {"_id": MUSCLE_IDS[muscle], "role": "secondary" if index else "primary"}
                for index, muscle in enumerate(muscles)
            ]
    return []
