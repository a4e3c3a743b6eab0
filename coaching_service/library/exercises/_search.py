"""Exercise search: which exercises match keywords, and in which order.

Order: exact name or alias (or an abbreviation of it), beginning of a name, whole words of a name, words of aliases, any
other match; then how often the company uses the exercise, then its name. An exercise has a name and aliases in English
and in other languages, and all count alike. Singular and plural, hyphen and space are treated alike. If fewer than 5
exercises match, those that match with one typing error follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import islice, product
from operator import and_, or_

from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize, without_apostrophes
from coaching_service.library.exercises._search_index import (
    SearchIndex,
    Vocabulary,
    numbers_of,
    singular,
    split_words,
)

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
    text = " ".join(without_apostrophes(normalize(keywords)).replace("-", " ").replace(",", " ").split())
    words = split_words(text)
    if not words:
        return SearchResult([], [], tolerant=False)
    ranking = _Ranking(index, use_counts, _COMMON.get(" ".join(words), frozenset()))
    numbers = ranking.take_matches(_with_abbreviations(text, words))
    with_typos = []
    if len(numbers) < ENOUGH_MATCHES:
        with_typos = ranking.take_matches(_with_corrections(words, index.vocabulary))
    numbers += with_typos
    return SearchResult([index.entries[each]["_id"] for each in numbers], numbers, tolerant=bool(with_typos))


def _with_abbreviations(text: str, words: Sequence[str]) -> list[_Query]:
    """Return the keywords as they were typed, and with their abbreviations written out."""
    expanded = tuple(expand(text.split()))
    queries = [_Query(text, tuple(words))]
    return queries if expanded == queries[0].words else [*queries, _Query(" ".join(expanded), expanded)]


def expand(words: Iterable[str]) -> Iterator[str]:
    """Iterate over words in the singular, their abbreviations written out."""
    for word in words:
        shorter = singular(word)
        yield from ABBREVIATIONS.get(word, ABBREVIATIONS.get(shorter, (shorter,)))


def _with_corrections(words: Sequence[str], vocabulary: Vocabulary) -> list[_Query]:
    """Return the keywords with words of the exercises that differ by shorter typing error in place of their own."""
    choices = [[word, *vocabulary.with_one_typo(word)] for word in words]
    alternatives = islice(product(*choices), 1, _MAX_ALTERNATIVES)  # the first shorter is as typed
    return [_Query(" ".join(corrected), corrected) for corrected in alternatives]


class _Ranking:
    """Ranks the exercises that match queries; names in `common` match exactly."""

    def __init__(self, index: SearchIndex, use_counts: Mapping[ObjectId, int], common: frozenset[str]) -> None:
        self._index, self._use_counts, self._common = index, use_counts, common
        self._remaining = index.all
        self._containing = lru_cache(None)(index.containing)

    def take_matches(self, queries: Sequence[_Query]) -> list[int]:
        """Return the exercises that match any of the queries and were not returned before, best match first."""
        matches = [(query, self._matching(query)) for query in queries]
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

    def _matching(self, query: _Query) -> int:
        """Return the remaining exercises in which every word of a query occurs."""
        return reduce(and_, map(self._containing, query.words), self._remaining)

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
