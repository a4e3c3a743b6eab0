"""Headings of columns, in any case and order, in the languages that files come in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from coaching_service.core.text import normalize
from coaching_service.integrations.history_files._vocabulary import VOCABULARY, Field, by_words
from coaching_service.integrations.history_files.tables import Cell
from coaching_service.integrations.history_files.values import DateOrder

Unit = Literal["kg", "lb", "km", "mi", "m", "yd", "cm", "in", "s", "min", "h"]

_UNIT_WORDS: Mapping[str, Unit] = by_words(
    {
        "kg": ("kg", "kgs", "kilos", "kilogram", "kilograms", "kilo", "kilogramo", "kilogramos"),
        "lb": ("lb", "lbs", "pound", "pounds", "libra", "libras"),
        "km": ("km", "kms", "kilometers", "kilometres", "kilometer", "kilometre", "kilometro", "kilometros"),
        "mi": ("mi", "mile", "miles", "milla", "millas"),
        "m": ("m", "meter", "meters", "metre", "metres", "metro", "metros"),
        "yd": ("yd", "yds", "yard", "yards", "yarda", "yardas"),
        "min": ("min", "mins", "minutes"),
    }
)
_UNITS_OF_HEADINGS: Mapping[str, Unit] = {
    **_UNIT_WORDS,
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours", "std", "stunden", "horas", "heures", "ore"), "h"),
}
_UNITS_IN_BRACKETS: Mapping[str, Unit] = {
    **_UNITS_OF_HEADINGS,
    **dict.fromkeys(("s", "sec", "secs", "seconds", "sek", "seg"), "s"),
    **dict.fromkeys(("minutos", "minuten", "minuti"), "min"),
}
_SIGNS = re.compile(r"[^a-z0-9%]+")
_IN_BRACKETS = re.compile(r"^(.*)[(\[](.*)[)\]]\s*$")
_KG_OR_LB = re.compile(r"(.+?) (?:kgs?|lbs?)(?: (?:or|o|ou|oder))? (?:kgs?|lbs?)")
_HOURS_AND_MINUTES = re.compile(r"(?:h{1,2} m{1,2}|(?:12|24) ?h)(?: (?:a|am pm|tt))?")
_TIME_PATTERN = re.compile(r"h{1,2} m{1,2} s{1,2}(?: (?:a|am pm|tt))?|m{1,2} s{1,2}")
_DATE_PATTERN = re.compile(r"([a-z]+) ([a-z]+) ([a-z]+)(?: h{1,2} m{1,2}(?: s{1,2})?)?")
_DATE_ORDERS: Mapping[str, DateOrder] = {"dmy": "dmy", "mdy": "mdy", "ymd": "ymd"}
# The parts of patterns such as `dd/mm/yyyy`; `j` is a day in French and a year in German.
_DATE_PARTS: Mapping[str, str] = {
    **dict.fromkeys(("d", "dd", "t", "tt", "g", "gg", "day", "dia", "tag", "jour", "giorno"), "d"),
    **dict.fromkeys(("m", "mm", "mmm", "month", "mes", "monat", "mois", "mese"), "m"),
    **dict.fromkeys(("y", "yy", "yyyy", "a", "aa", "aaaa", "year", "ano", "jahr", "annee", "anno", "jjjj"), "y"),
    **dict.fromkeys(("j", "jj"), "j"),
}


@dataclass(frozen=True)
class Heading:
    """A heading as it is compared: its words, and what a hint behind them says.

    `unit` and `date_order` (of a pattern such as `dd/mm/yyyy`) are None without one, `hint` is empty.
    """

    words: str
    unit: Unit | None = None
    hint: str = ""
    date_order: DateOrder | None = None


@lru_cache(maxsize=4096)
def read_heading(text: str) -> Heading:
    """Return the words and the hint of a heading: `Weight (lbs)` and `weight_lbs` are `weight` in lb.

    What is in brackets and neither a unit nor a pattern of dates or times belongs to the words; `kg/lb` is no unit.
    """
    if (either := _KG_OR_LB.fullmatch(_words(text))) is not None:
        return Heading(either[1])
    found = _IN_BRACKETS.match(normalize(text))
    if found is not None:
        words, hint = _words(found[1]), _words(found[2])
        if (unit := _UNITS_IN_BRACKETS.get(hint)) is not None:
            return Heading(words, unit, hint)
        if _HOURS_AND_MINUTES.fullmatch(hint) or _TIME_PATTERN.fullmatch(hint):
            return Heading(words, "h" if _HOURS_AND_MINUTES.fullmatch(hint) else None, hint)
        if (order := _order_of(hint)) is not None:
            return Heading(words, None, hint, order)
    words = _words(text)
    first, _, last = words.rpartition(" ")
    if first and (unit := _UNITS_OF_HEADINGS.get(last)) is not None:
        return Heading(first, unit, last)
    return Heading(words)


def _order_of(pattern: str) -> DateOrder | None:
    """Return the order of a pattern of dates, such as `dd mm yyyy`; None for another text."""
    if pattern == "yyyymmdd":
        return "ymd"
    if (found := _DATE_PATTERN.fullmatch(pattern)) is None:
        return None
    parts = "".join(_DATE_PARTS.get(part, "?") for part in found.groups())
    return _DATE_ORDERS.get(parts.replace("j", "y" if "d" in parts else "d"))


def is_duration(text: str) -> bool:
    """Return whether a heading says that its column has durations: `Time (sec)`, `Time (mm:ss)`, `Time (min)`."""
    read = read_heading(text)
    return read.unit in ("s", "min") or read.hint in ("mm ss", "m ss", "hours", "hrs")


@lru_cache(maxsize=1024)
def unit_of(text: str) -> Unit | None:
    """Return the unit that a word is; None if it is none."""
    return _UNIT_WORDS.get(_words(text))


def words_of(headings: Sequence[Cell]) -> set[str]:
    """Return the words of headings."""
    return {read_heading(heading).words for heading in headings if isinstance(heading, str)}


def _words(text: str) -> str:
    return _SIGNS.sub(" ", normalize(text).replace("#", " number ")).strip()


FIELD_OF: Mapping[str, Field] = by_words(VOCABULARY)
