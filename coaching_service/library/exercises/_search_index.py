"""An index of what is searched of exercises, so that a name costs as much with thousands of exercises as with few.

The words of all exercises are listed once, with the exercises that have them. Words that contain or resemble a word are
found by its trigrams: groups of three successive letters.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import accumulate, islice, pairwise, product
from operator import and_, itemgetter, or_
from typing import cast

from rapidfuzz.distance import OSA

from coaching_service.core.database.context import Context, gather_reads
from coaching_service.core.database.documents import Filter, Ownership
from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize, without_apostrophes, without_hidden
from coaching_service.library.exercises import store
from coaching_service.library.exercises.models import SearchEntry

MIN_TYPO_LENGTH = 4
_MIN_SHARED = 0.4  # of the trigrams of a word, in those that resemble it
_MAX_SIMILAR = 8
_COMMON_PARTS, _OWN_PARTS = 8, 8
_CACHED_TEXTS = 2048
_Key = tuple[ObjectId, str, int, int, bool, bool]  # the values of a SearchEntry
_FIELDS = ("_id", "search", "names", "aliases", "isOwn", "isCommon")
_key_of: Callable[[SearchEntry], _Key] = itemgetter(*_FIELDS)


@dataclass(frozen=True)
class Line:
    """A name or alias: its text, and its words in the singular: in order, as one, in alphabetical order, and each with
    each two successive ones as one."""

    text: str
    words: tuple[str, ...]
    joined: str
    sorted: str
    whole_words: frozenset[str]

    @classmethod
    def of(cls, text: str) -> Line:
        """Return the line that has this normalized text."""
        text = without_hidden(text)
        words = tuple(split_words(text))
        pairs = (first + second for first, second in pairwise(words))
        return cls(text, words, "".join(words), " ".join(sorted(words)), frozenset((*words, *pairs)))


class WordList:
    """Words, found by their trigrams."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = sorted(words)
        self._known = frozenset(self.words)
        self._by_trigram: defaultdict[str, list[int]] = defaultdict(list)
        for number, word in enumerate(self.words):
            for trigram in _trigrams(f"  {word} "):
                self._by_trigram[trigram].append(number)

    def __contains__(self, word: str) -> bool:
        return word in self._known

    def containing(self, text: str) -> list[str]:
        """Return the words that contain a text."""
        if not (trigrams := _trigrams(text)):
            return [word for word in self.words if text in word]
        numbers: Sequence[int] = min((self._by_trigram.get(each, ()) for each in trigrams), key=len)
        return [self.words[number] for number in numbers if text in self.words[number]]

    def with_one_typo(self, word: str) -> list[str]:
        """Return the words that differ from a word by one typing error, in alphabetical order."""
        if len(word) < MIN_TYPO_LENGTH:
            return []
        candidates = (self.words[number] for number in sorted(self._shared(word)))
        return [each for each in candidates if OSA.distance(word, each, score_cutoff=1) == 1]

    def resembling(self, word: str) -> list[str]:
        """Return the few words that share most trigrams with a word."""
        shared, needed = self._shared(word), _MIN_SHARED * len(_trigrams(f"  {word} "))
        return [self.words[number] for number, count in shared.most_common(_MAX_SIMILAR) if count >= needed]

    def _shared(self, word: str) -> Counter[int]:
        numbers: Counter[int] = Counter()
        for trigram in _trigrams(f"  {word} "):
            numbers.update(self._by_trigram.get(trigram, ()))
        return numbers


