"""Text for comparison and search: without regard to case, accents and the kind of white space."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

SUFFIX_LENGTH = 8
# Letters that Unicode does not decompose into a plain letter and a mark.
_FOLDED = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "ŧ": "t", "æ": "ae", "œ": "oe", "þ": "th", "ŋ": "n"}
)

# Embeddings, overrides and isolates, with what ends each; marks such as U+200F only have an effect where they are.
DIRECTION_CONTROLS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_POP_EMBEDDING, _FIRST_STRONG_ISOLATE, _POP_ISOLATE = "\u202c", "\u2068", "\u2069"
_ENDS_OF = dict.fromkeys("\u202a\u202b\u202d\u202e", _POP_EMBEDDING) | dict.fromkeys("\u2066\u2067\u2068", _POP_ISOLATE)

_APOSTROPHE = "'\u2018\u2019\u02bc`\u00b4"
_APOSTROPHES = re.compile(f"[{_APOSTROPHE}]")

# Tags are invisible, and only the flags of parts of countries have some: a black flag, letters, and an end.
_TAGS = re.compile("(\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f)|[\U000e0000-\U000e007f]")

# Where other programs end a line: line and paragraph separator, next line, and controls that no field accepts any more.
_SEPARATORS = str.maketrans("\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e", " " * 8)


def without_separators(text: str) -> str:
    """Return a text with spaces in place of the characters that end a line elsewhere; LF and CR LF stay."""
    return text.translate(_SEPARATORS)


def split_lines(text: str) -> list[str]:
    """Return the lines of a text: a line ends at LF or CR LF, and nowhere else."""
    return without_separators(text).replace("\r\n", "\n").replace("\r", " ").split("\n")


def isolate_direction(text: str) -> str:
    """Return a text whose characters that change the direction of writing have no effect outside of it."""
    if not DIRECTION_CONTROLS.search(text):
        return text
    characters, ends = [], []
    for character in text:
        if character in _ENDS_OF:
            ends.append(_ENDS_OF[character])
        elif character in (_POP_EMBEDDING, _POP_ISOLATE):
            if character not in ends or (character == _POP_EMBEDDING and ends[-1] != character):
                continue
            while ends.pop() != character:
                pass
        characters.append(character)
    return "".join([_FIRST_STRONG_ISOLATE, *characters, *reversed(ends), _POP_ISOLATE])


def without_invisible_controls(text: str) -> str:
    """Return a text without characters that change the direction of writing, and without tags outside of flags."""
    return _TAGS.sub(lambda match: match[1] or "", DIRECTION_CONTROLS.sub("", text))


# Characters without a shape, and variation selectors behind another one: they can hide a text from who looks at it.
_SELECTORS = "[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
_HIDDEN = re.compile(f"[\u00ad\u180e\u200b\u2060-\u2064\ufeff]|(?<={_SELECTORS}){_SELECTORS}")


def without_hidden(text: str) -> str:
    """Return a text without what only a program reads; joiners, flags and single variation selectors stay."""
    return text if text.isascii() else _HIDDEN.sub("", _TAGS.sub(r"\1", text))


def apostrophe_spellings(text: str) -> list[str]:
    """Return a text, and the same with each kind of apostrophe in place of its own."""
    if not _APOSTROPHES.search(text):
        return [text]
    return list(dict.fromkeys([text, *(_APOSTROPHES.sub(each, text) for each in _APOSTROPHE)]))


def normalize(text: str) -> str:
    """Return a text in the form in which texts are compared: "  José  ÁLVAREZ" becomes "jose alvarez"."""
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    unaccented = "".join(character for character in decomposed if not unicodedata.combining(character))
    return " ".join(unaccented.translate(_FOLDED).split())


def apostrophe_pattern(text: str) -> str:
    """Return a regular expression that matches a normalized text with any kind of apostrophe in place of its own."""
    return _APOSTROPHES.sub(f"[{_APOSTROPHE}]", re.escape(straighten(text)))


def without_apostrophes(text: str) -> str:
    """Return a text without apostrophes of any kind, so that farmer's walk and farmers walk are the same."""
    return _APOSTROPHES.sub("", text)


def straighten(text: str) -> str:
    """Return a text with plain apostrophes in place of curly ones."""
    return _APOSTROPHES.sub("'", text)


def suffixes(*parts: str) -> list[str]:
    """Return the suffixes of normalized texts, cut to 8 characters, by which an index finds any substring.

    A suffix that is the beginning of another one is left out, because a search for it finds the other.
    """
    endings = sorted({part[at : at + SUFFIX_LENGTH] for part in parts for at in range(len(part))})
    return [ending for ending, following in pairwise([*endings, ""]) if not following.startswith(ending)]


def keyword_filter(keywords: str) -> dict[str, Any]:
    """Return the filter for documents with every normalized keyword; they need the fields of `search_fields_of`.

    The longest keyword uses the index of suffixes, the others are checked for each document that it finds. Apostrophes
    of all kinds are the same.
    """
    words = keywords.split()
    longest = max(map(longest_part, words), key=len)
    condition: dict[str, Any] = {"suf": {"$regex": "^" + re.escape(longest[:SUFFIX_LENGTH])}}
    rest = [word for word in words if word != longest or len(word) > SUFFIX_LENGTH]
    if rest:
        condition["$and"] = [{"search": {"$regex": apostrophe_pattern(word)}} for word in rest]
    return condition


def longest_part(text: str) -> str:
    """Return the longest part of a text without an apostrophe; one that has only apostrophes as it is."""
    return max(_APOSTROPHES.split(text), key=len) or text


def search_fields_of(*texts: str) -> dict[str, Any]:
    """Return the private fields by which `keyword_filter` finds a document with these texts."""
    parts = [normalize(text) for text in texts]
    return {"search": "\n".join(parts), "suf": suffixes(*parts)}


def camel_case(name: str) -> str:
    """Convert a name such as `create_workout_item` to `createWorkoutItem`."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def snake_case(camel: str) -> str:
    """Convert a name such as `wblockId` to `wblock_id`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", camel).lower()


# --- Rows of CSV files that spreadsheets open: text never becomes a formula -------------------------------------------


# Where a formula may begin: in a cell, and behind what separates cells or lines for a spreadsheet that expects other
# separators than commas.
_START = r"(^|;|\t|\r\n?|\n)"
_FORMULA = r"(?=[\s\"']*[=+\-@＝＋－＠])"  # full-width characters begin one in some spreadsheets
_UNMARKED, _MARKED = re.compile(_START + _FORMULA), re.compile(f"{_START}'{_FORMULA}")


def neutralise(cell: object) -> object:
    """Return a cell as it is written: an apostrophe precedes text that a spreadsheet would run; None is empty.

    A line ends at LF and CR LF only.
    """
    if isinstance(cell, str):
        return _UNMARKED.sub(r"\1'", without_separators(cell))
    return "" if cell is None else cell


def restore(cell: str) -> str:
    """Return the text that `neutralise` wrote as `cell`."""
    return _MARKED.sub(r"\1", cell)


def write_rows(rows: Iterable[Iterable[object]]) -> bytes:
    """Rows of text and numbers as CSV in UTF-8 (RFC 4180)."""
    out = io.StringIO()
    csv.writer(out).writerows([neutralise(cell) for cell in row] for row in rows)
    return out.getvalue().encode("utf-8")
