"""Exercise search: which exercises match keywords, and in which order.

Order: exact name or alias (or an abbreviation of it), beginning of a name, whole words of a name, words of aliases, any
other match; then how often the company uses the exercise, then its name. An exercise has a name and aliases in English
and in other languages, and all count alike. Singular and plural, hyphen and space are treated alike. If fewer than 5
exercises match, those that match with one typing error follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise, product

from rapidfuzz import process
from rapidfuzz.distance import OSA

from coaching_service.core.ids import ObjectId
from coaching_service.core.text import normalize
from coaching_service.library.exercises.models import SearchEntry

ENOUGH_MATCHES = 5
_MIN_TYPO_LENGTH = 4
_APOSTROPHES = re.compile("['’‘ʼ´`]")
_EXACT, _NAME_PREFIX, _NAME_WORDS, _ALIAS_WORDS, _SUBSTRING = range(5)
_MAX_ALTERNATIVES = 64
_CACHED_TEXTS = 2048  # the shared library and a thousand exercises of companies
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
    "ab": ("abdominal",),
    "bi": ("bicep",),
    "delt": ("deltoid",),
    "hammie": ("hamstring",),
    "pec": ("chest",),
    "quad": ("quadricep",),
    "tri": ("tricep",),
}
# Which exercises a muscle's short name alone stands for, as an abbreviation of each.
_COMMON: Mapping[str, frozenset[str]] = {
    "ab": frozenset({"ab wheel rollout", "crunch", "hanging leg raise", "plank", "sit up"}),
    "delt": frozenset({"barbell overhead press", "dumbbell lateral raise", "face pull", "dumbbell rear delt fly"}),
    "hammie": frozenset({"lying leg curl", "nordic hamstring curl", "romanian deadlift", "stiff leg deadlift"}),
    "pec": frozenset({"barbell bench press", "cable fly", "dumbbell bench press", "dumbbell fly", "push up"}),
    "quad": frozenset(
        {"barbell back squat", "barbell front squat", "bulgarian split squat", "leg extension", "leg press"}
    ),
}


@dataclass(frozen=True)
class SearchResult:
    """The identifiers of the matching exercises in order; `tolerant` if some match only with a typing error."""

    ids: list[ObjectId]
    tolerant: bool


@dataclass(frozen=True)
class _Query:
    """One reading of the keywords: `text` without hyphens, as it was typed, and its words in the singular."""

    text: str
    words: tuple[str, ...]

    @property
    def joined(self) -> str:
        return "".join(self.words)


@dataclass(frozen=True)
class _Line:
    """A name or alias: its text, its words in the singular, and these also with each two successive ones as one."""

    text: str
    words: tuple[str, ...]
    joined: str
    whole_words: frozenset[str]

    @classmethod
    def of(cls, text: str) -> _Line:
        words = tuple(split_words(text))
        pairs = (first + second for first, second in pairwise(words))
        return cls(text, words, "".join(words), frozenset((*words, *pairs)))


def search(entries: Sequence[SearchEntry], keywords: str, use_counts: Mapping[ObjectId, int]) -> SearchResult:
    """Return the exercises that match `keywords`; `use_counts` states how often the company uses an exercise."""
    text = " ".join(without_apostrophes(normalize(keywords)).replace("-", " ").replace(",", " ").split())
    words = split_words(text)
    if not words:
        return SearchResult([], tolerant=False)
    common = _COMMON.get(" ".join(words), frozenset())
    ids = _rank_matches(entries, _with_abbreviations(text, words), use_counts, common)
    if len(ids) >= ENOUGH_MATCHES:
        return SearchResult(ids, tolerant=False)
    matched = set(ids)
    others = [entry for entry in entries if entry["_id"] not in matched]
    typo_ids = _rank_matches(others, _with_corrections(words, others), use_counts)
    return SearchResult(ids + typo_ids, tolerant=bool(typo_ids))


def without_apostrophes(text: str) -> str:
    """Return a text without apostrophes, straight or curly, so that farmer's walk and farmers walk are the same."""
    return _APOSTROPHES.sub("", text)


def split_words(text: str) -> list[str]:
    """Return the words of a normalized text in the singular; hyphens and commas separate words."""
    return [singular(word) for word in text.replace("-", " ").replace(",", " ").split()]