class IndexPart:
    """Exercises that are cached together, and which of them have which words."""

    def __init__(self, entries: Sequence[SearchEntry]) -> None:
        self.entries = entries
        self._lines: list[tuple[Line, ...] | None] = [None] * len(entries)
        with_word: defaultdict[str, int] = defaultdict(int)
        with_ending: defaultdict[str, list[int]] = defaultdict(list)
        for number, entry in enumerate(entries):
            bit = 1 << number
            for line in entry["search"].replace("-", " ").split("\n"):
                words = line.split()
                for start, word in enumerate(words):
                    with_word[word] |= bit
                    if start < len(words) - 1:
                        with_ending["".join(words[start:])].append(number)
        self._with_word: Mapping[str, int] = with_word
        self._with_ending: Mapping[str, list[int]] = with_ending
        self._endings = sorted(with_ending)
        self._words = WordList(with_word)

    @cached_property
    def vocabulary(self) -> WordList:
        """The words in the singular; those with a hyphen also written as one (pullup)."""
        tokens = {token for entry in self.entries for token in entry["search"].split()}
        parts = {part for token in tokens for part in (*token.split("-"), token.replace("-", ""))}
        return WordList(set(map(singular, parts)) - {""})

    @cached_property
    def by_joined_name(self) -> Mapping[str, list[int]]:
        """The exercises that have a name or alias, whose words are written as one."""
        numbers: defaultdict[str, list[int]] = defaultdict(list)
        for number in range(len(self.entries)):
            for line in self.lines(number):
                numbers[line.joined].append(number)
        return numbers

    def lines(self, number: int) -> tuple[Line, ...]:
        """Return the names and aliases of an exercise."""
        if (lines := self._lines[number]) is None:
            entry = self.entries[number]
            count = entry["names"] + entry["aliases"]
            lines = tuple(map(Line.of, entry["search"].replace("-", " ").split("\n", count)[:count]))
            self._lines[number] = lines
        return lines

    def other_words(self, number: int) -> frozenset[str]:
        """Return the words of the tags, muscles and equipment of an exercise, in the singular."""
        entry = self.entries[number]
        return _split_once("\n".join(entry["search"].split("\n")[entry["names"] + entry["aliases"] :]))

    def containing(self, word: str) -> int:
        """Return the exercises in which a word occurs, possibly as two words (pushup in push up)."""
        exercises = 0
        for each in self._words.containing(word):
            exercises |= self._with_word[each]
        for position in range(bisect_left(self._endings, word), len(self._endings)):
            if not self._endings[position].startswith(word):
                break
            for number in self._with_ending[self._endings[position]]:
                exercises |= 1 << number
        return exercises

    def resembling(self, word: str) -> int:
        """Return the exercises with a word that contains or resembles a word."""
        exercises = self.containing(word)
        for each in self._words.resembling(word):
            exercises |= self._with_word[each]
        return exercises


class SearchIndex:
    """The exercises that are searched, in parts that are cached separately.

    Sets of exercises are integers, with one bit for each exercise: combining thousands of them takes a microsecond.
    """

    def __init__(self, *parts: IndexPart) -> None:
        self._parts = parts
        self._starts = [*accumulate((len(part.entries) for part in parts), initial=0)]
        self.entries = [entry for part in parts for entry in part.entries]

    @property
    def all(self) -> int:
        """All exercises."""
        return (1 << len(self.entries)) - 1

    def has_word(self, word: str) -> bool:
        """Return whether any exercise has a word in the singular; those with a hyphen also written as one (pullup)."""
        return any(word in part.vocabulary for part in self._parts)

    def with_one_typo(self, word: str) -> list[str]:
        """Return the words that differ from a word by one typing error, in alphabetical order."""
        return sorted({similar for part in self._parts for similar in part.vocabulary.with_one_typo(word)})

    @property
    def joined_names(self) -> list[str]:
        """The names and aliases, their words written as one."""
        return [name for part in self._parts for name in part.by_joined_name]

    def named(self, joined: str) -> list[int]:
        """Return the exercises that have a name or alias, whose words are written as one."""
        return [
            start + number
            for start, part in zip(self._starts, self._parts, strict=False)
            for number in part.by_joined_name.get(joined, ())
        ]

    def lines(self, number: int) -> tuple[Line, ...]:
        """Return the names and aliases of an exercise."""
        part, number = self._locate(number)
        return part.lines(number)

    def other_words(self, number: int) -> frozenset[str]:
        """Return the words of the tags, muscles and equipment of an exercise, in the singular."""
        part, number = self._locate(number)
        return part.other_words(number)

    def containing(self, word: str) -> int:
        """Return the exercises in which a word occurs, possibly as two words (pushup in push up)."""
        return self._combine(part.containing(word) for part in self._parts)

    def resembling(self, word: str) -> int:
        """Return the exercises with a word that contains or resembles a word."""
        return self._combine(part.resembling(word) for part in self._parts)

    @staticmethod
    def with_most(sets: Iterable[int], enough: int) -> int:
        """Return the exercises that are in most of the sets; in fewer of them, until there are `enough`."""
        in_sets: list[int] = []  # those that are in at least one, two, ... of the sets
        for each in sets:
            in_sets.append(0)
            for count in range(len(in_sets) - 1, 0, -1):
                in_sets[count] |= in_sets[count - 1] & each
            in_sets[0] |= each
        return next((each for each in reversed(in_sets) if each.bit_count() >= enough), in_sets[0] if in_sets else 0)

    def _combine(self, sets: Iterable[int]) -> int:
        return sum(each << start for start, each in zip(self._starts, sets, strict=False))

    def _locate(self, number: int) -> tuple[IndexPart, int]:
        at = bisect_right(self._starts, number) - 1
        return self._parts[at], number - self._starts[at]


