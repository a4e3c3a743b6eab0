"""The words of exercise names that tell exercises apart: parts of the body, and numbers with their units."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from coaching_service.core.text import normalize, without_apostrophes, without_hidden
from coaching_service.library.exercises._search_index import singular, split_words
from coaching_service.library.exercises.muscles import MUSCLES

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
_PART_OF: Mapping[str, str] = {word: word for word in _OF_MUSCLES - _NOT_PARTS} | {
    word: words.split()[0] for words in _SAME_PARTS for word in words.split()
}
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
        return frozenset(filter(is_part_of_body, self.words))

    def has_same_numbers(self, other: NameWords) -> bool:
        """Return whether both have the same numbers, and the same units where both have one."""
        return self.numbers == other.numbers and all(
            self.units[number] == other.units[number] for number in self.units.keys() & other.units.keys()
        )


def is_part_of_body(word: str) -> bool:
    """Return whether a word in the singular names a part of the body or a muscle."""
    return word in _PART_OF


def one_spelling(word: str) -> str:
    """Return a word in the spelling in which it is compared: calf for calves and gemelo, band for banded."""
    return spellings_of(word)[0]


def spellings_of(word: str) -> Sequence[str]:
    """Return the words that are compared as the same word."""
    return _SPELLINGS.get(word, (word,))