@lru_cache(8192)
def singular(word: str) -> str:
    """Return an English or Spanish word without its plural ending, if it has one."""
    if len(word) > 6 and word.endswith(("ones", "ales", "ores")):  # flexiones, laterales, abductores
        return word[:-2]
    if len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    if len(word) > 2 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _with_abbreviations(text: str, words: Sequence[str]) -> list[_Query]:
    """Return the keywords as they were typed, and with their abbreviations written out."""
    expanded = tuple(part for word in words for part in ABBREVIATIONS.get(word, (word,)))
    queries = [_Query(text, tuple(words))]
    return queries if expanded == queries[0].words else [*queries, _Query(" ".join(expanded), expanded)]


def _with_corrections(words: Sequence[str], entries: Iterable[SearchEntry]) -> list[_Query]:
    """Return the keywords with words of the entries that differ by one typing error in place of their own."""
    vocabulary = _vocabulary(entries)
    choices = [[word, *_similar_words(word, vocabulary)] for word in words]
    alternatives = islice(product(*choices), 1, _MAX_ALTERNATIVES)  # the first one is as typed
    return [_Query(" ".join(corrected), corrected) for corrected in alternatives]


def _vocabulary(entries: Iterable[SearchEntry]) -> list[str]:
    """Return the words of the entries in the singular; those with a hyphen also written as one (pullup)."""
    return sorted(frozenset().union(*(_vocabulary_of(entry["search"]) for entry in entries)))


@lru_cache(_CACHED_TEXTS)
def _vocabulary_of(text: str) -> frozenset[str]:
    words = {part for token in text.split() for part in (*token.split("-"), token.replace("-", ""))}
    return frozenset(map(singular, words))


def _similar_words(word: str, vocabulary: Sequence[str]) -> list[str]:
    if len(word) < _MIN_TYPO_LENGTH:
        return []
    similar = process.extract(word, vocabulary, scorer=OSA.distance, score_cutoff=1, limit=None)
    return [candidate for candidate, distance, _ in similar if distance == 1]


def _rank_matches(
    entries: Iterable[SearchEntry],
    queries: Sequence[_Query],
    use_counts: Mapping[ObjectId, int],
    common: frozenset[str] = frozenset(),
) -> list[ObjectId]:
    """Return the entries that match any of the queries, best match first; names in `common` match exactly."""
    ranked = []
    for entry in entries:
        text, joined = _spellings(entry["search"])
        ranks = [_rank(entry, text, query) for query in queries if _matches(text, joined, query)]
        if ranks:
            name = entry["search"].partition("\n")[0]
            rank = _EXACT if name.replace("-", " ") in common else min(ranks)
            ranked.append((rank, -use_counts.get(entry["_id"], 0), name, entry["_id"]))
    return [exercise_id for *_, exercise_id in sorted(ranked)]


@lru_cache(_CACHED_TEXTS)
def _spellings(search_text: str) -> tuple[str, str]:
    """Return a text without hyphens, and without spaces too."""
    text = search_text.replace("-", " ")
    return text, text.replace(" ", "")


def _matches(text: str, joined: str, query: _Query) -> bool:
    """Return whether every word of a query occurs in a text, possibly as two words of it (pushup in push up)."""
    missing = [word for word in query.words if word not in text]
    return all(word in joined and _starts_words(text, word) for word in missing)


def _starts_words(text: str, joined: str) -> bool:
    """Return whether `joined` is the beginning of two or more successive words of a line written as one."""
    for line in text.split("\n"):
        words = line.split()
        for start in range(len(words) - 1):
            if "".join(words[start:]).startswith(joined):
                return True
    return False


def _rank(entry: SearchEntry, text: str, query: _Query) -> int:
    """Return how well an entry matches a query, 0 for the best; `text` is what is searched of it, without hyphens."""
    lines = _name_lines(text, entry["names"] + entry["aliases"])
    if any(query.joined == line.joined for line in lines):
        return _EXACT
    names = lines[: entry["names"]]
    if any(line.text.startswith(query.text) or line.words[: len(query.words)] == query.words for line in names):
        return _NAME_PREFIX
    if any(line.whole_words.issuperset(query.words) for line in names):
        return _NAME_WORDS
    if frozenset().union(*(line.whole_words for line in lines)).issuperset(query.words):
        return _ALIAS_WORDS
    return _SUBSTRING


@lru_cache(_CACHED_TEXTS)
def _name_lines(text: str, count: int) -> tuple[_Line, ...]:
    """Return the first `count` lines of a text: the names and aliases of an exercise."""
    return tuple(map(_Line.of, text.split("\n", count)[:count]))