def numbers_of(exercises: int) -> Iterator[int]:
    """Iterate over the numbers of a set of exercises."""
    while exercises:
        lowest = exercises & -exercises
        yield lowest.bit_length() - 1
        exercises ^= lowest


@lru_cache(_CACHED_TEXTS)
def _split_once(text: str) -> frozenset[str]:
    return frozenset(split_words(text.replace("\n", " ")))


def index_of(entries: Sequence[SearchEntry]) -> SearchIndex:
    """Return the index of exercises.

    Its parts are cached while they stay the same: what all companies share, and what a company has of its own.
    """
    common = tuple(_key_of(each) for each in entries if each["isCommon"])
    own = tuple(_key_of(each) for each in entries if not each["isCommon"])
    return SearchIndex(_common_part(common), _own_part(own))


def _make_part(keys: Iterable[_Key]) -> IndexPart:
    return IndexPart([cast("SearchEntry", dict(zip(_FIELDS, key, strict=True))) for key in keys])


# The whole shared library and what a filter leaves of it; what companies have of their own.
_common_part: Callable[[tuple[_Key, ...]], IndexPart] = lru_cache(_COMMON_PARTS)(_make_part)
_own_part: Callable[[tuple[_Key, ...]], IndexPart] = lru_cache(_OWN_PARTS)(_make_part)


def split_words(text: str) -> list[str]:
    """Return the words of a normalized text in the singular; hyphens and commas separate words."""
    return [singular(word) for word in text.replace("-", " ").replace(",", " ").split()]


@lru_cache(8192)
def singular(word: str) -> str:
    """Return an English or Spanish word without its plural ending, if it has one."""
    if len(word) > 6 and word.endswith(("ones", "ales", "ores")):  # flexiones, laterales, abductores
        return word[:-2]
    if len(word) > 4 and word.endswith("ies"):  # flies, carries
        return f"{word[:-3]}y"
    if len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    if len(word) > 2 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _trigrams(text: str) -> set[str]:
    return {text[start : start + 3] for start in range(len(text) - 2)}


# --- What is searched of exercises, with the aliases that a company has added -----------------------------------------


