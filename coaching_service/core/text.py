"""Text as it is compared: without regard to case, accents and the kind of white space."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import Any

SUFFIX_LENGTH = 8
# Letters that Unicode does not decompose into a plain one and a mark.
_FOLDED = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "ŧ": "t", "æ": "ae", "œ": "oe", "þ": "th", "ŋ": "n"}
)


def normalize(text: str) -> str:
    """`text` folded for comparison: "  José  ÁLVAREZ" is "jose alvarez"."""
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    bare = "".join(character for character in decomposed if not unicodedata.combining(character))
    return " ".join(bare.translate(_FOLDED).split())


def suffixes(*parts: str) -> list[str]:
    """The endings of each (plain) part, cut to 8 characters: an index of them finds any substring by prefix.

    An ending that another begins with is left out: what finds the one finds the other.
    """
    endings = sorted({part[at : at + SUFFIX_LENGTH] for part in parts for at in range(len(part))})
    return [ending for ending, following in pairwise([*endings, ""]) if not following.startswith(ending)]


def keyword_filter(keywords: str) -> dict[str, Any]:
    """The condition that every (plain) keyword occurs in a document that has `suf` (its suffixes) and `search`.

    The longest keyword is served by the index of suffixes, the others are looked for in what it finds.
    """
    max_length, *others = sorted(keywords.split(), key=len, reverse=True)
    condition: dict[str, Any] = {"suf": {"$regex": "^" + escape_regex(max_length[:SUFFIX_LENGTH])}}
    rest = others if len(max_length) <= SUFFIX_LENGTH else [max_length, *others]
    if rest:
        condition["$and"] = [{"search": {"$regex": escape_regex(word)}} for word in rest]
    return condition


def search_fields_of(*texts: str) -> dict[str, Any]:
    """The private fields by which `holding` finds a document that holds these texts."""
    parts = [normalize(text) for text in texts]
    return {"search": "\n".join(parts), "suf": suffixes(*parts)}


def escape_regex(text: str) -> str:
    """A regular expression that matches `text` itself."""
    return re.escape(text)


def camel_case(name: str) -> str:
    """`create_workout_item` as `createWorkoutItem`."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def snake_case(camel: str) -> str:
    """`wblockId` as `wblock_id`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", camel).lower()