async def load_index(ctx: Context, condition: Filter, ownership: Ownership) -> SearchIndex:
    """Return the index of the exercises that meet a condition, with the aliases that the company has added.

    What is not cached of it is made on a thread: other requests continue meanwhile.
    """
    fields = {
        "search": 1,
        "names": {"$ifNull": ["$searchNames", 1]},
        "aliases": {"$ifNull": ["$searchAliases", {"$size": "$aliases"}]},
        "isOwn": {"$ne": ["$companyId", None]},
        "isCommon": {"$eq": ["$companyId", None]},
    }
    hint = store.selecting_index(condition) or (store.BY_TYPE if "type" in condition else store.BY_NAME)
    where = {"deletedAt": None, **condition}
    stored, overrides = await gather_reads(
        ctx,
        store.exercises.aggregate(ctx, where, {"$project": fields}, hint=hint, ownership=ownership),
        store.overrides.find(ctx, {"aliases.0": {"$exists": True}}, fields=("exerciseId", "aliases")),
    )
    own_aliases = {each["exerciseId"]: each["aliases"] for each in overrides}
    entries: list[SearchEntry] = []
    entry: SearchEntry
    for entry in stored:
        text = entry["search"]
        if added := own_aliases.get(entry["_id"], []):
            lines, last = text.split("\n"), entry["names"] + entry["aliases"]
            text = "\n".join([*lines[:last], *map(normalize, added), *lines[last:]])
        is_common, aliases = entry["isCommon"] and not added, entry["aliases"] + len(added)
        entries.append({**entry, "search": without_apostrophes(text), "aliases": aliases, "isCommon": is_common})
    return index_of(entries) if ctx.thread is not None else await asyncio.to_thread(index_of, entries)


# --- Exercise search: which exercises match keywords, and in which order ----------------------------------------------
# Order: exact name or alias (or an abbreviation of it), beginning of a name, whole words of a name, words of aliases,
# any
# other match; then how often the company uses the exercise, then its name. An exercise has a name and aliases in
# English
# and in other languages, and all count alike. Singular and plural, hyphen and space are treated alike. If fewer than 5
# exercises match, those that match with one typing error follow.


ENOUGH_MATCHES = 5
_EXACT, _NAME_PREFIX, _NAME_WORDS, _ALIAS_WORDS, _SUBSTRING = range(5)
_MAX_ALTERNATIVES = 64
# Common abbreviations and short forms, with the words that they stand for.
ABBREVIATIONS: Mapping[str, tuple[str, ...]] = {
    "bb": ("barbell",),
    "bss": ("bulgarian", "split", "squat"),
    "bw": ("bodyweight",),
    "cgbp": ("close", "grip", "bench", "press"),
    "db": ("dumbbell",),
    "du": ("double", "under"),
    "ghr": ("glute", "ham", "raise"),
    "hspu": ("handstand", "push", "up"),
    "kb": ("kettlebell",),
    "mb": ("medicine", "ball"),
    "ohp": ("overhead", "press"),
    "ohs": ("overhead", "squat"),
    "rdl": ("romanian", "deadlift"),
    "sldl": ("stiff", "leg", "deadlift"),
    "tgu": ("turkish", "get", "up"),
    "ttb": ("toe", "to", "bar"),
    "t2b": ("toe", "to", "bar"),
    "alt": ("alternating",),
    "dl": ("deadlift",),
    "ext": ("extension",),
    "inc": ("incline",),
    "med": ("medicine",),
    "oh": ("overhead",),
    "sa": ("single", "arm"),
    "sl": ("single", "leg"),
    "ab": ("abdominal",),
    "bi": ("bicep",),
    "delt": ("deltoid",),
    "hammy": ("hamstring",),
    "pec": ("chest",),
    "quad": ("quadricep",),
    "tri": ("tricep",),
}
# Which exercises a muscle's short name alone stands for, as an abbreviation of each.
_COMMON: Mapping[str, frozenset[str]] = {
    "ab": frozenset({"ab wheel rollout", "crunch", "hanging leg raise", "plank", "sit up"}),
    "delt": frozenset({"barbell overhead press", "dumbbell lateral raise", "face pull", "dumbbell rear delt fly"}),
    "hammy": frozenset({"lying leg curl", "nordic hamstring curl", "romanian deadlift", "stiff leg deadlift"}),
    "pec": frozenset({"barbell bench press", "cable fly", "dumbbell bench press", "dumbbell fly", "push up"}),
    "quad": frozenset(
        {"barbell back squat", "barbell front squat", "bulgarian split squat", "leg extension", "leg press"}
    ),
}


@dataclass(frozen=True)
class SearchResult:
    """The matching exercises in order, and their numbers; `tolerant` if some match only with a typing error."""

    ids: list[ObjectId]
    numbers: list[int]
    tolerant: bool


@dataclass(frozen=True)
class _Query:
    """One reading of the keywords: `text` without hyphens, as it was typed, and its words in the singular."""

    text: str
    words: tuple[str, ...]

    @property
    def joined(self) -> str:
        return "".join(self.words)


def search(index: SearchIndex, keywords: str, use_counts: Mapping[ObjectId, int]) -> SearchResult:
    """Return the exercises that match `keywords`; `use_counts` states how often the company uses an exercise."""
    text = " ".join(
        without_apostrophes(normalize(without_hidden(keywords))).replace("-", " ").replace(",", " ").split()
    )
    if not (words := split_words(text)):
        return SearchResult([], [], tolerant=False)
    ranking = _Ranking(index, use_counts, _COMMON.get(" ".join(words), frozenset()))
    expanded = tuple(expand(text.split()))
    queries = [_Query(text, tuple(words))]  # as they were typed, and with their abbreviations written out
    numbers = ranking.take_matches(
        queries if expanded == queries[0].words else [*queries, _Query(" ".join(expanded), expanded)]
    )
    with_typos = []
    if len(numbers) < ENOUGH_MATCHES:
        choices = [[word, *index.with_one_typo(word)] for word in words]
        alternatives = islice(product(*choices), 1, _MAX_ALTERNATIVES)  # the first one is as typed
        with_typos = ranking.take_matches([_Query(" ".join(corrected), corrected) for corrected in alternatives])
    numbers += with_typos
    return SearchResult([index.entries[each]["_id"] for each in numbers], numbers, tolerant=bool(with_typos))


def expand(words: Iterable[str]) -> Iterator[str]:
    """Iterate over words in the singular, their abbreviations written out."""
    for word in words:
        shorter = singular(word)
        yield from ABBREVIATIONS.get(word, ABBREVIATIONS.get(shorter, (shorter,)))


class _Ranking:
    """Ranks the exercises that match queries; names in `common` match exactly."""

    def __init__(self, index: SearchIndex, use_counts: Mapping[ObjectId, int], common: frozenset[str]) -> None:
        self._index, self._use_counts, self._common = index, use_counts, common
        self._remaining = index.all
        self._containing = lru_cache(None)(index.containing)

    def take_matches(self, queries: Sequence[_Query]) -> list[int]:
        """Return the exercises that match any of the queries and were not returned before, best match first."""
        # The remaining exercises in which every word of a query occurs.
        matches = [(each, reduce(and_, map(self._containing, each.words), self._remaining)) for each in queries]
        matching = reduce(or_, (each for _, each in matches), 0)
        ranked = []
        for number in numbers_of(matching):
            entry = self._index.entries[number]
            name = entry["search"].partition("\n")[0]
            if name.replace("-", " ") in self._common:
                rank = _EXACT
            else:
                rank = min(self._rank(number, query) for query, each in matches if each >> number & 1)
            ranked.append((rank, -self._use_counts.get(entry["_id"], 0), name, entry["_id"], number))
        self._remaining &= ~matching
        return [number for *_, number in sorted(ranked)]

    def _rank(self, number: int, query: _Query) -> int:
        """Return how well an exercise matches a query, 0 for the best."""
        lines = self._index.lines(number)
        if any(query.joined == line.joined for line in lines):
            return _EXACT
        names = lines[: self._index.entries[number]["names"]]
        if any(line.text.startswith(query.text) or line.words[: len(query.words)] == query.words for line in names):
            return _NAME_PREFIX
        if any(line.whole_words.issuperset(query.words) for line in names):
            return _NAME_WORDS
        if frozenset().union(*(line.whole_words for line in lines)).issuperset(query.words):
            return _ALIAS_WORDS
        return _SUBSTRING
